import { textOf } from '@farebox/core/secret-files';
import { isCredentialHeader, wrongForUpstream } from './header-names.ts';
import type { FieldPath } from './problem.ts';
import type { Credential, Upstream } from './proxy-config.ts';
import { readPathPattern } from './route-key.ts';
import type { UpstreamInput } from './schema.ts';

/** Notes one thing that is wrong with a field. */
export type Complain = (path: FieldPath, message: string) => void;

/** The environment in which secrets are looked up. */
export type Environment = Readonly<Record<string, string | undefined>>;

const MOST_SECRET_CHARACTERS = 8_000;

/** Resolves one upstream; what is wrong with it is complained about, and the rest still looked at. */
export function resolveUpstream(
  name: string,
  input: UpstreamInput,
  env: Environment,
  complain: Complain,
): Upstream {
  const at: FieldPath = ['upstreams', name];
  const { timeouts = {}, breaker = {} } = input;
  return {
    name,
    ...addressOf(input.url, [...at, 'url'], complain),
    prefix: prefixOf(input.prefix ?? `/${name}`, [...at, 'prefix'], complain),
    credentials: [
      ...credentialsOf('header', input.headers, [...at, 'headers'], env, complain),
      ...credentialsOf('query', input.query, [...at, 'query'], env, complain),
    ],
    fixedHeaders: fixedHeadersOf(input, at, complain),
    timeouts: {
      headersMs: timeouts.headersMs ?? 15_000,
      idleMs: timeouts.idleMs ?? 30_000,
      wholeMs: timeouts.wholeMs ?? 20_000,
    },
    concurrency: input.concurrency ?? 64,
    keepAlive: input.keepAlive ?? true,
    breaker: breaker === false ? null : { failures: breaker.failures ?? 5, openMs: breaker.openMs ?? 10_000 },
  };
}

export function addressOf(
  text: string,
  at: FieldPath,
  complain: Complain,
): { origin: string; basePath: string } {
  const nowhere = { origin: 'http://invalid', basePath: '' };
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    complain(at, 'write an address that begins with http:// or https://');
    return nowhere;
  }
  if (url.username !== '' || url.password !== '') {
    complain(
      at,
      'an address holds no credentials: write them under "headers", by the name of an environment variable',
    );
    return nowhere;
  }
  if (text.includes('?') || text.includes('#')) {
    complain(at, 'an address has no "?" and no "#" here: its path is the beginning of all paths of the API');
    return nowhere;
  }
  // As it was written, because a parsed address has lost its dot segments.
  const path = text.replace(/^[^:]+:\/*[^/\\]*/, '');
  const basePath = path.replace(/\/$/, '');
  const read = basePath === '' ? null : readPathPattern(basePath, 'any');
  if (read !== null && 'wrong' in read) complain(at, read.wrong);
  else if (read?.segments.some(({ kind }) => kind === 'parameter'))
    complain(at, 'an address has no parameters');
  return { origin: url.origin, basePath };
}

function prefixOf(text: string, at: FieldPath, complain: Complain): string {
  if (text === '/') return '';
  const read = readPathPattern(text);
  if ('wrong' in read) complain(at, read.wrong);
  else if (read.segments.some(({ kind }) => kind === 'parameter')) complain(at, 'a prefix has no parameters');
  else if (text.endsWith('/')) complain(at, 'a prefix has no slash at its end');
  return text;
}

/** Reads credentials by the names of their variables. */
export function credentialsOf(
  kind: Credential['kind'],
  written: Readonly<Record<string, string>> | undefined,
  at: FieldPath,
  env: Environment,
  complain: Complain,
): Credential[] {
  return Object.entries(written ?? {}).map(([name, text]) => {
    const here = [...at, name];
    const refused = kind === 'header' ? wrongForUpstream(name) : null;
    if (refused !== null) complain(here, refused);
    const [, scheme = '', variable = ''] = /^([^$]*)\$\{(.*)\}$/.exec(text) ?? [];
    const given = textOf(env, { name: variable, secret: true });
    const value = 'text' in given ? (given.text ?? undefined) : undefined;
    if ('problem' in given) complain(here, given.problem);
    else if (value === undefined)
      complain(here, `the environment variable ${variable} is not set: set it, or remove this line`);
    else if (value.length > MOST_SECRET_CHARACTERS || !/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value))
      complain(
        here,
        `the environment variable ${variable} holds what cannot be sent: printable ASCII without spaces around it, at most ${MOST_SECRET_CHARACTERS} characters`,
      );
    const secret = `${scheme}${value ?? ''}`;
    return { kind, name, variable, reveal: () => secret };
  });
}

function fixedHeadersOf(
  input: UpstreamInput,
  at: FieldPath,
  complain: Complain,
): (readonly [string, string])[] {
  return Object.entries(input.fixedHeaders ?? {}).map(([name, value]) => {
    const here = [...at, 'fixedHeaders', name];
    const refused = wrongForUpstream(name);
    if (refused !== null) complain(here, refused);
    else if (isCredentialHeader(name))
      complain(
        here,
        'this would be a secret in the file: write it under "headers", by the name of an environment variable',
      );
    if (input.headers !== undefined && Object.hasOwn(input.headers, name))
      complain(here, 'this header stands under "headers" too: remove one');
    return [name, value] as const;
  });
}
