/**
 * The key of a route, such as `GET /v1/stations/:id`: a method and the public path by which the route is called. A path is split at its
 * slashes, and each of its segments is a fixed text or a parameter; there are no wildcards and no regular expressions.
 */

/** The methods that can be sold. HEAD and OPTIONS are answered by the server itself and never sent on. */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

const MOST_PATH_CHARACTERS = 512;
const MOST_SEGMENTS = 32;
export const MOST_KEY_CHARACTERS = MOST_PATH_CHARACTERS + 8;

/** The first segments of paths that are always the server's own. */
export const RESERVED_FIRST_SEGMENTS: readonly string[] = ['.well-known', 'admin', 'mcp', 'a2a'];

export type Segment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'parameter'; readonly name: string };

export interface PathPattern {
  /** The path as it was written. */
  readonly text: string;
  /** A segment for each slash; a path that ends in a slash has an empty text at its end. The path `/` has one empty text. */
  readonly segments: readonly Segment[];
}

export interface RouteKey {
  readonly method: Method;
  readonly path: PathPattern;
}

/** A sentence that says what is wrong and what to write instead. */
export type Complaint = { readonly wrong: string };

/** Reads the key of a route. */
export function readRouteKey(key: string): RouteKey | Complaint {
  const match = /^([A-Za-z]+) (\/.*)$/s.exec(key);
  if (match === null)
    return {
      wrong: `write a method, one space and a path that begins with "/", such as "GET /v1/stations/:id"`,
    };
  const [, written = '', text = ''] = match;
  const method = METHODS.find((each) => each === written);
  if (method === undefined) return { wrong: wrongMethod(written) };
  const path = readPathPattern(text);
  return 'wrong' in path ? path : { method, path };
}

function wrongMethod(written: string): string {
  const upper = written.toUpperCase();
  if (METHODS.some((each) => each === upper)) return `write the method in capitals: ${upper}`;
  if (upper === 'HEAD' || upper === 'OPTIONS')
    return `${upper} is answered by the server for every route and is never sent on: leave this route out`;
  return `the method must be one of ${METHODS.join(', ')}`;
}

/**
 * Reads a path with parameters.
 *
 * @param owner `ours`: a public path, which must not be one of the server's own; `any`: a path of an upstream
 */
export function readPathPattern(text: string, owner: 'ours' | 'any' = 'ours'): PathPattern | Complaint {
  if (!text.startsWith('/')) return { wrong: 'a path begins with "/"' };
  if (text.length > MOST_PATH_CHARACTERS)
    return { wrong: `a path has at most ${MOST_PATH_CHARACTERS} characters` };
  const written = text.slice(1).split('/');
  if (written.length > MOST_SEGMENTS) return { wrong: `a path has at most ${MOST_SEGMENTS} segments` };
  const segments: Segment[] = [];
  for (const [index, each] of written.entries()) {
    const wrong = wrongSegment(each, index === written.length - 1);
    if (wrong !== null) return { wrong };
    segments.push(
      each.startsWith(':') ? { kind: 'parameter', name: each.slice(1) } : { kind: 'literal', text: each },
    );
  }
  const names = segments.flatMap((each) => (each.kind === 'parameter' ? [each.name] : []));
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) return { wrong: `the parameter :${twice} stands in this path twice: rename one` };
  const [first] = segments;
  if (
    owner === 'ours' &&
    first?.kind === 'literal' &&
    RESERVED_FIRST_SEGMENTS.includes(first.text.toLowerCase())
  )
    return { wrong: `paths below /${first.text.toLowerCase()} are the server's own: choose another path` };
  return { text, segments };
}

function wrongSegment(segment: string, isLast: boolean): string | null {
  if (segment === '') return isLast ? null : 'a path has no empty segments: remove the second slash';
  if (segment === '.' || segment === '..') return 'a path has no segments "." and "..": write it out';
  if (segment.startsWith(':'))
    return /^:[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(segment)
      ? null
      : `${segment} is no parameter: a name of letters, digits and _ follows the colon, up to the next slash`;
  if (segment.includes('%'))
    return 'a path has no percent-encoded characters: name such a segment by a parameter';
  if (segment.includes('*')) return 'there are no wildcards: write one route for each path, with parameters';
  if (/[{}]/.test(segment)) return `write a parameter as :name, not as ${segment}`;
  return /^[A-Za-z0-9._~!$&'()+,;=:@-]+$/.test(segment)
    ? null
    : 'a path has only the characters that need no encoding in an address, and no "?" or "#"';
}

/** The text that two paths share when they match the same addresses: parameter names do not count. */
export function shapeOf({ segments }: PathPattern): string {
  return segments.map((each) => (each.kind === 'literal' ? `/${each.text}` : '/:')).join('');
}

/** The names of a path's parameters, from left to right. */
export function parametersOf({ segments }: PathPattern): string[] {
  return segments.flatMap((each) => (each.kind === 'parameter' ? [each.name] : []));
}
