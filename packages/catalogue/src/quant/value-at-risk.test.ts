import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { historicalTailLoss, normalTailLoss, standardNormalQuantile } from './value-at-risk.ts';

// Twenty daily returns whose figures were made with NumPy (quantile type 7, ddof = 1).
const RETURNS = [
  -0.031, 0.012, 0.004, -0.018, 0.022, -0.007, 0.015, -0.042, 0.009, 0.003, -0.011, 0.027, -0.002, 0.006,
  -0.025, 0.013, 0.001, -0.009, 0.019, -0.014,
];
const near = (actual: number, expected: number, within: number) =>
  assert.ok(Math.abs(actual - expected) <= within, `${actual} is not ${expected}`);

describe('value at risk', () => {
  it('takes the type 7 quantile and the mean of the tail', () => {
    const loss = historicalTailLoss(RETURNS, 0.95);
    near(loss.valueAtRisk, 0.03155, 1e-9);
    near(loss.expectedShortfall, 0.042, 1e-9);
  });

  it('keeps the return that the quantile equals in the tail', () => {
    // At 0.5 of three returns the quantile is the middle one itself: shortfall is the mean of the lower two.
    near(historicalTailLoss([-0.03, -0.01, 0.02], 0.5).expectedShortfall, 0.02, 1e-12);
  });

  it('gives the normal figures of the same returns', () => {
    const loss = normalTailLoss(RETURNS, 0.95);
    near(loss.valueAtRisk, 0.031448, 1e-6);
    near(loss.expectedShortfall, 0.039082, 1e-6);
  });

  it("reproduces Hull's two-asset example: 99 %, ten days", () => {
    const z = standardNormalQuantile(0.99);
    const first = 10e6 * 0.02;
    const second = 5e6 * 0.01;
    const portfolio = Math.sqrt(first ** 2 + second ** 2 + 2 * 0.3 * first * second);
    near(first * z * Math.sqrt(10), 1_471_312, 1);
    near(second * z * Math.sqrt(10), 367_828, 1);
    near(portfolio * z * Math.sqrt(10), 1_620_114, 1);
  });

  it('has the normal quantiles of the tables', () => {
    near(standardNormalQuantile(0.95), 1.644853627, 1e-8);
    near(standardNormalQuantile(0.99), 2.326347874, 1e-8);
  });
});
