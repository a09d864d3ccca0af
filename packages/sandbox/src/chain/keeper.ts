/**
 * The process between the world and its node (anvil): runs it, saves its state, and ends it when the world is gone,
 * even when the world had no time to say so. `anvil.ts` starts it and speaks with it over IPC; the end of that channel
 * is how it learns that its parent was killed. It has a session of its own, so that Ctrl-C in a terminal reaches the
 * world alone, whose server still needs the chain for the calls that it finishes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FromKeeper, KeeperOptions } from './anvil.ts';
import { forgetUnpacked, noteRunning, saveState, unpackState } from './state-files.ts';

/** The longest time between two blocks. */
const LONGEST_PAUSE_MS = 30_000;
const SAVE_EVERY_MS = 1_000;
/** Saving takes at most this part of the time, however large the state has grown. */
const SAVING_SHARE = 0.1;
const START_TIMEOUT_MS = 20_000;
const END_TIMEOUT_MS = 5_000;
const RPC_TIMEOUT_MS = 10_000;
const MAX_OUTPUT_CHARACTERS = 4_000;
/** States of this many blocks can be asked for; blocks, transactions and logs are all kept. */
const STATES_IN_MEMORY = '500';

const options: KeeperOptions = JSON.parse(process.argv[2] ?? '');
const { stateDir } = options;
const ending = new AbortController();
const end = new Promise<void>((resolve) => ending.signal.addEventListener('abort', () => resolve()));
let worthSaving = false;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => ending.abort());
process.on('disconnect', () => ending.abort());
process.on('message', (message) => {
  if (message === 'stop') ending.abort();
  if (message === 'keep') worthSaving = true;
});

if (stateDir !== null) noteRunning(stateDir, { keeperPid: process.pid, node: null });
try {
  await run();
} catch (error) {
  process.exitCode = 1;
  tell({ failure: error instanceof Error ? error.message : String(error) });
} finally {
  if (stateDir !== null) noteRunning(stateDir, null);
  if (process.connected) process.disconnect();
}

/** Runs the node until the end is wanted. Throws when the node ends before. */
async function run(): Promise<void> {
  const node = startNode();
  const ended = new Promise<void>((resolve) => node.once('close', () => resolve()));
  try {
    const url = await listening(node);
    // Or it would print every request.
    await ask(url, 'anvil_setLoggingEnabled', false);
    if (stateDir !== null && node.pid !== undefined)
      noteRunning(stateDir, { keeperPid: process.pid, node: { pid: node.pid, url } });
    tell({ listeningAt: url });
    await Promise.race([ended, keepUntilEnd(url)]);
    if (!ending.signal.aborted) throw new Error(`its node ended with ${node.exitCode ?? node.signalCode}`);
  } finally {
    node.kill('SIGTERM');
    const late = setTimeout(() => node.kill('SIGKILL'), END_TIMEOUT_MS);
    await ended;
    clearTimeout(late);
  }
}

function startNode(): ChildProcess {
  const saved = stateDir === null ? null : unpackState(stateDir);
  const args = [
    ...['--host', '127.0.0.1', '--port', String(options.port), '--chain-id', String(options.chainId)],
    ...['--hardfork', 'prague', '--prune-history', STATES_IN_MEMORY],
    ...(saved === null ? [] : ['--load-state', saved]),
  ];
  return spawn(options.binary, args, { stdio: ['ignore', 'pipe', 'pipe'], windowsHide: true });
}

/** Waits until the node says where it listens. Throws what it says when it ends instead. */
async function listening(node: ChildProcess): Promise<string> {
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

/**
 * Saves the state now and then while blocks come, and once more at the end. A chain on which nothing happens gets an
 * empty block now and then: a real one never stands still, and who asks it for the time must not get yesterday's.
 */
async function keepUntilEnd(url: string): Promise<void> {
  let savedBlock: unknown = null;
  let newest: unknown = null;
  let newestSinceMs = performance.now();
  while (!ending.signal.aborted) {
    const startedAtMs = performance.now();
    // A node that does not answer is asked again; when it ended, its end is seen elsewhere.
    const block = await ask(url, 'eth_blockNumber').catch(() => newest);
    if (block !== newest) {
      newest = block;
      newestSinceMs = startedAtMs;
    } else if (startedAtMs - newestSinceMs > LONGEST_PAUSE_MS) {
      await ask(url, 'evm_mine').catch(() => null);
    }
    if (stateDir !== null && worthSaving) {
      // The block was read first: those that come while the state is dumped are saved the next time.
      const dump = block === savedBlock ? null : await ask(url, 'anvil_dumpState').catch(() => null);
      if (typeof dump === 'string') {
        saveState(stateDir, packed(dump));
        savedBlock = block;
      }
    }
    const pauseMs = Math.max(SAVE_EVERY_MS, (performance.now() - startedAtMs) / SAVING_SHARE);
    await Promise.race([end, sleep(pauseMs, undefined, { ref: false })]);
  }
  if (stateDir !== null && worthSaving) saveState(stateDir, packed(await ask(url, 'anvil_dumpState')));
}

function packed(dump: unknown): Buffer {
  if (typeof dump !== 'string') throw new Error('the node dumped no state');
  return Buffer.from(dump.slice(2), 'hex');
}

async function ask(url: string, method: string, ...params: unknown[]): Promise<unknown> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(RPC_TIMEOUT_MS),
  });
  const reply: { result?: unknown; error?: { message: string } } = JSON.parse(await answer.text());
  if (reply.error !== undefined) throw new Error(`${method}: ${reply.error.message}`);
  return reply.result;
}

function tell(message: FromKeeper): void {
  // The parent may be gone, which ends this process by itself.
  if (process.connected) process.send?.(message, undefined, {}, () => undefined);
}
