/**
 * Reads the default export of a module in a thread of its own, which ends with it: a file that is read again brings its own imports anew,
 * and one that never ends holds nobody up.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

const LONGEST_MS = 10_000;
const MOST_MEMORY_MB = 256;

/** The message of a module's thread. */
export type ModuleAnswer = { value: unknown } | { wrong: string };

/** Imports a module and copies its default export. */
export function readModule(file: string): Promise<ModuleAnswer> {
  return new Promise((settle) => {
    const worker = new Worker(new URL('./module-program.ts', import.meta.url), {
      workerData: pathToFileURL(resolve(file)).href,
      resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB },
      stdin: true,
    });
    const end = (answer: ModuleAnswer) => {
      clearTimeout(deadline);
      void worker.terminate();
      settle(answer);
    };
    const deadline = setTimeout(
      () => end({ wrong: `did not load within ${LONGEST_MS / 1_000} seconds` }),
      LONGEST_MS,
    );
    worker.on('message', end);
    worker.on('error', (error: unknown) =>
      end({ wrong: `cannot be loaded: ${error instanceof Error ? error.message : 'it threw no error'}` }),
    );
    worker.on('exit', () => end({ wrong: 'ended before it exported a configuration' }));
  });
}
