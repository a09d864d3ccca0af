/** Who is who on the sandbox's Solana: the same keys in every sandbox, so they are worth nothing outside of it. */
import { createHash } from 'node:crypto';
import { createKeyPairSignerFromPrivateKeyBytes, type KeyPairSigner } from '@solana/kit';

/**
 * - facilitator: pays the fees of what a facilitator settles
 * - recipient: is paid (`payTo`); its key signs nothing
 * - faucet: hands out SOL and mints USDC
 */
export const SOLANA_ROLES = ['facilitator', 'recipient', 'faucet'] as const;
export type SolanaRole = (typeof SOLANA_ROLES)[number];

/** The role's ed25519 seed, 32 bytes: the SHA-256 of `farebox sandbox solana <role>`. */
function seedOf(role: SolanaRole): Uint8Array {
  return createHash('sha256').update(`farebox sandbox solana ${role}`).digest();
}

/** Signs for a role. */
export function signerOf(role: SolanaRole): Promise<KeyPairSigner> {
  return createKeyPairSignerFromPrivateKeyBytes(seedOf(role));
}

/** The role's key as Solana's own tools keep it: 64 bytes, the seed and then the public key. */
export async function secretKeyOf(role: SolanaRole): Promise<Uint8Array> {
  const { keyPair } = await createKeyPairSignerFromPrivateKeyBytes(seedOf(role), true);
  const publicKey = await crypto.subtle.exportKey('raw', keyPair.publicKey);
  return new Uint8Array(Buffer.concat([seedOf(role), new Uint8Array(publicKey)]));
}
