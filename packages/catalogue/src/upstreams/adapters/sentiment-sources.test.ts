import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { againstLocalServer } from '../local-server.fixture.ts';
import { overTheWire } from '../wire-server.fixture.ts';
import { coingecko } from './coingecko.ts';
import { edgar } from './edgar.ts';
import { feargreed } from './feargreed.ts';
import { frankfurter } from './frankfurter.ts';
import { gdelt } from './gdelt.ts';
import { hackernews } from './hackernews.ts';
import { sectickers } from './sectickers.ts';

const NOW_MS = Date.parse('2026-11-21T05:37:00Z');
const DAY_MS = 86_400_000;
const json = (body: unknown, status = 200) => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});
/** A higher rate, so that tests need not wait as GDELT demands. */
const often = { settings: { UPSTREAM_GDELT_REQUESTS_PER_MINUTE: '6000' } };

describe('GDELT', () => {
  // A reply of the ToneChart mode: a bar for each tone, with its most relevant articles.
  const chart = {
    tonechart: [
      { bin: -4, count: 2, toparts: [{ url: 'https://example.org/a', title: 'Synthetic headline, bad' }] },
      {
        bin: 1,
        count: 3,
        toparts: [{ url: 'https://example.org/b', title: 'Synthetic \u0007headline, good' }],
      },
      { bin: 7, count: 1, toparts: [] },
    ],
  };

  it('gives the mean tone over all articles, and some of them', async () => {
    await againstLocalServer(
      gdelt,
      often,
      () => json(chart),
      async (api, asked) => {
        const { value, source } = await api.coverage(['bitcoin', 'BTC price'], NOW_MS - DAY_MS, NOW_MS);
        assert.deepEqual([value.documents, value.meanTone], [6, (-8 + 3 + 7) / 6]);
        assert.deepEqual(value.articles[0], {
          title: 'Synthetic headline, bad',
          url: 'https://example.org/a',
          tone: -4,
        });
        const query = asked[0]?.url.searchParams;
        assert.equal(query?.get('query'), '("bitcoin" OR "BTC price") sourcelang:english');
        assert.deepEqual(
          ['mode', 'startdatetime', 'enddatetime'].map((name) => query?.get(name)),
          ['tonechart', '20261120053000', '20261121053000'],
        );
        assert.equal(source.asOf, '2026-11-21T05:30:00.000Z');
      },
    );
  });

  it('caches an answer for a quarter of an hour, and lets nobody break out of a phrase', async () => {
    await againstLocalServer(
      gdelt,
      often,
      () => json({}),
      async (api, asked) => {
        assert.deepEqual((await api.coverage(['a" OR (x'], NOW_MS - DAY_MS, NOW_MS)).value, {
          documents: 0,
          meanTone: null,
          articles: [],
        });
        await api.coverage(['a" OR (x'], NOW_MS - DAY_MS + 60_000, NOW_MS + 60_000);
        assert.equal(asked.length, 1);
        assert.equal(asked[0]?.url.searchParams.get('query'), '"a  OR  x" sourcelang:english');
      },
    );
  });

  it('fails for an error that comes as text with HTTP 200, and for a refusal of too many requests', async () => {
    const replies = [
      { body: 'The specified phrase is too short.\n' },
      { status: 429, body: 'Please limit requests to one every 5 seconds.' },
    ];
    await againstLocalServer(
      gdelt,
      often,
      () => replies.shift() ?? json({}),
      async (api) => {
        await assert.rejects(api.coverage(['xyz'], NOW_MS - DAY_MS, NOW_MS), { reason: 'invalid_reply' });
        await assert.rejects(api.coverage(['xyz'], NOW_MS - DAY_MS, NOW_MS), { reason: 'rate_limited' });
      },
    );
  });

  it('lets a second request wait for its turn, and refuses one that would wait too long', async () => {
    const arrivals: number[] = [];
    let askedAtMs = 0;
    const reply = () => {
      arrivals.push(performance.now());
      return json({});
    };
    const slowly = { settings: { UPSTREAM_GDELT_REQUESTS_PER_MINUTE: '10' } };
    await againstLocalServer(gdelt, slowly, reply, async (api) => {
      askedAtMs = performance.now();
      const asks = ['one', 'two', 'three', 'four'].map((term) =>
        api.coverage([term], NOW_MS - DAY_MS, NOW_MS),
      );
      const [first, second, third, fourth] = await Promise.allSettled(asks);
      assert.deepEqual([first?.status, second?.status], ['fulfilled', 'fulfilled']);
      assert.deepEqual([third?.status, fourth?.status], ['rejected', 'rejected']);
      assert.equal(third?.status === 'rejected' && third.reason.reason, 'rate_limited');
    });
    assert.equal(arrivals.length, 2);
    // From the asking: a slow machine only adds to that.
    assert((arrivals[1] ?? 0) - askedAtMs > 5_000);
  });
});

describe('Hacker News', () => {
  it('gives stories with a link, their own or the discussion', async () => {
    const body = {
      hits: [
        {
          objectID: '7',
          title: 'Synthetic story',
          url: 'https://example.org',
          points: 12,
          num_comments: 3,
          created_at_i: 1_794_190_000,
        },
        { objectID: '8', title: 'Ask: synthetic?', url: null, points: null, created_at_i: 1_794_180_000 },
        { objectID: '9', title: null, url: 'javascript:alert(1)', created_at_i: 1_794_170_000 },
      ],
      nbHits: 3,
      page: 0,
      nbPages: 1,
      hitsPerPage: 100,
    };
    await overTheWire(hackernews, [{ path: '/search_by_date', body }], async (api, asked) => {
      const { value } = await api.storiesOn('bit"coin', NOW_MS);
      assert.deepEqual(
        value.stories.map(({ url, points }) => [url, points]),
        [
          ['https://example.org', 12],
          ['https://news.ycombinator.com/item?id=8', 0],
        ],
      );
      assert.equal(asked[0]?.url.searchParams.get('query'), '"bit coin"');
      assert.equal(asked[0]?.url.searchParams.get('numericFilters'), 'created_at_i>1795239000');
    });
  });
});

describe('the Fear & Greed Index', () => {
  it('is a number that comes as text, with the day that it is for', async () => {
    const body = {
      name: 'Fear and Greed Index',
      data: [
        { value: '39', value_classification: 'Fear', timestamp: '1794182400', time_until_update: '3000' },
      ],
      metadata: { error: null },
    };
    await overTheWire(feargreed, [{ path: '/fng/', body }], async (api) => {
      const { value, source } = await api.days(1);
      assert.deepEqual(value, [{ value: 39, words: 'Fear', atMs: 1_794_182_400_000 }]);
      assert.equal(source.asOf, '2026-11-09T00:00:00.000Z');
    });
    const wrong = { ...body, data: [{ ...body.data[0], value: '' }] };
    await overTheWire(feargreed, [{ path: '/fng/', body: wrong }], async (api) => {
      await assert.rejects(api.days(1), { reason: 'invalid_reply' });
    });
  });
});

describe('Frankfurter', () => {
  it('gives rates by currency and day, and null for a currency that the ECB does not know', async () => {
    const body = [
      { date: '2026-11-19', base: 'EUR', quote: 'USD', rate: 1.16 },
      { date: '2026-11-20', base: 'EUR', quote: 'USD', rate: 1.17 },
      { date: '2026-11-20', base: 'EUR', quote: 'GBP', rate: 0.88 },
    ];
    await overTheWire(frankfurter, [{ path: '/v2/rates', body }], async (api, asked) => {
      const { value, source } = await api.since('EUR', ['USD', 'GBP'], NOW_MS - 90 * DAY_MS);
      assert.deepEqual(
        [...(value?.byQuote.get('USD') ?? [])],
        [
          [20_776, 1.16],
          [20_777, 1.17],
        ],
      );
      assert.equal(source.asOf, '2026-11-20T00:00:00.000Z');
      assert.equal(asked[0]?.url.search, '?base=EUR&quotes=USD%2CGBP&from=2026-08-23&providers=ecb');
    });
    const refusal = { path: '/v2/rates', status: 422, body: { message: 'invalid currency: XXX' } };
    await overTheWire(frankfurter, [refusal], async (api) => {
      assert.equal((await api.since('XXX', ['USD'], NOW_MS)).value, null);
    });
  });
});

describe('the SEC', () => {
  it('knows companies by ticker', async () => {
    const body = { '0': { cik_str: 320_193, ticker: 'AAPL', title: 'Apple Inc.' } };
    await overTheWire(sectickers, [{ path: '/files/company_tickers.json', body }], async (api) => {
      assert.deepEqual((await api.company('AAPL')).value, { cik: 320_193, name: 'Apple Inc.' });
      assert.equal((await api.company('NOPE')).value, null);
    });
  });

  it('lists filings from columns, and has none for an unknown number', async () => {
    const body = {
      cik: '0000320193',
      name: 'Apple Inc.',
      filings: {
        recent: {
          accessionNumber: ['0000320193-26-000079', '0000320193-26-000078'],
          filingDate: ['2026-11-20', '2026-10-30'],
          form: ['4', '8-K'],
          primaryDocument: ['wk.xml', 'a8k.htm'],
          primaryDocDescription: ['FORM 4', ''],
        },
        files: [],
      },
    };
    await overTheWire(edgar, [{ path: '/submissions/CIK0000320193.json', body }], async (api) => {
      assert.deepEqual((await api.filings(320_193)).value?.filings[1], {
        accession: '0000320193-26-000078',
        form: '8-K',
        date: '2026-10-30',
        document: 'a8k.htm',
        title: null,
      });
    });
    const none = { path: '/submissions/CIK0000000007.json', status: 404, body: '<Error/>' };
    await overTheWire(edgar, [none], async (api) => {
      assert.equal((await api.filings(7)).value, null);
    });
  });
});

describe("CoinGecko's votes", () => {
  it('come with the name; a coin without votes has null', async () => {
    const body = { id: 'bitcoin', symbol: 'btc', name: 'Bitcoin', sentiment_votes_up_percentage: 71.4 };
    await overTheWire(coingecko, [{ path: '/coins/bitcoin', body }], async (api) => {
      assert.deepEqual((await api.coinProfile('bitcoin')).value, { name: 'Bitcoin', votesUpPercent: 71.4 });
    });
    const none = { ...body, sentiment_votes_up_percentage: null };
    await overTheWire(coingecko, [{ path: '/coins/bitcoin', body: none }], async (api) => {
      assert.equal((await api.coinProfile('bitcoin')).value?.votesUpPercent, null);
    });
  });
});
