import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isPegged } from './pegs.ts';

const pair = (written: string) => {
  const [base = '', quote = ''] = written.split('/');
  return { base, quote };
};

describe('pegged pairs', () => {
  it('are those of coins that stand for the other, for the same, or for a currency', () => {
    for (const written of [
      'USDC/USD USDC/USDT USDT/USD DAI/USDT FDUSD/USDC PYUSD/USD RLUSD/USD USD1/USDT USDT/USDC TUSD/USD GHO/USD',
      'EURC/EUR EURC/USD USDC/EUR EURI/USDT WBTC/BTC BTC/CBBTC STETH/ETH WETH/ETH WSOL/SOL XAUT/PAXG MATIC/POL',
    ].flatMap((line) => line.split(' '))) {
      assert.equal(isPegged(pair(written)), true, written);
    }
  });

  it('are none whose price moves by itself', () => {
    for (const written of [
      'BTC/USDT ETH/USD ETH/BTC WBTC/USD STETH/USD PAXG/USD SOL/ETH XRP/EUR EUR/USD EUR/USDT GBP/USD USD/JPY',
      'AUDIO/USD EURO2024/USD BTCEUR/USD USDC/BTC POL/USD DOGE/USDT XAUT/BTC TRX/USDC',
    ].flatMap((line) => line.split(' '))) {
      assert.equal(isPegged(pair(written)), false, written);
    }
  });
});
