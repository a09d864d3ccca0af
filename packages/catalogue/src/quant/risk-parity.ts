import { correlationsOf, type Matrix, varianceOf } from './covariance.ts';

/**
 * What the tree is built on. `columns`, after the paper: how differently two assets stand to all others. `direct`: their own
 * distance, as PyPortfolioOpt has it. The weights differ.
 */
export type TreeDistance = 'columns' | 'direct';

/**
 * Hierarchical risk parity (López de Prado, Building diversified portfolios that outperform out of sample, Journal of
 * Portfolio Management 42, 2016): single linkage, quasi-diagonal order, recursive bisection by inverse variance.
 *
 * @param correlations those of the covariance unless given, as for a history with ragged beginnings
 * @returns weights that sum to 1 and are above 0, and the order of the leaves
 */
export function hierarchicalRiskParity(
  covariance: Matrix,
  distance: TreeDistance,
  correlations: Matrix = correlationsOf(covariance),
): { weights: number[]; order: number[] } {
  const own = correlations.map((row, i) =>
    row.map((entry, j) => (i === j ? 0 : Math.sqrt(Math.max(0, (1 - entry) / 2)))),
  );
  const distances =
    distance === 'direct'
      ? own
      : own.map((a) =>
          own.map((b) => Math.sqrt(a.reduce((sum, value, index) => sum + (value - (b[index] ?? 0)) ** 2, 0))),
        );
  const order = leafOrder(distances);
  const weights = new Array<number>(covariance.length).fill(1);
  const halves = (cluster: readonly number[]) => {
    if (cluster.length < 2) return;
    const middle = Math.floor(cluster.length / 2);
    const [left, right] = [cluster.slice(0, middle), cluster.slice(middle)];
    const [a, b] = [clusterVariance(left, covariance), clusterVariance(right, covariance)];
    const share = a + b === 0 ? 0.5 : 1 - a / (a + b);
    for (const index of left) weights[index] = (weights[index] ?? 0) * share;
    for (const index of right) weights[index] = (weights[index] ?? 0) * (1 - share);
    halves(left);
    halves(right);
  };
  halves(order);
  return { weights, order };
}

/** Weights in proportion to one over the variance. What does not move gets nothing beside what does. */
export function inverseVariance(covariance: Matrix): number[] {
  const inverse = covariance.map((row, index) => {
    const variance = row[index] ?? 0;
    return variance > 0 ? 1 / variance : 0;
  });
  const sum = inverse.reduce((total, value) => total + value, 0);
  return sum === 0 ? inverse.map(() => 1 / inverse.length) : inverse.map((value) => value / sum);
}

function clusterVariance(cluster: readonly number[], covariance: Matrix): number {
  const part = cluster.map((i) => cluster.map((j) => covariance[i]?.[j] ?? 0));
  return varianceOf(inverseVariance(part), part);
}

/** The leaves of a single-linkage tree from left to right; of two branches the older one stands left. */
function leafOrder(distances: Matrix): number[] {
  const clusters = new Map(distances.map((_, index) => [index, [index]]));
  let next = distances.length;
  while (clusters.size > 1) {
    let nearest: { left: number; right: number; distance: number } | null = null;
    const ids = [...clusters.keys()];
    for (const [position, left] of ids.entries()) {
      for (const right of ids.slice(position + 1)) {
        const distance = linkage(clusters.get(left) ?? [], clusters.get(right) ?? [], distances);
        if (nearest === null || distance < nearest.distance) nearest = { left, right, distance };
      }
    }
    if (nearest === null) break;
    const joined = [...(clusters.get(nearest.left) ?? []), ...(clusters.get(nearest.right) ?? [])];
    clusters.delete(nearest.left);
    clusters.delete(nearest.right);
    clusters.set(next, joined);
    next += 1;
  }
  return [...clusters.values()].flat();
}

function linkage(a: readonly number[], b: readonly number[], distances: Matrix): number {
  let least = Number.POSITIVE_INFINITY;
  for (const i of a) for (const j of b) least = Math.min(least, distances[i]?.[j] ?? 0);
  return least;
}
