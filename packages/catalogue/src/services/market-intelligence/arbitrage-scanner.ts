import { numberBetween } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { noAnswer, sourceUnavailable, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { type Crossing, cross } from '../../quant/arbitrage.ts';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import { pricedAnswer } from '../figures.ts';
import {
  type Dollars,
  dexVenue,
  type ExchangeName,
  exchangeVenue,
  TAKER_FEES_PERCENT,
  type Venue,
} from '../shared/market/trading-venues.ts';
import { chainList } from '../shared/wallet/wallet-chains.ts';

const EXCHANGE_NAMES = ['binance', 'kraken', 'coinbase'] as const satisfies readonly ExchangeName[];
const DEFAULT_ASSETS = ['BTC', 'ETH', 'SOL'];
/** Offers older than this may no longer be there. */
const OLDEST_QUOTE_MS = 5_000;
const STABLE_COINS = { USDT: 'coingecko:tether', USDC: 'coingecko:usd-coin' } as const;

const list = (value: unknown) => (typeof value === 'string' ? value.split(',') : value);
const ticker = z
  .string()
  .trim()
  .toUpperCase()
  .transform((written) => written.replace(/^\$/, '').replace(/[/-](USD|USDT|USDC)$/, ''))
  .pipe(z.string().regex(/^[A-Z0-9]{1,12}$/, 'must be a ticker such as ETH'));
const fee = (name: ExchangeName) =>
  numberBetween(
    0,
    10,
    `Your taker fee there in percent; ${TAKER_FEES_PERCENT[name]} unless given`,
  ).optional();
const usd = z.number();

export default defineService({
  path: 'arbitrage-scanner',
  name: 'Arbitrage Scanner',
  tag: 'Market Intelligence',
  priceUsd: '1.25',
  summary:
    'Finds where an asset can be bought for less than it sells for elsewhere: order books and Uniswap, after fees and gas.',
  keywords:
    'arbitrage price difference differences cheaper buy low sell high exchange exchanges profit riskless gap spread binance coinbase kraken opportunity mispriced between markets',
  input: z.object({
    minProfitPercent: numberBetween(
      -100,
      1_000,
      'Least profit after fees and gas, in percent of the capital',
    ).default(0.5),
    chains: chainList('Chains whose Uniswap is compared, too; all that are configured unless given'),
    assets: z
      .preprocess(list, z.array(ticker).min(1).max(5))
      .transform((names) => [...new Set(names)])
      .default(DEFAULT_ASSETS)
      .describe('1 to 5 tickers; BTC, ETH and SOL unless given'),
    capitalUSD: numberBetween(10, 10_000_000, 'The most that buying may take, in USD').default(10_000),
    takerFeePercent: z
      .object({ binance: fee('binance'), kraken: fee('kraken'), coinbase: fee('coinbase') })
      .default({})
      .describe('Your own fees; those of the first tier unless given'),
  }),
  output: z.object({
    opportunities: z
      .array(
        z.object({
          asset: z.string().describe('The asset'),
          buyChain: z.string().nullable().describe('Null for an exchange'),
          sellChain: z.string().nullable().describe('Null for an exchange'),
          buyExchange: z.string().describe('Where to buy'),
          sellExchange: z.string().describe('Where to sell'),
          buyPriceUSD: usd.describe('Mean of what is taken from the book'),
          sellPriceUSD: usd.describe('Mean of what the book pays'),
          profitPercentage: z.number().describe('Before fees and gas'),
          netProfitPercentage: z.number().describe('After fees and gas, of the capital'),
          estimatedProfit: usd.describe('After fees and gas'),
          requiredCapital: usd.describe('What buying takes, fees included'),
          size: z.number().describe('Units of the asset'),
          depth: z
            .object({
              buyLevels: z.number().int().describe('Price levels taken on the buying side'),
              sellLevels: z.number().int().describe('Price levels taken on the selling side'),
              limitedBy: z.enum(['price', 'depth', 'capital']).describe('Why it is not more'),
            })
            .describe('How much of the books it takes'),
          gasEstimate: usd.describe('Gas in USD'),
          feesEstimate: usd.describe('Fees in USD'),
          executionPath: z.array(z.string()).describe('What to do, in order'),
        }),
      )
      .describe('Ways that pay after fees and gas, the best first'),
    totalOpportunities: z.number().int().describe('How many ways pay'),
    scannedPairs: z.number().int().describe('Ways from one venue to another that were compared'),
    quotes: z
      .array(
        z.object({
          asset: z.string().describe('The asset'),
          venue: z.string().describe('The exchange'),
          chain: z.string().nullable().describe('Null for an exchange without one'),
          instrument: z.string().describe('The pair or pool there'),
          bestBidUSD: usd.describe('Highest bid in USD'),
          bestAskUSD: usd.describe('Lowest ask in USD'),
          takerFeePct: z.number().describe('Fee of a trade, in percent'),
          gasUSD: usd.nullable().describe('Gas of a trade in USD; null without a chain'),
        }),
      )
      .describe('The best prices that were compared'),
    bestNetProfitPercentage: z
      .number()
      .nullable()
      .describe('Of all ways that were compared, also of those that lose'),
    unavailable: z
      .array(z.object({ asset: z.string().describe('The asset'), reason: z.string().describe('Why not') }))
      .describe('Assets that could not be compared'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { minProfitPercent: 0.5, assets: ['ETH'], capitalUSD: 10_000 },
  aliases: {
    minProfitPct: 'minProfitPercent',
    minSpreadPercent: 'minProfitPercent',
    minProfit: 'minProfitPercent',
    asset: 'assets',
    token: 'assets',
    tokens: 'assets',
    symbol: 'assets',
    symbols: 'assets',
    chain: 'chains',
    capital: 'capitalUSD',
    amountUsd: 'capitalUSD',
  },
  needs: [EXCHANGE_NAMES],
  uses: ['defillama', ...EVM_CHAIN_NAMES],
  timeoutMs: 25_000,
  async run(input, { upstreams, nowMs }) {
    const { dollars, source: dollarSource } = await dollarsOf(upstreams);
    const fees = { ...TAKER_FEES_PERCENT, ...input.takerFeePercent };
    const chains = EVM_CHAIN_NAMES.filter(
      (name) => input.chains === undefined || input.chains.length === 0 || input.chains.includes(name),
    );
    const scans = await Promise.all(
      input.assets.map(async (asset) => {
        const heard = await Promise.all(
          EXCHANGE_NAMES.map((name) =>
            exchangeVenue(name, asset, fees[name] ?? TAKER_FEES_PERCENT[name], dollars, upstreams),
          ),
        );
        const priceUsd = heard.find((venue) => typeof venue === 'object')?.asks[0]?.priceUsd;
        const swaps =
          priceUsd === undefined
            ? []
            : await Promise.all(
                chains.map((name) =>
                  dexVenue(name, asset, input.capitalUSD, priceUsd, dollars, upstreams, nowMs()),
                ),
              );
        const all = [...heard, ...swaps].filter((venue) => venue !== null);
        return {
          asset,
          venues: all.filter((venue) => typeof venue === 'object'),
          missing: all.filter((one) => typeof one === 'string'),
        };
      }),
    );
    if (scans.every(({ venues }) => venues.length === 0)) {
      const [missing = []] = scans.map((scan) => scan.missing);
      if (missing.some((reason) => reason.includes('did not answer'))) {
        throw sourceUnavailable('exchanges', 'upstream_down', `No venue has a book: ${missing.join('; ')}.`);
      }
      throw noAnswer(
        'NO_MARKET',
        `No venue trades ${input.assets.join(', ')}: ${missing.join('; ')}.`,
        'assets',
      );
    }

    const now = nowMs();
    const notes: string[] = [];
    const sources = new Map<string, Source>();
    if (dollarSource !== null) sources.set(dollarSource.url, dollarSource);
    const ways: {
      asset: string;
      buy: Venue;
      sell: Venue;
      made: Crossing;
      gasUsd: number;
      netUsd: number;
      netPercent: number;
    }[] = [];
    let scannedPairs = 0;
    for (const { asset, venues } of scans) {
      for (const venue of venues) {
        for (const source of venue.sources) sources.set(source.url, source);
        notes.push(...venue.notes);
        if (venue.gasUsd === null)
          notes.push(`${venue.name}: what a swap costs in gas is not known, so it is not compared.`);
      }
      for (const buy of venues) {
        for (const sell of venues) {
          if (buy === sell || buy.gasUsd === null || sell.gasUsd === null) continue;
          if (isOld(buy, now) || isOld(sell, now)) {
            notes.push(
              `${asset}: a quote of ${buy.name} or ${sell.name} is older than ${OLDEST_QUOTE_MS / 1_000} s, so they are not compared.`,
            );
            continue;
          }
          const made = cross(buy.asks, sell.bids, { buy: buy.fee, sell: sell.fee }, input.capitalUSD);
          if (made === null) continue;
          scannedPairs += 1;
          const gasUsd = buy.gasUsd + sell.gasUsd;
          const netUsd = made.profitUsd - gasUsd;
          const capital = made.costUsd * (1 + buy.fee);
          ways.push({ asset, buy, sell, made, gasUsd, netUsd, netPercent: (netUsd / capital) * 100 });
        }
      }
    }
    ways.sort((a, b) => b.netPercent - a.netPercent);
    const found = ways.filter(({ netPercent }) => netPercent >= input.minProfitPercent);
    if (found.length === 0) notes.push('Nothing reaches minProfitPercent: that is how markets mostly are.');
    notes.push(
      'It is assumed that asset and money lie on both venues already: nothing for moving them between is in the profit.',
      'Exchange fees are those given, or of the first tier; pool fees are in the quotes.',
    );
    return pricedAnswer(
      {
        opportunities: found.map(({ asset, buy, sell, made, gasUsd, netUsd, netPercent }) => ({
          asset,
          buyChain: buy.chain,
          sellChain: sell.chain,
          buyExchange: buy.name,
          sellExchange: sell.name,
          buyPriceUSD: made.costUsd / made.size,
          sellPriceUSD: made.proceedsUsd / made.size,
          profitPercentage: (made.proceedsUsd / made.costUsd - 1) * 100,
          netProfitPercentage: netPercent,
          estimatedProfit: netUsd,
          requiredCapital: made.costUsd * (1 + buy.fee),
          size: made.size,
          depth: { buyLevels: made.buyLevels, sellLevels: made.sellLevels, limitedBy: made.limitedBy },
          gasEstimate: gasUsd,
          feesEstimate: made.feesUsd,
          executionPath: [
            `Buy ${made.size} of ${buy.instrument} on ${buy.name}`,
            `At the same time sell as much of ${sell.instrument} on ${sell.name}`,
            'Later move what was bought, and the money, back to where they were',
          ],
        })),
        totalOpportunities: found.length,
        scannedPairs,
        quotes: scans.flatMap(({ asset, venues }) =>
          venues.map((venue) => ({
            asset,
            venue: venue.name,
            chain: venue.chain,
            instrument: venue.instrument,
            bestBidUSD: venue.bids[0]?.priceUsd ?? Number.NaN,
            bestAskUSD: venue.asks[0]?.priceUsd ?? Number.NaN,
            takerFeePct: venue.fee * 100,
            gasUSD: venue.gasUsd,
          })),
        ),
        bestNetProfitPercentage: ways[0]?.netPercent ?? null,
        unavailable: scans.flatMap(({ asset, missing }) => missing.map((reason) => ({ asset, reason }))),
        disclaimer: `Information as of ${new Date(now).toISOString()}, by the rules in provenance.method. Offers are gone in moments. Not advice.`,
      },
      {
        method:
          'For each two venues: offers are taken from the book of one and the bids of the other while a further unit gains after ' +
          'taker fees, up to capitalUSD; gas of swaps is taken off. Uniswap v3 is quoted at five sizes by QuoterV2. Quotes older ' +
          `than ${OLDEST_QUOTE_MS / 1_000} s are not compared; last-trade prices are not used. Stablecoins count at their price in USD.`,
        sources: [...sources.values()],
        notes: [...new Set(notes)],
      },
    );
  },
});

/**
 * Judges an exchange's book by when it came, and a chain's quotes by when they were asked, because the next block
 * builds on theirs.
 */
function isOld({ sources, chain }: Venue, nowMs: number): boolean {
  const [book] = sources;
  return chain === null && book !== undefined && nowMs - Date.parse(book.retrievedAt) > OLDEST_QUOTE_MS;
}

async function dollarsOf({
  defillama,
}: Pick<Upstreams, 'defillama'>): Promise<{ dollars: Dollars; source: Source | null }> {
  try {
    const { value, source } = await defillama.currentPrices(Object.values(STABLE_COINS));
    const of = (coin: string) => value.coins[coin]?.price ?? null;
    return { dollars: { USD: 1, USDT: of(STABLE_COINS.USDT), USDC: of(STABLE_COINS.USDC) }, source };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    return { dollars: { USD: 1, USDT: null, USDC: null }, source: null };
  }
}
