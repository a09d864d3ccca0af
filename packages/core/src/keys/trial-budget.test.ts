import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { TrialBudget } from './trial-budget.ts';
import { NotGiven } from './trial-outcome.ts';

const TRIAL = 5_000_000n;
const midnight = (day: string) => Date.parse(`${day}T00:00:00Z`);

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

/** A budget at a moment of a day that no other test takes from. */
function budgetAt(time: string, microsPerDay: bigint) {
  const clock = { nowMs: Date.parse(time) };
  const budget = new TrialBudget(database.sql, {
    trialMicros: TRIAL,
    microsPerDay,
    nowMs: () => clock.nowMs,
  });
  /** Takes so many trials. @returns how many were given, and from when there is another */
  const take = async (count: number) => {
    let given = 0;
    let untilMs: number | null = null;
    for (let n = 0; n < count; n++)
      await database.sql
        .begin((transaction) => budget.take(transaction))
        .then(
          () => {
            given += 1;
          },
          (error: unknown) => {
            if (!(error instanceof NotGiven) || error.outcome.status !== 'spent') throw error;
            ({ untilMs } = error.outcome);
          },
        );
    return { given, untilMs };
  };
  return { clock, budget, take };
}

test('the last hours of a day give no more than the day has, however long ago the rest came', async () => {
  // From 21:00 on all of it is there: an eighth in the morning, and an eighth more every three hours.
  const { take } = budgetAt('2026-11-01T23:59:59.999Z', 16n * TRIAL);
  assert.deepEqual(await take(20), { given: 16, untilMs: midnight('2026-11-02') });
});

test('the morning has an eighth, and where that is less than a trial the first one all the same', async () => {
  const eighth = budgetAt('2026-11-03T00:00:00Z', 16n * TRIAL);
  // The third has come after a sixteenth of the day.
  assert.deepEqual(await eighth.take(4), {
    given: 2,
    untilMs: midnight('2026-11-03') + (24 * 3_600_000) / 16,
  });
  const few = budgetAt('2026-11-04T00:00:00Z', 2n * TRIAL);
  // The second has come when all of it has: at 21:00.
  assert.deepEqual(await few.take(2), { given: 1, untilMs: Date.parse('2026-11-04T21:00:00Z') });
});

test('a day that has less than one trial gives none', async () => {
  for (const time of ['2026-11-05T00:00:00Z', '2026-11-05T23:59:59Z']) {
    const { budget, take } = budgetAt(time, TRIAL - 1n);
    const none = { given: 0, untilMs: midnight('2026-11-06') };
    assert.deepEqual(await take(1), none, time);
    assert.deepEqual(await budget.spent(), { status: 'spent', untilMs: none.untilMs });
  }
});
