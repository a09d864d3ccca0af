/** The baseline makes what the migrations before it made, and a database that they made goes on with what follows it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { BASELINE, LAST_COMMIT_BEFORE } from '../../../../packages/core/src/db/before-baseline.ts';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { migrate, readSchema } from '../../../../packages/core/src/db/migrate.ts';
import { StartError } from '../../../../packages/process/src/start-error.ts';
import { lookAtDatabase } from '../../src/doctor/database.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { makeEmptyDatabase } from '../empty-database.fixture.ts';
import { startTestServer } from '../server.fixture.ts';
import { schemaOf } from './schema.fixture.ts';

/**
 * What `pg_dump --inserts` wrote, without its comments, of a database on which commit 0076edaf had sold a key and two calls, and an
 * operator had granted credit. It has the week of the calls, and of the functions those of triggers; the start brings the others.
 */
const OLD = readFileSync(join(import.meta.dirname, 'before-baseline.fixture.sql'), 'utf8');
const OLD_WEEK = /_w20261130/;

let server: TestDatabase;
const opened: (() => Promise<unknown>)[] = [];
before(async () => {
  server = await openTestDatabase();
});
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});
after(() => server.close());

async function emptyDatabase(): Promise<Pools> {
  const pools = connectPools(await makeEmptyDatabase(server, (drop) => opened.push(drop)), 4);
  opened.push(() => endPools(pools, 1));
  return pools;
}

async function oldDatabase(): Promise<Pools> {
  const pools = await emptyDatabase();
  await pools.patient.unsafe(OLD);
  return pools;
}

const FORGET = {
  one: `delete from schema_migrations where name = '280_law_pages.sql'`,
  allButOne: `delete from schema_migrations where name <> '001_ledger.sql'`,
};

test('a new database and one that the migrations before the baseline made have one schema', async () => {
  const [made, old] = [await emptyDatabase(), await oldDatabase()];
  const ran = await migrate(made.patient);
  assert.equal(ran[0], BASELINE);
  assert.deepEqual(await migrate(old.patient), ran.slice(1));
  const [schema, oldSchema] = [await schemaOf(made.sql), await schemaOf(old.sql)];
  for (const [kind, lines] of Object.entries(oldSchema)) {
    // The week in which it was made is not one of those that are made today.
    const weeks = (line: string) => !OLD_WEEK.test(line);
    assert.deepEqual(lines.filter(weeks), schema[kind]?.filter(weeks), kind);
    const least = { comments: 0, privileges: 0, types: 0 }[kind] ?? 9;
    assert(lines.length >= least, `${kind}: ${lines.length}`);
  }
  for (const pools of [made, old]) {
    assert.deepEqual(await migrate(pools.patient), []);
    assert.deepEqual(await readSchema(pools.sql), { missing: [], other: [], tooOldFor: [] });
  }
});

test('what the old one had sold is there, its books prove, and it goes on selling', async () => {
  const pools = await oldDatabase();
  const before = [...(await pools.sql`select * from ledger_accounts where not house order by id`)];
  assert.equal(before.length, 2);
  await migrate(pools.patient);
  const shop = await startTestServer({ pools });
  opened.push(() => shop.close());
  assert.deepEqual([...(await pools.sql`select * from ledger_accounts where not house order by id`)], before);
  const named = { 'idempotency-key': randomUUID() };
  const key = await shop.key('1');
  for (let nth = 0; nth < 2; nth += 1) assert.equal((await shop.call('ping', key, {}, named)).status, 200);
  const calls = await pools.sql`select state from calls where service = 'ping'`;
  assert.deepEqual([...calls], [{ state: 1 }, { state: 1 }, { state: 1 }]);
  const { checks } = await proveBooks(pools.patient);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
});

test('replicas that start together on an old one note the baseline once', async () => {
  const pools = await oldDatabase();
  const ran = (await Promise.all([migrate(pools.patient), migrate(pools.patient)])).flat();
  assert(!ran.includes(BASELINE));
  assert.equal(new Set(ran).size, ran.length);
  assert.equal((await pools.sql`select 1 from schema_migrations where name = ${BASELINE}`).length, 1);
});

test('one that lacks some of them is refused, unchanged, and told what to start first', async () => {
  for (const forget of Object.values(FORGET)) {
    const pools = await oldDatabase();
    await pools.sql.unsafe(forget);
    const before = [await schemaOf(pools.sql), [...(await pools.sql`table schema_migrations`)]];
    await assert.rejects(
      migrate(pools.patient),
      (error) =>
        error instanceof StartError &&
        error.message.includes(`Start commit ${LAST_COMMIT_BEFORE} of Farebox on it once`),
    );
    assert.deepEqual([await schemaOf(pools.sql), [...(await pools.sql`table schema_migrations`)]], before);
    assert((await readSchema(pools.sql))?.tooOldFor.includes('280_law_pages.sql'));
    const found = [
      await lookAtDatabase({ sql: pools.sql, isEmbedded: false, maxConnections: 10 }).look(
        AbortSignal.timeout(60_000),
      ),
    ].flat();
    assert(found.some(({ found: said }) => /an older version made it, and \d+ migrations/.test(said)));
  }
});

test('one on which another text of them ran is refused', async () => {
  const pools = await oldDatabase();
  await pools.sql`update schema_migrations set checksum = 'of something else' where name = '044_webhooks.sql'`;
  await assert.rejects(migrate(pools.patient), { message: /044_webhooks\.sql was changed/ });
  assert.deepEqual((await readSchema(pools.sql))?.other, ['044_webhooks.sql']);
});

test('the document names the commit that the refusal names', () => {
  const upgrading = readFileSync(join(import.meta.dirname, '../../../../docs/upgrading.md'), 'utf8');
  assert(upgrading.includes(`\`${LAST_COMMIT_BEFORE}\``));
});
