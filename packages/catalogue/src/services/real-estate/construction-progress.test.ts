import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import { down, type FakeUpstreams, reply, runContext } from '../run-context.fixture.ts';
import construction from './construction-progress.ts';

async function run(body: Record<string, unknown>, fakes: FakeUpstreams = {}) {
  const made = await construction.run(construction.input.parse(body), runContext(fakes));
  // biome-ignore lint/suspicious/noExplicitAny: tests look into the whole answer
  return { ...made, data: (construction.output.parse(made.fields) as { data: any }).data };
}
const failsWith = (status: number, code: string, field: string) => (error: unknown) => {
  assert.ok(error instanceof ServiceFailure, String(error));
  assert.deepEqual([error.status, error.code, error.field], [status, code, field]);
  return true;
};

// The tests' present is 21 November 2026: of the second, 40 of 80 days have passed.
const MILESTONES = [
  {
    name: 'A',
    complete: true,
    weight: 1,
    plannedStart: '2026-08-13',
    dueDate: '2026-10-01',
    budget: 100,
    actualCost: 150,
  },
  {
    name: 'B',
    percentComplete: '25',
    weight: 3,
    plannedStart: '2026-10-12',
    dueDate: '2026-12-31',
    budget: 400,
    actualCost: 50,
  },
];

describe('construction-progress', () => {
  it('calculates progress, schedule and earned value as by hand', async () => {
    const { data } = await run({ projectId: 'p', milestones: MILESTONES });
    // (1 × 100 + 3 × 25) / 4, and planned (1 × 100 + 3 × 50) / 4.
    assert.deepEqual(
      [data.completionPercentage, data.currentPhase, data.completedMilestones],
      [43.8, 'B', ['A']],
    );
    // 100 days for 43.75 percent are 229 for all, from 13 August on: 30 March.
    assert.deepEqual(data.timeline, {
      plannedPercentage: 62.5,
      onSchedule: false,
      dueDate: '2026-12-31',
      estimatedCompletion: '2027-03-30',
      daysAhead: -89,
    });
    assert.deepEqual(data.earnedValue, {
      budgetAtCompletion: 500,
      earnedValue: 200,
      plannedValue: 300,
      actualCost: 200,
      schedulePerformanceIndex: 0.667,
      costPerformanceIndex: 1,
      estimateAtCompletion: 500,
    });
    assert.equal(data.imagery, null);
    assert.ok(data.cannotSee.length > 0);
  });

  it('divides by nothing and estimates nothing where nothing was given', async () => {
    const { data } = await run({
      projectId: 'p',
      milestones: [{ name: 'A', plannedStart: '2026-12-01', budget: 0, actualCost: 0 }],
    });
    assert.deepEqual(Object.values(data.timeline), [null, null, null, null, null]);
    assert.deepEqual(
      [
        data.earnedValue.costPerformanceIndex,
        data.earnedValue.plannedValue,
        data.earnedValue.estimateAtCompletion,
      ],
      [null, null, null],
    );
  });

  it('lists pictures of the place, and goes without when the search is down', async () => {
    const body = { projectId: 'p', milestones: MILESTONES, lat: 40.7, lon: -74 };
    const found = await run(body, {
      cmr: {
        granules: async ({ box, first, maxCloudCoverPercent }) => {
          assert.deepEqual(
            [box, first, maxCloudCoverPercent],
            [{ west: -74, south: 40.7, east: -74, north: 40.7 }, '2026-09-22', 30],
          );
          return reply('cmr', { hits: 0, granules: [] });
        },
      },
    });
    assert.deepEqual(found.data.imagery, []);
    const without = await run(body, { cmr: { granules: down('cmr') } });
    assert.equal(without.data.imagery, null);
    assert.ok(without.notes[0]?.includes('does not answer'));
  });

  it('has no answer without milestones, and refuses what cannot be meant', async () => {
    await assert.rejects(run({ projectId: 'p' }), failsWith(422, 'NO_MILESTONES', 'milestones'));
    await assert.rejects(
      run({ projectId: 'p', milestones: [{ name: 'A', weight: 0 }] }),
      failsWith(422, 'NO_MILESTONES', 'milestones'),
    );
    await assert.rejects(
      run({ projectId: 'p', milestones: MILESTONES, lat: 1 }),
      failsWith(400, 'INVALID_REQUEST', 'lon'),
    );
    await assert.rejects(
      run({ projectId: 'p', milestones: [{ name: 'A', plannedStart: '2026-02-01', dueDate: '2026-01-01' }] }),
      failsWith(400, 'INVALID_REQUEST', 'milestones.0.plannedStart'),
    );
    for (const one of [
      { percentComplete: 101 },
      { dueDate: '2026-02-30' },
      { weight: -1 },
      { complete: 'yes' },
    ]) {
      assert.equal(
        construction.input.safeParse({ projectId: 'p', milestones: [{ name: 'A', ...one }] }).success,
        false,
      );
    }
  });
});
