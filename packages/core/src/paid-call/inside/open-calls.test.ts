/** Calls that were begun and not ended are found, wherever they are and whatever is locked or slow. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { proveBooks } from '../../../../../apps/shop/test/books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { refundsOf } from '../../../../../apps/shop/test/fire/money.fixture.ts';
import { createLedger, type Ledger } from '../../ledger/ledger.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import type { CallToBegin } from './call-steps.ts';
import { type CallStore, createCallStore } from './calls.ts';
import { createFreeCalls } from './free-calls.ts';
import { createReconciler } from './reconcile-calls.ts';
import { createUndeliveredCalls } from './undelivered.ts';

const PRICE = 250_000n;

let database: TestDatabase;
let nowMs = Date.now();
let ledger: Ledger;
let calls: CallStore;
before(async () => {
  database = await openTestDatabase();
  ledger = createLedger(database, () => nowMs);
  calls = createCallStore(database, { nowMs: () => nowMs, answerTtlMs: 86_400_000 });
});
afterEach(async () => {
  nowMs += 60_000;
  await reconcile();
  assert.deepEqual(
    (await proveBooks(database.patient)).checks.filter(({ ok }) => !ok),
    [],
  );
});
after(() => database?.close());

const reconcile = () =>
  createReconciler({
    calls,
    undelivered: createUndeliveredCalls(database.sql, () => Date.now()),
    ledger,
    freeCalls: createFreeCalls(database.sql, () => Date.now()),
    report: () => {},
  }).run();

async function customer(): Promise<bigint> {
  return database.sql.begin(async (transaction) => {
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
}

async function begin(accountId: bigint, ttlMs = 40_000): Promise<CallToBegin> {
  const call: CallToBegin = {
    id: newTransferId(nowMs),
    accountId,
    bucket: 0,
    keyId: null,
    rail: 'credits',
    service: 'ping',
    ttlMs,
    priceMicros: PRICE,
    revenue: 'revenue_credits',
    identity: null,
    onChainIdentity: null,
    fingerprint: null,
  };
  assert.equal((await calls.begin(call)).status, 'authorized');
  return call;
}

const finish = (call: CallToBegin) =>
  calls.finish({ ...call, capture: true, outcome: 'answered', answer: null });
const expiredIds = async () => (await calls.expired(1_000)).map(({ id }) => id).sort();
const leftOpen = async () =>
  (await database.sql<{ id: string }[]>`select id from calls_left_open order by id`).map(({ id }) => id);
/** Moves everything in the database so many hours into the past. */
const hoursPass = (hours: number) =>
  database.sql.begin(async (sql) => {
    const past = `${hours} hours`;
    await sql`update calls set begun_at = begun_at - ${past}::interval`;
    await sql`update calls_open_since set begun_at = begun_at - ${past}::interval`;
  });

test('a call that stays open for hours is still found, and no longer looked for once it has ended', async () => {
  const account = await customer();
  const old = [await begin(account, 40_000), await begin(account, 7_200_000)];
  const ended = await begin(account);
  await finish(ended);
  await hoursPass(3);
  const young = await begin(account);
  assert.deepEqual(await expiredIds(), [], 'nobody is late yet');
  assert.deepEqual(
    await leftOpen(),
    old.map(({ id }) => id).sort(),
    'what is open is noted, and nothing else',
  );
  const [since] = await database.sql<{ recent: boolean }[]>`
    select begun_at > now() - interval '2 minutes' as recent from calls_open_since`;
  assert.equal(since?.recent, true);
  assert.equal(await calls.reservedMicros(), 3n * PRICE);
  nowMs += 40_000;
  assert.deepEqual(await expiredIds(), [old[0]?.id, young.id].sort());
  assert.equal(await reconcile(), 2);
  assert.deepEqual(await expiredIds(), []);
  assert.deepEqual(await leftOpen(), [old[1]?.id]);
  nowMs += 7_200_000;
  assert.equal(await reconcile(), 1);
  assert.equal(await calls.reservedMicros(), 0n);
});

test('after a long time in which no job ran, every open call is found', async () => {
  const account = await customer();
  const left: string[] = [];
  for (let hours = 0; hours < 5; hours += 1) {
    left.push((await begin(account)).id, (await begin(account)).id);
    await hoursPass(1);
  }
  nowMs += 40_000;
  assert.deepEqual(await expiredIds(), left.sort());
  assert.equal(await reconcile(), left.length);
});

test("a locked account keeps its own calls waiting, and nobody else's", async () => {
  const [stuck, other] = [await customer(), await customer()];
  // More of them than one round takes, and older than all others.
  const waiting = await Promise.all(Array.from({ length: 250 }, () => begin(stuck)));
  nowMs += 1;
  const free = await begin(other);
  nowMs += 40_000;
  const released = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const lock = database.sql.begin(async (sql) => {
    await sql`select 1 from ledger_accounts where id = ${String(stuck)} for no key update`;
    held.resolve();
    await released.promise;
  });
  await held.promise;
  try {
    assert.equal(await reconcile(), 1);
    assert.equal((await ledger.balance(other)).reservedMicros, 0n);
    assert.equal(
      (await calls.finish({ ...free, capture: true, outcome: 'answered', answer: null })).status,
      'not_open',
    );
  } finally {
    released.resolve();
    await lock;
  }
  assert.equal(await reconcile(), waiting.length, 'all of them in one round');
});

test('calls are found even while the process that moves the window of open calls is stuck', async () => {
  const account = await customer();
  const call = await begin(account);
  nowMs += 40_000;
  await database.sql.begin(async (sql) => {
    await sql`select 1 from calls_open_since for update`;
    assert.deepEqual(await expiredIds(), [call.id]);
  });
});

test("a call that is begun after the database's clock was set back is found", async () => {
  const account = await customer();
  await database.sql`update calls_open_since set begun_at = now() + interval '1 hour'`;
  const call = await begin(account);
  nowMs += 40_000;
  assert.deepEqual(await expiredIds(), [call.id]);
});

test('the books report an open call that no job would find', async () => {
  const account = await customer();
  await begin(account);
  await database.sql`update calls_open_since set begun_at = now() + interval '1 hour'`;
  const { checks } = await proveBooks(database.patient);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok).map(({ name }) => name),
    ['every open call is where open calls are looked for'],
  );
});

test('a call that is reported while others are being stored is not dropped with them', async () => {
  const account = await customer();
  const [first, second] = [await begin(account), await begin(account)];
  // Both calls were captured, and nobody got an answer.
  await Promise.all([finish(first), finish(second)]);
  const table = createUndeliveredCalls(database.sql, () => Date.now());
  const writing = Promise.withResolvers<void>();
  const written = Promise.withResolvers<void>();
  const reconciler = createReconciler({
    calls,
    undelivered: {
      ...table,
      async note(lost) {
        // A copy, because a statement's content is fixed when it is sent.
        const sent = [...lost];
        writing.resolve();
        await written.promise;
        await table.note(sent);
      },
    },
    ledger,
    freeCalls: createFreeCalls(database.sql, () => Date.now()),
    report: () => {},
  });
  reconciler.undelivered({ ...first, retrievable: false });
  await writing.promise;
  reconciler.undelivered({ ...second, retrievable: false });
  written.resolve();
  await reconciler.run();
  assert.deepEqual(reconciler.unnoted(), []);
  assert.deepEqual((await refundsOf(database.sql, account)).sort(), [first.id, second.id].sort());
});

test('a call that was released before its refund was due is not refunded', async () => {
  const account = await customer();
  const [expired, unbegun] = [await begin(account), { id: newTransferId(nowMs), accountId: account }];
  await calls.finish({ ...expired, capture: false, outcome: 'EXPIRED', answer: null });
  const table = createUndeliveredCalls(database.sql, () => Date.now());
  await table.note([
    { ...expired, retrievable: false },
    { ...expired, ...unbegun, retrievable: false },
  ]);
  await reconcile();
  assert.deepEqual(await refundsOf(database.sql, account), []);
  assert.equal(await table.waiting(), 0);
});

test('an undelivered call is one process’s at a time, due again when that one has died, and gone once one is done', async () => {
  const account = await customer();
  const call = await begin(account);
  let atMs = Date.now();
  const [one, other] = [0, 0].map(() => createUndeliveredCalls(database.sql, () => atMs));
  assert(one !== undefined && other !== undefined);
  await one.note([{ ...call, retrievable: false }]);
  const [late] = await one.lease(10);
  assert(late !== undefined);
  assert.deepEqual([late.id, late.accountId, late.priceMicros], [call.id, account, call.priceMicros]);
  assert.deepEqual([await other.lease(10), await other.queue.depth()], [[], 1]);
  atMs += 30_000;
  assert.equal((await other.lease(10)).length, 1);
  await one.done(late);
  assert.deepEqual([await other.waiting(), await other.queue.depth()], [0, 0]);
});
