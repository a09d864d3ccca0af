/** Programs of Solana that payments are made of, and where they keep an owner's tokens. */
import { address, getAddressEncoder, getProgramDerivedAddress } from '@solana/kit';

export const TOKEN_PROGRAM = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA');
export const TOKEN_2022_PROGRAM = address('TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb');
export const ATA_PROGRAM = address('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL');
export const SYSTEM_PROGRAM = address('11111111111111111111111111111111');
export const MEMO_PROGRAM = address('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr');
/** Assertions that wallets add. */
export const LIGHTHOUSE_PROGRAM = address('L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95');
export const COMPUTE_BUDGET_PROGRAM = address('ComputeBudget111111111111111111111111111111');
/** Instructions of the compute budget, by their first byte. */
export const SET_UNIT_LIMIT = 2;
export const SET_UNIT_PRICE = 3;

/** The token account of an owner. */
export async function tokenAccountOf(owner: string, mint: string): Promise<string> {
  const encode = getAddressEncoder().encode;
  const [account] = await getProgramDerivedAddress({
    programAddress: ATA_PROGRAM,
    seeds: [encode(address(owner)), encode(TOKEN_PROGRAM), encode(address(mint))],
  });
  return account;
}
