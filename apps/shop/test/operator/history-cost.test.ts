/**
 * What asks for a few calls looks each up by its key, in whatever week it lies: planned as a join with all calls, it would read every week
 * that there has been. Cost is counted in rows that the database looked at, which is the same on every machine.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import {
  connectPools,
  endPools,
  type Pools,
  type Transaction,
} from '../../../../packages/core/src/db/connection.ts';
import { sqlFunction } from '../../../../packages/core/src/db/functions.ts';
import { createWeeks } from '../../../../packages/core/src/db/weeks.ts';
import { dropReleased } from '../../../../packages/core/src/history/drop-released.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { accountingLines } from '../../../../packages/core/src/operator/accounting.ts';
import { OPERATOR_BOOKS } from '../../../../packages/core/src/operator/books-rules.ts';
import { overviewOf } from '../../../../packages/core/src/operator/overview.ts';
import { FollowedCalls } from '../../../../packages/core/src/paid-call/followed-calls.ts';
import { CALL_BOOKS } from '../../../../packages/core/src/paid-call/inside/books-rules.ts';
import { createCallStore } from '../../../../packages/core/src/paid-call/inside/calls.ts';
import { createSettlementStore } from '../../../../packages/core/src/paid-call/inside/settlement-store.ts';
import { SHARE_RULES } from '../../../../packages/core/src/paid-call/inside/share-rules.ts';
import { measureServices } from '../../../../packages/core/src/paid-call/service-figures.ts';
import {
  planRecovery,
  type RecoverParts,
  type RecoveryPlan,
} from '../../../../packages/core/src/recovery/recover.ts';
import { SOLD_KEY_BOOKS } from '../../../../packages/core/src/sold-keys/books-rules.ts';
import { SoldKeys } from '../../../../packages/core/src/sold-keys/sold-keys.ts';
import { TOPUP_BOOKS } from '../../../../packages/core/src/topup/books-rules.ts';
import { createTopups } from '../../../../packages/core/src/topup/topups.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const WEEKS = 8;
const OF_A_WEEK = 2_500;
const CALLS = WEEKS * OF_A_WEEK;
/** Calls that are open, of each of the two ways to pay. The planner thinks of a hundred. */
const OPEN = 500;
const NOW_MS = Date.now();
/** The first Monday, in UTC: the last of the weeks has ended. */
const FIRST_MS = Math.floor((NOW_MS - 4 * DAY_MS) / WEEK_MS) * WEEK_MS + 4 * DAY_MS - WEEKS * WEEK_MS;
const NETWORK = 'eip155:8453';
const PAYER = `0x${'ab'.repeat(20)}`;
const CUSTOMER = 1_001n;

let database: TestDatabase;
/** Of one connection, which can be told to hand over its counts. */
let pools: Pools;
before(async () => {
  database = await openTestDatabase();
  pools = connectPools(database.url, 2);
  await leaveHistory();
});
after(async () => {
  await Promise.all([pools && endPools(pools, 1), database?.close()]);
});

/**
 * Eight weeks of calls, every other one paid by a chain. The first ones of these weeks are open still, and everything that is said of an
 * open call is said of these.
 */
async function leaveHistory(): Promise<void> {
  const { patient } = database;
  const weeks = createWeeks(database);
  for (let week = 0; week < WEEKS; week++) await weeks.make(FIRST_MS + week * WEEK_MS);
  const ms = `(${FIRST_MS} + n::bigint * ${(WEEKS * WEEK_MS) / CALLS})`;
  const id = `(lpad(to_hex(${ms}), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid`;
  const at = `to_timestamp(${ms} / 1000.0)`;
  const isOnChain = 'n % 2 = 0';
  const isOpen = `n < ${2 * OPEN}`;
  // The next ones of the customer: their answers were lost.
  const isLost = `n >= ${2 * OPEN} and n < ${4 * OPEN} and not (${isOnChain})`;
  const account = `case when ${isOnChain} then 5 else ${CUSTOMER} end`;
  const from = `from generate_series(0, ${CALLS - 1}) n`;
  const [replica] = await patient<{ id: bigint }[]>`
    insert into replicas (started_at, seen_at, ended_at) values (now(), now(), now()) returning id`;
  for (const insert of [
    `insert into ledger_accounts (id, house) values (${CUSTOMER}, false)`,
    `insert into calls (account_id, id, state, rail, service, price_micros, created_at, begun_at, expires_at, finished_at, holder, fingerprint)
      select ${account}, ${id}, case when ${isOpen} then case when ${isOnChain} then 3 else 0 end else 1 end,
        case when ${isOnChain} then 'x402' else 'credits' end, 'ping', 1000, ${at}, ${at}, ${at}, ${at}, ${replica?.id}, '\\x00' ${from}`,
    `insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
      select ${account}, ${id}, phase, ${account}, case when ${isOnChain} then 2 else 1 end, 1000, 'call', ${at}
      ${from}, (values (2), (3)) as phases (phase) where phase = 2 or not ${isOpen}`,
    `insert into settlements (account_id, call_id, rail, network, asset, payer, pay_to, amount_units, evidence, answered,
        state, dead_after, lease_until, next_at, transaction, created_at, settled_at, final_at)
      select 5, ${id}, 'x402', '${NETWORK}', 'usdc', case when ${isOpen} then '${PAYER}' else 'p' || n end, 'us', 1000, '{}', true,
        case when ${isOpen} then 0 else 1 end, ${at}, ${at}, ${at}, 'tx' || n, case when ${isOpen} then now() - interval '1 hour' else ${at} end, ${at},
        case when not ${isOpen} then ${at} end ${from} where ${isOnChain}`,
    `insert into refunds (account_id, call_id, network, asset, payee, amount_micros, reason, created_at, next_at)
      select 5, ${id}, '${NETWORK}', 'usdc', '${PAYER}', 1000, 'late', ${at}, ${at} ${from} where ${isOpen} and ${isOnChain}`,
    `insert into topups (call_id, account_id, amount_micros, created_at)
      select ${id}, ${CUSTOMER}, 1000, now() ${from} where ${isOpen} and ${isOnChain}`,
    `insert into sold_keys (call_id, payer_account, key_lookup, key_digest, key_prefix, refund_id, amount_micros, sealed_key, created_at)
      select ${id}, 5, n, sha256('${PAYER}'), 'p', gen_random_uuid(), 1000, 'sealed', now() ${from} where ${isOpen} and ${isOnChain}`,
    `insert into api_keys (account_id, lookup, digest, prefix, kind, created_at)
      values (${CUSTOMER}, 0, sha256('${PAYER}'), 'p', 'paid', now())`,
    `insert into call_answers (account_id, id, expires_at, status, headers, body)
      select ${account}, ${id}, case when ${isOpen} and ${isOnChain} then ${at} else now() + interval '1 day' end, 200, '{}', '' ${from}`,
    `insert into followed_calls (account_id, call_id, key_id, fingerprint, delivery, state, expires_at)
      select ${account}, ${id}, k.id, '\\x00', gen_random_uuid(), 1, case when ${isOpen} then ${at} else now() + interval '1 day' end
      from generate_series(0, ${CALLS - 1}) n, api_keys k where not (${isOnChain}) and (${isOpen} or ${isLost})`,
    `insert into call_shares (account_id, call_id, beneficiary, amount_micros, state, due_micros, set_aside_at)
      select ${account}, ${id}, 1, 10, 1, 10, ${at} ${from} where ${isLost}`,
    `insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
      select 13, call_id, 1, 1, 13, 10, 'share', set_aside_at, 'share of call ' || call_id from call_shares`,
    // One after the other: each act follows the one before it. Its transfer lies in none of the weeks, as it might by chance.
    `do $$ declare lost record; begin
      for lost in select account_id, call_id from call_shares union all select account_id, call_id from refunds loop
        insert into operator_acts (id, at, actor, act, account_id, call_id, amount_micros, reason, transfer_id, idempotency_digest, request_digest)
        values (gen_random_uuid(), now(), 'op', case lost.account_id when 5 then 'refund_payment' else 'refund_call' end, lost.account_id,
          lost.call_id, 1000, 'late', ('f' || substr(gen_random_uuid()::text, 2))::uuid, sha256(lost.call_id::text::bytea), sha256('late'));
      end loop;
    end $$`,
    `insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
      select account_id, transfer_id, 1, 1, account_id, 1000, 'operator_refund', now() from operator_acts where account_id <> 5`,
    `insert into free_calls (account_id, call_id, root_buyer, service, day)
      select ${account}, ${id}, 'b', 'ping', current_date ${from} where ${isOpen}`,
    `insert into card_orders (id, kind, state, amount_micros, credit_micros, created_at, expires_at)
      select gen_random_uuid(), 'checkout', 2, 1000, 1000, now(), now() from generate_series(1, ${OF_A_WEEK})`,
    'insert into calls_left_open select account_id, id from calls where state = 0',
    'insert into sales_open select account_id, id from calls where state in (0, 3)',
    'update calls_open_since set begun_at = now()',
    'update sales_folded set calls_to = now(), transfers_to = now()',
  ])
    await patient.unsafe(insert);
  // The job, when each week has ended.
  for (let week = 1; week <= WEEKS; week++) await weeks.make(FIRST_MS + week * WEEK_MS);
  await patient`vacuum analyze`;
}

/** How many rows something looks at. @param tables whose names match; not given: those of calls, of their transfers and of their answers */
const rowsOf = async (work: () => Promise<unknown>, tables = '^(calls|ledger_transfers|call_answers)_w') =>
  (await costOf(work, tables)).rows;

/** What something costs: the rows that it looks at, and how often it asks a table or an index. */
async function costOf(
  work: () => Promise<unknown>,
  tables: string,
): Promise<{ rows: number; scans: number }> {
  const looked = async () => {
    await pools.sql`select pg_stat_force_next_flush()`;
    const [row] = await database.sql<{ rows: number; scans: number }[]>`
      select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::integer as rows,
             sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::integer as scans
      from pg_stat_user_tables where relname ~ ${tables}`;
    return row ?? assert.fail();
  };
  const earlier = await looked();
  await work();
  const later = await looked();
  return { rows: later.rows - earlier.rows, scans: later.scans - earlier.scans };
}

const nowMs = () => NOW_MS;
/** Nothing is due, so nothing of this is asked. */
const notAsked = (() => assert.fail('nothing is due')) as never;
const length = async (rows: Promise<readonly unknown[]>) => (await rows).length;
const sections = {
  notes: [],
  read: () => assert.fail('it has snapshots alone'),
  snapshot: <T>(_: string, read: (on: Transaction) => Promise<T>) => pools.sql.begin(read) as Promise<T>,
};

/** What asks, and what it is to find. Each row that it finds may be looked up a few times. */
const QUESTIONS: [string, ask: () => Promise<unknown>, finds: unknown][] = [
  ['the gauge of reserved money', () => calls().reservedMicros(), BigInt(OPEN * 1_000)],
  ['calls whose time is over', () => length(calls().expired(2 * OPEN)), OPEN],
  ['calls of processes that have ended', () => length(calls().heldByEnded(2 * OPEN)), OPEN],
  [
    'payments with a chain',
    () => length(settlements().leaseDue(10, DAY_MS, { network: NETWORK, what: 'undecided' })),
    10,
  ],
  ['payments with any chain', () => length(settlements().leaseDue(1_000, DAY_MS)), OPEN - 10],
  ['refunds that are owed', () => length(settlements().leaseDueRefunds(1_000, DAY_MS)), OPEN],
  ['what a payer bought', () => settlements().boughtBy(5n, PAYER, 'ping', Buffer.from([1])), null],
  ['top-ups that are not over', () => topups().finish(), 0],
  ['sold keys that are not over', () => soldKeys().finish(), 0],
  [
    'an answer that somebody lost',
    async () => {
      const call = { id: randomUUID(), accountId: CUSTOMER, keyId: 1n, fingerprint: Buffer.from([0]) };
      const { lost } = await followed().begin({
        ...call,
        request: null,
        longestMs: DAY_MS,
        cancelled: notAsked,
      });
      return lost !== null;
    },
    true,
  ],
  ['calls whose answer nobody takes over', () => followed().dropExpired(1_000), OPEN],
  ['answers that nobody may ask for', () => calls().dropExpiredAnswers(1_000), OPEN],
  [
    'the overview',
    async () => {
      const options = { days: 90, creditServices: [], trialBudgetMicrosPerDay: null, nowMs: NOW_MS };
      const { unfinished } = await overviewOf(sections, options);
      return (unfinished?.settlements as { count?: number } | undefined)?.count;
    },
    OPEN,
  ],
  [
    'the totals of calls for the books of open days',
    async () => {
      const [row] = await pools.sql.unsafe<{ open: bigint }[]>(CALL_BOOKS.totalsOfOpenDays?.calls ?? '');
      return row?.open;
    },
    BigInt(2 * OPEN),
  ],
];
const calls = () => createCallStore(pools, { nowMs, answerTtlMs: DAY_MS });
const settlements = () => createSettlementStore(pools.sql, nowMs, { answersLastMs: DAY_MS });
const followed = () => new FollowedCalls(pools, { nowMs, holder: () => null });
const soldKeys = () =>
  new SoldKeys(pools.sql, {
    ledger: createLedger(pools, nowMs),
    keys: notAsked,
    seal: notAsked,
    report: notAsked,
    newCardMicrosPerDay: null,
    nowMs,
  });
const topups = () =>
  createTopups(pools.sql, {
    ledger: createLedger(pools, nowMs),
    keys: notAsked,
    credited: notAsked,
    report: notAsked,
    nowMs,
  });

for (const [name, ask, finds] of QUESTIONS)
  test(`${name}: no call is read but those that are asked for`, async () => {
    let found: unknown;
    const rows = await rowsOf(async () => {
      found = await ask();
    });
    assert.deepEqual(found, finds);
    assert(rows <= 6 * OPEN, `${rows} rows were looked at`);
  });

test('the figures of services ask the weeks of their day alone, for each of its hours', async () => {
  // The last of these weeks was its own when it was measured.
  const figures = measureServices(pools.sql, () => FIRST_MS + WEEKS * WEEK_MS - 2 * DAY_MS);
  const { scans } = await costOf(() => figures.job.run(), '^calls_w');
  assert(figures.of('ping') !== null);
  assert(scans > 0 && scans <= 2 * 24 + 2, `${scans} times a week was asked`);
});

test('a rule about free calls, which are kept for a day, reads no other call', async () => {
  const rule = CALL_BOOKS.rules.find(({ sql }) => sql.includes('free_calls'));
  const rows = await rowsOf(async () => {
    assert.equal((await pools.sql.unsafe(rule?.sql ?? '')).length, 1, 'these were not free');
  });
  assert(rows <= 6 * OPEN, `${rows} rows were looked at`);
});

/** Rules about what has an end of its own. The sum of shares is over all transfers of open days, by their time alone. */
const RULES = [
  ...[OPERATOR_BOOKS, SOLD_KEY_BOOKS, TOPUP_BOOKS].flatMap(({ rules }) => rules),
  ...SHARE_RULES,
].filter(({ name }) => !name.startsWith('what is owed of shares'));
for (const { name, sql, ofOpenDays } of RULES)
  test(`the books of open days, ${name}: no more is read than it is about`, async () => {
    const since = `timestamptz '${new Date(NOW_MS).toISOString()}'`;
    let found: readonly unknown[] = [];
    const rows = await rowsOf(async () => {
      found = await pools.sql.unsafe(ofOpenDays?.(since) ?? sql);
    }, '^(calls|ledger_transfers|settlements)');
    // The query ends with the first row that it finds.
    assert.deepEqual([...found], []);
    assert(rows <= 12 * OPEN, `${rows} rows were looked at`);
  });

test('the sum of payments with chains reads none that is over', async () => {
  const rows = await rowsOf(async () => {
    const [row] = await pools.sql.unsafe<{ settling: bigint; lost: bigint }[]>(
      CALL_BOOKS.totals?.onChain ?? '',
    );
    assert.deepEqual([row?.settling, row?.lost], [BigInt(OPEN), 0n]);
  }, '^settlements$');
  assert(rows <= 2 * OPEN, `${rows} rows were looked at`);
});

test('leases of a replica that ended are freed without a look at payments that are over', async () => {
  const rows = await rowsOf(
    () => pools.sql.begin((transaction) => settlements().freeLeasesOf(transaction, 77n)),
    '^settlements$',
  );
  assert(rows <= 2 * OPEN, `${rows} rows were looked at`);
});

test('what names calls of a week is asked without a look at the payments with chains of all weeks', async () => {
  const looked = async () => {
    await pools.sql`select pg_stat_force_next_flush()`;
    const [row] = await database.sql<{ pages: number }[]>`
      select (coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0) + heap_blks_hit + heap_blks_read)::integer as pages
      from pg_statio_user_tables where relname = 'settlements'`;
    return row?.pages ?? assert.fail();
  };
  const id = (ms: number) => `${ms.toString(16).padStart(12, '0')}${'0'.repeat(20)}`;
  const [from, to] = [id(FIRST_MS), id(FIRST_MS + WEEK_MS)];
  const earlier = await looked();
  const named = await pools.sql`select * from ${pools.sql(sqlFunction('calls_named'))}(${from}, ${to})`;
  assert(named.length >= OPEN, String(named.length));
  assert.equal(await looked(), earlier);
});

test('the accountant’s lines of a day read its calls, and the transfers of its week', async () => {
  const dayMs = FIRST_MS + 3 * WEEK_MS + 2 * DAY_MS;
  const costs = { declared: [], services: [], measuredOn: async () => [] };
  let sold = 0;
  const rows = await rowsOf(async () => {
    for await (const { code, service, count } of accountingLines(pools.sql, {
      fromMs: dayMs,
      toMs: dayMs,
      costs,
    }))
      if (code === 'call' && service === 'ping') sold += Number(count);
  }, '^(calls|ledger_transfers)_w|^card_orders$');
  assert(sold > 350 && sold < 360, String(sold));
  assert(rows <= 2 * OF_A_WEEK + 2 * sold, `${rows} rows were looked at`);
});

test('released calls of a day leave, and of other weeks none is looked at', async () => {
  const dayMs = FIRST_MS + 5 * WEEK_MS + DAY_MS;
  const [from, to] = [dayMs, dayMs + DAY_MS].map((ms) => new Date(ms).toISOString());
  const { patient } = database;
  const released = await patient`
    update calls set state = 2, begun_at = created_at, finished_at = created_at, identity = 'of ' || id
    where account_id = ${String(CUSTOMER)} and created_at >= ${from ?? ''} and created_at < ${to ?? ''}`;
  await patient`
    update ledger_transfers t set phase = 4 from calls c
    where c.state = 2 and t.account_id = c.account_id and t.id = c.id and t.phase = 3`;
  await patient`insert into call_identities select account_id, 0, identity, id from calls where state = 2`;
  const nothing = `decode(repeat('00', 32), 'hex')`;
  await patient.unsafe(`
    insert into ledger_days (day, transfers, transfers_digest, moves_digest, digest, released_apart)
    values ('${from?.slice(0, 10)}', 0, ${nothing}, ${nothing}, ${nothing}, true)`);
  await patient`vacuum analyze`;
  const rows = await rowsOf(async () => {
    assert.equal(await dropReleased(pools.sql, () => NOW_MS + 31 * DAY_MS), released.count);
  });
  assert(released.count > 100, String(released.count));
  assert.equal((await patient`select 1 from call_identities`).length, 0);
  // The calls of the week are looked through twice: the second time none is left.
  assert(rows <= 2 * OF_A_WEEK + 6 * released.count, `${rows} rows were looked at`);
});

test('what is found after a restore looks up each payment that went back by its payer, and each refund by its transaction', async () => {
  const { patient } = database;
  // Every third payment that is over went back once.
  await patient`
    insert into refunds (account_id, call_id, network, asset, payee, amount_micros, reason, state, transaction, created_at, next_at, paid_at)
    select account_id, call_id, network, asset, payer, amount_units, 'late', 1, 'back of ' || transaction, created_at, created_at, created_at
    from settlements where state = 1 and substr(payer, 2)::integer % 6 = 0`;
  await patient`insert into recoveries (found_at, reason, known_until) values (now(), 'restored', now())`;
  await patient`vacuum analyze refunds, settlements`;
  // Two that the books know, one of a payer whose call they know, and one of nobody.
  const sent = (transaction: string, to: string, units = 1_000n) => ({
    transaction,
    to,
    units,
    callId: null,
  });
  const sentBack = [
    ...[sent('back of tx6000', 'p6000'), sent('BACK OF TX6006', 'p6006')],
    ...[sent('a', 'p6002'), sent('b', 'p6004', 999n), sent('c', 'nobody')],
  ];
  const paid = { came: [], plain: [], sentBack };
  const parts: RecoverParts = {
    sql: pools.sql,
    sales: notAsked,
    paidSince: async () => [{ network: NETWORK, rail: 'x402', paid, landsWithinMs: 0 }],
    cards: null,
    sellsWhatLasts: notAsked,
    nowMs,
  };
  const [{ call_id: callId } = assert.fail()] = await patient<{ call_id: string }[]>`
    select call_id from settlements where payer = 'p6002'`;
  let plan = null as RecoveryPlan | null;
  const rows = await rowsOf(async () => {
    plan = await planRecovery(parts);
  }, '^(settlements|refunds)$');
  assert.deepEqual(plan?.sentBack, [{ callId, transaction: 'a' }]);
  assert.deepEqual(
    plan?.sales.map(({ payment, becomes }) => [payment, becomes]),
    [
      ['b', 'left'],
      ['c', 'left'],
    ],
  );
  // Refunds that are owed are compared with all that was sent.
  assert(rows <= OPEN + 20, `${rows} rows were looked at`);
});
