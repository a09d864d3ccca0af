import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Service } from '../../../../core/src/service/define.ts';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import type { KalshiMarket } from '../../upstreams/adapters/kalshi.ts';
import { down, type FakeUpstreams, notConfigured, reply, runContext } from '../run-context.fixture.ts';
import {
  book,
  kalshiBook,
  kalshiEvent,
  kalshiMarket,
  list,
  polyEvent,
  polyMarket,
} from '../shared/questions/prediction-venues.fixture.ts';
import kalshiMarkets from './kalshi-markets.ts';
import polymarketEvents from './polymarket-events.ts';
import polymarketOdds from './polymarket-odds.ts';
import spread from './prediction-market-spread.ts';

async function run(service: Service, body: Record<string, unknown>, fakes: FakeUpstreams) {
  const made = await service.run(service.input.parse(service.adapt?.(body) ?? body), runContext(fakes));
  service.output.parse(made.fields);
  return made;
}

describe('polymarket-events', () => {
  it('asks by tag and answers outcomes and prices side by side', async () => {
    const tags: (string | undefined)[] = [];
    const { fields } = await run(
      polymarketEvents,
      { category: 'US Politics', limit: 1 },
      {
        polymarket: {
          openEvents: async ({ tagSlug }) => {
            tags.push(tagSlug);
            return reply('polymarket', [polyEvent([polyMarket('1', 'Q?', 0.4, 0.42)])]);
          },
        },
      },
    );
    assert.deepEqual(tags, ['us-politics']);
    assert.equal(fields.count, 1);
    const [event] = polymarketEvents.output.parse(fields).events as {
      markets: { outcomes: string[]; prices: number[] }[];
    }[];
    assert.deepEqual(event?.markets[0]?.outcomes, ['Yes', 'No']);
    assert.deepEqual(event?.markets[0]?.prices, [0.41, 0.59]);
  });
});

describe('polymarket-odds', () => {
  const event = polyEvent([polyMarket('1', 'Q?', 0.3, 0.32)]);
  const catalogue = { eventById: async () => reply('polymarket', event) };

  it('takes quotes from the live book and mirrors them for the other outcome', async () => {
    const { fields } = await run(
      polymarketOdds,
      { eventId: '900001' },
      {
        polymarket: catalogue,
        polymarketclob: {
          book: async () => reply('polymarketclob', book(0.4, 0.42)),
          midpoint: async () => reply('polymarketclob', 0.41),
          dayOfPrices: async () =>
            reply('polymarketclob', [{ time: '2026-11-21T05:00:00.000Z', price: 0.4 }]),
        },
      },
    );
    assert.deepEqual(fields.odds, [
      {
        marketId: '1',
        market: 'Q?',
        outcome: 'Yes',
        probability: 0.41,
        price: 0.41,
        bestBid: 0.4,
        bestAsk: 0.42,
      },
      {
        marketId: '1',
        market: 'Q?',
        outcome: 'No',
        probability: 0.59,
        price: 0.59,
        bestBid: 0.58,
        bestAsk: 0.6,
      },
    ]);
    assert.notEqual(fields.priceHistory, null);
  });

  it('does not believe a book that is stuck far from the midpoint', async () => {
    const { fields, notes } = await run(
      polymarketOdds,
      { eventId: '900001' },
      {
        polymarket: catalogue,
        polymarketclob: {
          book: async () => reply('polymarketclob', book(0.01, 0.99)),
          midpoint: async () => reply('polymarketclob', 0.31),
          dayOfPrices: async () => reply('polymarketclob', []),
        },
      },
    );
    const [yes] = polymarketOdds.output.parse(fields).odds as { bestBid: number; probability: number }[];
    assert.deepEqual([yes?.bestBid, yes?.probability], [0.3, 0.31]);
    assert.ok(notes.some((note) => note.includes('disagrees')));
  });

  it('answers from the catalogue without books, and says so', async () => {
    const { fields, notes } = await run(
      polymarketOdds,
      { eventId: '900001' },
      {
        polymarket: catalogue,
        polymarketclob: {
          book: notConfigured('polymarketclob'),
          midpoint: notConfigured('polymarketclob'),
          dayOfPrices: notConfigured('polymarketclob'),
        },
      },
    );
    assert.equal(fields.priceHistory, null);
    assert.ok(notes.some((note) => note.includes('Live books are not all to be had')));
  });

  it('keeps the number of a market apart from the number of an event', async () => {
    const asked: string[] = [];
    const failure = run(
      polymarketOdds,
      { marketId: 900001 },
      {
        polymarket: {
          ...catalogue,
          market: async (id) => {
            asked.push(id);
            return reply('polymarket', null);
          },
        },
      },
    );
    await assert.rejects(failure, (error) => error instanceof ServiceFailure && error.status === 404);
    assert.deepEqual(asked, ['900001']);
  });
});

describe('kalshi-markets', () => {
  it('answers the busiest first and says when it did not see all', async () => {
    const { fields, notes } = await run(
      kalshiMarkets,
      { limit: 1 },
      {
        kalshi: {
          markets: async () =>
            list([kalshiMarket('A', 'A?', 5), kalshiMarket('B', null, 50, 'Above 3%')], false),
        },
      },
    );
    const [first] = kalshiMarkets.output.parse(fields).markets as {
      ticker: string;
      title: string;
      lastPrice: null;
    }[];
    assert.deepEqual([first?.ticker, first?.title, first?.lastPrice], ['B', 'Above 3%', null]);
    assert.equal(notes.length, 1);
  });

  it('finds a category on the events, and names the ones there are when it is unknown', async () => {
    const kalshi = {
      events: async () => list([kalshiEvent([kalshiMarket('A', 'A?', 5)])]),
      markets: async () => list<KalshiMarket>([]),
    };
    assert.equal((await run(kalshiMarkets, { category: 'economics' }, { kalshi })).fields.count, 1);
    const none = await run(kalshiMarkets, { category: 'Sports' }, { kalshi });
    assert.equal(none.fields.count, 0);
    assert.ok(none.notes.some((note) => note.includes('Economics')));
  });
});

describe('prediction-market-spread', () => {
  const fakes: FakeUpstreams = {
    polymarket: {
      openEvents: async ({ offset }) =>
        reply(
          'polymarket',
          offset === 0
            ? [
                polyEvent([
                  polyMarket('1', 'Will Bitcoin be above $150,000 on December 31, 2026?', 0.39, 0.41),
                  polyMarket('2', 'Will Bitcoin be above $160,000 on December 31, 2026?', 0.2, 0.22),
                ]),
              ]
            : [],
        ),
    },
    kalshi: {
      events: async () =>
        list([
          kalshiEvent([
            kalshiMarket('KX-150', 'Will Bitcoin be above $150k on Dec 31, 2026?', 5, 'Above $150,000'),
            kalshiMarket('KX-170', 'Will Bitcoin be above $170k on Dec 31, 2026?', 5, 'Above $170,000'),
          ]),
        ]),
      book: async () => reply('kalshi', kalshiBook),
    },
    polymarketclob: { book: async () => reply('polymarketclob', book(0.4, 0.42)) },
  };

  it('prices the one shared question from both books', async () => {
    const { fields } = await run(spread, { minConfidence: 'high' }, fakes);
    const { opportunities, scanned, count } = spread.output.parse(fields) as {
      opportunities: Record<string, unknown>[];
      scanned: unknown;
      count: number;
    };
    assert.equal(count, 1);
    assert.deepEqual(scanned, { polymarketMarkets: 2, kalshiMarkets: 2, matched: 1 });
    const [only] = opportunities;
    // Middles 0.41 and 0.515: 10.5 points. Best way: 1 - 0.42 - 0.50 less a 30th of the
    // order's fee of 0.53: 0.06233.
    assert.equal(only?.spreadPct, 10.5);
    assert.equal(only?.edgeBps, 623);
    assert.equal(only?.matchConfidence, 'high');
    const ways = only?.ways as { buyYesOn: string; edge: number; contracts: number }[];
    assert.deepEqual(
      ways.map(({ buyYesOn, edge, contracts }) => [buyYesOn, edge, contracts]),
      [
        ['polymarket', 0.06233, 30],
        ['kalshi', -0.1475, 40],
      ],
    );
  });

  it('keeps to the least spread', async () => {
    const { fields } = await run(spread, { minSpreadPct: 10.6 }, fakes);
    assert.equal(fields.count, 0);
  });

  it('is not answered while one of the venues is down', async () => {
    const kalshi = { ...fakes.kalshi, events: down('kalshi') };
    await assert.rejects(
      run(spread, {}, { ...fakes, kalshi }),
      (error) => error instanceof ServiceFailure && error.status === 503,
    );
  });
});
