import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BAR_MS, type Pair } from '../../upstreams/adapters/candle.ts';
import { down, type FakeUpstreams, NOW_MS, reply, runContext } from '../run-context.fixture.ts';
import portfolioOptimization from './portfolio-optimization.ts';

const run = (body: Record<string, unknown>, fakes: FakeUpstreams = {}) =>
  portfolioOptimization.run(portfolioOptimization.input.parse(body), runContext(fakes));
interface Row {
  asset: string;
  recommendedWeight: number;
  action: string;
  changeUsd: number | null;
  riskParityWeight: number;
}
/** Without the bound that there is by default. */
const free = (body: Record<string, unknown>, fakes: FakeUpstreams = {}) =>
  run({ maxWeight: 1, ...body }, fakes);
const rowsOf = ({ fields }: Awaited<ReturnType<typeof run>>) => fields.optimizedAllocation as Row[];
/** Never closer than the eight digits that an answer states. */
const near = (actual: unknown, expected: number, within: number) =>
  assert.ok(Math.abs(Number(actual) - expected) <= Math.max(within, 1e-7), `${actual} is not ${expected}`);

/** Two assets whose returns are uncorrelated: they swing by `a` and `b` in all four combinations, about their means. */
function crossed(a: number, b: number, meanA: number, meanB: number) {
  const signs = [
    [1, 1],
    [1, -1],
    [-1, 1],
    [-1, -1],
  ] as const;
  const rows = Array.from({ length: 40 }, (_, index) => signs[index % 4] ?? [1, 1]);
  return [
    { asset: 'A', returns: rows.map(([sign]) => meanA + a * sign) },
    { asset: 'B', returns: rows.map(([, sign]) => meanB + b * sign) },
  ];
}

describe('portfolio optimization', () => {
  it('weighs two uncorrelated assets by inverse variance, as the formula says', async () => {
    const made = await free({ holdings: crossed(0.01, 0.02, 0.001, 0.001), riskTolerance: 'low' });
    const { shrinkage } = made.fields.assumptions as { shrinkage: number };
    // Shrunk variances: (1 - s) v + s m, with v = 1 and 4, m = 2.5 (in hundredths of a percent).
    const [a, b] = [1, 4].map((variance) => (1 - shrinkage) * variance + shrinkage * 2.5) as [number, number];
    const [first, second] = rowsOf(made);
    near(first?.recommendedWeight, b / (a + b), 1e-9);
    near(first?.riskParityWeight, b / (a + b), 1e-9);
    near((first?.recommendedWeight ?? 0) + (second?.recommendedWeight ?? 0), 1, 1e-12);
    near(made.fields.expectedReturn, 0.365, 1e-9);
    // Of the least variance each asset carries as large a part as it weighs.
    const share = b / (a + b);
    near(made.fields.diversificationScore, 100 * (1 - (share ** 2 + (1 - share) ** 2 - 0.5) / 0.5), 0.051);
    assert.equal(portfolioOptimization.output.safeParse(made.fields).success, true);
    assert.equal(made.sources.length, 0);
  });

  it('bounds each weight unless told otherwise, and states the error of each mean', async () => {
    const lucky = crossed(0.001, 0.02, 0.004, 0);
    for (const riskTolerance of ['low', 'medium', 'high']) {
      const made = await run({ holdings: lucky, riskTolerance });
      near(rowsOf(made)[0]?.recommendedWeight, 0.75, 1e-9);
      assert.equal((made.fields.assumptions as { maxWeight: number }).maxWeight, 0.75);
      assert.match(made.notes.join(' '), /No asset weighs more than 0\.75/);
    }
    assert((rowsOf(await free({ holdings: lucky }))[0]?.recommendedWeight ?? 0) > 0.9);
    const four = [...crossed(0.001, 0.02, 0.004, 0), ...crossed(0.01, 0.03, 0, 0)].map((each, index) => ({
      ...each,
      asset: `a${index}`,
    }));
    const weights = rowsOf(await run({ holdings: four })).map(({ recommendedWeight }) => recommendedWeight);
    near(Math.max(...weights), 0.4, 1e-9);
    // 40 returns that lie 0.02 on either side of their mean: sample variance 0.0004 × 40 / 39, a 40th of it for the mean.
    const made = await run({ holdings: lucky });
    const rows = rowsOf(made) as unknown as { expectedReturnError: number }[];
    near(rows[1]?.expectedReturnError, 365 * Math.sqrt((0.0004 * 40) / 39 / 40), 1e-9);
    near(rows[0]?.expectedReturnError, 365 * Math.sqrt((0.000001 * 40) / 39 / 40), 1e-9);
    assert.match(made.notes.join(' '), /smaller than its own error for B: riskParityWeight/);
  });

  it('takes a target return, and says 422 with the highest there is when none reaches it', async () => {
    const holdings = crossed(0.01, 0.01, 0.002, 0);
    const made = await free({ holdings, targetReturn: 0.6 });
    near(rowsOf(made)[0]?.recommendedWeight, 0.6 / 0.73, 1e-9);
    await assert.rejects(free({ holdings, targetReturn: 0.9 }), (error: Error) => {
      assert.match(error.message, /the highest is 73\.00 %/);
      return 'status' in error && error.status === 422 && 'field' in error && error.field === 'targetReturn';
    });
    await assert.rejects(run({ holdings, maxWeight: 0.4 }), { status: 422, field: 'maxWeight' });
    await assert.rejects(run({ holdings, maxWeight: 0.6, targetReturn: 0.6 }), { status: 422 });
    const capped = await run({ holdings, maxWeight: 0.6, riskTolerance: 'high' });
    assert(rowsOf(capped).every(({ recommendedWeight }) => recommendedWeight <= 0.6 + 1e-9));
  });

  it('has the higher Sharpe ratio for more means, and says when no asset earned anything', async () => {
    const made = await run({ holdings: crossed(0.01, 0.01, 0.002, 0.001) });
    // With equal variances the weights of the highest Sharpe ratio are in proportion to the means.
    near(rowsOf(made)[0]?.recommendedWeight, 2 / 3, 1e-9);
    const { sharpeRatio, current } = made.fields as { sharpeRatio: number; current: { sharpeRatio: number } };
    assert(sharpeRatio > current.sharpeRatio);
    const losing = await run({ holdings: crossed(0.01, 0.01, -0.002, -0.001) });
    assert.match(losing.notes.join(' '), /weights of least variance/);
    near(rowsOf(losing)[0]?.recommendedWeight, 0.5, 1e-9);
  });

  it('says whose risk it is: at the highest Sharpe ratio each asset carries as much as it earns', async () => {
    const made = await run({ holdings: crossed(0.01, 0.01, 0.002, 0.001), riskTolerance: 'medium' });
    const rows = rowsOf(made) as unknown as { recommendedWeight: number; riskShare: number }[];
    // Equal variances: weights as the means, 2 to 1; shares of the variance as weight times mean, 4 to 1.
    near(rows[0]?.recommendedWeight, 2 / 3, 1e-6);
    near(rows[0]?.riskShare, 0.8, 1e-6);
    near(rows[1]?.riskShare, 0.2, 1e-6);
  });

  it('says what to sell and buy, for how much', async () => {
    const [a, b] = crossed(0.01, 0.01, 0.001, 0.001);
    const made = await run({
      holdings: [
        { ...a, value: 900 },
        { ...b, currentValue: 100 },
      ],
      riskTolerance: 'low',
    });
    assert.deepEqual(made.fields.rebalancingSteps, [
      'Sell A for 400 USD: from 90.00 % to 50.00 %.',
      'Buy B for 400 USD: from 10.00 % to 50.00 %.',
    ]);
    const even = await run({
      holdings: [a, b].map((each) => ({ ...each, weight: 1 })),
      riskTolerance: 'low',
    });
    assert.deepEqual([even.fields.rebalancingSteps, rowsOf(even)[0]?.action], [[], 'hold']);
  });

  it('values amounts by the closes it reads, and leaves out changes across missing closes', async () => {
    const DAY = BAR_MS['1d'];
    const today = Math.floor(NOW_MS / DAY);
    const exchange: FakeUpstreams = {
      binance: {
        candles: async ({ base }: Pair) => {
          if (base === 'NOPE') return reply('binance', null);
          const bars = Array.from({ length: 90 }, (_, index) => {
            const day = today - 90 + index;
            const close = base === 'BTC' ? 100 + Math.sin(day) : 50 + Math.cos(day);
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
          return reply('binance', base === 'ETH' ? bars.filter((_, index) => index !== 40) : bars);
        },
      },
      kraken: { candles: async () => reply('kraken', null) },
      coinbase: { candles: async () => reply('coinbase', null) },
    };
    const made = await run(
      {
        holdings: [
          { token: 'BTC', amount: 1 },
          { token: 'ETH', amount: '2' },
        ],
      },
      exchange,
    );
    const { observations } = made.fields.assumptions as { observations: number };
    assert.equal(observations, 87);
    assert.match(made.notes.join(' '), /1 change was left out/);
    await assert.rejects(run({ holdings: ['BTC', 'NOPE'] }, exchange), { status: 404, field: 'holdings.1' });
    await assert.rejects(
      run(
        { holdings: ['BTC', 'ETH'] },
        { ...exchange, binance: { candles: down('binance') }, kraken: { candles: down('kraken') } },
      ),
      { status: 503 },
    );
  });

  it('has an answer for assets that do not move, or says why not', async () => {
    const flat = { asset: 'flat', returns: new Array(40).fill(0) };
    const [a] = crossed(0.01, 0.01, 0.001, 0.001);
    const made = await free({ holdings: [flat, a], riskTolerance: 'low' });
    assert((rowsOf(made)[0]?.recommendedWeight ?? 0) > 0.5, 'what does not move is the least variance');
    await assert.rejects(run({ holdings: [flat, { ...flat, asset: 'flat too' }] }), {
      status: 422,
      code: 'INFEASIBLE',
    });
  });

  it('leaves the event loop free while it calculates the largest portfolio', async () => {
    const holdings = Array.from({ length: 20 }, (_, asset) => ({
      asset: `a${asset}`,
      returns: Array.from(
        { length: 2_000 },
        (_, at) => Math.sin((asset + 2) * at * 1.7) / 50 + 0.0001 * asset,
      ),
    }));
    const input = portfolioOptimization.input.parse({ holdings, riskTolerance: 'high' });
    await portfolioOptimization.run(input, runContext({}));
    const [ofThread, ofProcess] = [process.threadCpuUsage(), process.cpuUsage()];
    await portfolioOptimization.run(input, runContext({}));
    const [own, all] = [process.threadCpuUsage(ofThread), process.cpuUsage(ofProcess)];
    const share = (own.user + own.system) / (all.user + all.system);
    assert(share < 0.5, `this thread did ${Math.round(share * 100)} % of the work`);
  });

  it('reads the spellings of clients', () => {
    const parsed = portfolioOptimization.input.parse({
      holdings: [
        { symbol: 'BTC', currentValue: '10' },
        { token: 'ETH', value_usd: 5 },
      ],
      riskTolerance: 'Moderate',
    });
    assert.equal(parsed.riskTolerance as string, 'medium');
    assert.equal(portfolioOptimization.input.safeParse({ holdings: ['BTC', 'btc'] }).success, false);
    assert.equal(portfolioOptimization.input.safeParse({ holdings: ['BTC'] }).success, false);
    assert.equal(
      portfolioOptimization.input.safeParse({ holdings: ['BTC', 'ETH'], targetReturn: 15 }).success,
      false,
    );
    assert.equal(portfolioOptimization.input.safeParse({}).success, false);
  });
});
