/** The accounts that the chain begins with: USDC and the roles'. A chain of an earlier version gets those that it lacks. */

import { type Address, lamports, none, type ReadonlyUint8Array, some } from '@solana/kit';
import { findAssociatedTokenPda, getMintEncoder, getTokenEncoder } from '@solana-program/token';
import { SOLANA_ROLES, type SolanaRole, signerOf } from './accounts.ts';
import type { Bank } from './bank.ts';
import { SYSTEM_PROGRAM, TOKEN_PROGRAM, USDC_DECIMALS, USDC_MINT } from './programs.ts';
import { readToken } from './token-state.ts';

const LAMPORTS_PER_SOL = 1_000_000_000n;
/** The SOL that each role begins with. The recipient never signs, so it gets little, like a wallet that only receives. */
const SOL: Readonly<Record<SolanaRole, bigint>> = {
  facilitator: 1_000n,
  settler: 1_000n,
  refunds: 1_000n,
  treasury: 1n,
  borrower: 1_000n,
  recipient: 1n,
  faucet: 1_000_000n,
};
const REFUNDS_UNITS = 10_000_000_000n;
const INITIALIZED = 1;

/** Writes the accounts that are not there yet. */
export async function bringIntoBeing(bank: Bank, seed: string): Promise<void> {
  const owners = await Promise.all(
    SOLANA_ROLES.map(async (role) => ({ role, address: (await signerOf(seed, role)).address })),
  );
  const { address: faucet } = await signerOf(seed, 'faucet');
  ensure(
    bank,
    USDC_MINT,
    getMintEncoder().encode({
      mintAuthority: some(faucet),
      supply: 0n,
      decimals: USDC_DECIMALS,
      isInitialized: true,
      freezeAuthority: some(faucet),
    }),
  );
  for (const { role, address } of owners) {
    if (bank.account(address) === null)
      bank.setAccount({
        address,
        programAddress: SYSTEM_PROGRAM,
        lamports: lamports(SOL[role] * LAMPORTS_PER_SOL),
        data: new Uint8Array(),
        executable: false,
        space: 0n,
      });
    ensure(
      bank,
      await usdcAccountOf(address),
      getTokenEncoder().encode({
        mint: USDC_MINT,
        owner: address,
        amount: 0n,
        delegate: none(),
        state: INITIALIZED,
        isNative: none(),
        delegatedAmount: 0n,
        closeAuthority: none(),
      }),
    );
  }
}

/** Gives the role that pays refunds its first USDC, by an ordinary transaction, if it has none. */
export async function stockRefunds(
  bank: Bank,
  seed: string,
  give: (to: Address, amounts: { lamports: bigint; usdcUnits: bigint }) => Promise<unknown>,
): Promise<void> {
  const { address } = await signerOf(seed, 'refunds');
  const account = bank.account(await usdcAccountOf(address));
  if (account !== null && readToken(account)?.amount === 0n)
    await give(address, { lamports: 0n, usdcUnits: REFUNDS_UNITS });
}

/** The account that holds an owner's USDC. */
export async function usdcAccountOf(owner: Address): Promise<Address> {
  const [found] = await findAssociatedTokenPda({ owner, mint: USDC_MINT, tokenProgram: TOKEN_PROGRAM });
  return found;
}

function ensure(bank: Bank, address: Address, data: ReadonlyUint8Array): void {
  if (bank.account(address) !== null) return;
  bank.setAccount({
    address,
    programAddress: TOKEN_PROGRAM,
    lamports: lamports(bank.rentExemptLamports(data.length)),
    data: new Uint8Array(data),
    executable: false,
    space: BigInt(data.length),
  });
}
