/** Starts and stops a node (anvil) of the sandbox's EVM chains, and reports when the node ends by itself. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '../../../process/src/is-alive.mjs';
import { fetchTool } from '../../../process/src/npm-packages.mjs';
import { StartError } from '../../../process/src/start-error.ts';
import { type Network, NodeKeeper, type NodeOptions } from './node-keeper.ts';
import { noteRunning, runningOn } from './state-files.ts';

export interface Anvil {
  url: string;
  /** Says that the chain is built: its state is saved only from now on. */
  keep(): void;
  /** Resolves when the node ends although nobody called `stop`, with what is known of the reason. */
  died: Promise<string>;
  /** Saves the state and ends. */
  stop(): Promise<void>;
}

/** The folder whose lock file pins its packages. */
const TOOL = join(import.meta.dirname, '../../tools/anvil');
const NAMES: Readonly<Record<Network, string>> = { ethereum: 'chain', tempo: 'Tempo chain' };
const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-amd64',
  'linux-arm64': 'linux-arm64',
  'darwin-x64': 'darwin-amd64',
  'darwin-arm64': 'darwin-arm64',
  'win32-x64': 'win32-amd64',
};
/** How long a keeper whose parent was killed may still be saving its state. */
const PREDECESSOR_TIMEOUT_MS = 10_000;
const PREDECESSOR_POLL_MS = 20;
const PROBE_TIMEOUT_MS = 1_000;

/**
 * Starts a node. It mines a block for each transaction, at once.
 *
 * @param options.network `ethereum` when left out
 * @param options.port 0 takes a free one
 * @param keeper the process that runs the node; a new one when left out
 * @throws StartError when the node cannot be started, with what the node said
 */
export async function startAnvil(
  options: Omit<NodeOptions, 'binary' | 'network'> & { network?: Network },
  keeper = new NodeKeeper(),
): Promise<Anvil> {
  const { stateDir, network = 'ethereum' } = options;
  if (stateDir !== null) {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    await predecessorGone(stateDir);
  }
  const node = keeper.start({ ...options, network, binary: await binaryPath() });
  const url = await node.listening;
  if (url === null) throw new StartError(`the sandbox ${NAMES[network]} did not start: ${await node.ended}`);
  let stopping = false;
  return {
    url,
    keep: node.keep,
    died: new Promise((resolve) => {
      void node.ended.then((why) => {
        if (!stopping) resolve(why);
      });
    }),
    async stop() {
      stopping = true;
      await node.stop();
    },
  };
}

/**
 * Waits until an earlier keeper of this folder has ended. If that keeper was killed, kills the node that it left behind.
 *
 * @throws StartError when the earlier keeper does not end in time
 */
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

/** Whether an anvil node answers at this address. The noted process id proves nothing: another process may have it by now. */
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

/** @throws StartError when there is no node for this machine, or it cannot be fetched */
async function binaryPath(): Promise<string> {
  const platform = `${process.platform}-${process.arch}`;
  const name = `@foundry-rs/anvil-${PACKAGES[platform]}`;
  const file = process.platform === 'win32' ? 'bin/anvil.exe' : 'bin/anvil';
  if (PACKAGES[platform] === undefined)
    throw new StartError(`the sandbox chain's node (anvil) does not exist for ${platform}`);
  const folder = await fetchTool(TOOL).catch((cause: unknown) => {
    throw new StartError(
      `no node for the sandbox's chains: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  });
  const binary = join(folder, 'node_modules', name, file);
  if (!existsSync(binary)) throw new StartError(`the sandbox chain's node (${name}) is not in ${folder}`);
  return binary;
}
