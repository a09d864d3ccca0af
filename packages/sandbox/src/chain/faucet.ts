/** Gives sandbox money to a wallet on an EVM chain. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Address } from 'viem';
import { BUILDERS } from './accounts.ts';
import { BASE, type Places } from './addresses.ts';
import { connect, transact } from './node.ts';
import { transferUsdc, usdcBalanceMicros } from './usdc.ts';

export interface Holdings {
  usdcMicros: bigint;
  ethWei: bigint;
}

/** The gift before, by node: of two at once from one account, both may take the same nonce. */
const giving = new Map<string, Promise<unknown>>();

/**
 * Sends USDC and ETH from the faucet, and returns what the wallet then holds.
 *
 * @param places of the chain that the node makes
 * @throws when the chain does not answer or the faucet has run dry
 */
export function fund(
  rpcUrl: string,
  wallet: Address,
  gift: Holdings,
  places: Places = BASE,
): Promise<Holdings> {
  const given = (giving.get(rpcUrl) ?? Promise.resolve()).then(() => give(rpcUrl, wallet, gift, places));
  const ended = given.catch(() => undefined);
  giving.set(rpcUrl, ended);
  void ended.then(() => {
    if (giving.get(rpcUrl) === ended) giving.delete(rpcUrl);
  });
  return given;
}

/** Nodes say so of a transaction whose nonce somebody else has taken by then. */
const NONCE_IS_TAKEN = /nonce|underpriced|already (known|imported)/i;
const MOST_TRIES = 50;
const LONGEST_PAUSE_MS = 100;

/** Another process may give at the same time, and take the nonce that the node has told this one. */
async function untilNonceIsFree(send: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await send();
      return;
    } catch (error) {
      if (tries >= MOST_TRIES || !NONCE_IS_TAKEN.test(String(error))) throw error;
      await pause(Math.random() * LONGEST_PAUSE_MS);
    }
  }
}

async function give(rpcUrl: string, wallet: Address, gift: Holdings, places: Places): Promise<Holdings> {
  const node = connect(rpcUrl, places);
  const { address: faucet } = BUILDERS.faucet;
  await untilNonceIsFree(() => transferUsdc(node, faucet, wallet, gift.usdcMicros));
  await untilNonceIsFree(() => transact(node, { from: faucet, to: wallet, value: gift.ethWei }));
  return {
    usdcMicros: await usdcBalanceMicros(node, wallet),
    ethWei: await node.getBalance({ address: wallet }),
  };
}
