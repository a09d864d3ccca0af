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

/** Simple moving average of the last `period` values; null when there are fewer. */
export function simpleAverage(values: readonly number[], period: number): number | null {
  if (values.length < period) return null;
  return values.slice(-period).reduce((sum, value) => sum + value, 0) / period;
}

/** Change over the last `period` values in percent; null when there are not more values than that. */
export function rateOfChange(values: readonly number[], period: number): number | null {
  const [last, before] = [values.at(-1), values.at(-1 - period)];
  return last === undefined || before === undefined ? null : (last / before - 1) * 100;
}

/**
 * Williams' %R: where the last close stands in the range of the last `period` bars, -100 (lowest) to 0 (highest).
 *
 * @returns null when there are fewer bars, or when the range is empty
 */
export function williamsR(bars: Bars, period: number): number | null {
  return rangePosition(bars, period, bars.close.length);
}

/**
 * Lane's slow stochastic: the mean over the last `smoothing` bars of %K, which is 0 when a close is the lowest of the
 * last `period` bars and 100 when it is the highest.
 *
 * @returns null when there are fewer bars, or when a range is empty
 */
export function stochastic(bars: Bars, period: number, smoothing: number): number | null {
  let sum = 0;
  for (let back = 0; back < smoothing; back++) {
    const position = rangePosition(bars, period, bars.close.length - back);
    if (position === null) return null;
    sum += position + 100;
  }
  return sum / smoothing;
}

/** %R of the bar before `end`. */
function rangePosition({ high, low, close }: Bars, period: number, end: number): number | null {
  const last = close[end - 1];
  if (end < period || last === undefined) return null;
  const highest = Math.max(...high.slice(end - period, end));
  const lowest = Math.min(...low.slice(end - period, end));
  return highest === lowest ? null : ((last - highest) / (highest - lowest)) * 100;
}
