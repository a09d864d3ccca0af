/** The program of a thread that imports one module and sends its default export back. */
import { parentPort, workerData } from 'node:worker_threads';
import type { ModuleAnswer } from './read-module.ts';

async function answer(): Promise<ModuleAnswer> {
  try {
    const address: unknown = workerData;
    if (typeof address !== 'string') return { wrong: 'has no address' };
    const module = (await import(address)) as { default?: unknown };
    if (module.default === undefined)
      return { wrong: 'exports no configuration: write export default defineConfig({ … })' };
    return { value: module.default };
  } catch (error) {
    return {
      wrong: `cannot be loaded: ${error instanceof Error ? error.message.slice(0, 500) : 'it threw no error'}`,
    };
  }
}

const made = await answer();
try {
  parentPort?.postMessage(made);
} catch {
  const wrong = 'exports what is no plain data, such as a function: prices and rules are data here';
  parentPort?.postMessage({ wrong } satisfies ModuleAnswer);
}
