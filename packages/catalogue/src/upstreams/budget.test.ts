/** What was agreed with a source is agreed with all processes together. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget } from './budget.ts';

/** How many can be taken at once. */
function takeAll(budget: Budget): number {
  let taken = 0;
  while (budget.take(0) === 0) taken += 1;
  return taken;
}

test('each of several processes has its share, of what is there at first and of what comes back', () => {
  let nowMs = 0;
  const replicas = { count: 4 };
  const budgets = Array.from({ length: 4 }, () => new Budget(120, 60, () => nowMs, replicas));
  assert.equal(
    budgets.reduce((sum, budget) => sum + takeAll(budget), 0),
    60,
  );
  nowMs += 10_000;
  assert.equal(
    budgets.reduce((sum, budget) => sum + takeAll(budget), 0),
    20,
  );
  replicas.count = 1;
  nowMs += 10_000;
  const [left] = budgets;
  assert(left !== undefined);
  assert.equal(takeAll(left), 20, 'who is left alone has it all');
});

test('with more processes than tokens each may still have one', () => {
  const budget = new Budget(60, 5, () => 0, { count: 20 });
  assert.equal(takeAll(budget), 1);
});

test('a call that can wait gets the next token, which nobody else gets', () => {
  let nowMs = 0;
  const budget = new Budget(60, 1, () => nowMs);
  assert.deepEqual([budget.take(0), budget.take(1_500), budget.take(1_500)], [0, 1_000, 2_000]);
  nowMs += 1_000;
  assert.equal(budget.take(0), 1_000, 'it is gone to the one that waited');
});

test('what a process that ended had used up is used up, less what has come back since', () => {
  let nowMs = 0;
  const ended = new Budget(60, 30, () => nowMs);
  assert.equal(takeAll(ended), 30);
  nowMs += 2_000;
  assert.equal(ended.missing(), 28);
  const next = new Budget(60, 30, () => nowMs);
  assert.equal(next.missing(), 0);
  next.inherit(ended.missing(), 3_000);
  assert.equal(takeAll(next), 5);
  const late = new Budget(60, 30, () => nowMs);
  late.inherit(28, 60_000);
  assert.equal(takeAll(late), 30, 'all of it has come back');
});

test('what a share lacks because it has grown was used by nobody, and whoever takes over begins with all of its own', () => {
  let nowMs = 0;
  const replicas = { count: 2 };
  const ended = new Budget(60, 30, () => nowMs, replicas);
  assert.equal(takeAll(ended), 15);
  nowMs += 30_000;
  assert.equal(ended.missing(), 0, 'all of it has come back');
  replicas.count = 1;
  assert.equal(ended.missing(), 0, 'half of it is there, and nothing of it was taken');
  const next = new Budget(60, 30, () => nowMs, { count: 2 });
  next.inherit(ended.missing(), 0);
  assert.equal(takeAll(next), 15);
});
