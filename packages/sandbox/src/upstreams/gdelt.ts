/** https://api.gdeltproject.org/api/v2/doc/doc in its modes artlist, tonechart and timelinetone. An error is a line of text. */
import type { FastifyInstance } from 'fastify';
import type { Story } from './news.ts';
import { countOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** GDELT's index holds the last three months. */
const LONGEST_MS = 92 * DAY_MS;
const UNIT_MS: Readonly<Record<string, number>> = {
  min: 60_000,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
  m: 30 * DAY_MS,
};
const PARTS_PER_BIN = 10;

export function gdelt(app: FastifyInstance, { news, nowMs }: World): void {
  app.get<{ Querystring: Query }>('/doc/doc', ({ query }, reply) => {
    const text = (message: string) => reply.type('text/html; charset=utf-8').send(`${message}\n`);
    const phrases = phrasesOf(textOf(query, 'query') ?? '');
    if (phrases.length === 0) return text('You must enter at least one search term.');
    if (phrases.some((phrase) => phrase.length < 3)) return text('The specified phrase is too short.');
    const range = rangeOf(query, nowMs());
    if (range === null) return text('Invalid/Unsupported time range specified.');
    const stories = news.on(phrases, range.fromMs, range.toMs);
    // GDELT sends this content type with its JSON only sometimes.
    reply.type('application/json; charset=utf-8');
    if (stories.length === 0) return '{}';
    switch ((textOf(query, 'mode') ?? 'artlist').toLowerCase()) {
      case 'tonechart':
        return JSON.stringify({ tonechart: binsOf(stories) });
      case 'timelinetone':
        return JSON.stringify({
          query_details: { title: textOf(query, 'query'), date_resolution: '1h' },
          timeline: [{ series: 'Average Tone', data: hoursOf(stories) }],
        });
      case 'artlist':
        return JSON.stringify({
          articles: stories
            .slice(0, countOf(query, 'maxrecords', 75, 1, 250))
            .map(({ url, title, atMs }) => ({
              url,
              url_mobile: '',
              title,
              seendate: `${stamp(atMs).slice(0, 8)}T${stamp(atMs).slice(8)}Z`,
              socialimage: '',
              domain: 'news.sandbox.invalid',
              language: 'English',
              sourcecountry: 'United States',
            })),
        });
      default:
        return text('Invalid mode.');
    }
  });
}

/** The words and phrases of a query, without its operators. */
function phrasesOf(query: string): string[] {
  const bare = query.replace(/\b[a-z0-9]+:("[^"]*"|\S+)/gi, ' ').replace(/[()]/g, ' ');
  return [...bare.matchAll(/"([^"]*)"|(\S+)/g)]
    .map(([, quoted, word]) => (quoted ?? word ?? '').trim())
    .filter((phrase) => phrase !== '' && phrase !== 'OR');
}

function rangeOf(query: Query, nowMs: number): { fromMs: number; toMs: number } | null {
  const [start, end] = [textOf(query, 'startdatetime'), textOf(query, 'enddatetime')];
  if (start !== undefined || end !== undefined) {
    const toMs = end === undefined ? nowMs : timeOf(end);
    const fromMs = start === undefined ? nowMs - LONGEST_MS : timeOf(start);
    if (Number.isNaN(toMs) || Number.isNaN(fromMs) || fromMs >= toMs) return null;
    return { fromMs: Math.max(fromMs, nowMs - LONGEST_MS), toMs: Math.min(toMs, nowMs) };
  }
  const [, amount, unit] = /^(\d+)(min|h|d|w|m|hours|days)?$/i.exec(textOf(query, 'timespan') ?? '3m') ?? [];
  const unitMs = UNIT_MS[(unit ?? 'd').toLowerCase().replace('hours', 'h').replace('days', 'd')];
  if (amount === undefined || unitMs === undefined) return null;
  return { fromMs: nowMs - Math.min(LONGEST_MS, Number(amount) * unitMs), toMs: nowMs };
}

/** The milliseconds of a time in UTC written as `YYYYMMDDHHMMSS`; NaN if it is malformed. */
function timeOf(written: string): number {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})$/.exec(written) ?? [];
  return year === undefined ? Number.NaN : Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\D/g, '').slice(0, 14);
}

function binsOf(stories: readonly Story[]) {
  const bins = new Map<number, Story[]>();
  for (const story of stories) {
    const bin = Math.round(story.tone);
    bins.set(bin, [...(bins.get(bin) ?? []), story]);
  }
  return [...bins]
    .sort(([a], [b]) => a - b)
    .map(([bin, within]) => ({
      bin,
      count: within.length,
      toparts: within.slice(0, PARTS_PER_BIN).map(({ url, title }) => ({ url, title })),
    }));
}

function hoursOf(stories: readonly Story[]) {
  const hours = new Map<number, number[]>();
  for (const { atMs, tone } of stories) {
    const hour = Math.floor(atMs / HOUR_MS);
    hours.set(hour, [...(hours.get(hour) ?? []), tone]);
  }
  return [...hours]
    .sort(([a], [b]) => a - b)
    .map(([hour, tones]) => ({
      date: `${stamp(hour * HOUR_MS).slice(0, 8)}T${stamp(hour * HOUR_MS).slice(8)}Z`,
      value: Number((tones.reduce((sum, tone) => sum + tone, 0) / tones.length).toFixed(4)),
    }));
}
