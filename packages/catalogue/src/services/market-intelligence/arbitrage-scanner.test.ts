import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import {
  down,
  type FakeUpstreams,
  NOW_MS,
  notConfigured,
  reply,
  runContext,
} from '../run-context.fixture.ts';
import arbitrageScanner from './arbitrage-scanner.ts';

const run = (body: Record<string, unknown>, fakes: FakeUpstreams) =>
  arbitrageScanner.run(arbitrageScanner.input.parse(body), runContext(fakes));
const near = (actual: unknown, expected: number, within = 1e-9) =>
  assert.ok(Math.abs(Number(actual) - expected) <= within, `${actual} is not ${expected}`);
const book = (bid: number, ask: number, size = 10) => ({
  bids: [{ price: bid, size }],
  asks: [{ price: ask, size }],
});
const dollars: FakeUpstreams = {
  defillama: {
    currentPrices: async () =>
      reply('defillama', {
        coins: {
          'coingecko:tether': { symbol: 'USDT', price: 0.999, timestamp: NOW_MS / 1_000 },
          'coingecko:usd-coin': { symbol: 'USDC', price: 1, timestamp: NOW_MS / 1_000 },
        },
      }),
  },
};
/** No chain at all: what is configured is not asked for by name. */
const noChains = { chains: ['solana'] };
function venues(
  binance: ReturnType<typeof book> | null,
  kraken: ReturnType<typeof book> | null,
  coinbase: ReturnType<typeof book> | null,
): FakeUpstreams {
  return {
    ...dollars,
    binance: { orderBook: async () => reply('binance', binance) },
    kraken: { orderBook: async () => reply('kraken', kraken) },
    coinbase: { orderBook: async () => reply('coinbase', coinbase) },
  };
}
type Row = Record<string, number | string | null | { limitedBy: string }>;

describe('arbitrage scanner', () => {
  it('nets fees on both sides and the price of the stablecoin, worked by hand', async () => {
    const fakes = venues(book(99, 100), book(103, 104), null);
    const { fields, notes } = await run({ ...noChains, assets: 'ETH', capitalUSD: 100_000 }, fakes);
    const [best] = fields.opportunities as Row[];
    // Ten units at 100 USDT of 0.999 USD and 0.1 %; sold at 103 USD less 0.4 %.
    near(best?.requiredCapital, 999 * 1.001);
    near(best?.feesEstimate, 0.999 + 4.12);
    near(best?.estimatedProfit, 1_030 - 999 - 0.999 - 4.12);
    near(best?.netProfitPercentage, ((1_030 - 999 - 0.999 - 4.12) / (999 * 1.001)) * 100);
    near(best?.profitPercentage, (1_030 / 999 - 1) * 100);
    assert.deepEqual([best?.buyExchange, best?.sellExchange, best?.buyChain], ['Binance', 'Kraken', null]);
    assert.deepEqual([fields.totalOpportunities, fields.scannedPairs], [1, 2]);
    assert.deepEqual(fields.unavailable, [
      { asset: 'ETH', reason: 'Coinbase Exchange does not list ETH/USD' },
    ]);
    assert.match(notes.join(' '), /lie on both venues already/);
    assert.equal(arbitrageScanner.output.safeParse(fields).success, true);
  });

  it('has an empty list where fees eat the difference, and shows what is best all the same', async () => {
    const fakes = venues(book(99.9, 100), book(100.1, 100.2), book(100, 100.1));
    const { fields, notes } = await run({ ...noChains, assets: ['ETH'] }, fakes);
    assert.deepEqual([fields.opportunities, fields.scannedPairs], [[], 6]);
    assert(Number(fields.bestNetProfitPercentage) < 0);
    assert.match(notes.join(' '), /Nothing reaches/);
    const all = await run({ ...noChains, assets: ['ETH'], minProfitPercent: -100 }, fakes);
    assert.equal(all.fields.totalOpportunities, 6);
    const cheap = {
      ...noChains,
      assets: ['ETH'],
      minProfitPercent: 0,
      takerFeePercent: { binance: 0, kraken: '0' },
    };
    assert.equal((await run(cheap, fakes)).fields.totalOpportunities, 1);
  });

  it('compares no book that came too long ago', async () => {
    const old = { ...reply('kraken', book(200, 201)) };
    old.source = { ...old.source, retrievedAt: new Date(NOW_MS - 6_000).toISOString() };
    const fakes = { ...venues(book(99, 100), null, book(99, 100)), kraken: { orderBook: async () => old } };
    const { fields, notes } = await run({ ...noChains, assets: ['ETH'] }, fakes);
    assert.deepEqual(fields.opportunities, []);
    assert.match(notes.join(' '), /older than 5 s/);
  });

  it('leaves a venue out whose currency or answer is missing, and fails when there is none', async () => {
    const poor = {
      ...venues(book(99, 100), book(103, 104), book(99, 100)),
      defillama: { currentPrices: down('defillama') },
    };
    const { fields } = await run({ ...noChains, assets: ['ETH'] }, poor);
    assert.match(JSON.stringify(fields.unavailable), /Binance trades in USDT/);
    assert.equal(fields.scannedPairs, 2);
    const dark = {
      ...dollars,
      binance: { orderBook: down('binance') },
      kraken: { orderBook: down('kraken') },
      coinbase: { orderBook: down('coinbase') },
    };
    await assert.rejects(run({ ...noChains, assets: ['ETH'] }, dark), { status: 503 });
    await assert.rejects(run({ ...noChains, assets: ['NOPE'] }, venues(null, null, null)), {
      status: 422,
      code: 'NO_MARKET',
      field: 'assets',
    });
    const off = {
      ...dark,
      binance: { orderBook: notConfigured('binance') },
      kraken: venues(null, book(1, 2), null).kraken,
      coinbase: venues(null, null, book(1, 2)).coinbase,
    } as FakeUpstreams;
    assert.equal((await run({ ...noChains, assets: ['ETH'] }, off)).fields.scannedPairs, 2);
  });

  it('reads the spellings of clients', () => {
    const { assets, minProfitPercent } = arbitrageScanner.input.parse({}) as {
      assets: string[];
      minProfitPercent: number;
    };
    assert.deepEqual([assets, minProfitPercent], [['BTC', 'ETH', 'SOL'], 0.5]);
    assert.deepEqual(
      (arbitrageScanner.input.parse({ assets: 'btc, ETH/USDT' }) as { assets: string[] }).assets,
      ['BTC', 'ETH'],
    );
    assert.equal(arbitrageScanner.input.safeParse({ assets: ['A', 'B', 'C', 'D', 'E', 'F'] }).success, false);
    assert.equal(arbitrageScanner.input.safeParse({ capitalUSD: 0 }).success, false);
  });
});

describe('arbitrage scanner with a chain', () => {
  let chain: TestChain;
  before(async () => {
    chain = await startTestChain();
  });
  after(() => chain.stop());

  it('buys from an exchange what Uniswap pays more for, gas netted, at the depth of the pools', async () => {
    const facts = evmChainFacts('base');
    const prices: FakeUpstreams = {
      defillama: {
        currentPrices: async (coins: readonly string[]) =>
          reply('defillama', {
            coins: Object.fromEntries(
              coins.map((coin) => [
                coin,
                { symbol: 'X', price: coin.includes('ethereum') ? 3_000 : 1, timestamp: NOW_MS / 1_000 },
              ]),
            ),
          }),
      },
    };
    // Kraken asks a hundred dollars; the pools pay the price of the market, which is more.
    const fakes = {
      ...venues(null, book(99, 100, 1_000), null),
      ...prices,
      ...chain.upstreams,
    } as FakeUpstreams;
    const { fields } = await run({ chains: ['base', 'ethereum'], assets: ['ETH'], capitalUSD: 5_000 }, fakes);
    const [best] = fields.opportunities as Row[];
    assert.deepEqual(
      [best?.buyExchange, best?.sellExchange, best?.sellChain],
      ['Kraken', 'Uniswap v3 on Base', 'base'],
    );
    assert(Number(best?.sellPriceUSD) > 500);
    assert(Number(best?.gasEstimate) > 0 && Number(best?.gasEstimate) < 50);
    const { size, buyPriceUSD, sellPriceUSD, feesEstimate, gasEstimate, estimatedProfit } = best as Record<
      string,
      number
    >;
    near(
      estimatedProfit,
      (size ?? 0) * ((sellPriceUSD ?? 0) - (buyPriceUSD ?? 0)) - (feesEstimate ?? 0) - (gasEstimate ?? 0),
      1e-3,
    );
    const quotes = fields.quotes as { instrument: string; bestBidUSD: number; bestAskUSD: number }[];
    const pool = quotes.find(({ instrument }) => instrument === `${facts.wrappedNative.symbol}/USDC`);
    assert(pool !== undefined && pool.bestBidUSD < pool.bestAskUSD);
  });
});
