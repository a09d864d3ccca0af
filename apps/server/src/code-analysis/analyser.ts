/** Analyses of source, one at a time, each in a process of its own that is ended when it takes too much. */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';
import type { Finding } from './rules/finding.ts';

export interface Job {
  /** The text of each file by its name. */
  sources: Readonly<Record<string, string>>;
  remappings: readonly string[];
  /** Look at these contracts alone; null for all. */
  contracts: readonly string[] | null;
}

export interface Analysis {
  outcome: 'analysed';
  /** Gravest first, a bounded number. */
  findings: Finding[];
  /** How many there were. */
  total: number;
  /** Null: no compiler took the source, and the tolerant parser read it. */
  compiler: string | null;
  pragma: string | null;
  /** The pragma asks for a version that is not here, and the newest of its minor compiled it. */
  pragmaReplaced: boolean;
  compilerError: string | null;
  contracts: { name: string; role: string; file: string }[];
}

/** What the process tells. */
export type FromProgram =
  | Analysis
  | { outcome: 'unreadable'; why: string }
  /** It took more than it may, or ended by itself. */
  | { outcome: 'exhausted'; limit: 'time' | 'memory' | 'crash' };

export type AnalysisResult = FromProgram | { outcome: 'busy' };

export interface Limits {
  /** That one process computes. How long a caller waits is the caller's to say, by the signal. */
  cpuMs: number;
  memoryBytes: number;
  /** Those that wait while one runs. */
  waiting: number;
}

const LIMITS: Limits = { cpuMs: 15_000, memoryBytes: 1_000 * 1024 * 1024, waiting: 7 };
const REMEMBERED = 64;
/** Of the engine's own heap; what WebAssembly takes is watched in the process. */
const HEAP_MB = 512;

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

/** Makes an analyser. It holds nothing while nothing runs. */
export function createCodeAnalyser(limits: Limits = LIMITS): CodeAnalyser {
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

/** One process for one job. Ends with it, whatever it does. */
function runProgram(job: Job, limits: Limits, signal: AbortSignal): Promise<AnalysisResult> {
  return new Promise((resolve, reject) => {
    const child = fork(
      join(import.meta.dirname, 'program.ts'),
      [limits.memoryBytes, limits.cpuMs].map(String),
      {
        env: {},
        execArgv: [
          '--disable-warning=ExperimentalWarning',
          `--max-old-space-size=${HEAP_MB}`,
          // It reads its own code, and may neither write nor start anything.
          '--permission',
          '--allow-fs-read=*',
          '--allow-worker',
        ],
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      },
    );
    let said = '';
    let result: FromProgram | null = null;
    child.stderr?.on('data', (chunk: Buffer) => {
      if (said.length < 4_000) said += chunk.toString('utf8');
    });
    child.on('message', (message: FromProgram) => {
      result = message;
    });
    const abort = () => child.kill('SIGKILL');
    signal.addEventListener('abort', abort);
    const ended = () => {
      signal.removeEventListener('abort', abort);
      if (result !== null) resolve(result);
      else if (signal.aborted) reject(signal.reason);
      else {
        const limit = /out of time/.test(said) ? 'time' : /out of memory/.test(said) ? 'memory' : 'crash';
        resolve({ outcome: 'exhausted', limit });
      }
    };
    child.once('exit', ended);
    child.once('error', ended);
    // A process that has ended already says so by its exit.
    child.send(job, () => undefined);
  });
}

/** The analyser of this process: however many services use it, one source is compiled at a time. */
export const codeAnalyser = createCodeAnalyser();
