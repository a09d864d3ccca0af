/** The sandbox's side of the keeper, the process that runs its nodes. The process itself is `keeper-program.ts`. */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { ONE_HEAP, WAITING } from '../../../process/src/node-flags.mjs';

/** The kind of chain that a node runs. */
export type Network = 'ethereum' | 'tempo';

export interface NodeOptions {
  binary: string;
  network: Network;
  port: number;
  chainId: number;
  /** The folder of the saved state; null: nothing is saved. */
  stateDir: string | null;
}

/** A message to the keeper about one node. */
export type ToKeeper = { node: number } & ({ start: NodeOptions } | { order: 'keep' | 'stop' });

/** A message from the keeper about one node. `ended` comes last. */
export type FromKeeper = { node: number } & (
  | { listeningAt: string; pid: number }
  | { failure: string }
  | { ended: true }
);

export interface KeptNode {
  /** The node's URL; null when the node ended before it had one. */
  listening: Promise<string | null>;
  /** Resolves when the node has ended, with what is known of the reason. */
  ended: Promise<string>;
  /** Says that the chain is built: its state is saved only from now on. */
  keep(): void;
  /** Saves the state and ends. */
  stop(): Promise<void>;
}

/** A keeper's process, and those of its nodes that have not ended. */
interface Running {
  process: ChildProcess;
  /** Resolves when the process is gone. */
  gone: Promise<void>;
  /** By the node's number: what handles the messages about it. */
  nodes: Map<number, (told: FromKeeper | { lost: string }) => void>;
}

/** The folder of Node's compile cache; see `bootstrap.mjs`. */
const { NODE_COMPILE_CACHE } = process.env;
const COMPILED = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
const STOP_TIMEOUT_MS = 20_000;

/**
 * Runs any number of nodes through one keeper process, because a keeper takes several times as much memory as a node. The
 * process starts with the first node and ends with the last.
 */
export class NodeKeeper {
  #running: Running | null = null;
  #started = 0;

  start(options: NodeOptions): KeptNode {
    this.#running ??= this.#fork();
    const running = this.#running;
    this.#started += 1;
    const node = this.#started;
    const listening = Promise.withResolvers<string | null>();
    const ended = Promise.withResolvers<string>();
    let pid: number | null = null;
    let failure: string | null = null;
    running.nodes.set(node, (told) => {
      if ('failure' in told) failure = told.failure;
      if ('listeningAt' in told) {
        pid = told.pid;
        listening.resolve(told.listeningAt);
      }
      if (!('ended' in told || 'lost' in told)) return;
      running.nodes.delete(node);
      const why = failure ?? ('lost' in told ? told.lost : 'it was told to end');
      void this.#leaveIfIdle(running).then(() => {
        listening.resolve(null);
        ended.resolve(why);
      });
    });
    const tell = (what: ToKeeper) => {
      // A process that is gone needs no message; its `exit` event reports the end.
      if (running.process.connected) running.process.send(what, () => undefined);
    };
    tell({ node, start: options });
    return {
      listening: listening.promise,
      ended: ended.promise,
      keep: () => tell({ node, order: 'keep' }),
      stop: async () => {
        tell({ node, order: 'stop' });
        const late = [
          setTimeout(() => pid !== null && kill(pid), STOP_TIMEOUT_MS),
          setTimeout(() => killGroup(running.process), 2 * STOP_TIMEOUT_MS),
        ];
        await ended.promise;
        for (const timer of late) clearTimeout(timer);
      },
    };
  }

  /** Ends the process when it has no node left, and waits for that end. */
  async #leaveIfIdle(running: Running): Promise<void> {
    if (running.nodes.size > 0) return;
    if (this.#running === running) this.#running = null;
    if (running.process.connected) running.process.disconnect();
    await running.gone;
  }

  #fork(): Running {
    const keeper = fork(join(import.meta.dirname, 'keeper-program.ts'), {
      detached: true,
      // The keeper gets nothing else of the environment, which may hold secret keys. Saved states come and go there, each of megabytes.
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...ONE_HEAP, ...COMPILED },
      execArgv: [...WAITING],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const nodes: Running['nodes'] = new Map();
    keeper.on('message', (message: FromKeeper) => nodes.get(message.node)?.(message));
    const gone = new Promise<string>((resolve) => {
      keeper.once('exit', (code, signal) => resolve(`its process ended with ${code ?? signal}`));
      keeper.once('error', (error) => resolve(error.message));
    }).then((lost) => {
      // A keeper that was killed could not end its nodes.
      if (nodes.size > 0) killGroup(keeper);
      for (const told of [...nodes.values()]) told({ lost });
    });
    return { process: keeper, gone, nodes };
  }
}

/** Kills a keeper and its nodes. */
function killGroup(keeper: ChildProcess): void {
  if (keeper.pid !== undefined) kill(-keeper.pid);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process is gone already.
  }
}
