import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BAR_MS, type Candle } from '../../upstreams/adapters/candle.ts';
import { down, type FakeUpstreams, NOW_MS, reply, runContext } from '../run-context.fixture.ts';
import tradingSignal from './trading-signal.ts';

const HOUR = BAR_MS['1h'];
function candles(closes: readonly number[]): Candle[] {
  const end = Math.floor(NOW_MS / HOUR) * HOUR;
  return closes.map((close, index) => {
    const closeMs = end - (closes.length - 1 - index) * HOUR;
    return {
      openMs: closeMs - HOUR,
      closeMs,
      open: close - 0.5,
      high: close + 1,
      low: close - 1,
      close,
      volume: 1,
    };
  });
}
const RISING = Array.from({ length: 260 }, (_, index) => 100 + index);
const on = (closes: readonly number[]): FakeUpstreams => ({
  binance: { candles: async () => reply('binance', candles(closes)) },
});
const run = (body: Record<string, unknown>, fakes: FakeUpstreams = on(RISING)) =>
  tradingSignal.run(tradingSignal.input.parse(body), runContext(fakes));
const isoOf = (bar: number) =>
  new Date(Math.floor(NOW_MS / HOUR) * HOUR - (RISING.length - 1 - bar) * HOUR).toISOString();
interface Row {
  indicator: string;
  signal: string;
  weight: number;
  value: number | null;
}

describe('trading signal', () => {
  it('lets vote what was asked for, and nothing else', async () => {
    const { fields } = await run({ pair: 'ETH/USDT', indicators: ['SMA', 'ema', 'Bollinger Bands'] });
    const rows = fields.technicalIndicators as Row[];
    assert.deepEqual(
      rows.map(({ indicator, signal }) => [indicator, signal]),
      [
        ['trend', 'BUY'],
        ['sma', 'BUY'],
        ['bollinger', 'NEUTRAL'],
      ],
    );
    assert.deepEqual([fields.signal, fields.score], ['BUY', 0.666666667]);
    // True range 2 on every bar; stop 2 x 2 below, target twice as far above.
    assert.deepEqual([fields.entryPrice, fields.stopLoss, fields.targetPrice], [359, 355, 367]);
    // As of the end of the last finished candle, not its beginning.
    assert.equal(fields.asOf, new Date(Math.floor(NOW_MS / HOUR) * HOUR).toISOString());
    assert.equal(tradingSignal.output.safeParse(fields).success, true);
  });

  it('states what its own rule would have earned on the same candles, and is as sure as that', async () => {
    const { fields } = await run({ pair: 'ETH/USDT', indicators: ['sma', 'ema'] });
    // In at the closes 299, 306 … 348: each target lies 8 above and is reached seven bars later; the ninth stays open.
    const entries = Array.from({ length: 8 }, (_, index) => 299 + 7 * index);
    const earned = entries.map((entry) => (100 * (8 - 0.001 * (2 * entry + 8))) / entry);
    const mean = earned.reduce((sum, each) => sum + each, 0) / 8;
    const { expectancyPercent, expectancyErrorPercent, holdingPercent, ...record } = fields.record as Record<
      string,
      number
    >;
    assert.deepEqual(record, {
      trades: 8,
      hits: 8,
      hitRatePercent: 100,
      unresolved: true,
      feePercentPerTrade: 0.1,
      from: isoOf(199),
      to: isoOf(259),
      outOfSample: true,
    });
    assert.equal(expectancyPercent, Math.round(mean * 1_000) / 1_000);
    assert.ok((expectancyErrorPercent ?? 0) > 0);
    assert.equal(holdingPercent, Math.round((359 / 299 - 1) * 100 * 1_000) / 1_000);
    // Wilson's lower end of 8 in 8 at 95 %.
    assert.equal(fields.confidence, 67.6);
    const short = await run({ pair: 'ETH/USDT', indicators: ['sma', 'ema'] }, on(RISING.slice(0, 200)));
    assert.deepEqual([short.fields.signal, short.fields.confidence], ['BUY', 0]);
    assert.match(short.notes.join(' '), /no finished trade/);
  });

  it('answers another choice by another signal from the same prices', async () => {
    const { fields, notes } = await run({ pair: 'ETH/USDT', indicators: 'rsi,atr' });
    assert.equal(fields.signal, 'SELL');
    const split = await run({ pair: 'ETH/USDT', indicators: ['rsi', 'trend'] });
    assert.deepEqual([split.fields.signal, split.fields.targetPrice], ['HOLD', null]);
    assert.match(split.notes.join(' '), /HOLD: entryPrice is the last close/);
    assert.match(
      notes.join(' '),
      /On these candles the rule lost: -\d+\.\d+ % a trade after fees, over 20 trades/,
    );
  });

  it('takes all of them when none is named', async () => {
    const { fields } = await run({ symbol: 'ETH', pair: 'ETH' });
    assert.equal((fields.technicalIndicators as Row[]).length, 9);
    assert.equal(
      ((await run({ pair: 'ETH', indicators: [] })).fields.technicalIndicators as Row[]).length,
      9,
    );
  });

  it('refuses an indicator it does not know, and one that cannot vote', () => {
    const refusal = tradingSignal.input.safeParse({ pair: 'ETH', indicators: ['astrology'] });
    assert.match(refusal.error?.message ?? '', /stochastic/);
    assert.equal(tradingSignal.input.safeParse({ pair: 'ETH', indicators: ['atr'] }).success, false);
    assert.equal(tradingSignal.input.safeParse({}).success, false);
  });

  it('refuses pegged assets, and holds where the target is nearer than the fees of a round trip', async () => {
    for (const pair of ['USDC', 'DAI/USDT', 'STETH/ETH'])
      await assert.rejects(run({ pair }), { status: 422, code: 'PEGGED_ASSET', field: 'pair' });
    const indicators = ['sma', 'ema'];
    const far = await run({ pair: 'ETH', indicators }, on(RISING));
    assert.deepEqual([far.fields.signal, far.fields.holdReason], ['BUY', null]);
    const near = await run({ pair: 'ETH', indicators }, on(RISING.map((close) => close + 5_000)));
    assert.deepEqual([near.fields.signal, near.fields.targetPrice], ['HOLD', null]);
    assert.match(String(near.fields.reasoning), /votes say BUY.* round trip costs 0\.2 % in fees/);
    assert.equal(tradingSignal.output.safeParse(near.fields).success, true);
  });

  it('refuses too few bars and a price that never moves, and fails with its sources', async () => {
    await assert.rejects(run({ pair: 'ETH' }, on(RISING.slice(0, 199))), {
      code: 'TOO_FEW_BARS',
      field: 'pair',
    });
    const still = candles(RISING).map((bar) => ({ ...bar, open: 1, high: 1, low: 1, close: 1 }));
    const pegged = { binance: { candles: async () => reply('binance', still) } };
    await assert.rejects(run({ pair: 'STILL' }, pegged), { code: 'NO_MOVEMENT' });
    const dark = {
      binance: { candles: down('binance') },
      kraken: { candles: down('kraken') },
      coinbase: { candles: down('coinbase') },
    };
    await assert.rejects(run({ pair: 'ETH' }, dark), { status: 503 });
  });
});
