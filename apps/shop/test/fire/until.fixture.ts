import { setTimeout as sleep } from 'node:timers/promises';

const DEADLINE_MS = 180_000;
const POLL_MS = 5;

/**
 * Waits for a condition.
 *
 * @param withinMs three minutes unless given, which also a machine that is many times slower than a developer's does not take
 * @throws once it has not become true by then, naming what was waited for
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = DEADLINE_MS,
): Promise<void> {
  const deadlineMs = Date.now() + withinMs;
  while (!(await holds())) {
    if (Date.now() > deadlineMs) throw new Error(`waited in vain for: ${what}`);
    await sleep(POLL_MS);
  }
}
