/** Costs of sources that are paid by use are added up by day over all processes, and none is lost while the database is away. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { createSourceCosts } from './source-costs.ts';

const DAY_MS = 86_400_000;

let database: TestDatabase;
let nowMs = Date.UTC(2026, 0, 31, 23, 59);
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());
beforeEach(async () => {
  await database.sql`delete from source_costs`;
});

const open = () => createSourceCosts(database.sql, { nowMs: () => nowMs });

test('what two processes spend is one sum for each source and day', async () => {
  const [one, two] = [open(), open()];
  one.spent('ai', 1_500n);
  one.spent('ai', 0n);
  two.spent('ai', 2_000n);
  two.spent('other', 7n);
  await Promise.all([one.write(), two.write()]);
  nowMs += 120_000;
  one.spent('ai', 100n);
  await one.write();
  await one.write();
  const rows = await database.sql`
    select to_char(day, 'YYYY-MM-DD') as day, source, requests, cost_micros from source_costs order by day, source`;
  assert.deepEqual(
    rows.map((row) => Object.values(row)),
    [
      ['2026-01-31', 'ai', 3n, 3_500n],
      ['2026-01-31', 'other', 1n, 7n],
      ['2026-02-01', 'ai', 1n, 100n],
    ],
  );
  assert.deepEqual(await two.recent(), [
    { source: 'ai', requests: 4n, costMicros: 3_600n },
    { source: 'other', requests: 1n, costMicros: 7n },
  ]);
});

test('what is older than thirty days is not added up', async () => {
  const costs = open();
  costs.spent('ai', 5n);
  await costs.write();
  nowMs += 29 * DAY_MS;
  assert.equal((await costs.recent()).length, 1);
  nowMs += DAY_MS;
  assert.deepEqual(await costs.recent(), []);
});

test('what cannot be written is written the next time, once', async () => {
  const costs = open();
  costs.spent('ai', 40n);
  await database.sql`alter table source_costs rename to source_costs_away`;
  await assert.rejects(costs.write());
  costs.spent('ai', 2n);
  await database.sql`alter table source_costs_away rename to source_costs`;
  await costs.write();
  assert.deepEqual(await costs.recent(), [{ source: 'ai', requests: 2n, costMicros: 42n }]);
});
