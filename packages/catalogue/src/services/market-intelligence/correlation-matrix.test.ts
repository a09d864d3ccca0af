import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BAR_MS, type BarInterval, type Pair } from '../../upstreams/adapters/candle.ts';
import { type FakeUpstreams, NOW_MS, reply, runContext } from '../run-context.fixture.ts';
import correlationMatrix from './correlation-matrix.ts';

const run = (body: Record<string, unknown>, fakes: FakeUpstreams = {}) =>
  correlationMatrix.run(correlationMatrix.input.parse(body), runContext(fakes));
const wave = (index: number) => 100 + 10 * Math.sin(index);

/** An exchange on which BTC moves, ETH moves with its square root, and USDC stands still. */
const exchange: FakeUpstreams = {
  binance: {
    candles: async ({ base }: Pair, interval: BarInterval) => {
      const barMs = BAR_MS[interval];
      const prices: Record<string, (index: number) => number> = {
        BTC: wave,
        ETH: (index) => Math.sqrt(wave(index)),
        USDC: () => 1,
      };
      const priceOf = prices[base];
      if (priceOf === undefined) return reply('binance', null);
      const first = Math.floor(NOW_MS / barMs) - 400;
      const bars = Array.from({ length: 400 }, (_, index) => {
        const openMs = (first + index) * barMs;
        const close = priceOf(index);
        return { openMs, closeMs: openMs + barMs, open: close, high: close, low: close, close, volume: 1 };
      });
      return reply('binance', bars);
    },
  },
  kraken: { candles: async () => reply('kraken', null) },
  coinbase: { candles: async () => reply('coinbase', null) },
};

describe('correlation matrix', () => {
  it('gives the published coefficient for returns that the caller brings, without asking anybody', async () => {
    // Anscombe's first set as log returns, twice over, which leaves the coefficient as it is.
    const x = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5];
    const y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
    const asReturns = (values: readonly number[]) =>
      [...values, ...values].map((value) => Math.expm1(value / 100));
    const { fields, sources } = await run({
      assets: [
        { asset: 'x', returns: asReturns(x) },
        { asset: 'y', returns: asReturns(y) },
      ],
    });
    const matrix = fields.matrix as Record<string, Record<string, number>>;
    assert.equal(matrix.x?.y?.toFixed(5), '0.81642');
    assert.equal(matrix.x?.y, matrix.y?.x);
    assert.deepEqual([matrix.x?.x, fields.observations, sources.length], [1, 22, 0]);
    assert.deepEqual(fields.window, { days: null, sampling: 'as given', from: null, to: null });
  });

  it('reads closes from exchanges: as many returns as the window has days', async () => {
    const { fields, sources } = await run({ assets: ['BTC', 'ETH'], timeframe: '90d' }, exchange);
    const [pair] = fields.correlationPairs as { correlation: number; strength: string }[];
    // ln sqrt(p) is half of ln p: the log returns are proportional.
    assert.ok(
      pair !== undefined && Math.abs(pair.correlation - 1) < 1e-12 && pair.strength === 'very strong',
    );
    assert.equal(fields.observations, 90);
    assert.deepEqual(fields.window, {
      days: 90,
      sampling: 'daily',
      from: '2026-08-23T00:00:00.000Z',
      to: '2026-11-21T00:00:00.000Z',
    });
    assert.equal(sources.length, 1, 'both fakes have one address');
    assert.equal(correlationMatrix.output.safeParse(fields).success, true);
  });

  it('samples a week by the hour', async () => {
    const { fields } = await run({ assets: ['BTC', 'ETH'], timeframe: 7 }, exchange);
    assert.equal(fields.observations, 168);
  });

  it('has null, not 0, for a coin that stands still, and 1 on its diagonal', async () => {
    const { fields, notes } = await run({ assets: ['BTC', 'USDC'] }, exchange);
    assert.deepEqual(fields.matrix, { BTC: { BTC: 1, USDC: null }, USDC: { BTC: null, USDC: 1 } });
    assert.match(notes.join(' '), /USDC did not move/);
  });

  it('names the asset that nobody knows', async () => {
    await assert.rejects(run({ assets: ['BTC', 'NOPE'] }, exchange), { status: 404, field: 'assets.1' });
  });

  it('refuses series that cannot be matched or are too short', async () => {
    const brought = {
      asset: 'mine',
      returns: Array.from({ length: 30 }, (_, index) => Math.sin(index) / 100),
    };
    await assert.rejects(run({ assets: ['BTC', brought] }, exchange), {
      status: 422,
      code: 'UNALIGNED_SERIES',
    });
    const short = { asset: 'short', returns: brought.returns.slice(0, 10) };
    await assert.rejects(run({ assets: [short, { ...short, asset: 'other' }] }), {
      status: 422,
      code: 'TOO_FEW_OBSERVATIONS',
    });
  });

  it('takes no longer than its data are long, since the event loop waits for it', async () => {
    const inputOf = (length: number) =>
      correlationMatrix.input.parse({
        assets: Array.from({ length: 10 }, (_, asset) => ({
          asset: `a${asset}`,
          returns: Array.from({ length }, (_, at) => Math.sin((asset + 2) * at * 1.7) / 50),
        })),
      });
    const spent = async (length: number, rounds: number) => {
      const input = inputOf(length);
      const before = process.threadCpuUsage();
      for (let round = 0; round < rounds; round += 1) await correlationMatrix.run(input, runContext({}));
      const { user, system } = process.threadCpuUsage(before);
      return user + system;
    };
    await spent(2_000, 20);
    // As many returns in all, at once or in four parts: as long, where the work grows with them, and four times with their square.
    const [inParts, atOnce] = [await spent(500, 80), await spent(2_000, 20)];
    assert(atOnce < inParts * 2.5, `${atOnce} and ${inParts} µs`);
  });

  it('checks the request: 2 to 10 different assets, a window of 7, 30 or 90 days', () => {
    const accepts = (body: unknown) => correlationMatrix.input.safeParse(body).success;
    const two = ['BTC', 'ETH'];
    assert.ok(
      accepts({ assets: two, timeframe: '7d' }) &&
        accepts({ assets: two, timeframe: '30' }) &&
        accepts({ assets: two }),
    );
    assert.ok(accepts({ assets: ['BTC', 'base:0x4200000000000000000000000000000000000006'] }));
    assert.ok(!accepts({ assets: two, timeframe: 14 }));
    assert.ok(
      !accepts({ assets: ['BTC'] }) &&
        !accepts({ assets: ['BTC', 'btc'] }) &&
        !accepts({ assets: ['BTC', '0x12'] }),
    );
    assert.ok(!accepts({ assets: Array.from({ length: 11 }, (_, index) => `A${index}`) }));
  });
});
