export type Matrix = readonly (readonly number[])[];

export interface Shrunk {
  covariance: number[][];
  /** How much of the target is in it, 0 to 1. */
  shrinkage: number;
}

/**
 * Covariance of returns, shrunk towards a multiple of the identity by the intensity of Ledoit and Wolf (A well-conditioned
 * estimator for large-dimensional covariance matrices, Journal of Multivariate Analysis 88, 2004), in the form that
 * scikit-learn computes. It is positive definite as soon as one series moves.
 *
 * @param columns one list of returns per series, all of the same length, at least 2
 * @returns per period of the data, divided by the number of observations
 */
export function ledoitWolf(columns: Matrix): Shrunk {
  const size = columns.length;
  const observations = columns[0]?.length ?? 0;
  const centred = columns.map((column) => {
    const mean = column.reduce((sum, value) => sum + value, 0) / observations;
    return column.map((value) => value - mean);
  });
  const sample = centred.map((a) =>
    centred.map((b) => a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0) / observations),
  );
  const trace = sample.reduce((sum, row, index) => sum + (row[index] ?? 0), 0);
  const target = trace / size;
  // Squared distances, all per entry of the matrix: of the sample from the target, and of the sample from the truth.
  const sumOfSquares = sample.flat().reduce((sum, entry) => sum + entry * entry, 0);
  const dispersion = (sumOfSquares - size * target ** 2) / size;
  let fourth = 0;
  for (let at = 0; at < observations; at++) {
    const square = centred.reduce((sum, column) => sum + (column[at] ?? 0) ** 2, 0);
    fourth += square * square;
  }
  const error = Math.min(dispersion, (fourth / observations - sumOfSquares) / (size * observations));
  const shrinkage = error <= 0 || dispersion <= 0 ? 0 : error / dispersion;
  return {
    covariance: sample.map((row, i) =>
      row.map((entry, j) => (1 - shrinkage) * entry + (i === j ? shrinkage * target : 0)),
    ),
    shrinkage,
  };
}

/** Correlations of a covariance matrix. A series that does not move has 0 with all others. */
export function correlationsOf(covariance: Matrix): number[][] {
  const deviation = covariance.map((row, index) => Math.sqrt(Math.max(0, row[index] ?? 0)));
  return covariance.map((row, i) =>
    row.map((entry, j) => {
      if (i === j) return 1;
      const scale = (deviation[i] ?? 0) * (deviation[j] ?? 0);
      return scale === 0 ? 0 : Math.max(-1, Math.min(1, entry / scale));
    }),
  );
}

/** `w' Σ w`. */
export function varianceOf(weights: readonly number[], covariance: Matrix): number {
  return weights.reduce(
    (sum, weight, i) =>
      sum + weight * weights.reduce((inner, other, j) => inner + other * (covariance[i]?.[j] ?? 0), 0),
    0,
  );
}

export function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
}
