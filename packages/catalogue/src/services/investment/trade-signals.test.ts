import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BAR_MS, type Candle } from '../../upstreams/adapters/candle.ts';
import { down, type FakeUpstreams, NOW_MS, reply, runContext } from '../run-context.fixture.ts';
import tradeSignals from './trade-signals.ts';

const HOUR = BAR_MS['1h'];
/** Hourly candles that end with the last full hour, each one unit high and centred on its close. */
function candles(closes: readonly number[]): Candle[] {
  const endMs = Math.floor(NOW_MS / HOUR) * HOUR;
  return closes.map((close, index) => {
    const openMs = endMs - (closes.length - index) * HOUR;
    return {
      openMs,
      closeMs: openMs + HOUR,
      open: close,
      high: close + 0.5,
      low: close - 0.5,
      close,
      volume: 1,
    };
  });
}
const on = (closes: readonly number[]): FakeUpstreams => ({
  binance: { candles: async () => reply('binance', candles(closes)) },
});
const run = (body: Record<string, unknown>, fakes: FakeUpstreams) =>
  tradeSignals.run(tradeSignals.input.parse(body), runContext(fakes));

/** A rise of 0.1 a bar, with a saw of one unit that keeps RSI and bands calm, and faster at the end. */
const RISING = Array.from(
  { length: 300 },
  (_, index) => 100 + index * 0.1 + (index % 2) + Math.max(0, index - 285) * 0.02,
);

describe('trade signals', () => {
  it('derives stop and target from the last close and the average true range', async () => {
    const { fields, sources } = await run({ riskLevel: 'low' }, on(RISING));
    assert.equal(fields.signal, 'BUY');
    assert.equal(fields.entry, RISING.at(-1));
    const { atr14 } = fields.indicators as { atr14: number };
    assert.ok(atr14 >= 1, 'the bars are one unit high');
    assert.equal(fields.stopLoss, Number((Number(fields.entry) - 1.5 * atr14).toPrecision(8)));
    assert.equal(fields.target, Number((Number(fields.entry) + 3 * atr14).toPrecision(8)));
    assert.equal(sources[0]?.name, 'binance');
    assert.equal(tradeSignals.output.safeParse(fields).success, true);
  });

  it('answers with the record of its rule, and repeats it for the same candles', async () => {
    const { fields, method } = await run({}, on(RISING));
    const record = fields.record as { trades: number; hits: number; unresolved: boolean };
    assert(record.trades > 0 && record.hits <= record.trades);
    assert.deepEqual((await run({}, on(RISING))).fields.record, record);
    assert.match(method, /both in one candle: stopped/);
    // On a longer past the same rule has the same trades first: later candles change no earlier decision.
    const longer = (await run({}, on([...RISING, ...RISING.slice(-1)]))).fields.record as typeof record;
    assert(longer.trades - record.trades <= 1 && longer.hits >= record.hits);
  });

  it('mirrors the levels for a fall', async () => {
    const { fields } = await run({ riskLevel: 'high' }, on(RISING.map((close) => 300 - close)));
    assert.equal(fields.signal, 'SELL');
    assert.ok(Number(fields.stopLoss) > Number(fields.entry) && Number(fields.target) < Number(fields.entry));
  });

  it('has no levels for HOLD, and says why', async () => {
    const waves = Array.from({ length: 300 }, (_, index) => 100 + 3 * Math.sin(index / 5));
    const { fields, notes } = await run({}, on(waves));
    assert.deepEqual(
      [fields.signal, fields.target, fields.stopLoss, fields.riskReward],
      ['HOLD', null, null, null],
    );
    assert.equal(fields.entry, Number(waves.at(-1)?.toPrecision(10)));
    assert.match(notes.join(' '), /HOLD: entry is the last close/);
  });

  it('refuses too few bars, a price that never moves, unknown pairs and addresses', async () => {
    await assert.rejects(run({}, on(RISING.slice(0, 199))), { status: 422, code: 'TOO_FEW_BARS' });
    const still = candles(new Array(300).fill(1)).map((bar) => ({ ...bar, high: 1, low: 1 }));
    const pegged = { binance: { candles: async () => reply('binance', still) } };
    await assert.rejects(run({ token: 'STILL' }, pegged), { status: 422, code: 'NO_MOVEMENT' });
    const nowhere: FakeUpstreams = {
      binance: { candles: async () => reply('binance', null) },
      kraken: { candles: async () => reply('kraken', null) },
      coinbase: { candles: async () => reply('coinbase', null) },
    };
    await assert.rejects(run({ token: 'NOPE' }, nowhere), { status: 404, field: 'token' });
    await assert.rejects(run({ token: '0x4200000000000000000000000000000000000006' }, {}), {
      status: 422,
      code: 'NO_CANDLES',
      field: 'token',
    });
  });

  it('refuses pegged assets, whatever their prices do', async () => {
    for (const token of ['USDC', 'usdt', 'DAI/USDT', 'USDCUSDT', 'EURC', 'WBTC/BTC']) {
      await assert.rejects(run({ token }, on(RISING)), { status: 422, code: 'PEGGED_ASSET', field: 'token' });
    }
  });

  it('holds, and says why, where the target is nearer than the fees of a round trip', async () => {
    // The same rise on a price ten times as high: the true range of one unit is a tenth of a percent, then.
    const high = (by: number) => on(RISING.map((close) => close + by));
    const { fields, notes, method } = await run({ riskLevel: 'low' }, high(3_000));
    assert.deepEqual(
      [fields.signal, fields.target, fields.stopLoss, fields.riskReward, fields.takerFeePercent],
      ['HOLD', null, null, null, 0.1],
    );
    assert.match(String(fields.holdReason), /votes say BUY.* round trip costs 0\.2 % in fees/);
    assert.match(notes.join(' '), /round trip costs/);
    assert.match(method, /taker fees of both trades \(0\.1 % each\)/);
    assert.equal(tradeSignals.output.safeParse(fields).success, true);
    assert.equal((await run({ riskLevel: 'low' }, high(0))).fields.holdReason, null);
    // Where trades cost six times as much, the same target is too near.
    const at = (name: 'binance' | 'coinbase'): FakeUpstreams => ({
      binance: { candles: async () => reply('binance', null) },
      kraken: { candles: async () => reply('kraken', null) },
      [name]: { candles: async () => reply(name, candles(RISING.map((close) => close + 400))) },
    });
    assert.equal((await run({ riskLevel: 'low' }, at('binance'))).fields.signal, 'BUY');
    assert.equal((await run({ riskLevel: 'low' }, at('coinbase'))).fields.signal, 'HOLD');
  });

  it('fails without a charge when all exchanges are down', async () => {
    const all = {
      binance: { candles: down('binance') },
      kraken: { candles: down('kraken') },
      coinbase: { candles: down('coinbase') },
    };
    await assert.rejects(run({}, all), { status: 503 });
  });

  it('says when the last candle is old', async () => {
    const late = candles(RISING).map((bar) => ({
      ...bar,
      openMs: bar.openMs - 9 * HOUR,
      closeMs: bar.closeMs - 9 * HOUR,
    }));
    const { notes } = await run({}, { binance: { candles: async () => reply('binance', late) } });
    assert.match(notes.join(' '), /The last candle closed at 2026-11-20T20:00/);
  });

  it('reads the spellings of clients', () => {
    assert.deepEqual(tradeSignals.input.parse({}), {
      token: 'BTC/USDT',
      timeframe: '1h',
      riskLevel: 'medium',
    });
    assert.deepEqual(tradeSignals.input.parse({ token: 'eth', timeframe: '4H', riskLevel: 'Moderate' }), {
      token: 'eth',
      timeframe: '4h',
      riskLevel: 'medium',
    });
    assert.equal(tradeSignals.input.safeParse({ timeframe: '7d' }).success, false);
  });
});
