import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import { leaseSchedule } from '../../quant/lease-schedule.ts';
import { runContext } from '../run-context.fixture.ts';
import lease from './lease-analysis.ts';

async function run(body: Record<string, unknown>) {
  const made = await lease.run(lease.input.parse(lease.adapt?.(body) ?? body), runContext({}));
  // biome-ignore lint/suspicious/noExplicitAny: tests look into the whole answer
  return (lease.output.parse(made.fields) as { data: any }).data;
}

const TERMS = {
  monthlyRent: 1_000,
  termMonths: 24,
  escalationPct: 10,
  freeRentMonths: 2,
  cam: 50,
  tenantImprovement: 600,
  breakMonth: 12,
  breakFeeMonths: 2,
  squareFeet: 1_000,
};

describe('lease-analysis', () => {
  it('calculates as by hand', async () => {
    const data = await run({ leaseTerms: TERMS, marketData: { discountRate: 0, rentPerSqft: 10 } });
    // Ten months at 1,000 and twelve at 1,100 are 23,200; 24 times 50 on top, 600 less.
    const { financialAnalysis: figures } = data;
    assert.deepEqual(
      [figures.totalValue, figures.annualCost, figures.effectiveMonthlyRent, figures.presentValue],
      [23_800, 11_900, 941.67, 23_800],
    );
    assert.deepEqual(figures.breakCost, { month: 12, fee: 2_200, paidUntilThen: 10_600, savedAfter: 13_800 });
    assert.deepEqual(
      [figures.costPerSqFt, figures.effectiveRentPerSqFt, figures.marketDifferencePct],
      [11.9, 11.3, 13],
    );
    assert.deepEqual(
      data.schedule.map(({ baseRent, total }: { baseRent: number; total: number }) => [baseRent, total]),
      [
        [10_000, 10_600],
        [13_200, 13_800],
      ],
    );
    const step = data.steps.find(({ result }: { result: string }) => result === 'total value');
    assert.deepEqual([step.figures, step.value], ['23200 + 50 × 24 − 600', 23_800]);
  });

  it('discounts a payment of the thirteenth month by a whole year', () => {
    const { presentValue } = leaseSchedule({
      monthlyRent: 121,
      termMonths: 13,
      escalationPct: 0,
      freeRentMonths: 12,
      operatingCosts: 0,
      contribution: 0,
      discountRatePct: 21,
      breakMonth: null,
      breakFeeMonths: null,
    });
    assert.ok(Math.abs(presentValue - 100) < 1e-9);
  });

  it('takes the terms as the whole body, by the names that clients have for them', async () => {
    const data = await run({ rent: '2000', term: '18', annual_escalation: 0, leaseType: 'Triple Net' });
    assert.deepEqual(
      [data.leaseSummary.monthlyRent, data.leaseSummary.termLength, data.financialAnalysis.totalValue],
      [2_000, 18, 36_000],
    );
    assert.equal(data.schedule[1].months, 6);
    assert.deepEqual(
      [
        data.financialAnalysis.breakCost,
        data.financialAnalysis.costPerSqFt,
        data.financialAnalysis.marketDifferencePct,
      ],
      [null, null, null],
    );
    assert.ok(data.missingTerms.includes('breakMonth'));
    // A net lease without costs, and no option to renew: 20 and 10 points.
    assert.equal(data.riskScore, 30);
  });

  it('has nothing to calculate without rent or length, and refuses what is no number', async () => {
    for (const [terms, code] of [
      [{ termMonths: 12 }, 'NO_RENT'],
      [{ monthlyRent: 1 }, 'NO_TERM'],
      [{ monthlyRent: 1, termMonths: 0 }, 'NO_TERM'],
    ] as const) {
      await assert.rejects(
        run({ leaseTerms: terms }),
        (error) => error instanceof ServiceFailure && error.status === 422 && error.code === code,
      );
    }
    for (const terms of [
      { monthlyRent: -1 },
      { termMonths: 601 },
      { termMonths: 1.5 },
      { monthlyRent: 'much' },
      [],
      'lease',
      null,
    ]) {
      assert.equal(
        lease.input.safeParse(lease.adapt?.({ leaseTerms: terms })).success,
        false,
        JSON.stringify(terms),
      );
    }
  });
});
