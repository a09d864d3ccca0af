/** Adds interest as if time had passed. The chain's slots and its clock do not change. */
import type { Bank } from '../bank.ts';
import type { Faucet } from '../faucet.ts';
import { SLOT_MS } from '../slots.ts';
import { RESERVE_ACCOUNT } from './addresses.ts';
import { borrowAndRepay } from './borrower.ts';
import { RESERVE } from './layout.ts';

const DAY_MS = 86_400_000;
const MAX_STEPS = 36;

/**
 * Moves back the slot at which the reserve's interest was last computed, in steps. After each step the borrower does
 * what it would have done by then. The program itself computes the interest.
 *
 * @param passedMs how much time passes
 * @returns how many slots that is
 */
export async function passTime(
  node: { bank: Bank; faucet: Faucet },
  seed: string,
  passedMs: number,
): Promise<number> {
  const stepMs = Math.max(DAY_MS, Math.ceil(passedMs / MAX_STEPS));
  const beganAtMs = Date.now();
  let slots = 0;
  for (let atMs = 0; atMs < passedMs; ) {
    atMs = Math.min(passedMs, atMs + stepMs);
    const step = Math.floor(atMs / SLOT_MS) - slots;
    moveBack(node.bank, step);
    slots += step;
    await borrowAndRepay(node, seed, beganAtMs + atMs);
  }
  return slots;
}

function moveBack(bank: Bank, slots: number): void {
  const reserve = bank.account(RESERVE_ACCOUNT);
  if (reserve === null) throw new Error('the chain has no lending program');
  const data = Buffer.from(reserve.data);
  const last = data.readBigUInt64LE(RESERVE.slot);
  const moved = last > BigInt(slots) ? last - BigInt(slots) : 0n;
  data.writeBigUInt64LE(moved, RESERVE.slot);
  bank.setAccount({ ...reserve, data: new Uint8Array(data) });
}
