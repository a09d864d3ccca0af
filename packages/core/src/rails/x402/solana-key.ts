/** Keys of our own on Solana: as its tools and wallets keep them, 64 bytes, the seed and then the public key; or kept elsewhere. */
import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { getBase58Decoder, getBase58Encoder } from '@solana/kit';
import { isElsewhere, type KeyElsewhere, placeOfKey } from '../../relayer/signing-place.ts';

export interface SolanaKey {
  /** base58 */
  address: string;
  /**
   * The signature of these bytes, 64 bytes: always the same for the same bytes (RFC 8032).
   *
   * @throws when a key that is kept elsewhere does not sign
   */
  sign(message: Uint8Array): Promise<Uint8Array>;
}

/** What stands before the seed in PKCS #8, and before a public key in SPKI (RFC 8410). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');
const SEED_BYTES = 32;
const MAX_CHARACTERS = 400;
const KEPT_ELSEWHERE = /^(aws-kms:[\w:/-]{1,200}|signer:\/[\w./-]{1,100})@[1-9A-HJ-NP-Za-km-z]{32,44}$/;

/**
 * Reads a key.
 *
 * @param text a private key in base58 or as a JSON list of 64 numbers; `aws-kms:KEY@ADDRESS` or `signer:SOCKET@ADDRESS`
 * @throws Error without anything of the key in it
 */
export function readSolanaKey(text: string): SolanaKey {
  return isElsewhere(text) ? keptElsewhere(text) : keptHere(text);
}

/** A private key. @throws Error without anything of the key in it */
export function keptHere(text: string): SolanaKey {
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
    sign: async (message) => new Uint8Array(sign(null, message, key)),
  };
}

/** A key that AWS KMS or a signer process holds. What it signs is believed only once it verifies by the address. */
function keptElsewhere(text: KeyElsewhere): SolanaKey {
  if (!KEPT_ELSEWHERE.test(text)) throw new Error('no place and address of a key');
  const { place, address } = placeOfKey(text);
  const bytes = Buffer.from(getBase58Encoder().encode(address));
  if (bytes.length !== SEED_BYTES) throw new Error('no address of 32 bytes');
  const publicKey = createPublicKey({ key: Buffer.concat([SPKI, bytes]), format: 'der', type: 'spki' });
  return {
    address,
    async sign(message) {
      const signature = await place.ed25519(message);
      if (!verify(null, message, publicKey, signature))
        throw new Error(`the signer of ${address} signed with another key, or something else`);
      return signature;
    },
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
