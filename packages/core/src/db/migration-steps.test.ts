/** A migration in steps runs beside writers, once, and again from its first step if it was cut off, against a real database. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { connectDatabase, connectPools, endPools, type Transaction } from './connection.ts';
import { migrate } from './migrate.ts';
import { migrationSteps } from './migration-steps.ts';
import { inTurnBySteps } from './turns.ts';

const ROWS = 2_500;
const PATIENCE_MS = 60_000;
const STEPS = `-- In steps.
-- Each row has its square.

-- Step.
ALTER TABLE stepped ADD COLUMN IF NOT EXISTS square bigint;

-- Batches.
UPDATE stepped SET square = n * n WHERE n IN (SELECT n FROM stepped WHERE square IS NULL LIMIT 1000);

-- Step.
DROP INDEX CONCURRENTLY IF EXISTS stepped_square;

-- Step.
CREATE INDEX CONCURRENTLY stepped_square ON stepped (square);
`;

let database: TestDatabase;
let folder: string;
before(async () => {
  database = await openTestDatabase();
});
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-migrations-'));
  writeFileSync(join(folder, '900_stepped.sql'), STEPS);
  await database.sql`drop table if exists stepped`;
  await database.sql`delete from schema_migrations where name = '900_stepped.sql'`;
  await database.sql`create table stepped (n bigint primary key)`;
  await database.sql`insert into stepped select generate_series(1, ${ROWS})`;
});
after(() => database.close());

/** A transaction that does something and stays open: an index that is built beside writers waits for it. */
async function stayOpen(act: (transaction: Transaction) => Promise<unknown>) {
  const pools = connectPools(database.url, 2);
  const [held, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const staying = pools.patient.begin('isolation level repeatable read', async (transaction) => {
    await transaction`set local idle_in_transaction_session_timeout = 0`;
    await act(transaction);
    begun.resolve();
    await held.promise;
  });
  await begun.promise;
  return async () => {
    held.resolve();
    await staying;
    await endPools(pools, 1);
  };
}
const startWriter = (n: number) =>
  stayOpen((transaction) => transaction`insert into stepped (n) values (${n})`);
/** It has read before the table was changed, and holds no lock of it: the change need not wait, and the index must. */
const startReader = () => stayOpen((transaction) => transaction`select count(*) from schema_migrations`);

/** The process that builds the index, once it waits. */
async function builder(): Promise<number> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    assert(performance.now() < endMs, 'no index waits');
    const [row] = await database.sql<{ pid: number }[]>`
      select pid from pg_stat_activity
      where datname = current_database() and query like 'CREATE INDEX CONCURRENTLY%' and wait_event_type = 'Lock'`;
    if (row !== undefined) return row.pid;
  }
}

const state = async () => {
  const [row] = await database.sql<{ wrong: number; is_valid: boolean | null; noted: number }[]>`
    select (select count(*)::integer from stepped where n <= ${ROWS} and square is distinct from n * n) as wrong,
           (select indisvalid from pg_index where indexrelid = to_regclass('stepped_square')) as is_valid,
           (select count(*)::integer from schema_migrations where name = '900_stepped.sql') as noted`;
  return { ...row };
};
const DONE = { wrong: 0, is_valid: true, noted: 1 };

test('writers go on while an index is built and rows are filled in, and two replicas run each step once', async () => {
  const others = connectPools(database.url, 2);
  const end = await startReader();
  const migrations = Promise.all([migrate(others.patient, folder), migrate(database.patient, folder)]);
  let ended = false;
  void migrations.then(() => (ended = true));
  await builder();
  for (let n = ROWS + 2; n < ROWS + 20; n += 1) await database.sql`insert into stepped (n) values (${n})`;
  await database.sql`update stepped set square = 0 where n = ${ROWS + 2}`;
  assert.equal(ended, false, 'those writes did not wait for the migration');
  await end();
  assert.deepEqual((await migrations).flat(), ['900_stepped.sql']);
  assert.deepEqual(await state(), DONE);
  assert.deepEqual(await migrate(database.patient, folder), []);
  await endPools(others, 1);
});

test('migrations run in the order of their names, each after what it needs', async () => {
  await migrate(database.patient, folder);
  writeFileSync(join(folder, '902_widened.sql'), 'ALTER TABLE later ADD COLUMN wide bigint;');
  writeFileSync(join(folder, '901_later.sql'), 'CREATE TABLE later (n bigint PRIMARY KEY);');
  assert.deepEqual(await migrate(database.patient, folder), ['901_later.sql', '902_widened.sql']);
  await database.sql`drop table later`;
});

test('one that is cut off between two steps, or in one, runs again from its first step', async () => {
  const dying = connectPools(database.url, 2);
  // The column is there already: to add it would wait for the writer.
  await database.sql`alter table stepped add column square bigint`;
  writeFileSync(join(folder, '900_stepped.sql'), STEPS.replace(/^ALTER.*$/m, 'SELECT 1;'));
  const hold = await startWriter(ROWS + 2);
  const cut = assert.rejects(migrate(dying.patient, folder));
  await database.sql`select pg_terminate_backend(${await builder()})`;
  await cut;
  await hold();
  await endPools(dying, 1);
  assert.deepEqual(
    (await state()).is_valid,
    false,
    'what was cut off left an index that is good for nothing',
  );
  assert.deepEqual(await migrate(database.patient, folder), ['900_stepped.sql']);
  assert.deepEqual(await state(), DONE);
});

test('one that was changed after it had run stops the start', async () => {
  await migrate(database.patient, folder);
  writeFileSync(join(folder, '900_stepped.sql'), `${STEPS}\n-- Step.\nSELECT 1;\n`);
  await assert.rejects(migrate(database.patient, folder), /900_stepped\.sql was changed/);
  rmSync(folder, { recursive: true });
});

test('text that belongs to no step is refused, and any other file is one transaction', () => {
  assert.equal(migrationSteps('a.sql', 'CREATE TABLE a ();'), null);
  assert.equal(migrationSteps('a.sql', STEPS)?.length, 4);
  assert.deepEqual(
    migrationSteps('a.sql', STEPS)?.map(({ inBatches }) => inBatches),
    [false, true, false, false],
  );
  assert.throws(
    () => migrationSteps('a.sql', '-- In steps.\nSELECT 1;\n-- Step.\nSELECT 2;'),
    /without a step/,
  );
  assert.throws(
    () => migrationSteps('a.sql', '-- In steps.\n-- Step.\n-- Batches.\nSELECT 2;'),
    /without a statement/,
  );
});

test('the first to ask a pool for a connection of its own gets one', { timeout: 30_000 }, async () => {
  const own = connectDatabase(database.url, 1);
  try {
    const had = await inTurnBySteps(own, async (run) => {
      const [row] = await run('select 1 as had');
      return row?.had;
    });
    assert.equal(had, 1);
  } finally {
    await own.end({ timeout: 1 });
  }
});
