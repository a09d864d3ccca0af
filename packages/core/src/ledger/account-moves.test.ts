/** Accounts that are moved to other buckets on one PostgreSQL; `fire/citus-accounts` does the same where the buckets lie on several servers. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { StartError } from '@farebox/process/start-error';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { PRICE } from '../../../../apps/shop/test/fire/citus-money.fixture.ts';
import { assertBooksClosed } from '../../../../apps/shop/test/fire/money.fixture.ts';
import {
  type Customer,
  customerOf,
  moveAndCompare,
  openCustomer,
  sellBefore,
} from '../../../../apps/shop/test/fire/moved-accounts.fixture.ts';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { SURROUNDINGS } from '../../../../apps/shop/test/surroundings.fixture.ts';
import { createDatabaseClock } from '../db/clock.ts';
import { createReplica } from '../db/replicas.ts';
import { createKeys } from '../keys/keys.ts';
import { createCallStore } from '../paid-call/inside/calls.ts';
import { moveSales } from '../paid-call/moved-sales.ts';
import { moveAccounts } from './account-moves.ts';
import { NotBegun } from './group-commit.ts';
import { createLedger, type Transfer } from './ledger.ts';
import { newCallId, newTransferId } from './transfer-id.ts';

const HOUR_MS = 3_600_000;
const COMMAND = join(import.meta.dirname, '../../../../apps/shop/src/commands/move-accounts.ts');

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

test('an account goes with all that is its own, and what was bought before is answered, given back and shared as before', async () => {
  const sold = await sellBefore(database);
  await moveAndCompare(database, sold, {
    proveBooks: () => assertBooksClosed(database.patient),
    hear: async () => {},
  });
});

test('nothing is moved while a server lives that would not look again', async () => {
  const { sql } = database;
  const customer = await openCustomer(database);
  const move = () => moveAccounts(database, { carry: moveSales, from: 0, buckets: 4 });
  // As a version from before accounts moved notes itself.
  await sql`insert into replicas (started_at, seen_at) values (now(), now())`;
  await assert.rejects(
    move(),
    (error) => error instanceof StartError && /a server of an older version runs/.test(error.message),
  );
  assert.equal((await customerOf(database, customer.apiKey)).bucket, 0);
  await sql`delete from replicas`;
  const replica = createReplica({
    sql,
    clock: createDatabaseClock(),
    nowMs: Date.now,
    free: async () => {},
    ended: async () => {},
  });
  await replica.start();
  assert.deepEqual(await move(), { moved: 1, open: [] });
  await replica.stop();
});

/** What a process has that sold to a customer before it was moved: all of it remembers the bucket. */
async function processOf(customer: Customer) {
  const keys = createKeys(database.sql, Date.now);
  const calls = createCallStore(database, { nowMs: Date.now, answerTtlMs: HOUR_MS });
  const ledger = createLedger(database, Date.now);
  const { id: accountId, keyId } = customer;
  const call = (identity: string | null, id = newCallId(Date.now(), 0)) => ({
    id,
    accountId,
    bucket: 0,
    keyId,
    rail: 'credits',
    service: 'ping',
    ttlMs: 40_000,
    priceMicros: PRICE,
    revenue: 'revenue_credits' as const,
    identity,
    onChainIdentity: null,
    fingerprint: Buffer.from('asked'),
  });
  const end = { capture: true, outcome: 'answered', answer: { status: 200, headers: {}, body: '"sold"' } };
  const sold = call('key:sold');
  assert.equal((await calls.begin(sold)).status, 'authorized');
  assert.equal((await calls.finish({ ...sold, ...end })).status, 'done');
  assert.equal((await keys.find(customer.apiKey))?.bucket, 0);
  const credit = (): Transfer => ({
    id: newTransferId(Date.now()),
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'operator_grants',
    amountMicros: 5n,
    code: 'operator_grant',
  });
  assert.equal((await ledger.transfer(credit())).status, 'done');
  return { keys, calls, ledger, call, end, sold, credit };
}

/** The buckets in which rows of an account lie, and how many calls of it there are. */
async function placesOf(account: bigint) {
  const [row] = await database.sql<{ buckets: number[]; calls: number }[]>`
    select array_agg(distinct bucket) as buckets, (select count(*)::integer from calls where account_id = ${String(account)}) as calls
    from (
      select bucket from calls where account_id = ${String(account)}
      union all select bucket from ledger_transfers where account_id = ${String(account)}
      union all select bucket from api_keys where account_id = ${String(account)}
      union all select bucket from call_identities where account_id = ${String(account)}
      union all select bucket from call_spending where account_id = ${String(account)}
    ) rows`;
  return row;
}

test('a process that remembers where an account was sells, answers, gives back and credits where it is', async () => {
  const { sql } = database;
  const customer = await openCustomer(database);
  const { keys, calls, ledger, call, end, sold, credit } = await processOf(customer);
  const free = call(null);
  assert.equal((await calls.begin(free)).status, 'authorized');
  assert.equal((await calls.finish({ ...free, ...end, capture: false, outcome: 'FAILED' })).status, 'done');
  for (const [from, buckets] of [
    [0, 4],
    [null, 97],
    [null, 53],
  ] as const) {
    const before = (await customerOf(database, customer.apiKey)).bucket;
    const { moved } = await moveAccounts(database, { carry: moveSales, from: from ?? before, buckets });
    assert.equal(moved, 1);
    const { bucket } = await customerOf(database, customer.apiKey);
    assert.notEqual(bucket, before);
    // What was asked for before is not charged again, and neither is what is ended again.
    assert.deepEqual(await calls.begin(call('key:sold')), { status: 'answered', callId: sold.id });
    assert.equal((await calls.answerOf(customer.id, sold.id))?.body, '"sold"');
    assert.equal((await calls.finish({ ...sold, ...end })).status, 'done');
    assert.equal((await calls.finish({ ...free, ...end })).status, 'not_open');
    const more = call(`key:more in ${bucket}`);
    assert.equal((await calls.begin(more)).status, 'authorized');
    assert.equal((await calls.finish({ ...more, ...end })).status, 'done');
    assert.equal((await ledger.transfer(credit())).status, 'done');
    const held = await sql.begin(async (transaction) => {
      assert.equal((await ledger.transferWithin(transaction, credit())).status, 'done');
      await keys.issue(transaction, {
        accountId: customer.id,
        kind: 'grant',
        label: null,
        expiresAtMs: null,
      });
      return [...(await ledger.lock(transaction, [customer.id])).keys()];
    });
    assert.deepEqual(held, [customer.id]);
    assert.deepEqual((await placesOf(customer.id))?.buckets, [bucket]);
  }
  assert.equal((await placesOf(customer.id))?.calls, 5);
  await assertBooksClosed(database.patient);
});

test('a call, a credit and a key that come while an account is being moved wait for it, and then lie where it is', async () => {
  const { sql, patient } = database;
  const customer = await openCustomer(database);
  const { keys, calls, ledger, call, credit } = await processOf(customer);
  const waits = (query: string, count = 1) =>
    until(`${query} to wait`, async () => {
      const rows = await sql`
        select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like ${`%${query}%`}`;
      return rows.length >= count;
    });
  let moved: Promise<unknown> = Promise.resolve();
  let others: Promise<unknown> = Promise.resolve();
  await patient.begin(async (transaction) => {
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
    await transaction`select 1 from api_keys where id = ${String(customer.keyId)} for update`;
    moved = moveAccounts(database, { carry: moveSales, from: 0, buckets: 4, lockTimeoutMs: 60_000 });
    await waits('update api_keys');
    // The account's own row is moved already, and not committed.
    const twice = call('key:meanwhile');
    others = Promise.all([
      calls.begin(twice),
      calls.begin(call('key:meanwhile')),
      ledger.transfer(credit()),
      sql.begin((within) =>
        keys.issue(within, { accountId: customer.id, kind: 'grant', label: null, expiresAtMs: null }),
      ),
    ]);
    others.catch(() => {});
    await waits('for key share');
  });
  assert.deepEqual(await moved, { moved: 1, open: [] });
  const [first, second, credited] = (await others) as { status: string }[];
  assert.deepEqual([first?.status, second?.status, credited?.status], ['authorized', 'running', 'done']);
  const { bucket } = await customerOf(database, customer.apiKey);
  assert.deepEqual((await placesOf(customer.id))?.buckets, [bucket]);
  await sql`update calls set expires_at = now() where account_id = ${String(customer.id)} and state = 0`;
  for (const open of await calls.expired(10))
    await calls.finish({ ...open, capture: false, outcome: 'EXPIRED', answer: null });
  await assertBooksClosed(database.patient);
});

test('a key that somebody is about to issue goes with its account, and an account that is held is left for later', async () => {
  const { patient } = database;
  const customer = await openCustomer(database);
  const keys = createKeys(database.sql, Date.now);
  const plan = { carry: moveSales, from: 0, buckets: 4 };
  const looked = Promise.withResolvers<void>();
  let later: Promise<unknown> = Promise.resolve();
  await patient.begin(async (transaction) => {
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
    await keys.issue(transaction, { accountId: customer.id, kind: 'grant', label: null, expiresAtMs: null });
    assert.deepEqual(await moveAccounts(database, plan), { moved: 0, open: [customer.id] });
    const again = { times: 50, afterMs: 20 };
    later = moveAccounts(database, { ...plan, again, moved: () => looked.resolve() });
    await looked.promise;
  });
  assert.deepEqual(await later, { moved: 1, open: [] });
  const { bucket } = await customerOf(database, customer.apiKey);
  assert.deepEqual((await placesOf(customer.id))?.buckets, [bucket]);
});

test('nobody is told that an account which there is not was asked for in the wrong bucket: nothing is done', async () => {
  const calls = createCallStore(database, { nowMs: Date.now, answerTtlMs: HOUR_MS });
  const customer = await openCustomer(database);
  const { call } = await processOf(customer);
  const nobody = { ...call(null), accountId: 999_999n };
  await assert.rejects(calls.begin(nobody), NotBegun);
  await assert.rejects(
    calls.finish({ ...nobody, capture: false, outcome: 'FAILED', answer: null }),
    NotBegun,
  );
  await moveAccounts(database, { carry: moveSales, from: 0, buckets: 4 });
});

test('nothing is moved while a week is being archived: its rows are in files already', async () => {
  const { sql } = database;
  const customer = await openCustomer(database);
  await sql`
    insert into call_archives (week, from_id, to_id, sealed_at)
    values ('w20251124', '0199a000-0000-0000-0000-000000000000', '0199b000-0000-0000-0000-000000000000', now())`;
  await assert.rejects(
    moveAccounts(database, { carry: moveSales, from: 0, buckets: 4 }),
    (error) => error instanceof StartError && /the week w20251124 is being archived/.test(error.message),
  );
  assert.equal((await customerOf(database, customer.apiKey)).bucket, 0);
  await sql`delete from call_archives`;
});

test('an account stays while something of its credit is reserved, whatever for', async () => {
  const customer = await openCustomer(database);
  const ledger = createLedger(database, Date.now);
  const reserved = {
    id: newTransferId(Date.now()),
    accountId: customer.id,
    side: 'debit',
    house: 'revenue_credits',
    amountMicros: 1n,
    code: 'call',
  } as const;
  await ledger.transfer({ ...reserved, phase: 'pending' });
  const { open } = await moveAccounts(database, { carry: moveSales, from: 0, buckets: 4 });
  assert.deepEqual(open, [customer.id]);
  await createLedger(database, Date.now).transfer({ ...reserved, phase: 'void' });
  assert.deepEqual(await moveAccounts(database, { carry: moveSales, from: 0, buckets: 4 }), {
    moved: 1,
    open: [],
  });
});

test('an account stays while a call of it is open, though nothing is reserved for it', async () => {
  const { sql } = database;
  const customer = await openCustomer(database);
  const id = newCallId(Date.now(), 0);
  await sql`
    insert into calls (bucket, account_id, id, rail, service, price_micros, created_at, expires_at)
    values (0, ${String(customer.id)}, ${id}, 'credits', 'ping', 0, now(), now() + interval '1 minute')`;
  const move = () => moveAccounts(database, { carry: moveSales, from: 0, buckets: 4 });
  assert.deepEqual(await move(), { moved: 0, open: [customer.id] });
  await sql`delete from calls where id = ${id}`;
  assert.deepEqual(await move(), { moved: 1, open: [] });
});

test('an account stays while a call of it has still to be given back', async () => {
  const { sql } = database;
  const customer = await openCustomer(database);
  await sql`
    insert into undelivered_calls (account_id, call_id, service, price_micros, revenue_account, retrievable, next_at)
    values (${String(customer.id)}, gen_random_uuid(), 'ping', 1, 1, false, now())`;
  assert.deepEqual(await moveAccounts(database, { carry: moveSales, from: 0, buckets: 4 }), {
    moved: 0,
    open: [customer.id],
  });
  await sql`delete from undelivered_calls`;
});

test('the command says what it moved, and needs buckets to move accounts to', () => {
  const run = (buckets: string, ...args: string[]) =>
    spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', COMMAND, ...args], {
      env: {
        ...SURROUNDINGS,
        DATABASE_URL: database.url,
        FAREBOX_SECRET: 'a secret of the tests',
        ACCOUNT_BUCKETS: buckets,
      },
      encoding: 'utf8',
    });
  assert.match(run('1').stderr, /ACCOUNT_BUCKETS is 1.*\nusage: npm run database:move-accounts/);
  assert.match(run('4', '--from', 'x').stderr, /--from must be the number of a bucket/);
  const { status, stdout } = run('4');
  assert.equal(status, 0);
  assert.equal(stdout, '1 accounts moved\nAll accounts of the bucket are moved.\n');
  assert.equal(run('4').stdout, '0 accounts moved\nNo account had to be moved.\n');
});
