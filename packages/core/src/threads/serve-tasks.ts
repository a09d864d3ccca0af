import { parentPort } from 'node:worker_threads';
import type { TaskAnswer } from './thread.ts';

/** The other end of `openThread`: answers each task with what `perform` makes of it. */
export function serveTasks<Input, Output>(perform: (input: Input) => Output): void {
  const port = parentPort;
  if (port === null) throw new Error('this program runs in a thread');
  port.on('message', (input: Input) => {
    let answer: TaskAnswer<Output>;
    try {
      answer = { output: perform(input) };
    } catch (error) {
      answer = { error: error instanceof Error ? error.message : String(error) };
    }
    port.postMessage(answer);
  });
}
