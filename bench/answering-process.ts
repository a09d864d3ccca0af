/** Programs of ours that are started with a channel, get orders over it, and answer each. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Resources } from './resources.ts';

const EXEC_ARGV = ['--disable-warning=ExperimentalWarning'];

/**
 * Starts a TypeScript program and waits for its first message.
 *
 * @throws when it ends before it said anything
 */
export async function startProgram<FirstMessage>(
  resources: Resources,
  program: string,
  options: { environment: NodeJS.ProcessEnv; execArgv?: readonly string[] },
): Promise<{ child: ChildProcess; first: FirstMessage; stop(): Promise<void> }> {
  const child = fork(program, {
    env: options.environment,
    execArgv: [...EXEC_ARGV, ...(options.execArgv ?? [])],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  };
  resources.defer(stop);
  const first = await new Promise<FirstMessage>((resolve, reject) => {
    child.once('message', (message) => resolve(message as FirstMessage));
    child.once('exit', (code) => reject(new Error(`${program} ended with ${code} before it was ready`)));
  });
  return { child, first, stop };
}

/** Gives a program an order and waits for its answer. @throws what the program threw, or when it ended */
export function order<Order extends object, Answer>(child: ChildProcess, command: Order): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error('a program of the benchmark ended in the middle of its work'));
    child.once('exit', ended);
    child.once('message', (message: { answer: Answer } | { failure: string }) => {
      child.off('exit', ended);
      if ('failure' in message) reject(new Error(message.failure));
      else resolve(message.answer);
    });
    child.send(command);
  });
}

/**
 * The other end: answers each order, reports that it is ready, and ends when it is told to or when its parent has gone.
 * @param first the message that says that it is ready
 */
export function answerOrders<Order, Answer>(
  work: (command: Order) => Promise<Answer>,
  first: object = { ready: true },
): void {
  process.on('message', (command: Order) => {
    work(command).then(
      (answer) => process.send?.({ answer }),
      (error: unknown) =>
        process.send?.({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    );
  });
  process.once('disconnect', () => process.exit(0));
  // Ctrl-C reaches the whole process group, but the run itself decides in which order things end.
  process.on('SIGINT', () => {});
  process.send?.(first);
}
