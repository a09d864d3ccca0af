import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DexPair } from '../../upstreams/adapters/dexscreener.ts';
import {
  down,
  type FakeUpstreams,
  NOW_MS,
  notConfigured,
  reply,
  runContext,
} from '../run-context.fixture.ts';
import tokenPrice from './token-price.ts';

const TOKEN = '0x4200000000000000000000000000000000000006';
const COIN = `base:${TOKEN}`;
const body = { tokenAddress: TOKEN, chain: 'base' };
const run = (request: Record<string, unknown>, fakes: FakeUpstreams) =>
  tokenPrice.run(tokenPrice.input.parse(tokenPrice.adapt?.(request) ?? request), runContext(fakes));

const llama = (
  price: number,
  part: { ageMs?: number; confidence?: number } = {},
  coin = COIN,
): FakeUpstreams => ({
  defillama: {
    currentPrices: async () =>
      reply('defillama', {
        coins: {
          [coin]: {
            symbol: 'WETH',
            price,
            timestamp: (NOW_MS - (part.ageMs ?? 0)) / 1_000,
            confidence: part.confidence ?? 0.99,
          },
        },
      }),
    changes24h: async () => reply('defillama', { coins: { [coin]: -1.5 } }),
  },
});
const pair = (part: Partial<DexPair> = {}): DexPair => ({
  chain: 'base',
  dex: 'uniswap',
  labels: [],
  pairAddress: '0xpair',
  base: { address: TOKEN, name: 'Wrapped Ether', symbol: 'WETH' },
  quote: { address: '0x2222222222222222222222222222222222222222', name: 'USD Coin', symbol: 'USDC' },
  priceNative: 3_010,
  priceUsd: 3_010,
  change24hPercent: -1.4,
  volume24hUsd: 1_000_000,
  liquidityUsd: 8_000_000,
  fdvUsd: 9e9,
  marketCapUsd: 7e9,
  createdAtMs: null,
  ...part,
});
const dex = (...pairs: DexPair[]): FakeUpstreams => ({
  dexscreener: {
    pairsOf: async () => reply('dexscreener', pairs),
    search: async () => reply('dexscreener', pairs),
  },
});
const nobodyElse: FakeUpstreams = {
  geckoterminal: { tokenPrice: async () => reply('geckoterminal', null) },
  coingecko: {
    tokenMarket: async () => reply('coingecko', null),
    coinMarket: async () => reply('coingecko', null),
  },
};
const unknownLlama: FakeUpstreams = {
  defillama: {
    currentPrices: async () => reply('defillama', { coins: {} }),
    changes24h: async () => reply('defillama', { coins: {} }),
  },
};

describe('token price', () => {
  it('says for every figure where it is from', async () => {
    const { fields, notes, sources } = await run(body, { ...llama(3_012.5), ...dex(pair()) });
    assert.deepEqual(
      [fields.price, fields.change24h, fields.volume24h, fields.marketCap, fields.name],
      [3_012.5, -1.5, 1_000_000, 7e9, 'Wrapped Ether'],
    );
    assert.deepEqual(fields.fieldSources, {
      price: 'defillama',
      change24h: 'defillama',
      volume24h: 'dexscreener',
      marketCap: 'dexscreener',
    });
    assert.match(notes.join(' '), /price: defillama; change24h: defillama; volume24h: dexscreener/);
    assert.equal(sources[0]?.asOf, new Date(NOW_MS).toISOString());
    assert.equal(tokenPrice.output.safeParse(fields).success, true);
  });

  it('has null, not 0, for what nobody knows', async () => {
    const { fields, notes } = await run(body, { ...llama(1), ...dex(), ...nobodyElse });
    assert.deepEqual(
      [fields.price, fields.volume24h, fields.marketCap, fields.liquidityUsd],
      [1, null, null, null],
    );
    assert.match(notes.join(' '), /marketCap is null/);
  });

  it('prefers another source to an old or unsure price, and tells when there is no other', async () => {
    const old = llama(2_900, { ageMs: 2 * 3_600_000 });
    const better = await run(body, { ...old, ...dex(pair()) });
    assert.deepEqual([better.fields.price, better.fields.source], [3_010, 'dexscreener']);
    const unsure = await run(body, { ...llama(2_900, { confidence: 0.5 }), ...dex(), ...nobodyElse });
    assert.equal(unsure.fields.price, 2_900);
    assert.match(unsure.notes.join(' '), /has a confidence of only 0\.5/);
    const alone = await run(body, { ...old, ...dex(), ...nobodyElse });
    assert.match(alone.notes.join(' '), /is 120 minutes old/);
  });

  it('says when sources disagree, and takes no fully diluted value for a market cap', async () => {
    const { fields, notes } = await run(body, {
      ...llama(1_000),
      ...dex(pair({ marketCapUsd: 9e9 })),
      ...nobodyElse,
    });
    assert.equal(fields.marketCap, null);
    assert.match(notes.join(' '), /marketCap: unknown/);
    assert.match(notes.join(' '), /dexscreener has another price: 3010 USD/);
    assert.match(notes.join(' '), /equals the fully diluted value/);
  });

  it('answers from what is left when a source is down', async () => {
    const failing: FakeUpstreams = {
      defillama: { currentPrices: down('defillama'), changes24h: down('defillama') },
    };
    const { fields, notes } = await run(body, { ...failing, ...dex(pair()) });
    assert.deepEqual([fields.price, fields.change24h], [3_010, -1.4]);
    assert.match(notes.join(' '), /defillama did not answer \(upstream_down\)/);
  });

  it('tells "unknown" from "could not ask"', async () => {
    await assert.rejects(run(body, { ...unknownLlama, ...dex(), ...nobodyElse }), {
      status: 404,
      field: 'tokenAddress',
    });
    const unsure: FakeUpstreams = { dexscreener: { pairsOf: down('dexscreener') } };
    await assert.rejects(run(body, { ...unknownLlama, ...unsure, ...nobodyElse }), { status: 503 });
    const absent: FakeUpstreams = { dexscreener: { pairsOf: notConfigured('dexscreener') } };
    await assert.rejects(run(body, { ...unknownLlama, ...absent, ...nobodyElse }), { status: 404 });
  });

  it('takes a well-known ticker as the coin, also from the address field', async () => {
    const fakes: FakeUpstreams = {
      ...llama(94_000, {}, 'coingecko:bitcoin'),
      coingecko: {
        coinMarket: async () =>
          reply('coingecko', {
            priceUsd: 94_010,
            marketCapUsd: 1.8e12,
            volume24hUsd: 3e10,
            change24hPercent: 1,
            updatedAtMs: NOW_MS,
          }),
      },
    };
    const { fields, notes } = await run({ tokenAddress: 'btc' }, fakes);
    assert.deepEqual([fields.price, fields.marketCap, fields.tokenAddress], [94_000, 1.8e12, null]);
    assert.match(notes.join(' '), /BTC is taken to mean the coin "bitcoin"/);
  });

  it('resolves another ticker to the deepest pool, warns of namesakes, and leaves shallow ones alone', async () => {
    const syn = (address: string, liquidityUsd: number) =>
      pair({
        base: { address, name: 'Synthetic', symbol: 'SYN' },
        liquidityUsd,
        priceUsd: 2,
        priceNative: 2,
      });
    const real = '0x3333333333333333333333333333333333333333';
    const copy = '0x4444444444444444444444444444444444444444';
    const fakes = { ...unknownLlama, ...dex(syn(copy, 60_000), syn(real, 900_000)) };
    const { fields, notes } = await run({ symbol: 'syn' }, fakes);
    assert.deepEqual([fields.tokenAddress, fields.chain, fields.price], [real, 'base', 2]);
    assert.match(notes.join(' '), /1 more carry this ticker/);
    await assert.rejects(run({ symbol: 'syn' }, dex(syn(copy, 49_000))), { status: 404, field: 'symbol' });
  });

  it('checks the request', () => {
    const accepts = (request: unknown) => tokenPrice.input.safeParse(request).success;
    assert.ok(accepts(body) && accepts({ symbol: 'ETH' }) && accepts({ tokenAddress: TOKEN, chain: 8453 }));
    assert.ok(!accepts({}) && !accepts({ tokenAddress: TOKEN }) && !accepts({ chain: 'base' }));
    assert.ok(
      !accepts({ tokenAddress: TOKEN, chain: 'solana' }) && !accepts({ tokenAddress: '0x12', chain: 'base' }),
    );
  });
});
