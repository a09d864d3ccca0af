import type { Source } from '@farebox/core/words/answer';
import { llamaToken } from '../../../upstreams/adapters/defillama.ts';
import { type EvmChainName, evmChainFacts } from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';

/** An older price, or one with little confidence of its source, is not used. */
const OLDEST_PRICE_MS = 3_600_000;
const LEAST_CONFIDENCE = 0.9;

export interface UsdPrice {
  /** Null when no price is known, or only one that is too old or unreliable. */
  usd: number | null;
  symbol: string | null;
}

export interface UsdPrices {
  /** By DefiLlama's name of the coin. */
  of(coin: string): UsdPrice;
  /** `asOf` is the time of the oldest price. */
  source: Source;
}

/** DefiLlama's name of a chain's own coin. */
export function nativeCoin(chain: EvmChainName | 'solana'): string {
  return `coingecko:${chain === 'solana' ? 'solana' : evmChainFacts(chain).nativeCoinId}`;
}

/**
 * The coins that are asked for together on a chain: its own and the listed tokens. Asking for all of them, whatever
 * the wallet holds, is one address that every caller's answer comes from.
 */
export function listedCoins(chain: EvmChainName): string[] {
  return [nativeCoin(chain), ...evmChainFacts(chain).tokens.map(({ address }) => llamaToken(chain, address))];
}

/** Current prices in USD, from DefiLlama. */
export async function usdPrices(
  coins: readonly string[],
  { defillama }: Pick<Upstreams, 'defillama'>,
  nowMs: number,
): Promise<UsdPrices> {
  const { value, source } = await defillama.currentPrices(coins);
  const prices = new Map<string, UsdPrice>();
  let oldestMs = Number.POSITIVE_INFINITY;
  for (const [coin, { price, symbol, timestamp, confidence }] of Object.entries(value.coins)) {
    const atMs = timestamp * 1_000;
    const usable = nowMs - atMs <= OLDEST_PRICE_MS && (confidence ?? 1) >= LEAST_CONFIDENCE;
    prices.set(coin, { usd: usable ? price : null, symbol });
    if (usable) oldestMs = Math.min(oldestMs, atMs);
  }
  const asOf = Number.isFinite(oldestMs) ? new Date(oldestMs).toISOString() : null;
  return {
    of: (coin) => prices.get(coin) ?? { usd: null, symbol: null },
    source: { ...source, asOf },
  };
}
