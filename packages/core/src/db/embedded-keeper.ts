/**
 * Keeps the embedded PostgreSQL running: when its first process ends that nobody has told to, it is started again where
 * it was, so that the connections that everybody holds open by themselves. It may be a server that an earlier process
 * left behind, so it is watched by its id and not as a child.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type EmbeddedPostgres,
  FolderGone,
  restartEmbeddedPostgres,
  SaidNothing,
  stopEmbeddedPostgres,
} from '@farebox/process/embedded-postgres';
import { isAlive } from '@farebox/process/is-alive';

const LOOK_EVERY_MS = 200;
/** From the end of the server to its new start, or to giving up. */
const BACK_WITHIN_MS = 7_000;
const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 500;
/** A server that keeps ending is not started any more. */
const MAX_RESTARTS = 5;
const RESTARTS_COUNTED_MS = 60_000;

/** An event for the log. */
export type KeeperReport = { what: 'gone'; pid: number } | { what: 'back'; pid: number; afterMs: number };

export interface EmbeddedKeeper {
  /** Settles when the server has ended and cannot be started again: with why, in a line. */
  lost: Promise<string>;
  /** Looks after it no more, and ends the server as whoever handed it over would. */
  stop(): Promise<void>;
}

/** Looks after a server that runs. @param directory as in `startEmbeddedPostgres` */
export function keepEmbeddedPostgres(
  directory: string,
  embedded: EmbeddedPostgres,
  report: (report: KeeperReport) => void,
): EmbeddedKeeper {
  const stopping = new AbortController();
  const lost = Promise.withResolvers<string>();
  let { pid, stop } = embedded;
  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal, ref: false }).catch(() => {});

  async function bringBack(): Promise<void> {
    const endedAtMs = performance.now();
    const leftMs = () => endedAtMs + BACK_WITHIN_MS - performance.now();
    let why: unknown;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
      try {
        pid = await restartEmbeddedPostgres(directory, embedded.port, Math.max(leftMs(), 0));
        stop = () => stopEmbeddedPostgres(directory);
        return report({ what: 'back', pid, afterMs: Math.round(performance.now() - endedAtMs) });
      } catch (error) {
        // The last attempt has the least time, and may be too short for a reason that an earlier one gave.
        if (why === undefined || !(error instanceof SaidNothing)) why = error;
        if (stopping.signal.aborted || error instanceof FolderGone || leftMs() < pauseMs) throw why;
        await pause(pauseMs);
      }
    }
  }

  async function keep(): Promise<void> {
    let restartedAtMs: number[] = [];
    while (!stopping.signal.aborted) {
      if (isAlive(pid)) {
        await pause(LOOK_EVERY_MS);
        continue;
      }
      report({ what: 'gone', pid });
      const nowMs = performance.now();
      restartedAtMs = restartedAtMs.filter((atMs) => atMs > nowMs - RESTARTS_COUNTED_MS);
      if (restartedAtMs.length >= MAX_RESTARTS)
        throw new Error(`it ended ${MAX_RESTARTS + 1} times in a minute`);
      restartedAtMs.push(nowMs);
      await bringBack();
    }
  }

  const keeping = keep().catch((error: unknown) => {
    if (!stopping.signal.aborted) lost.resolve(inOneLine(error));
  });
  return {
    lost: lost.promise,
    async stop() {
      stopping.abort();
      await keeping;
      await stop();
    },
  };
}

function inOneLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, ' ');
}
