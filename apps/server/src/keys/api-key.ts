import { hash, randomBytes } from 'node:crypto';

/** Every key begins with this; `live_` and 64 hex digits follow, 256 random bits. */
const KEY_PREFIX = 'fbx_';
const FORMAT = new RegExp(`^${KEY_PREFIX}live_[0-9a-f]{64}$`);

export interface NewApiKey {
  /** The key itself: handed to its owner once and kept nowhere. */
  apiKey: string;
  /** The first 12 characters, safe to show. */
  prefix: string;
  /** SHA-256 of the key. The key is random, so a slow hash would protect nothing. */
  digest: Buffer;
  lookup: bigint;
}

export function newApiKey(): NewApiKey {
  const apiKey = `${KEY_PREFIX}live_${randomBytes(32).toString('hex')}`;
  return { apiKey, ...digestOf(apiKey) };
}

/** What is stored of a key. */
export function digestOf(apiKey: string): { prefix: string; digest: Buffer; lookup: bigint } {
  const digest = hash('sha256', apiKey, 'buffer');
  return { prefix: apiKey.slice(0, 12), digest, lookup: digest.readBigInt64BE(0) };
}

/** Whether it could be one of our keys at all; cheaper than asking. */
export function looksLikeApiKey(value: string): boolean {
  return FORMAT.test(value);
}

/** The key that a request presents, in `X-API-KEY` or as a bearer token; null when there is none. */
export function presentedApiKey(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string | null {
  const header = headers['x-api-key'];
  if (typeof header === 'string' && header !== '') return header.trim();
  const authorization = headers.authorization;
  if (typeof authorization !== 'string') return null;
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(authorization);
  return bearer?.[1] ?? null;
}
