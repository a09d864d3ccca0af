import { limit, numberBetween, outsiderText, text } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { KalshiEvent, KalshiMarket } from '../../upstreams/adapters/kalshi.ts';
import type { PolymarketEvent, PolymarketMarket } from '../../upstreams/adapters/polymarket.ts';
import { defineService, type RunContext } from '../define.ts';
import { type Direction, directions, midOf, type Quotes } from '../shared/questions/executable-edge.ts';
import { kalshiQuestion } from '../shared/questions/kalshi-question.ts';
import { atLeast, matchQuestions, type Pair } from '../shared/questions/match-questions.ts';
import { readQuestion } from '../shared/questions/read-question.ts';

type Context = RunContext<'polymarket' | 'polymarketclob' | 'kalshi'>;

const POLYMARKET_PAGES = 2;
const POLYMARKET_PAGE = 100;
const KALSHI_PAGES = 3;
/** More candidates than requested are priced from live books, because some are dropped on a closer look. */
const SPARE_CANDIDATES = 5;

const venue = {
  question: outsiderText(1000).describe('The question, as the venue puts it'),
  yes: z.number().describe('Probability of yes, 0 to 1: middle of the best quotes'),
  yesBid: z.number().describe('Highest bid for yes, 0 to 1'),
  yesAsk: z.number().describe('Lowest ask for yes, 0 to 1'),
  url: z.string().describe('Where to read it'),
};

export default defineService({
  path: 'prediction-market-spread',
  name: 'Prediction Market Spread',
  tag: 'Prediction Markets',
  priceUsd: '0.25',
  featured: true,
  summary:
    'The same question on Polymarket and Kalshi: how far the prices are apart and what is left after fees.',
  keywords:
    'difference gap compare comparison between kalshi polymarket same question bet arbitrage cheaper spread disagree venues fees two',
  input: z.object({
    limit: limit(10, 25),
    minSpreadPct: numberBetween(
      0,
      100,
      'Least difference of the two probabilities in percentage points',
    ).default(0),
    minConfidence: z
      .enum(['low', 'medium', 'high'])
      .default('medium')
      .describe('Least confidence that both ask the same question: low, medium (default) or high'),
    market: text(200, 'Only questions that hold all of these words').optional(),
  }),
  output: z.object({
    opportunities: z
      .array(
        z.object({
          event: outsiderText(1000).describe('The question'),
          polymarket: z
            .object({ marketId: z.string().describe('Id of the market'), ...venue })
            .describe('At Polymarket'),
          kalshi: z
            .object({ ticker: z.string().describe('Ticker of the market'), ...venue })
            .describe('At Kalshi'),
          spreadPct: z.number().describe('Difference of the two probabilities in percentage points'),
          edgeBps: z
            .number()
            .nullable()
            .describe(
              'Left of each dollar paid out after asks and taker fees, best way, in 1/100 of a percent',
            ),
          ways: z
            .array(
              z.object({
                buyYesOn: z.enum(['polymarket', 'kalshi']).describe('Where to buy yes'),
                buyNoOn: z.enum(['polymarket', 'kalshi']).describe('Where to buy no'),
                yesAsk: z.number().describe('What yes costs there, 0 to 1'),
                noAsk: z.number().describe('What no costs there, 0 to 1'),
                fees: z
                  .number()
                  .nullable()
                  .describe('USD a contract on each side, in one order of `contracts`'),
                edge: z.number().nullable().describe('1 - (yesAsk + noAsk) - fees, in USD a contract'),
                contracts: z.number().nullable().describe('How many can be had at these prices'),
              }),
            )
            .describe('Both ways to bet on it'),
          matchConfidence: z
            .enum(['low', 'medium', 'high'])
            .describe('How sure it is that both ask the same'),
          matchScore: z.number().describe('Similarity of the two questions, 0 to 1'),
          matchDoubts: z.array(outsiderText(500)).describe('What may tell them apart'),
          actionHint: outsiderText(1000).describe('What to do, in a sentence'),
        }),
      )
      .describe('Questions at both venues, the widest apart first'),
    scanned: z
      .object({
        polymarketMarkets: z.number().int().describe('Markets at Polymarket'),
        kalshiMarkets: z.number().int().describe('Markets at Kalshi'),
        matched: z.number().int().describe('Pairs at or above minConfidence'),
      })
      .describe('What was compared'),
    count: z.number().int().describe('How many are in the list'),
  }),
  example: { limit: 5, minConfidence: 'medium' },
  needs: ['polymarket', 'kalshi'],
  uses: ['polymarketclob'],
  timeoutMs: 25_000,
  async run(input, context) {
    const [polymarket, kalshi] = await Promise.all([polymarketQuestions(context), kalshiQuestions(context)]);
    const sources: Source[] = [...polymarket.sources, ...kalshi.sources];
    const notes: string[] = [];
    const wanted = input.market === undefined ? [] : [...readQuestion(input.market, null).words];
    const pairs = sharedQuestions(polymarket.items, kalshi.items).filter(
      ({ a, match }) =>
        atLeast(match.confidence, input.minConfidence) &&
        (wanted.length === 0 || hasWords(a.market.question, wanted)),
    );

    const listed = pairs
      .map((pair) => ({ pair, gap: spreadOf(listedQuotes(pair.a.market), listedQuotes(pair.b.market)) }))
      .filter((entry): entry is { pair: MarketPair; gap: number } => entry.gap !== null)
      .sort((x, y) => y.gap - x.gap)
      .slice(0, input.limit + SPARE_CANDIDATES);
    const unquoted = pairs.length - listed.length;
    if (unquoted > 0) {
      notes.push(
        `${unquoted} of ${pairs.length} matched pairs are left out: no two-sided quote, or a smaller spread.`,
      );
    }

    const priced = await priceLive(
      listed.map(({ pair }) => pair),
      context,
      notes,
    );
    sources.push(...priced.flatMap((entry) => entry.sources));
    const opportunities = priced
      .flatMap(({ pair, polymarket: poly, kalshi: kal }) => {
        const spreadPct = spreadOf(poly, kal);
        if (spreadPct === null || spreadPct < input.minSpreadPct) return [];
        return [opportunity(pair, poly, kal, spreadPct)];
      })
      .filter((entry) => entry !== null)
      .sort((x, y) => (y.edgeBps ?? -1e9) - (x.edgeBps ?? -1e9) || y.spreadPct - x.spreadPct)
      .slice(0, input.limit);
    notes.push(
      'A match of wording is not a match of rules: read how each venue settles before trading.',
      'Fees: Kalshi’s general rate, each order rounded up to the cent (some series differ); Polymarket’s by the market’s schedule. Gas, deposits and the time until settlement are not counted.',
    );
    return answer(
      {
        opportunities,
        scanned: {
          polymarketMarkets: polymarket.items.length,
          kalshiMarkets: kalshi.items.length,
          matched: pairs.length,
        },
        count: opportunities.length,
      },
      {
        method:
          'Questions are matched by the Dice coefficient of their word sets; numbers, dates, direction and negation must agree, and a high confidence needs closing times within 2 days. Spread is the difference of the middles of best bid and ask; edge is 1 - (ask for yes + ask for no) - taker fees.',
        sources,
        notes,
      },
    );
  },
});

interface PolymarketItem {
  event: PolymarketEvent;
  market: PolymarketMarket;
}

interface KalshiItem {
  event: KalshiEvent;
  market: KalshiMarket;
  text: string;
}

type MarketPair = Pair<PolymarketItem, KalshiItem>;

async function polymarketQuestions({ upstreams }: Context) {
  const replies = await Promise.all(
    Array.from({ length: POLYMARKET_PAGES }, (_, page) =>
      upstreams.polymarket.openEvents({ limit: POLYMARKET_PAGE, offset: page * POLYMARKET_PAGE }),
    ),
  );
  // Events may move from one page to the other between the two requests.
  const items = new Map<string, PolymarketItem>();
  for (const { value } of replies) {
    for (const event of value) {
      for (const market of event.markets) {
        const [yes, no] = market.outcomes;
        const yesNo = yes?.name.toLowerCase() === 'yes' && no?.name.toLowerCase() === 'no';
        if (yesNo && market.outcomes.length === 2 && !market.closed) items.set(market.id, { event, market });
      }
    }
  }
  return { items: [...items.values()], sources: replies.map(({ source }) => source) };
}

async function kalshiQuestions({ upstreams }: Context) {
  const list = await upstreams.kalshi.events({ status: 'open', maximumPages: KALSHI_PAGES });
  const items = list.items.flatMap((event) =>
    event.markets
      .filter(({ status }) => status === 'active')
      .map((market): KalshiItem => ({ event, market, text: kalshiQuestion(event, market) })),
  );
  return { items, sources: list.sources };
}

let known: { polymarket: PolymarketItem[]; kalshi: KalshiItem[]; pairs: MarketPair[] } | null = null;

/** Matching takes longer than everything else, so its result is kept while both venues' lists are unchanged. */
function sharedQuestions(polymarket: PolymarketItem[], kalshi: KalshiItem[]): MarketPair[] {
  if (known !== null && sameMarkets(known.polymarket, polymarket) && sameMarkets(known.kalshi, kalshi)) {
    return known.pairs;
  }
  const pairs = matchQuestions(
    polymarket,
    kalshi,
    ({ market }) => readQuestion(market.question, market.endDate),
    ({ text: question, market }) => readQuestion(question, market.closeTime),
  );
  known = { polymarket, kalshi, pairs };
  return pairs;
}

/** The upstream's cache hands out the same objects until it has fetched new ones. */
function sameMarkets(a: readonly { market: object }[], b: readonly { market: object }[]): boolean {
  return a.length === b.length && a.every(({ market }, index) => market === b[index]?.market);
}

function hasWords(question: string, wanted: readonly string[]): boolean {
  const { words } = readQuestion(question, null);
  return wanted.every((word) => words.has(word));
}

function listedQuotes(market: PolymarketMarket | KalshiMarket): Quotes {
  return 'ticker' in market
    ? { yesBid: market.yesBid, yesAsk: market.yesAsk }
    : { yesBid: market.bestBid, yesAsk: market.bestAsk };
}

/** Percentage points; null unless both venues quote both sides. */
function spreadOf(a: Quotes, b: Quotes): number | null {
  const [midA, midB] = [midOf(a), midOf(b)];
  return midA === null || midB === null ? null : Math.round(Math.abs(midA - midB) * 1e5) / 1e3;
}

interface LiveQuotes extends Quotes {
  /** Contracts at the best prices; null when they come from a list that does not say. */
  bidSize: number | null;
  askSize: number | null;
}

interface Priced {
  pair: MarketPair;
  polymarket: LiveQuotes;
  kalshi: LiveQuotes;
  sources: Source[];
}

/** Reads the books of both venues. Without Polymarket's, its catalogue's quotes stand in, and a note says so. */
async function priceLive(
  pairs: readonly MarketPair[],
  { upstreams }: Context,
  notes: string[],
): Promise<Priced[]> {
  let fallback: string | null = null;
  const priced = await Promise.all(
    pairs.map(async (pair): Promise<Priced | null> => {
      const tokenId = pair.a.market.outcomes[0]?.tokenId ?? null;
      const [book, clob] = await Promise.all([
        upstreams.kalshi.book(pair.b.market.ticker),
        tokenId === null
          ? null
          : upstreams.polymarketclob.book(tokenId).catch((error: unknown) => {
              if (!(error instanceof UpstreamUnavailable)) throw error;
              fallback = error.message;
              return null;
            }),
      ]);
      if (book.value === null) return null;
      const kalshi: LiveQuotes = {
        yesBid: book.value.yesBids[0]?.price ?? null,
        yesAsk: book.value.yesAsks[0]?.price ?? null,
        bidSize: book.value.yesBids[0]?.size ?? null,
        askSize: book.value.yesAsks[0]?.size ?? null,
      };
      const live = clob?.value;
      const polymarket: LiveQuotes =
        live === undefined || live === null
          ? { ...listedQuotes(pair.a.market), bidSize: null, askSize: null }
          : {
              yesBid: live.bids[0]?.price ?? null,
              yesAsk: live.asks[0]?.price ?? null,
              bidSize: live.bids[0]?.size ?? null,
              askSize: live.asks[0]?.size ?? null,
            };
      return {
        pair,
        polymarket,
        kalshi,
        sources: clob === null ? [book.source] : [book.source, clob.source],
      };
    }),
  );
  if (fallback !== null)
    notes.push(`Polymarket’s books are not to be had now (${fallback}): its catalogue’s quotes are used.`);
  return priced.filter((entry) => entry !== null);
}

function opportunity(pair: MarketPair, polymarket: LiveQuotes, kalshi: LiveQuotes, spreadPct: number) {
  const [polymarketYes, kalshiYes] = [midOf(polymarket), midOf(kalshi)];
  const { yesBid: polymarketBid, yesAsk: polymarketAsk } = polymarket;
  const { yesBid: kalshiBid, yesAsk: kalshiAsk } = kalshi;
  if (polymarketYes === null || polymarketBid === null || polymarketAsk === null) return null;
  if (kalshiYes === null || kalshiBid === null || kalshiAsk === null) return null;
  const ways = directions(polymarket, kalshi, pair.a.market.takerFee);
  const edges = ways.map(({ edge }) => edge).filter((edge) => edge !== null);
  const best = edges.length === 0 ? null : Math.max(...edges);
  return {
    event: pair.a.event.title,
    polymarket: {
      marketId: pair.a.market.id,
      question: pair.a.market.question,
      yes: polymarketYes,
      yesBid: polymarketBid,
      yesAsk: polymarketAsk,
      url: pair.a.event.url,
    },
    kalshi: {
      ticker: pair.b.market.ticker,
      question: pair.b.text,
      yes: kalshiYes,
      yesBid: kalshiBid,
      yesAsk: kalshiAsk,
      url: pair.b.market.url,
    },
    spreadPct,
    edgeBps: best === null ? null : Math.round(best * 1e4) + 0,
    ways,
    matchConfidence: pair.match.confidence,
    matchScore: pair.match.score,
    matchDoubts: pair.match.doubts,
    actionHint: hint(
      ways.find(({ edge }) => edge !== null && edge === best),
      pair.match.confidence,
    ),
  };
}

function hint(best: Direction | undefined, confidence: string): string {
  if (best === undefined || best.edge === null)
    return 'The fee is not known, so neither is what would be left.';
  if (best.edge <= 0)
    return 'Nothing is left after asks and fees: the spread lies within the cost of trading.';
  const cents = Math.round(best.edge * 1e4) / 100;
  const trade = `Yes on ${best.buyYesOn} at ${best.yesAsk} and no on ${best.buyNoOn} at ${best.noAsk} leave ${cents} cents a contract after taker fees`;
  return confidence === 'high'
    ? `${trade}, if both venues settle by the same rules.`
    : `${trade}, but the two may not be the same bet: compare the rules first.`;
}
