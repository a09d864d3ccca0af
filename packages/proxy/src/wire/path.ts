/**
 * Which route the address of a request names, and what of that address goes to the upstream. Addresses are compared as an upstream
 * would read them, decoded once; what goes on are the bytes that came. An address that two programs could read differently is refused,
 * because it could be priced as one thing and answered as another.
 */

/** The longest path and query that are read, in characters. */
const MOST_PATH_CHARACTERS = 2_048;
const MOST_TARGET_CHARACTERS = 8_192;
const MOST_SEGMENTS = 64;

/** One segment of a pattern: a fixed text, or a parameter that takes any text but none. */
export type PatternSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'parameter'; readonly name: string };

/** A method and a path. A path that ends in a slash has an empty text at its end. */
export interface RoutePattern {
  readonly method: string;
  readonly path: { readonly segments: readonly PatternSegment[] };
}

/** The address of a request as it came. */
export interface RawAddress {
  /** Each segment of the path: as it came, and decoded. */
  readonly segments: readonly { readonly raw: string; readonly text: string }[];
  /** Unchanged, with its question mark; empty if the address has none. */
  readonly query: string;
}

export interface Matched<Route> {
  readonly route: Route;
  /** The decoded text of each parameter. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly address: RawAddress;
}

/** An address that is not read any further: the status of the refusal, and a sentence for the caller. */
export interface AddressRefused {
  readonly refused: string;
  readonly status: 400 | 414;
}

const refuse = (refused: string, status: 400 | 414 = 400): AddressRefused => ({ refused, status });

/**
 * Reads the target of a request, which node:http hands over as it came.
 *
 * @param target in origin form, such as `/v1/stations/7?unit=m`
 */
export function readAddress(target: string): RawAddress | AddressRefused {
  if (target.length > MOST_TARGET_CHARACTERS)
    return refuse(`An address has at most ${MOST_TARGET_CHARACTERS} characters.`, 414);
  if (!target.startsWith('/')) return refuse('An address begins with "/".');
  if (/[^\x21-\x7e]/.test(target))
    return refuse('An address has only printable ASCII characters: encode all others.');
  if (target.includes('#')) return refuse('An address that is sent has no "#".');
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  if (path.length > MOST_PATH_CHARACTERS)
    return refuse(`A path has at most ${MOST_PATH_CHARACTERS} characters.`, 414);
  const raws = path.slice(1).split('/');
  if (raws.length > MOST_SEGMENTS) return refuse(`A path has at most ${MOST_SEGMENTS} segments.`, 414);
  const segments: { raw: string; text: string }[] = [];
  for (const raw of raws) {
    const text = decoded(raw);
    if (typeof text !== 'string') return text;
    segments.push({ raw, text });
  }
  return { segments, query: mark === -1 ? '' : target.slice(mark) };
}

/** The text of a segment, if all programs would read the same text. */
function decoded(raw: string): string | AddressRefused {
  let text = raw;
  if (raw.includes('%')) {
    if (/%(?![\da-f]{2})/i.test(raw)) return refuse('In a path, two hexadecimal digits follow each "%".');
    try {
      text = decodeURIComponent(raw);
    } catch {
      return refuse('The encoded characters of a path are valid UTF-8.');
    }
    if (/%[\da-f]{2}/i.test(text)) return refuse('A path is encoded once, not twice.');
  }
  // Some programs read look-alikes, such as a full-width slash, as the plain character.
  const plain = /[^\x20-\x7e]/.test(text) ? text.normalize('NFKC') : text;
  if (/[/\\]/.test(plain))
    return refuse('A segment of a path has no slash or backslash, however it is encoded.');
  if (/\p{Cc}/u.test(plain)) return refuse('A path has no control characters.');
  // What follows a semicolon is no part of the name for servers that know parameters of segments.
  if (/^\.{1,2}(?:;|$)/.test(plain))
    return refuse('A path has no segments "." and "..", however they are encoded.');
  return text;
}

interface Node<Route> {
  readonly literals: Map<string, Node<Route>>;
  /** The literals again, by what a lenient server might take for them. */
  readonly alike: Map<string, Node<Route>[]>;
  parameter: Node<Route> | null;
  readonly ends: Map<string, { route: Route; names: readonly string[] }>;
}

const emptyNode = <Route>(): Node<Route> => ({
  literals: new Map(),
  alike: new Map(),
  parameter: null,
  ends: new Map(),
});

/** The text that a lenient server takes for the same name: in any case, with spaces or dots behind it. */
const leniently = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s.]+$/, '');

/** The names that a lenient server might read in a segment: also without a parameter of the segment or a suffix. */
const readings = (text: string): Set<string> =>
  new Set([text, text.split(';', 1)[0] ?? '', text.split(/[;.]/, 1)[0] ?? ''].map(leniently));

/** All routes of a configuration, built once and never changed. */
export class RouteTable<Route extends RoutePattern> {
  readonly #root: Node<Route> = emptyNode();

  /** @throws when two routes match the same addresses */
  constructor(routes: Iterable<Route>) {
    for (const route of routes) this.#add(route);
  }

  #add(route: Route): void {
    const names: string[] = [];
    let node = this.#root;
    for (const segment of route.path.segments) {
      if (segment.kind === 'parameter') {
        names.push(segment.name);
        node.parameter ??= emptyNode();
        node = node.parameter;
        continue;
      }
      let next = node.literals.get(segment.text);
      if (next === undefined) {
        next = emptyNode();
        node.literals.set(segment.text, next);
        const key = leniently(segment.text);
        node.alike.set(key, [...(node.alike.get(key) ?? []), next]);
      }
      node = next;
    }
    if (node.ends.has(route.method))
      throw new Error(`Two routes match the same addresses: ${route.method} ${shown(route)}`);
    node.ends.set(route.method, { route, names });
  }

  /**
   * Finds the route of a request. A fixed text is preferred to a parameter.
   *
   * @returns null when no route names the address: it is not for any upstream
   */
  match(method: string, target: string): Matched<Route> | AddressRefused | null {
    const address = readAddress(target);
    if ('refused' in address) return address;
    const texts = address.segments.map(({ text }) => text);
    const found = search(this.#root, texts, 0, method);
    if (found === null) return null;
    if (found.isAmbiguous)
      return refuse('This path is almost that of another route: write it exactly as it is listed.');
    const { route, names } = found.end;
    // Built from pairs, so that a name such as __proto__ is a name like others.
    const parameters = Object.fromEntries(names.map((name, index) => [name, found.values[index] ?? '']));
    return { route, parameters, address };
  }

  /** The methods of the routes that name an address; none if it is not read. */
  methodsAt(target: string): string[] {
    const address = readAddress(target);
    if ('refused' in address) return [];
    const methods = new Set<string>();
    const walk = (node: Node<Route>, index: number): void => {
      const text = address.segments[index]?.text;
      if (text === undefined) {
        for (const method of node.ends.keys()) methods.add(method);
        return;
      }
      const literal = node.literals.get(text);
      if (literal !== undefined) walk(literal, index + 1);
      if (text !== '' && node.parameter !== null) walk(node.parameter, index + 1);
    };
    walk(this.#root, 0);
    return [...methods].sort();
  }
}

interface Found<Route> {
  end: { route: Route; names: readonly string[] };
  values: readonly string[];
  /** Whether a lenient server would take a parameter's text for the fixed text of another route. */
  isAmbiguous: boolean;
}

/** Each node is looked at once at most, because it stands at one depth. */
function search<Route>(
  node: Node<Route>,
  texts: readonly string[],
  index: number,
  method: string,
): Found<Route> | null {
  const text = texts[index];
  if (text === undefined) {
    const end = node.ends.get(method);
    return end === undefined ? null : { end, values: [], isAmbiguous: false };
  }
  const literal = node.literals.get(text);
  const exact = literal === undefined ? null : search(literal, texts, index + 1, method);
  if (exact !== null) return exact;
  if (text === '' || node.parameter === null) return null;
  const found = search(node.parameter, texts, index + 1, method);
  if (found === null) return null;
  const isAlike =
    node.alike.size > 0 &&
    [...readings(text)].some((reading) =>
      (node.alike.get(reading) ?? []).some(
        (other) => other !== literal && search(other, texts, index + 1, method) !== null,
      ),
    );
  return { end: found.end, values: [text, ...found.values], isAmbiguous: found.isAmbiguous || isAlike };
}

const shown = ({ path }: RoutePattern): string =>
  path.segments.map((each) => (each.kind === 'literal' ? `/${each.text}` : `/:${each.name}`)).join('');

/** Where an upstream stands, on both sides. */
export interface UpstreamPlace {
  /** The public path below which its routes are, such as `/weather`; `/` is none. */
  readonly prefix: string;
  /** The path of its own address, such as `/` or `/api/v2`. */
  readonly basePath: string;
  /** The names of the parameters in which it takes credentials. */
  readonly credentialNames: readonly string[];
}

/**
 * Says what is asked of the upstream: its own path, then the path of the request without the upstream's prefix, then the query, each
 * byte as it came.
 *
 * @returns a refusal when the request has a parameter that holds a credential: the upstream might take the caller's
 */
export function upstreamTarget(
  { segments, query }: RawAddress,
  place: UpstreamPlace,
): string | AddressRefused {
  const own = new Set(place.credentialNames.map((name) => name.toLowerCase()));
  // A server may read a list or an object in `name[]`.
  const taken =
    own.size === 0
      ? undefined
      : namesIn(query).find((name) => own.has(name.replace(/\[.*$/s, '').toLowerCase()));
  if (taken !== undefined)
    return refuse(`The parameter "${taken}" is not the caller's to set: leave it out.`);
  const cut = place.prefix.split('/').filter((each) => each !== '').length;
  const rest = segments.slice(cut).map(({ raw }) => raw);
  return `${place.basePath.replace(/\/+$/, '')}/${rest.join('/')}${query}`;
}

/** Adds an upstream's credentials to what is asked of it. @param credentials names and values, not encoded */
export function withCredentials(target: string, credentials: Readonly<Record<string, string>>): string {
  const added = Object.entries(credentials).map((pair) => pair.map(encodeURIComponent).join('='));
  if (added.length === 0) return target;
  const glue = target.includes('?') ? (/[?&]$/.test(target) ? '' : '&') : '?';
  return `${target}${glue}${added.join('&')}`;
}

/** The names of a query's parameters, as an upstream would read them. Older ones part parameters by semicolons too. */
function namesIn(query: string): string[] {
  return query
    .slice(1)
    .split(/[&;]/)
    .map((pair) => readable(pair.split('=', 1)[0] ?? ''));
}

function readable(name: string): string {
  // A name that is no UTF-8 is compared byte by byte.
  const text = name.replaceAll('+', ' ');
  try {
    return decodeURIComponent(text).trim();
  } catch {
    return text
      .replaceAll(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
      .trim();
  }
}
