/**
 * The keeper: the process between the sandbox and its nodes (anvil). It runs the nodes, saves their state, and ends them
 * when the sandbox is gone, even if the sandbox was killed. `node-keeper.ts` starts the keeper and talks to it over IPC.
 * When the IPC channel closes, the sandbox was killed or needs no node any more, and the keeper ends. The keeper has its
 * own session, so that Ctrl-C in a terminal reaches only the sandbox, whose server still needs the chains for the calls
 * that it finishes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { BlockPace, type Pace } from './block-pace.ts';
import type { FromKeeper, Network, NodeOptions, ToKeeper } from './node-keeper.ts';
import { post } from './post.ts';
import { forgetUnpacked, noteRunning, saveState, unpackState, withoutEmptyBlocks } from './state-files.ts';
import { StuckTransactions } from './stuck-transactions.ts';

const LOOK_EVERY_MS = 1_000;
const LOOKS_IN_A_PAUSE = 4;
/** Saving takes at most this share of the time, however large the state has grown. */
const SAVING_SHARE = 0.1;
const START_TIMEOUT_MS = 20_000;
const END_TIMEOUT_MS = 5_000;
const RPC_TIMEOUT_MS = 10_000;
const DUMP_TIMEOUT_MS = 60_000;
const MAX_OUTPUT_CHARACTERS = 4_000;

/**
 * The settings of each kind of node.
 * - `args`: the command line of the node. `--prune-history` sets for how many of the newest blocks the node can be asked
 *   about the state. Blocks, transactions and logs are all kept.
 * - `pace`: how old the newest block may become before an empty block follows it.
 * - `keepsEmptyBlocks`: whether all empty blocks are saved, or only the newest of them.
 */
const KINDS: Readonly<Record<Network, { args: readonly string[]; pace: Pace; keepsEmptyBlocks: boolean }>> = {
  // A real chain makes blocks all the time, and a client that reads the time from the newest block must not get
  // yesterday's time. After a transaction, blocks follow at the pace of Base.
  ethereum: {
    args: ['--hardfork', 'prague', '--prune-history', '500'],
    pace: { busyMs: 2_000, quietMs: 30_000 },
    keepsEmptyBlocks: true,
  },
  // A payment on Tempo carries the time at which it expires, which may be at most 30 s after the newest block. Wallets set
  // it to 25 s from now, so the newest block must not be older than 5 s. The node's own option `--block-time` is
  // unsuitable: with it the node keeps either the state of every block in memory (a third of a megabyte each) or no state
  // at all, and a call fails when a new block is made during it.
  tempo: {
    args: ['--network', 'tempo', '--hardfork', 'T4', '--prune-history', '50'],
    pace: { busyMs: 2_000, quietMs: 2_000 },
    keepsEmptyBlocks: false,
  },
};

/** A node that this process runs. */
interface Kept {
  /** The number by which this process and its parent name the node. */
  node: number;
  options: NodeOptions;
  kind: (typeof KINDS)[Network];
  ending: AbortController;
  /** Resolves when the node is to end. */
  end: Promise<void>;
  worthSaving: boolean;
}

const nodes = new Map<number, Kept>();
let leaving = false;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, leave);
process.on('disconnect', leave);
process.on('message', (message: ToKeeper) => {
  if ('start' in message) {
    void keepNode(message.node, message.start);
    return;
  }
  const kept = nodes.get(message.node);
  if (message.order === 'stop') kept?.ending.abort();
  else if (kept !== undefined) kept.worthSaving = true;
});

/** Ends all nodes, and then this process. */
function leave(): void {
  leaving = true;
  for (const { ending } of nodes.values()) ending.abort();
  if (nodes.size === 0 && process.connected) process.disconnect();
}

async function keepNode(node: number, options: NodeOptions): Promise<void> {
  const { stateDir } = options;
  const ending = new AbortController();
  const end = new Promise<void>((resolve) => ending.signal.addEventListener('abort', () => resolve()));
  const kept = { node, options, kind: KINDS[options.network], ending, end, worthSaving: false };
  nodes.set(node, kept);
  if (stateDir !== null) noteRunning(stateDir, { keeperPid: process.pid, node: null });
  try {
    await run(kept);
  } catch (error) {
    process.exitCode = 1;
    tell({ node, failure: error instanceof Error ? error.message : String(error) });
  } finally {
    if (stateDir !== null) noteRunning(stateDir, null);
    nodes.delete(node);
    tell({ node, ended: true });
    if (leaving) leave();
  }
}

/** Runs the node until it is to end. @throws Error when the node ends earlier by itself */
async function run(kept: Kept): Promise<void> {
  const { stateDir } = kept.options;
  const node = startNode(kept);
  const ended = new Promise<void>((resolve) => node.once('close', () => resolve()));
  try {
    const url = await listening(kept, node);
    // Otherwise the node would print every request.
    await ask(url, 'anvil_setLoggingEnabled', false);
    const { pid } = node;
    if (pid === undefined) throw new Error('its node has no process');
    if (stateDir !== null) noteRunning(stateDir, { keeperPid: process.pid, node: { pid, url } });
    tell({ node: kept.node, listeningAt: url, pid });
    await Promise.race([
      ended,
      Promise.all([keepMining(kept, url), keepSaving(kept, url), keepFreeing(kept, url)]),
    ]);
    if (!kept.ending.signal.aborted)
      throw new Error(`its node ended with ${node.exitCode ?? node.signalCode}`);
  } finally {
    node.kill('SIGTERM');
    const late = setTimeout(() => node.kill('SIGKILL'), END_TIMEOUT_MS);
    await ended;
    clearTimeout(late);
  }
}

function startNode({ options, kind }: Kept): ChildProcess {
  const { stateDir } = options;
  const saved = stateDir === null ? null : unpackState(stateDir);
  const args = [
    ...['--host', '127.0.0.1', '--port', String(options.port), '--chain-id', String(options.chainId)],
    ...kind.args,
    ...(saved === null ? [] : ['--load-state', saved]),
  ];
  return spawn(options.binary, args, { stdio: ['ignore', 'pipe', 'pipe'], windowsHide: true });
}

/**
 * Waits until the node prints the address at which it listens.
 *
 * @throws Error with the node's error output when the node ends instead, or when it does not listen in time
 */
async function listening({ options: { stateDir } }: Kept, node: ChildProcess): Promise<string> {
  let printed = '';
  let complained = '';
  let found: (url: string) => void;
  const url = new Promise<string>((resolve) => {
    found = resolve;
  });
  node.stdout?.on('data', (chunk: Buffer) => {
    if (printed.length > MAX_OUTPUT_CHARACTERS) return;
    printed += chunk;
    const address = /Listening on ([\d.]+:\d+)/.exec(printed)?.[1];
    if (address !== undefined) found(`http://${address}`);
  });
  node.stderr?.on('data', (chunk: Buffer) => {
    complained = (complained + chunk).slice(-MAX_OUTPUT_CHARACTERS);
  });
  const failed = once(node, 'close').then(() => {
    throw new Error(complained.trim() || 'it ended at once and said nothing');
  });
  const late = sleep(START_TIMEOUT_MS, undefined, { ref: false }).then(() => {
    throw new Error(`it did not listen within ${START_TIMEOUT_MS / 1_000} s`);
  });
  try {
    return await Promise.race([url, failed, late]);
  } finally {
    for (const loser of [failed, late]) loser.catch(() => undefined);
    if (stateDir !== null) forgetUnpacked(stateDir);
  }
}

/** Makes empty blocks at the chain's pace until the node is to end. Makes none while the node's automatic mining is off. */
async function keepMining({ kind, ending, end }: Kept, url: string): Promise<void> {
  const pace = new BlockPace(kind.pace);
  while (!ending.signal.aborted) {
    try {
      const newest = await newestBlock(url);
      if (newest !== pace.newest) pace.saw(newest, await isEmpty(url, newest), performance.now());
      if (pace.isDue(performance.now()) && (await ask(url, 'anvil_getAutomine')) === true)
        await ask(url, 'evm_mine');
    } catch {
      // A node that does not answer is asked again; if it ended, that is noticed elsewhere.
    }
    await pause(end, Math.min(pace.intervalMs(performance.now()) / LOOKS_IN_A_PAUSE, LOOK_EVERY_MS));
  }
}

/**
 * Gets transactions mined that the node overlooks, until the node is to end. Not for Tempo: it orders transactions by more
 * than a nonce, and was never seen to overlook one.
 */
async function keepFreeing({ options, ending, end }: Kept, url: string): Promise<void> {
  if (options.network !== 'ethereum') return;
  const stuck = new StuckTransactions((method, ...params) => ask(url, method, ...params));
  while (!ending.signal.aborted) {
    // A node that does not answer is asked again; if it ended, that is noticed elsewhere.
    await stuck.free().catch(() => 0);
    await pause(end, LOOK_EVERY_MS);
  }
}

/** Saves the state from time to time while something happens, and once more at the end. */
async function keepSaving(kept: Kept, url: string): Promise<void> {
  const { kind, ending, end } = kept;
  const { stateDir } = kept.options;
  let newest = 0;
  let unsaved = true;
  while (!ending.signal.aborted) {
    const startedAtMs = performance.now();
    // The block is read first, so that blocks made during the dump are saved the next time.
    const block = await newestBlock(url).catch(() => newest);
    unsaved ||= await isWorthSaving(kind, url, newest + 1, block).catch(() => true);
    newest = block;
    if (stateDir !== null && kept.worthSaving && unsaved) {
      const state = await dumpedState(kind, url).catch(() => null);
      if (state !== null) {
        saveState(stateDir, state);
        unsaved = false;
      }
    }
    await pause(end, Math.max(LOOK_EVERY_MS, (performance.now() - startedAtMs) / SAVING_SHARE));
  }
  if (stateDir !== null && kept.worthSaving) saveState(stateDir, await dumpedState(kind, url));
}

/** Waits for a time, or until the node is to end. */
async function pause(end: Promise<void>, durationMs: number): Promise<void> {
  await Promise.race([end, sleep(durationMs, undefined, { ref: false })]);
}

async function newestBlock(url: string): Promise<number> {
  return Number(await ask(url, 'eth_blockNumber'));
}

/** Whether any of these blocks must be saved. Where empty blocks are not kept, only a block with a transaction must be. */
async function isWorthSaving(kind: Kept['kind'], url: string, first: number, last: number): Promise<boolean> {
  for (let block = first; block <= last; block += 1) {
    if (kind.keepsEmptyBlocks || !(await isEmpty(url, block))) return true;
  }
  return false;
}

async function isEmpty(url: string, block: number): Promise<boolean> {
  const count = await ask(url, 'eth_getBlockTransactionCountByNumber', `0x${block.toString(16)}`);
  return count === '0x0';
}

/** The node's state in the form in which it is saved: JSON, compressed with gzip. */
async function dumpedState(kind: Kept['kind'], url: string): Promise<Buffer> {
  const dump = await ask(url, 'anvil_dumpState');
  if (typeof dump !== 'string') throw new Error('the node dumped no state');
  const packed = Buffer.from(dump.slice(2), 'hex');
  return kind.keepsEmptyBlocks ? packed : withoutEmptyBlocks(packed);
}

async function ask(url: string, method: string, ...params: unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const withinMs = method === 'anvil_dumpState' ? DUMP_TIMEOUT_MS : RPC_TIMEOUT_MS;
  const reply: { result?: unknown; error?: { message: string } } = JSON.parse(
    await post(url, body, withinMs),
  );
  if (reply.error !== undefined) throw new Error(`${method}: ${reply.error.message}`);
  return reply.result;
}

function tell(message: FromKeeper): void {
  // If the parent is gone, this process ends anyway.
  if (process.connected) process.send?.(message, undefined, {}, () => undefined);
}
