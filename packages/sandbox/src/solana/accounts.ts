/**
 * The accounts of the sandbox's Solana. The faucet, which no payment ever names, has the same key in every sandbox. The
 * others have keys of this installation alone, as on the EVM chains.
 */
import { createHash, createHmac, createPrivateKey, createPublicKey } from 'node:crypto';
import { createKeyPairSignerFromPrivateKeyBytes, getBase58Decoder, type KeyPairSigner } from '@solana/kit';

/**
 * - facilitator: pays the fees of what a facilitator settles
 * - settler: pays the fees of what the server settles by itself
 * - refunds: holds the USDC that goes back to payers
 * - treasury: gets the fees of the yield portal; its owner sends back the fees that are owed to payers
 * - borrower: owes for all borrowers of the lending program's double, and owns its market
 * - recipient: is paid (`payTo`); its key signs nothing
 * - faucet: hands out SOL and mints USDC
 */
export const SOLANA_ROLES = [
  'facilitator',
  'settler',
  'refunds',
  'treasury',
  'borrower',
  'recipient',
  'faucet',
] as const;
export type SolanaRole = (typeof SOLANA_ROLES)[number];

/** The role's ed25519 seed, 32 bytes. */
function seedOf(seed: string, role: SolanaRole): Uint8Array {
  const name = `farebox sandbox solana ${role}`;
  return role === 'faucet'
    ? createHash('sha256').update(name).digest()
    : createHmac('sha256', seed).update(name).digest();
}

/** Signs for a role. @param seed the installation's secret, see `accountsOf` of the EVM chains */
export function signerOf(seed: string, role: SolanaRole): Promise<KeyPairSigner> {
  return createKeyPairSignerFromPrivateKeyBytes(seedOf(seed, role));
}

/** The header that PKCS #8 puts before the seed of an ed25519 key. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The role's key as Solana's own tools keep it: 64 bytes, the seed and then the public key. */
export function secretKeyOf(seed: string, role: SolanaRole): Uint8Array {
  const own = seedOf(seed, role);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, own]), format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32);
  return new Uint8Array(Buffer.concat([own, publicKey]));
}

/** The role's key in base58: the form in wallets and in the server's configuration. */
export function privateKeyOf(seed: string, role: SolanaRole): string {
  return getBase58Decoder().decode(secretKeyOf(seed, role));
}
