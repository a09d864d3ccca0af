import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { correlation, correlationMatrix, strengthOf } from './correlation.ts';

// Anscombe, Graphs in Statistical Analysis (The American Statistician, 1973).
const X = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5];
const SETS: [readonly number[], readonly number[]][] = [
  [X, [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]],
  [X, [9.14, 8.14, 8.74, 8.77, 9.26, 8.1, 6.13, 3.1, 9.13, 7.26, 4.74]],
  [X, [7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73]],
  [
    [8, 8, 8, 8, 8, 8, 8, 19, 8, 8, 8],
    [6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.5, 5.56, 7.91, 6.89],
  ],
];

describe('correlation', () => {
  it("gives the published coefficients of Anscombe's quartet", () => {
    assert.deepEqual(
      SETS.map(([x, y]) => Number(correlation(x, y)?.toFixed(5))),
      [0.81642, 0.81624, 0.81629, 0.81652],
    );
  });

  it('is undefined for a series that does not move, though the diagonal stays 1', () => {
    const flat = new Array(11).fill(0);
    assert.deepEqual(correlationMatrix([X, flat]), [
      [1, null],
      [null, 1],
    ]);
  });

  it('makes a matrix that is symmetric, has 1 on its diagonal and is positive semidefinite', () => {
    const value = fc.double({ min: -1, max: 1, noNaN: true });
    const columns = fc
      .tuple(fc.integer({ min: 2, max: 5 }), fc.integer({ min: 20, max: 30 }))
      .chain(([count, length]) =>
        fc.tuple(
          fc.array(fc.array(value, { minLength: length, maxLength: length }), {
            minLength: count,
            maxLength: count,
          }),
          fc.array(value, { minLength: count, maxLength: count }),
        ),
      );
    fc.assert(
      fc.property(columns, ([series, weights]) => {
        const matrix = correlationMatrix(series);
        let form = 0;
        for (const [i, row] of matrix.entries()) {
          assert.equal(row[i], 1);
          for (const [j, entry] of row.entries()) {
            assert.equal(entry, matrix[j]?.[i]);
            fc.pre(entry !== null);
            form += (weights[i] ?? 0) * (weights[j] ?? 0) * entry;
          }
        }
        assert.ok(form >= -1e-6, `w'Rw = ${form}`);
      }),
      { numRuns: 60 },
    );
  });

  it('names strength by absolute size', () => {
    assert.equal(strengthOf(-0.8164), 'very strong');
    assert.equal(strengthOf(0.19), 'very weak');
  });
});
