/** An account, its calls and its money lie in one bucket, whatever a request says, and whatever a replica is set to. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';
import { proveBooks } from '../../../../../apps/shop/test/books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { createLedger, type Ledger, type Transfer } from '../../ledger/ledger.ts';
import { newCallId, newTransferId, transferIdFor } from '../../ledger/transfer-id.ts';
import { applyCalls, type CallWork } from './call-batch.ts';
import type { CallToBegin } from './call-steps.ts';
import { type CallStore, createCallStore } from './calls.ts';

const PRICE = 250_000n;
const HOUR_MS = 3_600_000;
const FINGERPRINT = createHash('sha256').update('question').digest();

let database: TestDatabase;
let ledger: Ledger;
let calls: CallStore;
before(async () => {
  database = await openTestDatabase();
  ledger = createLedger(database, Date.now, { accountBuckets: 4 });
  calls = createCallStore(database, { nowMs: Date.now, answerTtlMs: HOUR_MS });
});
afterEach(async () => {
  assert.deepEqual(
    (await proveBooks(database.patient)).checks.filter(({ ok }) => !ok),
    [],
  );
});
after(() => database?.close());

const grantOf = (accountId: bigint): Transfer => ({
  id: newTransferId(Date.now()),
  accountId,
  phase: 'posted',
  side: 'credit',
  house: 'operator_grants',
  amountMicros: 1_000_000n,
  code: 'operator_grant',
});
const customer = (bucket?: number) =>
  database.sql.begin(async (transaction) => {
    const accountId = await ledger.openAccount(transaction, bucket);
    await ledger.transferWithin(transaction, grantOf(accountId));
    return accountId;
  });

function callOf(accountId: bigint, bucket: number, identity: string | null = null): CallToBegin {
  return {
    id: newCallId(Date.now(), bucket),
    accountId,
    bucket,
    keyId: null,
    rail: 'credits',
    service: 'ping',
    ttlMs: 40_000,
    priceMicros: PRICE,
    revenue: 'revenue_credits',
    identity,
    onChainIdentity: null,
    fingerprint: identity === null ? null : FINGERPRINT,
  };
}
const endOf = (call: CallToBegin, capture = true) => ({
  ...call,
  capture,
  outcome: capture ? 'answered' : 'failed',
  answer: capture ? { status: 200, headers: {}, body: '{}' } : null,
});
/** The tables that hold rows about an account, with the buckets of these rows. */
async function bucketsOf(accountId: bigint) {
  const id = String(accountId);
  const rows = await database.sql<{ place: string; buckets: number[] }[]>`
    select place, array_agg(distinct bucket order by bucket)::integer[] as buckets from (
      select 'account' as place, bucket from ledger_accounts where id = ${id}
      union all select 'calls', bucket from calls where account_id = ${id}
      union all select 'answers', bucket from call_answers where account_id = ${id}
      union all select 'transfers', bucket from ledger_transfers where account_id = ${id}
      union all select 'identities', bucket from call_identities where account_id = ${id}
      union all select 'spending', bucket from call_spending where account_id = ${id}
      union all select 'shares', bucket from call_shares where account_id = ${id}
      union all select 'shares owed', bucket from ledger_transfers where account_id = 13 and id in (
        select id from calls where account_id = ${id})
      union all select 'shares back', bucket from ledger_transfers where account_id = 13 and code = 'share_back'
        and note in (select 'share of call ' || id from calls where account_id = ${id})
    ) r group by place`;
  return Object.fromEntries(rows.map(({ place, buckets }) => [place, buckets]));
}

test('all rows of an account lie in the bucket that it was opened in, shares of its calls too', async () => {
  const [account, beneficiary] = await Promise.all([customer(3), customer(1)]);
  const call = callOf(account, 3, 'order 1');
  assert.equal((await calls.begin(call)).status, 'authorized');
  await database.sql`
    insert into call_shares (bucket, account_id, call_id, beneficiary, amount_micros)
    values (3, ${String(account)}, ${call.id}, ${String(beneficiary)}, 1000)`;
  await database.sql`update calls set shared = true where id = ${call.id}`;
  assert.deepEqual(await calls.finish(endOf(call)), { status: 'done', availableMicros: 750_000n });
  const refund: Transfer = {
    ...grantOf(account),
    id: transferIdFor(`refund:${call.id}`),
    house: 'revenue_credits',
    amountMicros: PRICE,
    code: 'call_refund',
    note: `undelivered call ${call.id}`,
  };
  assert.equal((await ledger.transfer(refund)).status, 'done');
  assert.equal((await ledger.transfer(refund)).status, 'done');
  assert.deepEqual(await bucketsOf(account), {
    account: [3],
    calls: [3],
    answers: [3],
    transfers: [3],
    identities: [3],
    spending: [3],
    shares: [3],
    'shares owed': [3],
    'shares back': [3],
  });
  assert.equal((await ledger.balance(account)).availableMicros, 1_000_000n);
});

test('a call that names another bucket than that of its account reserves and takes nothing there', async () => {
  const account = await customer(2);
  const call = callOf(account, 2);
  const settings = { answerTtlMs: HOUR_MS, nowMs: Date.now(), holder: null };
  const inBucket1 = (work: CallWork) =>
    applyCalls(database.commits, [{ ...work, call: { ...work.call, bucket: 1 } } as CallWork], settings);
  assert.deepEqual(await inBucket1({ kind: 'begin', call }), [{ status: 'elsewhere' }]);
  await calls.begin(call);
  assert.deepEqual(await inBucket1({ kind: 'finish', call: endOf(call) }), [{ status: 'elsewhere' }]);
  const [left] = await applyCalls(
    database.commits,
    [{ kind: 'begin', call: callOf(account, 3) }],
    settings,
    // As what a chain pays.
    () => false,
  );
  assert.equal(left?.status, 'locked');
  assert.deepEqual(await ledger.balance(account), {
    balanceMicros: 1_000_000n,
    reservedMicros: PRICE,
    availableMicros: 750_000n,
    spentMicros: 0n,
  });
  assert.equal((await calls.finish(endOf(call))).status, 'done');
  assert.deepEqual((await bucketsOf(account)).calls, [2]);
});

test('a batch holds calls of one bucket, and calls of many buckets are begun and ended beside each other', async () => {
  const accounts = await Promise.all(
    Array.from({ length: 4 }, async (_, bucket) => [await customer(bucket), bucket] as const),
  );
  const works = accounts.map(([account, bucket]) => ({
    kind: 'begin' as const,
    call: callOf(account, bucket),
  }));
  await assert.rejects(
    applyCalls(database.commits, works, { answerTtlMs: HOUR_MS, nowMs: Date.now(), holder: null }),
    /a batch has calls of two buckets/,
  );
  const all = Array.from({ length: 3 }, () =>
    accounts.map(([account, bucket]) => callOf(account, bucket)),
  ).flat();
  const begun = await Promise.all(all.map((call) => calls.begin(call)));
  assert.deepEqual(new Set(begun.map(({ status }) => status)), new Set(['authorized']));
  const ended = await Promise.all(all.map((call, index) => calls.finish(endOf(call, index % 2 === 0))));
  assert.deepEqual(new Set(ended.map(({ status }) => status)), new Set(['done']));
  const granted = await Promise.all(accounts.map(([account]) => ledger.transfer(grantOf(account))));
  assert.deepEqual(new Set(granted.map(({ status }) => status)), new Set(['done']));
  for (const [account, bucket] of accounts) assert.deepEqual((await bucketsOf(account)).transfers, [bucket]);
});

test('a replica with another setting serves the same account, and an Idempotency-Key buys once through both', async () => {
  const account = await customer(3);
  const elsewhere = createLedger(database, Date.now);
  const store = createCallStore(database, { nowMs: Date.now, answerTtlMs: HOUR_MS });
  const [one, two] = [callOf(account, 3, 'order 2'), callOf(account, 3, 'order 2')];
  const both = await Promise.all([calls.begin(one), store.begin(two)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ['authorized', 'running']);
  const sold = both[0].status === 'authorized' ? one : two;
  await store.finish(endOf(sold));
  assert.deepEqual(await calls.begin(callOf(account, 3, 'order 2')), { status: 'answered', callId: sold.id });
  assert.equal((await elsewhere.transfer(grantOf(account))).status, 'done');
  assert.equal((await elsewhere.balance(account)).availableMicros, 1_750_000n);
  assert.deepEqual((await bucketsOf(account)).transfers, [3]);
  const opened = await database.sql.begin((transaction) => elsewhere.openAccount(transaction));
  assert.deepEqual((await bucketsOf(opened)).account, [0]);
});

test('new accounts are spread over all buckets that are set, and no other', async () => {
  const opened = await database.sql.begin(async (transaction) => {
    const ids: bigint[] = [];
    for (let nth = 0; nth < 100; nth++) ids.push(await ledger.openAccount(transaction));
    return ids;
  });
  const rows = await database.sql<{ bucket: number }[]>`
    select distinct bucket from ledger_accounts where id >= ${String(opened[0])} order by 1`;
  assert.deepEqual(
    rows.map(({ bucket }) => bucket),
    [0, 1, 2, 3],
  );
});

test('what is left open is found with its bucket, and the id of a call from before there were buckets says nothing', async () => {
  const account = await customer(1);
  // By its id it would be of another bucket.
  const call = { ...callOf(account, 1), id: newCallId(Date.now(), 2), ttlMs: 0 };
  await calls.begin(call);
  const [expired] = (await calls.expired(100)).filter(({ id }) => id === call.id);
  assert.equal(expired?.bucket, 1);
  assert.equal((await calls.finish({ ...endOf(call, false), ...expired })).status, 'done');
  assert.equal((await ledger.balance(account)).reservedMicros, 0n);
});

test('the books find a call and a transfer that lie elsewhere than their account', async () => {
  const account = await customer(2);
  const call = callOf(account, 2);
  await calls.begin(call);
  for (const table of ['calls', 'ledger_transfers']) {
    await database.sql.unsafe(`update ${table} set bucket = 1 where id = '${call.id}'`);
    const [broken, ...more] = (await proveBooks(database.patient)).checks.filter(({ ok }) => !ok);
    assert.match(broken?.finding ?? '', new RegExp(`${call.id} .* lies in bucket 1, and not 2`));
    assert.deepEqual(more, []);
    await database.sql.unsafe(`update ${table} set bucket = 2 where id = '${call.id}'`);
  }
  assert.equal((await calls.finish(endOf(call))).status, 'done');
});

test('the house lies in bucket 0', async () => {
  await assert.rejects(
    database.sql`update ledger_accounts set bucket = 1 where id = 5`,
    /ledger_accounts_bucket/,
  );
  await assert.rejects(
    database.sql`insert into ledger_accounts (id, house, bucket) values (999999, false, 4096)`,
    /ledger_accounts_bucket/,
  );
});
