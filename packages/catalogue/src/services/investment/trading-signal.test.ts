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
    assert.deepEqual([fields.signal, fields.confidence], ['BUY', 66.7]);
    // True range 2 on every bar; stop 2 x 2 below, target twice as far above.
    assert.deepEqual([fields.entryPrice, fields.stopLoss, fields.targetPrice], [359, 355, 367]);
    // As of the end of the last finished candle, not its beginning.
    assert.equal(fields.asOf, new Date(Math.floor(NOW_MS / HOUR) * HOUR).toISOString());
    assert.equal(tradingSignal.output.safeParse(fields).success, true);
  });

  it('answers another choice by another signal from the same prices', async () => {
    const { fields, notes } = await run({ pair: 'ETH/USDT', indicators: 'rsi,atr' });
    assert.equal(fields.signal, 'SELL');
    const split = await run({ pair: 'ETH/USDT', indicators: ['rsi', 'trend'] });
    assert.deepEqual([split.fields.signal, split.fields.targetPrice], ['HOLD', null]);
    assert.match(split.notes.join(' '), /HOLD: entryPrice is the last close/);
    assert.deepEqual(notes, []);
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
