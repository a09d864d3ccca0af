import { outsiderText, text } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { noAnswer, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { defineService } from '../define.ts';
import { statisticAnswer } from '../figures.ts';
import { coinIdOf } from '../shared/market/coin-ids.ts';
import {
  article,
  heard,
  type NewsPlace,
  readNews,
  SENTIMENT_METHOD,
  sentimentDisclaimer,
  sentimentPart,
  themesOf,
  verdictOf,
} from '../shared/market/sentiment.ts';

const DAY_MS = 86_400_000;
const SHARES = { gdelt: 0.7, hackernews: 0.3 } as const;
/** The sources that a caller may ask for, and the place that is read for each; null when none can be read. */
const PLACES: Readonly<Record<string, NewsPlace | null>> = {
  news: 'gdelt',
  gdelt: 'gdelt',
  hackernews: 'hackernews',
  hn: 'hackernews',
  forums: 'hackernews',
  twitter: null,
  x: null,
  reddit: null,
  telegram: null,
  discord: null,
};
const list = (value: unknown) => (typeof value === 'string' ? value.split(',') : value);
const place = (value: unknown) =>
  typeof value === 'string'
    ? value
        .trim()
        .toLowerCase()
        .replace(/[\s_-]/g, '')
    : value;
const score = z.number().min(0).max(100).nullable();

export default defineService({
  path: 'sentiment-analysis',
  name: 'Sentiment Analysis',
  tag: 'Investment',
  priceUsd: '0.50',
  summary:
    "The tone of the last day's news on a subject, and how it changed: the score with its parts, themes and links.",
  keywords:
    'sentiment mood tone opinion press media news coverage headlines papers journalists topic subject brand company positive negative public reporting articles reputation feeling saying about politician',
  input: z.object({
    query: text(
      100,
      'What it is about: a name or phrase of 3 characters or more, or the ticker of a well-known coin',
    ).refine(
      (phrase) => phrase.length >= 3 || coinIdOf(phrase) !== null,
      'must have 3 characters or more, or be the ticker of a well-known coin',
    ),
    sources: z
      .preprocess(
        list,
        z.array(z.preprocess(place, z.enum(Object.keys(PLACES) as [string, ...string[]]))).max(10),
      )
      .optional()
      .describe(
        'Of news and hackernews; others that clients ask for (twitter, reddit, telegram) are answered as null',
      ),
  }),
  output: z.object({
    query: z.string().describe('What was searched for, as asked'),
    score: z.number().min(0).max(100).describe('0 (negative) to 100 (positive); 50 is neutral'),
    overall: z.enum(['bullish', 'bearish', 'neutral']).describe('The sentiment in a word'),
    delta24h: z
      .number()
      .nullable()
      .describe("Points by which the news' score differs from that of the day before"),
    confidence: z
      .enum(['low', 'medium', 'high'])
      .describe(
        'How sure that is, by the number of texts; never high, as no price is read that could say how often it was right',
      ),
    bySource: z.record(z.string(), score).describe('Score of each source; null where it has none'),
    parts: z.array(sentimentPart).describe('What the score is made of'),
    keyThemes: z
      .array(
        z.object({
          theme: outsiderText(100).describe('The word'),
          count: z.number().int().describe('Headlines with it'),
        }),
      )
      .describe('Words that headlines share, the most frequent first'),
    articles: z.array(article).describe('Headlines that were read'),
    sampleSize: z.number().int().describe('Headlines that were read'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { query: 'bitcoin' },
  aliases: {
    symbol: 'query',
    token: 'query',
    topic: 'query',
    tokenSymbol: 'query',
    keyword: 'query',
    q: 'query',
    source: 'sources',
  },
  needs: [['gdelt', 'hackernews']],
  requestsOf: { gdelt: 2 },
  timeoutMs: 25_000,
  async run({ query, sources: asked }, { upstreams, nowMs }) {
    const wanted = asked === undefined || asked.length === 0 ? ['news', 'hackernews'] : asked;
    const places = new Set(wanted.flatMap((name) => PLACES[name] ?? []));
    if (places.size === 0) {
      throw noAnswer(
        'SOURCE_NOT_AVAILABLE',
        `None of ${wanted.join(', ')} can be read by a server without a contract. These can: news, hackernews.`,
        'sources',
      );
    }
    const coin = coinIdOf(query);
    const about =
      coin === null
        ? [query]
        : [coin.replace(/-/g, ' '), `${query.toUpperCase()} price`].filter(({ length }) => length >= 3);
    const shares = Object.fromEntries(
      Object.entries(SHARES).filter(([name]) => places.has(name as NewsPlace)),
    );
    const now = nowMs();
    const [news, before] = await Promise.all([
      readNews(about, shares, upstreams, now),
      places.has('gdelt')
        ? heard(() => upstreams.gdelt.coverage(about, now - 2 * DAY_MS, now - DAY_MS))
        : null,
    ]);
    const {
      score: total,
      label,
      confidence,
      parts,
      sources,
    } = verdictOf(news.voices, news.documents, query, 'query', null);
    const notes = [...news.notes];
    if (coin !== null) notes.push(`${query} is read as the coin "${coin}".`);
    const scoreOf = (name: string): number | null => {
      const value = parts.find((part) => part.name === name)?.value;
      return value === undefined || value === null ? null : Math.round((50 + 50 * value) * 10) / 10;
    };
    const earlier = before === null || before instanceof UpstreamUnavailable ? null : before.value.meanTone;
    const newsScore = scoreOf('news');
    const delta24h =
      earlier === null || newsScore === null
        ? null
        : Math.round((newsScore - (50 + 50 * Math.tanh(earlier / 5))) * 10) / 10;
    if (delta24h === null) {
      notes.push(
        before instanceof UpstreamUnavailable
          ? `delta24h is null: gdelt did not answer for the day before (${before.reason}).`
          : 'delta24h is null: there was no news to compare with.',
      );
    }
    const bySource: Record<string, number | null> = {};
    for (const name of wanted) {
      const read = PLACES[name] ?? null;
      bySource[name] = read === null ? null : scoreOf(read === 'gdelt' ? 'news' : 'hackernews');
      if (read === null) notes.push(`${name} is null: it can be read under a contract only.`);
    }
    const used: Source[] = [...sources];
    if (delta24h !== null && before !== null && !(before instanceof UpstreamUnavailable))
      used.push(before.source);
    return statisticAnswer(
      {
        query,
        score: total,
        overall: label,
        delta24h,
        confidence,
        bySource,
        parts,
        keyThemes: themesOf(news.articles, about),
        articles: news.articles,
        sampleSize: news.documents,
        disclaimer: sentimentDisclaimer(now),
      },
      { method: SENTIMENT_METHOD, sources: used, notes },
    );
  },
});
