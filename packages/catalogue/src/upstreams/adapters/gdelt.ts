import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';

/** A number of words between bounds of tone, about -10 to 10, and some of the articles there. */
const toneChart = z.looseObject({
  tonechart: z
    .array(
      z.looseObject({
        bin: z.number(),
        count: z.number().int().nonnegative(),
        toparts: z.array(z.looseObject({ url: z.string(), title: z.string() })).nullish(),
      }),
    )
    .optional(),
});

/** Errors come as plain text with HTTP 200. An empty object means that nothing was found. */
const reply = z
  .string()
  .transform((text, context) => {
    try {
      // GDELT passes titles on as it found them, with control characters that JSON does not allow.
      // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what has to go
      return JSON.parse(text.replace(/[\u0000-\u001f]+/g, ' ')) as unknown;
    } catch {
      context.addIssue({ code: 'custom', message: `not JSON: ${text.slice(0, 80)}` });
      return z.NEVER;
    }
  })
  .pipe(toneChart);

export interface Coverage {
  /** Articles found. */
  documents: number;
  /** Mean tone of all of them by GDELT's own measure, mostly -10 to 10; null without any. */
  meanTone: number | null;
  /** Some of the articles, for reading: those that GDELT considers most relevant at each tone. */
  articles: { title: string; url: string; tone: number }[];
}

const STEP_MS = 900_000;
const LONGEST_TITLE = 300;
const MOST_ARTICLES = 250;

/** GDELT's index of the world's news, by its DOC 2.0 API. https://blog.gdeltproject.org/gdelt-doc-2-0-api-debuts/ */
export const gdelt = defineUpstream({
  name: 'gdelt',
  title: 'GDELT',
  baseUrl: 'https://api.gdeltproject.org/api/v2',
  licence: 'The GDELT Project, https://www.gdeltproject.org/, citation asked',
  terms: {
    commercialUse: 'allowed',
    note: null,
    attribution: 'The GDELT Project, https://www.gdeltproject.org/',
    url: 'https://www.gdeltproject.org/about.html',
  },
  key: 'none',
  settings: {
    UPSTREAM_GDELT_REQUESTS_PER_MINUTE: {
      describe: 'How often GDELT may be asked in a minute; 12 unless you have agreed on more with it',
      required: false,
    },
  },
  // It allows one request in five seconds, so a second request of the same call waits for its turn.
  requestsPerMinute: 12,
  burst: 1,
  patienceMs: 10_500,
  timeoutMs: 12_000,
  open: (http) => ({
    /**
     * English news on any of the terms between two times, at most three months back, to the quarter of an hour.
     *
     * @param terms phrases of at least three characters
     */
    async coverage(terms: readonly string[], fromMs: number, toMs: number): Promise<Reply<Coverage>> {
      const phrases = terms.map((term) => `"${term.replace(/["()]/g, ' ').trim()}"`);
      const any = phrases.length === 1 ? phrases.join('') : `(${phrases.join(' OR ')})`;
      const { value, source } = await http.get({
        path: '/doc/doc',
        query: {
          query: `${any} sourcelang:english`,
          mode: 'tonechart',
          format: 'json',
          startdatetime: stamp(fromMs),
          enddatetime: stamp(toMs),
        },
        schema: reply,
        as: 'text',
        freshMs: STEP_MS,
        staleMs: STEP_MS,
      });
      const bins = value.tonechart ?? [];
      const documents = bins.reduce((sum, { count }) => sum + count, 0);
      const tones = bins.reduce((sum, { bin, count }) => sum + bin * count, 0);
      return {
        source: { ...source, asOf: new Date(stepOf(toMs)).toISOString() },
        value: {
          documents,
          meanTone: documents === 0 ? null : tones / documents,
          articles: bins
            .flatMap(({ bin, toparts }) =>
              (toparts ?? []).map(({ url, title }) => ({
                title: title.slice(0, LONGEST_TITLE),
                url,
                tone: bin,
              })),
            )
            .filter(({ url }) => /^https?:\/\//.test(url))
            .slice(0, MOST_ARTICLES),
        },
      };
    },
  }),
  probe: (api, nowMs) => api.coverage(['bitcoin'], nowMs - 86_400_000, nowMs),
});

function stepOf(ms: number): number {
  return Math.floor(ms / STEP_MS) * STEP_MS;
}

/** `YYYYMMDDHHMMSS`, UTC. */
function stamp(ms: number): string {
  return new Date(stepOf(ms)).toISOString().replace(/\D/g, '').slice(0, 14);
}
