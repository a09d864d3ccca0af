import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { beta, maxDrawdown, sharpeRatio, sortinoRatio, volatility } from './performance.ts';

const RETURNS = [
  -0.031, 0.012, 0.004, -0.018, 0.022, -0.007, 0.015, -0.042, 0.009, 0.003, -0.011, 0.027, -0.002, 0.006,
  -0.025, 0.013, 0.001, -0.009, 0.019, -0.014,
];
const near = (actual: number | null, expected: number, within: number) =>
  assert.ok(actual !== null && Math.abs(actual - expected) <= within, `${actual} is not ${expected}`);

describe('performance', () => {
  it('gives Sharpe ratio and drawdown of the reference returns', () => {
    near(sharpeRatio(RETURNS, 252), -1.216559, 1e-6);
    near(maxDrawdown(RETURNS), -0.045928, 1e-6);
  });

  it('gives a Sortino ratio worked by hand', () => {
    // Losses 0.02 and 0.01 over four periods: sqrt(0.0005 / 4); mean 0.01.
    near(sortinoRatio([0.04, -0.02, 0.03, -0.01], 1), 0.01 / Math.sqrt(0.000125), 1e-12);
    assert.equal(sortinoRatio([0.01, 0.02], 365), null);
  });

  it('measures volatility on log returns', () => {
    // ln(2) and -ln(2): mean 0, deviation (n - 1) ln(2) * sqrt(2).
    near(volatility([1, -0.5]), Math.LN2 * Math.SQRT2, 1e-12);
  });

  it('has a beta of 2 for twice the market, and none for a market that stands still', () => {
    near(
      beta(
        RETURNS.map((value) => 2 * value + 0.001),
        RETURNS,
      ),
      2,
      1e-12,
    );
    assert.equal(beta([0.1, 0.2], [0, 0]), null);
  });

  it('has no Sharpe ratio for returns that do not vary', () => {
    assert.equal(sharpeRatio([0.01, 0.01, 0.01], 365), null);
  });
});
