import { ATR, BollingerBands, EMA, MACD, RSI } from 'technicalindicators';

/** Columns of a price history, oldest first, all of the same length. */
export interface Bars {
  high: readonly number[];
  low: readonly number[];
  close: readonly number[];
}

/**
 * Exponential moving average at each value, seeded by the simple average of the first `period` values.
 *
 * @returns as many as there are values; null where fewer than `period` went before
 */
export function emaTrail(values: readonly number[], period: number): (number | null)[] {
  return trail(EMA.calculate({ period, values: [...values] }), values.length);
}

/** The last of `emaTrail`. */
export function ema(values: readonly number[], period: number): number | null {
  return emaTrail(values, period).at(-1) ?? null;
}

/**
 * Relative strength index after Wilder (New Concepts in Technical Trading Systems, 1978) at each value, 0 to 100, to two
 * decimals.
 *
 * @returns null where no more than `period` values went before, or where none of them ever differed from the first
 */
export function rsiTrail(values: readonly number[], period: number): (number | null)[] {
  const moves = values.findIndex((value) => value !== values[0]);
  const found = trail(RSI.calculate({ period, values: [...values] }), values.length);
  return found.map((value, index) => (moves === -1 || index < moves ? null : value));
}

/** The last of `rsiTrail`. */
export function rsi(values: readonly number[], period: number): number | null {
  return rsiTrail(values, period).at(-1) ?? null;
}

export interface Macd {
  macd: number;
  signal: number;
  histogram: number;
}

/**
 * Moving average convergence/divergence 12/26/9 on exponential averages at each value, in the unit of the values.
 *
 * @returns null for the first 33 values (26 for the slow average, 8 more for its signal line)
 */
export function macdTrail(values: readonly number[]): (Macd | null)[] {
  const found = MACD.calculate({
    values: [...values],
    fastPeriod: 12,
    slowPeriod: 26,
    signalPeriod: 9,
    SimpleMAOscillator: false,
    SimpleMASignal: false,
  });
  return trail(found, values.length).map((at) =>
    at?.MACD === undefined || at.signal === undefined || at.histogram === undefined
      ? null
      : { macd: at.MACD, signal: at.signal, histogram: at.histogram },
  );
}

/** The last of `macdTrail`. */
export function macd(values: readonly number[]): Macd | null {
  return macdTrail(values).at(-1) ?? null;
}

/**
 * Average true range with Wilder's smoothing at each bar, in the unit of the prices.
 *
 * @returns null for the first `period` bars
 */
export function atrTrail({ high, low, close }: Bars, period: number): (number | null)[] {
  return trail(ATR.calculate({ period, high: [...high], low: [...low], close: [...close] }), close.length);
}

/** The last of `atrTrail`. */
export function atr(bars: Bars, period: number): number | null {
  return atrTrail(bars, period).at(-1) ?? null;
}

export interface Bollinger {
  upper: number;
  middle: number;
  lower: number;
  /** Where the last value stands: 0 on the lower band, 1 on the upper. Null when the bands coincide. */
  percentB: number | null;
}

/**
 * Bollinger bands at each value: simple average, plus and minus two population standard deviations.
 *
 * @returns null where fewer than `period` values went before
 */
export function bollingerTrail(values: readonly number[], period: number): (Bollinger | null)[] {
  const found = BollingerBands.calculate({ period, stdDev: 2, values: [...values] });
  return trail(found, values.length).map((at) =>
    at === null
      ? null
      : {
          upper: at.upper,
          middle: at.middle,
          lower: at.lower,
          percentB: at.upper === at.lower ? null : at.pb,
        },
  );
}

/** The last of `bollingerTrail`. */
export function bollinger(values: readonly number[], period: number): Bollinger | null {
  return bollingerTrail(values, period).at(-1) ?? null;
}

/** Simple moving average of the `period` values before `end`; null when there are fewer. */
export function simpleAverage(
  values: readonly number[],
  period: number,
  end: number = values.length,
): number | null {
  if (end < period) return null;
  return values.slice(end - period, end).reduce((sum, value) => sum + value, 0) / period;
}

/** Change over the last `period` values before `end` in percent; null when there are not more values than that. */
export function rateOfChange(
  values: readonly number[],
  period: number,
  end: number = values.length,
): number | null {
  const [last, before] = [values[end - 1], values[end - 1 - period]];
  return last === undefined || before === undefined ? null : (last / before - 1) * 100;
}

/**
 * Williams' %R: where the last close before `end` stands in the range of the last `period` bars, -100 (lowest) to 0
 * (highest).
 *
 * @returns null when there are fewer bars, or when the range is empty
 */
export function williamsR(bars: Bars, period: number, end: number = bars.close.length): number | null {
  return rangePosition(bars, period, end);
}

/**
 * Lane's slow stochastic: the mean over the last `smoothing` bars of %K, which is 0 when a close is the lowest of the
 * last `period` bars and 100 when it is the highest.
 *
 * @returns null when there are fewer bars, or when a range is empty
 */
export function stochastic(
  bars: Bars,
  period: number,
  smoothing: number,
  end: number = bars.close.length,
): number | null {
  let sum = 0;
  for (let back = 0; back < smoothing; back++) {
    const position = rangePosition(bars, period, end - back);
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

/** Values that begin late, with null for each that is missing before them. */
function trail<Value>(found: readonly Value[], length: number): (Value | null)[] {
  return [...new Array<null>(Math.max(0, length - found.length)).fill(null), ...found];
}
