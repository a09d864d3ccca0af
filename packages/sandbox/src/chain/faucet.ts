/** Gives sandbox money to a wallet on an EVM chain. */
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

async function give(rpcUrl: string, wallet: Address, gift: Holdings, places: Places): Promise<Holdings> {
  const node = connect(rpcUrl, places);
  const { address: faucet } = BUILDERS.faucet;
  await transferUsdc(node, faucet, wallet, gift.usdcMicros);
  await transact(node, { from: faucet, to: wallet, value: gift.ethWei });
  return {
    usdcMicros: await usdcBalanceMicros(node, wallet),
    ethWei: await node.getBalance({ address: wallet }),
  };
}
