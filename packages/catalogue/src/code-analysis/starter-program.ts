/**
 * The thread that starts the processes of analyses and waits for them. A process is started synchronously: whoever starts
 * one stands still until the system has begun it, which on a busy machine is long. Here nobody but this thread does.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { toolVariables } from '@farebox/process/npm-packages';
import type { FromProgram } from './job.ts';
import type { ToStarter } from './starter.ts';

/** The size of the engine's own heap; what WebAssembly takes is watched in the process. */
const HEAP_MB = 512;
/** The most text that a process may leave on its way out. */
const MOST_SAID = 4_000;

const port = parentPort;
if (port === null) throw new Error('this program runs in a thread');
const running = new Map<number, ChildProcess>();

port.on('message', (message: ToStarter) => {
  if ('job' in message) start(message);
  else running.get(message.stop)?.kill('SIGKILL');
});

function start({ id, job, limits }: Extract<ToStarter, { job: unknown }>): void {
  const child = fork(
    join(import.meta.dirname, 'program.ts'),
    [limits.memoryBytes, limits.cpuMs].map(String),
    {
      env: toolVariables(),
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
  running.set(id, child);
  let said = '';
  let result: FromProgram | null = null;
  child.stderr?.on('data', (chunk: Buffer) => {
    if (said.length < MOST_SAID) said += chunk.toString('utf8');
  });
  child.on('message', (message: FromProgram) => {
    result = message;
  });
  const ended = () => {
    // A process that could not be started says so by an error, and by no exit.
    if (!running.delete(id)) return;
    const limit = /out of time/.test(said) ? 'time' : /out of memory/.test(said) ? 'memory' : 'crash';
    port?.postMessage({ id, result: result ?? { outcome: 'exhausted', limit } });
  };
  child.once('exit', ended);
  child.once('error', ended);
  // A process that has ended already says so by its exit.
  child.send(job, () => undefined);
}
