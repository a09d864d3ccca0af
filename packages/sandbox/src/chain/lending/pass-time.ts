/** Lets time pass for interest only. The chain's clock keeps the real time, so that payments signed by it stay valid. */
import type { Node } from '../node.ts';
import { borrowAndRepay } from './borrowers.ts';
import { readManifest } from './snapshot.ts';
import { moveStoredTimes } from './stored-times.ts';

const DAY_SECONDS = 86_400;
const MAX_STEPS = 36;

/**
 * Moves back, in steps, the times that the protocols and the vault stored. After each step the borrower borrows or repays
 * as it would have done by then. Each protocol computes the interest with its own code.
 *
 * @param seconds how much time passes
 */
export async function passTime(node: Node, seconds: number): Promise<void> {
  const { storedTimes } = readManifest();
  const step = Math.max(DAY_SECONDS, Math.ceil(seconds / MAX_STEPS));
  const beganAtMs = Date.now();
  for (let passed = 0; passed < seconds; ) {
    const next = Math.min(step, seconds - passed);
    await betweenBlocks(node, () => moveStoredTimes(node, storedTimes, -next));
    passed += next;
    await borrowAndRepay(node, beganAtMs + 1_000 * passed);
  }
}

/**
 * Does work during which no transaction may be mined: the work reads and rewrites whole storage slots, and a slot holds
 * more than a time.
 */
async function betweenBlocks(node: Node, work: () => Promise<void>): Promise<void> {
  await node.setAutomine(false);
  try {
    await work();
  } finally {
    await node.setAutomine(true);
    // Transactions that were sent meanwhile wait for a block, and the state is saved only after a new block.
    await node.mine({ blocks: 1 });
  }
}
