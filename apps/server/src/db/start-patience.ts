import { setTimeout as sleep } from 'node:timers/promises';
import { isDatabaseAway } from '../words/database-away.ts';

/** Longer than a database takes to change places, and shorter than an operator waits for a start before looking. */
const STARTS_WITHIN_MS = 60_000;
const PAUSE_MS = 500;

/** The patience of one start: one bound and one line in the log for all of its steps. */
export interface StartPatience {
  /**
   * Takes a step again for as long as the database cannot be asked, or somebody holds what the step needs.
   *
   * @param step may have been done when it failed, and is done again then
   * @throws what the step throws, once the start has waited for a minute; anything else at once
   */
  take<T>(step: () => Promise<T>): Promise<T>;
}

/**
 * A server is often started together with its database, or because that went away: it waits for it within a bound.
 *
 * @param parts.waits told once, with the error that it waits over
 */
export function createStartPatience(parts: {
  waits(error: unknown): void;
  withinMs?: number;
}): StartPatience {
  const endsAtMs = performance.now() + (parts.withinMs ?? STARTS_WITHIN_MS);
  let isTold = false;
  return {
    async take(step) {
      for (;;) {
        try {
          return await step();
        } catch (error) {
          if (!isDatabaseAway(error) || performance.now() >= endsAtMs) throw error;
          if (!isTold) parts.waits(error);
          isTold = true;
          await sleep(PAUSE_MS);
        }
      }
    },
  };
}
