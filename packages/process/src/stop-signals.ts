/**
 * The signals that tell a process to stop. A supervisor that signals a whole group, and a parent that passes the signal on,
 * make one wish arrive several times: what follows within a second is the same wish.
 */
import type { EventEmitter } from 'node:events';

/** Time after the first signal within which another one repeats it. */
const SAME_WISH_MS = 1_000;
const NAMES = ['SIGINT', 'SIGTERM'] as const;

export type StopSignal = (typeof NAMES)[number] | 'disconnect';

export interface StopSignals {
  /** Resolves with what told the process to stop: a signal, or the end of the channel to its parent. */
  readonly told: Promise<StopSignal>;
  /** Resolves when it is told once more, later than a repetition comes. The signal after that ends the process as Node does by default. */
  readonly toldAgain: Promise<void>;
}

/**
 * Listens from here on, so that a signal does not end the process before what it holds has stopped.
 *
 * @param source the process
 * @param nowMs a clock that never goes back, in milliseconds
 */
export function listenForStop(source: EventEmitter, nowMs: () => number): StopSignals {
  const told = Promise.withResolvers<StopSignal>();
  const again = Promise.withResolvers<void>();
  let toldAtMs: number | null = null;
  const hear = (name: StopSignal) => {
    if (toldAtMs === null) {
      toldAtMs = nowMs();
      told.resolve(name);
    } else if (nowMs() - toldAtMs >= SAME_WISH_MS) {
      again.resolve();
      for (const [each, listener] of listeners) source.off(each, listener);
    }
  };
  const listeners = [...NAMES, 'disconnect' as const].map((name) => [name, () => hear(name)] as const);
  for (const [name, listener] of listeners) source.on(name, listener);
  return { told: told.promise, toldAgain: again.promise };
}
