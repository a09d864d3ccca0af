import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { atr, bollinger, ema, macd, rsi } from './indicators.ts';

// The worked RSI(14) example that StockCharts publishes for Wilder's method.
const RSI_CLOSES = [
  44.3389, 44.0902, 44.1497, 43.6124, 44.3278, 44.8264, 45.0955, 45.4245, 45.8433, 46.0826, 45.8931, 46.0328,
  45.614, 46.282, 46.282, 46.0028, 46.0328, 46.4116, 46.2222, 45.6439,
];
// The worked EMA(10) example of the same source.
const EMA_CLOSES = [
  22.27, 22.19, 22.08, 22.17, 22.18, 22.13, 22.23, 22.43, 22.24, 22.29, 22.15, 22.39, 22.38, 22.61, 23.36,
  24.05, 23.75, 23.83, 23.95, 23.63,
];

/** The indicator after each of the last `count` values. */
function trail(
  values: readonly number[],
  count: number,
  indicator: (values: readonly number[]) => number | null,
) {
  return Array.from({ length: count }, (_, index) =>
    Number(indicator(values.slice(0, values.length - count + 1 + index))?.toFixed(2)),
  );
}

describe('indicators', () => {
  it('gives the published RSI(14) series', () => {
    assert.deepEqual(
      trail(RSI_CLOSES, 6, (values) => rsi(values, 14)),
      [70.53, 66.32, 66.55, 69.41, 66.36, 57.97],
    );
    assert.equal(rsi(RSI_CLOSES.slice(0, 14), 14), null);
  });

  it('has no RSI for a price that never moved', () => {
    assert.equal(rsi(new Array(40).fill(1), 14), null);
  });

  it('gives the published EMA(10) series', () => {
    assert.deepEqual(
      trail(EMA_CLOSES, 11, (values) => ema(values, 10)),
      [22.22, 22.21, 22.24, 22.27, 22.33, 22.52, 22.8, 22.97, 23.13, 23.28, 23.34],
    );
    assert.equal(ema(EMA_CLOSES.slice(0, 9), 10), null);
  });

  it('smooths the true range after Wilder, gaps included (worked by hand)', () => {
    // True ranges from the second bar on: 2, 2, 1.5, 2. First average 5.5/3, then (2 * 5.5/3 + 2) / 3.
    const bars = { high: [10, 11, 12, 13, 14], low: [9, 9, 10, 12, 12], close: [9.5, 10, 11.5, 12.5, 13] };
    assert.ok(Math.abs((atr(bars, 3) ?? 0) - 17 / 9) < 1e-12);
    assert.equal(atr({ high: [10, 11], low: [9, 9], close: [9, 9] }, 3), null);
  });

  it('gives MACD of a straight line: the lags of both averages differ by 7 bars', () => {
    // An EMA of period n lags a unit ramp by (n - 1) / 2, so MACD is 12.5 - 5.5 = 7 and the histogram is 0.
    const ramp = Array.from({ length: 60 }, (_, index) => index);
    const last = macd(ramp);
    assert.ok(last !== null && Math.abs(last.macd - 7) < 1e-9 && Math.abs(last.histogram) < 1e-9);
    assert.equal(macd(ramp.slice(0, 33)), null);
    assert.notEqual(macd(ramp.slice(0, 34)), null);
  });

  it('uses the population deviation for Bollinger bands, and has no %b for coinciding bands', () => {
    const bands = bollinger([1, 2, 3], 3);
    const deviation = Math.sqrt(2 / 3);
    assert.ok(bands !== null && Math.abs(bands.upper - (2 + 2 * deviation)) < 1e-12);
    assert.ok(Math.abs((bands?.percentB ?? 0) - (1 + 2 * deviation) / (4 * deviation)) < 1e-12);
    assert.equal(bollinger([5, 5, 5], 3)?.percentB, null);
  });
});
