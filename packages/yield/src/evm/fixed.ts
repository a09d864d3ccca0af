/** The unchanging facts of a vault: the addresses of its token, its protocols and its helper, read once from the chain. */

import { unavailable } from '@farebox/core/http/problem';
import { type Address, getAddress, isAddressEqual } from 'viem';
import { PERMIT_DEPOSIT_ABI, USDC_ABI, VAULT_ABI } from '../contracts/abi.ts';
import { BASE } from '../contracts/base-chain.ts';
import type { ProtocolName } from '../contracts/protocols.ts';
import { chainUnavailable, isOutage, isRefusal, type Node } from './node.ts';

export const PROTOCOL_TITLES: Readonly<Record<ProtocolName, string>> = {
  aave: 'Aave v3',
  compound: 'Compound v3',
  morpho: 'Morpho (MetaMorpho)',
};

export const CHAIN_ID = BASE.id;

export interface Fixed {
  vault: Address;
  /** Null: there is none, and no deposit by permit. */
  permitDeposit: Address | null;
  name: string;
  shareToken: string;
  shareDecimals: number;
  usdc: Address;
  /** The EIP-712 domain that its permits are signed for. */
  usdcDomain: { name: string; version: string };
  /** The address that may mint USDC, or names those that may. */
  usdcMinter: Address;
  aavePool: Address;
  aToken: Address;
  comet: Address;
  metaMorpho: Address;
  maxEntryFeeBps: number;
  maxPerformanceFeeBps: number;
  feeDelaySeconds: number;
}

export interface Configured {
  vault: Address;
  permitDeposit: Address | null;
}

/**
 * Reads it the first time that somebody wants it, and again after a failure.
 *
 * @returns throws `Problem` 503 while the chain is silent, and when there is no such vault
 */
export function fixedOf({ chain }: Node, configured: Configured): () => Promise<Fixed> {
  let known: Promise<Fixed> | null = null;
  const read = async (): Promise<Fixed> => {
    const vault = getAddress(configured.vault);
    const permitDeposit = configured.permitDeposit === null ? null : getAddress(configured.permitDeposit);
    const ask = { address: vault, abi: VAULT_ABI } as const;
    const [chainId, facts] = await Promise.all([
      chain.getChainId(),
      chain.multicall({
        allowFailure: false,
        batchSize: 0,
        contracts: [
          { ...ask, functionName: 'asset' },
          { ...ask, functionName: 'aavePool' },
          { ...ask, functionName: 'aToken' },
          { ...ask, functionName: 'comet' },
          { ...ask, functionName: 'metaMorpho' },
          { ...ask, functionName: 'name' },
          { ...ask, functionName: 'symbol' },
          { ...ask, functionName: 'decimals' },
          { ...ask, functionName: 'MAX_ENTRY_FEE_BPS' },
          { ...ask, functionName: 'MAX_PERFORMANCE_FEE_BPS' },
          { ...ask, functionName: 'FEE_DELAY_SECONDS' },
        ],
      }),
    ]);
    if (chainId !== CHAIN_ID) throw misconfigured(`The node serves chain ${chainId}, not ${CHAIN_ID}.`);
    const [usdc, aavePool, aToken, comet, metaMorpho, name, shareToken, shareDecimals, ...limits] = facts;
    const [tokenName, version, usdcMinter] = await chain.multicall({
      allowFailure: false,
      contracts: [
        { address: usdc, abi: USDC_ABI, functionName: 'name' },
        { address: usdc, abi: USDC_ABI, functionName: 'version' },
        { address: usdc, abi: USDC_ABI, functionName: 'masterMinter' },
      ],
    });
    if (permitDeposit !== null) await assertDepositsInto(vault, chain, permitDeposit);
    const [maxEntryFeeBps, maxPerformanceFeeBps, feeDelaySeconds] = limits.map(Number);
    return {
      vault,
      permitDeposit,
      name,
      shareToken,
      shareDecimals,
      usdc,
      aavePool,
      aToken,
      comet,
      metaMorpho,
      usdcDomain: { name: tokenName, version },
      usdcMinter,
      maxEntryFeeBps: maxEntryFeeBps ?? 0,
      maxPerformanceFeeBps: maxPerformanceFeeBps ?? 0,
      feeDelaySeconds: feeDelaySeconds ?? 0,
    };
  };
  return () => {
    known ??= read().catch((error: unknown) => {
      known = null;
      if (isOutage(error) || isRefusal(error)) throw chainUnavailable(error);
      if (error instanceof Error && error.name === 'Problem') throw error;
      throw misconfigured('There is no such vault at YIELD_VAULT_ADDRESS on the chain.', error);
    });
    return known;
  };
}

/** @throws Problem when the helper that takes permits deposits into another vault */
async function assertDepositsInto(
  vault: Address,
  chain: Node['chain'],
  permitDeposit: Address,
): Promise<void> {
  const its = await chain.readContract({
    address: permitDeposit,
    abi: PERMIT_DEPOSIT_ABI,
    functionName: 'vault',
  });
  if (!isAddressEqual(its, vault))
    throw misconfigured('YIELD_PERMIT_DEPOSIT_ADDRESS deposits into another vault.');
}

/** A customer can do nothing about it, so the reason is for the log alone. */
function misconfigured(reason: string, cause?: unknown) {
  const message = 'The vault is not there as this server expects it. Nothing can be done with it here now.';
  return unavailable('VAULT_NOT_FOUND', message, 60_000, {}, new Error(reason, { cause }));
}
