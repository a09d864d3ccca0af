import type { DexPair } from '../../../upstreams/adapters/dexscreener.ts';

/** Pools with less are left out, because their prices and volumes are cheap to fake. */
export const MIN_POOL_USD = 1_000;

/** A token's market over the decentralized exchanges of one chain. Null where no pool says. */
export interface DexMarket {
  symbol: string | null;
  name: string | null;
  /** From the deepest pool. */
  priceUsd: number | null;
  change24hPercent: number | null;
  marketCapUsd: number | null;
  /** True when the market cap is only the fully diluted value under another name. */
  marketCapIsFullyDiluted: boolean;
  /** Sums over the pools. */
  volume24hUsd: number | null;
  liquidityUsd: number;
  pools: number;
}

/**
 * Sums up the pairs of a token, which may be either side of a pair. If it is the quote, its price follows from the
 * base's, and the pair's change and market cap are not used, because they are the base's.
 *
 * @returns null when no pool of the token holds `MIN_POOL_USD`
 */
export function dexMarketOf(pairs: readonly DexPair[], address: string): DexMarket | null {
  const deep = pairs
    .filter((pair) => (pair.liquidityUsd ?? 0) >= MIN_POOL_USD && sideOf(pair, address) !== null)
    .sort((a, b) => (b.liquidityUsd ?? 0) - (a.liquidityUsd ?? 0));
  const deepest = deep[0];
  if (deepest === undefined) return null;
  const asBase = deep.find((pair) => sideOf(pair, address) === 'base');
  const token = asBase?.base ?? deepest.quote;
  const volumes = deep.map(({ volume24hUsd }) => volume24hUsd).filter((volume) => volume !== null);
  return {
    symbol: token.symbol,
    name: token.name,
    priceUsd: deep.map((pair) => priceIn(pair, address)).find((price) => price !== null) ?? null,
    change24hPercent: asBase?.change24hPercent ?? null,
    marketCapUsd: asBase?.marketCapUsd ?? null,
    marketCapIsFullyDiluted:
      asBase !== undefined && asBase.marketCapUsd !== null && asBase.marketCapUsd === asBase.fdvUsd,
    volume24hUsd: volumes.length === 0 ? null : volumes.reduce((sum, volume) => sum + volume, 0),
    liquidityUsd: deep.reduce((sum, { liquidityUsd }) => sum + (liquidityUsd ?? 0), 0),
    pools: deep.length,
  };
}

function sideOf(pair: DexPair, address: string): 'base' | 'quote' | null {
  // Base58 is case-sensitive, but two addresses that differ only in case never meet in one answer.
  const wanted = address.toLowerCase();
  if (pair.base.address.toLowerCase() === wanted) return 'base';
  return pair.quote.address.toLowerCase() === wanted ? 'quote' : null;
}

function priceIn(pair: DexPair, address: string): number | null {
  if (pair.priceUsd === null) return null;
  if (sideOf(pair, address) === 'base') return pair.priceUsd;
  return pair.priceNative === null || pair.priceNative === 0 ? null : pair.priceUsd / pair.priceNative;
}
