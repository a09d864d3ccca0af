import { setTimeout as sleep } from 'node:timers/promises';

const DEADLINE_MS = 20_000;
const POLL_MS = 5;

/**
 * Waits for a condition.
 *
 * @throws once it has not become true within 20 s, naming what was waited for
 */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + DEADLINE_MS;
  while (!(await holds())) {
    if (Date.now() > deadlineMs) throw new Error(`waited in vain for: ${what}`);
    await sleep(POLL_MS);
  }
}
