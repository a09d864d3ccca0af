import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { againstLocalServer } from '../local-server.fixture.ts';
import { llamayields } from './llamayields.ts';

/** A row as https://yields.llama.fi/pools has them. */
const ROW = {
  chain: 'Solana',
  project: 'kamino-lend',
  symbol: 'USDC',
  tvlUsd: 101_000_000,
  apyBase: 5.1,
  apyReward: null,
  apy: 5.1,
  rewardTokens: null,
  pool: 'd783c8df-e2ed-44b4-8317-161ccc1b5f06',
  apyPct1D: 0.1,
  stablecoin: true,
  ilRisk: 'no',
  exposure: 'single',
  predictions: { predictedClass: 'Stable/Up', predictedProbability: 61, binnedConfidence: 2 },
  poolMeta: null,
  mu: 4.9,
  sigma: 0.05,
  count: 420,
  outlier: false,
  underlyingTokens: ['EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'],
  apyMean30d: 4.9,
};
const json = (data: unknown) => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(data),
});

describe('DefiLlama yields', () => {
  it('become the pools of one chain; a second question is answered from the same reply', async () => {
    const body = { status: 'success', data: [ROW, { ...ROW, chain: 'Base', pool: 'other' }] };
    await againstLocalServer(
      llamayields,
      {},
      () => json(body),
      async (api, asked) => {
        const { value, source } = await api.pools('Solana');
        assert.equal(value.pools.length, 1);
        assert.deepEqual(value.pools[0], {
          id: ROW.pool,
          project: 'kamino-lend',
          symbol: 'USDC',
          meta: null,
          tvlUsd: 101_000_000,
          apyPercent: 5.1,
          apyBasePercent: 5.1,
          apyRewardPercent: null,
          apyMean30dPercent: 4.9,
          impermanentLoss: false,
          exposure: 'single',
          isStablecoin: true,
          isOutlier: false,
          historyDays: 420,
          tokens: ROW.underlyingTokens,
        });
        assert.match(source.url, /\/pools$/);
        assert.deepEqual((await api.pools('Base')).value.pools[0]?.id, 'other');
        assert.equal(asked.length, 1);
      },
    );
  });

  it('leave out a row that cannot be read, but fail when many cannot', async () => {
    const broken = { ...ROW, apy: '5.1' };
    const mostly = { status: 'success', data: [...Array.from({ length: 40 }, () => ROW), broken] };
    await againstLocalServer(
      llamayields,
      {},
      () => json(mostly),
      async (api) => {
        assert.deepEqual(
          [(await api.pools('Solana')).value.pools.length, (await api.pools('Solana')).value.unreadable],
          [40, 1],
        );
      },
    );
    const half = { status: 'success', data: [ROW, broken] };
    await againstLocalServer(
      llamayields,
      {},
      () => json(half),
      async (api) => {
        await assert.rejects(api.pools('Solana'), { code: 'UPSTREAM_UNAVAILABLE', reason: 'invalid_reply' });
      },
    );
  });

  it('do not accept a page of HTML or half a list, and cache nothing of it', async () => {
    const bodies = [
      '<html>',
      '{"status":"success","data":[{"chain"',
      JSON.stringify({ status: 'success', data: [ROW] }),
    ];
    await againstLocalServer(
      llamayields,
      {},
      () => ({ body: bodies.shift() ?? '' }),
      async (api) => {
        await assert.rejects(api.pools('Solana'), { reason: 'invalid_reply' });
        await assert.rejects(api.pools('Solana'), { reason: 'invalid_reply' });
        assert.equal((await api.pools('Solana')).value.pools.length, 1);
      },
    );
  });

  it('may be as large as the real list', async () => {
    const data = Array.from({ length: 26_000 }, (_, index) => ({
      ...ROW,
      pool: `p${index}`,
      chain: index % 10 === 0 ? 'Solana' : 'Base',
    }));
    const body = JSON.stringify({ status: 'success', data });
    assert(body.length > 10e6);
    await againstLocalServer(
      llamayields,
      {},
      () => ({ body }),
      async (api) => {
        assert.equal((await api.pools('Solana')).value.pools.length, 2_600);
      },
    );
  });
});
