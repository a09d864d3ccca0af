import { setTimeout as sleep } from 'node:timers/promises';

export interface Job {
  name: string;
  intervalMs: number;
  /** Set for what is done even while nothing may be sold; other jobs wait. */
  whileShut?: true;
  /** One round. `stopping` is aborted when the process is to end: what takes long looks at it between two steps. */
  run(stopping?: AbortSignal): Promise<void>;
}

export interface Schedule {
  /** Waits for jobs that are running, and starts no more. */
  stop(): Promise<void>;
}

/**
 * Does batch after batch until one is not full, so that what is due is done however much it is. A batch counts what it
 * has done: what somebody else holds is left for the next round.
 *
 * @returns how much it was
 */
export async function untilNoneIsDue(
  batchSize: number,
  batch: () => Promise<number>,
  stopping?: AbortSignal,
): Promise<number> {
  let all = 0;
  while (stopping?.aborted !== true) {
    const done = await batch();
    all += done;
    if (done < batchSize) break;
  }
  return all;
}

/**
 * Runs each job again and again, never twice at once in this process. Every job is safe to run on several replicas
 * at the same time, so nothing elects a leader; the jitter keeps them from moving in step.
 */
export function startJobs(jobs: readonly Job[], onError: (job: string, error: unknown) => void): Schedule {
  const stopping = new AbortController();
  const loops = jobs.map(async ({ name, intervalMs, run }) => {
    while (!stopping.signal.aborted) {
      await run(stopping.signal).catch((error: unknown) => onError(name, error));
      const pauseMs = intervalMs * (0.8 + Math.random() * 0.4);
      await sleep(pauseMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    }
  });
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}
