/** What payers hold of what they pay with. */
import { encodeFunctionData, erc20Abi, type Hex } from 'viem';
import { type Rpc, RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import type { OnChainPayment } from '../../paid-call/rail.ts';

/** In the asset's base units. @throws when the node does not say */
export type BalanceOf = (payment: OnChainPayment) => Promise<bigint>;

/** Of the payer itself, on a chain with ERC-20 tokens. */
export function tokenBalanceOn(rpc: Pick<Rpc, 'call'>): BalanceOf {
  return async ({ asset, payer }) => {
    const data = encodeFunctionData({ abi: erc20Abi, functionName: 'balanceOf', args: [payer as Hex] });
    const held = await rpc.call('eth_call', [{ to: asset, data }, 'latest']);
    if (typeof held !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(held))
      throw new Error('the node sent no balance');
    return BigInt(held);
  };
}

/** Of the account that the money leaves, on Solana. */
export function accountBalanceOn(rpc: Pick<Rpc, 'call'>): BalanceOf {
  return async ({ evidence }) => {
    try {
      const { value } = (await rpc.call('getTokenAccountBalance', [
        evidence.source,
        { commitment: 'confirmed' },
      ])) as { value: { amount: string } };
      return BigInt(value.amount);
    } catch (error) {
      // An account that was never made holds nothing.
      if (error instanceof RpcRefusal) return 0n;
      throw error;
    }
  };
}
