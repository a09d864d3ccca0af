import { createHmac, hash, randomBytes } from 'node:crypto';

/** Every key begins with this; `live_` and 64 hex digits follow: 61 random ones, and three that name the bucket of its account. */
const KEY_PREFIX = 'fbx_';
const FORMAT = new RegExp(`^${KEY_PREFIX}live_[0-9a-f]{64}$`);
const BUCKET_DIGITS = 3;

export interface NewApiKey {
  /** The key itself: handed to its owner once and kept nowhere. */
  apiKey: string;
  /** The first 12 characters, safe to show. */
  prefix: string;
  /** SHA-256 of the key. The key is random, so a slow hash would protect nothing. */
  digest: Buffer;
  lookup: bigint;
}

/** The stored form of a key. */
export type StoredApiKey = Omit<NewApiKey, 'apiKey'>;

/** Makes a key that names a bucket. @param bucket that of its account, as far as it is known */
export function newApiKey(bucket: number): NewApiKey {
  const random = randomBytes(32).toString('hex').slice(0, -BUCKET_DIGITS);
  return withKey(random + bucket.toString(16).padStart(BUCKET_DIGITS, '0'));
}

/**
 * The bucket that a key names. Those from before there were buckets, and those that follow from a secret, name any; and a stranger may
 * write any: what counts is where the key's row is found.
 */
export function bucketNamedBy(apiKey: string): number {
  return Number.parseInt(apiKey.slice(-BUCKET_DIGITS), 16);
}

/**
 * The key that follows from our secret and something that only its future owner holds, so that it can be handed over
 * twice without being kept: at rest there is neither the key nor what it follows from.
 *
 * @param purpose keeps keys for different purposes apart, such as `checkout`
 * @param parts what it follows from; at least one is the owner's secret
 */
export function deriveApiKey(secret: string, purpose: string, parts: readonly string[]): NewApiKey {
  const of = JSON.stringify(['api key', purpose, ...parts]);
  return withKey(createHmac('sha256', secret).update(of).digest('hex'));
}

function withKey(hex: string): NewApiKey {
  const apiKey = `${KEY_PREFIX}live_${hex}`;
  return { apiKey, ...digestOf(apiKey) };
}

export function digestOf(apiKey: string): StoredApiKey {
  // As text, because memory of its own for each digest takes longer than the digest.
  const digest = Buffer.from(hash('sha256', apiKey, 'binary'), 'binary');
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
