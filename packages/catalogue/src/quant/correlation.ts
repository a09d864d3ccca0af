import { sampleCorrelation } from 'simple-statistics';

/** Below this spread a series of returns counts as constant: what is left is rounding, not movement. */
const FLAT = 1e-12;

/**
 * Pearson's correlation of two series of the same length, -1 to 1.
 *
 * @returns null when a series does not move (its correlation is undefined) or has fewer than two values
 */
export function correlation(a: readonly number[], b: readonly number[]): number | null {
  if (a.length !== b.length) throw new Error('series of different lengths have no correlation');
  if (a.length < 2 || isFlat(a) || isFlat(b)) return null;
  return Math.max(-1, Math.min(1, sampleCorrelation([...a], [...b])));
}

/** All pairs: symmetric, with 1 on the diagonal of a series that moves and of one that does not. */
export function correlationMatrix(columns: readonly (readonly number[])[]): (number | null)[][] {
  const matrix: (number | null)[][] = columns.map(() => []);
  for (const [row, a] of columns.entries()) {
    for (const [column, b] of columns.entries()) {
      const known = matrix[column]?.[row];
      const value = row === column ? 1 : known === undefined ? correlation(a, b) : known;
      matrix[row]?.push(value);
    }
  }
  return matrix;
}

/**
 * The usual words for the size of a correlation (Evans, Straightforward Statistics for the Behavioral Sciences,
 * 1996): steps of 0.2 of its absolute value.
 */
export function strengthOf(value: number): 'very strong' | 'strong' | 'moderate' | 'weak' | 'very weak' {
  const size = Math.abs(value);
  if (size >= 0.8) return 'very strong';
  if (size >= 0.6) return 'strong';
  if (size >= 0.4) return 'moderate';
  return size >= 0.2 ? 'weak' : 'very weak';
}

/** Whether returns stay the same throughout, as those of a perfectly pegged coin do. */
export function isFlat(values: readonly number[]): boolean {
  let lowest = Number.POSITIVE_INFINITY;
  let highest = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    lowest = Math.min(lowest, value);
    highest = Math.max(highest, value);
  }
  return highest - lowest <= FLAT;
}
