import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type PortfolioTask, planPortfolio } from './optimize.ts';

const LADDER = ['least-variance', 'highest-sharpe', 'ambitious'] as const;

/** The deviations of low, medium and high risk; null where one of them has no answer. */
function risksOf(task: Omit<PortfolioTask, 'goal'>): number[] | null {
  const risks: number[] = [];
  for (const kind of LADDER) {
    const outcome = planPortfolio({ ...task, goal: { kind } });
    if ('infeasible' in outcome) return null;
    risks.push(outcome.plan.best.deviation);
  }
  return risks;
}

function rises([low = 0, medium = 0, high = 0]: readonly number[]): boolean {
  const slack = 1e-6 * Math.max(low, medium, high);
  return low <= medium + slack && medium <= high + slack;
}

describe('the ladder of risk', () => {
  it('rises from low to medium to high, whatever the returns, bounds and risk-free return are', () => {
    const tasks = fc.integer({ min: 2, max: 8 }).chain((assets) =>
      fc.record({
        columns: fc.array(
          fc.array(fc.double({ min: -0.2, max: 0.2, noNaN: true }), { minLength: 24, maxLength: 24 }),
          { minLength: assets, maxLength: assets },
        ),
        drifts: fc.array(fc.double({ min: -0.01, max: 0.01, noNaN: true }), {
          minLength: assets,
          maxLength: assets,
        }),
        scales: fc.array(fc.constantFrom(0.001, 0.05, 1), { minLength: assets, maxLength: assets }),
        riskFree: fc.double({ min: -0.05, max: 0.3, noNaN: true }),
        most: fc.double({ min: 1.01 / assets, max: 1, noNaN: true }),
      }),
    );
    let answered = 0;
    fc.assert(
      fc.property(tasks, ({ columns, drifts, scales, riskFree, most }) => {
        const risks = risksOf({
          columns: columns.map((column, at) =>
            column.map((value) => value * (scales[at] ?? 1) + (drifts[at] ?? 0)),
          ),
          current: columns.map(() => 1 / columns.length),
          periodsPerYear: 365,
          riskFree,
          maxWeight: most,
        });
        if (risks === null) return;
        answered += 1;
        assert(rises(risks), risks.join(' '));
      }),
      { numRuns: 400 },
    );
    assert(answered > 300, `${answered} of 400 had an answer`);
  });

  it('rises where a stable asset puts the highest Sharpe ratio near the highest mean', () => {
    const wave = (at: number, size: number) => (at % 2 === 0 ? size : -size);
    const columns = [
      Array.from({ length: 40 }, (_, at) => 0.001 + wave(at, 0.02)),
      Array.from({ length: 40 }, (_, at) => -0.0001 + wave(at >> 1, 0.003)),
    ];
    const risks = risksOf({
      columns,
      current: [0.5, 0.5],
      periodsPerYear: 365,
      riskFree: 0,
      maxWeight: 1,
    });
    assert(risks !== null && rises(risks), `${risks}`);
  });
});
