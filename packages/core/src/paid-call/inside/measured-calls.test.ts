/**
 * Calls that take less than was reserved: two amounts, of which the second is never above the first. What is not taken is free again in
 * the same commit, and everything that is summed is what was taken.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { proveBooks } from '../../../../../apps/shop/test/books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { createLedger, type Ledger } from '../../ledger/ledger.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import { applyCalls } from './call-batch.ts';
import type { CallToBegin, CallToFinish } from './call-steps.ts';
import { type CallStore, createCallStore } from './calls.ts';

const GRANTED = 30n;
const RUNS = 25;

let database: TestDatabase;
let calls: CallStore;
let ledger: Ledger;
before(async () => {
  database = await openTestDatabase();
  calls = createCallStore(database, { nowMs: Date.now, answerTtlMs: 60_000 });
  ledger = createLedger(database, Date.now);
});
after(() => database?.close());

async function customer(): Promise<bigint> {
  const id = await database.sql.begin((transaction) => ledger.openAccount(transaction));
  await ledger.transfer({
    id: newTransferId(Date.now()),
    accountId: id,
    phase: 'posted',
    side: 'credit',
    house: 'operator_grants',
    amountMicros: GRANTED,
    code: 'operator_grant',
  });
  return id;
}

const callOf = (accountId: bigint, priceMicros: bigint): CallToBegin => ({
  id: newTransferId(Date.now()),
  accountId,
  bucket: 0,
  keyId: null,
  rail: 'credits',
  service: 'metered',
  priceMicros,
  revenue: 'revenue_credits',
  identity: null,
  onChainIdentity: null,
  fingerprint: null,
  ttlMs: 60_000,
});

const capturing = (call: CallToBegin, takenMicros?: bigint): CallToFinish => ({
  ...call,
  capture: true,
  outcome: 'answered',
  answer: null,
  ...(takenMicros === undefined ? {} : { takenMicros }),
});

const releasing = (call: CallToBegin): CallToFinish => ({
  ...call,
  capture: false,
  outcome: 'test',
  answer: null,
});

async function rowsOf(accountId: bigint) {
  const id = String(accountId);
  const { sql } = database;
  return {
    calls: [
      ...(await sql<{ id: string; state: number; price_micros: bigint; reserved_micros: bigint | null }[]>`
        select id, state, price_micros, reserved_micros from calls where account_id = ${id}`),
    ],
    transfers: [
      ...(await sql<{ id: string; phase: number; amount_micros: bigint; reserved_micros: bigint | null }[]>`
        select id, phase, amount_micros, reserved_micros from ledger_transfers
        where account_id = ${id} and code = 'call' order by phase`),
    ],
    spent:
      (
        await sql<{ spent: bigint; calls: number }[]>`
          select coalesce(sum(spent_micros), 0)::bigint as spent, coalesce(sum(calls), 0)::integer as calls
          from call_spending where account_id = ${id}`
      )[0] ?? null,
    account:
      (
        await sql<{ pending: bigint; posted: bigint }[]>`
          select debits_pending as pending, debits_posted as posted from ledger_accounts where id = ${id}`
      )[0] ?? null,
  };
}

async function assertProven(): Promise<void> {
  const { checks } = await proveBooks(database.patient);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
}

test('what a call takes of its reserved price is booked, told and counted; the rest is free at once', async () => {
  const account = await customer();
  const call = callOf(account, 30n);
  assert.deepEqual(await calls.begin(call), {
    status: 'authorized',
    availableMicros: 0n,
    isKnownPayer: true,
  });
  assert.deepEqual(await calls.finish(capturing(call, 7n)), { status: 'done', availableMicros: 23n });
  assert.deepEqual(await calls.finish(capturing(call, 7n)), { status: 'done', availableMicros: 23n });
  assert.deepEqual(await rowsOf(account), {
    calls: [{ id: call.id, state: 1, price_micros: 7n, reserved_micros: 30n }],
    transfers: [
      { id: call.id, phase: 2, amount_micros: 30n, reserved_micros: null },
      { id: call.id, phase: 3, amount_micros: 7n, reserved_micros: 30n },
    ],
    spent: { spent: 7n, calls: 1 },
    account: { pending: 0n, posted: 7n },
  });
  await assertProven();
});

test('a call that is given back took nothing, whatever it had measured', async () => {
  const account = await customer();
  for (const takenMicros of [0n, 7n]) {
    const call = callOf(account, 20n);
    await calls.begin(call);
    const given = await calls.finish({ ...releasing(call), takenMicros });
    assert.deepEqual(given, { status: 'done', availableMicros: GRANTED });
    const ended = (await rowsOf(account)).calls.find(({ id }) => id === call.id);
    assert.deepEqual(ended, { id: call.id, state: 2, price_micros: 20n, reserved_micros: null });
  }
  await assertProven();
});

test('what was not taken can be reserved again by a call of the same commit', async () => {
  const account = await customer();
  const first = callOf(account, 30n);
  await calls.begin(first);
  const next = callOf(account, 20n);
  const [ended, begun] = await Promise.all([calls.finish(capturing(first, 10n)), calls.begin(next)]);
  assert.equal(ended.status, 'done');
  // Whether they share a commit is up to the store: in two, the end came first as well.
  assert.equal(begun.status, 'authorized');
  assert.equal((await calls.finish(releasing(next))).status, 'done');
});

for (const { what, takenMicros } of [
  { what: 'more than was reserved', takenMicros: 31n },
  { what: 'nothing, which is a release', takenMicros: 0n },
  { what: 'less than nothing', takenMicros: -1n },
]) {
  test(`the database refuses to take ${what}, and the calls beside it go on`, async () => {
    const [account, other] = await Promise.all([customer(), customer()]);
    const [call, beside] = [callOf(account, 30n), callOf(other, 30n)];
    await Promise.all([calls.begin(call), calls.begin(beside)]);
    const [refused, taken] = await Promise.allSettled([
      calls.finish(capturing(call, takenMicros)),
      calls.finish(capturing(beside, 30n)),
    ]);
    assert.equal(refused.status, 'rejected');
    assert.deepEqual(taken, { status: 'fulfilled', value: { status: 'done', availableMicros: 0n } });
    assert.deepEqual((await rowsOf(account)).account, { pending: 30n, posted: 0n });
    assert.equal((await calls.finish(releasing(call))).status, 'done');
    await assertProven();
  });
}

test('each table refuses on its own to take more than was reserved', async () => {
  const account = await customer();
  const call = callOf(account, 30n);
  await calls.begin(call);
  await calls.finish(capturing(call, 7n));
  const at = { account_id: String(account), id: call.id };
  const { sql } = database;
  for (const [constraint, write] of [
    [
      'calls_take_no_more_than_reserved',
      sql`update calls set price_micros = 31 where account_id = ${at.account_id} and id = ${at.id}`,
    ],
    [
      'ledger_posts_no_more_than_reserved',
      sql`update ledger_transfers set amount_micros = 31 where account_id = ${at.account_id} and id = ${at.id} and phase = 3`,
    ],
  ] as const)
    await assert.rejects(
      write,
      (error) => error instanceof Error && 'constraint_name' in error && error.constraint_name === constraint,
    );
});

const OF_CALLS = 'every call has exactly the transfers of its state';
const OF_POSTS =
  'every post and void has its pending transfer, frees all of its amount, and has the same accounts';
for (const { what, table, set, rules } of [
  {
    what: 'a call of another price than was taken',
    table: 'calls',
    set: 'price_micros = 6',
    rules: [OF_CALLS],
  },
  {
    what: 'a call that says it reserved less',
    table: 'calls',
    set: 'reserved_micros = 29',
    rules: [OF_CALLS],
  },
  {
    what: 'a call that says nothing of it',
    table: 'calls',
    set: 'reserved_micros = null',
    rules: [OF_CALLS],
  },
  {
    what: 'a post that frees less than was reserved',
    table: 'ledger_transfers',
    set: 'reserved_micros = 29',
    rules: [OF_CALLS, OF_POSTS],
  },
  {
    what: 'a post of more than its call took',
    table: 'ledger_transfers',
    set: 'amount_micros = 8',
    rules: [OF_CALLS],
  },
])
  test(`the books find ${what}`, async () => {
    const account = await customer();
    const call = callOf(account, 30n);
    await calls.begin(call);
    await calls.finish(capturing(call, 7n));
    const where = `where id = '${call.id}' ${table === 'calls' ? '' : 'and phase = 3'}`;
    await database.sql.unsafe(`update ${table} set ${set} ${where}`);
    const { checks } = await proveBooks(database.patient);
    const found = checks.filter(({ ok }) => !ok).map(({ name }) => name);
    for (const rule of rules) assert(found.includes(rule), `${rule}: ${found.join(', ')}`);
    const right =
      table === 'calls'
        ? 'price_micros = 7, reserved_micros = 30'
        : 'amount_micros = 7, reserved_micros = 30';
    await database.sql.unsafe(`update ${table} set ${right} ${where}`);
    await assertProven();
  });

test('a call of a known price, and one that is given back, have one amount beside a measured one in the same commit', async () => {
  const account = await customer();
  const [measured, known, released] = [callOf(account, 10n), callOf(account, 10n), callOf(account, 10n)];
  await Promise.all([measured, known, released].map((call) => calls.begin(call)));
  const ends = [capturing(measured, 4n), capturing(known), releasing(released)];
  const outcomes = await applyCalls(
    database.commits,
    ends.map((call) => ({ kind: 'finish', call })),
    { answerTtlMs: 60_000, nowMs: Date.now(), holder: null },
  );
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['done', 'done', 'done'],
  );
  const rows = new Map((await rowsOf(account)).calls.map((row) => [row.id, row]));
  assert.deepEqual(
    [measured, known, released].map(({ id }) => [rows.get(id)?.price_micros, rows.get(id)?.reserved_micros]),
    [
      [4n, 10n],
      [10n, null],
      [10n, null],
    ],
  );
  await assertProven();
});

test('a share of a measured call is the same part of what was taken, and is never more than that', async () => {
  for (const { noted, taken, share } of [
    { noted: 15n, taken: 9n, share: 4n },
    { noted: 3n, taken: 1n, share: 1n },
    { noted: 30n, taken: 30n, share: 30n },
  ]) {
    const [account, beneficiary] = await Promise.all([customer(), customer()]);
    const call = callOf(account, 30n);
    await calls.begin(call);
    await database.sql`
      insert into call_shares (account_id, call_id, beneficiary, amount_micros)
      values (${String(account)}, ${call.id}, ${String(beneficiary)}, ${String(noted)})`;
    await database.sql`update calls set shared = true where id = ${call.id}`;
    await calls.finish(capturing(call, taken));
    const [row] = await database.sql`
      select amount_micros, due_micros from call_shares where call_id = ${call.id}`;
    assert.deepEqual({ ...row }, { amount_micros: share, due_micros: share });
    await assertProven();
  }
});

interface Act {
  kind: 'begin' | 'take' | 'capture' | 'release';
  /** Which of those that are open. */
  which: number;
  price: number;
  /** How many thousandths of what is reserved are taken. */
  part: number;
}

const act: fc.Arbitrary<Act> = fc.record({
  kind: fc.constantFrom('begin', 'begin', 'take', 'take', 'capture', 'release'),
  which: fc.nat(5),
  price: fc.integer({ min: 1, max: 15 }),
  part: fc.nat(1_000),
});

/** Part of one call is taken, and no more than the rest of the balance can be reserved: so in each run of the test. */
const SPEND_IT_ALL: Act[] = (
  [
    ['begin', 15],
    ['take', 15],
    ['begin', 15],
    ['begin', 15],
    ['capture', 15],
  ] as const
).map(([kind, price]) => ({ kind, price, which: 0, part: 500 }));

test('whatever is begun, taken and given back, no account spends what it has not, and each amount is told by its call', async () => {
  let measured = 0;
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 30 }), async (acts) => {
      const account = await customer();
      const open: CallToBegin[] = [];
      let [spent, reserved, count] = [0n, 0n, 0];
      for (const { kind, which, price, part } of acts) {
        if (kind === 'begin') {
          const call = callOf(account, BigInt(price));
          const begun = await calls.begin(call);
          const fits = spent + reserved + call.priceMicros <= GRANTED;
          assert.equal(begun.status, fits ? 'authorized' : 'insufficient');
          if (fits) reserved += call.priceMicros;
          else refused += 1;
          if (fits) open.push(call);
          continue;
        }
        const [call] = open.splice(which % Math.max(open.length, 1), 1);
        if (call === undefined) continue;
        const { priceMicros } = call;
        const some = 1n + ((priceMicros - 1n) * BigInt(part)) / 1_000n;
        const taken = kind === 'release' ? 0n : kind === 'take' ? some : priceMicros;
        reserved -= priceMicros;
        spent += taken;
        if (kind !== 'release') count += 1;
        if (kind === 'take') measured += 1;
        const end =
          kind === 'release' ? releasing(call) : capturing(call, kind === 'take' ? some : undefined);
        assert.deepEqual(await calls.finish(end), {
          status: 'done',
          availableMicros: GRANTED - spent - reserved,
        });
      }
      const rows = await rowsOf(account);
      assert.deepEqual(rows.account, { pending: reserved, posted: spent });
      assert.deepEqual(rows.spent, { spent, calls: count });
      const taken = rows.calls.filter(({ state }) => state === 1);
      assert.equal(
        taken.reduce((sum, { price_micros }) => sum + price_micros, 0n),
        spent,
      );
      for (const { price_micros: price, reserved_micros: of } of taken) assert(of === null || price <= of);
    }),
    { numRuns: RUNS, endOnFailure: true, examples: [[SPEND_IT_ALL]] },
  );
  assert(measured > 0 && refused > 0, 'nothing of interest happened');
  await assertProven();
});
