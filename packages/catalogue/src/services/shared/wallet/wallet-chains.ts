import { chainName } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { CHAINS, type ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import { EVM_CHAIN_NAMES, type EvmChainName } from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';

export type EvmChains = Pick<Upstreams, EvmChainName>;

/** A chain with the newest block that it has. */
export interface ChainHead {
  chain: EvmChain;
  blockNumber: bigint;
  timestampMs: number;
  /** Wei. */
  baseFeePerGas: bigint;
  source: Source;
}

/** Several chains by name: a list, or text with commas. None given and an empty list both mean "all". */
export function chainList(description: string) {
  return z
    .preprocess(
      (value) => (typeof value === 'string' ? value.split(',') : typeof value === 'number' ? [value] : value),
      z.array(chainName).max(2 * CHAINS.length),
    )
    .transform((names) => [...new Set(names)])
    .optional()
    .describe(description);
}

/** @throws UpstreamUnavailable when the chain is not configured or cannot be reached */
export async function headOf(chain: EvmChain): Promise<ChainHead> {
  const { number, timestamp, baseFeePerGas } = await chain.client.getBlock();
  const timestampMs = Number(timestamp) * 1_000;
  return {
    chain,
    blockNumber: number,
    timestampMs,
    baseFeePerGas: baseFeePerGas ?? 0n,
    source: chain.source({ blockNumber: number, timestampMs }),
  };
}

/**
 * The chain that the caller named, with its newest block.
 *
 * @throws noAnswer, with the chains that could be named, when this is no EVM chain or is not configured here;
 *   UpstreamUnavailable when it cannot be reached
 */
export async function namedChain(name: ChainName, chains: EvmChains): Promise<ChainHead> {
  if (name === 'solana') {
    throw noAnswer('CHAIN_NOT_SUPPORTED', `solana is no EVM chain. ${await choice(chains)}`, 'chain');
  }
  try {
    return await headOf(chains[name]);
  } catch (error) {
    if (!isNotConfigured(error)) throw error;
    throw noAnswer(
      'CHAIN_NOT_CONFIGURED',
      `${name} is not configured here. ${await choice(chains)}`,
      'chain',
    );
  }
}

export function isNotConfigured(error: unknown): boolean {
  return error instanceof UpstreamUnavailable && error.reason === 'not_configured';
}

/** In words, the chains that can be named. */
export async function choice(chains: EvmChains): Promise<string> {
  const open = await Promise.all(
    EVM_CHAIN_NAMES.map((name) =>
      headOf(chains[name]).then(
        () => [name],
        (error: unknown) => (isNotConfigured(error) ? [] : [name]),
      ),
    ),
  );
  return `Configured are: ${open.flat().join(', ') || 'none'}.`;
}
