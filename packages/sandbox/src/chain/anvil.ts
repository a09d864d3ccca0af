/** A node of the sandbox's EVM chains as a part that starts, stops, and says when it broke. */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '../../../process/src/is-alive.ts';
import { StartError } from '../../../process/src/start-error.ts';
import { noteRunning, runningOn } from './state-files.ts';

/** What kind of chain a node makes. */
export type Network = 'ethereum' | 'tempo';

/** What `keeper.ts` is handed as its only argument, as JSON. */
export interface KeeperOptions {
  binary: string;
  network: Network;
  port: number;
  chainId: number;
  /** null: nothing is kept. */
  stateDir: string | null;
}

/** What the keeper tells. */
export type FromKeeper = { listeningAt: string } | { failure: string };

export interface Anvil {
  url: string;
  /** From now on the state is worth saving. */
  keep(): void;
  /** Settles when it ends although nobody called `stop`, with what is known of the reason. */
  died: Promise<string>;
  /** Saves the state and ends. */
  stop(): Promise<void>;
}

const NAMES: Readonly<Record<Network, string>> = { ethereum: 'chain', tempo: 'Tempo chain' };
const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-amd64',
  'linux-arm64': 'linux-arm64',
  'darwin-x64': 'darwin-amd64',
  'darwin-arm64': 'darwin-arm64',
  'win32-x64': 'win32-amd64',
};
/** An earlier keeper whose parent was killed is saving its state for so long. */
const PREDECESSOR_TIMEOUT_MS = 10_000;
const PREDECESSOR_POLL_MS = 20;
const PROBE_TIMEOUT_MS = 1_000;
const STOP_TIMEOUT_MS = 20_000;

/**
 * Starts a node. It mines a block for each transaction, at once.
 *
 * @param options.network an Ethereum like Base when left out
 * @param options.port 0 takes a free one
 * @throws StartError when it cannot be started, with what it said
 */
export async function startAnvil(
  options: Omit<KeeperOptions, 'binary' | 'network'> & { network?: Network },
): Promise<Anvil> {
  const { stateDir, network = 'ethereum' } = options;
  if (stateDir !== null) {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    await predecessorGone(stateDir);
  }
  const given: KeeperOptions = { ...options, network, binary: binaryPath() };
  const keeper = fork(join(import.meta.dirname, 'keeper.ts'), [JSON.stringify(given)], {
    detached: true,
    // It needs none of what the environment may hold, keys least of all.
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  let failure: string | null = null;
  let stopping = false;
  const gone = new Promise<void>((resolve) => {
    keeper.once('exit', () => {
      // Killed from outside, it could not end its node.
      if (!stopping) killGroup(keeper);
      resolve();
    });
    keeper.once('error', (error) => {
      failure = error.message;
      resolve();
    });
  });
  const url = await new Promise<string | null>((resolve) => {
    keeper.on('message', (message: FromKeeper) => {
      if ('listeningAt' in message) resolve(message.listeningAt);
      else failure = message.failure;
    });
    void gone.then(() => resolve(null));
  });
  const reason = () => failure ?? `its process ended with ${keeper.exitCode ?? keeper.signalCode}`;
  if (url === null) throw new StartError(`the sandbox ${NAMES[network]} did not start: ${reason()}`);

  return {
    url,
    keep: () => void keeper.send('keep', () => undefined),
    died: new Promise((resolve) => {
      void gone.then(() => {
        if (!stopping) resolve(reason());
      });
    }),
    async stop() {
      stopping = true;
      if (keeper.connected) keeper.send('stop', () => undefined);
      const late = setTimeout(() => killGroup(keeper), STOP_TIMEOUT_MS);
      await gone;
      clearTimeout(late);
    },
  };
}

/** Ends a keeper and its node without asking them. */
function killGroup(keeper: ChildProcess): void {
  if (keeper.pid === undefined) return;
  try {
    process.kill(-keeper.pid, 'SIGKILL');
  } catch {
    // Nobody of the group is left.
  }
}

/** Waits for an earlier keeper to finish; ends the node of one that was killed together with its parent. */
async function predecessorGone(stateDir: string): Promise<void> {
  const deadlineMs = performance.now() + PREDECESSOR_TIMEOUT_MS;
  for (;;) {
    const running = runningOn(stateDir);
    if (running === null) return;
    const { keeperPid, node } = running;
    if (!isAlive(keeperPid)) {
      if (node !== null && (await isNode(node.url))) process.kill(node.pid, 'SIGKILL');
      noteRunning(stateDir, null);
      return;
    }
    if (performance.now() > deadlineMs)
      throw new StartError(
        `another sandbox chain (process ${keeperPid}) runs on ${stateDir}; stop it first, or remove running.json there if that process is something else`,
      );
    await sleep(PREDECESSOR_POLL_MS);
  }
}

/** Whether a node of this kind answers at an address: its process id may be another's by now. */
async function isNode(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'web3_clientVersion', params: [] }),
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    });
    return (await answer.text()).includes('anvil');
  } catch {
    return false;
  }
}

function binaryPath(): string {
  const platform = `${process.platform}-${process.arch}`;
  const name = `@foundry-rs/anvil-${PACKAGES[platform]}`;
  const file = process.platform === 'win32' ? 'bin/anvil.exe' : 'bin/anvil';
  try {
    return createRequire(import.meta.url).resolve(`${name}/${file}`);
  } catch (cause) {
    throw new StartError(
      PACKAGES[platform] === undefined
        ? `the sandbox chain's node (anvil) does not exist for ${platform}`
        : `the sandbox chain's node (${name}) is not installed`,
      { cause },
    );
  }
}
