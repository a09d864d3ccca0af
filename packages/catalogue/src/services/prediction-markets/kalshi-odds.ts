import { outsiderText } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { notFound } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { KalshiBookLevel, KalshiMarket } from '../../upstreams/adapters/kalshi.ts';
import { defineService, type RunContext } from '../define.ts';
import { gap, middle } from '../shared/questions/best-prices.ts';
import { bookDepth, depthOf } from '../shared/questions/book-depth.ts';
import { kalshiRecord, kalshiRecordOf } from '../shared/questions/kalshi-record.ts';

/** Some events have a market for each of hundreds of outcomes. */
const OTHERS_SHOWN = 50;
const level = z.object({
  price: z.number().describe('Price, 0 to 1'),
  quantity: z.number().describe('Contracts at that price'),
});

export default defineService({
  path: 'kalshi-odds',
  name: 'Kalshi Odds',
  tag: 'Prediction Markets',
  priceUsd: '0.25',
  summary:
    'A Kalshi market’s implied probability, quotes, live order book with its depth, closing time and resolution rule.',
  keywords:
    'kalshi odds chance chances probability likely likelihood order book quote price specific market ticker settle resolve',
  input: z.object({
    marketId: z
      .string()
      .trim()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$/, 'must be a ticker such as "KXFED-27JAN-T3.00"')
      .describe('Ticker of a market; of an event or a series for its busiest open market'),
  }),
  output: z.object({
    market: z.object(kalshiRecord).describe('The market'),
    orderbook: z
      .object({
        yesBids: z.array(level).describe('Best first, USD and contracts'),
        noBids: z.array(level).describe('Best first; a bid of p for no is an offer of yes at 1 - p'),
      })
      .nullable()
      .describe('Null when the market is not open'),
    spread: z.number().nullable().describe('Best ask less best bid for yes, in USD a contract'),
    depth: bookDepth
      .nullable()
      .describe('What rests close to the best prices; null where the book was not read'),
    otherMarkets: z
      .array(
        z.object({
          ticker: z.string().describe('Ticker of the market'),
          yesMeans: outsiderText(500)
            .nullable()
            .describe('What yes stands for; null where the venue does not say'),
          probability: z
            .number()
            .nullable()
            .describe('Chance of yes, 0 to 1; null where the market gives none'),
          yesBid: z.number().nullable().describe('Highest bid for yes, 0 to 1'),
          yesAsk: z.number().nullable().describe('Lowest ask for yes, 0 to 1'),
          status: outsiderText(60).describe('Where it stands'),
        }),
      )
      .describe('The other markets of the event, where an event or a series was named'),
  }),
  example: { marketId: 'KXSYNBTCQ' },
  aliases: { marketTicker: 'marketId', ticker: 'marketId', eventTicker: 'marketId' },
  needs: ['kalshi'],
  async run(input, context) {
    const { market, others, title, sources, notes } = await findMarket(input.marketId, context);
    const open = market.status === 'active';
    const book = open ? await context.upstreams.kalshi.book(market.ticker) : null;
    if (book !== null) sources.push(book.source);
    const levels = book?.value ?? null;
    if (!open)
      notes.push(`The market is ${market.status}: it has no order book, and its quotes are not tradable.`);
    const quotes =
      levels === null
        ? { bid: market.yesBid, ask: market.yesAsk }
        : { bid: levels.yesBids[0]?.price ?? null, ask: levels.yesAsks[0]?.price ?? null };
    const live: KalshiMarket =
      levels === null
        ? market
        : {
            ...market,
            yesBid: quotes.bid,
            yesAsk: quotes.ask,
            noBid: levels.noBids[0]?.price ?? null,
            noAsk: levels.noAsks[0]?.price ?? null,
            yesBidSize: levels.yesBids[0]?.size ?? null,
            yesAskSize: levels.yesAsks[0]?.size ?? null,
          };
    if (middle(quotes) === null && open) {
      notes.push('One side of the book is empty: probability is the last price, or null without a trade.');
    }
    return answer(
      {
        market: kalshiRecordOf(live, title),
        orderbook:
          levels === null ? null : { yesBids: levels.yesBids.map(shown), noBids: levels.noBids.map(shown) },
        spread: gap(quotes),
        depth: levels === null ? null : depthOf(levels.yesBids, levels.yesAsks),
        otherMarkets: others.slice(0, OTHERS_SHOWN).map((other) => ({
          ticker: other.ticker,
          yesMeans: other.yesSubTitle,
          probability: middle({ bid: other.yesBid, ask: other.yesAsk }) ?? other.lastPrice,
          yesBid: other.yesBid,
          yesAsk: other.yesAsk,
          status: other.status,
        })),
      },
      {
        method:
          'Probability is the middle of best bid and ask for yes in the live book. The venue lists bids alone: the best ask for yes is 1 less the best bid for no. A price is not a forecast: it holds fees, interest and who trades there.',
        sources,
        notes,
      },
    );
  },
});

function shown({ price, size }: KalshiBookLevel) {
  return { price, quantity: size };
}

interface Found {
  market: KalshiMarket;
  others: KalshiMarket[];
  /** The title of the event; null where only the market was read. */
  title: string | null;
  sources: Source[];
  notes: string[];
}

/** The market that a ticker names: its own, or the busiest open one of an event or a series. */
async function findMarket(asked: string, { upstreams }: RunContext<'kalshi'>): Promise<Found> {
  const ticker = asked.toUpperCase();
  const own = await upstreams.kalshi.market(ticker);
  if (own.value !== null) {
    return { market: own.value, others: [], title: null, sources: [own.source], notes: [] };
  }
  const event = await upstreams.kalshi.event(ticker);
  let markets = event.value?.markets ?? [];
  let source = event.source;
  let kind = 'event';
  if (markets.length === 0 && !ticker.includes('-')) {
    const list = await upstreams.kalshi.markets({ status: 'open', seriesTicker: ticker, maximumPages: 1 });
    markets = list.items;
    source = list.sources[0] ?? source;
    kind = 'series';
  }
  const [busiest, ...others] = [...markets].sort(
    (a, b) =>
      Number(b.status === 'active') - Number(a.status === 'active') ||
      (b.volume24h ?? 0) - (a.volume24h ?? 0) ||
      (b.volume ?? 0) - (a.volume ?? 0),
  );
  if (busiest === undefined)
    throw notFound('marketId', `Kalshi has no market, event or open series "${asked}".`);
  return {
    market: busiest,
    others,
    title: event.value?.title ?? null,
    sources: [source],
    notes: [
      `${ticker} is a ticker of ${kind === 'event' ? 'an event' : 'a series'}: this is its busiest market.`,
    ],
  };
}
