import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { overTheWire } from '../wire-server.fixture.ts';
import { binance } from './binance.ts';
import { coinbase } from './coinbase.ts';
import { kraken } from './kraken.ts';

const BTC_USD = { base: 'BTC', quote: 'USD' };
const BOOK = {
  bids: [
    { price: 99.5, size: 2 },
    { price: 99, size: 7 },
  ],
  asks: [{ price: 100, size: 0.5 }],
};

describe('order books', () => {
  it('of Binance are strings in pairs', async () => {
    const body = {
      lastUpdateId: 1,
      bids: [
        ['99.50', '2.00'],
        ['99.00', '7.0'],
      ],
      asks: [['100.00', '0.50']],
    };
    await overTheWire(binance, [{ path: '/api/v3/depth', body }], async (api, asked) => {
      assert.deepEqual((await api.orderBook({ base: 'BTC', quote: 'USDT' })).value, BOOK);
      assert.equal(asked[0]?.url.search, '?symbol=BTCUSDT&limit=100');
    });
    const none = { path: '/api/v3/depth', status: 400, body: { code: -1121, msg: 'Invalid symbol.' } };
    await overTheWire(binance, [none], async (api) => {
      assert.equal((await api.orderBook({ base: 'NOPE', quote: 'USDT' })).value, null);
    });
  });

  it("of Kraken have a time beside, under Kraken's own name for the pair", async () => {
    const book = {
      bids: [
        ['99.5', '2', 1_795_000_000],
        ['99', '7', 1_795_000_000],
      ],
      asks: [['100', '0.5', 1_795_000_000]],
    };
    const body = { error: [], result: { XXBTZUSD: book } };
    await overTheWire(kraken, [{ path: '/0/public/Depth', body }], async (api, asked) => {
      assert.deepEqual((await api.orderBook(BTC_USD)).value, BOOK);
      assert.equal(asked[0]?.url.search, '?pair=XBTUSD&count=100');
    });
    const none = { path: '/0/public/Depth', body: { error: ['EQuery:Unknown asset pair'] } };
    await overTheWire(kraken, [none], async (api) => {
      assert.equal((await api.orderBook({ base: 'NOPE', quote: 'USD' })).value, null);
    });
  });

  it('of Coinbase have the number of orders beside, and may be long', async () => {
    const long = Array.from({ length: 5_000 }, (_, index) => [String(98 - index / 100), '1', 1]);
    const body = {
      bids: [['99.5', '2', 4], ['99', '7', 1], ...long],
      asks: [['100', '0.5', 1]],
      sequence: 1,
    };
    await overTheWire(coinbase, [{ path: '/products/BTC-USD/book', body }], async (api) => {
      const { value } = await api.orderBook(BTC_USD);
      assert.deepEqual([value?.bids.length, value?.bids.slice(0, 2)], [100, BOOK.bids]);
    });
  });

  it('that are crossed, out of order or not numeric are failures, and empty levels are dropped', async () => {
    const wrong = [
      { bids: [['101', '1']], asks: [['100', '1']] },
      {
        bids: [
          ['98', '1'],
          ['99', '1'],
        ],
        asks: [],
      },
      { bids: [['', '1']], asks: [] },
    ];
    for (const body of wrong) {
      await overTheWire(binance, [{ path: '/api/v3/depth', body }], async (api) => {
        await assert.rejects(api.orderBook(BTC_USD), { reason: 'invalid_reply' });
      });
    }
    const gone = {
      bids: [
        ['99', '0'],
        ['98', '1'],
      ],
      asks: [],
    };
    await overTheWire(binance, [{ path: '/api/v3/depth', body: gone }], async (api) => {
      assert.deepEqual((await api.orderBook(BTC_USD)).value, { bids: [{ price: 98, size: 1 }], asks: [] });
    });
  });
});
