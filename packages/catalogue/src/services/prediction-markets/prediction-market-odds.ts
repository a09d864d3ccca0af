import { outsiderLines, outsiderText, text } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { KalshiEvent, KalshiMarket } from '../../upstreams/adapters/kalshi.ts';
import type { PolymarketEvent, PolymarketMarket } from '../../upstreams/adapters/polymarket.ts';
import { defineService, type RunContext } from '../define.ts';
import { type BestPrices, gap, middle } from '../shared/questions/best-prices.ts';
import { type BookDepth, bookDepth, depthOf } from '../shared/questions/book-depth.ts';
import { consensusOf } from '../shared/questions/consensus.ts';
import { kalshiQuestion } from '../shared/questions/kalshi-question.ts';
import { atLeast, type Match, matchQuestions } from '../shared/questions/match-questions.ts';
import { DOWN, liveQuotes, unlessDown } from '../shared/questions/polymarket-quotes.ts';
import { readQuestion } from '../shared/questions/read-question.ts';
import { ruleText } from '../shared/questions/rule-text.ts';
import {
  LEAST_RELEVANCE,
  readSearch,
  relevanceOf,
  type Search,
} from '../shared/questions/search-questions.ts';

type Context = RunContext<'polymarket' | 'polymarketclob' | 'kalshi'>;

const PLATFORMS = ['polymarket', 'kalshi'] as const;
type Platform = (typeof PLATFORMS)[number];
const EVENT_PAGES = 5;
const EVENTS_SEARCHED = 20;
/** How many of each venue's best candidates are compared with each other and named in the answer. */
const CANDIDATES = 40;
const OTHERS_SHOWN = 5;

export default defineService({
  path: 'prediction-market-odds',
  name: 'Prediction Market Odds',
  tag: 'Prediction Markets',
  priceUsd: '0.50',
  summary:
    'Odds of Polymarket and Kalshi on a topic: each venue’s quotes and depth, and one probability where both ask the same.',
  keywords:
    'odds chance chances probability likely likelihood predict prediction forecast election elections win wins winner president vote bettors betting bookmaker happen will future event politics sport both venues consensus',
  input: z.object({
    topic: text(
      300,
      'What to ask the venues about; or a Polymarket event’s id or slug, or a Kalshi market’s ticker',
    ),
    platforms: z
      .preprocess(
        (value) => (typeof value === 'string' ? value.split(',') : value),
        z
          .array(
            z.preprocess(
              (name) => (typeof name === 'string' ? name.trim().toLowerCase() : name),
              z.enum(PLATFORMS, 'must be "polymarket" or "kalshi"'),
            ),
          )
          .min(1)
          .max(4),
      )
      .optional()
      .describe('Which venues: "polymarket", "kalshi"; both unless given'),
  }),
  output: z.object({
    topic: z.string().describe('What was asked about'),
    consensusProbability: z
      .number()
      .nullable()
      .describe('0 to 1, weighted by volume; null unless both venues ask the same question'),
    consensusReason: outsiderText(1000).describe('Why the consensus is what it is, or why there is none'),
    platforms: z
      .array(
        z.object({
          platform: z.enum(PLATFORMS).describe('The venue'),
          market: outsiderText(1000).describe('The question'),
          marketId: z.string().describe('Id of the market'),
          probability: z.number().nullable().describe('Of yes, 0 to 1: middle of the best quotes'),
          bestBid: z.number().nullable().describe('USD a contract; null where nobody quotes'),
          bestAsk: z.number().nullable().describe('Lowest ask, 0 to 1'),
          spread: z.number().nullable().describe('bestAsk less bestBid; null where one is missing'),
          depth: bookDepth
            .nullable()
            .describe('What rests close to the best prices; null where the book was not read'),
          volume: z.number().nullable().describe('Traded, in volumeUnit; null where the venue does not say'),
          volumeUnit: z.enum(['usd', 'contracts']).describe('What volume counts'),
          weight: z.number().nullable().describe('Its share of the consensus, 0 to 1; null without one'),
          closeTime: z
            .string()
            .nullable()
            .describe('When trading ends (ISO 8601); null where the venue does not say'),
          resolutionRule: outsiderLines(10000)
            .nullable()
            .describe('What decides it; null where the venue does not say'),
          url: z.string().describe('Where to read it'),
          matchConfidence: z
            .enum(['high', 'medium', 'low', 'unmatched'])
            .describe('That it asks what the other venue asks'),
          relevanceScore: z.number().describe('Share of the topic that the question holds, 0 to 1'),
        }),
      )
      .describe('The same question at each venue'),
    match: z
      .object({
        score: z.number().describe('How alike the two questions are, 0 to 1'),
        confidence: z.enum(['high', 'medium', 'low']).describe('How sure it is that they ask the same'),
        doubts: z.array(outsiderText(500)).describe('What may tell them apart'),
      })
      .nullable()
      .describe('How like the two questions are; null when fewer than two are shown'),
    totalVolume: z
      .number()
      .nullable()
      .describe('USD: Polymarket’s dollars and Kalshi’s contracts at their present price'),
    otherQuestions: z
      .array(
        z.object({
          platform: z.enum(PLATFORMS).describe('The venue'),
          market: outsiderText(1000).describe('The question, as the venue puts it'),
          marketId: z.string().describe('Id of the market'),
          probability: z
            .number()
            .nullable()
            .describe('Chance of yes, 0 to 1; null where the market gives none'),
          relevanceScore: z.number().describe('How well it fits, 0 to 1'),
        }),
      )
      .describe('Others that were found'),
    searched: z
      .array(
        z.object({
          platform: z.enum(PLATFORMS).describe('The venue'),
          questions: z.number().int().describe('Questions there'),
        }),
      )
      .describe('What was looked through'),
  }),
  example: { topic: 'bitcoin', platforms: ['polymarket', 'kalshi'] },
  aliases: {
    query: 'topic',
    q: 'topic',
    eventId: 'topic',
    marketSlug: 'topic',
    slug: 'topic',
    marketId: 'topic',
    event: 'topic',
    platform: 'platforms',
  },
  needs: [PLATFORMS],
  uses: ['polymarketclob'],
  timeoutMs: 25_000,
  async run(input, context) {
    const asked = [...new Set(input.platforms ?? PLATFORMS)];
    const named = await namedBy(input.topic, asked, context);
    const search = readSearch(named?.words ?? input.topic);
    const [polymarket, kalshi] = await Promise.all([
      asked.includes('polymarket') ? polymarketCandidates(input.topic, search, named, context) : nothing(),
      asked.includes('kalshi') ? kalshiCandidates(search, named, context) : nothing(),
    ]);
    const sources = [...(named?.sources ?? []), ...polymarket.sources, ...kalshi.sources];
    const notes: string[] = [];
    const chosen = choose(polymarket.found, kalshi.found);
    if (chosen.shown.length === 0) {
      throw noAnswer(
        'NO_MARKET',
        `No open question on ${asked.join(' or ')} holds half of what "${input.topic}" asks for.`,
        'topic',
      );
    }
    const priced = await Promise.all(chosen.shown.map((candidate) => price(candidate, context, notes)));
    sources.push(...priced.flatMap((each) => each.sources));
    const consensus = consensusOf(
      priced.map(({ probability, volumeUsd }) => ({ probability, volumeUsd })),
      asked.length < 2
        ? 'Only one venue was asked: its price stands beside it.'
        : chosen.match === null
          ? 'No question is asked on both venues in words that match.'
          : null,
    );
    if (chosen.match !== null && chosen.match.confidence !== 'high') {
      notes.push(`The two questions may differ: ${chosen.match.doubts.join('; ')}.`);
    }
    notes.push('A match of wording is not a match of rules: compare resolutionRule before relying on it.');
    const volumes = priced.map(({ volumeUsd }) => volumeUsd);
    const shownIds = new Set(chosen.shown.map(({ id }) => id));
    return answer(
      {
        topic: input.topic,
        consensusProbability: consensus.probability,
        consensusReason: consensus.reason,
        platforms: priced.map(({ candidate, quotes, depth, probability }, index) => ({
          platform: candidate.platform,
          market: candidate.question,
          marketId: candidate.id,
          probability,
          bestBid: quotes.bid,
          bestAsk: quotes.ask,
          spread: gap(quotes),
          depth,
          volume: candidate.volume,
          volumeUnit: candidate.platform === 'kalshi' ? ('contracts' as const) : ('usd' as const),
          weight: consensus.weights?.[index] ?? null,
          closeTime: candidate.closeTime,
          resolutionRule: ruleText(candidate.rules),
          url: candidate.url,
          matchConfidence: chosen.match?.confidence ?? ('unmatched' as const),
          relevanceScore: candidate.score,
        })),
        match: chosen.match,
        totalVolume: volumes.every((volume) => volume !== null)
          ? Math.round(volumes.reduce((sum: number, volume) => sum + (volume ?? 0), 0) * 100) / 100
          : null,
        otherQuestions: [polymarket.found, kalshi.found].flatMap((found) =>
          found
            .filter(({ id }) => !shownIds.has(id))
            .slice(0, OTHERS_SHOWN)
            .map(({ platform, question, id, listed, lastPrice, score }) => ({
              platform,
              market: question,
              marketId: id,
              probability: middle(listed) ?? lastPrice,
              relevanceScore: score,
            })),
        ),
        searched: [
          ...(asked.includes('polymarket')
            ? [{ platform: 'polymarket' as const, questions: polymarket.read }]
            : []),
          ...(asked.includes('kalshi') ? [{ platform: 'kalshi' as const, questions: kalshi.read }] : []),
        ],
      },
      {
        method:
          'Questions that hold at least half of the topic’s words and numbers are looked for on each venue, and paired by the Dice coefficient of their words with numbers, dates, direction and negation agreeing. Consensus is the mean of the middles of best bid and ask, weighted by volume in USD (Kalshi’s contracts at their present price).',
        sources,
        notes,
      },
    );
  },
});

/** A question that may match the search. */
interface Candidate {
  platform: Platform;
  id: string;
  question: string;
  /** The catalogue's quotes. */
  listed: BestPrices;
  lastPrice: number | null;
  volume: number | null;
  closeTime: string | null;
  rules: string | null;
  url: string;
  score: number;
  record: PolymarketMarket | KalshiMarket;
}

interface Candidates {
  /** Best first. */
  found: Candidate[];
  /** How many questions were searched. */
  read: number;
  sources: Source[];
}

async function nothing(): Promise<Candidates> {
  return { found: [], read: 0, sources: [] };
}

/** The market that an id, a slug or a ticker given as the topic stands for; null when the topic is words. */
interface Named {
  /** The words to search for on the other venue. */
  words: string;
  polymarketEvent: PolymarketEvent | null;
  kalshiMarket: KalshiMarket | null;
  sources: Source[];
}

async function namedBy(
  topic: string,
  asked: readonly Platform[],
  { upstreams }: Context,
): Promise<Named | null> {
  if (asked.includes('kalshi') && /^KX[A-Z0-9]+-[A-Z0-9.-]+$/i.test(topic)) {
    const { value, source } = await upstreams.kalshi.market(topic.toUpperCase());
    if (value !== null) {
      const words = kalshiQuestion({ title: value.title ?? value.yesSubTitle ?? topic }, value);
      return { words, polymarketEvent: null, kalshiMarket: value, sources: [source] };
    }
  }
  const slug = /^[a-z0-9]+(?:-[a-z0-9.]+){2,}$/.test(topic);
  if (asked.includes('polymarket') && (slug || /^\d{1,12}$/.test(topic))) {
    const { value, source } = slug
      ? await upstreams.polymarket.eventBySlug(topic)
      : await upstreams.polymarket.eventById(topic);
    if (value !== null) {
      return { words: value.title, polymarketEvent: value, kalshiMarket: null, sources: [source] };
    }
  }
  return null;
}

async function polymarketCandidates(
  topic: string,
  search: Search,
  named: Named | null,
  { upstreams }: Context,
): Promise<Candidates> {
  const own = named?.polymarketEvent ?? null;
  const { value, source } =
    own === null
      ? await upstreams.polymarket.search({ query: named?.words ?? topic, limit: EVENTS_SEARCHED })
      : { value: { events: [own] }, source: null };
  const questions = value.events.flatMap((event) =>
    event.markets.filter((market) => !market.closed && isYesNo(market)).map((market) => ({ event, market })),
  );
  const found = questions.map(
    ({ event, market }): Candidate => ({
      platform: 'polymarket',
      id: market.id,
      question: market.question,
      listed: { bid: market.bestBid, ask: market.bestAsk },
      lastPrice: market.outcomes[0]?.price ?? null,
      volume: market.volumeUsd,
      closeTime: market.endDate ?? event.endDate,
      rules: market.rules,
      url: event.url,
      score: own === null ? relevanceOf(search, `${event.title} ${market.question}`) : 1,
      record: market,
    }),
  );
  return { found: best(found), read: questions.length, sources: source === null ? [] : [source] };
}

function isYesNo({ outcomes: [yes, no, ...more] }: PolymarketMarket): boolean {
  return yes?.name.toLowerCase() === 'yes' && no?.name.toLowerCase() === 'no' && more.length === 0;
}

async function kalshiCandidates(
  search: Search,
  named: Named | null,
  { upstreams }: Context,
): Promise<Candidates> {
  const own = named?.kalshiMarket ?? null;
  if (own !== null) return { found: [kalshiCandidate(null, own, 1)], read: 1, sources: [] };
  const list = await upstreams.kalshi.events({ status: 'open', maximumPages: EVENT_PAGES });
  const questions = list.items.flatMap((event) =>
    event.markets.filter(({ status }) => status === 'active').map((market) => ({ event, market })),
  );
  const found = questions.map(({ event, market }) =>
    kalshiCandidate(
      event,
      market,
      relevanceOf(search, `${event.title} ${kalshiQuestion(event, market)}`, market.ticker),
    ),
  );
  return { found: best(found), read: questions.length, sources: list.sources };
}

function kalshiCandidate(event: KalshiEvent | null, market: KalshiMarket, score: number): Candidate {
  return {
    platform: 'kalshi',
    id: market.ticker,
    question: kalshiQuestion({ title: event?.title ?? market.ticker }, market),
    listed: { bid: market.yesBid, ask: market.yesAsk },
    lastPrice: market.lastPrice,
    volume: market.volume,
    closeTime: market.closeTime,
    rules: market.rules,
    url: market.url,
    score,
    record: market,
  };
}

function best(found: readonly Candidate[]): Candidate[] {
  return found
    .filter(({ score }) => score >= LEAST_RELEVANCE)
    .sort((a, b) => b.score - a.score || (b.volume ?? 0) - (a.volume ?? 0))
    .slice(0, CANDIDATES);
}

/** The pair of questions that both venues ask and that fits the topic best; without one, each venue's best. */
function choose(
  polymarket: readonly Candidate[],
  kalshi: readonly Candidate[],
): { shown: Candidate[]; match: Match | null } {
  const read = ({ question, closeTime }: Candidate) => readQuestion(question, closeTime);
  const pairs = matchQuestions(polymarket, kalshi, read, read).filter(({ match }) =>
    atLeast(match.confidence, 'medium'),
  );
  const [pair] = pairs.sort(
    (x, y) =>
      Math.min(y.a.score, y.b.score) - Math.min(x.a.score, x.b.score) ||
      Number(atLeast(y.match.confidence, 'high')) - Number(atLeast(x.match.confidence, 'high')) ||
      (y.a.volume ?? 0) - (x.a.volume ?? 0),
  );
  if (pair !== undefined) return { shown: [pair.a, pair.b], match: pair.match };
  return { shown: [polymarket[0], kalshi[0]].filter((each) => each !== undefined), match: null };
}

interface Priced {
  candidate: Candidate;
  quotes: BestPrices;
  depth: BookDepth | null;
  probability: number | null;
  volumeUsd: number | null;
  sources: Source[];
}

async function price(candidate: Candidate, context: Context, notes: string[]): Promise<Priced> {
  const { quotes, depth, sources } = await quotesOf(candidate, context, notes);
  const probability = middle(quotes) ?? candidate.lastPrice;
  const { platform, volume } = candidate;
  const volumeUsd =
    platform === 'polymarket'
      ? volume
      : volume === null || probability === null
        ? null
        : volume * probability;
  return { candidate, quotes, depth, probability, volumeUsd, sources };
}

async function quotesOf(
  { record, listed, question }: Candidate,
  context: Context,
  notes: string[],
): Promise<{ quotes: BestPrices; depth: BookDepth | null; sources: Source[] }> {
  if ('ticker' in record) {
    const { value, source } = await context.upstreams.kalshi.book(record.ticker);
    if (value === null) return { quotes: listed, depth: null, sources: [source] };
    return {
      quotes: { bid: value.yesBids[0]?.price ?? null, ask: value.yesAsks[0]?.price ?? null },
      depth: depthOf(value.yesBids, value.yesAsks),
      sources: [source],
    };
  }
  const live = await unlessDown(liveQuotes(record, context));
  if (live === DOWN || live === null || live.doubt !== null) {
    notes.push(
      live !== DOWN && live?.doubt != null
        ? live.doubt
        : `The live book of "${question}" is not to be had now: its quotes are the catalogue’s, and depth is null.`,
    );
    return { quotes: listed, depth: null, sources: live === DOWN || live === null ? [] : live.sources };
  }
  return { quotes: live.quotes, depth: live.depth, sources: live.sources };
}
