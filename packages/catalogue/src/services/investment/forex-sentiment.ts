import type { Source } from '@farebox/core/words/answer';
import { notFound, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { correlation } from '../../quant/correlation.ts';
import { alignByPeriod } from '../../quant/returns.ts';
import { defineService } from '../define.ts';
import { statisticAnswer } from '../figures.ts';
import { momentumOf } from '../shared/market/price-momentum.ts';
import {
  article,
  heard,
  readNews,
  recordOfReturnsPart,
  SENTIMENT_METHOD,
  sentimentDisclaimer,
  sentimentPart,
  sentimentRecord,
  silent,
  type Voice,
  verdictOf,
} from '../shared/market/sentiment.ts';

const SHARES = { news: 0.3, returns: 0.4 } as const;
const DAY_MS = 86_400_000;
const WINDOW_DAYS = 180;
const MOMENTUM_DAYS = 28;
/** Over a weekend and a holiday, reference rates are four days apart. */
const LONGEST_GAP_DAYS = 4;
/** How the record is made. Reference rates are no venue's: nothing is taken off. */
const RECORD_RULE = {
  windowDays: MOMENTUM_DAYS,
  lookbackDays: WINDOW_DAYS,
  longestGap: LONGEST_GAP_DAYS,
  feePercentPerTrade: 0,
};
const TRADING_DAYS = 252;
const LEAST_COMMON = 20;
const MAJORS = ['EUR', 'USD', 'GBP', 'JPY', 'CHF'];

/** The names of currencies in the news. */
const NAMES: Readonly<Record<string, string>> = {
  EUR: 'euro zone',
  USD: 'US dollar',
  GBP: 'British pound',
  JPY: 'Japanese yen',
  CHF: 'Swiss franc',
  AUD: 'Australian dollar',
  NZD: 'New Zealand dollar',
  CAD: 'Canadian dollar',
  CNY: 'Chinese yuan',
  SEK: 'Swedish krona',
  NOK: 'Norwegian krone',
  DKK: 'Danish krone',
  INR: 'Indian rupee',
  BRL: 'Brazilian real',
  MXN: 'Mexican peso',
  ZAR: 'South African rand',
  TRY: 'Turkish lira',
  PLN: 'Polish zloty',
  CZK: 'Czech koruna',
  HUF: 'Hungarian forint',
  KRW: 'South Korean won',
  SGD: 'Singapore dollar',
  HKD: 'Hong Kong dollar',
  THB: 'Thai baht',
  IDR: 'Indonesian rupiah',
  ILS: 'Israeli shekel',
  PHP: 'Philippine peso',
  MYR: 'Malaysian ringgit',
  RON: 'Romanian leu',
  ISK: 'Icelandic krona',
};

/** EUR/USD, EURUSD, EUR-USD, eur_usd. */
function pairOf(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const [, base, quote] = /^\s*([a-z]{3})[\s/_:-]?([a-z]{3})\s*$/i.exec(value) ?? [];
  return base === undefined || quote === undefined ? value : `${base}/${quote}`.toUpperCase();
}

const flag = z
  .preprocess((value) => (value === 'true' ? true : value === 'false' ? false : value), z.boolean())
  .default(true);
const figure = z.number().nullable();

export default defineService({
  path: 'forex-sentiment',
  name: 'Forex Sentiment',
  tag: 'Investment',
  priceUsd: '0.40',
  summary:
    "A currency pair: the tone of the last day's news on either side, and momentum from the ECB's reference rates.",
  keywords:
    'forex fx currency currencies exchange rate euro eur dollar usd pound gbp sterling yen jpy franc chf outlook forecast strengthen weaken go up down against pair mood foreign money ecb',
  input: z.object({
    pair: z
      .preprocess(pairOf, z.string().regex(/^[A-Z]{3}\/[A-Z]{3}$/, 'must be two currencies, such as EUR/USD'))
      .refine((pair) => pair.slice(0, 3) !== pair.slice(4), 'must name two different currencies')
      .describe('Two currencies, such as EUR/USD'),
    includeEconomic: flag.describe('Accepted; the news is on the economy as well as on the currency'),
    includeCentralBank: flag.describe("Whether news on the currencies' central banks is read"),
    includeGeopolitical: flag.describe('Accepted; the news is not sorted by kind'),
  }),
  output: z.object({
    data: z
      .object({
        pair: z.string().describe('The pair, as BASE/QUOTE'),
        baseCurrency: z.string().describe('ISO 4217'),
        quoteCurrency: z.string().describe('ISO 4217'),
        rate: z
          .number()
          .describe('Units of the quote currency for one of the base: a reference rate, no tradable quote'),
        rateDate: z.string().describe('Day of the reference rate'),
        overallSentiment: z
          .enum(['bullish', 'bearish', 'neutral'])
          .describe('Of the base against the quote currency'),
        sentimentScore: z.number().min(-100).max(100).describe('-100 (bearish) to 100 (bullish)'),
        confidence: z
          .enum(['low', 'medium', 'high'])
          .describe('How sure that is, by the number of texts and the record'),
        record: sentimentRecord,
        parts: z.array(sentimentPart).describe('What the score is made of'),
        technicalOutlook: z
          .object({
            trend: z
              .enum(['up', 'down', 'flat'])
              .nullable()
              .describe('Mean of the last 20 rates against that of the last 60'),
            change28dPct: figure.describe('Change over 28 days, in percent'),
            high180d: z.number().describe('Highest rate of 180 days'),
            low180d: z.number().describe('Lowest rate of 180 days'),
          })
          .describe('What past rates say'),
        volatilityAssessment: z
          .object({
            annualizedPct: figure.describe('Volatility of a year, in percent'),
            level: z.enum(['low', 'medium', 'high']).nullable().describe('Below 6 %, below 12 %, above'),
            observations: z.number().int().describe('Returns that it rests on'),
          })
          .describe('How much the rate moves'),
        correlations: z
          .array(
            z.object({
              pair: z.string().describe('The other pair'),
              correlation: figure.describe('Of daily returns, -1 to 1'),
              observations: z.number().int().describe('Days that it rests on'),
            }),
          )
          .describe('How other pairs moved with it'),
        recentHeadlines: z.array(article).describe('Headlines that were read'),
        assetClass: z.literal('forex').describe('The kind of asset'),
        dataSource: z.string().describe('Where the data is from'),
      })
      .describe('The sentiment'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { pair: 'EUR/USD' },
  aliases: { symbol: 'pair', currencyPair: 'pair', query: 'pair' },
  needs: ['frankfurter', 'gdelt'],
  uses: ['hackernews'],
  requestsOf: { gdelt: 2 },
  timeoutMs: 25_000,
  async run({ pair, includeCentralBank }, { upstreams, nowMs }) {
    const [base, quote] = [pair.slice(0, 3), pair.slice(4)];
    const others = MAJORS.filter((major) => major !== base && major !== quote);
    const now = nowMs();
    const from = Math.floor(now / DAY_MS) * DAY_MS - WINDOW_DAYS * DAY_MS;
    // Two requests for GDELT in turn: it allows one in five seconds.
    const news = (currency: string) =>
      heard(() => readNews(phrasesOf(currency, includeCentralBank), { gdelt: SHARES.news }, upstreams, now));
    const [rates, ofBase, ofQuote] = await Promise.all([
      upstreams.frankfurter.since(base, [quote, ...others], from),
      news(base),
      news(quote),
    ]);
    const closes = rates.value?.byQuote.get(quote);
    if (rates.value === null || closes === undefined || closes.size === 0) {
      throw notFound('pair', `The European Central Bank has no reference rate for ${pair}.`);
    }
    const notes: string[] = [
      "rate is the ECB's reference rate of a working day: for information, not for trading.",
    ];
    const momentum = momentumOf(closes, MOMENTUM_DAYS, LONGEST_GAP_DAYS);
    if (momentum !== null && momentum.leftOut > 0) {
      notes.push(
        `Changes left out of the volatility, because rates between their ends are missing: ${momentum.leftOut}.`,
      );
    }
    const record = recordOfReturnsPart(closes, RECORD_RULE);
    const voices: Voice[] = [];
    const articles: z.input<typeof article>[] = [];
    let documents = 0;
    for (const [currency, read, sign] of [
      [base, ofBase, 1],
      [quote, ofQuote, -1],
    ] as const) {
      const name = `news on ${currency}`;
      if (read instanceof UpstreamUnavailable) {
        voices.push(silent(name, SHARES.news, `GDELT did not answer (${read.reason})`));
        notes.push(`${name}: gdelt did not answer (${read.reason}); its part is null.`);
        continue;
      }
      documents += read.documents;
      articles.push(...read.articles.slice(0, 5));
      for (const voice of read.voices) {
        const counted = voice.value === null ? null : sign * voice.value;
        voices.push({
          ...voice,
          name,
          value: counted,
          says: sign === 1 ? voice.says : `${voice.says}; counted against the pair`,
        });
      }
    }
    if (ofBase instanceof UpstreamUnavailable && ofQuote instanceof UpstreamUnavailable) throw ofBase;
    voices.push(
      momentum === null
        ? silent('returns', SHARES.returns, 'too few reference rates')
        : {
            name: 'returns',
            share: SHARES.returns,
            value: momentum.value,
            sample: momentum.sample,
            says: `${momentum.changePercent.toFixed(2)} % over ${MOMENTUM_DAYS} days at ${(momentum.dailyVolatility * 100).toFixed(2)} % a working day; tanh(move / usual move)`,
            source: rates.source,
          },
    );
    const { score, label, confidence, parts, sources } = verdictOf(voices, documents, pair, 'pair', record);
    const days = [...closes.keys()].sort((a, b) => a - b);
    const values = days.map((day) => closes.get(day) ?? Number.NaN);
    const newest = days.at(-1) ?? 0;
    const annualized = momentum === null ? null : momentum.dailyVolatility * Math.sqrt(TRADING_DAYS) * 100;
    const used: Source[] = sources.some(({ url }) => url === rates.source.url)
      ? sources
      : [...sources, rates.source];
    const { byQuote } = rates.value;
    return statisticAnswer(
      {
        data: {
          pair,
          baseCurrency: base,
          quoteCurrency: quote,
          rate: closes.get(newest) ?? Number.NaN,
          rateDate: new Date(newest * DAY_MS).toISOString().slice(0, 10),
          overallSentiment: label,
          sentimentScore: Math.round((score - 50) * 20) / 10,
          confidence,
          record,
          parts,
          technicalOutlook: {
            trend: trendOf(values),
            change28dPct: momentum?.changePercent ?? null,
            high180d: Math.max(...values),
            low180d: Math.min(...values),
          },
          volatilityAssessment: {
            annualizedPct: annualized,
            level: levelOf(annualized),
            observations: momentum?.sample ?? 0,
          },
          correlations: others.flatMap((other) => {
            const rows = byQuote.get(other);
            return rows === undefined ? [] : [{ pair: `${base}/${other}`, ...correlated(closes, rows) }];
          }),
          recentHeadlines: articles,
          assetClass: 'forex' as const,
          dataSource: [...new Set(used.map(({ name }) => name))].join(', '),
        },
        disclaimer: sentimentDisclaimer(now),
      },
      {
        method: `${SENTIMENT_METHOD} Correlations of log changes between reference rates at most ${LONGEST_GAP_DAYS} days apart.`,
        sources: used,
        notes,
      },
    );
  },
});

function phrasesOf(currency: string, centralBank: boolean): string[] {
  const name = NAMES[currency] ?? `${currency} currency`;
  return centralBank
    ? [name, `${name} central bank`, `${currency} exchange rate`]
    : [name, `${currency} exchange rate`];
}

function levelOf(annualizedPct: number | null): 'low' | 'medium' | 'high' | null {
  if (annualizedPct === null) return null;
  return annualizedPct < 6 ? 'low' : annualizedPct < 12 ? 'medium' : 'high';
}

function trendOf(values: readonly number[]): 'up' | 'down' | 'flat' | null {
  if (values.length < 60) return null;
  const mean = (count: number) => values.slice(-count).reduce((sum, value) => sum + value, 0) / count;
  const change = mean(20) / mean(60) - 1;
  return Math.abs(change) < 0.001 ? 'flat' : change > 0 ? 'up' : 'down';
}

function correlated(
  a: ReadonlyMap<number, number>,
  b: ReadonlyMap<number, number>,
): { correlation: number | null; observations: number } {
  const { periods, columns } = alignByPeriod([a, b]);
  const changes = columns.map((column) =>
    column.flatMap((value, index) => {
      const [before, gap] = [column[index - 1], (periods[index] ?? 0) - (periods[index - 1] ?? 0)];
      return before === undefined || gap > LONGEST_GAP_DAYS ? [] : [Math.log(value / before)];
    }),
  );
  const observations = changes[0]?.length ?? 0;
  return {
    correlation: observations < LEAST_COMMON ? null : correlation(changes[0] ?? [], changes[1] ?? []),
    observations,
  };
}
