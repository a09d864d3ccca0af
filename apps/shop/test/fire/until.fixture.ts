import { setTimeout as sleep } from 'node:timers/promises';

const DEADLINE_MS = 120_000;
const POLL_MS = 5;

/**
 * Waits for a condition.
 *
 * @param withinMs two minutes unless given; longer than any machine takes, so that a slow one fails nothing
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
