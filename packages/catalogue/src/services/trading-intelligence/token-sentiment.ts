import { chainName, outsiderText, tokenAddress } from '@farebox/core/service/fields';
import { notFound, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { Dated } from '../../quant/returns.ts';
import { llamaToken } from '../../upstreams/adapters/defillama.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import { statisticAnswer } from '../figures.ts';
import { coinIdOf } from '../shared/market/coin-ids.ts';
import { type PriceHistory, priceHistory } from '../shared/market/price-history.ts';
import { momentumOf } from '../shared/market/price-momentum.ts';
import {
  article,
  heard,
  NEWS_SOURCES,
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
import { TAKER_FEES_PERCENT } from '../shared/market/trading-venues.ts';

const SHARES = { gdelt: 0.35, hackernews: 0.1, votes: 0.15, returns: 0.3, fearAndGreed: 0.1 } as const;
/** The usual move is that of so many days. */
const WINDOW_DAYS = 90;
/** So many are read, for the record. */
const HISTORY_DAYS = 365;
/** Taken off twice from each call of the record: what the cheapest of the exchanges takes of a trade. */
const FEE_PERCENT = Math.min(...Object.values(TAKER_FEES_PERCENT));
const MOMENTUM_DAYS = 7;
const RECORD_RULE = {
  windowDays: MOMENTUM_DAYS,
  lookbackDays: WINDOW_DAYS,
  longestGap: 1,
  feePercentPerTrade: FEE_PERCENT,
};
/** The least that a phrase must have to be searched for. */
const SHORTEST_PHRASE = 3;

/** Clients send tickers in the address field, too. */
function tickerInAddressField(body: Record<string, unknown>): Record<string, unknown> {
  const { tokenAddress: written, ...rest } = body;
  const isTicker =
    typeof written === 'string' && /^\$?[a-z0-9.]{1,15}$/i.test(written.trim()) && !/^0x/i.test(written);
  return isTicker && rest.tokenSymbol === undefined ? { ...rest, tokenSymbol: written } : body;
}

const percent = z.number().nullable();

export default defineService({
  path: 'token-sentiment',
  name: 'Token Sentiment Analyzer',
  tag: 'Trading Intelligence',
  priceUsd: '0.25',
  summary:
    'Sentiment on a token from news tone, votes, fear and greed and its returns: each part with weight, sample and link.',
  keywords:
    'mood hype crowd community opinion feeling social twitter buzz people think coin crypto cryptocurrency token bullish bearish fear greed dogecoin bitcoin ethereum talk reddit popular',
  input: z
    .object({
      tokenSymbol: z
        .string()
        .trim()
        .regex(/^\$?[A-Za-z0-9.]{1,15}$/, 'must be a ticker such as ETH')
        .transform((written) => written.replace(/^\$/, '').toUpperCase())
        .optional()
        .describe('Ticker, such as ETH'),
      tokenAddress: tokenAddress.optional(),
      chain: chainName.optional(),
    })
    .refine(({ tokenSymbol, tokenAddress }) => tokenSymbol !== undefined || tokenAddress !== undefined, {
      path: ['tokenSymbol'],
      message: 'is required (or tokenAddress and chain instead)',
    })
    .refine(
      ({ tokenSymbol, tokenAddress, chain }) =>
        tokenSymbol !== undefined || tokenAddress === undefined || chain !== undefined,
      {
        path: ['chain'],
        message: 'is required with tokenAddress',
      },
    )
    .meta({ anyOf: [{ required: ['tokenSymbol'] }, { required: ['tokenAddress', 'chain'] }] }),
  output: z.object({
    tokenSymbol: outsiderText(60).describe('Ticker'),
    name: outsiderText(100).nullable().describe('Name of the token; null where nobody knows it'),
    sentiment: z.enum(['bullish', 'bearish', 'neutral']).describe('The sentiment in a word'),
    score: z.number().min(0).max(100).describe('0 (bearish) to 100 (bullish); 50 is neutral'),
    momentum: z.string().describe('What the price did over 7 days, against what is usual'),
    change24h: percent.describe('Percent, from daily closes (UTC)'),
    change7d: percent.describe('Percent, from daily closes (UTC)'),
    confidence: z
      .enum(['low', 'medium', 'high'])
      .describe('How sure that is, by the number of texts and the record'),
    record: sentimentRecord,
    signals: z.array(sentimentPart).describe('What the score is made of'),
    sampleSize: z.number().int().describe('News and stories that were read'),
    articles: z.array(article).describe('Headlines that were read'),
    window: z.string().describe('The time that was read'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { tokenSymbol: 'ETH' },
  aliases: {
    symbol: 'tokenSymbol',
    ticker: 'tokenSymbol',
    query: 'tokenSymbol',
    token: 'tokenAddress',
    address: 'tokenAddress',
    contractAddress: 'tokenAddress',
    network: 'chain',
    chainId: 'chain',
  },
  adapt: tickerInAddressField,
  needs: [NEWS_SOURCES],
  uses: ['coingecko', 'feargreed', 'defillama', 'binance', 'kraken', 'coinbase'],
  requestsOf: { gdelt: 1 },
  timeoutMs: 25_000,
  async run(input, { upstreams, nowMs }) {
    const notes: string[] = [];
    const symbol = input.tokenSymbol ?? (await symbolOf(input, upstreams, notes));
    const coinId = coinIdOf(symbol);
    if (coinId === null) {
      notes.push(`${symbol} is not among the coins whose ticker is unambiguous: news may be on namesakes.`);
    }
    const [profile, history, mood] = await Promise.all([
      coinId === null ? null : heard(() => upstreams.coingecko.coinProfile(coinId)),
      historyOf(symbol, input, { upstreams, nowMs }),
      heard(() => upstreams.feargreed.days(1)),
    ]);
    const known = profile === null || profile instanceof UpstreamUnavailable ? null : profile.value;
    const about = phrasesOf(symbol, known?.name ?? coinId);
    const news = await readNews(about, SHARES, upstreams, nowMs());
    notes.push(...news.notes);

    const recent = history === null ? null : lastDays(history.closes, WINDOW_DAYS);
    const momentum = recent === null ? null : momentumOf(recent, MOMENTUM_DAYS, 1);
    const record = history === null ? null : recordOfReturnsPart(history.closes, RECORD_RULE);
    const voices: Voice[] = [
      ...news.voices,
      votesVoice(profile, coinId),
      returnsVoice(momentum, history),
      moodVoice(mood),
    ];
    if (momentum !== null && momentum.leftOut > 0) {
      notes.push(
        `Changes left out of the volatility, because closes between their ends are missing: ${momentum.leftOut}.`,
      );
    }
    if (mood instanceof UpstreamUnavailable)
      notes.push(`feargreed did not answer (${mood.reason}): its part is null.`);
    if (profile instanceof UpstreamUnavailable)
      notes.push(`coingecko did not answer (${profile.reason}): votes are null.`);
    const { score, label, confidence, parts, sources } = verdictOf(
      voices,
      news.documents,
      symbol,
      'tokenSymbol',
      record,
    );
    const change24h = history === null ? null : changeOver(history, 1);
    if (change24h === null) notes.push('change24h and change7d are null: no closes of this token are known.');
    return statisticAnswer(
      {
        tokenSymbol: symbol,
        name: known?.name ?? null,
        sentiment: label,
        score,
        momentum: momentumWords(momentum?.value ?? null),
        change24h,
        change7d: history === null ? null : changeOver(history, MOMENTUM_DAYS),
        confidence,
        record,
        signals: parts,
        sampleSize: news.documents,
        articles: news.articles,
        window: 'news 24 hours, stories and returns 7 days',
        disclaimer: sentimentDisclaimer(nowMs()),
      },
      { method: SENTIMENT_METHOD, sources, notes },
    );
  },
});

type Sources = Pick<Upstreams, 'defillama' | 'binance' | 'kraken' | 'coinbase'>;

/** The ticker of a token at its address, which is what news speaks of. */
async function symbolOf(
  {
    tokenAddress: address,
    chain,
  }: { tokenAddress?: string | undefined; chain?: Parameters<typeof llamaToken>[0] | undefined },
  { defillama }: Pick<Upstreams, 'defillama'>,
  notes: string[],
): Promise<string> {
  if (address === undefined || chain === undefined) throw new Error('validation asks for both');
  const coin = llamaToken(chain, address);
  const { value } = await defillama.currentPrices([coin]);
  const symbol = value.coins[coin]?.symbol.toUpperCase();
  if (symbol === undefined || !/^[A-Z0-9.]{1,15}$/.test(symbol)) {
    throw notFound('tokenAddress', `No source knows a ticker of ${address} on ${chain}. Give tokenSymbol.`);
  }
  notes.push(`${address} on ${chain} has the ticker ${symbol} by DefiLlama.`);
  // A wrapped coin is written about under the coin's own name.
  const unwrapped = { WETH: 'ETH', WBTC: 'BTC', CBBTC: 'BTC', WBNB: 'BNB', WSOL: 'SOL', WPOL: 'POL' }[symbol];
  if (unwrapped !== undefined) notes.push(`${symbol} is read as ${unwrapped}, which it wraps.`);
  return unwrapped ?? symbol;
}

/** Closes of the token; null when no source has any. */
async function historyOf(
  symbol: string,
  input: {
    tokenSymbol?: string | undefined;
    tokenAddress?: string | undefined;
    chain?: z.output<typeof chainName> | undefined;
  },
  sources: { upstreams: Sources; nowMs(): number },
): Promise<PriceHistory | null> {
  const asset =
    input.tokenSymbol === undefined && input.tokenAddress !== undefined && input.chain !== undefined
      ? { kind: 'token' as const, label: symbol, chain: input.chain, address: input.tokenAddress }
      : { kind: 'pair' as const, label: symbol, pair: { base: symbol, quote: 'USD' } };
  try {
    return await priceHistory(asset, '1d', HISTORY_DAYS, sources, 'tokenSymbol');
  } catch (error) {
    if (error instanceof Error && 'status' in error) return null;
    throw error;
  }
}

/** The phrases to search for: the name, and the ticker together with a word that makes it unambiguous. */
function phrasesOf(symbol: string, name: string | null): string[] {
  const phrases = [
    ...(name === null ? [] : [name.replace(/-/g, ' ')]),
    ...(symbol.length >= SHORTEST_PHRASE && name === null ? [`${symbol} token`, `${symbol} crypto`] : []),
    `${symbol} price`,
  ];
  return phrases.filter((phrase) => phrase.length >= SHORTEST_PHRASE);
}

function votesVoice(
  profile: Awaited<ReturnType<Upstreams['coingecko']['coinProfile']>> | UpstreamUnavailable | null,
  coinId: string | null,
): Voice {
  if (profile instanceof UpstreamUnavailable)
    return silent('votes', SHARES.votes, `CoinGecko did not answer (${profile.reason})`);
  const up = profile?.value?.votesUpPercent ?? null;
  if (profile === null || up === null) {
    return silent(
      'votes',
      SHARES.votes,
      coinId === null ? 'no votes: the ticker is ambiguous' : 'CoinGecko has no votes on it',
    );
  }
  return {
    name: 'votes',
    share: SHARES.votes,
    value: (up - 50) / 50,
    sample: null,
    says: `${up.toFixed(2)} % of the votes of CoinGecko's visitors today are up; how many voted is not told`,
    source: profile.source,
  };
}

function returnsVoice(momentum: ReturnType<typeof momentumOf>, history: PriceHistory | null): Voice {
  if (momentum === null || history === null)
    return silent('returns', SHARES.returns, 'no price history of this token');
  return {
    name: 'returns',
    share: SHARES.returns,
    value: momentum.value,
    sample: momentum.sample,
    says: `${momentum.changePercent.toFixed(2)} % over ${MOMENTUM_DAYS} days at ${(momentum.dailyVolatility * 100).toFixed(2)} % a day; tanh(move / usual move)`,
    source: history.source,
  };
}

function moodVoice(mood: Awaited<ReturnType<Upstreams['feargreed']['days']>> | UpstreamUnavailable): Voice {
  if (mood instanceof UpstreamUnavailable) {
    return silent('fearAndGreed', SHARES.fearAndGreed, `the index did not answer (${mood.reason})`);
  }
  const today = mood.value[0];
  if (today === undefined) return silent('fearAndGreed', SHARES.fearAndGreed, 'the index has no figure');
  return {
    name: 'fearAndGreed',
    share: SHARES.fearAndGreed,
    value: (today.value - 50) / 50,
    sample: 1,
    says: `${today.value} (${today.words}) for the crypto market as a whole`,
    source: mood.source,
  };
}

/** The closes of the last days that have any. */
function lastDays(closes: Dated, count: number): Dated {
  const last = Math.max(...closes.keys());
  return new Map([...closes].filter(([day]) => day > last - count));
}

function changeOver({ closes }: PriceHistory, days: number): number | null {
  const last = Math.max(...closes.keys());
  const [before, after] = [closes.get(last - days), closes.get(last)];
  return before === undefined || after === undefined ? null : (after / before - 1) * 100;
}

function momentumWords(value: number | null): string {
  if (value === null) return 'unknown';
  const size = Math.abs(value);
  if (size < 0.25) return 'flat';
  return `${size < 0.6 ? '' : 'strong '}${value > 0 ? 'up' : 'down'}`;
}
