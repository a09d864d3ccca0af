import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BAR_MS, type Pair } from '../../upstreams/adapters/candle.ts';
import { down, type FakeUpstreams, NOW_MS, reply, runContext } from '../run-context.fixture.ts';
import riskMetrics from './risk-metrics.ts';

// Twenty daily returns whose figures were made with NumPy.
const RETURNS = [
  -0.031, 0.012, 0.004, -0.018, 0.022, -0.007, 0.015, -0.042, 0.009, 0.003, -0.011, 0.027, -0.002, 0.006,
  -0.025, 0.013, 0.001, -0.009, 0.019, -0.014,
];
const run = (body: Record<string, unknown>, fakes: FakeUpstreams = {}) =>
  riskMetrics.run(riskMetrics.input.parse(riskMetrics.adapt?.(body) ?? body), runContext(fakes));
const near = (actual: unknown, expected: number, within: number) =>
  assert.ok(Math.abs(Number(actual) - expected) <= within, `${actual} is not ${expected}`);

const DAY = BAR_MS['1d'];
const TODAY = Math.floor(NOW_MS / DAY);
const BTC_RETURN = (day: number) => 0.02 * Math.sin(day);
/** BTC, and DOUBLE that moves twice as much each day, over 60 days. */
const exchange: FakeUpstreams = {
  binance: {
    candles: async ({ base }: Pair) => {
      const factor = base === 'BTC' ? 1 : base === 'DOUBLE' ? 2 : null;
      if (factor === null) return reply('binance', null);
      let close = 100;
      const bars = Array.from({ length: 60 }, (_, index) => {
        const day = TODAY - 60 + index;
        close *= 1 + factor * BTC_RETURN(day);
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

describe('risk metrics', () => {
  it('reproduces the reference figures from returns that the caller brings', async () => {
    const { fields, sources, notes } = await run({ returns: RETURNS, periodsPerYear: 252 });
    const loss = fields.valueAtRisk as Record<string, unknown>;
    near(loss.var95, 0.03155, 1e-9);
    near(loss.cvar, 0.042, 1e-9);
    near(loss.normalVarAtLevel, 0.031448, 1e-6);
    near(fields.sharpeRatio, -1.216559, 1e-6);
    near(fields.maxDrawdown, -0.045928, 1e-6);
    assert.deepEqual([fields.observations, fields.beta, sources.length], [20, null, 0]);
    assert.match(notes.join(' '), /Beta is null: data without dates/);
    assert.match(notes.join(' '), /20 returns: figures at 99 %/);
    assert.equal(riskMetrics.output.safeParse(fields).success, true);
  });

  it('measures beta against BTC over the same days', async () => {
    const { fields } = await run({ token: 'DOUBLE' }, exchange);
    near(fields.beta, 2, 1e-9);
    assert.equal(fields.observations, 59);
    const half = await run(
      {
        portfolio: [
          { asset: 'DOUBLE', weight: 1 },
          { asset: 'BTC', weight: 1 },
        ],
      },
      exchange,
    );
    near(half.fields.beta, 1.5, 1e-9);
  });

  it('weighs amounts by their last price and says what it normalised', async () => {
    const prices = (last: number) =>
      [...RETURNS, 0].map((change, index) => (index === 20 ? last : last * (1 + change)));
    const { fields } = await run({
      portfolio: [
        { symbol: 'a', amount: '3', prices: prices(100) },
        { symbol: 'b', value_usd: 100, prices: prices(7) },
      ],
    });
    assert.deepEqual(fields.weights, [
      { asset: 'a', weight: 0.75 },
      { asset: 'b', weight: 0.25 },
    ]);
    const equal = await run({
      portfolio: [
        { asset: 'a', returns: RETURNS },
        { asset: 'b', returns: RETURNS },
      ],
    });
    assert.match(equal.notes.join(' '), /No weights were given: every asset counts the same/);
    const summed = await run({
      portfolio: [
        { asset: 'a', weight: 60, returns: RETURNS },
        { asset: 'b', weight: 40, returns: RETURNS },
      ],
    });
    assert.match(summed.notes.join(' '), /sum to 100; they were normalised/);
  });

  it('answers without beta when only the market cannot be had', async () => {
    const dated = RETURNS.concat(0).map((change, index) => [
      (TODAY - 21 + index) * DAY + 1,
      100 * (1 + change),
    ]);
    const { fields, notes } = await run(
      { portfolio: [{ asset: 'mine', prices: dated }] },
      {
        binance: { candles: down('binance') },
        kraken: { candles: down('kraken') },
        coinbase: { candles: down('coinbase') },
      },
    );
    assert.equal(fields.beta, null);
    assert.match(notes.join(' '), /no BTC prices/);
    await assert.rejects(
      run(
        { token: 'BTC' },
        {
          binance: { candles: down('binance') },
          kraken: { candles: down('kraken') },
          coinbase: { candles: down('coinbase') },
        },
      ),
      { status: 503 },
    );
  });

  it('names an unknown asset, and refuses an amount of something without a price', async () => {
    await assert.rejects(run({ portfolio: ['BTC', 'NOPE'] }, exchange), {
      status: 404,
      field: 'portfolio.1',
    });
    await assert.rejects(run({ portfolio: [{ asset: 'a', amount: 1, returns: RETURNS }] }), {
      status: 422,
      code: 'NO_PRICE',
    });
  });

  it('does not value an amount by a price in another currency', async () => {
    await assert.rejects(run({ portfolio: [{ asset: 'DOUBLE/BTC', amount: 1 }] }, exchange), {
      status: 422,
      code: 'NO_PRICE',
    });
    const { notes } = await run({ token: 'DOUBLE/BTC' }, exchange);
    assert.match(notes.join(' '), /measured in BTC, not in dollars/);
  });

  it('checks the request', () => {
    const accepts = (body: Record<string, unknown>) =>
      riskMetrics.input.safeParse(riskMetrics.adapt?.(body) ?? body).success;
    assert.ok(accepts({ tokenAddress: '0x4200000000000000000000000000000000000006', chain: 'base' }));
    assert.ok(
      !accepts({ tokenAddress: '0x4200000000000000000000000000000000000006' }),
      'an EVM address needs a chain',
    );
    assert.ok(accepts({ portfolio: { asset: 'BTC' }, confidenceLevel: '0.99' }));
    assert.ok(
      !accepts({}) && !accepts({ portfolio: [] }) && !accepts({ portfolio: ['BTC'], confidenceLevel: 95 }),
    );
    assert.ok(!accepts({ portfolio: [{ asset: 'BTC', weight: 1 }, 'ETH'] }), 'weights for all or for none');
    assert.ok(!accepts({ portfolio: [{ asset: 'BTC', weight: 0 }] }));
    assert.ok(
      !accepts({ portfolio: [{ asset: 'BTC', returns: [-1] }] }),
      'nothing falls by 100 % and goes on',
    );
  });
});
