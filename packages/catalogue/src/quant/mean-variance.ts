import quadprog from 'quadprog';
import { dot, type Matrix } from './covariance.ts';

export interface Bounds {
  /** The least that each weight may be: 0 allows no short sales. Null: no bound. */
  least: number | null;
  /** The most that each may be; 1 is no bound beside a `least` of 0. */
  most: number | null;
}

/** No weights fit all of what was asked. */
export class Infeasible extends Error {}

/**
 * The weights of least variance (Markowitz, Portfolio Selection, 1952), by the dual method of Goldfarb and Idnani.
 *
 * @param target the mean that they must have, exactly for short sales, at least otherwise; null: none
 * @returns weights that sum to 1
 * @throws Infeasible when no weights fit
 */
export function minimumVariance(
  means: readonly number[],
  covariance: Matrix,
  bounds: Bounds,
  target: number | null,
): number[] {
  const size = means.length;
  const ones = means.map(() => 1);
  const conditions: Condition[] = [{ of: ones, atLeast: 1, equal: true }];
  if (target !== null) conditions.push({ of: means, atLeast: target, equal: bounds.least === null });
  for (let at = 0; at < size; at++) {
    const unit = means.map((_, index) => (index === at ? 1 : 0));
    if (bounds.least !== null) conditions.push({ of: unit, atLeast: bounds.least, equal: false });
    if (bounds.most !== null) {
      conditions.push({ of: unit.map((value) => -value), atLeast: -bounds.most, equal: false });
    }
  }
  return cleaned(solve(covariance, conditions), bounds);
}

/**
 * The weights of the highest Sharpe ratio: the least variance of a stake whose excess return is 1, brought to sum 1 (the
 * homogenisation of Cornuejols and Tütüncü, Optimization Methods in Finance, 2007).
 *
 * @throws Infeasible when no asset has a mean above the risk-free return
 */
export function maximumSharpe(
  means: readonly number[],
  covariance: Matrix,
  bounds: Bounds,
  riskFree: number,
): number[] {
  const excess = means.map((mean) => mean - riskFree);
  if (excess.every((value) => value <= 0)) throw new Infeasible('no mean is above the risk-free return');
  // Scaled so that the solver's numbers are near 1.
  const scale = Math.max(...excess);
  const conditions: Condition[] = [{ of: excess.map((value) => value / scale), atLeast: 1, equal: true }];
  for (let at = 0; at < means.length; at++) {
    const share = (bound: number, sign: 1 | -1) =>
      means.map((_, index) => sign * ((index === at ? 1 : 0) - bound));
    if (bounds.least !== null) {
      conditions.push({ of: share(bounds.least, 1), atLeast: 0, equal: false });
    }
    if (bounds.most !== null) conditions.push({ of: share(bounds.most, -1), atLeast: 0, equal: false });
  }
  const stake = solve(covariance, conditions);
  const sum = stake.reduce((total, value) => total + value, 0);
  if (!(sum > 0)) throw new Infeasible('no mix within the bounds has a mean above the risk-free return');
  return cleaned(
    stake.map((value) => value / sum),
    bounds,
  );
}

/** The highest mean that weights within the bounds can have. `most` times their number must reach 1. */
export function highestMean(means: readonly number[], most: number): number {
  let left = 1;
  let mean = 0;
  for (const value of [...means].sort((a, b) => b - a)) {
    const share = Math.min(left, most);
    mean += share * value;
    left -= share;
  }
  return mean;
}

interface Condition {
  of: readonly number[];
  atLeast: number;
  equal: boolean;
}

function solve(covariance: Matrix, conditions: readonly Condition[]): number[] {
  const size = covariance.length;
  const ordered = [...conditions.filter(({ equal }) => equal), ...conditions.filter(({ equal }) => !equal)];
  // Daily variances are small; the solver compares with fixed tolerances.
  const largest = Math.max(...covariance.map((row, index) => row[index] ?? 0));
  if (!(largest > 0)) throw new Infeasible('nothing moves');
  const D = fromOne(covariance.map((row) => fromOne(row.map((entry) => entry / largest))));
  const A = fromOne(
    Array.from({ length: size }, (_, index) => fromOne(ordered.map(({ of }) => of[index] ?? 0))),
  );
  const { solution, message } = quadprog.solveQP(
    D as number[][],
    fromOne(new Array<number>(size).fill(0)) as number[],
    A as number[][],
    fromOne(ordered.map(({ atLeast }) => atLeast)) as number[],
    ordered.filter(({ equal }) => equal).length,
  );
  if (message !== '') throw new Infeasible(message);
  const found = solution.slice(1, size + 1);
  const broken = ordered.some(({ of, atLeast, equal }) => {
    const slack = dot(of, found) - atLeast;
    return !Number.isFinite(slack) || slack < -1e-7 || (equal && slack > 1e-7);
  });
  if (broken) throw new Infeasible('the solver found nothing that fits');
  return found;
}

function fromOne<Item>(items: readonly Item[]): (Item | undefined)[] {
  return [undefined, ...items];
}

/** The solver misses bounds by a rounding; what is that small is none. */
function cleaned(weights: readonly number[], { least, most }: Bounds): number[] {
  const kept = weights.map((weight) => {
    if (least !== null && weight < least + 1e-10) return least;
    return most !== null && weight > most - 1e-10 ? most : weight;
  });
  const sum = kept.reduce((total, weight) => total + weight, 0);
  return kept.map((weight) => weight / sum);
}
