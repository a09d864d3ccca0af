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

/**
 * Sends USDC and ETH from the faucet, and returns what the wallet then holds.
 *
 * @param places of the chain that the node makes
 * @throws when the chain does not answer or the faucet has run dry
 */
export async function fund(
  rpcUrl: string,
  wallet: Address,
  gift: Holdings,
  places: Places = BASE,
): Promise<Holdings> {
  const node = connect(rpcUrl, places);
  const { address: faucet } = BUILDERS.faucet;
  await transferUsdc(node, faucet, wallet, gift.usdcMicros);
  await transact(node, { from: faucet, to: wallet, value: gift.ethWei });
  return {
    usdcMicros: await usdcBalanceMicros(node, wallet),
    ethWei: await node.getBalance({ address: wallet }),
  };
}
