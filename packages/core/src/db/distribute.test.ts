/** What can be seen of spreading a database without a cluster: who is refused, and that nothing of it shows on one PostgreSQL. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { StartError } from '@farebox/process/start-error';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { SURROUNDINGS } from '../../../../apps/shop/test/surroundings.fixture.ts';
import { distribute } from './distribute.ts';
import { isDistributed, learnDistribution } from './distribution.ts';

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

test('one PostgreSQL is refused in a sentence, and nothing of it is changed', async () => {
  const steps: string[] = [];
  await assert.rejects(
    distribute(database.patient, { shards: 4, report: (step) => steps.push(step) }),
    (error) => error instanceof StartError && /this database has no Citus/.test(error.message),
  );
  assert.deepEqual(steps, []);
  const keys = await database.sql<{ columns: string }[]>`
    select pg_get_constraintdef(oid) as columns from pg_constraint where conname in ('calls_pkey', 'api_keys_lookup_key') order by 1`;
  assert.deepEqual(
    keys.map(({ columns }) => columns),
    ['PRIMARY KEY (account_id, id)', 'UNIQUE (lookup)'],
  );
});

test('nobody spreads a database without saying that it is a preview', () => {
  const command = join(import.meta.dirname, '../../../../apps/shop/src/commands/distribute.ts');
  const { status, stderr } = spawnSync(process.execPath, [command], {
    env: { ...SURROUNDINGS, DATABASE_URL: database.url, FAREBOX_SECRET: 'a secret of the tests' },
    encoding: 'utf8',
  });
  assert.equal(status, 2);
  assert.match(stderr, /a preview.* Say --preview/);
});

test('one PostgreSQL is known as one, and its batches keep their plans', async () => {
  assert.equal(await isDistributed(database.sql), false);
  await learnDistribution(database);
  assert.equal(database.distribution.isDistributed, false);
  const [row] = await database.commits<{ mode: string }[]>`select current_setting('plan_cache_mode') as mode`;
  assert.equal(row?.mode, 'force_generic_plan');
});
