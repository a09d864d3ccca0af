/**
 * The borrower of the lending program's double, who makes lending earn varying interest. One borrower owes everything;
 * how much follows from the time alone, in waves of some days.
 */
import { AccountRole, type Address, type Instruction } from '@solana/kit';
import { signerOf } from '../accounts.ts';
import type { Bank } from '../bank.ts';
import type { Faucet } from '../faucet.ts';
import { usdcAccountOf } from '../genesis.ts';
import { TOKEN_PROGRAM, USDC_MINT } from '../programs.ts';
import { runSigned } from '../run-signed.ts';
import { readToken } from '../token-state.ts';
import {
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  MARKET_ACCOUNT,
  MARKET_AUTHORITY,
  RESERVE_ACCOUNT,
} from './addresses.ts';
import { INSTRUCTIONS, instructionMark, RESERVE } from './layout.ts';

const DAY_MS = 86_400_000;
const FRACTION_BITS = 60n;
const PARTS = 1_000_000n;
/** The share of the lent money that should be borrowed at a time. */
const useAt = (atMs: number) => 0.78 + 0.06 * Math.sin((2 * Math.PI * atMs) / (7.1 * DAY_MS));

/** The sandbox's own instructions: borrowing without collateral, and paying back, for the market's owner alone. */
export function sandboxInstruction(
  which: 'borrow' | 'repay',
  { owner, usdc }: { owner: Address; usdc: Address },
  amount: bigint,
): Instruction {
  const data = Buffer.alloc(16);
  data.set(instructionMark(INSTRUCTIONS[which]));
  data.writeBigUInt64LE(amount, 8);
  const readonly = (address: Address) => ({ address, role: AccountRole.READONLY });
  const writable = (address: Address) => ({ address, role: AccountRole.WRITABLE });
  return {
    programAddress: LENDING_PROGRAM,
    accounts: [
      { address: owner, role: AccountRole.READONLY_SIGNER },
      writable(RESERVE_ACCOUNT),
      readonly(MARKET_ACCOUNT),
      readonly(MARKET_AUTHORITY),
      readonly(USDC_MINT),
      writable(LIQUIDITY_VAULT),
      writable(usdc),
      readonly(TOKEN_PROGRAM),
    ],
    data: new Uint8Array(data),
  };
}

/**
 * Adjusts the debt to the target for this time, which makes the reserve compute its interest up to now. A reserve that
 * refuses, for example in a drill, is left as it is.
 */
export async function borrowAndRepay(
  { bank, faucet }: { bank: Bank; faucet: Faucet },
  seed: string,
  atMs: number,
): Promise<void> {
  const reserve = bank.account(RESERVE_ACCOUNT);
  if (reserve === null) return;
  const signer = await signerOf(seed, 'borrower');
  const usdc = await usdcAccountOf(signer.address);
  const data = Buffer.from(reserve.data);
  const available = data.readBigUInt64LE(RESERVE.available);
  const borrowed =
    (data.readBigUInt64LE(RESERVE.borrowed) + (data.readBigUInt64LE(RESERVE.borrowed + 8) << 64n)) >>
    FRACTION_BITS;
  const wanted = ((available + borrowed) * BigInt(Math.round(useAt(atMs) * Number(PARTS)))) / PARTS;
  const which = wanted > borrowed ? 'borrow' : 'repay';
  const amount = which === 'borrow' ? wanted - borrowed : borrowed - wanted;
  if (amount === 0n) return;
  if (which === 'repay') {
    const account = bank.account(usdc);
    const held = (account && readToken(account)?.amount) ?? 0n;
    if (held < amount) await faucet.give(signer.address, { lamports: 0n, usdcUnits: amount - held });
  }
  const instruction = sandboxInstruction(which, { owner: signer.address, usdc }, amount);
  await runSigned(bank, signer, 'borrower', [instruction]).catch(() => undefined);
}
