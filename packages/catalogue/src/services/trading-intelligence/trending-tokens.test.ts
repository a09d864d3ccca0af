import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TrendingPool } from '../../upstreams/adapters/geckoterminal.ts';
import { down, type FakeUpstreams, reply, runContext } from '../run-context.fixture.ts';
import trendingTokens from './trending-tokens.ts';

const pool = (number: number, tokenNumber = number): TrendingPool => ({
  chain: 'base',
  poolName: `T${tokenNumber} / WETH`,
  poolAddress: `0xpool${number}`,
  base: { address: `0xAb${tokenNumber}`, symbol: `T${tokenNumber}`, name: null },
  basePriceUsd: 1,
  baseChange24hPercent: null,
  volume24hUsd: 1_000 - number,
  liquidityUsd: null,
});
const pages = (...lists: TrendingPool[][]): FakeUpstreams => ({
  geckoterminal: { trendingPools: async (_chain, page) => reply('geckoterminal', lists[page - 1] ?? []) },
});
const boosts: FakeUpstreams = {
  dexscreener: {
    paidBoosts: async () =>
      reply('dexscreener', [
        { chain: 'base', address: '0xab2', totalAmount: 500 },
        { chain: 'base', address: '0xdead', totalAmount: 9_000 },
      ]),
  },
};
const coins: FakeUpstreams = {
  coingecko: {
    trendingCoins: async () =>
      reply('coingecko', [
        { id: 'syn', name: 'Synthetic', symbol: 'SYN', priceUsd: 2, volume24hUsd: null, change24hPercent: 3 },
      ]),
  },
};
const run = (body: Record<string, unknown>, fakes: FakeUpstreams) =>
  trendingTokens.run(trendingTokens.input.parse(body), runContext(fakes));
type Token = { rank: number; symbol: string; paidPromotion: boolean | null };

describe('trending tokens', () => {
  it('lists each token once, in the order of its best pool, and goes on to the next page for more', async () => {
    const { fields } = await run(
      { limit: 3 },
      { ...pages([pool(1), pool(2), pool(3, 1)], [pool(4), pool(5)]), ...boosts },
    );
    const tokens = fields.tokens as Token[];
    assert.deepEqual(
      tokens.map(({ rank, symbol }) => [rank, symbol]),
      [
        [1, 'T1'],
        [2, 'T2'],
        [3, 'T4'],
      ],
    );
    assert.equal(fields.count, 3);
    assert.equal(trendingTokens.output.safeParse(fields).success, true);
  });

  it('marks who paid for boosts, and never lists a token for having paid', async () => {
    const { fields } = await run({}, { ...pages([pool(1), pool(2)]), ...boosts });
    const tokens = fields.tokens as Token[];
    assert.deepEqual(
      tokens.map(({ symbol, paidPromotion }) => [symbol, paidPromotion]),
      [
        ['T1', false],
        ['T2', true],
      ],
    );
  });

  it('leaves the marks open when the boosts cannot be had', async () => {
    const { fields, notes } = await run(
      {},
      { ...pages([pool(1)]), dexscreener: { paidBoosts: down('dexscreener') } },
    );
    assert.equal((fields.tokens as Token[])[0]?.paidPromotion, null);
    assert.match(notes.join(' '), /Only 1 tokens trend/);
    assert.match(notes.join(' '), /paidPromotion is null/);
  });

  it('falls back to searches for all chains, saying so, but not for one chain', async () => {
    const failing: FakeUpstreams = { geckoterminal: { trendingPools: down('geckoterminal') }, ...coins };
    const { fields, notes, sources } = await run({}, failing);
    assert.equal((fields.tokens as Token[])[0]?.symbol, 'SYN');
    assert.match(notes.join(' '), /most searched coins instead/);
    assert.deepEqual(
      sources.map(({ name }) => name),
      ['coingecko'],
    );
    assert.equal(trendingTokens.output.safeParse(fields).success, true);
    await assert.rejects(run({ chain: 'base' }, failing), { status: 503 });
  });

  it('says when its source does not cover the chain', async () => {
    const uncovered: FakeUpstreams = {
      ...boosts,
      geckoterminal: { trendingPools: async () => reply('geckoterminal', null) },
    };
    await assert.rejects(run({ chain: 'base' }, uncovered), {
      status: 422,
      code: 'CHAIN_NOT_COVERED',
      field: 'chain',
    });
  });

  it('says when it cannot rank over the window asked for', async () => {
    const { fields, notes } = await run({ timeframe: '7d' }, { ...pages([pool(1)]), ...boosts });
    assert.equal(fields.window, '24h');
    assert.match(notes.join(' '), /No source ranks over 7d/);
    const hour = await run({ timeframe: '1H' }, { ...pages([pool(1)]), ...boosts });
    assert.equal(hour.fields.window, '1h');
  });
});
