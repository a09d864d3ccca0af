import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Candle, Pair } from '../../../upstreams/adapters/candle.ts';
import {
  down,
  type FakeUpstreams,
  NOW_MS,
  notConfigured,
  reply,
  runContext,
} from '../../run-context.fixture.ts';
import { parseAsset } from './asset.ts';
import { priceHistory } from './price-history.ts';

const DAY = 86_400_000;
const TODAY = Math.floor(NOW_MS / DAY);
const candle = (day: number, close: number): Candle => ({
  openMs: day * DAY,
  closeMs: (day + 1) * DAY,
  open: close,
  high: close,
  low: close,
  close,
  volume: 1,
});
const lists = (name: 'binance' | 'kraken' | 'coinbase', closes: readonly number[]) => ({
  candles: async (_: Pair) =>
    reply(
      name,
      closes.map((close, index) => candle(TODAY - closes.length + index, close)),
    ),
});
const unknown = (name: 'binance' | 'kraken' | 'coinbase') => ({ candles: async () => reply(name, null) });
const history = (written: string, fakes: FakeUpstreams, count = 3) => {
  const asset = parseAsset(written);
  assert.ok(asset !== null);
  return priceHistory(asset, '1d', count, runContext(fakes), 'assets.0');
};

describe('price history', () => {
  it('takes the asked number of finished days from the first exchange', async () => {
    const { closes, source, notes } = await history('BTC', { binance: lists('binance', [1, 2, 3, 4, 5]) });
    assert.deepEqual(
      [...closes],
      [
        [TODAY - 3, 3],
        [TODAY - 2, 4],
        [TODAY - 1, 5],
      ],
    );
    assert.equal(source.name, 'binance');
    assert.deepEqual(notes, ['BTC is priced in USDT, which stands for USD.']);
  });

  it('goes on to the next exchange when one fails and one does not list the pair', async () => {
    const { source, notes } = await history('BTC', {
      binance: { candles: down('binance') },
      kraken: unknown('kraken'),
      coinbase: lists('coinbase', [1, 2]),
    });
    assert.equal(source.name, 'coinbase');
    assert.match(
      notes.join(' '),
      /Binance did not answer \(upstream_down\)\. Kraken does not list BTC\/USD\./,
    );
  });

  it('says "not found" only when every exchange that could be asked has answered', async () => {
    const others = { kraken: unknown('kraken'), coinbase: unknown('coinbase') };
    await assert.rejects(history('NOPE', { ...others, binance: unknown('binance') }), {
      status: 404,
      field: 'assets.0',
    });
    await assert.rejects(history('NOPE', { ...others, binance: { candles: notConfigured('binance') } }), {
      status: 404,
    });
    await assert.rejects(history('NOPE', { ...others, binance: { candles: down('binance') } }), {
      status: 503,
    });
  });

  it('says that nothing is configured rather than that nothing is listed', async () => {
    const none = {
      binance: { candles: notConfigured('binance') },
      kraken: { candles: notConfigured('kraken') },
      coinbase: { candles: notConfigured('coinbase') },
    };
    await assert.rejects(history('BTC', none), { status: 503, reason: 'not_configured' });
  });

  it('reads the price at midnight as the close of the day before, so that tokens line up with exchanges', async () => {
    const asked: unknown[] = [];
    const { closes } = await history('base:0x4200000000000000000000000000000000000006', {
      defillama: {
        priceChart: async (...parameters) => {
          asked.push(parameters);
          return reply('defillama', [
            { atMs: (TODAY - 2) * DAY - 60_000, priceUsd: 10 },
            { atMs: (TODAY - 1) * DAY + 9 * 3_600_000, priceUsd: 99 },
            { atMs: TODAY * DAY + 60_000, priceUsd: 30 },
          ]);
        },
      },
    });
    assert.deepEqual(
      [...closes],
      [
        [TODAY - 3, 10],
        [TODAY - 1, 30],
      ],
    );
    assert.deepEqual(asked, [
      ['base:0x4200000000000000000000000000000000000006', (TODAY - 2) * DAY, 3, '1d'],
    ]);
  });
});
