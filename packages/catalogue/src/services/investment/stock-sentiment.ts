import { outsiderText } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { notFound, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { defineService } from '../define.ts';
import { statisticAnswer } from '../figures.ts';
import {
  article,
  heard,
  NEWS_SOURCES,
  readNews,
  SENTIMENT_METHOD,
  sentimentDisclaimer,
  sentimentPart,
  themesOf,
  verdictOf,
} from '../shared/market/sentiment.ts';

const SHARES = { gdelt: 0.8, hackernews: 0.2 } as const;
const DAY_MS = 86_400_000;
/** Older filings are ignored. */
const EVENT_DAYS = 30;
const SHOWN_FILINGS = 10;

const flag = (description: string) =>
  z
    .preprocess((value) => (value === 'true' ? true : value === 'false' ? false : value), z.boolean())
    .default(true)
    .describe(description);
const filing = z.object({
  form: outsiderText(60).describe('Form of the filing'),
  date: z.string().describe('When it was filed'),
  title: outsiderText(500).nullable().describe('What it is about; null where the form does not say'),
  url: outsiderText(2000).describe('Where to read it'),
});

export default defineService({
  path: 'stock-sentiment',
  name: 'Stock Sentiment',
  tag: 'Investment',
  priceUsd: '0.40',
  summary:
    "The tone of the last day's news on a listed company, with links, and what it filed with the SEC of late.",
  keywords:
    'stock stocks share shares equity equities company companies listed ticker nasdaq nyse apple tesla nvidia microsoft earnings sec filing filings news press headlines papers media investors mood wall street nvda aapl tsla msft amzn goog meta amazon google meta sp500 dividend ceo',
  input: z.object({
    symbol: z
      .string()
      .trim()
      .toUpperCase()
      .regex(
        /^[A-Z][A-Z.-]{0,9}$/,
        'must be the ticker of a share, such as AAPL; for pairs there is forex-sentiment',
      )
      .describe('Ticker, such as AAPL'),
    includeNews: flag('Whether to list the headlines'),
    includeTechnicals: flag('Accepted; there is no source of share prices, so it changes nothing'),
    includeInstitutional: flag('Whether to list filings with the SEC'),
  }),
  output: z.object({
    data: z
      .object({
        symbol: z.string().describe('Ticker'),
        companyName: outsiderText(300).nullable().describe('By the SEC; null where it could not be asked'),
        overallSentiment: z.enum(['bullish', 'bearish', 'neutral']).describe('The sentiment in a word'),
        sentimentScore: z.number().min(-100).max(100).describe('-100 (negative) to 100 (positive)'),
        confidence: z
          .enum(['low', 'medium', 'high'])
          .describe(
            'How sure that is, by the number of texts; never high, as no price is read that could say how often it was right',
          ),
        parts: z.array(sentimentPart).describe('What the score is made of'),
        keyDrivers: z
          .array(
            z.object({
              theme: outsiderText(100).describe('The word'),
              count: z.number().int().describe('Headlines with it'),
            }),
          )
          .describe('Words of most titles'),
        newsAnalysis: z
          .object({
            recentHeadlines: z.array(article).describe('Headlines that were read'),
            overallTone: z.string().describe('Their tone in a word'),
            majorEvents: z
              .array(filing)
              .describe(`Current reports (8-K, 6-K) of the last ${EVENT_DAYS} days`),
            documents: z.number().int().describe('Headlines that the tone rests on'),
          })
          .nullable()
          .describe('What the news says'),
        institutionalActivity: z
          .object({
            recentFilings: z.array(filing).describe('Filings, the newest first'),
            note: z.string().describe('What they do and do not tell'),
          })
          .nullable()
          .describe('Filings that mention owners (forms 3, 4, 5, 144, 13D, 13G)'),
        assetClass: z.literal('equity').describe('The kind of asset'),
        market: z.literal('stocks').describe('The market'),
        dataSource: z.string().describe('Where the data is from'),
      })
      .describe('The sentiment'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { symbol: 'AAPL' },
  aliases: { ticker: 'symbol', stock: 'symbol', query: 'symbol' },
  needs: [NEWS_SOURCES],
  uses: ['sectickers', 'edgar'],
  requestsOf: { gdelt: 1 },
  timeoutMs: 25_000,
  async run({ symbol, includeNews, includeTechnicals, includeInstitutional }, { upstreams, nowMs }) {
    const notes: string[] = [];
    const used: Source[] = [];
    const listed = await heard(() => upstreams.sectickers.company(symbol.replace('.', '-')));
    let company: { cik: number; name: string } | null = null;
    if (listed instanceof UpstreamUnavailable) {
      notes.push(
        `companyName is null: the SEC's list did not answer (${listed.reason}). News was searched by ticker alone.`,
      );
    } else if (listed.value === null) {
      throw notFound('symbol', `No company reports to the SEC under ${symbol}.`);
    } else {
      company = listed.value;
      used.push(listed.source);
    }
    const about = phrasesOf(symbol, company?.name ?? null);
    const { cik } = company ?? { cik: null };
    const [news, filed] = await Promise.all([
      readNews(about, SHARES, upstreams, nowMs()),
      cik === null ? null : heard(() => upstreams.edgar.filings(cik)),
    ]);
    notes.push(...news.notes);
    const filings = filed === null || filed instanceof UpstreamUnavailable ? null : filed.value;
    if (filings === null) {
      notes.push(
        filed instanceof UpstreamUnavailable
          ? `Filings are left out: EDGAR did not answer (${filed.reason}).`
          : 'Filings are left out: the company is not known to the SEC by this ticker.',
      );
    } else if (filed !== null && !(filed instanceof UpstreamUnavailable)) used.push(filed.source);
    if (includeTechnicals) {
      notes.push('There is no technical outlook: no source of share prices may be resold without a licence.');
    }
    const { score, label, confidence, parts, sources } = verdictOf(
      news.voices,
      news.documents,
      symbol,
      'symbol',
    );
    const links = (filings?.filings ?? []).map(({ accession, form, date, document, title }) => ({
      form,
      date,
      title,
      url: `https://www.sec.gov/Archives/edgar/data/${cik}/${accession.replace(/-/g, '')}/${encodeURIComponent(document)}`,
    }));
    const recent = links.filter(({ date }) => nowMs() - Date.parse(date) <= EVENT_DAYS * DAY_MS);
    return statisticAnswer(
      {
        data: {
          symbol,
          companyName: company?.name ?? null,
          overallSentiment: label,
          sentimentScore: Math.round((score - 50) * 20) / 10,
          confidence,
          parts,
          keyDrivers: themesOf(news.articles, about),
          newsAnalysis: includeNews
            ? {
                recentHeadlines: news.articles,
                overallTone: label === 'bullish' ? 'positive' : label === 'bearish' ? 'negative' : 'neutral',
                majorEvents: recent.filter(({ form }) => /^(8-K|6-K)/.test(form)).slice(0, SHOWN_FILINGS),
                documents: news.documents,
              }
            : null,
          institutionalActivity:
            includeInstitutional && filings !== null
              ? {
                  recentFilings: links
                    .filter(({ form }) => /^(3|4|5|144|SC 13[DG]|SCHEDULE 13[DG])(\/A)?$/.test(form))
                    .slice(0, SHOWN_FILINGS),
                  note: 'Filings by or about owners, as a list: what they bought or sold is in them.',
                }
              : null,
          assetClass: 'equity' as const,
          market: 'stocks' as const,
          dataSource: [...new Set([...sources, ...used].map(({ name }) => name))].join(', '),
        },
        disclaimer: sentimentDisclaimer(nowMs()),
      },
      { method: SENTIMENT_METHOD, sources: [...sources, ...used], notes },
    );
  },
});

/**
 * "Apple Inc." is written about as Apple, which is also a fruit. So the name is searched together with a word that only
 * a company has.
 */
function phrasesOf(symbol: string, name: string | null): string[] {
  const plain = name
    ?.replace(/[.,]/g, ' ')
    .replace(/\b(inc|corp|corporation|co|company|ltd|plc|holdings?|group|class [a-c]|the|de)\b/gi, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  const short = plain === undefined || plain.length < 2 ? null : plain;
  return [
    ...(short === null
      ? []
      : short.includes(' ')
        ? [short]
        : [`${short} shares`, `${short} stock`, `${short} Inc`]),
    `${symbol} stock`,
    `${symbol} shares`,
  ].slice(0, 5);
}
