import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DexPair } from '../../../upstreams/adapters/dexscreener.ts';
import { dexMarketOf } from './dex-market.ts';

const TOKEN = '0xAAaAaaaAaAaAAaAaaAaAaAaaAAaaAaaAAaaaAaAa';
const OTHER = '0x2222222222222222222222222222222222222222';
const pair = (part: Partial<DexPair>): DexPair => ({
  chain: 'base',
  dex: 'uniswap',
  labels: [],
  pairAddress: '0xpair',
  base: { address: TOKEN.toLowerCase(), name: 'Synthetic', symbol: 'SYN' },
  quote: { address: OTHER, name: null, symbol: 'USDC' },
  priceNative: 2,
  priceUsd: 2,
  change24hPercent: 5,
  volume24hUsd: 100,
  liquidityUsd: 50_000,
  fdvUsd: 9_000_000,
  marketCapUsd: 4_000_000,
  createdAtMs: null,
  ...part,
});
const flipped = {
  base: { address: OTHER, name: 'Other', symbol: 'OTH' },
  quote: { address: TOKEN, name: null, symbol: 'SYN' },
};

describe('dex market', () => {
  it('prices from the deepest pool and sums volume and liquidity, leaving dust pools out', () => {
    const market = dexMarketOf(
      [
        pair({ priceUsd: 2.1, liquidityUsd: 20_000 }),
        pair({}),
        pair({ priceUsd: 999, liquidityUsd: 999, volume24hUsd: 1e9 }),
        pair({ priceUsd: 777, liquidityUsd: null, volume24hUsd: 1e9 }),
      ],
      TOKEN,
    );
    assert.deepEqual(
      [market?.priceUsd, market?.volume24hUsd, market?.liquidityUsd, market?.pools, market?.marketCapUsd],
      [2, 200, 70_000, 2, 4_000_000],
    );
  });

  it('inverts the price where the token is the quote, and does not borrow the change and cap of the base', () => {
    // One OTH costs 3,000 USD or 1,500 SYN: a SYN is 2 USD.
    const market = dexMarketOf([pair({ ...flipped, priceUsd: 3_000, priceNative: 1_500 })], TOKEN);
    assert.deepEqual(
      [market?.priceUsd, market?.change24hPercent, market?.marketCapUsd, market?.symbol],
      [2, null, null, 'SYN'],
    );
  });

  it('tells when the market cap is the fully diluted value, and has no market for a token without pools', () => {
    assert.equal(dexMarketOf([pair({ marketCapUsd: 9_000_000 })], TOKEN)?.marketCapIsFullyDiluted, true);
    assert.equal(dexMarketOf([pair({})], TOKEN)?.marketCapIsFullyDiluted, false);
    assert.equal(dexMarketOf([pair({ liquidityUsd: 10 })], TOKEN), null);
    assert.equal(dexMarketOf([pair({ volume24hUsd: null })], TOKEN)?.volume24hUsd, null);
  });
});
