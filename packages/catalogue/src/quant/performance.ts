import { mean, sampleCovariance, sampleStandardDeviation, sampleVariance } from 'simple-statistics';

/** Below this deviation per period a series counts as one that does not move. */
const FLAT = 1e-12;

/** Standard deviation (n - 1) of the log returns of one period, from simple returns. Needs two of them. */
export function volatility(returns: readonly number[]): number {
  return sampleStandardDeviation(returns.map((value) => Math.log1p(value)));
}

/**
 * Sharpe ratio over a risk-free return of zero: mean over deviation (n - 1), times the root of the periods a year.
 *
 * @returns null for returns that do not vary
 */
export function sharpeRatio(returns: readonly number[], periodsPerYear: number): number | null {
  const deviation = sampleStandardDeviation([...returns]);
  return deviation <= FLAT ? null : (mean([...returns]) / deviation) * Math.sqrt(periodsPerYear);
}

/**
 * Sortino ratio over a target of zero: mean over downside deviation (root of the mean square of the losses, taken
 * over all periods), times the root of the periods a year.
 *
 * @returns null when there was no loss
 */
export function sortinoRatio(returns: readonly number[], periodsPerYear: number): number | null {
  const downside = Math.sqrt(mean(returns.map((value) => Math.min(0, value) ** 2)));
  return downside <= FLAT ? null : (mean([...returns]) / downside) * Math.sqrt(periodsPerYear);
}

/** The deepest fall from a peak, as a fraction at or below 0; the starting value counts as a peak. */
export function maxDrawdown(returns: readonly number[]): number {
  let value = 1;
  let peak = 1;
  let deepest = 0;
  for (const change of returns) {
    value *= 1 + change;
    peak = Math.max(peak, value);
    deepest = Math.min(deepest, value / peak - 1);
  }
  return deepest;
}

/**
 * Slope of the returns on the market's returns of the same periods: sample covariance over sample variance.
 *
 * @returns null for a market that does not move
 */
export function beta(returns: readonly number[], market: readonly number[]): number | null {
  const variance = sampleVariance([...market]);
  return variance <= FLAT ** 2 ? null : sampleCovariance([...returns], [...market]) / variance;
}
