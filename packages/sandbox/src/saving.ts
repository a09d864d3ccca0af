/**
 * Saves the current state of the parts of a running sandbox. Cards and mail are written to disk before they are
 * answered.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../process/src/is-alive.mjs';
import { runningOn, saveState, withoutEmptyBlocks } from './chain/state-files.ts';
import type { Environment } from './data-dir.ts';
import { environmentOfRunningWorld } from './world.ts';

const TIMEOUT_MS = 30_000;

/** Has Solana write down what it holds. @throws when it runs and does not answer */
export async function saveSolana(environment: Environment): Promise<void> {
  const solana = environmentOfRunningWorld(environment)?.UPSTREAM_SOLANA_BASE_URL;
  if (solana !== undefined) await ask(solana, 'sandbox_save');
}

/** Puts the state of the EVM chains that run into a copy of the folder. @throws when one does not answer */
export async function copyEvmChains(dataDir: string, copy: string): Promise<void> {
  const chains = ['chain', 'ethereum', 'tempo'].map(async (chain) => {
    const running = existsSync(join(dataDir, chain)) ? runningOn(join(dataDir, chain)) : null;
    if (running === null || running.node === null || !isAlive(running.keeperPid)) return;
    const packed = Buffer.from(String(await ask(running.node.url, 'anvil_dumpState')).slice(2), 'hex');
    saveState(join(copy, chain), chain === 'tempo' ? withoutEmptyBlocks(packed) : packed);
  });
  await Promise.all(chains);
}

async function ask(url: string, method: string): Promise<unknown> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [] }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const reply: { result?: unknown; error?: { message: string } } = JSON.parse(await answer.text());
  if (reply.error !== undefined) throw new Error(`${method}: ${reply.error.message}`);
  return reply.result;
}
