/** Weeks of calls are made compact: every row stays as it is, and nobody's change of one is lost. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { connectDatabase, type Database } from '../db/connection.ts';
import { makeWeeks, weekOf } from '../db/weeks.ts';
import { compactWeeks } from './compact-weeks.ts';

const WEEK_MS = 7 * 86_400_000;
const MOST_RUNS = 20;
const CALLS = 3_000;

let database: TestDatabase;
/** For those who take as long as it takes. */
let other: Database;
before(async () => {
  database = await openTestDatabase();
  other = connectDatabase(database.url, 3);
});
after(async () => {
  await other?.end({ timeout: 1 });
  await database?.close();
});

/** A week of calls that ended so many weeks ago, as batches leave it. @returns its name */
async function weekOfCalls(weeksAgo: number): Promise<string> {
  const atMs = Date.now() - (weeksAgo + 1) * WEEK_MS;
  const week = weekOf(atMs);
  await other.begin((transaction) => makeWeeks(transaction, [week]));
  await other.unsafe(`
    insert into calls (account_id, id, price_micros, created_at, begun_at, expires_at, state, rail, service)
    select 2000 + n % 3, ('${week.from.slice(0, 14)}7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1 + n, now(), now(), now(), 0,
      'credits', 'ping' from generate_series(1, ${CALLS}) n`);
  await other.unsafe(`
    update calls_${week.name} set state = 1, finished_at = now(), outcome = 'answered'`);
  await other.unsafe(`
    insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
    select account_id, id, phase, account_id, 1, price_micros, 'call', now() from calls_${week.name}, (values (2), (3)) p (phase)`);
  return week.name;
}

const compact = (wanted = () => true, patient = database.patient) =>
  compactWeeks({ patient, nowMs: Date.now }, wanted);

/** Runs until a week is compact: an autovacuum that looks at it just then has it wait for a later run. */
async function compactAtLast(): Promise<string[]> {
  for (let run = 0; run < MOST_RUNS; run++) {
    const done = await compact();
    if (done.length > 0) return done;
  }
  return [];
}

/** The database, with something that happens before each of its statements that is text, or before one of them. */
const beforeEach = (happens: (text: string) => Promise<void>): Database =>
  new Proxy(database.patient, {
    get(target, name) {
      if (name === 'unsafe')
        return async (text: string) => {
          await happens(text);
          return target.unsafe(text);
        };
      if (name === 'begin')
        return async (work: (transaction: unknown) => Promise<void>) => {
          await happens('begin');
          return target.begin(work);
        };
      return Reflect.get(target, name);
    },
  });

async function rowsOf(week: string): Promise<string | undefined> {
  const [row] = await other.unsafe<{ digest: string }[]>(`
    select md5(string_agg(c::text, E'\\n' order by account_id, id)) as digest from calls_${week} c`);
  return row?.digest;
}

async function sizeOf(table: string): Promise<bigint> {
  const [row] = await other<{ size: bigint }[]>`select pg_relation_size(${table}) as size`;
  return row?.size ?? 0n;
}

test('a week has the same rows in two thirds of the room, once, and a late week is left alone', async () => {
  const [late, old] = [await weekOfCalls(3), await weekOfCalls(6)];
  const [rows, size, lateSize] = [
    await rowsOf(old),
    await sizeOf(`calls_${old}`),
    await sizeOf(`calls_${late}`),
  ];
  // What a build leaves behind that was cut off.
  await assert.rejects(
    database.patient.unsafe(`create unique index concurrently cut_off on calls_${old} (state)`),
    { code: '23505' },
  );
  assert.deepEqual(await compact(() => false), []);
  assert.equal(await rowsOf(old), rows);
  assert.deepEqual(await compactAtLast(), [old]);
  assert.equal(await rowsOf(old), rows);
  assert.ok(
    (await sizeOf(`calls_${old}`)) * 3n < size * 2n,
    `${size} bytes became ${await sizeOf(`calls_${old}`)}`,
  );
  assert.equal(await sizeOf(`calls_${late}`), lateSize);
  const invalid = await other`
    select 1 from pg_index where indrelid = ${`calls_${old}`}::regclass and not indisvalid`;
  assert.equal(invalid.length, 0);
  assert.deepEqual(await compact(), []);
});

test('whoever changes a call of the week is waited for, and one process at a time does it', async () => {
  const week = await weekOfCalls(8);
  const last = `(select id from calls_${week} order by id desc limit 1)`;
  const done: string[][] = [];
  let running: Promise<unknown> | undefined;
  await other.begin(async (transaction) => {
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
    await transaction.unsafe(`select 1 from calls where id = ${last} for update`);
    running = compact().then((weeks) => done.push(weeks));
    for (;;) {
      assert.deepEqual(done, [], 'it ended without a lock of the week');
      const [waits] = await other`
        select 1 from pg_locks where relation = ${`calls_${week}`}::regclass and mode = 'ExclusiveLock' and not granted`;
      if (waits !== undefined) break;
      await sleep(5);
    }
    assert.deepEqual(await compact(), [], 'somebody else is at it');
    await transaction.unsafe(`update calls set outcome = 'changed meanwhile' where id = ${last}`);
  });
  await running;
  // On a slow machine it has given up, and goes on at its next run.
  if (done[0]?.length === 0) done.push(await compact());
  assert.deepEqual(done.at(-1), [week]);
  const [changed] = await other.unsafe<{ count: number }[]>(`
    select count(*)::integer as count from calls_${week} where outcome = 'changed meanwhile'`);
  assert.equal(changed?.count, 1);
  const [all] = await other.unsafe<{ count: number }[]>(`
    select count(*)::integer as count from calls_${week}`);
  assert.equal(all?.count, CALLS);
});

test('a week that an old snapshot sees is compact at a later run, and one that is archived is left alone', async () => {
  const [seen, archived] = [await weekOfCalls(10), await weekOfCalls(12)];
  await other`
    insert into call_archives (week, from_id, to_id, sealed_at)
    values (${archived}, gen_random_uuid(), gen_random_uuid(), now())`;
  const rows = await rowsOf(seen);
  const size = await sizeOf(`calls_${archived}`);
  await other.begin('isolation level repeatable read', async (transaction) => {
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
    await transaction.unsafe(`select count(*) from calls_${seen}`);
    assert.deepEqual(await compact(), []);
  });
  assert.deepEqual(await compactAtLast(), [seen]);
  assert.equal(await rowsOf(seen), rows);
  assert.equal(await sizeOf(`calls_${archived}`), size);
});

test('a process that dies at any statement leaves each row once, and the next one goes on when its lease is over', async () => {
  const week = await weekOfCalls(14);
  const rows = await rowsOf(week);
  let died = 0;
  let isCompact = false;
  for (let heldUp = 0; !isCompact && heldUp < MOST_RUNS; ) {
    let left = died;
    const mortal = beforeEach(async () => {
      if (left-- === 0) throw new Error('killed');
    });
    const done = await compact(() => true, mortal).catch((error: AggregateError) => {
      assert.match(String(error.errors), /^Error: killed$/);
      return null;
    });
    assert.equal(await rowsOf(week), rows);
    if (done === null) {
      died += 1;
      assert.deepEqual(await compact(), [], 'its lease lasts');
      await other`update compacted_weeks set lease_until = now() where week = ${week}`;
    } else {
      isCompact = done.includes(week);
      heldUp += 1;
    }
  }
  assert(isCompact);
  assert.ok(died > 5, `it died ${died} times`);
});

test('a lease is renewed before each batch, and given back by who must stop', async () => {
  const week = await weekOfCalls(16);
  const lease = async () => {
    const [row] = await other<{ lasts: boolean; is_compact: boolean }[]>`
      select lease_until > now() as lasts, compacted_at is not null as is_compact
      from compacted_weeks where week = ${week}`;
    return { ...row };
  };
  const found: unknown[] = [];
  const slow = beforeEach(async (text) => {
    // A vacuum that took long, and a look at the lease when rows are about to move.
    if (text.startsWith('vacuum'))
      await other`update compacted_weeks set lease_until = '-infinity' where week = ${week}`;
    if (text === 'begin') found.push(await lease());
  });
  let batches = 0;
  assert.deepEqual(await compact(() => batches++ < 1, slow), []);
  assert.deepEqual(found, [{ lasts: true, is_compact: false }]);
  assert.deepEqual(await lease(), { lasts: false, is_compact: false });
  assert.deepEqual(await compactAtLast(), [week]);
});
