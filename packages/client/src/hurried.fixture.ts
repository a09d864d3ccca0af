/** Time for tests of the client: it passes only while a client waits. */
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { FareboxError } from './errors.ts';

export const NOON_MS = Date.UTC(2026, 10, 3, 12);

/** The clock of all clients of a test file: it moves only while one of them waits. */
export const clock = { ms: NOON_MS };

/** Runs work in which the client's pauses, and no others, end at once. @returns how long they were, in ms */
export async function hurried<T>(work: () => Promise<T>): Promise<{ result: T; pausesMs: number[] }> {
  const pausesMs: number[] = [];
  const waits = globalThis.setTimeout;
  const timer = mock.method(globalThis, 'setTimeout', ((run: () => void, ms = 0, ...rest: never[]) => {
    // The network has timers of its own.
    if (new Error().stack?.includes('/buying/pause.ts') !== true)
      return waits(run as never, ms, ...(rest as []));
    pausesMs.push(ms);
    clock.ms += ms;
    return waits(run, 0);
  }) as never);
  try {
    return { result: await work(), pausesMs };
  } finally {
    timer.mock.restore();
  }
}

export const errorOf = (work: Promise<unknown>): Promise<FareboxError> =>
  work.then(
    () => assert.fail('it was answered'),
    (error) => (error instanceof FareboxError ? error : assert.fail(error)),
  );
