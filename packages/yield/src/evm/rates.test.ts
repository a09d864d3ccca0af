import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  aaveApyPercent,
  cometApyPercent,
  daysToEarnBack,
  metaMorphoApyPercent,
  netApyPercent,
  rounded,
} from './rates.ts';

test('yearly rates are those that were measured on a chain', () => {
  // Aave says 3.52 % a year, Compound 3.936 %: by the second that is 3.583 % and 4.014 %.
  assert.equal(rounded(aaveApyPercent(35_200_000_000_000_000_000_000_000n)), 3.5827);
  const perSecond = BigInt(Math.round((0.03936 / 31_536_000) * 1e18));
  assert.equal(rounded(cometApyPercent(perSecond)), 4.0145);
  assert.equal(aaveApyPercent(0n), 0);
});

test('a MetaMorpho vault earns what its markets earn, by what it has in each, less its fee', () => {
  const market = {
    vaultAssets: 50,
    totalSupplyAssets: 100,
    totalBorrowAssets: 80,
    borrowPerSecond: BigInt(Math.round((Math.log(1.0325) / 31_536_000) * 1e18)),
    fee: 0n,
  };
  const tenth = 10n ** 17n;
  // 3.25 % for what is borrowed, 80 % of it: 2.60 %; less a tenth: 2.34 %.
  assert.equal(rounded(metaMorphoApyPercent([market], tenth, 50)), 2.34);
  // Half of the vault lies idle.
  const idle = { ...market, totalBorrowAssets: 0, borrowPerSecond: 0n };
  assert.equal(rounded(metaMorphoApyPercent([market, idle], tenth, 100)), 1.17);
  assert.equal(metaMorphoApyPercent([], tenth, 0), 0);
});

test('the entry fee is earned back after as many days as it takes', () => {
  // 99.5 % grown at 3.6 % a year is 100 % after 51.7 days.
  assert.equal(daysToEarnBack(50, 3.6), 52);
  assert.equal(daysToEarnBack(0, 3.6), 0);
  assert.equal(daysToEarnBack(50, 0), null);
  assert.equal(daysToEarnBack(50, Number.NaN), null);
  assert.equal(rounded(netApyPercent(4, 1_500)), 3.4);
});
