import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Address, erc20Abi, parseAbi } from 'viem';
import type { z } from 'zod';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import type { DexPair } from '../../upstreams/adapters/dexscreener.ts';
import { evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import { down, type FakeUpstreams, NOW_MS, reply, runContext } from '../run-context.fixture.ts';
import dexLiquidity, { type output } from './dex-liquidity.ts';

const { usdc, wrappedNative, uniswapV3 } = evmChainFacts('base');
const WETH = wrappedNative.address;
const FACTORY = parseAbi(['function getPool(address, address, uint24) view returns (address)']);
const ELSEWHERE = '0x00000000000000000000000000000000000b0001';

const prices: FakeUpstreams = {
  defillama: {
    currentPrices: async () =>
      reply('defillama', {
        coins: { [`base:${usdc.toLowerCase()}`]: { symbol: 'USDC', price: 0.5, timestamp: NOW_MS / 1_000 } },
      }),
  },
};
const pair = (pairAddress: string, liquidityUsd: number | null): DexPair => ({
  chain: 'base',
  dex: 'aerodrome',
  labels: ['v2'],
  pairAddress,
  base: { address: WETH, name: 'Wrapped Ether', symbol: 'WETH' },
  quote: { address: usdc, name: 'USD Coin', symbol: 'USDC' },
  priceNative: 3_000,
  priceUsd: 3_000,
  change24hPercent: 0,
  volume24hUsd: 777,
  liquidityUsd,
  fdvUsd: 9e9,
  marketCapUsd: 7e9,
  createdAtMs: null,
});
const listing = (...pairs: DexPair[]): FakeUpstreams => ({
  dexscreener: { pairsOf: async () => reply('dexscreener', pairs) },
});

let chain: TestChain;
let pool500: Address;
before(async () => {
  chain = await startTestChain();
  pool500 = await chain.client.readContract({
    address: uniswapV3.factory,
    abi: FACTORY,
    functionName: 'getPool',
    args: [usdc, WETH, 500],
  });
});
after(() => chain.stop());

async function run(body: Record<string, unknown>, fakes: FakeUpstreams) {
  const upstreams = { ...chain.upstreams, ...fakes };
  const made = await dexLiquidity.run(dexLiquidity.input.parse(body), runContext(upstreams));
  assert(dexLiquidity.output.safeParse(made.fields).success);
  return { ...made, fields: made.fields as z.output<typeof output> };
}
const body = { tokenAddress: WETH, chain: 'base' };

describe('DEX liquidity', () => {
  it('values what the pools on chain hold, at the price of the quote token', async () => {
    const { fields } = await run(body, { ...prices, ...listing() });
    assert.deepEqual(new Set(fields.pools.map(({ feeTierPct }) => feeTierPct)), new Set([0.05, 0.3]));
    const found = fields.pools.find(({ pairAddress }) => pairAddress === pool500);
    const held = await Promise.all(
      [WETH, usdc].map((address) =>
        chain.client.readContract({ address, abi: erc20Abi, functionName: 'balanceOf', args: [pool500] }),
      ),
    );
    const [weth, usd] = [Number(held[0]) / 1e18, Number(held[1]) / 1e6];
    assert.deepEqual([Number(found?.baseReserve), Number(found?.quoteReserve)], [weth, usd]);
    // A position over all prices holds the same value on both sides, so the price is their ratio.
    const price = usd / weth;
    assert(Math.abs((found?.priceUsd ?? 0) / (0.5 * price) - 1) < 1e-6, `${found?.priceUsd} at ${price}`);
    assert(Math.abs((found?.liquidityUsd ?? 0) / (0.5 * 2 * usd) - 1) < 1e-6);
    assert.deepEqual([found?.source, found?.volume24hUsd], ['chain', null]);
    const sum = fields.pools.reduce((total, { liquidityUsd }) => total + (liquidityUsd ?? 0), 0);
    assert(Math.abs(fields.totalLiquidity - sum) < 0.02);
  });

  it('joins both sources by pool, counts none twice and leaves dust out', async () => {
    const listed = listing(
      pair(pool500.toLowerCase(), 1),
      pair(ELSEWHERE, 5_000),
      pair(`${ELSEWHERE}2`, 999),
    );
    const alone = await run(body, { ...prices, ...listing() });
    const { fields, notes, sources } = await run(body, { ...prices, ...listed });
    const [both, elsewhere] = [pool500, ELSEWHERE].map((address) =>
      fields.pools.find(({ pairAddress }) => pairAddress === address),
    );
    assert.deepEqual([both?.source, both?.volume24hUsd], ['chain+dexscreener', 777]);
    assert.deepEqual([elsewhere?.source, elsewhere?.dex], ['dexscreener', 'aerodrome v2']);
    assert(Math.abs(fields.totalLiquidity - alone.fields.totalLiquidity - 5_000) < 0.02);
    assert.equal(fields.poolCount, 3);
    assert.match(notes.join(' '), /1 pool\(s\) with less than 1000 USD/);
    assert.deepEqual(
      sources.map(({ name }) => name),
      ['base', 'defillama', 'dexscreener'],
    );
  });

  it('has no value without a price, and no pool against another token than asked for', async () => {
    const silent = { defillama: { currentPrices: down('defillama') }, ...listing() };
    const { fields, notes } = await run(body, silent);
    assert.deepEqual([fields.pools[0]?.liquidityUsd, fields.totalLiquidity], [null, 0]);
    assert.match(notes.join(' '), /2 pool\(s\) could not be valued/);
    const other = await run(
      { ...body, tokenB: ELSEWHERE },
      { ...prices, ...listing(pair(ELSEWHERE, 5_000)) },
    );
    assert.deepEqual(other.fields.pools, []);
  });

  it('answers from one source when the other is down, and not when both are', async () => {
    const noList = { ...prices, dexscreener: { pairsOf: down('dexscreener') } };
    const { fields, notes } = await run(body, noList);
    assert.equal(fields.pools.length, 2);
    assert.match(notes.join(' '), /dexscreener did not answer/);
    const elsewhere = await run(
      { ...body, chain: 'polygon' },
      { ...prices, ...listing(pair(ELSEWHERE, 5_000)) },
    );
    assert.deepEqual([elsewhere.fields.totalLiquidity, elsewhere.fields.blockNumber], [5_000, null]);
    await assert.rejects(run({ ...body, chain: 'polygon' }, noList), { status: 503 });
  });

  it('knows what is no token, and what nobody knows', async () => {
    const nobody = '0x00000000000000000000000000000000000b0009';
    await assert.rejects(run({ ...body, tokenAddress: nobody }, { ...prices, ...listing() }), {
      status: 404,
    });
    await assert.rejects(run({ ...body, chain: 'polygon' }, { ...prices, ...listing() }), { status: 404 });
    await assert.rejects(run({ ...body, chain: 'solana' }, { ...prices, ...listing() }), { status: 422 });
  });
});
