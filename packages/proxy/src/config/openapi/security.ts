/** The ways in which an API knows its caller, as credentials that its upstream gets from the environment. */
import { wrongForUpstream } from '../header-names.ts';
import {
  fieldOf,
  isObject,
  type Json,
  type LeaveOut,
  listOf,
  type OpenApiDocument,
  objectOf,
  textOf,
} from './document.ts';

/** An environment variable that must be set before the configuration can be used. */
export interface NeededVariable {
  readonly name: string;
  /** A few words about its value. */
  readonly holds: string;
}

export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly variables: readonly NeededVariable[];
}

interface Written {
  kind: 'headers' | 'query';
  name: string;
  text: string;
  variable: NeededVariable;
}

const reference = (variable: string, scheme = '') => `${scheme}${['$', `{${variable}}`].join('')}`;

/**
 * Collects the credentials of all operations: of each the first way that can be written down.
 *
 * @param prefix of the variables' names, such as `WEATHER`
 */
export function credentialsOf(
  document: OpenApiDocument,
  operations: readonly Json[],
  prefix: string,
  leaveOut: LeaveOut,
): Credentials {
  const schemes = objectOf(objectOf(document.root.components).securitySchemes);
  const found = new Map<string, Written>();
  const refused = new Map<string, string>();
  for (const operation of operations) {
    const ways = listOf(operation.security ?? document.root.security).filter(isObject);
    const read = ways.map((way) =>
      Object.keys(way).map((name) => schemeOf(document, fieldOf(schemes, name), name, prefix)),
    );
    const able = read.filter((parts) => parts.every((part) => typeof part !== 'string'));
    const usable = able.find((parts) => parts.length > 0) ?? able[0];
    for (const part of (usable ?? read.flat()).flat()) {
      if (typeof part === 'string') refused.set(part, part);
      else if (usable !== undefined) note(part, found, refused);
    }
  }
  for (const why of refused.keys()) leaveOut('security', why);
  const pairs = (kind: Written['kind']) =>
    Object.fromEntries(
      [...found.values()].filter((each) => each.kind === kind).map(({ name, text }) => [name, text]),
    );
  const variables = new Map([...found.values()].map(({ variable }) => [variable.name, variable]));
  return { headers: pairs('headers'), query: pairs('query'), variables: [...variables.values()] };
}

function note(part: Written, found: Map<string, Written>, refused: Map<string, string>): void {
  const key = `${part.kind} ${part.name}`;
  const before = found.get(key);
  if (before === undefined) found.set(key, part);
  else if (before.text !== part.text) {
    const why = `operations use ${part.name} in more than one way, and only the first was written`;
    refused.set(why, why);
  }
}

/** One scheme as it is written; a text says why it cannot be. */
function schemeOf(
  document: OpenApiDocument,
  written: unknown,
  name: string,
  prefix: string,
): Written | string {
  const scheme = document.resolve(written);
  if (scheme === null) return `the scheme ${name} is not declared`;
  const variable = (suffix: string, holds: string) => ({ name: `${prefix}_${suffix}`, holds });
  const authorization = (text: string, made: NeededVariable): Written => ({
    kind: 'headers',
    name: 'authorization',
    text: reference(made.name, text),
    variable: made,
  });
  const kind = textOf(scheme.type);
  const http = textOf(scheme.scheme)?.toLowerCase();
  if (kind === 'http' && http === 'basic')
    return authorization('Basic ', variable('BASIC', 'user:password in base64'));
  if ((kind === 'http' && http === 'bearer') || kind === 'oauth2' || kind === 'openIdConnect')
    return authorization('Bearer ', variable('TOKEN', 'an access token'));
  if (kind !== 'apiKey')
    return `the scheme ${name} (${kind ?? 'without a type'}) cannot be sent as a header or a parameter`;
  const place = textOf(scheme.in);
  const key = textOf(scheme.name) ?? '';
  if (place === 'query' && key !== '' && key.length <= 100) {
    const made = variable('KEY', `the key for the parameter ${key}`);
    return { kind: 'query', name: key, text: reference(made.name), variable: made };
  }
  const header = key.toLowerCase();
  if (place !== 'header' || !/^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(header))
    return `the scheme ${name} is a key in a ${place === 'cookie' ? 'cookie, and cookies are never sent on' : 'place without a name'}`;
  const wrong = wrongForUpstream(header);
  if (wrong !== null) return `the scheme ${name} is the header ${header}: ${wrong}`;
  const made = variable('KEY', `the value of the header ${header}`);
  return { kind: 'headers', name: header, text: reference(made.name), variable: made };
}
