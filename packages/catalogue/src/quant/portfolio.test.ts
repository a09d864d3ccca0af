import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { correlationsOf, dot, ledoitWolf, varianceOf } from './covariance.ts';
import { highestMean, Infeasible, maximumSharpe, minimumVariance } from './mean-variance.ts';
import {
  BLOCK_COVARIANCES,
  PAIR_OBSERVATIONS,
  STOCK_CORRELATIONS,
  STOCK_COVARIANCES,
  STOCK_DAILY_MEANS,
  STOCK_MEANS,
  STOCK_NAMES,
} from './published.fixture.ts';
import { hierarchicalRiskParity, inverseVariance } from './risk-parity.ts';

const near = (actual: number | undefined, expected: number, within: number) =>
  assert.ok(
    actual !== undefined && Math.abs(actual - expected) <= within,
    `${actual} is not ${expected} within ${within}`,
  );
const allNear = (actual: readonly number[], expected: readonly number[], within: number) => {
  assert.equal(actual.length, expected.length);
  for (const [index, value] of expected.entries()) near(actual[index], value, within);
};
const SHORT = { least: null, most: null };
const LONG = { least: 0, most: null };
const deviation = (weights: readonly number[], covariance: readonly (readonly number[])[]) =>
  Math.sqrt(varianceOf(weights, covariance));

describe('mean and variance', () => {
  // Zivot, Introduction to Computational Finance and Financial Econometrics: Microsoft, Nordstrom, Starbucks by the month.
  const means = [0.0427, 0.0015, 0.0285];
  const covariance = [
    [0.01, 0.0018, 0.0011],
    [0.0018, 0.0109, 0.0026],
    [0.0011, 0.0026, 0.0199],
  ];

  it("gives the portfolios of Zivot's book, with short sales", () => {
    const least = minimumVariance(means, covariance, SHORT, null);
    allNear(least, [0.4411, 0.3656, 0.1933], 5e-5);
    near(deviation(least, covariance), 0.07268, 5e-6);
    near(dot(means, least), 0.02489, 5e-6);
    const asMicrosoft = minimumVariance(means, covariance, SHORT, 0.0427);
    allNear(asMicrosoft, [0.8275, -0.0907, 0.2633], 5e-5);
    near(deviation(asMicrosoft, covariance), 0.09166, 5e-6);
    const tangency = maximumSharpe(means, covariance, SHORT, 0.005);
    allNear(tangency, [1.0268, -0.3263, 0.2994], 6e-5);
    near(dot(means, tangency), 0.05189, 6e-6);
  });

  it('gives the ones without short sales, and says when there is none', () => {
    const weights = minimumVariance(means, covariance, LONG, 0.035);
    allNear(weights, [0.6604, 0.1066, 0.233], 5e-5);
    near(deviation(weights, covariance), 0.07929, 5e-6);
    assert.throws(() => minimumVariance(means, covariance, LONG, 0.09), Infeasible);
    assert.throws(() => minimumVariance(means, covariance, { least: 0, most: 0.3 }, null), Infeasible);
    assert.throws(() => maximumSharpe(means, covariance, LONG, 0.05), Infeasible);
  });

  it('gives the highest Sharpe ratio and the least variance of 20 stocks as published', () => {
    const sharpest = maximumSharpe(STOCK_MEANS, STOCK_COVARIANCES, LONG, 0.02);
    const [mean, risk] = [dot(STOCK_MEANS, sharpest), deviation(sharpest, STOCK_COVARIANCES)];
    near(mean, 0.3047768672819914, 1e-9);
    near(risk, 0.22165566922402932, 1e-9);
    near((mean - 0.02) / risk, 1.2847714127003216, 1e-9);
    const published = {
      GOOG: 0.0384,
      AAPL: 0.0689,
      FB: 0.206,
      BABA: 0.0731,
      AMZN: 0.0403,
      BBY: 0.0132,
      MA: 0.3535,
      PFE: 0.1957,
      SBUX: 0.0108,
    };
    for (const [index, name] of STOCK_NAMES.entries()) {
      near(sharpest[index], Object.entries(published).find(([key]) => key === name)?.[1] ?? 0, 6e-5);
    }
    const calmest = minimumVariance(STOCK_MEANS, STOCK_COVARIANCES, LONG, null);
    near(dot(STOCK_MEANS, calmest), 0.15056821399482578, 1e-7);
    near(deviation(calmest, STOCK_COVARIANCES), 0.15915084514118694, 1e-9);
  });

  it('keeps its bounds, sums to 1, and is no worse than equal weights or any single asset', () => {
    const instance = fc.integer({ min: 2, max: 6 }).chain((size) =>
      fc.tuple(
        fc.array(fc.double({ min: -0.5, max: 1, noNaN: true }), { minLength: size, maxLength: size }),
        fc.array(fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 30, maxLength: 30 }), {
          minLength: size,
          maxLength: size,
        }),
      ),
    );
    fc.assert(
      fc.property(instance, ([means, columns]) => {
        fc.pre(columns.every((column) => new Set(column).size > 5));
        const { covariance } = ledoitWolf(columns);
        const most = Math.max(0.6, 1 / means.length);
        const weights = minimumVariance(means, covariance, { least: 0, most }, null);
        near(
          weights.reduce((sum, weight) => sum + weight, 0),
          1,
          1e-9,
        );
        assert(weights.every((weight) => weight >= 0 && weight <= most + 1e-9));
        const equal = means.map(() => 1 / means.length);
        assert(varianceOf(weights, covariance) <= varianceOf(equal, covariance) + 1e-9);
      }),
      { numRuns: 100 },
    );
  });

  it('knows the highest mean that a bound allows', () => {
    near(highestMean([0.1, 0.3, 0.2], 1), 0.3, 1e-12);
    near(highestMean([0.1, 0.3, 0.2], 0.5), 0.25, 1e-12);
  });
});

describe('Ledoit and Wolf', () => {
  it("gives the example of scikit-learn's documentation", () => {
    const columns = [0, 1].map((series) => PAIR_OBSERVATIONS.map((row) => row[series] ?? 0));
    const { covariance, shrinkage } = ledoitWolf(columns);
    assert.deepEqual(
      covariance.map((row) => row.map((entry) => Math.floor(entry * 1e4) / 1e4)),
      [
        [0.4406, 0.1616],
        [0.1616, 0.8022],
      ],
    );
    near(shrinkage, 0.230254, 1e-6);
  });

  it('makes a matrix that can be inverted from fewer observations than series, and from a copy', () => {
    const column = [0.01, -0.02, 0.03];
    const { covariance, shrinkage } = ledoitWolf([column, column, [0.02, 0.01, -0.03], [0, 0.01, 0.02]]);
    assert(shrinkage > 0 && shrinkage <= 1);
    const weights = minimumVariance([0, 0, 0, 0], covariance, LONG, null);
    near(weights[0], weights[1] ?? 0, 1e-9);
  });
});

describe('hierarchical risk parity', () => {
  it("gives the weights of López de Prado's example, on the distance between columns", () => {
    const { weights, order } = hierarchicalRiskParity(BLOCK_COVARIANCES, 'columns');
    assert.deepEqual(
      order.map((index) => index + 1),
      [9, 2, 10, 1, 7, 3, 6, 4, 5, 8],
    );
    const percent = (values: readonly number[]) => values.map((weight) => Math.round(weight * 1e4) / 100);
    assert.deepEqual(percent(weights), [7.0, 7.59, 10.84, 19.03, 9.72, 10.19, 6.62, 9.1, 7.12, 12.79]);
    assert.deepEqual(
      percent(inverseVariance(BLOCK_COVARIANCES)),
      [10.36, 10.28, 10.36, 10.25, 10.31, 9.74, 9.8, 9.65, 9.64, 9.61],
    );
    const least = minimumVariance(new Array(10).fill(0), BLOCK_COVARIANCES, LONG, null);
    assert.deepEqual(percent(least), [14.44, 19.93, 19.73, 19.87, 18.68, 0, 5.86, 1.49, 0, 0]);
    assert.equal(percent(hierarchicalRiskParity(BLOCK_COVARIANCES, 'direct').weights)[0], 13.09);
  });

  it("gives PyPortfolioOpt's weights on the distance itself, with the correlations of each pair's own days", () => {
    const { weights } = hierarchicalRiskParity(STOCK_COVARIANCES, 'direct', STOCK_CORRELATIONS);
    const of = (name: string) => weights[STOCK_NAMES.indexOf(name)];
    near(of('AAPL'), 0.022258941278778387, 1e-9);
    near(of('BABA'), 0.07963382071794088, 1e-9);
    near(of('XOM'), 0.11175337115721229, 1e-9);
    near(of('SHLD'), 0.027113184241298872, 1e-9);
    near(252 * dot(STOCK_DAILY_MEANS, weights), 0.21353402380950973, 1e-9);
    near(deviation(weights, STOCK_COVARIANCES), 0.17844159743748936, 1e-9);
  });

  it('gives all of what does not move to that, half each to twins, and everything to a single one', () => {
    assert.deepEqual(hierarchicalRiskParity([[1]], 'columns').weights, [1]);
    assert.deepEqual(
      hierarchicalRiskParity(
        [
          [0, 0],
          [0, 4],
        ],
        'columns',
      ).weights,
      [1, 0],
    );
    assert.deepEqual(
      hierarchicalRiskParity(
        [
          [4, 4],
          [4, 4],
        ],
        'columns',
      ).weights,
      [0.5, 0.5],
    );
    assert.deepEqual(
      correlationsOf([
        [0, 0],
        [0, 4],
      ]),
      [
        [1, 0],
        [0, 1],
      ],
    );
  });
});
