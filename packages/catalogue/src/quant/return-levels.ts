/** How high a river rises once in so many years, by the greatest value of each year. */

const EULER = 0.5772156649015329;

export interface ReturnLevels {
  /** The level that is reached or passed once in `years` years on average; more than 1. */
  level(years: number): number;
}

/**
 * A Gumbel distribution through the yearly maxima, fitted by L-moments (Hosking, 1990), as the Global Flood Awareness System
 * does for its own thresholds. In the unit of the maxima.
 *
 * @throws RangeError for fewer than 10 years
 */
export function returnLevels(yearlyMaxima: readonly number[]): ReturnLevels {
  const count = yearlyMaxima.length;
  if (count < 10) throw new RangeError('return levels want ten years at least');
  const ordered = yearlyMaxima.toSorted((a, b) => a - b);
  const mean = ordered.reduce((sum, value) => sum + value, 0) / count;
  const weighted = ordered.reduce((sum, value, at) => sum + (at / (count - 1)) * value, 0) / count;
  const scale = (2 * weighted - mean) / Math.LN2;
  const location = mean - EULER * scale;
  return { level: (years) => location - scale * Math.log(-Math.log(1 - 1 / years)) };
}
