import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Service } from '../../../../../core/src/service/define.ts';
import { BAR_MS } from '../../../upstreams/adapters/candle.ts';
import forexSentiment from '../../investment/forex-sentiment.ts';
import sentimentAnalysis from '../../investment/sentiment-analysis.ts';
import stockSentiment from '../../investment/stock-sentiment.ts';
import { down, type FakeUpstreams, NOW_MS, reply, runContext } from '../../run-context.fixture.ts';
import tokenSentiment from '../../trading-intelligence/token-sentiment.ts';
import { themesOf } from './sentiment.ts';

const DAY = BAR_MS['1d'];
const TODAY = Math.floor(NOW_MS / DAY);
const run = (service: Service, body: Record<string, unknown>, fakes: FakeUpstreams) =>
  service.run(service.input.parse(service.adapt?.(body) ?? body), runContext(fakes));
const near = (actual: unknown, expected: number, within = 0.06) =>
  assert.ok(Math.abs(Number(actual) - expected) <= within, `${actual} is not ${expected}`);

/** News by what is searched for: so many documents of one tone. */
function news(
  tones: Record<string, readonly [documents: number, tone: number]>,
  asked: string[] = [],
): FakeUpstreams {
  return {
    gdelt: {
      coverage: async (terms, _fromMs, toMs) => {
        asked.push(`${terms[0]}${toMs < NOW_MS ? ' before' : ''}`);
        const [documents, tone] = tones[`${terms[0]}${toMs < NOW_MS ? ' before' : ''}`] ?? [0, 0];
        return reply('gdelt', {
          documents,
          meanTone: documents === 0 ? null : tone,
          articles: Array.from({ length: Math.min(3, documents) }, (_, index) => ({
            title: `Synthetic merger headline ${index}`,
            url: `https://example.org/${index}`,
            tone,
          })),
        });
      },
    },
    hackernews: { storiesOn: async () => reply('hackernews', { total: 0, stories: [] }) },
  };
}
/** Closes that swing by 1 % and rise by 3 % in the last week. */
const exchange: FakeUpstreams = {
  binance: {
    candles: async ({ base }) => {
      if (base !== 'ETH' && base !== 'BTC') return reply('binance', null);
      const bars = Array.from({ length: 90 }, (_, index) => {
        const day = TODAY - 90 + index;
        const close =
          100 * Math.exp((index % 2) * 0.01 + (index > 82 ? 0.03 * (base === 'ETH' ? 1 : -1) : 0));
        return {
          openMs: day * DAY,
          closeMs: (day + 1) * DAY,
          open: close,
          high: close,
          low: close,
          close,
          volume: 1,
        };
      });
      return reply('binance', bars);
    },
  },
  kraken: { candles: async () => reply('kraken', null) },
  coinbase: { candles: async () => reply('coinbase', null) },
};
const moods: FakeUpstreams = {
  feargreed: { days: async () => reply('feargreed', [{ value: 30, words: 'Fear', atMs: TODAY * DAY }]) },
  coingecko: {
    coinProfile: async (id: string) =>
      reply('coingecko', { name: id === 'ethereum' ? 'Ethereum' : 'Bitcoin', votesUpPercent: 80 }),
  },
};

describe('token sentiment', () => {
  const sources = { ...news({ Ethereum: [40, 5], Bitcoin: [40, -5] }), ...exchange, ...moods };

  it('is the weighted mean of parts that it shows', async () => {
    const { fields, notes, sources: used } = await run(tokenSentiment, { tokenSymbol: 'eth' }, sources);
    const parts = fields.signals as {
      name: string;
      value: number | null;
      weight: number;
      url: string | null;
    }[];
    near(
      parts.reduce((sum, { weight }) => sum + weight, 0),
      1,
      1e-12,
    );
    near(
      parts.reduce((sum, { weight, value }) => sum + weight * (value ?? 0), 0) * 50 + 50,
      Number(fields.score),
    );
    near(parts.find(({ name }) => name === 'news')?.value, Math.tanh(1), 1e-4);
    near(parts.find(({ name }) => name === 'votes')?.value, 0.6, 1e-9);
    near(parts.find(({ name }) => name === 'fearAndGreed')?.value, -0.4, 1e-9);
    assert.equal(
      parts.find(({ name }) => name === 'hackernews')?.value,
      null,
      'no story: null, and no weight',
    );
    assert(parts.filter(({ value }) => value !== null).every(({ url }) => url !== null));
    assert.deepEqual([fields.sentiment, fields.sampleSize], ['bullish', 40]);
    assert.match(String(fields.momentum), /up/);
    // By hand from the closes: from 1.03 to 1.04 in logarithms over a day, from 0 to 0.04 over seven.
    near(fields.change24h, 100 * Math.expm1(0.01), 1e-7);
    near(fields.change7d, 100 * Math.expm1(0.04), 1e-7);
    assert.deepEqual(notes, []);
    assert(used.length >= 4);
    assert.equal(tokenSentiment.output.safeParse(fields).success, true);
  });

  it('states how its price part fared on past closes, and is no surer than that', async () => {
    /** Daily closes of a year by a rule. */
    const closesOf = (close: (index: number) => number): FakeUpstreams => ({
      ...sources,
      binance: {
        candles: async () =>
          reply(
            'binance',
            Array.from({ length: 365 }, (_, index) => {
              const openMs = (TODAY - 365 + index) * DAY;
              const price = close(index);
              const levels = { open: price, high: price, low: price, close: price };
              return { openMs, closeMs: openMs + DAY, volume: 1, ...levels };
            }),
          ),
      },
    });
    const read = async (close: (index: number) => number) => {
      const { fields } = await run(tokenSentiment, { tokenSymbol: 'ETH' }, closesOf(close));
      return fields as { confidence: string; record: Record<string, number | string | boolean> | null };
    };
    // 1 % a day and a wiggle: each call is "bullish", and each lasts for seven days.
    const rising = (index: number) => 100 * Math.exp(0.01 * index + (index % 2) * 0.001);
    const good = await read(rising);
    // The first call needs ten changes before it: day 10, then each seventh day, of which 363 has no outcome any more.
    const days = Array.from({ length: 50 }, (_, index) => 10 + 7 * index);
    const earned = days.map((day) => 100 * (rising(day + 7) / rising(day) - 1) - 0.2);
    assert.deepEqual([good.record?.trades, good.record?.hits, good.record?.outOfSample], [50, 50, true]);
    near(good.record?.expectancyPercent, earned.reduce((sum, each) => sum + each, 0) / 50, 0.0006);
    assert.equal(good.record?.from, new Date((TODAY - 365 + 11) * DAY).toISOString());
    assert.equal(good.confidence, 'high');
    // A price that turns each week: the same rule is wrong each time, and 40 news items do not make it sure.
    const turning = await read((index) => 100 * Math.exp(0.1 * Math.asin(Math.sin((index * Math.PI) / 7))));
    assert(Number(turning.record?.expectancyPercent) < 0, JSON.stringify(turning.record));
    assert.equal(turning.confidence, 'low');
    const still = await read(() => 100);
    assert.deepEqual([still.record, still.confidence], [null, 'medium']);
  });

  it('has null for votes that nobody cast, and lets the other parts weigh more', async () => {
    const unvoted = {
      ...sources,
      coingecko: {
        coinProfile: async () => reply('coingecko', { name: 'Ethereum', votesUpPercent: null }),
      },
    };
    const { fields } = await run(tokenSentiment, { tokenSymbol: 'ETH' }, unvoted);
    const parts = fields.signals as { name: string; value: number | null; weight: number }[];
    const votes = parts.find(({ name }) => name === 'votes');
    assert.deepEqual([votes?.value, votes?.weight], [null, 0]);
  });

  it('differs where the sources differ, and for nothing else', async () => {
    const eth = await run(tokenSentiment, { tokenSymbol: 'ETH' }, sources);
    const btc = await run(tokenSentiment, { tokenSymbol: 'BTC' }, sources);
    assert(Number(btc.fields.score) < Number(eth.fields.score) - 20);
    const same = {
      ...news({ Ethereum: [40, 1], Bitcoin: [40, 1] }),
      ...moods,
      binance: { candles: async () => reply('binance', null) },
      kraken: exchange.kraken,
      coinbase: exchange.coinbase,
    } as FakeUpstreams;
    const one = await run(tokenSentiment, { tokenSymbol: 'ETH' }, same);
    const other = await run(tokenSentiment, { tokenSymbol: 'BTC' }, same);
    assert.equal(one.fields.score, other.fields.score);
    assert.deepEqual([one.fields.change24h, one.fields.momentum], [null, 'unknown']);
  });

  it('resolves a token by address and chain, as a client sends it', async () => {
    const llama: FakeUpstreams = {
      defillama: {
        currentPrices: async (coins: readonly string[]) =>
          reply('defillama', {
            coins: { [coins[0] ?? '']: { symbol: 'WETH', price: 3_000, timestamp: NOW_MS / 1_000 } },
          }),
        priceChart: async () => reply('defillama', null),
      },
    };
    const body = {
      token_address: 'x',
      tokenAddress: '0x4200000000000000000000000000000000000006',
      chain: 'base',
    };
    const { fields, notes } = await run(tokenSentiment, body, { ...sources, ...llama });
    assert.equal(fields.tokenSymbol, 'ETH');
    assert.match(notes.join(' '), /WETH is read as ETH/);
    const nobody = { defillama: { currentPrices: async () => reply('defillama', { coins: {} }) } };
    await assert.rejects(run(tokenSentiment, body, { ...sources, ...nobody }), { status: 404 });
    assert.equal(tokenSentiment.input.safeParse({ tokenAddress: body.tokenAddress }).success, false);
    assert.equal(tokenSentiment.input.safeParse({}).success, false);
  });

  it('has no score without a word written, and none when nobody can be asked', async () => {
    const mute = { ...sources, ...news({}) };
    await assert.rejects(run(tokenSentiment, { tokenSymbol: 'ETH' }, mute), {
      status: 422,
      code: 'INSUFFICIENT_DATA',
    });
    const dark = {
      ...sources,
      gdelt: { coverage: down('gdelt') },
      hackernews: { storiesOn: down('hackernews') },
    };
    await assert.rejects(run(tokenSentiment, { tokenSymbol: 'ETH' }, dark), { status: 503 });
  });

  it('goes on without the sources that only add to it, and says so', async () => {
    const half = {
      ...sources,
      feargreed: { days: down('feargreed') },
      coingecko: { coinProfile: down('coingecko') },
    };
    const { fields, notes } = await run(
      tokenSentiment,
      { tokenSymbol: 'ETH' },
      { ...half, ...news({ ethereum: [3, 2] }) },
    );
    const parts = fields.signals as { name: string; value: number | null }[];
    assert.deepEqual(
      parts.filter(({ value }) => value === null).map(({ name }) => name),
      ['hackernews', 'votes', 'fearAndGreed'],
    );
    assert.match(notes.join(' '), /feargreed did not answer/);
    assert.equal(fields.confidence, 'low');
  });
});

describe('sentiment analysis', () => {
  it('gives the change against the day before in points of the score', async () => {
    const { fields } = await run(
      sentimentAnalysis,
      { query: 'oil price' },
      news({ 'oil price': [12, 2], 'oil price before': [8, -1] }),
    );
    near(fields.score, 50 + 50 * Math.tanh(0.4));
    near(fields.delta24h, 50 * (Math.tanh(0.4) - Math.tanh(-0.2)));
    assert.deepEqual(fields.bySource, { news: fields.score, hackernews: null });
    assert.deepEqual((fields.keyThemes as { theme: string }[])[0]?.theme, 'headline');
    assert.equal(sentimentAnalysis.output.safeParse(fields).success, true);
  });

  it('lists a source that cannot be read as null, and refuses when there is no other', async () => {
    const asked = { query: 'oil price', sources: ['Twitter', 'news', 'reddit'] };
    const { fields, notes } = await run(sentimentAnalysis, asked, news({ 'oil price': [12, 2] }));
    assert.deepEqual(
      Object.entries(fields.bySource as object)
        .filter(([, score]) => score === null)
        .map(([name]) => name),
      ['twitter', 'reddit'],
    );
    assert.match(notes.join(' '), /twitter is null/);
    await assert.rejects(run(sentimentAnalysis, { query: 'oil price', sources: ['telegram'] }, news({})), {
      status: 422,
      code: 'SOURCE_NOT_AVAILABLE',
      field: 'sources',
    });
  });

  it('goes on when one place is down, and reads a ticker as its coin', async () => {
    const stories = [
      { title: 'Bitcoin rallies on inflows', url: 'https://example.org', points: 3, atMs: NOW_MS },
    ];
    const { fields, notes } = await run(
      sentimentAnalysis,
      { query: 'BTC' },
      {
        gdelt: { coverage: down('gdelt') },
        hackernews: { storiesOn: async () => reply('hackernews', { total: 1, stories }) },
      },
    );
    assert(Number(fields.score) > 60);
    assert.deepEqual([fields.delta24h, fields.confidence], [null, 'low']);
    assert.match(notes.join(' '), /gdelt did not answer.*delta24h is null/s);
    assert.equal(sentimentAnalysis.input.safeParse({ query: 'zz' }).success, false);
  });
});

it('takes no word for a theme that any headline might have', () => {
  const headlines = [
    'Another turn: five charts say oil is up again',
    'Oil charts turn again as another five refineries close',
    'Refineries close for five more days',
  ].map((title) => ({ title, url: 'https://example.org', tone: null, source: 'gdelt' as const }));
  assert.deepEqual(themesOf(headlines, ['oil price']), [
    { theme: 'close', count: 2 },
    { theme: 'refineries', count: 2 },
  ]);
});

describe('stock sentiment', () => {
  const filings = [
    { accession: '0000320193-26-000079', form: '4', date: '2026-11-20', document: 'wk.xml', title: 'FORM 4' },
    { accession: '0000320193-26-000078', form: '8-K', date: '2026-11-02', document: 'a8k.htm', title: null },
    { accession: '0000320193-26-000001', form: '8-K', date: '2026-01-02', document: 'old.htm', title: null },
  ];
  const sec: FakeUpstreams = {
    sectickers: {
      company: async (ticker: string) =>
        reply('sectickers', ticker === 'AAPL' ? { cik: 320_193, name: 'Apple Inc.' } : null),
    },
    edgar: { filings: async () => reply('edgar', { name: 'Apple Inc.', filings }) },
  };
  type Data = {
    data: Record<string, unknown> & {
      newsAnalysis: { majorEvents: { url: string }[] };
      institutionalActivity: { recentFilings: unknown[] };
    };
  };

  it('reads the tone of news on the company, and lists what it filed', async () => {
    const { fields } = await run(
      stockSentiment,
      { symbol: 'aapl' },
      { ...news({ 'Apple shares': [30, -5] }), ...sec },
    );
    const { data } = fields as unknown as Data;
    near(data.sentimentScore, -100 * Math.tanh(1), 0.1);
    assert.deepEqual([data.overallSentiment, data.companyName], ['bearish', 'Apple Inc.']);
    assert.deepEqual(
      data.newsAnalysis.majorEvents.map(({ url }) => url),
      ['https://www.sec.gov/Archives/edgar/data/320193/000032019326000078/a8k.htm'],
    );
    assert.equal(data.institutionalActivity.recentFilings.length, 1);
    assert.equal(stockSentiment.output.safeParse(fields).success, true);
  });

  it('knows no company that does not report, and takes a pair for none', async () => {
    await assert.rejects(run(stockSentiment, { symbol: 'NOPE' }, { ...news({}), ...sec }), {
      status: 404,
      field: 'symbol',
    });
    for (const symbol of ['BTC/USDT', '', '123', 'TOOLONGTICKER']) {
      assert.equal(stockSentiment.input.safeParse({ symbol }).success, false, symbol);
    }
  });

  it('goes on without the SEC, and says what is missing', async () => {
    const blind = { ...news({ 'AAPL stock': [6, 1] }), sectickers: { company: down('sectickers') } };
    const { fields, notes } = await run(stockSentiment, { symbol: 'AAPL' }, blind);
    const { data } = fields as unknown as Data;
    assert.deepEqual([data.companyName, data.institutionalActivity], [null, null]);
    assert.match(notes.join(' '), /companyName is null/);
  });
});

describe('forex sentiment', () => {
  /** Working days with a rate that swings, and another currency that moves as it does. */
  function rates(missing: readonly number[] = []) {
    const days = Array.from({ length: 180 }, (_, back) => TODAY - 180 + back).filter(
      (day) => (day + 3) % 7 < 5 && !missing.includes(day),
    );
    const usd = new Map(days.map((day) => [day, 1.1 + 0.01 * Math.sin(day)]));
    const gbp = new Map(days.map((day) => [day, 0.9 * (1.1 + 0.01 * Math.sin(day))]));
    return {
      byQuote: new Map([
        ['USD', usd],
        ['GBP', gbp],
      ]),
    };
  }
  const ecb = (value: ReturnType<typeof rates> | null): FakeUpstreams => ({
    frankfurter: { since: async () => reply('frankfurter', value) },
  });

  it('counts good news on the quote currency against the pair', async () => {
    const tones = news({ 'euro zone': [20, 5], 'US dollar': [20, 5] });
    const { fields } = await run(forexSentiment, { pair: 'eurusd' }, { ...tones, ...ecb(rates()) });
    const { data } = fields as { data: Record<string, unknown> };
    const parts = data.parts as { name: string; value: number }[];
    assert.deepEqual(
      parts.map(({ name }) => name),
      ['news on EUR', 'news on USD', 'returns'],
    );
    near((parts[0]?.value ?? 0) + (parts[1]?.value ?? 0), 0, 1e-9);
    assert.equal(data.pair, 'EUR/USD');
    const record = data.record as { trades: number; feePercentPerTrade: number };
    assert(record.trades > 5 && record.feePercentPerTrade === 0);
    assert.equal((data.correlations as { correlation: number }[])[0]?.correlation, 1);
    assert.equal(forexSentiment.output.safeParse(fields).success, true);
    const tilted = await run(
      forexSentiment,
      { pair: 'EUR-USD' },
      { ...news({ 'euro zone': [20, 5], 'US dollar': [20, -5] }), ...ecb(rates()) },
    );
    assert(
      (tilted.fields.data as { sentimentScore: number }).sentimentScore > Number(data.sentimentScore) + 20,
    );
  });

  it('says how much a pair swings in a year of trading days, and of which day its rate is', async () => {
    const days = [...(rates().byQuote.get('USD')?.keys() ?? [])];
    const swinging = new Map(days.map((day, at) => [day, 1.1 * Math.exp((at % 2) * 0.01)]));
    const only = { byQuote: new Map([['USD', swinging]]) };
    const { fields } = await run(
      forexSentiment,
      { pair: 'EUR/USD' },
      { ...news({ 'euro zone': [20, 1], 'US dollar': [20, 1] }), ...ecb(only) },
    );
    const { data } = fields as {
      data: { rateDate: string; volatilityAssessment: { annualizedPct: number } };
    };
    // 1 % a day, on 252 days a year.
    near(data.volatilityAssessment.annualizedPct, 100 * 0.01 * Math.sqrt(252), 0.15);
    assert.equal(data.rateDate, new Date((days.at(-1) ?? 0) * DAY).toISOString().slice(0, 10));
    assert(days.at(-1) !== TODAY);
  });

  it('leaves out a change across a hole of more than a weekend, and tells it', async () => {
    const hole = Array.from({ length: 9 }, (_, index) => TODAY - 60 + index);
    const { notes } = await run(
      forexSentiment,
      { pair: 'EUR/USD' },
      { ...news({ 'euro zone': [20, 1] }), ...ecb(rates(hole)) },
    );
    assert.match(notes.join(' '), /Changes left out of the volatility.*: 1\./);
  });

  it('knows no pair without a reference rate, and fails with its sources', async () => {
    await assert.rejects(run(forexSentiment, { pair: 'EUR/XAU' }, { ...news({}), ...ecb(null) }), {
      status: 404,
      field: 'pair',
    });
    const dark = { gdelt: { coverage: down('gdelt') }, ...ecb(rates()) };
    await assert.rejects(run(forexSentiment, { pair: 'EUR/USD' }, dark), { status: 503 });
    for (const pair of ['EUR', 'EUR/EUR', 'BTC/USDT', 'EURUSDX']) {
      assert.equal(forexSentiment.input.safeParse({ pair }).success, false, pair);
    }
  });
});
