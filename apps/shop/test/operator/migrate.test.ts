/** Bringing a schema up to date. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connectDatabase, type Database } from '../../../../packages/core/src/db/connection.ts';
import { migrate } from '../../../../packages/core/src/db/migrate.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { makeEmptyDatabase } from '../empty-database.fixture.ts';

const FILES = readdirSync(join(import.meta.dirname, '../../../../packages/core/src/db/migrations')).sort();

let server: TestDatabase;
let empty: Database;
const closing: (() => Promise<unknown>)[] = [];

before(async () => {
  server = await openTestDatabase();
  empty = connectDatabase(await makeEmptyDatabase(server, (drop) => closing.push(drop)), 4);
});
after(async () => {
  await empty?.end({ timeout: 1 });
  for (const close of closing) await close();
  await server?.close();
});

test('replicas that start together run each migration once, and none of them holds the locks of another', async () => {
  const ran = (await Promise.all([migrate(empty), migrate(empty), migrate(empty)])).flat();
  assert.deepEqual(ran.toSorted(), FILES);
  const commits = await empty<{ commits: number }[]>`
    select count(distinct xmin::text)::integer as commits from schema_migrations`;
  assert.deepEqual([...commits], [{ commits: FILES.length }]);
  assert.deepEqual(await migrate(empty), []);
});

test('one that was changed after it had run stops the start', async () => {
  await empty`update schema_migrations set checksum = 'of something else' where name = ${FILES[0] ?? ''}`;
  await assert.rejects(migrate(empty), { message: /280_baseline\.sql was changed/ });
});
