import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Service } from '../../../../core/src/service/define.ts';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import { down, type FakeUpstreams, reply, runContext } from '../run-context.fixture.ts';
import { depthOf } from '../shared/questions/book-depth.ts';
import { consensusOf } from '../shared/questions/consensus.ts';
import {
  book,
  kalshiBook,
  kalshiEvent,
  kalshiMarket,
  list,
  polyEvent,
  polyMarket,
} from '../shared/questions/prediction-venues.fixture.ts';
import { readSearch, relevanceOf } from '../shared/questions/search-questions.ts';
import kalshiOdds from './kalshi-odds.ts';
import kalshiSearch from './kalshi-search.ts';
import polymarketSearch from './polymarket-search.ts';
import odds from './prediction-market-odds.ts';

async function run(service: Service, body: Record<string, unknown>, fakes: FakeUpstreams) {
  const made = await service.run(service.input.parse(service.adapt?.(body) ?? body), runContext(fakes));
  service.output.parse(made.fields);
  return made;
}

function refusedWith(status: number) {
  return (error: unknown) => error instanceof ServiceFailure && error.status === status;
}

const clob = {
  book: async () => reply('polymarketclob', book(0.4, 0.42)),
  midpoint: async () => reply('polymarketclob', 0.41),
};

describe('how well a question answers a search', () => {
  const asked = (query: string, said: string, ticker?: string) =>
    relevanceOf(readSearch(query), said, ticker);

  it('counts the words and numbers that it holds', () => {
    assert.equal(asked('bitcoin 150k', 'Will Bitcoin be above $150,000 on December 31?'), 1);
    assert.equal(asked('bitcoin 160k', 'Will Bitcoin be above $150,000 on December 31?'), 0.5);
    assert.equal(asked('elect mayor', 'Who wins the election for mayor?'), 1);
    assert.equal(asked('snow', 'Will Bitcoin be above $150,000?'), 0);
  });

  it('finds a ticker by its beginning, in either case, and a search of stop words by the words', () => {
    assert.equal(asked('kxfed', 'Rates?', 'KXFED-27JAN-T3'), 1);
    assert.equal(asked('the who', 'Will The Who tour?'), 1);
  });
});

describe('depth', () => {
  it('adds up what rests within two cents of the best price, by hand', () => {
    const bids = [
      { price: 0.4, size: 100 },
      { price: 0.38, size: 50 },
      { price: 0.379, size: 1_000 },
    ];
    // 100 x 0.40 + 50 x 0.38 = 59.
    assert.deepEqual(depthOf(bids, []), {
      withinUsd: 0.02,
      bidContracts: 150,
      askContracts: 0,
      bidUsd: 59,
      askUsd: 0,
    });
  });
});

describe('polymarket-search', () => {
  const catalogue = (markets = [polyMarket('1', 'Will Bitcoin be above $150,000?', 0.3, 0.32)]) => ({
    search: async () => reply('polymarket', { events: [polyEvent(markets)], total: 1 }),
  });

  it('shows quotes and depth of the live book, closing time and rule', async () => {
    const { fields } = await run(
      polymarketSearch,
      { query: 'bitcoin' },
      { polymarket: catalogue(), polymarketclob: clob },
    );
    const [first] = polymarketSearch.output.parse(fields).results as Record<string, unknown>[];
    assert.deepEqual(
      [first?.bestBid, first?.bestAsk, first?.probability, first?.spread, first?.resolutionRule],
      [0.4, 0.42, 0.41, 0.02, 'It settles on a figure.'],
    );
    assert.deepEqual(first?.depth, depthOf([{ price: 0.4, size: 120 }], [{ price: 0.42, size: 80 }]));
  });

  it('reads the probability from the live book, not from the older price of the catalogue', async () => {
    const { fields } = await run(
      polymarketSearch,
      { query: 'bitcoin' },
      {
        polymarket: catalogue(),
        polymarketclob: {
          book: async () => reply('polymarketclob', book(0.6, 0.64)),
          midpoint: async () => reply('polymarketclob', 0.62),
        },
      },
    );
    const [first] = polymarketSearch.output.parse(fields).results as Record<string, unknown>[];
    assert.deepEqual([first?.bestBid, first?.bestAsk, first?.probability], [0.6, 0.64, 0.62]);
  });

  it('says null for depth when the books are down, and keeps the catalogue’s quotes', async () => {
    const { fields, notes } = await run(
      polymarketSearch,
      { query: 'bitcoin' },
      {
        polymarket: catalogue(),
        polymarketclob: { book: down('polymarketclob'), midpoint: down('polymarketclob') },
      },
    );
    const [first] = polymarketSearch.output.parse(fields).results as { bestBid: number; depth: null }[];
    assert.deepEqual([first?.bestBid, first?.depth], [0.3, null]);
    assert.ok(notes.some((note) => note.includes('cannot all be read')));
  });

  it('puts the question that holds most first, leaves closed ones out, and lets no event fill the page', async () => {
    const many = Array.from({ length: 9 }, (_, index) =>
      polyMarket(
        String(index),
        index === 7 ? 'Will Doe win Bitcoin city?' : `Will P${index} win?`,
        0.3,
        0.32,
      ),
    );
    const closed = { ...polyMarket('c', 'Will Bitcoin rise?', 0.3, 0.32), closed: true };
    const { fields } = await run(
      polymarketSearch,
      { query: 'bitcoin doe' },
      { polymarket: catalogue([...many, closed]), polymarketclob: clob },
    );
    const results = polymarketSearch.output.parse(fields).results as { id: string }[];
    assert.deepEqual([results.length, results[0]?.id], [5, '7']);
    assert.ok(results.every(({ id }) => id !== 'c'));
  });

  it('is not answered while the catalogue is down', async () => {
    await assert.rejects(
      run(
        polymarketSearch,
        { query: 'x' },
        { polymarket: { search: down('polymarket') }, polymarketclob: clob },
      ),
      refusedWith(503),
    );
  });
});

describe('kalshi-search', () => {
  const events = async () =>
    list([
      kalshiEvent([
        kalshiMarket('KXSYN-26-A', 'Will it be above $100k?', 5),
        kalshiMarket('KXSYN-26-B', 'Will it be above $150k?', 50),
        { ...kalshiMarket('KXSYN-26-C', 'Will it be above $150k or so?', 99), status: 'closed' },
      ]),
    ]);

  it('looks through title, question and category of every open market', async () => {
    const { fields } = await run(kalshiSearch, { query: 'bitcoin 150k' }, { kalshi: { events } });
    const results = kalshiSearch.output.parse(fields).results as Record<string, unknown>[];
    assert.deepEqual(
      results.map(({ ticker, relevanceScore }) => [ticker, relevanceScore]),
      [
        ['KXSYN-26-B', 1],
        ['KXSYN-26-A', 0.5],
      ],
    );
    const [first] = results;
    assert.deepEqual(
      [first?.probability, first?.spread, first?.yesBidSize, first?.yesAskSize, first?.resolutionRule],
      [0.515, 0.03, 30, 40, 'It settles on another figure.'],
    );
  });

  it('finds a ticker in lower case, and says when nothing was found', async () => {
    const byTicker = await run(kalshiSearch, { query: 'kxsyn-26-a' }, { kalshi: { events } });
    assert.equal(byTicker.fields.count, 1);
    const none = await run(kalshiSearch, { query: 'snowfall' }, { kalshi: { events } });
    assert.equal(none.fields.count, 0);
    assert.ok(none.notes.some((note) => note.includes('snowfall')));
    const more = await run(kalshiSearch, { query: 'above', limit: 1 }, { kalshi: { events } });
    assert.equal(more.fields.count, 1);
    assert.match(more.notes.join(' '), /2 markets were found/);
  });
});

describe('kalshi-odds', () => {
  const market = kalshiMarket('KXSYN-26-A', 'A?', 5);

  it('answers from the live book, whose asks are the other side’s bids', async () => {
    const { fields } = await run(
      kalshiOdds,
      { marketId: 'kxsyn-26-a' },
      {
        kalshi: {
          market: async (ticker) => reply('kalshi', ticker === 'KXSYN-26-A' ? market : null),
          book: async () => reply('kalshi', kalshiBook),
        },
      },
    );
    const answer = kalshiOdds.output.parse(fields) as {
      market: Record<string, unknown>;
      orderbook: unknown;
      spread: number;
      depth: { bidUsd: number; askUsd: number };
    };
    assert.deepEqual(answer.orderbook, {
      yesBids: [{ price: 0.5, quantity: 30 }],
      noBids: [{ price: 0.47, quantity: 40 }],
    });
    const { yesBid, yesAsk, noBid, noAsk, yesBidSize, yesAskSize } = answer.market;
    assert.deepEqual([yesBid, yesAsk, noBid, noAsk], [0.5, 0.53, 0.47, 0.5]);
    // Whoever bids for no offers yes.
    assert.deepEqual([yesBidSize, yesAskSize], [30, 40]);
    // Bid 0.50, ask 1 - 0.47 = 0.53.
    assert.deepEqual([answer.spread, answer.market.probability], [0.03, 0.515]);
    assert.deepEqual([answer.depth.bidUsd, answer.depth.askUsd], [15, 21.2]);
  });

  it('takes an event or a series for its busiest open market, and a closed market for one without a book', async () => {
    const absent = async () => reply('kalshi', null);
    const busiest = kalshiMarket('KXSYN-26-B', 'B?', 50);
    const closed = { ...kalshiMarket('KXSYN-26-C', 'C?', 500), status: 'closed' };
    const kalshi = {
      market: absent,
      event: async (ticker: string) =>
        reply('kalshi', ticker === 'KXSYN-26' ? kalshiEvent([market, busiest, closed]) : null),
      markets: async () => list([market, busiest]),
      book: async () => reply('kalshi', kalshiBook),
    };
    for (const marketId of ['KXSYN-26', 'KXSYN']) {
      const { fields } = await run(kalshiOdds, { marketId }, { kalshi });
      assert.equal((fields.market as { ticker: string }).ticker, 'KXSYN-26-B');
    }
    const { fields } = await run(
      kalshiOdds,
      { marketId: 'KXSYN-26-C' },
      { kalshi: { market: async () => reply('kalshi', closed) } },
    );
    assert.deepEqual([fields.orderbook, fields.depth], [null, null]);
  });

  it('does not know what the venue does not know', async () => {
    const absent = async () => reply('kalshi', null);
    const kalshi = { market: absent, event: absent, markets: async () => list<never>([]) };
    await assert.rejects(run(kalshiOdds, { marketId: 'NONE' }, { kalshi }), refusedWith(404));
  });
});

describe('a consensus', () => {
  it('is weighted by volume, by hand', () => {
    const { probability, weights } = consensusOf(
      [
        { probability: 0.4, volumeUsd: 300 },
        { probability: 0.6, volumeUsd: 100 },
      ],
      null,
    );
    assert.deepEqual([probability, weights], [0.45, [0.75, 0.25]]);
  });

  it('weighs alike what is not known, and is none without a price', () => {
    const half = consensusOf(
      [
        { probability: 0.4, volumeUsd: null },
        { probability: 0.6, volumeUsd: 100 },
      ],
      null,
    );
    assert.equal(half.probability, 0.5);
    assert.equal(consensusOf([{ probability: null, volumeUsd: 1 }], null).probability, null);
  });
});

describe('prediction-market-odds', () => {
  const above = 'Will Bitcoin be above $150,000 on December 31, 2026?';
  const fakes: FakeUpstreams = {
    polymarket: {
      search: async () =>
        reply('polymarket', {
          events: [
            polyEvent([
              polyMarket('1', above, 0.39, 0.41),
              polyMarket('2', above.replace('150', '160'), 0.2, 0.22),
            ]),
          ],
          total: 1,
        }),
    },
    polymarketclob: clob,
    kalshi: {
      events: async () =>
        list([
          kalshiEvent([
            kalshiMarket('KX-150', 'Will Bitcoin be above $150k on Dec 31, 2026?', 5, 'Above $150,000'),
          ]),
        ]),
      book: async () => reply('kalshi', kalshiBook),
    },
  };
  interface Told {
    consensusProbability: number | null;
    platforms: {
      platform: string;
      marketId: string;
      matchConfidence: string;
      weight: number | null;
      bestBid: number | null;
      bestAsk: number | null;
    }[];
    totalVolume: number;
    otherQuestions: { marketId: string }[];
  }

  it('puts one probability to a question that both venues ask', async () => {
    const { fields } = await run(odds, { topic: 'bitcoin above 150k' }, fakes);
    const told = odds.output.parse(fields) as unknown as Told;
    assert.deepEqual(
      told.platforms.map(({ platform, marketId, matchConfidence }) => [platform, marketId, matchConfidence]),
      [
        ['polymarket', '1', 'high'],
        ['kalshi', 'KX-150', 'high'],
      ],
    );
    // 90,000 USD at 0.41 and 10 contracts x 0.515 = 5.15 USD at 0.515.
    assert.equal(told.totalVolume, 90_005.15);
    assert.equal(told.consensusProbability, 0.41);
    assert.deepEqual(
      told.platforms.map(({ weight, bestBid, bestAsk }) => [weight, bestBid, bestAsk]),
      [
        [0.9999, 0.4, 0.42],
        [0.0001, 0.5, 0.53],
      ],
    );
    assert.deepEqual(
      told.otherQuestions.map(({ marketId }) => marketId),
      ['2'],
    );
  });

  it('has none for different questions, one venue, or a venue without quotes', async () => {
    const other: FakeUpstreams = {
      ...fakes,
      kalshi: {
        ...fakes.kalshi,
        events: async () => list([kalshiEvent([kalshiMarket('KX', 'Will Bitcoin fall below $50k?', 5)])]),
      },
    };
    const different = await run(odds, { topic: 'bitcoin' }, other);
    assert.equal(different.fields.consensusProbability, null);
    assert.deepEqual(
      (different.fields.platforms as { matchConfidence: string }[]).map((each) => each.matchConfidence),
      ['unmatched', 'unmatched'],
    );
    const alone = await run(
      odds,
      { topic: 'bitcoin', platforms: ['Kalshi'] },
      { kalshi: fakes.kalshi ?? {} },
    );
    assert.equal(alone.fields.consensusProbability, null);
    assert.match(String(alone.fields.consensusReason), /Only one venue was asked/);
    assert.match(String(different.fields.consensusReason), /asked on both venues/);
  });

  it('is not charged when nobody asks it, nor while an asked venue is down', async () => {
    await assert.rejects(run(odds, { topic: 'snowfall in July' }, fakes), refusedWith(422));
    await assert.rejects(
      run(odds, { topic: 'bitcoin' }, { ...fakes, kalshi: { events: down('kalshi') } }),
      refusedWith(503),
    );
  });

  it('knows an event by its number or slug, and a market by its ticker', async () => {
    const kalshi = {
      ...fakes.kalshi,
      market: async () => reply('kalshi', kalshiMarket('KXSYN-26-T1', above, 5)),
    };
    const byTicker = await run(odds, { topic: 'KXSYN-26-T1' }, { ...fakes, kalshi });
    assert.equal(byTicker.fields.consensusProbability, 0.41);
    const polymarket = {
      ...fakes.polymarket,
      eventById: async () => reply('polymarket', polyEvent([polyMarket('1', above, 0.39, 0.41)])),
    };
    const byNumber = await run(odds, { topic: '900001' }, { ...fakes, polymarket });
    assert.equal((byNumber.fields.platforms as unknown[]).length, 1);
  });
});
