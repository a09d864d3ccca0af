import { setTimeout as sleep } from 'node:timers/promises';
import { measureAwake } from '@farebox/process/awake-time';
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
   * @throws what the step throws, once its steps took a minute in which this process ran; anything else at once
   */
  take<T>(step: () => Promise<T>): Promise<T>;
}

/**
 * A server is often started together with its database, or because that went away: it waits for it within a bound. A minute
 * in which a machine slept, and cut every connection, is none of waiting.
 *
 * @param parts.waits told once, with the error that it waits over
 */
export function createStartPatience(parts: {
  waits(error: unknown): void;
  withinMs?: number;
  nowMs?(): number;
}): StartPatience {
  const { withinMs = STARTS_WITHIN_MS, nowMs = () => performance.now() } = parts;
  let takenMs = 0;
  let isTold = false;
  return {
    async take(step) {
      const awake = measureAwake(nowMs);
      try {
        for (;;) {
          try {
            return await step();
          } catch (error) {
            if (!isDatabaseAway(error) || takenMs + awake.passedMs() >= withinMs) throw error;
            if (!isTold) parts.waits(error);
            isTold = true;
            await sleep(PAUSE_MS);
          }
        }
      } finally {
        takenMs += awake.passedMs();
        awake.stop();
      }
    },
  };
}
