import { ATR, BollingerBands, EMA, MACD, RSI } from 'technicalindicators';

/** Columns of a price history, oldest first, all of the same length. */
export interface Bars {
  high: readonly number[];
  low: readonly number[];
  close: readonly number[];
}

/**
 * Exponential moving average of the last value, seeded by the simple average of the first `period` values.
 *
 * @returns null when there are fewer values than `period`
 */
export function ema(values: readonly number[], period: number): number | null {
  return EMA.calculate({ period, values: [...values] }).at(-1) ?? null;
}

/**
 * Relative strength index after Wilder (New Concepts in Technical Trading Systems, 1978), 0 to 100, to two decimals.
 *
 * @returns null when there are fewer than `period` + 1 values, or when no value ever differed from the one before
 */
export function rsi(values: readonly number[], period: number): number | null {
  if (values.every((value) => value === values[0])) return null;
  return RSI.calculate({ period, values: [...values] }).at(-1) ?? null;
}

export interface Macd {
  macd: number;
  signal: number;
  histogram: number;
}

/**
 * Moving average convergence/divergence 12/26/9 on exponential averages, in the unit of the values.
 *
 * @returns null when there are fewer than 34 values (26 for the slow average, 8 more for its signal line)
 */
export function macd(values: readonly number[]): Macd | null {
  const last = MACD.calculate({
    values: [...values],
    fastPeriod: 12,
    slowPeriod: 26,
    signalPeriod: 9,
    SimpleMAOscillator: false,
    SimpleMASignal: false,
  }).at(-1);
  if (last?.MACD === undefined || last.signal === undefined || last.histogram === undefined) return null;
  return { macd: last.MACD, signal: last.signal, histogram: last.histogram };
}

/**
 * Average true range with Wilder's smoothing, in the unit of the prices.
 *
 * @returns null when there are fewer than `period` + 1 bars
 */
export function atr(bars: Bars, period: number): number | null {
  return (
    ATR.calculate({ period, high: [...bars.high], low: [...bars.low], close: [...bars.close] }).at(-1) ?? null
  );
}

export interface Bollinger {
  upper: number;
  middle: number;
  lower: number;
  /** Where the last value stands: 0 on the lower band, 1 on the upper. Null when the bands coincide. */
  percentB: number | null;
}

/**
 * Bollinger bands: simple average, plus and minus two population standard deviations.
 *
 * @returns null when there are fewer values than `period`
 */
export function bollinger(values: readonly number[], period: number): Bollinger | null {
  const last = BollingerBands.calculate({ period, stdDev: 2, values: [...values] }).at(-1);
  if (last === undefined) return null;
  return {
    upper: last.upper,
    middle: last.middle,
    lower: last.lower,
    percentB: last.upper === last.lower ? null : last.pb,
  };
}
