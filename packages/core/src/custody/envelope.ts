/**
 * Envelope encryption: each secret under a random key of its own, and that key under the operator's key-encryption key.
 * Both layers are AES-256-GCM (NIST SP 800-38D) with a random 96-bit nonce, and both are bound to what they belong to,
 * so that a row cannot be changed, nor moved to another wallet, without it showing.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const MAX_KEYS = 16;

/** The stored form of a secret. */
export interface Sealed {
  /** Which key-encryption key opens it. */
  kekId: string;
  /** The data key, encrypted: nonce, ciphertext, tag. */
  wrappedDataKey: Buffer;
  /** The secret, encrypted: nonce, ciphertext, tag. */
  ciphertext: Buffer;
}

/** A secret that cannot be read: its row was changed, or its key-encryption key is not among the configured ones. */
export class Unreadable extends Error {}

export interface Keyring {
  /** The key-encryption key for whatever is sealed from now on. */
  readonly currentId: string;
  /** All that can be opened. */
  readonly ids: readonly string[];
  /** @param belongsTo what the secret belongs to; opening takes the same */
  seal(secret: Uint8Array, belongsTo: string): Sealed;
  /** @throws Unreadable */
  open(sealed: Sealed, belongsTo: string): Buffer;
  /**
   * Puts the data key under the current key-encryption key. The secret itself is not touched.
   *
   * @throws Unreadable
   */
  rewrap(sealed: Sealed, belongsTo: string): Sealed;
}

/**
 * Reads `WALLET_ENCRYPTION_KEY`: keys of 64 hex digits, comma-separated. The first encrypts, all decrypt: to rotate, put
 * the new one first, and take the old one away once nothing is under it any more.
 *
 * @throws when one is not 64 hex digits, is too regular to be random, or stands there twice
 */
export function parseKeyEncryptionKeys(list: string): Buffer[] {
  const keys = list.split(',').map((item) => item.trim());
  if (keys.length > MAX_KEYS) throw new Error(`at most ${MAX_KEYS} keys`);
  for (const key of keys) {
    if (!/^[0-9a-fA-F]{64}$/.test(key)) throw new Error('must be keys of 64 hex digits, comma-separated');
    // Of 64 random hex digits fewer than 8 different ones come about once in 10^18 keys.
    if (new Set(key.toLowerCase()).size < 8) throw new Error('a key is too regular to be random');
  }
  if (new Set(keys.map((key) => key.toLowerCase())).size < keys.length) throw new Error('a key stands twice');
  return keys.map((key) => Buffer.from(key, 'hex'));
}

/** @param keys key-encryption keys of 32 bytes; the first encrypts, all decrypt */
export function createKeyring(keys: readonly Buffer[]): Keyring {
  const byId = new Map(keys.map((key) => [idOf(key), key]));
  const [currentId] = byId.keys();
  if (currentId === undefined) throw new Error('a keyring needs a key');

  const kek = (id: string): Buffer => {
    const key = byId.get(id);
    if (key === undefined) throw new Unreadable(`no configured key-encryption key has the id ${id}`);
    return key;
  };
  /** Runs `use` with a secret's data key, and forgets the key. */
  const withDataKey = <T>(
    { kekId, wrappedDataKey }: Sealed,
    belongsTo: string,
    use: (key: Buffer) => T,
  ): T => {
    const dataKey = decrypt(kek(kekId), wrappedDataKey, `data-key:${kekId}:${belongsTo}`);
    try {
      return use(dataKey);
    } finally {
      dataKey.fill(0);
    }
  };
  const wrap = (dataKey: Buffer, belongsTo: string) => ({
    kekId: currentId,
    wrappedDataKey: encrypt(kek(currentId), dataKey, `data-key:${currentId}:${belongsTo}`),
  });

  return {
    currentId,
    ids: [...byId.keys()],
    seal(secret, belongsTo) {
      const dataKey = randomBytes(KEY_BYTES);
      try {
        return { ...wrap(dataKey, belongsTo), ciphertext: encrypt(dataKey, secret, `secret:${belongsTo}`) };
      } finally {
        dataKey.fill(0);
      }
    },
    open: (sealed, belongsTo) =>
      withDataKey(sealed, belongsTo, (key) => decrypt(key, sealed.ciphertext, `secret:${belongsTo}`)),
    rewrap: (sealed, belongsTo) =>
      withDataKey(sealed, belongsTo, (key) => ({ ...wrap(key, belongsTo), ciphertext: sealed.ciphertext })),
  };
}

/** A name for a key that tells nothing about it. */
function idOf(key: Buffer): string {
  if (key.length !== KEY_BYTES) throw new Error(`a key-encryption key has ${KEY_BYTES} bytes`);
  return createHash('sha256').update('farebox key-encryption key').update(key).digest('hex').slice(0, 16);
}

function encrypt(key: Buffer, plain: Uint8Array, context: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Buffer, sealed: Buffer, context: string): Buffer {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) throw new Unreadable('what is stored is too short');
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch (error) {
    throw new Unreadable('what is stored was changed, or belongs elsewhere', { cause: error });
  }
}
