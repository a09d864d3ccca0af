/** For tests and benchmarks: one installation's accounts, new in each process. */
import { randomBytes } from 'node:crypto';
import { accountsOf, BUILDERS } from './chain/accounts.ts';
import * as solana from './solana/accounts.ts';

export const SEED = randomBytes(32).toString('hex');
export const SANDBOX_ACCOUNTS = { ...BUILDERS, ...accountsOf(SEED) };
export const signerOf = (role: solana.SolanaRole) => solana.signerOf(SEED, role);
export const secretKeyOf = (role: solana.SolanaRole) => solana.secretKeyOf(SEED, role);
export const privateKeyOf = (role: solana.SolanaRole) => solana.privateKeyOf(SEED, role);
