import type { Source } from '@farebox/core/words/answer';
import type { ChainName } from '@farebox/core/words/chain-names';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { llamaToken } from '../../../upstreams/adapters/defillama.ts';
import { type EvmChainName, evmChainFacts } from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import { dexMarketOf } from '../market/dex-market.ts';

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
  /** One for each request; `asOf` is the time of the oldest price. The first is that of `together`. */
  sources: readonly [Source, ...Source[]];
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

/** Coins in one request: their names stand in its address. */
const COINS_PER_REQUEST = 60;

/**
 * Current prices in USD, from DefiLlama.
 *
 * @param together those that are asked for in a request of their own, which other answers share
 */
export async function usdPrices(
  coins: readonly string[],
  { defillama }: Pick<Upstreams, 'defillama'>,
  nowMs: number,
  together: readonly string[] = [],
): Promise<UsdPrices> {
  const known = new Set(together);
  const others = coins.filter((coin) => !known.has(coin));
  const requests: (readonly string[])[] = together.length > 0 ? [together] : [];
  for (let at = 0; at < others.length; at += COINS_PER_REQUEST)
    requests.push(others.slice(at, at + COINS_PER_REQUEST));
  const [first = [], ...more] = requests;
  const replies = await Promise.all([
    defillama.currentPrices(first),
    ...more.map((some) => defillama.currentPrices(some)),
  ] as const);
  const prices = new Map<string, UsdPrice>();
  let oldestMs = Number.POSITIVE_INFINITY;
  for (const { value } of replies) {
    for (const [coin, { price, symbol, timestamp, confidence }] of Object.entries(value.coins)) {
      const atMs = timestamp * 1_000;
      const usable = nowMs - atMs <= OLDEST_PRICE_MS && (confidence ?? 1) >= LEAST_CONFIDENCE;
      prices.set(coin, { usd: usable ? price : null, symbol });
      if (usable) oldestMs = Math.min(oldestMs, atMs);
    }
  }
  const asOf = Number.isFinite(oldestMs) ? new Date(oldestMs).toISOString() : null;
  return {
    of: (coin) => prices.get(coin) ?? { usd: null, symbol: null },
    sources: [{ ...replies[0].source, asOf }, ...replies.slice(1).map(({ source }) => ({ ...source, asOf }))],
  };
}

/** The most tokens that DexScreener takes in one request. */
const MOST_SECOND_PRICES = 30;
/** A shallower pool can be moved by whoever wants another price to be believed. */
const LEAST_LIQUIDITY_USD = 25_000;

/** Prices by pools, in USD, by the address of the token in lower case (as written on Solana). */
export interface PoolPrices {
  of(address: string): number | null;
  source: Source | null;
  notes: string[];
}

/**
 * A second price of tokens: by the deepest pool of each, from DexScreener.
 *
 * @param addresses the most valuable first: beyond the thirtieth none is asked for
 * @returns without prices, and saying so, where DexScreener is not configured or does not answer
 */
export async function poolPrices(
  chain: ChainName,
  addresses: readonly string[],
  { dexscreener }: Pick<Upstreams, 'dexscreener'>,
): Promise<PoolPrices> {
  if (addresses.length === 0) return { of: () => null, source: null, notes: [] };
  const asked = addresses.slice(0, MOST_SECOND_PRICES);
  try {
    const { value, source } = await dexscreener.pairsOfTokens(chain, asked);
    const pairs = value.filter((pair) => pair.chain === chain);
    const prices = new Map<string, number>();
    for (const address of asked) {
      const market = dexMarketOf(pairs, address);
      if (market?.priceUsd != null && market.liquidityUsd >= LEAST_LIQUIDITY_USD)
        prices.set(address.toLowerCase(), market.priceUsd);
    }
    const left = addresses.length - asked.length;
    return {
      of: (address) => prices.get(address.toLowerCase()) ?? null,
      source,
      notes: left > 0 ? [`${left} tokens on ${chain} were priced by one source alone.`] : [],
    };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    return {
      of: () => null,
      source: null,
      notes: [
        `Prices on ${chain} are of one source alone: DexScreener is ${error.reason.replaceAll('_', ' ')}.`,
      ],
    };
  }
}

/** Two sources whose prices differ by more do not speak of the same market. */
const MOST_DIFFERENCE = 0.05;

/** How far the sources of a price agree. */
export type PriceAgreement = 'agree' | 'disagree' | 'one_source';

export interface SettledPrice {
  /** The lower of two that disagree. */
  usd: number | null;
  /** Null without any price. */
  agreement: PriceAgreement | null;
  /** Each price, by the name of its source. */
  by: { source: 'defillama' | 'dexscreener'; priceUsd: number }[];
}

/** One price of two. Where they disagree the lower one counts, and both are told. */
export function settledPrice(defillama: number | null, dexscreener: number | null): SettledPrice {
  const by: SettledPrice['by'] = [];
  if (defillama !== null) by.push({ source: 'defillama', priceUsd: defillama });
  if (dexscreener !== null) by.push({ source: 'dexscreener', priceUsd: dexscreener });
  if (defillama === null || dexscreener === null) {
    const usd = defillama ?? dexscreener;
    return { usd, agreement: usd === null ? null : 'one_source', by };
  }
  const lower = Math.min(defillama, dexscreener);
  const differs = Math.abs(defillama - dexscreener) > MOST_DIFFERENCE * lower;
  return { usd: differs ? lower : defillama, agreement: differs ? 'disagree' : 'agree', by };
}
