/** Accounts that are moved to other buckets, on one PostgreSQL and on a database that Citus spreads: what must be as it was before. */
import assert from 'node:assert/strict';
import type { Pools } from '../../../../packages/core/src/db/connection.ts';
import { SPREAD } from '../../../../packages/core/src/db/distribute.ts';
import { openGrants } from '../../../../packages/core/src/keys/grant.ts';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { recordRootBuyer } from '../../../../packages/core/src/keys/root-buyer.ts';
import { moveAccounts } from '../../../../packages/core/src/ledger/account-moves.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { newCallId } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { createCallShares } from '../../../../packages/core/src/paid-call/inside/call-shares.ts';
import { createCallStore } from '../../../../packages/core/src/paid-call/inside/calls.ts';
import { moveSales } from '../../../../packages/core/src/paid-call/moved-sales.ts';
import { giveBackPrice, PRICE, sellCall, sellShared } from './citus-money.fixture.ts';
import { balanceOf } from './money.fixture.ts';

const GRANT = usdToMicros('10');
const SHARE = usdToMicros('0.05');
const HOUR_MS = 3_600_000;
const FINGERPRINT = Buffer.from('what was asked');

export interface Customer {
  id: bigint;
  bucket: number;
  keyId: bigint;
  apiKey: string;
}

/** Opens an account with credit and a key, in bucket 0. */
export async function openCustomer(pools: Pools, amountMicros = GRANT): Promise<Customer> {
  const { apiKey } = await openGrants(pools, Date.now)({ amountMicros, label: 'test', note: 'test' });
  return customerOf(pools, apiKey);
}

/** Finds whose key it is, as a process does that has just started. */
export async function customerOf(pools: Pools, apiKey: string): Promise<Customer> {
  const found = await createKeys(pools.sql, Date.now, pools.distribution).find(apiKey);
  assert(found !== null, 'the key is found');
  return { id: found.accountId, bucket: found.bucket, keyId: found.id, apiKey };
}

/** A call that names its payment. @param id of one that is begun again */
function namedCall({ id: accountId, bucket, keyId }: Customer, id?: string) {
  return {
    id: id ?? newCallId(Date.now(), bucket),
    accountId,
    bucket,
    keyId,
    rail: 'credits',
    service: 'ping',
    ttlMs: 40_000,
    priceMicros: PRICE,
    revenue: 'revenue_credits' as const,
    identity: 'key:once',
    onChainIdentity: null,
    fingerprint: FINGERPRINT,
  };
}

const storeOf = (pools: Pools) => createCallStore(pools, { nowMs: Date.now, answerTtlMs: HOUR_MS });

/** All rows of an account in tables that have buckets, as text, but for the bucket; and the buckets they are in. */
async function rowsOf({ sql }: Pools, account: bigint, calls: readonly string[]) {
  const rows: string[] = [];
  const buckets = new Set<number>();
  for (const { table } of SPREAD) {
    const own = table === 'ledger_accounts' ? 'id' : 'account_id';
    const found = await sql.unsafe<{ bucket: number; text: string }[]>(
      `select bucket, '${table} ' || (to_jsonb(t) - 'bucket')::text as text from ${table} t
       where ${own} = ${account}${table === 'ledger_transfers' ? ` or account_id = 13 and note = any($1)` : ''}`,
      table === 'ledger_transfers' ? [calls.map((call) => `share of call ${call}`)] : [],
    );
    for (const { bucket, text } of found) {
      rows.push(text);
      buckets.add(bucket);
    }
  }
  return { rows: rows.sort(), buckets: [...buckets] };
}

const ANSWER = { status: 200, headers: { 'x-kept': 'yes' }, body: '{"kept":true}' };

/** Sales to customers of bucket 0, before any of them is moved. */
export interface Sold {
  /** Has a call with a name and an answer, and three that share their price, of which one was given back. */
  buyer: Customer;
  /** An account that the buyer bought. */
  child: Customer;
  /** Gets the shares. */
  owner: Customer;
  /** Has a call that is open. */
  busy: Customer;
  bought: ReturnType<typeof namedCall>;
  open: ReturnType<typeof namedCall>;
  shared: readonly string[];
}

/** Sells them. What is noted on a database that is spread is not heard of yet. */
export async function sellBefore(pools: Pools): Promise<Sold> {
  const calls = storeOf(pools);
  const buyer = await openCustomer(pools);
  const child = await openCustomer(pools);
  const owner = await openCustomer(pools);
  const busy = await openCustomer(pools);
  await pools.sql.begin((transaction) => recordRootBuyer(transaction, child.id, { accountId: buyer.id }));
  const bought = namedCall(buyer);
  const taken = { capture: true, outcome: 'answered', answer: ANSWER };
  assert.equal((await calls.begin(bought)).status, 'authorized');
  assert.equal((await calls.finish({ ...bought, ...taken })).status, 'done');
  const shared: string[] = [];
  for (let nth = 0; nth < 3; nth++)
    shared.push(await sellShared(pools, buyer, { beneficiary: owner.id, micros: SHARE }));
  await giveBackPrice(createLedger(pools, Date.now), buyer.id, shared[0] ?? '');
  const open = namedCall(busy);
  assert.equal((await calls.begin(open)).status, 'authorized');
  return { buyer, child, owner, busy, bought, open, shared };
}

/**
 * Moves the accounts that can be moved, and compares. The one whose call is open stays until that has ended.
 *
 * @param parts.proveBooks throws unless the books balance
 * @param parts.hear has what is noted heard of
 */
export async function moveAndCompare(
  pools: Pools,
  sold: Sold,
  parts: { proveBooks(): Promise<unknown>; hear(): Promise<unknown> },
): Promise<void> {
  const { sql } = pools;
  const { buyer, child, owner, busy, bought, open, shared } = sold;
  const calls = storeOf(pools);
  const before = await rowsOf(pools, buyer.id, shared);
  assert.deepEqual(before.buckets, [0]);
  assert.equal(before.rows.filter((row) => row.includes('"code": "share')).length, 4);

  const first = await moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 });
  assert.deepEqual(first, { moved: 3, open: [busy.id] });
  const moved = await customerOf(pools, buyer.apiKey);
  assert.notEqual(moved.bucket, 0);
  assert.equal((await customerOf(pools, child.apiKey)).bucket, moved.bucket, 'one root buyer, one bucket');
  assert.equal((await customerOf(pools, busy.apiKey)).bucket, 0);
  const after = await rowsOf(pools, buyer.id, shared);
  assert.deepEqual(after, { rows: before.rows, buckets: [moved.bucket] });
  assert.deepEqual(await moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 }), {
    moved: 0,
    open: [busy.id],
  });
  const again = await moveAccounts(pools, { carry: moveSales, from: moved.bucket, buckets: 4 });
  assert.deepEqual(again, { moved: 0, open: [] }, 'an account that is where it belongs stays');

  // The same payment is the same purchase, and its answer is found by an id that names the old bucket.
  const repeated = { ...namedCall(moved), id: newCallId(Date.now(), moved.bucket) };
  assert.deepEqual(await calls.begin(repeated), { status: 'answered', callId: bought.id });
  assert.deepEqual(await calls.answerOf(buyer.id, bought.id), { ...ANSWER, transaction: null });

  assert.equal(
    (await calls.finish({ ...open, capture: true, outcome: 'answered', answer: null })).status,
    'done',
  );
  assert.deepEqual(await moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 }), {
    moved: 1,
    open: [],
  });
  await sell(pools, await customerOf(pools, busy.apiKey));
  await parts.proveBooks();

  // A share of a call from before is taken back with its price, and the other is paid out where its owner is now.
  const ledger = createLedger(pools, Date.now);
  await giveBackPrice(ledger, buyer.id, shared[1] ?? '');
  await parts.hear();
  const shares = createCallShares(pools, { ledger, nowMs: Date.now, cardHoldMs: 0 });
  assert.equal(await shares.payOut(-1, 10), 1);
  assert.equal(await balanceOf(sql, owner.id), GRANT + SHARE);
  await sell(pools, moved);
  assert.equal(await balanceOf(sql, buyer.id), GRANT - 3n * PRICE);
  await parts.proveBooks();
}

async function sell(pools: Pools, customer: Customer): Promise<void> {
  await sellCall(pools, customer, async () => {});
}

/** Numbers of buckets, of which one spreads an account elsewhere than where it is. */
const SPREADS = [4, 97, 53, 31, 11, 7, 5];

/** Moves an account out of its bucket, with all others that are there, beside whatever is sold to it. */
export async function moveElsewhere(pools: Pools, { apiKey }: Customer): Promise<void> {
  const { id, bucket: from } = await customerOf(pools, apiKey);
  for (const buckets of SPREADS) {
    const again = { times: 300, afterMs: 20 };
    const { open } = await moveAccounts(pools, { carry: moveSales, from, buckets, again });
    assert(!open.includes(id), 'the account could not be moved');
    if ((await customerOf(pools, apiKey)).bucket !== from) return;
  }
  throw new Error('no number of buckets spreads the account elsewhere');
}
