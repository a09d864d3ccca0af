import type { Source } from '@farebox/core/words/answer';
import type { ChainName } from '@farebox/core/words/chain-names';
import type { CoinMarket } from '../../../upstreams/adapters/coingecko.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import { dexMarketOf, MIN_POOL_USD } from './dex-market.ts';

/** What one source states about a token; null for what it does not state. Amounts in USD. */
export interface TokenQuote {
  source: Source;
  price: number | null;
  /** Percent. */
  change24h: number | null;
  volume24h: number | null;
  marketCap: number | null;
  liquidityUsd: number | null;
  symbol: string | null;
  name: string | null;
  /** The reason to prefer another source's price; null when there is none. */
  doubt: string | null;
  /** What a reader of its figures should know. */
  notes: string[];
}

const OLDEST_SURE_PRICE_MS = 3_600_000;
const LEAST_SURE_CONFIDENCE = 0.9;

const SILENT: Omit<TokenQuote, 'source'> = {
  price: null,
  change24h: null,
  volume24h: null,
  marketCap: null,
  liquidityUsd: null,
  symbol: null,
  name: null,
  doubt: null,
  notes: [],
};

/** DefiLlama's price of a coin, by its name for it; null when it is unknown there. */
export async function llamaPrice(
  coin: string,
  { defillama }: Pick<Upstreams, 'defillama'>,
  nowMs: number,
): Promise<TokenQuote | null> {
  const { value, source } = await defillama.currentPrices([coin]);
  const known = value.coins[coin];
  if (known === undefined) return null;
  const ageMs = nowMs - known.timestamp * 1_000;
  const doubts: string[] = [];
  if (ageMs > OLDEST_SURE_PRICE_MS) doubts.push(`is ${Math.floor(ageMs / 60_000)} minutes old`);
  if (known.confidence !== undefined && known.confidence < LEAST_SURE_CONFIDENCE) {
    doubts.push(`has a confidence of only ${known.confidence}`);
  }
  return {
    ...SILENT,
    source: { ...source, asOf: new Date(known.timestamp * 1_000).toISOString() },
    price: known.price,
    symbol: known.symbol,
    doubt: doubts.length === 0 ? null : `DefiLlama's price ${doubts.join(' and ')}.`,
  };
}

/** DefiLlama's change of a coin over 24 hours; null when it is unknown there. */
export async function llamaChange(
  coin: string,
  { defillama }: Pick<Upstreams, 'defillama'>,
): Promise<TokenQuote | null> {
  const { value, source } = await defillama.changes24h([coin]);
  const change24h = value.coins[coin];
  return change24h === undefined ? null : { ...SILENT, source, change24h };
}

/** The token's pools on decentralized exchanges; null when it has none worth counting. */
export async function dexQuote(
  chain: ChainName,
  address: string,
  { dexscreener }: Pick<Upstreams, 'dexscreener'>,
): Promise<TokenQuote | null> {
  const { value, source } = await dexscreener.pairsOf(chain, address);
  const market = dexMarketOf(value, address);
  if (market === null) return null;
  const notes = [
    `volume24h of DexScreener is the sum over ${market.pools} DEX pool(s) of at least ${MIN_POOL_USD} USD on ${chain}; ` +
      'trading elsewhere is not in it.',
  ];
  if (market.marketCapIsFullyDiluted) {
    notes.push(
      "DexScreener's market cap is not used: it equals the fully diluted value, so it may not know the circulating supply.",
    );
  }
  return {
    source,
    price: market.priceUsd,
    change24h: market.change24hPercent,
    volume24h: market.volume24hUsd,
    marketCap: market.marketCapIsFullyDiluted ? null : market.marketCapUsd,
    liquidityUsd: market.liquidityUsd,
    symbol: market.symbol,
    name: market.name,
    doubt: null,
    notes,
  };
}

/** GeckoTerminal's figures of a token; null when it is unknown there. */
export async function geckoTerminalQuote(
  chain: ChainName,
  address: string,
  { geckoterminal }: Pick<Upstreams, 'geckoterminal'>,
): Promise<TokenQuote | null> {
  const { value, source } = await geckoterminal.tokenPrice(chain, address);
  if (value === null) return null;
  return {
    ...SILENT,
    source,
    price: value.priceUsd,
    change24h: value.change24hPercent,
    volume24h: value.volume24hUsd,
    marketCap: value.marketCapUsd,
  };
}

/** CoinGecko's figures of a token at its address; null when it is unknown there. */
export async function coinGeckoTokenQuote(
  chain: ChainName,
  address: string,
  { coingecko }: Pick<Upstreams, 'coingecko'>,
): Promise<TokenQuote | null> {
  const { value, source } = await coingecko.tokenMarket(chain, address);
  return value === null ? null : quoteOfMarket(value, source);
}

/** CoinGecko's figures of a coin by its id; null when it is unknown there. */
export async function coinGeckoQuote(
  id: string,
  { coingecko }: Pick<Upstreams, 'coingecko'>,
): Promise<TokenQuote | null> {
  const { value, source } = await coingecko.coinMarket(id);
  return value === null ? null : quoteOfMarket(value, source);
}

function quoteOfMarket(market: CoinMarket, source: Source): TokenQuote {
  return {
    ...SILENT,
    source: {
      ...source,
      asOf: market.updatedAtMs === null ? null : new Date(market.updatedAtMs).toISOString(),
    },
    price: market.priceUsd,
    change24h: market.change24hPercent,
    volume24h: market.volume24hUsd,
    marketCap: market.marketCapUsd,
  };
}
