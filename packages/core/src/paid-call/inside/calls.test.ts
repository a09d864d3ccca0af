/** Locks held on accounts, rows or payments: only callers that need the same row wait. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import { NotBegun } from '../../ledger/group-commit.ts';
import { createLedger, type Ledger } from '../../ledger/ledger.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import type { BeginOutcome, CallToBegin } from './call-steps.ts';
import { type CallStore, createCallStore } from './calls.ts';

const PRICE = 10_000n;

let database: TestDatabase;
let calls: CallStore;
let elsewhere: CallStore;
let ledger: Ledger;
before(async () => {
  database = await openTestDatabase();
  const options = { nowMs: Date.now, answerTtlMs: 60_000 };
  calls = createCallStore(database, options);
  elsewhere = createCallStore(database, options);
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
    amountMicros: 1_000_000n,
    code: 'operator_grant',
  });
  return id;
}

const creditCall = (accountId: bigint): CallToBegin => ({
  id: newTransferId(Date.now()),
  accountId,
  bucket: 0,
  keyId: null,
  rail: 'credits',
  service: 'ping',
  priceMicros: PRICE,
  revenue: 'revenue_credits',
  identity: null,
  onChainIdentity: null,
  fingerprint: null,
  ttlMs: 60_000,
});

const chainCall = (): CallToBegin => {
  const key = `eip155:8453 ${randomBytes(16).toString('hex')}`;
  return {
    ...creditCall(HOUSE_ACCOUNTS.chain_clearing),
    rail: 'x402',
    revenue: 'revenue_x402',
    identity: key,
    onChainIdentity: key,
    fingerprint: randomBytes(32),
  };
};

const capture = (call: CallToBegin) => ({ ...call, capture: true, outcome: 'answered', answer: null });

/** Holds a lock, as a forgotten psql session does, until it is told to release it. */
async function hold(lock: (sql: TestDatabase['patient']) => Promise<unknown>): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<void>();
  const letGo = Promise.withResolvers<void>();
  const holder = database.patient.begin(async (transaction) => {
    // Without this the server's own setting would end the idle transaction.
    await transaction`set local idle_in_transaction_session_timeout = 0`;
    await lock(transaction as unknown as TestDatabase['patient']);
    held.resolve();
    await letGo.promise;
  });
  await held.promise;
  return async () => {
    letGo.resolve();
    await holder;
  };
}

test('a locked account delays no other account, and its own calls go on when the lock is released', async () => {
  const [locked, ...others] = await Promise.all(Array.from({ length: 5 }, customer));
  assert(locked !== undefined);
  const letGo = await hold(
    (sql) => sql`select 1 from ledger_accounts where id = ${String(locked)} for no key update`,
  );
  let isFree = false;
  const stuck = Array.from({ length: 20 }, () => beginOnceFree(locked, () => isFree));
  for (let round = 0; round < 20; round++) {
    await Promise.all(
      others.map(async (account) => {
        const call = creditCall(account);
        assert.equal((await calls.begin(call)).status, 'authorized');
        assert.equal((await calls.finish(capture(call))).status, 'done');
      }),
    );
  }
  isFree = true;
  await letGo();
  for (const one of await Promise.all(stuck)) assert.equal(one.status, 'authorized');
});

/** Begins a call of an account that may be locked, and again as often as its time ends before the lock does. */
async function beginOnceFree(account: bigint, isFree: () => boolean): Promise<BeginOutcome> {
  for (;;) {
    const wasFree = isFree();
    try {
      return await calls.begin(creditCall(account));
    } catch (error) {
      assert(!wasFree && error instanceof NotBegun && error.why === 'locked', String(error));
    }
  }
}

test('a call that needs the locked account is told in time that nothing was begun', async () => {
  const account = await customer();
  const letGo = await hold(
    (sql) => sql`select 1 from ledger_accounts where id = ${String(account)} for no key update`,
  );
  const call = creditCall(account);
  await assert.rejects(calls.begin(call), (error) => error instanceof NotBegun && error.why === 'locked');
  await assert.rejects(
    ledger.transfer({
      id: newTransferId(Date.now()),
      accountId: account,
      phase: 'posted',
      side: 'credit',
      house: 'operator_grants',
      amountMicros: 1n,
      code: 'operator_grant',
    }),
    (error) => error instanceof NotBegun,
  );
  await letGo();
  const [row] = await database.sql`select 1 from calls where id = ${call.id}`;
  assert.equal(row, undefined);
});

test('a call that a chain pays does not lock the rows of house accounts, and a lock on them delays none', async () => {
  const letGo = await hold((sql) => sql`select 1 from ledger_accounts where house for update`);
  const call = chainCall();
  assert.equal((await calls.begin(call)).status, 'authorized');
  assert.equal(
    (await calls.finish({ ...call, capture: false, outcome: 'test', answer: null })).status,
    'done',
  );
  await letGo();
});

test('two processes claim one payment at once: one gets it, the other is told so, and a third payment waits for neither', async () => {
  for (let round = 0; round < 30; round++) {
    const first = chainCall();
    const again = { ...first, id: newTransferId(Date.now()) };
    const other = chainCall();
    const outcomes = await Promise.all([calls.begin(first), elsewhere.begin(again), elsewhere.begin(other)]);
    const [one, two, third] = outcomes.map(({ status }) => status);
    assert.equal(third, 'authorized');
    assert.deepEqual([one, two].sort(), ['authorized', 'running']);
  }
});

test('two processes end one on-chain call in opposite ways: one succeeds, and the other is told that it has ended', async () => {
  for (let round = 0; round < 30; round++) {
    const call = chainCall();
    await calls.begin(call);
    const ended = await Promise.all([
      calls.finish(capture(call)),
      elsewhere.finish({ ...call, capture: false, outcome: 'test', answer: null }),
    ]);
    assert.deepEqual(ended.map(({ status }) => status).sort(), ['done', 'not_open']);
  }
});

test('a call whose own row is locked is ended when the lock is released, and nobody waits for it meanwhile', async () => {
  const call = chainCall();
  await calls.begin(call);
  const letGo = await hold((sql) => sql`select 1 from calls where id = ${call.id} for update`);
  let isOver = false;
  const finish = calls.finish(capture(call)).finally(() => {
    isOver = true;
  });
  const other = chainCall();
  assert.equal((await calls.begin(other)).status, 'authorized');
  assert.equal((await calls.finish(capture(other))).status, 'done');
  assert.equal(isOver, false);
  await letGo();
  assert.equal((await finish).status, 'done');
});
