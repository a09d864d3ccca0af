import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { alignByPeriod, logReturns, portfolioReturns, simpleReturns } from './returns.ts';

const close = (actual: readonly number[], expected: readonly number[]) => {
  assert.equal(actual.length, expected.length);
  for (const [index, value] of expected.entries())
    assert.ok(Math.abs((actual[index] ?? NaN) - value) < 1e-12);
};

describe('returns', () => {
  it('takes simple and log returns', () => {
    close(simpleReturns([100, 110, 99]), [0.1, -0.1]);
    close(logReturns([1, Math.E, 1]), [1, -1]);
    assert.deepEqual(simpleReturns([1]), []);
  });

  it('weighs the parts of a portfolio each period', () => {
    close(
      portfolioReturns(
        [
          [0.1, -0.2],
          [0, 0.1],
        ],
        [0.25, 0.75],
      ),
      [0.025, 0.025],
    );
  });

  it('keeps only the periods that all series have, in order', () => {
    const joined = alignByPeriod([
      new Map([
        [3, 30],
        [1, 10],
        [2, 20],
      ]),
      new Map([
        [2, 200],
        [3, 300],
        [4, 400],
      ]),
    ]);
    assert.deepEqual(joined, {
      periods: [2, 3],
      columns: [
        [20, 30],
        [200, 300],
      ],
    });
    assert.deepEqual(alignByPeriod([new Map([[1, 1]]), new Map()]), { periods: [], columns: [[], []] });
  });
});
