/**
 * Days of the books are closed on a database that Citus spreads: once nothing that was begun before can still be committed on any server.
 * Proofs go on from there, and what is changed in a closed day is found, wherever it lies.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import {
  connectDatabase,
  connectPools,
  type Database,
  endPools,
  type Pools,
} from '../../../../packages/core/src/db/connection.ts';
import { sqlFunction } from '../../../../packages/core/src/db/functions.ts';
import { booksOf } from '../../../../packages/core/src/declared.ts';
import { dropReleased } from '../../../../packages/core/src/history/drop-released.ts';
import { proveBooks } from '../../../../packages/core/src/ledger/books.ts';
import { closableDay, closeDays, openDays } from '../../../../packages/core/src/ledger/closed-days.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { BY_TIME } from '../../../../packages/core/src/ledger/spread-books.ts';
import { StillWriting } from '../../../../packages/core/src/ledger/writers-ended.ts';
import {
  type BooksVerdicts,
  createBooksVerdicts,
} from '../../../../packages/core/src/operator/books-verdict.ts';
import { DECLARED } from '../../src/app.ts';
import { keysOnBothWorkers, openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { giveBackPrice, PRICE, sellCall } from './citus-money.fixture.ts';
import { accountOf } from './money.fixture.ts';
import { until } from './until.fixture.ts';

const BUCKETS = 16;
const GRANT = usdToMicros('10');
const DAY_MS = 86_400_000;
/** Midnight of a day, ten days before the day of the database's clock. */
const FIRST_MS = (Math.floor(Date.now() / DAY_MS) - 10) * DAY_MS;
const dayOf = (n: number) => new Date(FIRST_MS + n * DAY_MS).toISOString().slice(0, 10);
const noonOf = (n: number) => FIRST_MS + (n + 0.5) * DAY_MS;
/** The last day that can be closed: yesterday, or, in the first hour of a day, the one before. */
const LAST: readonly (string | null)[] = [dayOf(8), dayOf(9), dayOf(10)];
const SESSION = { name: 'a test', wanted: () => true };

interface Account {
  id: bigint;
  bucket: number;
  /** The worker's own statements, on its own tables. */
  port: number;
  accounts: bigint;
  transfers: bigint;
}

let database: SpreadDatabase;
let pools: Pools;
let verdicts: BooksVerdicts;
/** On both workers, one on each. */
let one: Account;
let other: Account;
before(async () => {
  if (withoutCitus !== false) return;
  database = await openSpreadDatabase();
  pools = await database.spread(4);
  verdicts = createBooksVerdicts({ ...pools, books: booksOf(DECLARED) }, Date.now);
  const keys = await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT });
  const [first, second] = await Promise.all(
    keys.map(async (key) => placeOf(await accountOf(pools.sql, key))),
  );
  assert(first !== undefined && second !== undefined);
  [one, other] = [first, second];
});
after(async () => {
  await database?.close();
});

async function placeOf(id: bigint): Promise<Account> {
  const [account] = await pools.sql<Account[]>`
    select a.id, a.bucket, n.nodeport as port, p.shardid as accounts,
           get_shard_id_for_distribution_column('ledger_transfers', a.bucket) as transfers
    from (select id, bucket from ledger_accounts where id = ${String(id)} offset 0) a
    join pg_dist_placement p on p.shardid = get_shard_id_for_distribution_column('ledger_accounts', a.bucket)
    join pg_dist_node n using (groupid)`;
  assert(account !== undefined);
  return account;
}

/** Sells a call on a day, which ends on it or on a later one. */
async function sellOn(
  day: number,
  account: Account,
  { endsOn = day, capture = true }: { endsOn?: number; capture?: boolean } = {},
): Promise<string> {
  let nowMs = noonOf(day);
  const ends = async () => {
    nowMs = noonOf(endsOn) + 1_000;
  };
  return sellCall(pools, account, ends, { nowMs: () => nowMs, capture });
}

/** The worker of an account, past the coordinator. */
async function onWorker<T>(account: Account, ask: (sql: Database) => Promise<T>): Promise<T> {
  const at = new URL(database.url);
  at.port = String(account.port);
  const sql = connectDatabase(String(at), 1);
  return ask(sql).finally(() => sql.end({ timeout: 1 }));
}

/** Prepares a grant of a day on the worker of an account: so a coordinator leaves it that is killed at the commit of both. */
function prepareGrant(account: Account, day: number, gid: string): Promise<unknown> {
  const at = new Date(noonOf(day)).toISOString();
  return onWorker(account, (sql) =>
    sql.unsafe(`
      begin;
      insert into ledger_transfers_${account.transfers} (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
      values (${account.bucket}, ${account.id}, '${randomUUID()}', 1, 4, ${account.id}, ${PRICE}, 'operator_grant', '${at}');
      update ledger_accounts_${account.accounts} set credits_posted = credits_posted + ${PRICE} where bucket = ${account.bucket} and id = ${account.id};
      prepare transaction '${gid}'`),
  );
}

const findings = async (reads: 'everything' | 'open days') => {
  const { checks } = await proveBooks(pools.patient, [], SESSION, reads);
  return checks.flatMap(({ finding }) => finding ?? []).join('\n');
};

test('no day is closed while something that was begun on a worker before may still be committed, and whoever asks is told', {
  skip: withoutCitus,
}, async () => {
  for (const account of [one, other]) await sellOn(0, account);
  await prepareGrant(one, 0, 'farebox_test_late');
  try {
    await assert.rejects(
      verdicts.proveIfDue(),
      new RegExp(
        `no day .* was closed: a transaction of 127.0.0.1:${one.port} has not ended.*farebox_test_late`,
      ),
    );
    const proved = await verdicts.last();
    assert.deepEqual(
      proved?.books.checks.filter(({ ok }) => !ok),
      [],
      'the books are proved all the same',
    );
    assert.equal(await openDays(pools.sql), null);
  } finally {
    await onWorker(one, (sql) => sql`commit prepared 'farebox_test_late'`);
  }
  assert.ok(LAST.includes(await closableDay(pools.patient)));
});

test('a commit of the coordinator and a worker is waited for on both, though it began on the worker last', {
  skip: withoutCitus,
}, async () => {
  const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const writing = pools.sql.begin(async (transaction) => {
    await transaction`set local idle_in_transaction_session_timeout = 0`;
    await transaction`insert into ledger_closed_balances values (9, 0, 0, 0, 0)`;
    begun.resolve();
    await held.promise;
  });
  await begun.promise;
  const closable = closableDay(pools.patient).then(
    (day) => day,
    (error: unknown) => error,
  );
  await until('it to wait for the coordinator', async () => {
    const waiting = await database.sql`
      select 1 from pg_stat_activity where query like '%' || 'pg_snapshot_' || 'xmin%'`;
    return waiting.length > 0;
  });
  await prepareGrant(one, 1, 'farebox_test_half');
  held.resolve();
  await writing;
  try {
    const error = await closable;
    assert(error instanceof StillWriting, String(error));
    assert.match(error.message, /farebox_test_half/);
  } finally {
    await onWorker(one, (sql) => sql`commit prepared 'farebox_test_half'`);
  }
  await database.sql`delete from ledger_closed_balances`;
});

test('while a worker is away no day is closed, and the other sells', { skip: withoutCitus }, async () => {
  const last = await closableDay(pools.patient);
  assert(last !== null);
  const [worker] = database.workers;
  assert(worker !== undefined);
  worker.kill();
  try {
    await assert.rejects(
      closableDay(pools.patient),
      (error) => error instanceof StillWriting && /127\.0\.0\.1:\d+ does not answer/.test(error.message),
    );
    await assert.rejects(closeDays(pools.patient, last, () => true));
    assert.equal(await openDays(pools.sql), null);
    const sold = await Promise.allSettled([one, other].map((account) => sellOn(1, account)));
    assert.equal(sold.filter(({ status }) => status === 'fulfilled').length, 1);
  } finally {
    await worker.start();
  }
});

test('days close in turn, once, a process that dies at it has closed none, and proofs read open days alone', {
  skip: withoutCitus,
}, async () => {
  const ledger = createLedger(pools, () => noonOf(3), { accountBuckets: BUCKETS });
  await sellOn(1, one, { endsOn: 2 });
  for (const account of [one, other]) await sellOn(2, account, { capture: false });
  await giveBackPrice(ledger, other.id, await sellOn(1, other));
  const name = sqlFunction('ledger_close_day');
  const dying = connectPools(database.url, 2);
  await assert.rejects(
    dying.patient.begin(async (transaction) => {
      const [row] = await transaction<{ day: string | null }[]>`
        select ${transaction(name)}(${dayOf(9)}::date, true)::text as day`;
      assert.equal(row?.day, dayOf(0));
      await transaction`select pg_terminate_backend(pg_backend_pid())`;
    }),
  );
  await endPools(dying, 1);
  assert.equal(await openDays(pools.sql), null);
  // As it was closed before the database was spread.
  await database.sql`select ${database.sql(name)}(${dayOf(0)}::date, false)`;
  const close = () => closeDays(pools.patient, dayOf(2), () => true);
  await Promise.all([close(), close(), close()]);
  await close();
  const proved = await verdicts.prove();
  assert.deepEqual(
    proved?.books.checks.filter(({ ok }) => !ok),
    [],
  );
  assert.deepEqual([proved?.notClosed, proved?.books.closedTo], [null, dayOf(2)]);
  const days = await database.sql<{ day: string; by_account: boolean }[]>`
    select day::text, by_account from ledger_days order by day`;
  assert.ok(LAST.includes(days.at(-1)?.day ?? null));
  assert.deepEqual(
    days.map(({ day, by_account }) => [day, by_account]),
    days.map((_, n) => [dayOf(n), n > 0]),
  );
  const moves = await database.sql<{ debits_pending: bigint; debits_posted: bigint }[]>`
    select debits_pending, debits_posted from ledger_day_moves
    where account_id = ${String(one.id)} and day in (${dayOf(1)}, ${dayOf(2)}) order by day`;
  assert.deepEqual(
    moves.map((moved) => [moved.debits_pending, moved.debits_posted]),
    [
      [PRICE, moves[0]?.debits_posted],
      [-PRICE, PRICE],
    ],
    'what is taken on a later day belongs to that day',
  );
  await sellOn(11, one);
  const [open, whole] = [await verdicts.prove(), await verdicts.prove('everything')];
  assert(open !== null && whole !== null);
  assert.deepEqual(
    [open, whole].map(({ books }) => books.checks.filter(({ ok }) => !ok)),
    [[], []],
  );
  assert.equal(open.books.closedTo, days.at(-1)?.day);
  const sums = ({ house, customersMicros, reservedMicros, transfers, calls }: typeof open.books) => ({
    house,
    customersMicros,
    reservedMicros,
    transfers,
    calls,
  });
  assert.deepEqual(sums(open.books), sums(whole.books));
});

/** A change and its undoing, with what the whole proof finds of it, and what that of open days finds. */
const tampering = (): [what: string, how: string, back: string, whole: RegExp, open: RegExp][] => {
  const grantOf = (day: number) =>
    `bucket = ${one.bucket} and account_id = ${one.id} and code = 'operator_grant' and created_at = '${new Date(noonOf(day)).toISOString()}'`;
  const holds = (micros: number, { bucket, id }: Account = one) =>
    `update ledger_accounts set credits_posted = credits_posted + ${micros} where bucket = ${bucket} and id = ${id}`;
  const amount = (day: number, micros: number) =>
    `update ledger_transfers set amount_micros = amount_micros + ${micros} where ${grantOf(day)}; ${holds(micros)}`;
  const note = (day: number, text: string) =>
    `update ledger_transfers set note = ${text} where ${grantOf(day)}`;
  const closed = (account: bigint, micros: number) =>
    `update ledger_closed_balances set credits_posted = credits_posted + ${micros} where account_id = ${account}`;
  const written = (day: number, more: number) =>
    `update ledger_days set transfers = transfers + ${more} where day = '${dayOf(day)}'`;
  const wasClosed = (day: number) => new RegExp(`closed day ${dayOf(day)} was closed with \\d+ transfers`);
  const planted = `bucket = ${other.bucket} and account_id = ${other.id} and id = '${randomUUID()}'`;
  const values = planted.replaceAll(/\w+ = /g, '').replaceAll(' and ', ', ');
  return [
    ['an amount and its balance', amount(1, 1), amount(1, -1), wasClosed(1), /account \d+ holds/],
    ['a note, which moves nothing', note(1, `'a friend'`), note(1, 'null'), wasClosed(1), /^$/],
    [
      'a note of a day from before the database was spread',
      note(0, `'a friend'`),
      note(0, 'null'),
      wasClosed(0),
      /^$/,
    ],
    [
      'a transfer that comes late',
      `insert into ledger_transfers (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
       values (${values}, 1, 4, ${other.id}, 7, 'operator_grant', '${new Date(noonOf(4)).toISOString()}'); ${holds(7, other)}`,
      `delete from ledger_transfers where ${planted}; ${holds(-7, other)}`,
      wasClosed(4),
      new RegExp(`account ${other.id} holds`),
    ],
    [
      'a closed balance of the house',
      closed(1n, 1),
      closed(1n, -1),
      /closed balance of account 1 /,
      /customers hold/,
    ],
    [
      'what a day was closed with',
      written(2, 1),
      written(2, -1),
      /digest of the closed day/,
      /digest of the closed day/,
    ],
  ];
};

test('the transfers of a day are found by their time on each server', { skip: withoutCitus }, async () => {
  const plan = await pools.patient.begin(async (transaction) => {
    await transaction.unsafe(BY_TIME);
    return transaction<{ 'QUERY PLAN': string }[]>`
      explain select * from ledger_transfers where created_at >= now() - interval '1 day' and created_at < now()`;
  });
  const steps = plan.map((row) => row['QUERY PLAN']).join('\n');
  assert.match(steps, /Bitmap Index Scan/);
  assert.doesNotMatch(steps, /Seq Scan/);
});

test('released calls of closed days leave once sales are counted, and the days stand', {
  skip: withoutCitus,
}, async () => {
  const drop = () => dropReleased(pools.patient, () => Date.now() + 40 * DAY_MS);
  const held = () => database.sql`select 1 from ledger_transfers where phase = 4`;
  assert.deepEqual([await drop(), (await held()).length], [0, 2]);
  await database.sql`update sales_folded set calls_to = now()`;
  assert.deepEqual([await drop(), (await held()).length], [2, 0]);
  assert.deepEqual([await findings('open days'), await findings('everything')], ['', '']);
});

test('what is changed in a closed day is found by the whole proof, and what changes a balance by that of open days too', {
  skip: withoutCitus,
}, async () => {
  for (const [what, how, back, whole, open] of tampering()) {
    await database.sql.unsafe(how);
    assert.match(await findings('everything'), whole, what);
    assert.match(await findings('open days'), open, what);
    await database.sql.unsafe(back);
  }
  assert.deepEqual([await findings('open days'), await findings('everything')], ['', '']);
});
