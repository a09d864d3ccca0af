/** Calls lie in weeks: a payment buys once over all of them, and a batch touches one. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';
import { proveBooks } from '../../../../../apps/shop/test/books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { createWeeks, weekOf, weeksAround } from '../../db/weeks.ts';
import { createLedger, type Ledger } from '../../ledger/ledger.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import { applyCalls } from './call-batch.ts';
import type { CallToBegin } from './call-steps.ts';
import { type CallStore, createCallStore } from './calls.ts';

const WEEK_MS = 604_800_000;
const PRICE = 250_000n;
const WEEKS_OF_HISTORY = 120;

let database: TestDatabase;
let nowMs = Date.now();
let ledger: Ledger;
let calls: CallStore;
let account: bigint;
before(async () => {
  database = await openTestDatabase();
  ledger = createLedger(database, () => nowMs);
  calls = createCallStore(database, { nowMs: () => nowMs, answerTtlMs: WEEK_MS * 4 });
  account = await database.sql.begin(async (transaction) => {
    const accountId = await ledger.openAccount(transaction);
    await ledger.transferWithin(transaction, {
      id: newTransferId(nowMs),
      accountId,
      phase: 'posted',
      side: 'credit',
      house: 'operator_grants',
      amountMicros: 1_000_000_000n,
      code: 'operator_grant',
    });
    return accountId;
  });
});
afterEach(async () => {
  assert.deepEqual(
    (await proveBooks(database.patient)).checks.filter(({ ok }) => !ok),
    [],
  );
});
after(() => database?.close());

function callOf(identity: string | null = null, request = 'question'): CallToBegin {
  return {
    id: newTransferId(nowMs),
    accountId: account,
    bucket: 0,
    keyId: null,
    rail: 'credits',
    service: 'ping',
    ttlMs: 40_000,
    priceMicros: PRICE,
    revenue: 'revenue_credits',
    identity,
    onChainIdentity: null,
    fingerprint: identity === null ? null : createHash('sha256').update(request).digest(),
  };
}

const answer = { status: 200, headers: {}, body: '{}' };
const end = (call: CallToBegin, capture = true) =>
  calls.finish({
    ...call,
    capture,
    outcome: capture ? 'answered' : 'failed',
    answer: capture ? answer : null,
  });
const spentMicros = async () => {
  const [row] = await database.sql<{ spent: bigint }[]>`
    select debits_posted as spent from ledger_accounts where id = ${String(account)}`;
  return row?.spent;
};
/** The tables that the rows of a call and of its transfers lie in. */
const tablesOf = async ({ id }: { id: string }) => {
  const rows = await database.sql<{ name: string }[]>`
    select tableoid::regclass::text as name from calls where id = ${id}
    union all select tableoid::regclass::text from ledger_transfers where id = ${id}
    union all select tableoid::regclass::text from call_answers where id = ${id} order by 1`;
  return rows.map(({ name }) => name);
};

test('a batch locks the tables of one week, however many weeks there are', async () => {
  const history = Array.from({ length: WEEKS_OF_HISTORY }, (_, nth) => weekOf(nowMs - (nth + 2) * WEEK_MS));
  // The database may have been made last week: then it has the first of these already.
  await database.patient.unsafe(
    history
      .flatMap(({ name, from, to }) =>
        ['calls', 'call_answers', 'ledger_transfers'].map(
          (table) =>
            `create table if not exists ${table}_${name} partition of ${table} for values from ('${from}') to ('${to}');`,
        ),
      )
      .join(''),
  );
  const weeks = createWeeks(database);
  await weeks.learn();
  const settings = { answerTtlMs: 60_000, nowMs, holder: null, weekOf: weeks.of };
  const batch = [callOf('order of a batch'), callOf()];
  const payment = 'payment of a batch';
  const onChain: CallToBegin = {
    ...callOf(payment),
    accountId: 5n,
    rail: 'x402',
    revenue: 'revenue_x402',
    onChainIdentity: payment,
    inFlight: {
      network: 'n',
      asset: 'a',
      payer: 'p',
      amountUnits: 1n,
      costsMoney: false,
      onlyOneOfUnknown: false,
      balance: null,
    },
  };
  const finished = (call: CallToBegin) => ({ ...call, capture: true, outcome: 'answered', answer });
  await database.commits.begin(async (transaction) => {
    const sql = transaction as unknown as TestDatabase['commits'];
    const begun = await applyCalls(
      sql,
      [...batch, onChain].map((call) => ({ kind: 'begin', call })),
      settings,
    );
    assert.deepEqual(new Set(begun.map(({ status }) => status)), new Set(['authorized']));
    const ended = await applyCalls(
      sql,
      [
        ...batch.map((call) => ({ kind: 'finish', call: finished(call) }) as const),
        { kind: 'finish', call: { ...onChain, capture: false, outcome: 'failed', answer: null } },
      ],
      settings,
    );
    assert.deepEqual(new Set(ended.map(({ status }) => status)), new Set(['done']));
    const locked = await transaction<{ name: string }[]>`
      select distinct c.relname as name from pg_locks l join pg_class c on c.oid = l.relation
      where l.pid = pg_backend_pid() and c.relkind = 'r'
        and c.relname ~ '^(calls|call_answers|ledger_transfers)(_w|_rest|_caused|$)' order by 1`;
    const { name } = weekOf(nowMs);
    assert.deepEqual(
      locked.map((row) => row.name),
      [`call_answers_${name}`, `calls_${name}`, `ledger_transfers_${name}`],
    );
  });
});

test('an Idempotency-Key buys once over the border of two weeks', async () => {
  const first = callOf('order 1');
  await calls.begin(first);
  await end(first);
  const released = callOf('order 2');
  await calls.begin(released);
  await end(released, false);
  const open = callOf('order 3');
  await calls.begin(open);
  const spent = await spentMicros();

  nowMs += WEEK_MS;
  assert.notEqual(weekOf(nowMs).name, weekOf(nowMs - WEEK_MS).name);
  assert.deepEqual(await calls.begin(callOf('order 1')), { status: 'answered', callId: first.id });
  assert.deepEqual(await calls.begin(callOf('order 1', 'another')), { status: 'other_request' });
  assert.deepEqual(await calls.begin(callOf('order 3')), { status: 'running' });
  const looked = { accountId: account, keyId: null, identity: 'order 1', onChainIdentity: null };
  assert.equal((await calls.look(looked, first.fingerprint as Buffer))?.status, 'answered');
  assert.equal((await calls.answerOf(account, first.id))?.body, '{}');
  assert.equal(await spentMicros(), spent);

  // Nothing was taken for what was released: it may be bought again, once.
  const again = callOf('order 2');
  assert.equal((await calls.begin(again)).status, 'authorized');
  assert.equal((await calls.begin({ ...again })).status, 'authorized');
  assert.equal((await end(again)).status, 'done');
  assert.deepEqual(await calls.begin(callOf('order 2')), { status: 'answered', callId: again.id });
  assert.equal((await end(open)).status, 'done');
  assert.equal(await spentMicros(), (spent ?? 0n) + 2n * PRICE);
});

test('two who claim one payment at once get it once, and a key that another call has is refused by the table itself', async () => {
  const other = createCallStore(database, { nowMs: () => nowMs, answerTtlMs: WEEK_MS });
  const both = await Promise.all([calls.begin(callOf('order 4')), other.begin(callOf('order 4'))]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ['authorized', 'running']);
  const [call] = await database.sql<
    { id: string }[]
  >`select call_id as id from call_identities where identity = 'order 4'`;
  await end({ ...callOf('order 4'), id: call?.id ?? '' });
  await assert.rejects(
    database.sql`insert into call_identities values (${String(account)}, 0, 'order 4', gen_random_uuid())`,
    /call_identities_pkey/,
  );
});

test('a call that begins before the border ends after it, in the week that it began in', async () => {
  const late = callOf('order 5');
  await calls.begin(late);
  const before = weekOf(nowMs).name;
  nowMs += WEEK_MS;
  const early = callOf();
  const [begun, ended] = await Promise.all([calls.begin(early), end(late)]);
  assert.deepEqual([begun.status, ended.status], ['authorized', 'done']);
  await end(early);
  const inWeek = (name: string) => [
    `call_answers_${name}`,
    `calls_${name}`,
    ...Array.from({ length: 2 }, () => `ledger_transfers_${name}`),
  ];
  assert.deepEqual(await tablesOf(late), inWeek(before));
  assert.deepEqual(await tablesOf(early), inWeek(weekOf(nowMs).name));
});

test('calls of a week that nobody made are sold all the same, and move when it is made, open or ended', async () => {
  nowMs += 26 * WEEK_MS;
  const ended = callOf('order 6');
  await calls.begin(ended);
  await end(ended);
  const open = callOf('order 7');
  await calls.begin(open);
  assert.deepEqual(new Set(await tablesOf(open)), new Set(['calls_rest', 'ledger_transfers_rest']));
  assert.deepEqual((await calls.heldByEnded(10)).length, 0);

  // Somebody reads the rest for long: nobody waits for them, and the next round makes the weeks.
  const { name } = weekOf(nowMs);
  const there = async () =>
    (await database.sql<{ name: string | null }[]>`select to_regclass(${`calls_${name}`})::text as name`)[0]
      ?.name;
  await database.patient.begin(async (reader) => {
    await reader`select count(*) from calls`;
    await calls.makeWeeks();
    assert.equal(await there(), null);
  });
  const other = createWeeks(database);
  await Promise.all([calls.makeWeeks(), other.make(nowMs), calls.makeWeeks()]);
  assert.equal(await there(), `calls_${name}`);
  assert.equal(other.of([newTransferId(nowMs)]), name);
  const [left] = await database.sql<{ rows: number }[]>`select count(*)::integer as rows from calls_rest`;
  assert.equal(left?.rows, 0);

  assert.deepEqual(await calls.begin(callOf('order 6')), { status: 'answered', callId: ended.id });
  assert.equal((await end(open)).status, 'done');
  assert.deepEqual(
    new Set(await tablesOf(open)),
    new Set([`call_answers_${name}`, `calls_${name}`, `ledger_transfers_${name}`]),
  );
});

test('a clock that is years off sells calls as any other, and those are found when they are left open', async () => {
  const right = nowMs;
  for (const off of [Date.parse('1999-12-31T23:59:59Z'), Date.parse('2140-01-01T00:00:00Z')]) {
    nowMs = off;
    const call = callOf(`order of ${off}`);
    assert.equal((await calls.begin(call)).status, 'authorized');
    nowMs = off + 60_000;
    assert((await calls.expired(100)).some(({ id }) => id === call.id));
    assert.equal((await end(call)).status, 'done');
    assert.deepEqual(
      new Set(await tablesOf(call)),
      new Set(['call_answers_rest', 'calls_rest', 'ledger_transfers_rest']),
    );
  }
  nowMs = right;
});

test('where the functions of a week are gone, those of all weeks do its calls', async () => {
  const first = callOf();
  await calls.begin(first);
  const { name } = weekOf(nowMs);
  const functions = await database.sql<{ signature: string }[]>`
    select oid::regprocedure::text as signature from pg_proc where proname like ${`%\\_${name}`}`;
  assert(functions.length > 0);
  for (const { signature } of functions) await database.sql.unsafe(`drop function ${signature}`);
  const second = callOf();
  assert.equal((await calls.begin(second)).status, 'authorized');
  await Promise.all([end(first), end(second)]);
  assert.deepEqual(
    new Set(await tablesOf(second)),
    new Set([`call_answers_${name}`, `calls_${name}`, `ledger_transfers_${name}`]),
  );
  await calls.makeWeeks();
  const third = callOf();
  await calls.begin(third);
  assert.equal((await end(third)).status, 'done');
});

test('a week begins on Monday, and ids sort into it by their time', () => {
  const monday = Date.parse('2026-11-23T00:00:00Z');
  for (const [at, name] of [
    [monday - 1, 'w20261116'],
    [monday, 'w20261123'],
    [monday + WEEK_MS - 1, 'w20261123'],
    [monday + WEEK_MS, 'w20261130'],
  ] as const) {
    const week = weekOf(at);
    assert.equal(week.name, name);
    const id = newTransferId(at);
    assert(id >= week.from && id < week.to);
  }
  const around = weeksAround(monday);
  assert.deepEqual(around.map((week) => week.from).slice(1), around.map((week) => week.to).slice(0, -1));
});
