/** The times that protocols and vault stored, and how they are moved: what accrues is the time since then. */
import { type Hex, hexToBigInt, toHex } from 'viem';
import type { Node } from '../node.ts';
import type { StoredTime } from './snapshot.ts';

/** Five bytes: enough for 34,000 years. */
const MASK = (1n << 40n) - 1n;

/** @returns seconds since 1970; zero when nothing was stored yet */
export function timeIn(slot: bigint, { offsetBytes }: StoredTime): number {
  return Number((slot >> BigInt(8 * offsetBytes)) & MASK);
}

/**
 * Adds to every time that is stored. One that is zero means that something never happened, and stays.
 *
 * @param seconds negative: to an earlier time
 */
export async function moveStoredTimes(
  node: Node,
  times: readonly StoredTime[],
  seconds: number,
): Promise<void> {
  for (const time of times) {
    const stored = await node.getStorageAt({ address: time.contract, slot: time.slot });
    const slot = hexToBigInt(stored ?? '0x0');
    const before = timeIn(slot, time);
    if (before === 0) continue;
    const shift = BigInt(8 * time.offsetBytes);
    const rest = slot & ~(MASK << shift);
    const value: Hex = toHex(rest | (BigInt(Math.max(1, before + seconds)) << shift), { size: 32 });
    await node.setStorageAt({ address: time.contract, index: time.slot, value });
  }
}
