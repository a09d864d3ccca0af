/**
 * Card payments that go back, on a database that Citus spreads: what they bought follows them to accounts on workers, over keys that bought
 * keys and over shares of calls; what cannot be taken back is owed; a dispute that is won gives all of it back.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { learnDistribution } from '../../../../packages/core/src/db/distribution.ts';
import { createBucketTurns } from '../../../../packages/core/src/ledger/bucket-turns.ts';
import { hearTransfers } from '../../../../packages/core/src/ledger/heard-transfers.ts';
import { createCallShares } from '../../../../packages/core/src/paid-call/inside/call-shares.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { killWaiting, PRICE, sellCall } from './citus-money.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from './money.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const USD = 1_000_000n;

let database: SpreadDatabase;
let pools: Pools;
let world: CardWorld;
const servers: ServerProcess[] = [];

before(async () => {
  if (withoutCitus !== false) return;
  database = await openSpreadDatabase();
  await database.distribute();
  pools = connectPools(database.url, 8);
  await learnDistribution(pools);
  world = await startCardWorld({
    environment: {
      ACCOUNT_BUCKETS: '16',
      NEW_CARD_KEYS_USD_PER_DAY: 'none',
      TRIAL_BUDGET_USD_PER_DAY: 'none',
    },
    database: { ...pools, url: database.url, close: () => endPools(pools, 1) },
  });
});
after(async () => {
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  await world?.stop();
  await database?.close();
});

async function start(): Promise<ServerProcess> {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    ACCOUNT_BUCKETS: '16',
    RECONCILE_INTERVAL_MS: '200',
    SERVICES: 'ping',
  });
  servers.push(server);
  return server;
}

/** A key that holds what a person has paid on the payment page. */
async function paid(amountUsd: number): Promise<{ key: string; payment: string }> {
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', { amountUsd }));
  await world.pay(opened.checkoutUrl);
  const path = `/api/m2m/credits/checkout/status/${opened.sessionId}?token=${opened.retrievalToken}`;
  const told = await jsonOf(fetch(world.server.url + path));
  assert.equal(told.paymentStatus, 'paid', JSON.stringify(told));
  const [order] = await pools.sql<{ payment_intent_id: string }[]>`
    select payment_intent_id from card_orders where session_id = ${opened.sessionId}`;
  assert(order !== undefined);
  return { key: told.apiKey, payment: order.payment_intent_id };
}

async function bought(key: string): Promise<string> {
  const told = await jsonOf(world.server.call('instant-api-key', key, {}));
  assert.notEqual(told.apiKey, undefined, JSON.stringify(told));
  return told.apiKey;
}

const held = async (key: string) => balanceOf(pools.sql, await accountOf(pools.sql, key));
const owed = async (key: string) => BigInt(Math.round(Number((await world.me(key)).owedUsd) * 1e6));

async function placeOf(key: string): Promise<{ id: bigint; bucket: number }> {
  const found = await world.server.app.keys.find(key);
  assert(found !== null);
  return { id: found.accountId, bucket: found.bucket };
}

async function heard(payment: string): Promise<void> {
  const { cards } = world.server.app;
  const order = await cards?.orders.findByPayment(payment);
  assert(cards !== null && order != null);
  await cards.reconciler.reconcile(order.id);
}

test('a dispute follows the credit to keys that were bought with it, and one that is won gives it back', {
  skip: withoutCitus,
}, async () => {
  const { key, payment } = await paid(10);
  const keys = [await bought(key), await bought(key)];
  keys.push(await bought(keys[0] ?? ''));
  assert.equal((await world.server.call('ping', keys[1] ?? '', {})).status, 200);
  const all = [key, ...keys];
  const before = await Promise.all(all.map(held));
  const had = before.reduce((sum, one) => sum + one, 0n);
  const { id } = await world.control('POST', '/disputes', { paymentIntent: payment });
  await heard(payment);
  assert.equal(
    await owed(key),
    10n * USD - (before[0] ?? 0n),
    'what was left on the account is taken in the commit of the order',
  );
  // A server that follows it has taken what is on the keys, and waits for a row of theirs.
  const [last] = await pools.sql<{ bucket: number; id: bigint }[]>`
    select bucket, id from api_keys where account_id = ${String(await accountOf(pools.sql, keys[1] ?? ''))}`;
  assert(last !== undefined);
  await killWaiting(
    { pools, start },
    (transaction) => transaction`
      select 1 from api_keys where bucket = ${last.bucket} and id = ${String(last.id)} for update`,
    "status = 'frozen'",
  );
  assert.deepEqual(await Promise.all(keys.map(held)), before.slice(1), 'nothing is half done');
  await start();
  await until('the keys to be empty', async () => {
    const left = await Promise.all(all.map(held));
    return left.every((micros) => micros === 0n);
  });
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  assert.equal(await owed(key), 10n * USD - had);
  await world.control('POST', `/disputes/${id}`, { status: 'won' });
  await heard(payment);
  await world.server.app.walks.run();
  assert.deepEqual(await Promise.all(all.map(held)), before);
  assert.equal(await owed(key), 0n);
  for (const each of all) assert.equal((await world.me(each)).status, 'active');
  await assertBooksClosed(database.sql);
});

test('shares of calls go back with the payment and come back with it, once, also by a server that is killed at it', {
  skip: withoutCitus,
}, async () => {
  const { sql } = pools;
  const { ledger } = world.server.app;
  const turns = createBucketTurns(pools);
  const hear = () => hearTransfers(pools, { turns, atOnce: 10 });
  const shares = createCallShares(pools, {
    ledger,
    nowMs: Date.now,
    cardHoldMs: 0,
  });
  const owner = await accountOf(sql, await world.server.key('1'));
  const { key, payment } = await paid(10);
  const payer = await placeOf(key);
  const note = (callId: string, accountId: bigint) =>
    shares.note({
      callId,
      payer: { by: 'account', accountId },
      beneficiary: owner,
      partPerMillion: 200_000n,
    });
  for (let nth = 0; nth < 2; nth += 1) await sellCall(pools, payer, (callId) => note(callId, payer.id));
  const due = async () => (await shares.earned(owner)).dueMicros;
  assert.equal(await due(), 100_000n);
  const { id } = await world.control('POST', '/disputes', { paymentIntent: payment });
  await heard(payment);
  assert.equal(await owed(key), 2n * PRICE);
  await killWaiting(
    { pools, start },
    (transaction) => transaction`
      select 1 from call_shares where bucket = ${payer.bucket} and account_id = ${String(payer.id)} for update`,
    'ledger_transfers_heard',
  );
  assert.equal(await due(), 100_000n, 'nothing is half done');
  assert.notEqual((await sql`select 1 from ledger_outbox`).length, 0, 'the note is still there');
  await hear();
  assert.equal(await due(), 0n);
  await assertBooksClosed(database.sql);
  await hear();
  await world.control('POST', `/disputes/${id}`, { status: 'won' });
  await heard(payment);
  assert.equal(await due(), 100_000n);
  await assertBooksClosed(database.sql);

  // A payment that came back before a worker's note was heard takes none.
  const second = await paid(10);
  const quick = await placeOf(second.key);
  await sellCall(pools, quick, (callId) => note(callId, quick.id));
  const { id: again } = await world.control('POST', '/disputes', { paymentIntent: second.payment });
  await heard(second.payment);
  await world.control('POST', `/disputes/${again}`, { status: 'won' });
  await heard(second.payment);
  await hear();
  assert.equal(await due(), 150_000n);
  await assertBooksClosed(database.sql);
});
