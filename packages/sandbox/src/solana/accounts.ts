/** Who is who on the sandbox's Solana: the same keys in every sandbox, so they are worth nothing outside of it. */
import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';
import { createKeyPairSignerFromPrivateKeyBytes, getBase58Decoder, type KeyPairSigner } from '@solana/kit';

/**
 * - facilitator: pays the fees of what a facilitator settles
 * - settler: pays the fees of what the server settles by itself
 * - refunds: holds the USDC that goes back to payers
 * - recipient: is paid (`payTo`); its key signs nothing
 * - faucet: hands out SOL and mints USDC
 */
export const SOLANA_ROLES = ['facilitator', 'settler', 'refunds', 'recipient', 'faucet'] as const;
export type SolanaRole = (typeof SOLANA_ROLES)[number];

/** The role's ed25519 seed, 32 bytes: the SHA-256 of `farebox sandbox solana <role>`. */
function seedOf(role: SolanaRole): Uint8Array {
  return createHash('sha256').update(`farebox sandbox solana ${role}`).digest();
}

/** Signs for a role. */
export function signerOf(role: SolanaRole): Promise<KeyPairSigner> {
  return createKeyPairSignerFromPrivateKeyBytes(seedOf(role));
}

/** What stands before the seed of an ed25519 key in PKCS #8. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The role's key as Solana's own tools keep it: 64 bytes, the seed and then the public key. */
export function secretKeyOf(role: SolanaRole): Uint8Array {
  const seed = seedOf(role);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32);
  return new Uint8Array(Buffer.concat([seed, publicKey]));
}

/** The same in base58, as wallets and the server's configuration have it. */
export function privateKeyOf(role: SolanaRole): string {
  return getBase58Decoder().decode(secretKeyOf(role));
}
