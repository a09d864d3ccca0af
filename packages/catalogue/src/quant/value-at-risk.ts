import jstat from 'jstat';
import { mean, quantileSorted, sampleStandardDeviation } from 'simple-statistics';

/** A loss as a positive fraction of the value held: 0.03 is a loss of 3 %. Negative when even the tail gained. */
export interface TailLoss {
  valueAtRisk: number;
  /** Mean loss in the cases that are at least as bad as the value at risk. */
  expectedShortfall: number;
}

/**
 * Historical simulation: the value at risk is the empirical quantile of the returns (Hyndman and Fan's type 7, as R
 * and NumPy default to); the expected shortfall is the mean of the returns at or below it.
 *
 * @param returns simple returns, at least one
 * @param confidence 0.5 to below 1, such as 0.95
 */
export function historicalTailLoss(returns: readonly number[], confidence: number): TailLoss {
  const sorted = [...returns].sort((a, b) => a - b);
  const threshold = quantileSorted(sorted, 1 - confidence);
  // Rounding in the interpolation must not exclude the very return that the quantile equals.
  const tail = sorted.filter(
    (value, index) => index === 0 || value <= threshold + Math.abs(threshold) * 1e-12,
  );
  return { valueAtRisk: -threshold, expectedShortfall: -mean(tail) };
}

/** The same under a normal distribution with the sample's mean and deviation (n - 1). Needs two returns. */
export function normalTailLoss(returns: readonly number[], confidence: number): TailLoss {
  const average = mean([...returns]);
  const deviation = sampleStandardDeviation([...returns]);
  const z = standardNormalQuantile(confidence);
  return {
    valueAtRisk: z * deviation - average,
    expectedShortfall: (deviation * jstat.jStat.normal.pdf(z, 0, 1)) / (1 - confidence) - average,
  };
}

/**
 * The point below which a standard normal variable stays with the given probability.
 * From jstat: simple-statistics' `probit` is off in the third decimal.
 */
export function standardNormalQuantile(probability: number): number {
  return jstat.jStat.normal.inv(probability, 0, 1);
}
