/** A restart brings no burst of a source back: what was used up stays so over ends, kills and two starts at once. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { Budget } from './budget.ts';
import { createKeptBudgets } from './kept-budgets.ts';

const SOURCE = 'a-source';

let database: TestDatabase;
let nowMs = 0;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());
beforeEach(async () => {
  nowMs = 0;
  await database.sql`delete from source_budgets`;
});

/** A process with one source, of which it may be sent a request a minute, sixty at once. */
function startProcess() {
  const budget = new Budget(1, 60, () => nowMs);
  const budgets = new Map([[SOURCE, budget]]);
  return { budget, kept: createKeptBudgets(database.sql, { budgets, nowMs: () => nowMs }) };
}

function use(budget: Budget, count: number): void {
  for (let used = 0; used < count; used++) assert.equal(budget.take(0), 0);
}

/** As many as can still be sent at once. */
const left = (budget: Budget) => Math.round(60 - budget.missing());

/** All processes are as if they had written so long ago. */
const passed = (seconds: number) =>
  database.sql`update source_budgets set at = now() - ${seconds} * interval '1 second'`;

test('a process that follows one that was killed begins with what that has left', async () => {
  const first = startProcess();
  await first.kept.takeOver();
  use(first.budget, 50);
  await first.kept.keep();
  await passed(5);
  const second = startProcess();
  await second.kept.takeOver();
  assert.equal(left(second.budget), 10);
  assert.deepEqual([...(await database.sql`select 1 from source_budgets`)], [], 'once');
  use(second.budget, 10);
  await second.kept.keep();
  await passed(5);
  const third = startProcess();
  await third.kept.takeOver();
  assert.equal(left(third.budget), 0, 'also over a second restart');
});

test('what has come back meanwhile has come back', async () => {
  const first = startProcess();
  use(first.budget, 60);
  await first.kept.keep();
  await passed(20 * 60);
  const second = startProcess();
  await second.kept.takeOver();
  assert.equal(left(second.budget), 20);
});

test('a process that was killed just before is known to have ended a moment later', async () => {
  const first = startProcess();
  use(first.budget, 50);
  await first.kept.keep();
  const second = startProcess();
  await second.kept.takeOver();
  assert.equal(left(second.budget), 60, 'it may live');
  use(second.budget, 5);
  await passed(3);
  await second.kept.keep();
  assert.equal(left(second.budget), 5);
});

test('two that start at once after two that ended follow one each', async () => {
  const [one, two] = [startProcess(), startProcess()];
  use(one.budget, 40);
  use(two.budget, 30);
  await Promise.all([one.kept.keep(), two.kept.keep()]);
  await passed(5);
  const [third, fourth] = [startProcess(), startProcess()];
  await Promise.all([third.kept.takeOver(), fourth.kept.takeOver()]);
  // Who came second to the same one looks again with its next round.
  await Promise.all([third.kept.keep(), fourth.kept.keep()]);
  assert.deepEqual([left(third.budget), left(fourth.budget)].sort(), [20, 30]);
});

test('nothing is taken over from a process that lives, nor twice by one', async () => {
  const [one, two] = [startProcess(), startProcess()];
  use(one.budget, 40);
  use(two.budget, 30);
  await Promise.all([one.kept.keep(), two.kept.keep()]);
  await passed(5);
  // It has lived for long enough to look for nobody who ended.
  nowMs += 15_000;
  await one.kept.keep();
  const third = startProcess();
  await third.kept.takeOver();
  assert.equal(left(third.budget), 30);
  await third.kept.keep();
  await passed(5);
  await third.kept.keep();
  assert.equal(left(third.budget), 30);
});

test('what is full again is not kept, and what nobody took over is forgotten after days', async () => {
  const rows = async () => (await database.sql`select 1 from source_budgets`).length;
  const { budget, kept } = startProcess();
  await kept.keep();
  assert.equal(await rows(), 0);
  use(budget, 1);
  await kept.keep();
  assert.equal(await rows(), 1);
  nowMs += 60_000;
  await kept.keep();
  assert.equal(await rows(), 0);
  const other = startProcess();
  use(other.budget, 60);
  await other.kept.keep();
  await passed(3 * 86_400);
  nowMs += 60_000;
  use(budget, 1);
  await kept.keep();
  assert.equal(await rows(), 1);
});

test('a source that is there no more is taken over by nobody', async () => {
  const { kept, budget } = startProcess();
  use(budget, 10);
  await kept.keep();
  await database.sql`update source_budgets set source = 'gone', at = now() - interval '5 seconds'`;
  const next = startProcess();
  await next.kept.takeOver();
  assert.equal(left(next.budget), 60);
});
