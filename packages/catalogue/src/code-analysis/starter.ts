import { Worker } from 'node:worker_threads';
import type { FromProgram, Job } from './job.ts';

/** The messages to the thread: to start a process, or to end one. */
export type ToStarter =
  | { id: number; job: Job; limits: { cpuMs: number; memoryBytes: number } }
  | { stop: number };

let thread: Worker | null = null;
let lastId = 0;
const pending = new Map<number, (result: FromProgram) => void>();

/**
 * Has one process do one job, and ends it when nobody waits any more. The process is started by a thread of its own, which
 * stays for the next one and does not keep this process alive.
 *
 * @throws the signal's reason when it is aborted before there is a result
 */
export function runProgram(
  job: Job,
  limits: { cpuMs: number; memoryBytes: number },
  signal: AbortSignal,
): Promise<FromProgram> {
  return new Promise((resolve, reject) => {
    const id = ++lastId;
    const starter = starterThread();
    const stop = () => starter.postMessage({ stop: id } satisfies ToStarter);
    pending.set(id, (result) => {
      signal.removeEventListener('abort', stop);
      if (signal.aborted && result.outcome === 'exhausted') reject(signal.reason);
      else resolve(result);
    });
    signal.addEventListener('abort', stop);
    starter.ref();
    starter.postMessage({ id, job, limits: { cpuMs: limits.cpuMs, memoryBytes: limits.memoryBytes } });
  });
}

function starterThread(): Worker {
  if (thread !== null) return thread;
  const started = new Worker(new URL('./starter-program.ts', import.meta.url));
  started.on('message', ({ id, result }: { id: number; result: FromProgram }) => settle(id, result));
  // Its processes end with it, for their channel does.
  const ended = () => {
    if (thread !== started) return;
    thread = null;
    for (const id of pending.keys()) settle(id, { outcome: 'exhausted', limit: 'crash' });
  };
  started.on('error', ended);
  started.on('exit', ended);
  thread = started;
  return started;
}

function settle(id: number, result: FromProgram): void {
  const told = pending.get(id);
  if (told === undefined) return;
  pending.delete(id);
  if (pending.size === 0) thread?.unref();
  told(result);
}
