import { dot, ledoitWolf, varianceOf } from './covariance.ts';
import { highestMean, Infeasible, maximumSharpe, minimumVariance } from './mean-variance.ts';
import { hierarchicalRiskParity } from './risk-parity.ts';

export interface PortfolioTask {
  /** Simple returns, one list per asset, over the same periods. */
  columns: readonly (readonly number[])[];
  /** Summing to 1. */
  current: readonly number[];
  periodsPerYear: number;
  /** A year, as a fraction. */
  riskFree: number;
  maxWeight: number;
  /**
   * `target`: the least variance with that mean a year; `ambitious`: with a mean four fifths of the way from that of
   * `highest-sharpe` to the highest, so that it is never less risky than that.
   */
  goal: { kind: 'least-variance' | 'highest-sharpe' | 'ambitious' } | { kind: 'target'; mean: number };
}

/** A year, as fractions. */
export interface Mix {
  weights: number[];
  mean: number;
  deviation: number;
  /** Null where the deviation is 0. */
  sharpe: number | null;
  /** Each asset's part of the variance; they sum to 1. */
  riskShares: number[];
}

export interface PortfolioPlan {
  best: Mix;
  current: Mix;
  riskParity: Mix;
  /** What the best one is, which for `highest-sharpe` may be the least variance. */
  kind: PortfolioTask['goal']['kind'];
  means: number[];
  /** Standard error of each mean, a year, from the returns as independent draws. */
  meanErrors: number[];
  /** Standard error of the best mix's mean, from the returns as independent draws. */
  meanError: number;
  shrinkage: number;
  /** Means that weights within the bound can have, from that of the least variance to the highest. */
  attainable: { low: number; high: number };
}

/** Why there is no plan, in words for the caller. */
export type PortfolioOutcome = { plan: PortfolioPlan } | { infeasible: string };

/** How far `ambitious` goes from the mean of the highest Sharpe ratio to the highest. */
const AMBITION = 0.8;
/** Means that are this close are one: the solver is no more exact. */
const SAME_MEAN = 1e-9;

/** Weights by mean and variance under a shrunk covariance, and hierarchical risk parity beside them. No short sales. */
export function planPortfolio(task: PortfolioTask): PortfolioOutcome {
  const { columns, periodsPerYear, riskFree } = task;
  const observations = columns[0]?.length ?? 0;
  const means = columns.map(
    (column) => (column.reduce((sum, value) => sum + value, 0) / observations) * periodsPerYear,
  );
  const { covariance: perPeriod, shrinkage } = ledoitWolf(columns);
  const covariance = perPeriod.map((row) => row.map((entry) => entry * periodsPerYear));
  const bounds = { least: 0, most: task.maxWeight };
  const mixOf = (weights: readonly number[]): Mix => {
    const mean = dot(means, weights);
    const variance = varianceOf(weights, covariance);
    const deviation = Math.sqrt(variance);
    return {
      weights: [...weights],
      mean,
      deviation,
      sharpe: deviation > 0 ? (mean - riskFree) / deviation : null,
      riskShares: weights.map((weight, index) =>
        variance > 0 ? (weight * dot(covariance[index] ?? [], weights)) / variance : weight,
      ),
    };
  };
  try {
    const calmest = minimumVariance(means, covariance, bounds, null);
    const low = dot(means, calmest);
    const high = highestMean(means, task.maxWeight);
    const { goal } = task;
    const rises = means.some((mean) => mean > riskFree) && high > riskFree;
    const sharpest = () => (rises ? maximumSharpe(means, covariance, bounds, riskFree) : calmest);
    let kind = goal.kind;
    let weights = calmest;
    if (goal.kind === 'target') {
      if (goal.mean > high) {
        const percent = (value: number) => `${(value * 100).toFixed(2)} %`;
        return {
          infeasible: `no weights up to ${task.maxWeight} have a mean of ${percent(goal.mean)} a year; the highest is ${percent(high)}`,
        };
      }
      weights = minimumVariance(means, covariance, bounds, goal.mean);
    } else if (goal.kind === 'ambitious') {
      weights = sharpest();
      const from = dot(means, weights);
      if (high - from > SAME_MEAN) {
        weights = minimumVariance(means, covariance, bounds, from + AMBITION * (high - from));
      }
    } else if (goal.kind === 'highest-sharpe') {
      weights = sharpest();
      if (!rises) kind = 'least-variance';
    }
    const best = mixOf(weights);
    return {
      plan: {
        best,
        current: mixOf(task.current),
        riskParity: mixOf(hierarchicalRiskParity(covariance, 'columns').weights),
        kind,
        means,
        meanErrors: columns.map((column) => errorOfMean(column) * periodsPerYear),
        meanError: best.deviation * Math.sqrt(periodsPerYear / observations),
        shrinkage,
        attainable: { low, high },
      },
    };
  } catch (error) {
    if (error instanceof Infeasible) return { infeasible: error.message };
    throw error;
  }
}

function errorOfMean(column: readonly number[]): number {
  const count = column.length;
  if (count < 2) return Number.POSITIVE_INFINITY;
  const mean = column.reduce((sum, value) => sum + value, 0) / count;
  const squares = column.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return Math.sqrt(squares / (count - 1) / count);
}
