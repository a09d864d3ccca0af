/** Days of the ledger are closed in turn, once, and whatever is changed in them afterwards is found, against a real database. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { connectPools, endPools } from '../db/connection.ts';
import { sqlFunction } from '../db/functions.ts';
import { createWeeks } from '../db/weeks.ts';
import { ProofUnwanted, proveBooks } from './books.ts';
import { closableDay, closeDays, openDays } from './closed-days.ts';

const DAY_MS = 86_400_000;
/** Midnight of a day, ten days before the day of the database's clock. */
const FIRST_MS = (Math.floor(Date.now() / DAY_MS) - 10) * DAY_MS;
const dayOf = (n: number) => new Date(FIRST_MS + n * DAY_MS).toISOString().slice(0, 10);
/** The last day that can be closed: yesterday, or, in the first hour of a day, the one before. */
const LAST: readonly (string | null)[] = [dayOf(8), dayOf(9), dayOf(10)];
const CUSTOMER = 1_000n;
/** Transfers of some weeks before. */
const MANY = 20_000;

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
beforeEach(async () => {
  await database.sql`
    truncate ledger_transfers, ledger_days, ledger_day_moves, ledger_closed_balances, ledger_carried`;
  await database.sql`
    update ledger_days_head set open_day = null, digest = decode(repeat('00', 32), 'hex'), marked_at = '-infinity',
      marked_xid = '0'`;
  await database.sql`delete from ledger_accounts where not house`;
  await database.sql`insert into ledger_accounts (id, house) values (${String(CUSTOMER)}, false), (1001, false)`;
});
after(() => database.close());

interface Made {
  /** The day, counted from the first, and how far into it. */
  day: number;
  hours?: number;
  phase?: 1 | 2 | 3 | 4;
  micros?: number;
  id?: string;
  side?: 'debit' | 'credit';
  account?: bigint;
}

/** A transfer between the customer and the house, with its balances, as the ledger would have written it. */
async function moved({ day, hours = 12, phase = 1, micros = 100, id = randomUUID(), ...of }: Made) {
  const { side = 'credit', account = CUSTOMER } = of;
  const at = new Date(FIRST_MS + day * DAY_MS + hours * 3_600_000).toISOString();
  const [debit, credit] = side === 'debit' ? [account, 1n] : [4n, account];
  await database.sql`
    insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
    values (${String(account)}, ${id}, ${phase}, ${String(debit)}, ${String(credit)}, ${micros}, 'operator_grant', ${at})`;
  const [pending, posted] = [
    phase === 2 ? micros : phase > 2 ? -micros : 0,
    phase === 1 || phase === 3 ? micros : 0,
  ];
  await database.sql`
    update ledger_accounts set
      ${database.sql(`${side}s_pending`)} = ${database.sql(`${side}s_pending`)} + ${pending},
      ${database.sql(`${side}s_posted`)} = ${database.sql(`${side}s_posted`)} + ${posted}
    where id = ${String(account)}`;
  return id;
}

/** The last day that can be closed: asked until everything that was written has ended, on this server that others use. */
async function closable(): Promise<string | null> {
  const [at] = await database.sql<{ now: string }[]>`select clock_timestamp()::text as now`;
  for (;;) {
    const [head] = await database.sql<{ marked: boolean }[]>`
      select marked_at > ${at?.now ?? ''}::timestamptz as marked from ledger_days_head`;
    const day = await closableDay(database.patient);
    if (head?.marked === true && day !== null) return day;
    if (head?.marked === true) {
      const [free] = await database.sql<{ free: boolean }[]>`
        select pg_snapshot_xmin(pg_current_snapshot()) >= marked_xid as free from ledger_days_head`;
      if (free?.free === true) return closableDay(database.patient);
    }
  }
}

const close = async (last: string, wanted = () => true) => closeDays(database.patient, last, wanted);
const failed = async (reads: 'everything' | 'open days') => {
  const session = { name: 'a test', wanted: () => true };
  const { checks } = await proveBooks(database.patient, [], session, reads);
  return checks.flatMap(({ ok, finding }) => (ok ? [] : (finding ?? '')));
};

/** Two days with money on them, an empty one between them, and what was reserved on the first and taken on the third. */
async function someDays(): Promise<void> {
  await moved({ day: 0, micros: 1_000 });
  const held = await moved({ day: 0, side: 'debit', phase: 2, micros: 40 });
  await moved({ day: 2, side: 'debit', phase: 3, micros: 40, id: held });
  await moved({ day: 2, account: 1_001n, micros: 70 });
}

test('days close in turn with what was moved on them, an empty one too, and proofs go on from there', async () => {
  await someDays();
  assert.ok(LAST.includes(await closable()), 'an hour after its end a day can be closed');
  assert.deepEqual(await close(dayOf(2)), [dayOf(0), dayOf(1), dayOf(2)]);
  const moves = await database.sql<Record<string, unknown>[]>`
    select to_char(day, 'YYYY-MM-DD') as day, account_id, debits_pending, debits_posted, credits_pending, credits_posted
    from ledger_day_moves order by day, account_id`;
  assert.deepEqual(
    moves.map((row) => Object.values(row).map(String).join(' ')),
    [
      `${dayOf(0)} 1 0 0 40 0`,
      `${dayOf(0)} 4 0 1000 0 0`,
      `${dayOf(0)} 1000 40 0 0 1000`,
      `${dayOf(2)} 1 0 0 -40 40`,
      `${dayOf(2)} 4 0 70 0 0`,
      `${dayOf(2)} 1000 -40 40 0 0`,
      `${dayOf(2)} 1001 0 0 0 70`,
    ],
  );
  await moved({ day: 3, micros: 5 });
  assert.deepEqual([await failed('open days'), await failed('everything')], [[], []]);
  const session = { name: 'a test', wanted: () => true };
  const [open, whole] = [
    await proveBooks(database.patient, [], session, 'open days'),
    await proveBooks(database.patient, []),
  ];
  assert.deepEqual([open.closedTo, whole.closedTo], [dayOf(2), null]);
  assert.deepEqual([open.house, open.transfers], [whole.house, whole.transfers], 'both tell the same sums');
  assert.equal(whole.transfers, 5n);
});

test('no day closes while something of it is pending, and the days after it wait', async () => {
  await someDays();
  const pending = await moved({ day: 1, side: 'debit', phase: 2, micros: 3 });
  assert.equal(await closable(), dayOf(0));
  await moved({ day: 4, side: 'debit', phase: 4, micros: 3, id: pending });
  assert.ok(LAST.includes(await closable()));
});

test('what was moved on a day is read without the transfers of other weeks, however many they are', async () => {
  const before = 21;
  const id = (
    day: number,
  ) => `(lpad(to_hex(${FIRST_MS + day * DAY_MS}), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
    || substr(md5(n::text), 4, 15))::uuid`;
  const weeks = createWeeks(database);
  for (const day of [-before, 8]) await weeks.make(FIRST_MS + day * DAY_MS);
  for (const [day, count] of [
    [-before, MANY],
    [8, 20],
  ] as const)
    await database.patient.unsafe(`
      insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
      select ${CUSTOMER}, ${id(day)}, 1, 4, ${CUSTOMER}, 1, 'operator_grant', to_timestamp(${(FIRST_MS + day * DAY_MS) / 1_000})
      from generate_series(1, ${count}) n`);
  // The job, when the week before has ended.
  await weeks.make(FIRST_MS + (7 - before) * DAY_MS);
  for (const read of ['ledger_day_transfers', 'ledger_day_moved']) {
    const rest = read === 'ledger_day_transfers' ? ', true, null' : '';
    const looked = await database.patient.begin(async (transaction) => {
      const rows = async () => {
        const [row] = await transaction<{ rows: number }[]>`
          select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::integer as rows
          from pg_stat_xact_user_tables where relname ^@ 'ledger_transfers'`;
        return row?.rows ?? Number.NaN;
      };
      // The session may not have handed over yet what it counted before.
      const earlier = await rows();
      await transaction.unsafe(`select * from ${sqlFunction(read)}('${dayOf(8)}'${rest})`);
      return (await rows()) - earlier;
    });
    assert(looked >= 20 && looked < 1_000, `${read} looked at ${looked} rows`);
  }
});

test('an empty ledger has no day to close', async () => {
  assert.equal(await closable(), null);
  assert.deepEqual(await close(dayOf(9)), []);
  assert.equal(await openDays(database.sql), null);
  assert.deepEqual([await failed('open days'), await failed('everything')], [[], []]);
});

test('a day is not closed while somebody may still write into it', async () => {
  await someDays();
  const other = connectPools(database.url, 2);
  const [held, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const late = other.patient.begin(async (transaction) => {
    await transaction`set local idle_in_transaction_session_timeout = 0`;
    await transaction`insert into ledger_closed_balances values (9, 0, 0, 0, 0)`;
    begun.resolve();
    await held.promise;
  });
  await begun.promise;
  for (let asked = 0; asked < 3; asked += 1) assert.equal(await closableDay(database.patient), null);
  held.resolve();
  await late;
  await database.sql`delete from ledger_closed_balances`;
  assert.ok(LAST.includes(await closable()));
  await endPools(other, 1);
});

test('processes that close at once close each day once, and one that dies between two steps has closed none', async () => {
  await someDays();
  const dying = connectPools(database.url, 2);
  await assert.rejects(
    dying.patient.begin(async (transaction) => {
      const name = transaction(sqlFunction('ledger_close_day'));
      const [row] = await transaction<{ day: Date }[]>`select ${name}(${dayOf(9)}::date, false) as day`;
      assert.ok(row?.day);
      await transaction`select pg_terminate_backend(pg_backend_pid())`;
    }),
  );
  await endPools(dying, 1);
  assert.equal(await openDays(database.sql), null);
  let days = 0;
  assert.deepEqual(await close(dayOf(9), () => ++days <= 1), [dayOf(0)], 'given up after one day');
  await Promise.all([close(dayOf(9)), close(dayOf(9)), close(dayOf(9))]);
  await close(dayOf(9));
  const written = await database.sql<{ day: string }[]>`
    select to_char(day, 'YYYY-MM-DD') as day from ledger_days order by day`;
  assert.deepEqual(
    written.map(({ day }) => day),
    Array.from({ length: 10 }, (_, n) => dayOf(n)),
  );
  assert.deepEqual([await failed('open days'), await failed('everything')], [[], []]);
});

test('a clock that was put back closes nothing until it has caught up', async () => {
  await someDays();
  const last = (await closable()) ?? '';
  await close(last);
  // As if those days had been closed by a clock that was ahead: every day that it names now is closed.
  assert.equal(await closable(), null);
  assert.deepEqual(await close(last), []);
  await database.sql`update ledger_days_head set marked_at = now() + interval '20 days', marked_xid = '0'`;
  assert.equal(
    await closableDay(database.patient),
    null,
    'a mark of a clock that was ahead closes no day to come',
  );
});

const TAMPERING: { what: string; how: string; whole: RegExp; open?: RegExp }[] = [
  {
    what: 'an amount of a closed day and its balance',
    how: `update ledger_transfers set amount_micros = 1001 where amount_micros = 1000;
      update ledger_accounts set credits_posted = credits_posted + 1 where id = 1000`,
    whole: /closed day .* was closed with 2 transfers; 2 bear its time now/,
    open: /account 1000 holds/,
  },
  {
    what: 'the note of a transfer, which moves nothing',
    how: `update ledger_transfers set note = 'for a friend' where amount_micros = 1000`,
    whole: /closed day .* was closed with 2 transfers/,
  },
  {
    what: 'a transfer that is taken out',
    how: `delete from ledger_transfers where amount_micros = 70`,
    whole: /closed with 2 transfers; 1 bear/,
  },
  {
    what: 'what an account moved on a closed day, and its closed balance',
    how: `update ledger_day_moves set credits_posted = credits_posted + 1 where account_id = 1001;
      update ledger_closed_balances set credits_posted = credits_posted + 1 where account_id = 1001;
      update ledger_accounts set credits_posted = credits_posted + 1 where id = 1001`,
    whole: /the moves of the closed day .* were changed/,
    open: /customers hold/,
  },
  {
    what: 'a closed balance',
    how: `update ledger_closed_balances set debits_posted = debits_posted + 1 where account_id = 1000`,
    whole: /closed balance of account 1000/,
    open: /account 1000 holds/,
  },
  {
    what: 'what a day was closed with',
    how: `update ledger_days set transfers = 3 where transfers = 2`,
    whole: /the digest of the closed day/,
    open: /the digest of the closed day/,
  },
  {
    what: 'the last closed day, taken out',
    how: `delete from ledger_days where day = (select max(day) from ledger_days)`,
    whole: /the digest of the closed day/,
    open: /the digest of the closed day/,
  },
  {
    what: 'all closed days, taken out',
    how: `delete from ledger_days`,
    whole: /the digest of the closed days/,
    open: /the digest of the closed days/,
  },
];

for (const { what, how, whole, open } of TAMPERING)
  test(`found by the whole proof${open === undefined ? '' : ' and by that of open days'}: ${what}`, async () => {
    await someDays();
    await close(dayOf(2));
    await database.sql.unsafe(how);
    assert.match((await failed('everything')).join('\n'), whole);
    if (open !== undefined) assert.match((await failed('open days')).join('\n'), open);
  });

test('a transfer that bears the time of a closed day is found: by its balance at once, and by its day', async () => {
  await someDays();
  await close(dayOf(5));
  await moved({ day: 1, micros: 9 });
  assert.match((await failed('open days')).join('\n'), /account 1000 holds/);
  assert.match(
    (await failed('everything')).join('\n'),
    new RegExp(`closed day ${dayOf(1)} was closed with 0 transfers; 1`),
  );
});

test('days whose transfers stand in files are proved by what is carried of them, and nothing may come back into them', async () => {
  await someDays();
  const held = await moved({ day: 2, side: 'debit', phase: 2, micros: 6 });
  await moved({ day: 3, side: 'debit', phase: 3, micros: 6, id: held });
  await close(dayOf(3));
  const before = await proveBooks(database.patient, []);
  await database.sql`
    insert into ledger_carried (week, day, account_id, transfers, debits_pending, debits_posted, credits_pending, credits_posted)
    select 'w20200106', m.day, m.account_id, (
      select count(*) from ledger_transfers t where t.account_id = m.account_id and (t.created_at at time zone 'UTC')::date = m.day
    ), m.debits_pending, m.debits_posted, m.credits_pending, m.credits_posted from ledger_day_moves m`;
  await database.sql`delete from ledger_transfers`;
  assert.deepEqual([await failed('open days'), await failed('everything')], [[], []]);
  const { house, transfers, customersMicros } = await proveBooks(database.patient, []);
  assert.deepEqual(
    { house, transfers, customersMicros },
    {
      house: before.house,
      transfers: before.transfers,
      customersMicros: before.customersMicros,
    },
  );
  await moved({ day: 1, micros: 9 });
  assert.match((await failed('everything')).join('\n'), new RegExp(`closed day ${dayOf(1)} was closed`));
});

test('calls that were begun and released on one day leave no trace in its digest, and others do', async () => {
  await someDays();
  const released = await moved({ day: 0, side: 'debit', phase: 2, micros: 9 });
  await moved({ day: 0, hours: 13, side: 'debit', phase: 4, micros: 9, id: released });
  const later = await moved({ day: 0, side: 'debit', phase: 2, micros: 7, account: 1_001n });
  await moved({ day: 1, side: 'debit', phase: 4, micros: 7, id: later, account: 1_001n });
  const only = await moved({ day: 3, side: 'debit', phase: 2, micros: 5, account: 1_001n });
  await moved({ day: 3, hours: 13, side: 'debit', phase: 4, micros: 5, id: only, account: 1_001n });
  await close(dayOf(4));
  const before = await proveBooks(database.patient, []);
  await database.sql`delete from ledger_transfers where id in (${released}, ${only})`;
  assert.deepEqual([await failed('open days'), await failed('everything')], [[], []]);
  const { transfers } = await proveBooks(database.patient, []);
  assert.equal(transfers, before.transfers);
  await database.sql`delete from ledger_transfers where id = ${later}`;
  assert.match((await failed('everything')).join('\n'), new RegExp(`closed day ${dayOf(0)} was closed with`));
});

test('a proof of open days gives up when somebody closes one meanwhile', async () => {
  await someDays();
  await close(dayOf(0));
  // Between two steps: the proof asks whether it is still wanted, and its next statement waits for the only connection.
  const one = connectPools(database.url, 2, {});
  let steps = 0;
  const session = {
    name: 'a test',
    wanted() {
      if (++steps === 2)
        void one.sql`select ${one.sql(sqlFunction('ledger_close_day'))}(${dayOf(1)}::date, false)`.execute();
      return true;
    },
  };
  await assert.rejects(proveBooks(one.sql, [], session, 'open days'), ProofUnwanted);
  await endPools(one, 1);
});
