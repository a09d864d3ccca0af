import { limit, outsiderLines, outsiderText, text } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import type { PolymarketEvent, PolymarketMarket } from '../../upstreams/adapters/polymarket.ts';
import { defineService } from '../define.ts';
import { gap, middle } from '../shared/questions/best-prices.ts';
import { bookDepth } from '../shared/questions/book-depth.ts';
import { DOWN, type LiveQuotes, liveQuotes, unlessDown } from '../shared/questions/polymarket-quotes.ts';
import { ruleText } from '../shared/questions/rule-text.ts';
import { readSearch, relevanceOf } from '../shared/questions/search-questions.ts';

/** The number of results for which live books are read; for the others the catalogue's quotes are used. */
const BOOKS_READ = 10;
/** An event with hundreds of markets must not push out all others. */
const MARKETS_PER_EVENT = 5;
const MOST_EVENTS = 50;

export default defineService({
  path: 'polymarket-search',
  name: 'Polymarket Search',
  tag: 'Prediction Markets',
  priceUsd: '0.25',
  summary:
    'Open Polymarket questions that match a text, with quotes, depth, implied probability, closing time and resolution rule.',
  keywords:
    'polymarket search find look lookup about topic keyword question questions market markets bet bets exist',
  input: z.object({
    query: text(200, 'What to look for'),
    limit: limit(10, 50),
    category: text(60, 'Only this category, such as "crypto" or "politics"; all unless given').optional(),
  }),
  output: z.object({
    query: z.string().describe('What was searched for, as asked'),
    count: z.number().int().describe('How many are in the list'),
    results: z
      .array(
        z.object({
          id: z.string().describe('Of the market; ask polymarket-odds for "market:" and this id'),
          title: outsiderText(1000).describe('The question'),
          slug: outsiderText(300).describe('Name in the address of its page'),
          eventId: z.string().describe('Id of the event'),
          eventTitle: outsiderText(1000).describe('The event, as the venue puts it'),
          outcomes: z.array(outsiderText(300)).describe('What can be bet on'),
          prices: z.array(z.number().nullable()).describe('USD a contract, 0 to 1, in the order of outcomes'),
          probability: z
            .number()
            .nullable()
            .describe('Of the first outcome, 0 to 1: middle of the best quotes, else the price shown'),
          bestBid: z.number().nullable().describe('Of the first outcome; null where nobody quotes'),
          bestAsk: z.number().nullable().describe('Of the first outcome'),
          spread: z.number().nullable().describe('bestAsk - bestBid in USD a contract'),
          depth: bookDepth.nullable().describe('Null where the book was not read'),
          volume: z.number().nullable().describe('USD traded since the start'),
          volume24h: z.number().nullable().describe('USD in the last 24 hours'),
          liquidity: z.number().nullable().describe('USD resting in the books'),
          endDate: z.string().nullable().describe('When trading ends'),
          resolutionRule: outsiderLines(10000)
            .nullable()
            .describe('By what it is settled, in the venue’s words'),
          resolutionSource: outsiderText(2000)
            .nullable()
            .describe('What the venue decides it by; null where it does not say'),
          url: z.string().describe('Where to read it'),
          relevanceScore: z.number().describe('Share of what was searched for that it holds, 0 to 1'),
        }),
      )
      .describe('The markets that fit'),
    eventsFound: z.number().int().nullable().describe('How many events the venue found in all'),
  }),
  example: { query: 'bitcoin', limit: 5 },
  aliases: { q: 'query', search: 'query', topic: 'query', keyword: 'query', tag: 'category' },
  needs: ['polymarket'],
  uses: ['polymarketclob'],
  async run(input, context) {
    const wanted = Math.min(MOST_EVENTS, Math.max(input.limit, 10));
    const { value, source } = await context.upstreams.polymarket.search({
      query: input.query,
      limit: wanted,
    });
    const tag = input.category
      ?.toLowerCase()
      .replace(/[^\p{L}\p{N}]+/gu, '-')
      .replace(/^-|-$/g, '');
    const events = value.events.filter(
      (event) => event.status === 'active' && (tag === undefined || event.tags.includes(tag)),
    );
    const notes: string[] = [];
    const chosen = questionsOf(events, input.query).slice(0, input.limit);
    if (chosen.length === 0) {
      notes.push(
        `Polymarket finds no open question for "${input.query}"${tag === undefined ? '' : ` in "${tag}"`}.`,
      );
    }
    if (events.some(({ markets }) => markets.filter(isOpen).length > MARKETS_PER_EVENT)) {
      notes.push(`Of each event at most ${MARKETS_PER_EVENT} questions are shown; polymarket-odds has all.`);
    }

    const withBook = chosen.filter(({ market }) => market.hasOrderBook).slice(0, BOOKS_READ);
    const books = await Promise.all(withBook.map(({ market }) => unlessDown(liveQuotes(market, context))));
    const live = new Map<string, LiveQuotes>();
    const sources = [source];
    withBook.forEach(({ market }, index) => {
      const read = books[index];
      if (read === undefined || read === null || read === DOWN) return;
      sources.push(...read.sources);
      if (read.doubt === null) live.set(market.id, read);
      else notes.push(read.doubt);
    });
    if (books.includes(DOWN)) notes.push('Live books cannot all be read now.');
    if (live.size < chosen.length) {
      notes.push(
        `${live.size} of ${chosen.length} results have live quotes and depth; depth is null for the others, and their quotes are the catalogue’s.`,
      );
    }
    return answer(
      {
        query: input.query,
        count: chosen.length,
        results: chosen.map((each) => resultOf(each, live.get(each.market.id))),
        eventsFound: value.total,
      },
      {
        method:
          'The venue’s own search, in its order; within an event the questions that hold most of what was searched for, then the busiest. Probability is the middle of best bid and ask.',
        sources,
        notes,
      },
    );
  },
});

interface Chosen {
  event: PolymarketEvent;
  market: PolymarketMarket;
  score: number;
}

/** The open questions of the events, the best match of each event first. */
function questionsOf(events: readonly PolymarketEvent[], query: string): Chosen[] {
  const search = readSearch(query);
  return events.flatMap((event) =>
    event.markets
      .filter(isOpen)
      .map((market) => ({ event, market, score: relevanceOf(search, `${event.title} ${market.question}`) }))
      .sort((a, b) => b.score - a.score || (b.market.volume24hUsd ?? 0) - (a.market.volume24hUsd ?? 0))
      .slice(0, MARKETS_PER_EVENT),
  );
}

function isOpen({ closed }: PolymarketMarket): boolean {
  return !closed;
}

function resultOf({ event, market, score }: Chosen, live: LiveQuotes | undefined) {
  const quotes = live?.quotes ?? { bid: market.bestBid, ask: market.bestAsk };
  const [first] = market.outcomes;
  return {
    id: market.id,
    title: market.question,
    slug: market.slug ?? event.slug,
    eventId: event.id,
    eventTitle: event.title,
    outcomes: market.outcomes.map(({ name }) => name),
    prices: market.outcomes.map(({ price }) => price),
    probability: middle(quotes) ?? first?.price ?? null,
    bestBid: quotes.bid,
    bestAsk: quotes.ask,
    spread: gap(quotes),
    depth: live?.depth ?? null,
    volume: market.volumeUsd,
    volume24h: market.volume24hUsd,
    liquidity: market.liquidityUsd,
    endDate: market.endDate ?? event.endDate,
    resolutionRule: ruleText(market.rules),
    resolutionSource: market.resolutionSource,
    url: event.url,
    relevanceScore: score,
  };
}
