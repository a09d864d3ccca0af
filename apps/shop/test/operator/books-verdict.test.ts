/** One proof of the books at a time, whatever becomes of who holds it. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { connectDatabase, type Database } from '../../../../packages/core/src/db/connection.ts';
import { booksOf } from '../../../../packages/core/src/declared.ts';
import {
  type BooksVerdicts,
  createBooksVerdicts,
} from '../../../../packages/core/src/operator/books-verdict.ts';
import { DECLARED } from '../../src/app.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';

const books = booksOf(DECLARED);
let database: TestDatabase;
let second: Database;
let one: BooksVerdicts;
let other: BooksVerdicts;
before(async () => {
  database = await openTestDatabase();
  second = connectDatabase(database.url, 4);
  one = createBooksVerdicts({ ...database, books }, Date.now);
  other = createBooksVerdicts({ sql: second, patient: second, books }, Date.now);
});
beforeEach(() => database.sql`delete from books_verdicts`);
after(async () => {
  await second?.end({ timeout: 1 });
  await database?.close();
});

const verdicts = async () =>
  Number((await database.sql<{ count: bigint }[]>`select count(*) as count from books_verdicts`)[0]?.count);
/** Proofs that have come to what is locked. */
const readers = async () =>
  (
    await database.sql<{ name: string }[]>`
      select application_name as name from pg_stat_activity
      where datname = current_database() and application_name like 'farebox books proof %' and wait_event_type = 'Lock'`
  ).map(({ name }) => name);
/** Ends the lease as if nobody had renewed it in time: its holder is dead, or frozen. */
const leaseEnds = () => database.sql`update books_proof set leased_until = clock_timestamp()`;

/** Keeps every proof from getting past the debts until it is let go. */
async function holdUp(): Promise<() => Promise<void>> {
  const letGo = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const holding = second.begin(async (sql) => {
    await sql`lock table account_debts in access exclusive mode`;
    held.resolve();
    await letGo.promise;
  });
  await held.promise;
  return async () => {
    letGo.resolve();
    await holding;
  };
}

test('while one proves nobody else does', async () => {
  const letGo = await holdUp();
  const first = one.prove();
  await until('the proof to read', async () => (await readers()).length === 1);
  assert.equal(await other.prove(), null);
  assert.equal(await one.prove(), null);
  assert((await other.provingSince()) !== null);
  await letGo();
  assert.equal((await first)?.books.balanced, true);
  assert.equal(await other.provingSince(), null);
  assert.equal(await verdicts(), 1);
});

test('one whose lease is over is taken over: what it still reads is ended, and it writes no verdict', async () => {
  const letGo = await holdUp();
  const first = one.prove();
  await until('the proof to read', async () => (await readers()).length === 1);
  const [frozen] = await readers();
  await leaseEnds();
  const next = other.prove();
  await until('the next proof to read, alone', async () => {
    const names = await readers();
    return names.length === 1 && names[0] !== frozen;
  });
  assert.equal(await first, null);
  await letGo();
  assert.equal((await next)?.books.balanced, true);
  assert.equal(await verdicts(), 1);
});

test('one that was frozen to the end of its lease writes nothing when it wakes up, even if nobody took over', async () => {
  const letGo = await holdUp();
  const first = one.prove();
  await until('the proof to read', async () => (await readers()).length === 1);
  await leaseEnds();
  await letGo();
  assert.equal(await first, null);
  assert.equal(await verdicts(), 0);
  assert.equal((await other.prove())?.books.balanced, true, 'the next one can');
});

test('who dies keeps it for half a minute at most, and one that fails lets it go at once', async () => {
  const letGo = await holdUp();
  const first = one.prove();
  await until('the proof to read', async () => (await readers()).length === 1);
  const [lease] = await database.sql<{ seconds: number }[]>`
    select extract(epoch from leased_until - clock_timestamp())::float8 as seconds from books_proof`;
  assert(lease !== undefined && lease.seconds > 0 && lease.seconds <= 30, String(lease?.seconds));
  // It may hear of it before this does.
  const fails = assert.rejects(first, { code: '57014' });
  await database.sql`
    select pg_cancel_backend(pid) from pg_stat_activity where application_name like 'farebox books proof %'`;
  await fails;
  await letGo();
  assert.equal((await other.prove())?.books.balanced, true);
});

test('a verdict begins when its proof got the lease, not when it asked for it', async () => {
  let beginMs = 0;
  // Held as whoever writes the verdict before this one down does.
  const { waits } = await second.begin(async (sql) => {
    await sql`update books_proof set leased_until = '-infinity'`;
    const waits = one.prove();
    await until('the proof to wait for the lease', async () => {
      const [row] = await database.sql<{ waiting: boolean }[]>`
        select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
          and query like '%update books_proof%' and pid <> pg_backend_pid()) as waiting`;
      return row?.waiting === true;
    });
    beginMs = Date.now();
    return { waits };
  });
  const verdict = await waits;
  assert(verdict !== null && verdict.startedAt.getTime() >= beginMs, verdict?.startedAt.toISOString());
});
