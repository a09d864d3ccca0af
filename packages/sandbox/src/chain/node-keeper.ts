/** The process that keeps nodes, as its parent sees it. What happens in it is in `keeper.ts`. */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';

/** What kind of chain a node makes. */
export type Network = 'ethereum' | 'tempo';

export interface NodeOptions {
  binary: string;
  network: Network;
  port: number;
  chainId: number;
  /** null: nothing is kept. */
  stateDir: string | null;
}

/** What the keeper is told, each about one node. */
export type ToKeeper = { node: number } & ({ start: NodeOptions } | { order: 'keep' | 'stop' });

/** What the keeper tells. `ended` comes last. */
export type FromKeeper = { node: number } & (
  | { listeningAt: string; pid: number }
  | { failure: string }
  | { ended: true }
);

export interface KeptNode {
  /** Its address; null when it ended before it had one. */
  listening: Promise<string | null>;
  /** Settles when it ends, with what is known of the reason. */
  ended: Promise<string>;
  /** From now on the state is worth saving. */
  keep(): void;
  /** Saves the state and ends. */
  stop(): Promise<void>;
}

/** A keeper's process, and those of its nodes that have not ended. */
interface Running {
  process: ChildProcess;
  /** Settles when it is gone. */
  gone: Promise<void>;
  /** What is to be done with what is told about each. */
  nodes: Map<number, (told: FromKeeper | { lost: string }) => void>;
}

/** Where Node keeps what it has compiled; see `bootstrap.mjs`. */
const { NODE_COMPILE_CACHE } = process.env;
const COMPILED = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
const STOP_TIMEOUT_MS = 20_000;

/**
 * Keeps any number of nodes in one process of their own, which is there from the first one's start to the last one's end:
 * what such a process takes of memory is several times what a node does.
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
      // That it is gone has been noticed, or will be.
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

  /** Lets the process go when it has no node left. */
  async #leaveIfIdle(running: Running): Promise<void> {
    if (running.nodes.size > 0) return;
    if (this.#running === running) this.#running = null;
    if (running.process.connected) running.process.disconnect();
    await running.gone;
  }

  #fork(): Running {
    const keeper = fork(join(import.meta.dirname, 'keeper.ts'), {
      detached: true,
      // It needs none of what the environment may hold, keys least of all.
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...COMPILED },
      execArgv: ['--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const nodes: Running['nodes'] = new Map();
    keeper.on('message', (message: FromKeeper) => nodes.get(message.node)?.(message));
    const gone = new Promise<string>((resolve) => {
      keeper.once('exit', (code, signal) => resolve(`its process ended with ${code ?? signal}`));
      keeper.once('error', (error) => resolve(error.message));
    }).then((lost) => {
      // Killed from outside, it could not end its nodes.
      if (nodes.size > 0) killGroup(keeper);
      for (const told of [...nodes.values()]) told({ lost });
    });
    return { process: keeper, gone, nodes };
  }
}

/** Ends a keeper and its nodes without asking them. */
function killGroup(keeper: ChildProcess): void {
  if (keeper.pid !== undefined) kill(-keeper.pid);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Nobody is left.
  }
}
