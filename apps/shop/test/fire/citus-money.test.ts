/**
 * Rare steps of money on a database that Citus spreads: what they change lies on the coordinator and on workers, and all of it is one commit.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Pools, Transaction } from '../../../../packages/core/src/db/connection.ts';
import { deriveApiKey } from '../../../../packages/core/src/keys/api-key.ts';
import { createKeys, type Keys } from '../../../../packages/core/src/keys/keys.ts';
import { expireTrialCredit } from '../../../../packages/core/src/keys/trial-credit.ts';
import { createBucketTurns } from '../../../../packages/core/src/ledger/bucket-turns.ts';
import { createLedger, type Ledger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { newTransferId } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { createCallShares } from '../../../../packages/core/src/paid-call/inside/call-shares.ts';
import { keysOnBothWorkers, openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { giveBackPrice, killWaiting, PRICE, sellCall } from './citus-money.fixture.ts';
import { assertBooksClosed, balanceOf } from './money.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const BUCKETS = 16;
const GRANT = usdToMicros('10');
const SHARE = usdToMicros('0.05');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let database: SpreadDatabase;
let pools: Pools;
let ledger: Ledger;
let keys: Keys;
/** Accounts on both workers, one on each, with their keys. */
let customers: Customer[];
const servers: ServerProcess[] = [];

interface Customer {
  id: bigint;
  bucket: number;
  apiKey: string;
}

before(async () => {
  if (withoutCitus !== false) return;
  database = await openSpreadDatabase();
  pools = await database.spread(6);
  ledger = createLedger(pools, Date.now, { accountBuckets: BUCKETS });
  keys = createKeys(pools.sql, Date.now, pools.distribution);
  const made = await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT });
  customers = await Promise.all(made.map(customerOf));
});
after(async () => {
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  await database?.close();
});

async function customerOf(apiKey: string): Promise<Customer> {
  const found = await keys.find(apiKey);
  assert(found !== null);
  return { id: found.accountId, bucket: found.bucket, apiKey };
}

async function start(environment: Record<string, string> = {}): Promise<ServerProcess> {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    ACCOUNT_BUCKETS: String(BUCKETS),
    RECONCILE_INTERVAL_MS: '200',
    SERVICES: 'ping',
    ...environment,
  });
  servers.push(server);
  return server;
}

/** Gives the price of a call back, and waits until a server has heard of it. */
async function giveBack({ id }: Customer, callId: string): Promise<void> {
  await giveBackPrice(ledger, id, callId);
  await until('it to be heard of', async () => (await pools.sql`select 1 from ledger_outbox`).length === 0);
}

const grant = (accountId: bigint) =>
  ({
    id: newTransferId(Date.now()),
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'operator_grants',
    code: 'operator_grant',
    amountMicros: 1n,
  }) as const;

test('a coordinator whose part of a commit fails last leaves nothing on the worker', {
  skip: withoutCitus,
}, async () => {
  const { sql } = pools;
  const changes: ((transaction: Transaction, customer: Customer) => Promise<unknown>)[] = [
    (transaction, { id }) => ledger.transferWithin(transaction, grant(id)),
    (transaction, { id }) => keys.freeze(transaction, id, 'operator', null),
    async (transaction, { id, bucket }) => {
      await ledger.lock(transaction, [id]);
      await transaction`
        update api_keys set label = 'torn' where bucket = ${bucket} and account_id = ${String(id)}`;
    },
    (transaction, { bucket }) => ledger.openAccount(transaction, bucket),
  ];
  const there = async () => {
    const [row] = await sql`
      select (select count(*) from ledger_accounts) as accounts, (select sum(credits_posted) from ledger_accounts) as credits,
             (select string_agg(status || coalesce(label, ''), ' ' order by id) from api_keys) as keys`;
    return row;
  };
  const before = await there();
  await sql`create table told (n integer)`;
  for (const customer of customers)
    for (const change of changes)
      await assert.rejects(
        sql.begin('isolation level serializable', async (transaction) => {
          // Each of two transactions reads what the other writes: the one that commits last fails, in its commit.
          await transaction`select count(*) from told`;
          await change(transaction, customer);
          await transaction`insert into told values (1)`;
          await sql.begin('isolation level serializable', async (other) => {
            await other`select count(*) from told`;
            await other`insert into told values (2)`;
          });
        }),
        { code: '40001' },
      );
  assert.deepEqual(await there(), before);
});

test('a key of a worker is rotated: the old one ends with the commit, of two at once one wins, and a frozen account keeps its own', {
  skip: withoutCitus,
}, async () => {
  const { sql } = pools;
  const fresh = () => createKeys(sql, Date.now, pools.distribution);
  const statusOf = async (apiKey: string) => {
    const found = await fresh().find(apiKey);
    return found === null ? null : (await keys.record(found.id))?.status;
  };
  for (const customer of customers) {
    const { id, bucket } = customer;
    const old = await keys.find(customer.apiKey);
    assert(old !== null);
    await keys.update(old.id, { label: 'mine', capPerDayMicros: 7n });
    const made = await Promise.all([keys.rotate(old.id), keys.rotate(old.id)]);
    const [won, ...others] = made.filter((key) => key !== null);
    assert(won !== undefined);
    assert.equal(others.length, 0, 'one of two wins');
    assert.equal(await statusOf(customer.apiKey), 'revoked');
    const found = await fresh().find(won.apiKey);
    assert.deepEqual([found?.accountId, found?.bucket], [id, bucket]);
    const { label, capPerDayMicros, status } = (await keys.record(found?.id ?? 0n)) ?? {};
    assert.deepEqual(
      { label, capPerDayMicros, status },
      { label: 'mine', capPerDayMicros: 7n, status: 'active' },
    );
    assert.equal(await keys.rotate(old.id), null, 'a key that has ended');
    customer.apiKey = won.apiKey;

    await sql.begin((transaction) => keys.freeze(transaction, id, 'operator', null));
    assert.equal(await keys.rotate(found?.id ?? 0n), null);
    const derived = deriveApiKey('secret', 'test', [String(id)]);
    const replaceAll = () => sql.begin((transaction) => keys.replaceAll(transaction, id, derived));
    assert.equal(await replaceAll(), null);
    await sql.begin((transaction) => keys.thaw(transaction, id, 'operator'));
    const [{ used } = { used: 0 }] = await sql<{ used: number }[]>`
      select count(*)::integer as used from api_keys where account_id = ${String(id)} and rotated_at is not null`;
    assert.equal(used, 1);
    let last = found?.id ?? 0n;
    for (let nth = used; nth < 24; nth++) {
      const next = await keys.rotate(last);
      last = (await fresh().find(next?.apiKey ?? ''))?.id ?? 0n;
    }
    await assert.rejects(keys.rotate(last), { code: 'KEY_ROTATED_TOO_OFTEN' });
    assert.equal((await keys.record(last))?.status, 'active', 'it goes on');
    assert.notEqual(await replaceAll(), null);
    assert.equal((await keys.record(last))?.status, 'revoked');
    assert.equal(await statusOf(derived.apiKey), 'active');
    customer.apiKey = derived.apiKey;
  }
});

test('shares of calls on both workers are noted once and paid out together, once, also by a server that is killed at it', {
  skip: withoutCitus,
}, async () => {
  const { sql } = pools;
  const shares = createCallShares(pools, {
    ledger,
    nowMs: Date.now,
    cardHoldMs: 7 * DAY_MS,
  });
  const [ownerKey] = await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT });
  const owner = await customerOf(ownerKey ?? '');
  const partPerMillion = 200_000n;
  const note = (payer: Customer) => async (callId: string) => {
    const share = { callId, payer: { by: 'account', accountId: payer.id } as const, partPerMillion };
    await shares.note({ ...share, beneficiary: owner.id });
    await shares.note({ ...share, beneficiary: owner.id });
    await shares.note({ ...share, beneficiary: payer.id });
  };
  const ofShares = () => sql`
    select account_id, state, amount_micros, due_micros, held_until from call_shares order by account_id, set_aside_at`;
  const shared = new Map<bigint, string>();
  for (const customer of customers) {
    shared.set(customer.id, await sellCall(pools, customer, note(customer)));
    await sql`
      insert into trial_credits (account_id, granted_micros, granted_at, expires_at)
      values (${String(customer.id)}, ${String(PRICE * 100n)}, now(), now() + interval '1 day')`;
    await sellCall(pools, customer, note(customer));
    await sql`delete from trial_credits where account_id = ${String(customer.id)}`;
  }
  const one = (customer: Customer | undefined) => ({
    account_id: customer?.id,
    state: 1,
    amount_micros: SHARE,
    due_micros: SHARE,
    held_until: null,
  });
  const inOrder = customers.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  assert.deepEqual([...(await ofShares())], inOrder.map(one), 'one each: trial credit is not shared');
  const earned = { calls: 2, earnedMicros: SHARE * 2n, paidMicros: 0n, dueMicros: SHARE * 2n };
  assert.deepEqual(await shares.earned(owner.id), { ...earned, heldMicros: 0n, heldFor: [] });

  assert.equal(await shares.payOut(HOUR_MS, 1), 0, 'it is too new');
  for (const { id } of customers)
    await sql`insert into account_debts (account_id, owed_micros, since) values (${String(id)}, 1, now())`;
  assert.deepEqual(await shares.earned(owner.id), {
    ...earned,
    heldMicros: SHARE * 2n,
    heldFor: ['payer_owes'],
  });
  assert.equal(await shares.payOut(-1, 1), 0, 'those who paid owe');
  await sql`delete from account_debts`;
  await sql.begin((transaction) => keys.freeze(transaction, owner.id, 'operator', null));
  assert.equal(await shares.payOut(-1, 1), 0, 'no key works');
  assert.deepEqual((await shares.earned(owner.id)).heldFor, ['no_usable_key']);
  await sql.begin((transaction) => keys.thaw(transaction, owner.id, 'operator'));

  // The server has taken the shares of one worker, and waits for those of the other.
  await sql`update call_shares set set_aside_at = ${new Date(Date.now() - 2 * DAY_MS).toISOString()}`;
  const last = customers.toSorted((a, b) => a.bucket - b.bucket).at(-1);
  assert(last !== undefined);
  await killWaiting(
    { pools, start },
    (transaction) => transaction`
      select 1 from call_shares where bucket = ${last.bucket} and account_id = ${String(last.id)} for update`,
    'call_shares',
  );
  assert.equal(
    (await ofShares()).filter(({ due_micros: due }) => due === SHARE).length,
    2,
    'nothing is half done',
  );
  assert.equal(await balanceOf(sql, owner.id), GRANT);
  await start();
  await until(
    'the shares to be paid out',
    async () => (await balanceOf(sql, owner.id)) === GRANT + SHARE * 2n,
  );
  assert.deepEqual(
    (await ofShares()).map((row) => row.due_micros),
    [0n, 0n],
  );
  assert.equal((await sql`select 1 from share_payouts`).length, 1);
  assert.equal(await shares.payOut(-1, 1), 0, 'once');
  await assertBooksClosed(database.sql);

  // What is taken back after it was paid out counts against the next.
  const first = customers.find(({ id }) => id !== last.id);
  assert(first !== undefined);
  await giveBack(last, shared.get(last.id) ?? '');
  await sellCall(pools, first, note(first));
  assert.equal(await shares.payOut(-1, 1), 0, 'nothing is left');
  assert.deepEqual((await ofShares()).map((row) => row.due_micros).toSorted(), [-SHARE, 0n, SHARE]);
  await sellCall(pools, first, note(first));
  assert.equal(await shares.payOut(-1, 1), 1);
  assert.equal(await balanceOf(sql, owner.id), GRANT + SHARE * 3n);

  // More shares than a payout has, of an account that owes something, keep those behind them from nothing.
  // A server would collect the debt.
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  await sql`insert into account_debts (account_id, owed_micros, since) values (${String(last.id)}, 1, now())`;
  await sql`
    insert into call_shares (bucket, account_id, call_id, beneficiary, amount_micros, state, due_micros, set_aside_at)
    select ${last.bucket}::integer, ${String(last.id)}::bigint, gen_random_uuid(), ${String(owner.id)}::bigint, 1, 1, 1, now()
    from generate_series(1, 10001)`;
  await sellCall(pools, first, note(first));
  assert.equal(await shares.payOut(-1, 1), 1);
  assert.equal(await balanceOf(sql, owner.id), GRANT + SHARE * 4n);
  await sql`delete from call_shares where bucket = ${last.bucket} and amount_micros = 1`;
  await sql`delete from account_debts`;
  await assertBooksClosed(database.sql);
});

test('trials that ended are taken back on both workers, once, also by a server that is killed at it; bought credit is kept', {
  skip: withoutCitus,
}, async () => {
  const { sql } = pools;
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  const [bought] = customers;
  assert(bought !== undefined);
  const trials: Customer[] = [];
  const sold = new Map<bigint, string>();
  for (const apiKey of await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT })) {
    const trial = await customerOf(apiKey);
    trials.push(trial);
    const account = String(trial.id);
    await sql`update api_keys set kind = 'trial' where bucket = ${trial.bucket} and account_id = ${account}`;
    await sql`
      update ledger_transfers set code = 'trial_grant', debit_account = 2 where bucket = ${trial.bucket} and account_id = ${account}`;
    sold.set(trial.id, await sellCall(pools, trial, async () => {}));
  }
  for (const { id } of [...trials, bought])
    await sql`
      insert into trial_credits (account_id, granted_micros, granted_at, expires_at)
      values (${String(id)}, ${String(GRANT)}, now() - interval '8 days', now() - interval '1 day')`;
  const [first] = trials;
  assert(first !== undefined);
  const ended = () => sql`
    select t.account_id, t.ended, t.expired_micros, t.due from trial_credits t order by account_id`;
  const had = await balanceOf(sql, bought.id);

  // The server has taken back what was left of one, and waits for the row of its key.
  await killWaiting(
    { pools, start },
    (transaction) => transaction`
      select 1 from api_keys where bucket = ${first.bucket} and account_id = ${String(first.id)} for update`,
    'trial_closed',
  );
  assert.equal(await balanceOf(sql, first.id), GRANT - PRICE, 'nothing is half done');
  assert.equal((await ended()).find(({ account_id: id }) => id === first.id)?.ended, null);
  await start();
  await until('all of them to end', async () => (await ended()).every(({ due }) => due === false));
  const left = GRANT - PRICE;
  assert.deepEqual(
    [...(await ended())],
    [...trials, bought]
      .toSorted((a, b) => (a.id < b.id ? -1 : 1))
      .map(({ id }) => ({
        account_id: id,
        ...(id === bought.id
          ? { ended: 'kept', expired_micros: 0n }
          : { ended: 'expired', expired_micros: left }),
        due: false,
      })),
  );
  assert.equal(await balanceOf(sql, bought.id), had);
  for (const { id, bucket } of trials) {
    assert.equal(await balanceOf(sql, id), 0n);
    const [key] =
      await sql`select trial_closed from api_keys where bucket = ${bucket} and account_id = ${String(id)}`;
    assert.equal(key?.trial_closed, true);
  }
  // What comes back to one that has ended is taken back as well.
  await giveBack(first, sold.get(first.id) ?? '');
  assert.equal((await ended()).find(({ account_id: id }) => id === first.id)?.due, true);
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  const turns = createBucketTurns(pools);
  const expire = () => expireTrialCredit(sql, { ledger, turns, nowMs: Date.now(), atOnce: 10 });
  assert.equal(await expire(), 1);
  assert.equal(await balanceOf(sql, first.id), 0n);
  assert.equal(await expire(), 0, 'once');
  await sql`delete from trial_credits where account_id = ${String(bought.id)}`;
  await sql`insert into trial_days (day, granted_micros, trials) values (now()::date, ${String(GRANT * 2n)}, 2)`;
  await assertBooksClosed(database.sql);
});
