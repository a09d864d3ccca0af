/** Reads and moves the times that the protocols and the vault stored. Interest accrues for the time since a stored time. */
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
 * Adds `seconds` to every stored time. A time of zero means that something never happened, and stays zero.
 *
 * @param seconds a negative number moves the times back
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
