import { outsiderText } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { notFound } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { PolymarketEvent, PolymarketMarket } from '../../upstreams/adapters/polymarket.ts';
import { defineService, type RunContext } from '../define.ts';
import { type BestPrices, toTick } from '../shared/questions/best-prices.ts';
import { DOWN, liveQuotes, unlessDown } from '../shared/questions/polymarket-quotes.ts';

type Context = RunContext<'polymarket' | 'polymarketclob'>;

/** Live books are read for the busiest markets of an event; for the others the catalogue's quotes are used. */
const BOOKS_READ = 8;
const MARKETS_SHOWN = 100;
const MARKET_PREFIX = 'market:';

interface Odds {
  marketId: string;
  market: string;
  outcome: string;
  probability: number | null;
  price: number | null;
  bestBid: number | null;
  bestAsk: number | null;
}

export default defineService({
  path: 'polymarket-odds',
  name: 'Polymarket Odds',
  tag: 'Prediction Markets',
  priceUsd: '0.50',
  summary:
    'Probability, price and best quotes of every outcome of a Polymarket event, checked against live books.',
  keywords:
    'polymarket odds chance chances probability likely likelihood price outcome event yes no specific slug quotes',
  input: z.object({
    eventId: z
      .preprocess(
        (value) => (typeof value === 'number' ? String(value) : value),
        z.string().trim().min(1).max(300),
      )
      .describe(
        'Event id, slug or polymarket.com address; a market’s id or slug with "market:" in front of it',
      ),
  }),
  output: z.object({
    event: z
      .object({
        id: z.string().describe('Id of the event'),
        title: outsiderText(1000).describe('The event, as the venue puts it'),
        slug: outsiderText(300).describe('Name in the address of its page'),
        status: z.enum(['active', 'inactive', 'closed']).describe('Where it stands'),
        volume: z.number().nullable().describe('USD traded since the start'),
        liquidity: z.number().nullable().describe('USD resting in the books'),
        endDate: z.string().nullable().describe('When it ends (ISO 8601); null where the venue does not say'),
        url: z.string().describe('Where to read it'),
        mutuallyExclusive: z.boolean().describe('Whether at most one of its markets can end in yes'),
      })
      .describe('The event'),
    odds: z
      .array(
        z.object({
          marketId: z.string().describe('Id of the market'),
          market: outsiderText(1000).describe('The question'),
          outcome: outsiderText(300).describe('What it bets on'),
          probability: z
            .number()
            .nullable()
            .describe('0 to 1: middle of the best quotes, else the price shown'),
          price: z.number().nullable().describe('USD a contract, as the venue shows it'),
          bestBid: z.number().nullable().describe('Highest bid, 0 to 1'),
          bestAsk: z.number().nullable().describe('Lowest ask, 0 to 1'),
        }),
      )
      .describe('Each outcome with its price'),
    priceHistory: z
      .object({
        marketId: z.string().describe('Id of the market'),
        outcome: outsiderText(300).describe('What it is the price of'),
        points: z
          .array(z.object({ time: z.string().describe('ISO 8601'), price: z.number().describe('0 to 1') }))
          .describe('Oldest first'),
      })
      .nullable()
      .describe('The last day, hourly, of the busiest market'),
  }),
  example: { eventId: '900001' },
  aliases: { slug: 'eventId', eventSlug: 'eventId' },
  // The numbers of events and of markets overlap, so the body must still say which one is meant after the renaming.
  adapt(body) {
    const market = body.marketId ?? body.marketSlug;
    const named = typeof market === 'string' || typeof market === 'number';
    return body.eventId === undefined && named ? { ...body, eventId: `${MARKET_PREFIX}${market}` } : body;
  },
  needs: ['polymarket'],
  uses: ['polymarketclob'],
  async run(input, context) {
    const { event, source, onlyMarket } = await findEvent(input.eventId, context);
    const sources: Source[] = [source];
    const notes: string[] = [];
    const busiest = event.markets
      .filter(({ id }) => onlyMarket === null || id === onlyMarket)
      .sort((a, b) => activity(b) - activity(a));
    const markets = busiest.slice(0, MARKETS_SHOWN);
    if (busiest.length > markets.length) {
      notes.push(`The event has ${busiest.length} markets: the busiest ${MARKETS_SHOWN} are shown.`);
    }

    const withBook = markets.filter((market) => !market.closed && market.hasOrderBook).slice(0, BOOKS_READ);
    const books = await Promise.all(withBook.map((market) => unlessDown(liveQuotes(market, context))));
    const live = new Map<string, BestPrices>();
    withBook.forEach((market, index) => {
      const read = books[index];
      if (read === undefined || read === null || read === DOWN) return;
      sources.push(...read.sources);
      if (read.doubt === null) live.set(market.id, read.quotes);
      else notes.push(read.doubt);
    });
    const leader = markets[0];
    const history = leader === undefined ? null : await unlessDown(lastDay(leader, context));
    const priceHistory = history === null || history === DOWN ? null : history.shown;
    if (history !== null && history !== DOWN) sources.push(history.source);
    if (books.includes(DOWN) || history === DOWN) {
      notes.push(
        'Live books are not all to be had now: what they would tell is from the catalogue, or null.',
      );
    }
    if (withBook.length > 0 && live.size < markets.length) {
      notes.push(
        `Quotes of ${live.size} of ${markets.length} markets are from live books, the others from the catalogue.`,
      );
    }
    if (event.mutuallyExclusive) {
      notes.push('The markets exclude each other; their probabilities need not add up to 1.');
    }
    return answer(
      {
        event: {
          id: event.id,
          title: event.title,
          slug: event.slug,
          status: event.status,
          volume: event.volumeUsd,
          liquidity: event.liquidityUsd,
          endDate: event.endDate,
          url: event.url,
          mutuallyExclusive: event.mutuallyExclusive,
        },
        odds: markets.flatMap((market) => oddsOf(market, live.get(market.id))),
        priceHistory,
      },
      {
        method:
          'Probability is the middle of best bid and ask, or the price the venue shows where one side is empty or the market is closed. The second outcome of a two-way market is quoted as the mirror image of the first.',
        sources,
        notes,
      },
    );
  },
});

async function findEvent(
  asked: string,
  { upstreams }: Context,
): Promise<{ event: PolymarketEvent; source: Source; onlyMarket: string | null }> {
  const unknown = () => notFound('eventId', `Polymarket has no event "${asked}".`);
  const address = /polymarket\.com\/event\/([^/?#]+)/i.exec(asked)?.[1];
  let id = address ?? asked;
  let onlyMarket: string | null = null;
  if (id.startsWith(MARKET_PREFIX)) {
    const market = await upstreams.polymarket.market(id.slice(MARKET_PREFIX.length).trim());
    if (market.value === null || market.value.eventId === null) throw unknown();
    onlyMarket = market.value.id;
    id = market.value.eventId;
  }
  const { value, source } = /^\d+$/.test(id)
    ? await upstreams.polymarket.eventById(id)
    : await upstreams.polymarket.eventBySlug(id);
  if (value === null) throw unknown();
  return { event: value, source, onlyMarket };
}

function activity(market: PolymarketMarket): number {
  return (market.closed ? 0 : 1e15) + (market.volume24hUsd ?? market.volumeUsd ?? 0);
}

/** The hourly prices of a market's first outcome; null when the venue knows it under no token. */
async function lastDay(market: PolymarketMarket, { upstreams }: Context) {
  const outcome = market.outcomes[0];
  if (outcome === undefined || outcome.tokenId === null) return null;
  const { value, source } = await upstreams.polymarketclob.dayOfPrices(outcome.tokenId);
  return { shown: { marketId: market.id, outcome: outcome.name, points: value.slice(-100) }, source };
}

function oddsOf(market: PolymarketMarket, live: BestPrices | undefined): Odds[] {
  const first: BestPrices = market.closed
    ? { bid: null, ask: null }
    : (live ?? { bid: market.bestBid, ask: market.bestAsk });
  const second: BestPrices = {
    bid: first.ask === null ? null : toTick(1 - first.ask),
    ask: first.bid === null ? null : toTick(1 - first.bid),
  };
  return market.outcomes.map((outcome, index) => {
    const quotes =
      index === 0 ? first : index === 1 && market.outcomes.length === 2 ? second : { bid: null, ask: null };
    return {
      marketId: market.id,
      market: market.question,
      outcome: outcome.name,
      probability:
        quotes.bid === null || quotes.ask === null ? outcome.price : toTick((quotes.bid + quotes.ask) / 2),
      price: outcome.price,
      bestBid: quotes.bid,
      bestAsk: quotes.ask,
    };
  });
}
