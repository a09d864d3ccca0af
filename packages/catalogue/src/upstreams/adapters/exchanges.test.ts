import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { overTheWire, RECEIVED_MS } from '../wire-server.fixture.ts';
import { binance } from './binance.ts';
import type { Candle } from './candle.ts';
import { coinbase } from './coinbase.ts';
import { kraken } from './kraken.ts';

const HOUR = 3_600_000;
/** The hour that is running now; two finished ones lie before it. */
const RUNNING_MS = Math.floor(RECEIVED_MS / HOUR) * HOUR;
const EXPECTED: Candle[] = [
  {
    openMs: RUNNING_MS - 2 * HOUR,
    closeMs: RUNNING_MS - HOUR,
    open: 100,
    high: 110,
    low: 95,
    close: 105.5,
    volume: 7,
  },
  { openMs: RUNNING_MS - HOUR, closeMs: RUNNING_MS, open: 105.5, high: 120, low: 104, close: 118, volume: 0 },
];
const seconds = (candle: { openMs: number }) => candle.openMs / 1_000;
const running = {
  openMs: RUNNING_MS,
  closeMs: RUNNING_MS + HOUR,
  open: 118,
  high: 119,
  low: 117,
  close: 118.5,
  volume: 1,
};
const BTC_USD = { base: 'BTC', quote: 'USD' };

describe('Binance candles', () => {
  const row = (bar: Candle) => [
    bar.openMs,
    bar.open.toFixed(2),
    bar.high.toFixed(2),
    bar.low.toFixed(2),
    bar.close.toFixed(2),
    bar.volume.toFixed(8),
    bar.closeMs - 1,
    '0.0',
    12,
    '0.0',
    '0.0',
    '0',
  ];

  it('become numbers without the running bar', async () => {
    const body = [...EXPECTED, running].map(row);
    await overTheWire(binance, [{ path: '/api/v3/klines', body }], async (api, asked) => {
      const { value, source } = await api.candles({ base: 'BTC', quote: 'USDT' }, '1h');
      assert.deepEqual(value, EXPECTED);
      assert.equal(source.asOf, new Date(RUNNING_MS).toISOString());
      assert.equal(asked[0]?.url.search, '?symbol=BTCUSDT&interval=1h&limit=500');
    });
  });

  it('are null for a symbol that Binance does not list', async () => {
    const body = { code: -1121, msg: 'Invalid symbol.' };
    await overTheWire(binance, [{ path: '/api/v3/klines', status: 400, body }], async (api) => {
      assert.equal((await api.candles({ base: 'NOPE', quote: 'USDT' }, '1h')).value, null);
    });
  });

  it('fail where the region is refused', async () => {
    await overTheWire(
      binance,
      [{ path: '/api/v3/klines', status: 451, body: { code: 0, msg: '' } }],
      async (api) => {
        await assert.rejects(api.candles({ base: 'BTC', quote: 'USDT' }, '1h'), {
          code: 'UPSTREAM_UNAVAILABLE',
        });
      },
    );
  });
});

describe('Kraken candles', () => {
  const path = '/0/public/OHLC';
  const row = (bar: Candle) => [
    seconds(bar),
    bar.open.toFixed(1),
    bar.high.toFixed(1),
    bar.low.toFixed(1),
    bar.close.toFixed(1),
    bar.volume === 0 ? '0.0' : bar.open.toFixed(1),
    bar.volume.toFixed(8),
    9,
  ];

  it('are found under whatever name Kraken gives the pair', async () => {
    const result = { XXBTZUSD: [...EXPECTED, running].map(row), last: seconds(EXPECTED[1] ?? running) };
    await overTheWire(kraken, [{ path, body: { error: [], result } }], async (api, asked) => {
      assert.deepEqual((await api.candles(BTC_USD, '1h')).value, EXPECTED);
      assert.equal(asked[0]?.url.search, '?pair=XBTUSD&interval=60');
    });
  });

  it('are null for an unknown pair, which Kraken reports with HTTP 200', async () => {
    await overTheWire(kraken, [{ path, body: { error: ['EQuery:Unknown asset pair'] } }], async (api) => {
      assert.equal((await api.candles({ base: 'NOPE', quote: 'USD' }, '1h')).value, null);
    });
  });

  it('fail for any other error with HTTP 200, and ask again next time', async () => {
    await overTheWire(
      kraken,
      [{ path, body: { error: ['EGeneral:Too many requests'] } }],
      async (api, asked) => {
        await assert.rejects(api.candles(BTC_USD, '1h'), { code: 'UPSTREAM_UNAVAILABLE' });
        await assert.rejects(api.candles(BTC_USD, '1h'), { code: 'UPSTREAM_UNAVAILABLE' });
        assert.equal(asked.length, 2);
      },
    );
  });
});

describe('Coinbase candles', () => {
  const path = '/products/BTC-USD/candles';
  const row = (bar: Candle) => [seconds(bar), bar.low, bar.high, bar.open, bar.close, bar.volume];

  it('are reversed, with the columns in our order', async () => {
    const body = [running, ...EXPECTED.toReversed()].map(row);
    await overTheWire(coinbase, [{ path, body }], async (api, asked) => {
      assert.deepEqual((await api.candles(BTC_USD, '1h')).value, EXPECTED);
      assert.equal(asked[0]?.url.search, '?granularity=3600');
    });
  });

  it('of four hours are made of whole hours, without the incomplete first and last ones', async () => {
    const fourHours = 4 * HOUR;
    const wholeMs = Math.floor(RUNNING_MS / fourHours) * fourHours - fourHours;
    const hours: Candle[] = [];
    for (let openMs = wholeMs - 2 * HOUR; openMs < RUNNING_MS; openMs += HOUR) {
      const open = 100 + (openMs - wholeMs) / HOUR;
      hours.push({
        openMs,
        closeMs: openMs + HOUR,
        open,
        high: open + 5,
        low: open - 5,
        close: open + 1,
        volume: 2,
      });
    }
    await overTheWire(coinbase, [{ path, body: hours.toReversed().map(row) }], async (api) => {
      assert.deepEqual((await api.candles(BTC_USD, '4h')).value, [
        {
          openMs: wholeMs,
          closeMs: wholeMs + fourHours,
          open: 100,
          high: 108,
          low: 95,
          close: 104,
          volume: 8,
        },
      ]);
    });
  });

  it('are null for an unknown product', async () => {
    const reply = { path: '/products/NOPE-USD/candles', status: 404, body: { message: 'NotFound' } };
    await overTheWire(coinbase, [reply], async (api) => {
      assert.equal((await api.candles({ base: 'NOPE', quote: 'USD' }, '1h')).value, null);
    });
  });
});
