/**
 * What the coordinator of a spread database has to do for an account that lies on a worker: it does it once, also when it is killed
 * between its own commit and that of the worker.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { createDebts } from '../../../../packages/core/src/cards/disputes/debts.ts';
import { createOrderStore } from '../../../../packages/core/src/cards/orders/orders.ts';
import { createAutoRecharges } from '../../../../packages/core/src/cards/recharge/auto-recharge.ts';
import type { Pools } from '../../../../packages/core/src/db/connection.ts';
import { migrate } from '../../../../packages/core/src/db/migrate.ts';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { createBucketTurns } from '../../../../packages/core/src/ledger/bucket-turns.ts';
import { createLedger, type Ledger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { newCallId, newTransferId, transferIdFor } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { createCallStore } from '../../../../packages/core/src/paid-call/inside/calls.ts';
import { createEventLog } from '../../../../packages/core/src/webhooks/event-log.ts';
import { tellOfLowBalances } from '../../../../packages/core/src/webhooks/low-balances.ts';
import { keysOnBothWorkers, openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { giveBackPrice, PRICE, sellShared } from './citus-money.fixture.ts';
import { assertBooksClosed, balanceOf } from './money.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const BUCKETS = 16;
const GRANT = usdToMicros('10');
const SHARE = usdToMicros('0.05');
const HOUR_MS = 3_600_000;
const BATCH = 10;
const OPERATOR = 'the-token-of-an-operator-of-these-tests';

let database: SpreadDatabase;
let pools: Pools;
let ledger: Ledger;
/** Accounts on both workers, one on each. */
let accounts: { id: bigint; bucket: number }[];
const servers: ServerProcess[] = [];

before(async () => {
  if (withoutCitus !== false) return;
  database = await openSpreadDatabase();
  pools = await database.spread(4);
  ledger = createLedger(pools, Date.now, { accountBuckets: BUCKETS });
  const keys = await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT });
  accounts = [
    ...(await pools.sql<{ id: bigint; bucket: number }[]>`
      select account_id as id, bucket from api_keys
      where digest in (sha256(convert_to(${keys[0] ?? ''}, 'UTF8')), sha256(convert_to(${keys[1] ?? ''}, 'UTF8')))`),
  ];
});
after(async () => {
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  await database?.close();
});

const start = async () => {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    ACCOUNT_BUCKETS: String(BUCKETS),
    RECONCILE_INTERVAL_MS: '200',
    SERVICES: 'ping',
    ADMIN_TOKENS: `desk:${OPERATOR}`,
  });
  servers.push(server);
  return server;
};

/** A call that was charged, of which the other account has a share. */
function sell(customer: (typeof accounts)[number]): Promise<string> {
  const beneficiary = accounts.find(({ id }) => id !== customer.id)?.id;
  assert(beneficiary !== undefined);
  return sellShared(pools, customer, { beneficiary, micros: SHARE });
}

/** A trial that has ended, and a webhook that wants to hear of refunds. */
async function watch(accountId: bigint): Promise<void> {
  const { sql } = pools;
  await sql`
    insert into trial_credits (account_id, granted_micros, granted_at, expires_at, ended, ended_at, due)
    values (${String(accountId)}, 1, now(), now() + interval '1 day', 'expired', now(), false)`;
  await sql`
    insert into webhooks (id, account_id, url, events, sealed_secret, created_at, not_before)
    values (${randomUUID()}, ${String(accountId)}, 'https://hooks.farebox.test/', '{refund.made}', '', now(), 'infinity')`;
}

/** What came of a refund, as the coordinator and the account's server have it. */
async function cameOf({ id, bucket }: (typeof accounts)[number], callId: string) {
  const account = String(id);
  const [row] = await pools.sql`
    select (select count(*)::integer from account_events where account_id = ${account} and data ->> 'callId' = ${callId}) as events,
           (select count(*)::integer from webhook_deliveries d join webhooks w on w.id = d.webhook_id
            where w.account_id = ${account}) as messages,
           (select given_back_micros from trial_credits where account_id = ${account}) as given_back,
           (select due from trial_credits where account_id = ${account}) as trial_is_due`;
  const [share] = await pools.sql`
    select state, due_micros from call_shares where bucket = ${bucket} and account_id = ${account} and call_id = ${callId}`;
  const [back] = await pools.sql`
    select count(*)::integer as count, sum(amount_micros)::bigint as micros from ledger_transfers
    where bucket = ${bucket} and account_id = 13 and code = 'share_back' and note = ${`share of call ${callId}`}`;
  return { ...row, share: { ...share }, back: { ...back } };
}
const ONCE = {
  events: 1,
  messages: 1,
  given_back: PRICE,
  trial_is_due: true,
  share: { state: 2, due_micros: 0n },
  back: { count: 1, micros: SHARE },
};

test('what the coordinator hears of a refund on a worker is neither lost nor doubled by a kill -9 in between', {
  skip: withoutCitus,
}, async () => {
  const [first, second] = accounts;
  assert(first !== undefined && second !== undefined);
  const calls = [await sell(first), await sell(second)] as const;
  for (const { id } of accounts) await watch(id);
  // The worker waits for nobody.
  await giveBackPrice(ledger, first.id, calls[0]);
  const server = await new Promise<ServerProcess>((resolve, reject) => {
    void pools.sql
      .begin(async (transaction) => {
        // Whoever hears of it may; whoever strikes the note waits.
        await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
        const held = await transaction`
          select 1 from ledger_outbox where bucket = ${first.bucket} and account_id = ${String(first.id)} for key share`;
        assert.equal(held.length, 1, 'the transfer was noted');
        const started = await start();
        await until('the coordinator to have heard', async () => {
          const heard = await database.sql`
            select 1 from ledger_transfers_heard where account_id = ${String(first.id)}`;
          return heard.length === 1;
        });
        await started.end('SIGKILL');
        resolve(started);
      })
      .catch(reject);
  });
  assert.notEqual(server.process.exitCode, 0);
  const noted = await pools.sql`select 1 from ledger_outbox`;
  assert.equal(noted.length, 1, 'it was killed before it could strike the note');
  // The other account's call is given back by the server itself.
  await pools.sql`
    insert into undelivered_calls (account_id, call_id, bucket, service, price_micros, revenue_account, retrievable, next_at)
    values (${String(second.id)}, ${calls[1]}, ${second.bucket}, 'ping', ${String(PRICE)}, 1, false, now())`;
  await start();
  await until('the call to be given back', async () => (await balanceOf(pools.sql, second.id)) === GRANT);
  await until('nothing to be noted', async () => (await pools.sql`select 1 from ledger_outbox`).length === 0);
  assert.deepEqual(await cameOf(first, calls[0]), ONCE);
  assert.deepEqual(await cameOf(second, calls[1]), ONCE);
  assert.equal(await balanceOf(pools.sql, first.id), GRANT);
  // These trials were given by nobody.
  await pools.sql`delete from trial_credits`;
  await assertBooksClosed(database.sql);
});

test('a price that an operator gives back to an account on a worker is heard of too', {
  skip: withoutCitus,
}, async () => {
  const url = servers.at(-1)?.url;
  for (const account of accounts) {
    const callId = await sell(account);
    const refund = await fetch(`${url}/admin/api/accounts/${account.id}/refund-call`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${OPERATOR}`,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
      },
      body: JSON.stringify({ reason: 'no good answer', callId }),
    });
    assert.equal(refund.status, 200, await refund.text());
    await until('the share to be taken back', async () => (await cameOf(account, callId)).back.count === 1);
    const told = await pools.sql`
      select 1 from account_events where account_id = ${String(account.id)} and type = 'refund.made'`;
    assert.equal(told.length, 2, 'one for each of its calls');
    assert.equal(await balanceOf(pools.sql, account.id), GRANT);
  }
  await assertBooksClosed(database.sql);
});

test('a kept card is charged when a balance on a worker falls low, and a new version does not bring the trigger back that would let the call fail', {
  skip: withoutCitus,
}, async () => {
  // As if this version had a newer text than the one that the database has.
  await pools.sql`delete from sql_triggers where name in ('auto_recharge_falls_due', 'webhook_hears_of_refund')`;
  await migrate(pools.patient);
  const hanging = await pools.sql<{ place: string }[]>`
    select tgrelid::regclass || ' ' || tgname as place from pg_trigger
    where tgname in ('ledger_account_is_low', 'ledger_refund_is_told', 'ledger_account_is_noted') and tgparentid = 0 order by 1`;
  assert.deepEqual(
    hanging.map(({ place }) => place),
    ['ledger_accounts ledger_account_is_noted', 'ledger_transfers_heard ledger_refund_is_told'],
  );
  const orders = createOrderStore(pools.sql, Date.now);
  const charged: bigint[] = [];
  const recharges = createAutoRecharges(pools, {
    orders,
    nowMs: Date.now,
    maxPerDay: 3,
    baseUrl: 'https://farebox.test',
    mailer: { enqueue: async () => {} },
    report: () => {},
    async reconcile(id) {
      const order = await orders.find(id);
      assert(order !== null && order.accountId !== null);
      const accountId = order.accountId;
      charged.push(accountId);
      await pools.sql.begin(async (transaction) => {
        assert(await orders.change(transaction, order, { state: 'paid', paidAtMs: Date.now() }));
        await ledger.transferWithin(transaction, {
          id: transferIdFor(`card:${id}:payment`),
          accountId,
          phase: 'posted',
          side: 'credit',
          house: 'card_clearing',
          code: 'card_payment',
          amountMicros: order.creditMicros,
        });
        await recharges.paid(transaction, order);
      });
    },
  });
  const [thresholdMicros, topUpMicros] = [usdToMicros('5'), usdToMicros('10')];
  for (const { id: accountId } of accounts)
    await pools.sql.begin((transaction) =>
      recharges.enable(transaction, {
        accountId,
        thresholdMicros,
        topUpMicros,
        customerId: 'cus_1',
        paymentMethodId: 'pm_1',
        cardLabel: 'visa 4242',
        cardFingerprint: null,
        email: null,
      }),
    );
  assert.equal(await recharges.run(), 0, 'no balance is low');
  for (const { id: accountId } of accounts)
    await ledger.transfer({
      id: newTransferId(Date.now()),
      accountId,
      phase: 'posted',
      side: 'debit',
      house: 'revenue_credits',
      code: 'call',
      amountMicros: usdToMicros('6'),
    });
  assert.equal(await recharges.run(), 2);
  const ids = accounts.map(({ id }) => id);
  assert.deepEqual(charged.toSorted(), ids.toSorted());
  for (const id of ids) assert.equal(await balanceOf(pools.sql, id), usdToMicros('14'));
  assert.equal(await recharges.run(), 0, 'once');
  assert.equal((await pools.sql`select 1 from auto_recharge_notices`).length, 0);
});

test('jobs do their work on both workers', { skip: withoutCitus }, async () => {
  const { sql } = pools;
  const turns = createBucketTurns(pools);
  const keys = createKeys(sql, Date.now);
  const calls = createCallStore(pools, { nowMs: Date.now, answerTtlMs: HOUR_MS });
  const debts = createDebts(sql, { ledger, keys, turns, nowMs: Date.now });
  const log = createEventLog(sql, Date.now, 30);
  const tell = () => tellOfLowBalances(sql, { log, turns, nowMs: Date.now });
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  await sql`delete from call_answers`;
  await sql`update webhooks set events = '{balance.low}', low_below_micros = ${String(usdToMicros('13.5'))}`;
  for (const { id, bucket } of accounts) {
    await sql`
      insert into call_answers (bucket, account_id, id, status, headers, body, expires_at)
      values (${bucket}, ${String(id)}, ${newCallId(Date.now(), bucket)}, 200, '{}', '', now())`;
    for (const column of ['cap_fixed_until', 'rotated_at'])
      await sql`
        insert into api_keys (bucket, account_id, lookup, digest, prefix, kind, status, created_at, ${sql(column)})
        values (${bucket}, ${String(id)}, ${String(id * 2n + (column === 'rotated_at' ? 1n : 0n))},
                sha256(convert_to(${`${id} ${column}`}, 'UTF8')), 'key', 'paid', 'revoked', now(), now() - interval '91 days')`;
    await sql.begin((transaction) =>
      debts.owe(transaction, id, usdToMicros('1'), 'a payment that went back'),
    );
  }
  assert.equal(await tell(), 0, 'no balance is low');
  assert.equal(await debts.sweep(BATCH), 2);
  for (const { id } of accounts) assert.equal(await balanceOf(sql, id), usdToMicros('13'));
  assert.equal(await tell(), 2);
  assert.equal(await tell(), 0, 'once');
  assert.equal(await turns.each(BATCH, (bucket) => calls.dropExpiredAnswers(BATCH, bucket)), 2);
  assert.equal(await turns.each(BATCH, (bucket) => keys.releaseCaps(BATCH, bucket)), 2);
  await keys.forgetRotated(turns);
  const left = await sql`select 1 from api_keys where cap_fixed_until is not null or rotated_at is not null`;
  assert.equal(left.length, 0);
});
