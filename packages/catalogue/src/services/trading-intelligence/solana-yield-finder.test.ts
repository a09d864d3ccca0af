import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { YieldPool } from '../../upstreams/adapters/llama-pools.ts';
import { down, type FakeUpstreams, reply, runContext } from '../run-context.fixture.ts';
import solanaYieldFinder from './solana-yield-finder.ts';

const SAFE: YieldPool = {
  id: 'a',
  project: 'kamino-lend',
  symbol: 'USDC',
  meta: null,
  tvlUsd: 101e6,
  apyPercent: 5.1,
  apyBasePercent: 5.1,
  apyRewardPercent: null,
  apyMean30dPercent: 4.9,
  impermanentLoss: false,
  exposure: 'single',
  isStablecoin: true,
  isOutlier: false,
  historyDays: 420,
  tokens: ['EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'],
};
const POOLS: YieldPool[] = [
  SAFE,
  {
    ...SAFE,
    id: 'b',
    project: 'orca-dex',
    symbol: 'SOL-USDC',
    exposure: 'multi',
    impermanentLoss: true,
    apyPercent: 60,
    apyRewardPercent: 40,
    tvlUsd: 5e6,
  },
  { ...SAFE, id: 'c', project: 'marinade', symbol: 'MSOL', tokens: [], apyPercent: 7 },
  { ...SAFE, id: 'd', symbol: 'USDC', tvlUsd: 900, apyPercent: 400 },
];
const run = (body: Record<string, unknown>, pools: YieldPool[] = POOLS) => {
  const fakes: FakeUpstreams = {
    llamayields: { pools: async () => reply('llamayields', { pools, unreadable: 0 }) },
  };
  return solanaYieldFinder.run(solanaYieldFinder.input.parse(body), runContext(fakes));
};
const idsOf = ({ fields }: Awaited<ReturnType<typeof run>>) =>
  (fields.topYields as { id: string }[]).map(({ id }) => id);

describe('solana yield finder', () => {
  it('lists what the source has, highest first, without pools that hold next to nothing', async () => {
    assert.deepEqual(idsOf(await run({})), ['b', 'c', 'a']);
    assert.deepEqual(idsOf(await run({ minTvlUsd: 0 })), ['d', 'b', 'c', 'a']);
  });

  it('tells what a yield is made of, each part as the source has it', async () => {
    const [pool] = (await run({ token: 'SOL' })).fields.topYields as Record<string, unknown>[];
    assert.deepEqual(
      [pool?.apyPct, pool?.apyBasePct, pool?.apyRewardPct, pool?.apyMean30dPct, pool?.tvlUsd],
      [60, 5.1, 40, 4.9, 5e6],
    );
  });

  it('reads minApy as percent, and 0 as no bound', async () => {
    assert.deepEqual(idsOf(await run({ minApy: 6 })), ['b', 'c']);
    assert.deepEqual(idsOf(await run({ minApy: 0.0 })), ['b', 'c', 'a']);
    assert.deepEqual((await run({ minApy: 99 })).fields.topYields, [], 'nothing fits: an answer too');
  });

  it('finds a token by ticker on either side of a pool, and by mint, but not inside another name', async () => {
    assert.deepEqual(idsOf(await run({ token: 'usdc' })), ['b', 'a']);
    assert.deepEqual(idsOf(await run({ token: 'SOL' })), ['b']);
    assert.deepEqual(idsOf(await run({ token: SAFE.tokens[0] })), ['b', 'a']);
    await assert.rejects(run({ token: 'NOPE' }), { status: 422, field: 'token' });
  });

  it('counts risk by the rules it names', async () => {
    const { fields } = await run({ token: 'SOL' });
    const [pool] = fields.topYields as { risk: string; riskPoints: number; riskReasons: string[] }[];
    // 5 million (1), impermanent loss (2), two thirds rewards (1), above 50 % (1).
    assert.deepEqual([pool?.risk, pool?.riskPoints, pool?.riskReasons.length], ['high', 5, 4]);
    assert.deepEqual(idsOf(await run({ maxRisk: 'low' })), ['c', 'a']);
  });

  it('says which protocols there are when it does not know the one that was named', async () => {
    assert.deepEqual(idsOf(await run({ protocol: 'Kamino Lend' })), ['a']);
    await assert.rejects(run({ protocol: 'aave' }), {
      status: 422,
      code: 'UNKNOWN_PROTOCOL',
      message: /kamino-lend/,
    });
  });

  it('fails with its source', async () => {
    const context = runContext({ llamayields: { pools: down('llamayields') } });
    await assert.rejects(solanaYieldFinder.run(solanaYieldFinder.input.parse({}), context), { status: 503 });
  });
});
