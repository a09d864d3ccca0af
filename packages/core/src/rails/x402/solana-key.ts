/** Keys of our own on Solana, as its tools and wallets keep them: 64 bytes, the seed and then the public key. */
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { getBase58Decoder, getBase58Encoder } from '@solana/kit';

export interface SolanaKey {
  /** base58 */
  address: string;
  /** The signature of these bytes, 64 bytes: always the same for the same bytes (RFC 8032). */
  sign(message: Uint8Array): Uint8Array;
}

/** What stands before the seed in PKCS #8 (RFC 8410). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED_BYTES = 32;
const MAX_CHARACTERS = 400;

/**
 * Reads a private key.
 *
 * @param text base58, or a JSON list of 64 numbers
 * @throws Error without anything of the key in it
 */
export function readSolanaKey(text: string): SolanaKey {
  const bytes = bytesOf(text);
  if (bytes === null || bytes.length !== 2 * SEED_BYTES) throw new Error('not 64 bytes');
  const key = createPrivateKey({
    key: Buffer.concat([PKCS8, bytes.subarray(0, SEED_BYTES)]),
    format: 'der',
    type: 'pkcs8',
  });
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-SEED_BYTES);
  if (!publicKey.equals(bytes.subarray(SEED_BYTES))) throw new Error('the halves do not fit together');
  return {
    address: getBase58Decoder().decode(publicKey),
    sign: (message) => new Uint8Array(sign(null, message, key)),
  };
}

function bytesOf(text: string): Buffer | null {
  if (text.length > MAX_CHARACTERS) return null;
  try {
    if (!text.startsWith('[')) return Buffer.from(getBase58Encoder().encode(text));
    const numbers: unknown = JSON.parse(text);
    const isBytes =
      Array.isArray(numbers) && numbers.every((each) => Number.isInteger(each) && each >= 0 && each < 256);
    return isBytes ? Buffer.from(numbers) : null;
  } catch {
    return null;
  }
}
