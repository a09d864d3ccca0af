/** Work that would hold the event loop: done in a thread of its own, so that other calls are answered meanwhile. */
import { Worker } from 'node:worker_threads';

/** Why a thread did not do its task. */
export type ThreadTrouble = 'busy' | 'timeout' | 'failed';

export class ThreadError extends Error {
  readonly trouble: ThreadTrouble;

  constructor(trouble: ThreadTrouble, message: string) {
    super(message);
    this.name = 'ThreadError';
    this.trouble = trouble;
  }
}

export interface ThreadBounds {
  /** The longest a task may take, from its start. The thread is ended with it. */
  timeoutMs: number;
  /** The most tasks that may wait; a further one is refused at once. */
  maxWaiting: number;
  /** Heap of the thread. */
  maxMemoryMb: number;
}

export interface Thread<Input, Output> {
  /**
   * Does one task. Tasks are done one after another.
   *
   * @throws ThreadError `busy` when too many wait, `timeout`, or `failed` with what the program threw
   */
  run(input: Input): Promise<Output>;
  /** Ends the thread. The next task starts another one. */
  close(): Promise<void>;
}

interface Task<Input, Output> {
  input: Input;
  resolve(output: Output): void;
  reject(error: ThreadError): void;
}

/** A program's answer to a task (`serveTasks`). */
export type TaskAnswer<Output> = { output: Output } | { error: string };

/**
 * Opens a thread for one program. It starts with the first task and stays, because loading a program costs more than most
 * tasks; it does not keep the process alive while it has nothing to do.
 *
 * @param program a module that calls `serveTasks`
 */
export function openThread<Input, Output>(program: URL, bounds: ThreadBounds): Thread<Input, Output> {
  const waiting: Task<Input, Output>[] = [];
  let running: Task<Input, Output> | null = null;
  let worker: Worker | null = null;

  function start(): Worker {
    const started = new Worker(program, { resourceLimits: { maxOldGenerationSizeMb: bounds.maxMemoryMb } });
    const ended = (message: string) => {
      if (worker !== started) return;
      worker = null;
      finish((task) => task.reject(new ThreadError('failed', message)));
    };
    started.on('message', (answer: TaskAnswer<Output>) => {
      if (worker !== started) return;
      finish((task) => {
        if ('output' in answer) task.resolve(answer.output);
        else task.reject(new ThreadError('failed', answer.error));
      });
    });
    started.on('error', (error: unknown) => ended(error instanceof Error ? error.message : String(error)));
    started.on('exit', (code) => ended(`ended with code ${code}`));
    return started;
  }

  let deadline: NodeJS.Timeout | undefined;
  function finish(settle: (task: Task<Input, Output>) => void): void {
    clearTimeout(deadline);
    const task = running;
    running = null;
    worker?.unref();
    if (task !== null) settle(task);
    next();
  }

  function next(): void {
    if (running !== null) return;
    const task = waiting.shift();
    if (task === undefined) return;
    running = task;
    worker ??= start();
    worker.ref();
    deadline = setTimeout(() => {
      const late = worker;
      worker = null;
      void late?.terminate();
      finish(({ reject }) => reject(new ThreadError('timeout', `took longer than ${bounds.timeoutMs} ms`)));
    }, bounds.timeoutMs);
    worker.postMessage(task.input);
  }

  return {
    run(input) {
      if (running !== null && waiting.length >= bounds.maxWaiting) {
        return Promise.reject(new ThreadError('busy', `${waiting.length} tasks wait already`));
      }
      return new Promise((resolve, reject) => {
        waiting.push({ input, resolve, reject });
        next();
      });
    },
    async close() {
      const open = worker;
      worker = null;
      await open?.terminate();
      finish(({ reject }) => reject(new ThreadError('failed', 'the thread was closed')));
    },
  };
}
