/** What the sentiment services share: parts with their weights, news with links, and one way to combine them. */

import { outsiderText } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { noAnswer, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { COMMON_WORDS } from '../../../quant/common-words.ts';
import { headlineTone } from '../../../quant/headline-tone.ts';
import { leastRate, recordOfReturns } from '../../../quant/signal-record.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import { type MomentumRule, replayMomentum } from './price-momentum.ts';
import { shownRecord, signalRecord } from './signal-record.ts';

const DAY_MS = 86_400_000;
/** With fewer documents the figure is mostly chance. */
const FEW_DOCUMENTS = 5;
const MANY_DOCUMENTS = 30;
/** The distance from the middle from which a score is called bullish or bearish. */
const LABEL_FROM = 10;
/** The GDELT tone at which a part reaches three quarters of its maximum. */
const TONE_SCALE = 5;
const SHOWN_ARTICLES = 10;

export const sentimentPart = z.object({
  name: z.string().describe('What it is'),
  value: z.number().min(-1).max(1).nullable().describe('-1 (bad) to 1 (good); null when it is not known'),
  weight: z.number().describe('What it counts in the score, of those that are known; they sum to 1'),
  sample: z.number().int().nullable().describe('How much it rests on: documents, or days'),
  says: z.string().describe('The figures that it was made from, or why it is null'),
  url: outsiderText(2000)
    .nullable()
    .describe('Where it was read; a search has the token’s or company’s name in it'),
  asOf: z.string().nullable().describe('Date of it; null where it has none'),
});
export const article = z.object({
  title: outsiderText(500).describe('The headline'),
  url: outsiderText(2000).describe('Where to read it'),
  tone: z.number().nullable().describe('-1 (bad) to 1 (good); null where the rules know no word of it'),
  source: z.enum(['gdelt', 'hackernews']).describe('Where it was found'),
});
export type Article = z.input<typeof article>;

/** One part of a score, before the weights are known. */
export interface Voice {
  name: string;
  /** Its weight if all parts were known. */
  share: number;
  /** -1 to 1; null when it is not known. */
  value: number | null;
  sample: number | null;
  says: string;
  source: Source | null;
}

/** The record of the part of a verdict that past prices can replay. */
export const sentimentRecord = signalRecord
  .nullable()
  .describe(
    'How the part "returns" alone would have fared on past closes: bullish or bearish called by the same rule, for 7 days each. The news of those days was not read. Null where no prices are read',
  );
const OUTCOME_DAYS = 7;

/**
 * Replays the price part of a verdict on past closes. `feePercentPerTrade` is taken off twice from each call, for getting in and out.
 *
 * @returns null without a call that ended
 */
export function recordOfReturnsPart(
  closes: ReadonlyMap<number, number>,
  {
    feePercentPerTrade,
    ...rule
  }: Pick<MomentumRule, 'windowDays' | 'lookbackDays' | 'longestGap'> & {
    feePercentPerTrade: number;
  },
): z.output<typeof signalRecord> | null {
  const replay = replayMomentum(closes, {
    ...rule,
    outcomeDays: OUTCOME_DAYS,
    threshold: LABEL_FROM / 50,
  });
  if (replay.fromDay === null || replay.toDay === null) return null;
  const record = recordOfReturns(replay.moves.map((move) => move - 2 * feePercentPerTrade));
  return shownRecord(
    { ...record, unresolved: false, holdingPercent: replay.holdingPercent },
    feePercentPerTrade,
    // A close is of the end of its day.
    { fromMs: (replay.fromDay + 1) * DAY_MS, toMs: (replay.toDay + 1) * DAY_MS },
  );
}

/** Half of all calls would be right by chance. */
const CHANCE = 0.5;

/** How sure a verdict is: no surer than its texts are many, and no surer than its record. */
function sureness(
  documents: number,
  knownParts: number,
  record: z.output<typeof signalRecord> | null,
): Verdict['confidence'] {
  if (documents < FEW_DOCUMENTS) return 'low';
  if (record !== null && record.expectancyPercent !== null && record.expectancyPercent <= 0) return 'low';
  const proven = record !== null && leastRate(record.hits, record.trades) > CHANCE;
  return documents >= MANY_DOCUMENTS && knownParts > 1 && proven ? 'high' : 'medium';
}

export interface Verdict {
  /** 0 to 100; 50 is neutral. */
  score: number;
  label: 'bullish' | 'bearish' | 'neutral';
  confidence: 'low' | 'medium' | 'high';
  parts: z.input<typeof sentimentPart>[];
  sources: Source[];
}

/**
 * Combines the parts that are known.
 *
 * @param documents how many news articles and stories they are based on
 * @param record of the part that past prices can replay; null where there is none
 * @throws noAnswer when there was nothing to read
 */
export function verdictOf(
  voices: readonly Voice[],
  documents: number,
  subject: string,
  field: string,
  record: z.output<typeof signalRecord> | null = null,
): Verdict {
  const known = voices.filter((voice): voice is Voice & { value: number } => voice.value !== null);
  const shares = known.reduce((sum, { share }) => sum + share, 0);
  if (documents === 0 || shares === 0) {
    throw noAnswer(
      'INSUFFICIENT_DATA',
      `No text about ${subject} was found in the window, so there is no sentiment to measure.`,
      field,
    );
  }
  const mean = known.reduce((sum, { share, value }) => sum + (share / shares) * value, 0);
  const score = Math.round((50 + 50 * mean) * 10) / 10;
  return {
    score,
    label: score >= 50 + LABEL_FROM ? 'bullish' : score <= 50 - LABEL_FROM ? 'bearish' : 'neutral',
    confidence: sureness(documents, known.length, record),
    parts: voices.map(({ name, share, value, sample, says, source }) => ({
      name,
      value: value === null ? null : Math.round(value * 1e4) / 1e4,
      weight: value === null ? 0 : Math.round((share / shares) * 1e4) / 1e4,
      sample,
      says,
      url: source?.url ?? null,
      asOf: source?.asOf ?? null,
    })),
    sources: voices.flatMap(({ source }) => (source === null ? [] : [source])),
  };
}

export interface News {
  voices: Voice[];
  documents: number;
  articles: Article[];
  notes: string[];
}

/** The two sources of news, of which one is enough. */
export const NEWS_SOURCES = ['gdelt', 'hackernews'] as const;
type NewsSources = Pick<Upstreams, (typeof NEWS_SOURCES)[number]>;
export type NewsPlace = keyof NewsSources;

/**
 * Reads the last day's news on some terms, and the last week's stories.
 *
 * @param about phrases that name the subject, of three characters or more, the best known first
 * @param shares what each place would count in the score; a place that is left out is not asked
 * @throws the failure of the places when none of them answered
 */
export async function readNews(
  about: readonly string[],
  shares: Partial<Record<NewsPlace, number>>,
  { gdelt, hackernews }: NewsSources,
  nowMs: number,
): Promise<News> {
  const readings = await Promise.all([
    shares.gdelt === undefined ? null : heard(() => gdelt.coverage(about, nowMs - DAY_MS, nowMs)),
    shares.hackernews === undefined
      ? null
      : heard(() => hackernews.storiesOn(about[0] ?? '', nowMs - 7 * DAY_MS)),
  ]);
  const [covered, stories] = readings;
  const voices: Voice[] = [];
  const articles: Article[] = [];
  const notes: string[] = [];
  let documents = 0;
  if (covered instanceof UpstreamUnavailable) {
    voices.push(silent('news', shares.gdelt ?? 0, `GDELT did not answer (${covered.reason})`));
  } else if (covered !== null) {
    const { value, source } = covered;
    documents += value.documents;
    voices.push({
      name: 'news',
      share: shares.gdelt ?? 0,
      value: value.meanTone === null ? null : Math.tanh(value.meanTone / TONE_SCALE),
      sample: value.documents,
      says:
        value.meanTone === null
          ? 'no English news in 24 hours'
          : `mean tone ${value.meanTone.toFixed(2)} of ${value.documents} English news in 24 hours; tanh(tone / ${TONE_SCALE})`,
      source,
    });
    const spread = [...value.articles].sort((a, b) => Math.abs(b.tone) - Math.abs(a.tone));
    articles.push(
      ...spread.slice(0, SHOWN_ARTICLES).map(({ title, url, tone }) => ({
        title,
        url,
        tone: Math.round(Math.tanh(tone / TONE_SCALE) * 1e4) / 1e4,
        source: 'gdelt' as const,
      })),
    );
  }
  if (stories instanceof UpstreamUnavailable) {
    voices.push(
      silent('hackernews', shares.hackernews ?? 0, `Hacker News did not answer (${stories.reason})`),
    );
  } else if (stories !== null) {
    const read = stories.value.stories.map((story) => ({ ...story, tone: headlineTone(story.title) }));
    const tones = read.flatMap(({ tone }) => (tone === null ? [] : [tone]));
    documents += read.length;
    voices.push({
      name: 'hackernews',
      share: shares.hackernews ?? 0,
      value: tones.length === 0 ? null : tones.reduce((sum, tone) => sum + tone, 0) / tones.length,
      sample: read.length,
      says:
        tones.length === 0
          ? `${read.length} stories in 7 days, none with a word that the rules know`
          : `mean tone of ${tones.length} of ${read.length} titles in 7 days, by the rules for financial headlines`,
      source: stories.source,
    });
    articles.push(
      ...read.slice(0, SHOWN_ARTICLES).map(({ title, url, tone }) => ({
        title,
        url,
        tone: tone === null ? null : Math.round(tone * 1e4) / 1e4,
        source: 'hackernews' as const,
      })),
    );
  }
  const failures = readings.filter((one) => one instanceof UpstreamUnavailable);
  const asked = readings.filter((one) => one !== null).length;
  const [failure] = failures;
  if (failure !== undefined && failures.length === asked) throw failure;
  for (const { upstream, reason } of failures)
    notes.push(`${upstream} did not answer (${reason}): its part is null.`);
  return { voices, documents, articles, notes };
}

/** A part without a value, with the reason. */
export function silent(name: string, share: number, says: string): Voice {
  return { name, share, value: null, sample: null, says, source: null };
}

/** An answer, or the failure of its source, so that one missing part does not spoil the others. */
export async function heard<T>(ask: () => Promise<T>): Promise<T | UpstreamUnavailable> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof UpstreamUnavailable) return error;
    throw error;
  }
}

/** The most frequent words of the titles, without those that were searched for. */
export function themesOf(
  articles: readonly Article[],
  about: readonly string[],
): { theme: string; count: number }[] {
  const searched = new Set(about.flatMap((term) => term.toLowerCase().split(/[^a-z0-9]+/)));
  const counts = new Map<string, number>();
  for (const { title } of articles) {
    const found = new Set(title.toLowerCase().match(/[a-z][a-z0-9-]{2,}/g) ?? []);
    for (const word of found) {
      if (!COMMON_WORDS.has(word) && !searched.has(word)) counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  return [...counts]
    .filter(([, count]) => count > 1)
    .sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))
    .slice(0, 8)
    .map(([theme, count]) => ({ theme, count }));
}

export const SENTIMENT_METHOD =
  'Each part from -1 to 1 by the rule that it names; score = 50 + 50 × their weighted mean, the weights of unknown parts shared out ' +
  `among the known; bullish from ${50 + LABEL_FROM}, bearish up to ${50 - LABEL_FROM}; confidence is low below ${FEW_DOCUMENTS} ` +
  `documents and where the record lost after fees, high from ${MANY_DOCUMENTS} documents with more than one part and a record whose ` +
  `hit rate lies above one half by Wilson's 95 % interval, else medium.`;

export function sentimentDisclaimer(nowMs: number): string {
  return `Information as of ${new Date(nowMs).toISOString()}, by the rules in provenance.method. It measures what was written, not what will happen; not advice.`;
}
