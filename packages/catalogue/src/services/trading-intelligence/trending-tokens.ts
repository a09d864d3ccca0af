import { chainName, limit, outsiderText, text } from '@farebox/core/service/fields';
import type { Answer, Source } from '@farebox/core/words/answer';
import type { ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import {
  TRENDING_WINDOWS,
  type TrendingPool,
  type TrendingWindow,
} from '../../upstreams/adapters/geckoterminal.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import { pricedAnswer } from '../figures.ts';

/** Pools come 20 a page, and several pools may have the same token. */
const MAX_PAGES = 4;
const DEFAULT_WINDOW: TrendingWindow = '24h';

const usd = z.number().nonnegative().nullable();
const output = z.object({
  tokens: z
    .array(
      z.object({
        rank: z.number().int().describe('1 is the first'),
        symbol: outsiderText(60).nullable().describe('Ticker; null where nobody knows it'),
        name: outsiderText(100).nullable().describe('Name of the token; null where nobody knows it'),
        address: z.string().nullable().describe('Null for a coin without a home among the chains'),
        chain: outsiderText(60).nullable().describe("Our chain name, or the source's for other chains"),
        priceUsd: usd.describe('Price of one in USD'),
        change24h: z.number().nullable().describe('Percent'),
        volume24h: usd.describe('USD; of the trending pool only, where reason names one'),
        liquidityUsd: usd.describe('Of the trending pool'),
        reason: outsiderText(300).describe('Why it is in the list'),
        paidPromotion: z
          .boolean()
          .nullable()
          .describe(
            'Whether it is among the tokens with the most paid boosts on DexScreener; null if not known',
          ),
      }),
    )
    .describe('The tokens, by rank'),
  count: z.number().int().describe('How many are in the list'),
  chain: z.string().nullable().describe('Null for all chains'),
  window: z.string().describe('The time that was counted'),
});
type Fields = z.input<typeof output>;

export default defineService({
  path: 'trending-tokens',
  name: 'Trending Tokens Feed',
  tag: 'Trading Intelligence',
  priceUsd: '0.50',
  summary:
    'Tokens that trend on decentralized exchanges now, by trading and attention, paid promotion marked as such.',
  keywords:
    'trending hot popular meme memecoin memecoins coins new gainers movers viral pumping listed launch launches top today everyone buying discover hype dexes',
  input: z.object({
    chain: chainName.optional().describe('Only this chain; all chains unless given'),
    limit: limit(10, 50),
    timeframe: text(10, 'Window of the ranking: 5m, 1h, 6h or 24h; 24h unless given').optional(),
  }),
  output,
  example: { chain: 'base', limit: 10 },
  aliases: { network: 'chain', chainId: 'chain', count: 'limit', window: 'timeframe' },
  needs: [['geckoterminal', 'coingecko']],
  uses: ['dexscreener'],
  async run({ chain, limit, timeframe }, { upstreams }) {
    const notes: string[] = [];
    const window = TRENDING_WINDOWS.find((one) => one === timeframe?.toLowerCase()) ?? DEFAULT_WINDOW;
    if (timeframe !== undefined && window !== timeframe.toLowerCase()) {
      notes.push(`No source ranks over ${timeframe}; ${window} was used.`);
    }
    try {
      return await fromPools(chain ?? null, limit, window, notes, upstreams);
    } catch (error) {
      // CoinGecko's list is not by chain, so it can only replace the list of all chains.
      if (!(error instanceof UpstreamUnavailable) || chain !== undefined) throw error;
      notes.push(
        `GeckoTerminal did not answer (${error.reason}): these are CoinGecko's most searched coins instead.`,
      );
      return fromSearches(limit, notes, upstreams);
    }
  },
});

async function fromPools(
  chain: ChainName | null,
  limit: number,
  window: TrendingWindow,
  notes: string[],
  upstreams: Pick<Upstreams, 'geckoterminal' | 'dexscreener'>,
): Promise<Answer<Fields>> {
  const byToken = new Map<string, TrendingPool>();
  const sources: Source[] = [];
  for (let page = 1; page <= MAX_PAGES && byToken.size < limit; page++) {
    const { value, source } = await upstreams.geckoterminal.trendingPools(chain, page, window);
    if (value === null)
      throw noAnswer('CHAIN_NOT_COVERED', `GeckoTerminal does not cover ${chain}.`, 'chain');
    sources.push(source);
    for (const pool of value) {
      const key = keyOf(pool.chain, pool.base.address);
      // The first pool of a token is the one that trends most.
      if (!byToken.has(key)) byToken.set(key, pool);
    }
    if (value.length === 0) break;
  }
  const { promoted, source: boostSource, note } = await paidBoosts(upstreams);
  if (note !== null) notes.push(note);
  if (boostSource !== null) sources.push(boostSource);
  const tokens = [...byToken].slice(0, limit).map(([key, pool], index) => ({
    rank: index + 1,
    symbol: pool.base.symbol,
    name: pool.base.name,
    address: pool.base.address,
    chain: pool.chain,
    priceUsd: pool.basePriceUsd,
    change24h: pool.baseChange24hPercent,
    volume24h: pool.volume24hUsd,
    liquidityUsd: pool.liquidityUsd,
    reason: `its pool ${pool.poolName} trends on GeckoTerminal`,
    paidPromotion: promoted?.has(key) ?? null,
  }));
  if (tokens.length < limit) notes.push(`Only ${tokens.length} tokens trend there now.`);
  return pricedAnswer(
    { tokens, count: tokens.length, chain, window },
    {
      method: `GeckoTerminal's trending pools over ${window}, in its order, one entry per base token. Paid boosts do not rank.`,
      sources,
      notes,
    },
  );
}

async function fromSearches(
  limit: number,
  notes: string[],
  { coingecko }: Pick<Upstreams, 'coingecko'>,
): Promise<Answer<Fields>> {
  const { value, source } = await coingecko.trendingCoins();
  const tokens = value.slice(0, limit).map((coin, index) => ({
    rank: index + 1,
    symbol: coin.symbol,
    name: coin.name,
    address: null,
    chain: null,
    priceUsd: coin.priceUsd,
    change24h: coin.change24hPercent,
    volume24h: coin.volume24hUsd,
    liquidityUsd: null,
    reason: 'among the most searched coins on CoinGecko in the last 24 hours',
    paidPromotion: null,
  }));
  if (tokens.length < limit) notes.push(`CoinGecko's list has ${tokens.length} coins.`);
  notes.push(
    'address, chain, liquidityUsd and paidPromotion are null: this list is of coins, not of tokens at addresses.',
  );
  return pricedAnswer(
    { tokens, count: tokens.length, chain: null, window: '24h' },
    { method: "CoinGecko's search trends of the last 24 hours, in its order.", sources: [source], notes },
  );
}

/** Tokens whose promotion was paid for. This only marks the list; if it is unavailable, the marks are null. */
async function paidBoosts({ dexscreener }: Pick<Upstreams, 'dexscreener'>): Promise<{
  promoted: Set<string> | null;
  source: Source | null;
  note: string | null;
}> {
  try {
    const { value, source } = await dexscreener.paidBoosts();
    return {
      promoted: new Set(value.map(({ chain, address }) => keyOf(chain, address))),
      source,
      note: null,
    };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    return {
      promoted: null,
      source: null,
      note: `paidPromotion is null: DexScreener did not answer (${error.reason}).`,
    };
  }
}

function keyOf(chain: string, address: string): string {
  return `${chain}:${address.startsWith('0x') ? address.toLowerCase() : address}`;
}
