import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assetKey, parseAsset } from './asset.ts';

const EVM = '0x4200000000000000000000000000000000000006';
const MINT = 'So11111111111111111111111111111111111111112';
const key = (written: string, chain?: 'base' | 'solana') => {
  const asset = parseAsset(written, chain);
  return asset === null ? null : assetKey(asset);
};

describe('asset names', () => {
  it('reads tickers and pairs in the usual spellings', () => {
    assert.deepEqual(
      ['BTC', ' eth ', 'ETH/USDT', 'eth-usd', 'BTCUSDT', 'BTCUSD', 'ETH/BTC', 'SOL_USDC'].map((name) =>
        key(name),
      ),
      ['BTC/USD', 'ETH/USD', 'ETH/USDT', 'ETH/USD', 'BTC/USDT', 'BTC/USD', 'ETH/BTC', 'SOL/USDC'],
    );
  });

  it('keeps stablecoins whole', () => {
    assert.deepEqual(
      ['USDT', 'USDC', 'TUSD', 'PYUSD', 'DAI'].map((name) => key(name)),
      ['USDT/USD', 'USDC/USD', 'TUSD/USD', 'PYUSD/USD', 'DAI/USD'],
    );
  });

  it('reads addresses with their chain before, beside or implied', () => {
    assert.equal(key(`base:${EVM.toUpperCase().replace('0X', '0x')}`), `base:${EVM}`);
    assert.equal(key(`eip155:8453:${EVM}`), null);
    assert.equal(key(EVM, 'base'), `base:${EVM}`);
    assert.equal(key(MINT), `solana:${MINT}`);
    assert.equal(key(`solana:${MINT}`), `solana:${MINT}`);
  });

  it('refuses an address without a chain or on a chain of another kind, and what is no name', () => {
    for (const wrong of [EVM, `solana:${EVM}`, `base:${MINT}`, '0x1234', '', 'a b', 'USD', 'USDT/USDT']) {
      assert.equal(key(wrong), null, wrong);
    }
  });
});
