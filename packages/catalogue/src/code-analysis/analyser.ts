/** Analyses of source, one at a time, each in a process of its own that is ended when it takes too much. */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type CompilersState, createCompilers } from './compilers.ts';
import type { Analysis, FromProgram, Job } from './job.ts';
import { runProgram } from './starter.ts';

export type AnalysisResult = FromProgram | { outcome: 'busy' | Exclude<CompilersState, 'here'> };

export interface Limits {
  /** That one process computes. How long a caller waits is the caller's to say, by the signal. */
  cpuMs: number;
  memoryBytes: number;
  /** Those that wait while one runs. */
  waiting: number;
}

const LIMITS: Limits = { cpuMs: 15_000, memoryBytes: 1_000 * 1024 * 1024, waiting: 7 };
const REMEMBERED = 64;

export interface CodeAnalyser {
  /** @throws the signal's reason when it is aborted before there is a result */
  analyse(job: Job, signal: AbortSignal): Promise<AnalysisResult>;
}

interface Waiting {
  job: Job;
  signal: AbortSignal;
  settle: (result: AnalysisResult) => void;
  fail: (reason: unknown) => void;
}

/**
 * Makes an analyser. It holds nothing while nothing runs.
 *
 * @param compilers whether the compilers are here, which the first audit fetches
 */
export function createCodeAnalyser(limits: Limits = LIMITS, compilers = createCompilers()): CodeAnalyser {
  const remembered = new LRUCache<string, Analysis>({ max: REMEMBERED });
  const queue: Waiting[] = [];
  let running = false;

  function next(): void {
    const waiting = queue.shift();
    if (waiting === undefined) {
      running = false;
      return;
    }
    running = true;
    if (waiting.signal.aborted) {
      waiting.fail(waiting.signal.reason);
      next();
      return;
    }
    void runProgram(waiting.job, limits, waiting.signal).then(waiting.settle, waiting.fail).finally(next);
  }

  return {
    async analyse(job, signal) {
      signal.throwIfAborted();
      const key = createHash('sha256').update(JSON.stringify(job)).digest('hex');
      const known = remembered.get(key);
      if (known !== undefined) return known;
      const state = await compilers(signal);
      if (state !== 'here') return { outcome: state };
      if (running && queue.length >= limits.waiting) return { outcome: 'busy' };
      const result = await new Promise<AnalysisResult>((resolve, reject) => {
        const waiting: Waiting = { job, signal, settle: resolve, fail: reject };
        queue.push(waiting);
        signal.addEventListener('abort', () => {
          const at = queue.indexOf(waiting);
          if (at === -1) return;
          queue.splice(at, 1);
          reject(signal.reason);
        });
        if (!running) next();
      });
      if (result.outcome === 'analysed') remembered.set(key, result);
      return result;
    },
  };
}

/** The analyser of this process: however many services use it, one source is compiled at a time. */
export const codeAnalyser = createCodeAnalyser();
