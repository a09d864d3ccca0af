/** Lets time pass for interest alone: the chain's clock stays the world's, so that payments signed by it are good. */
import type { Node } from '../node.ts';
import { borrowAndRepay } from './borrowers.ts';
import { readManifest } from './snapshot.ts';
import { moveStoredTimes } from './stored-times.ts';

const DAY_SECONDS = 86_400;
const MAX_STEPS = 36;

/**
 * Moves back what the protocols and the vault stored as their last update, in steps, after each of which borrowers do
 * what they would have done by then. What accrues is real: each protocol reckons it by its own code.
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

/** Does something that no transaction may come between: a slot that is read and written back holds more than its time. */
async function betweenBlocks(node: Node, work: () => Promise<void>): Promise<void> {
  await node.setAutomine(false);
  try {
    await work();
  } finally {
    await node.setAutomine(true);
    // What was sent meanwhile waits for it, and a chain is saved when it has a new block.
    await node.mine({ blocks: 1 });
  }
}
