/**
 * Which address made a signature. It is computed natively where libsecp256k1's binding is available, else in
 * JavaScript. `recover.test.ts` compares both with each other and with viem.
 */
import { createRequire } from 'node:module';
import { secp256k1 } from '@noble/curves/secp256k1';
import { keccak_256 } from '@noble/hashes/sha3';
import type { Hex } from './eip3009.ts';

/** @returns the uncompressed public key, or null when the signature fits none */
export type RecoverPublicKey = (
  digest: Uint8Array,
  compact: Uint8Array,
  recovery: 0 | 1,
) => Uint8Array | null;

/** Half of the group order: of the two forms of a signature only the one with the lower `s` is valid (EIP-2). */
const HALF_ORDER = secp256k1.CURVE.n / 2n;

interface NativeBinding {
  /** Throws when the signature fits no key. */
  ecdsaRecover(compact: Uint8Array, recovery: number, digest: Uint8Array, compressed: false): Uint8Array;
}

function loadNative(): RecoverPublicKey | null {
  let binding: NativeBinding;
  try {
    binding = createRequire(import.meta.url)('secp256k1/bindings');
  } catch {
    return null;
  }
  return (digest, compact, recovery) => {
    try {
      return binding.ecdsaRecover(compact, recovery, digest, false);
    } catch {
      return null;
    }
  };
}

export const recoverInJavaScript: RecoverPublicKey = (digest, compact, recovery) => {
  try {
    return secp256k1.Signature.fromCompact(compact)
      .addRecoveryBit(recovery)
      .recoverPublicKey(digest)
      .toRawBytes(false);
  } catch {
    return null;
  }
};

/** Null when the platform has no binary. */
export const recoverNatively: RecoverPublicKey | null = loadNative();
const recoverPublicKey = recoverNatively ?? recoverInJavaScript;

/**
 * Recovers the signer of a digest.
 *
 * @param signature 65 bytes; `v` may be 0, 1, 27 or 28
 * @returns the address in lower case; null for anything else, and for the malleable twin of a signature
 */
export function recoverAddress(
  digest: Uint8Array,
  signature: Hex,
  recover: RecoverPublicKey = recoverPublicKey,
): Hex | null {
  const bytes = Buffer.from(signature.slice(2), 'hex');
  if (bytes.length !== 65) return null;
  const v = bytes.readUInt8(64);
  const recovery = v >= 27 ? v - 27 : v;
  if (recovery !== 0 && recovery !== 1) return null;
  if (BigInt(`0x${bytes.toString('hex', 32, 64)}`) > HALF_ORDER) return null;
  const publicKey = recover(digest, bytes.subarray(0, 64), recovery);
  return publicKey === null
    ? null
    : `0x${Buffer.from(keccak_256(publicKey.subarray(1)).subarray(12)).toString('hex')}`;
}
