import assert from 'node:assert/strict';
import { it } from 'node:test';
import { supplyOf } from './supply.ts';

const BUDGETS: Readonly<Record<string, number | null>> = {
  news: 720,
  forum: 60_000,
  rates: 3_600,
  chain: null,
};
const health = (name: string) => ({ requestsPerHour: BUDGETS[name] ?? null });

it('sells as much an hour as the scarcest source that it asks allows', () => {
  assert.deepEqual(supplyOf({ needs: ['rates', 'news'] }, health), { source: 'news', answersPerHour: 720 });
  // Two requests for each answer.
  assert.deepEqual(supplyOf({ needs: ['rates', 'news'], requestsOf: { news: 2 } }, health), {
    source: 'news',
    answersPerHour: 360,
  });
});

it('counts the most generous of sources of which one is enough, but for one that every answer asks', () => {
  assert.deepEqual(supplyOf({ needs: [['news', 'forum']] }, health), {
    source: 'forum',
    answersPerHour: 60_000,
  });
  assert.deepEqual(supplyOf({ needs: [['news', 'forum']], requestsOf: { news: 1 } }, health), {
    source: 'news',
    answersPerHour: 720,
  });
});

it('knows no bound where no budget is known', () => {
  assert.equal(supplyOf({ needs: [] }, health), null);
  assert.equal(supplyOf({ needs: ['chain'] }, health), null);
});
