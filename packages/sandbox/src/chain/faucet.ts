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

/** The latest gift, by the node's URL. The next one waits for it: two at once from one account may get the same nonce. */
const giving = new Map<string, Promise<unknown>>();

/**
 * Sends USDC and ETH from the faucet, and returns what the wallet then holds.
 *
 * @param places the contracts of the node's chain
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

/** Matches the errors with which a node refuses a transaction whose nonce another transaction has taken. */
const NONCE_IS_TAKEN = /nonce|underpriced|already (known|imported)/i;
const MOST_TRIES = 50;
const LONGEST_PAUSE_MS = 100;

/** Sends again while the nonce is taken: another process may give at the same time and get the same nonce. */
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
