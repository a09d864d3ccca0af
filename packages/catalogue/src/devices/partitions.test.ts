/** Days of readings are there when they are needed, and gone when their time is over, whoever dies or waits meanwhile. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { createDays, dropOldDays } from './partitions.ts';

const DAY_MS = 86_400_000;
const NEW_YEAR_MS = Date.parse('2028-01-01T00:00:00Z');
const RETENTION_DAYS = 8;

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

beforeEach(async () => {
  for (const { name } of await tables()) await database.sql.unsafe(`drop table ${name}`);
  await createDays(database.sql, () => NEW_YEAR_MS).make();
});

const tables = () => database.sql<{ name: string }[]>`
  select relname as name from pg_class where relkind = 'r' and relname like 'device\\_readings\\_%' order by 1`;
const names = async () => (await tables()).map(({ name }) => name.slice(-8));
const dropAt = (nowMs: number) => dropOldDays(database.sql, { nowMs, retentionDays: RETENTION_DAYS });
const store = (at: string, device = 1) => database.sql`
  insert into device_readings (device, at, key, seq, received_at, measured)
  values (${device}, ${at}, 'key', 1, ${at}, '{}')`;

test('a day begins before it is needed, and is dropped once it is older than it is kept, over the end of a year', async () => {
  assert.deepEqual([(await names())[0], (await names()).at(-1)], ['20271224', '20280103']);
  await dropAt(NEW_YEAR_MS + DAY_MS - 1);
  assert.equal((await names())[0], '20271224');
  await dropAt(NEW_YEAR_MS + DAY_MS);
  assert.equal((await names())[0], '20271225');
});

test('days go on when a clock is set back over midnight, and on two replicas whose clocks are apart', async () => {
  let nowMs = NEW_YEAR_MS;
  const makes = [0, -2_000].map((behindMs) => createDays(database.sql, () => nowMs + behindMs).make);
  for (const ms of [-1, 0, 1_999, 2_000, -1, 2_000]) {
    nowMs = NEW_YEAR_MS + DAY_MS + ms;
    await Promise.all(makes.map((make) => make()));
    await dropAt(nowMs);
    for (const at of [nowMs - 7 * DAY_MS, nowMs + DAY_MS]) {
      await store(new Date(at).toISOString());
      await store(new Date(at - 2_000).toISOString(), 2);
    }
    await database.sql`delete from device_readings`;
  }
});

test('what was stopped or killed while it dropped a day is gone with the next round, and holds back no other day', async () => {
  await store('2027-12-24T10:00:00Z');
  await database.sql.begin(async (reader) => {
    await reader`set local idle_in_transaction_session_timeout = 0`;
    await reader`select 1 from device_readings where at < '2027-12-25'`;
    // A backup reads for longer than one may wait for a lock.
    await assert.rejects(dropAt(NEW_YEAR_MS + 3 * DAY_MS), { code: '55P03' });
    await createDays(database.sql, () => NEW_YEAR_MS + DAY_MS).make();
    assert.equal((await names()).at(-1), '20280104');
  });
  // Another one was killed between its two statements.
  await database.sql.unsafe('alter table device_readings detach partition device_readings_20271226');
  await dropAt(NEW_YEAR_MS + 3 * DAY_MS);
  assert.deepEqual((await names())[0], '20271227');
});

test('two replicas drop days at once, and neither takes what the other does for an error', async () => {
  const rounds = await Promise.allSettled([1, 2, 3].map(() => dropAt(NEW_YEAR_MS + 9 * DAY_MS)));
  // On a slow machine one may wait too long for the lock of another, or both for each other: the rest is left to the next round.
  const errors = rounds.flatMap((round) => (round.status === 'rejected' ? [round.reason] : []));
  for (const error of errors) assert(['55P03', '40P01'].includes(error.code), String(error));
  await dropAt(NEW_YEAR_MS + 9 * DAY_MS);
  assert.equal((await names())[0], '20280102');
});

test('a day that was left half dropped comes back when the clock was wrong', async () => {
  await store('2027-12-24T10:00:00Z');
  await database.sql.unsafe('alter table device_readings detach partition device_readings_20271224');
  await createDays(database.sql, () => NEW_YEAR_MS).make();
  assert.equal((await database.sql`select 1 from device_readings`).length, 1);
});
