/**
 * The database goes away under a paid call: before a statement arrives, or after it was committed and before anybody
 * was told. No answer is delivered uncharged, and in the end nothing is charged that was not delivered and cannot be
 * asked for.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { z } from 'zod';
import { connectPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf, openCalls, refundsOf } from './money.fixture.ts';
import { type Cut, startWire, type Wire } from './proxy.fixture.ts';
import { until } from './until.fixture.ts';

const MINUTE_MS = 60_000;
/** A statement is sent so often before its sender gives up. */
const ATTEMPTS = 5;

let runs = 0;
const counted = defineService({
  path: 'counted',
  name: 'Counted',
  tag: 'Discovery',
  priceUsd: '0.10',
  summary: 'For tests.',
  input: z.object({}),
  output: z.object({ run: z.number().int() }),
  example: {},
  async run() {
    runs += 1;
    return answer({ run: runs }, { method: 'Counted.' });
  },
});

/** A statement that reserves a price names the rail; one that takes a price, its outcome; a refund, its code. */
const begin = (sent: string) => sent.includes('{"credits"');
const capture = (sent: string) => sent.includes('{"answered"');
const refund = (sent: string) => sent.includes('{"call_refund"');

let database: TestDatabase;
let wire: Wire;
let fragile: Pools;
/** Its database is at the other end of the wire. */
let server: TestServer;
/** Has a database of its own accord: another replica, which nothing befalls. */
let sound: TestServer;
let nowMs = Date.parse('2026-11-21T10:00:00Z');

before(async () => {
  database = await openTestDatabase();
  wire = await startWire(database.url);
  fragile = connectPools(wire.url, 5);
  server = await startTestServer({ pools: fragile, services: [counted], nowMs: () => nowMs });
  sound = await startTestServer({ pools: database, services: [counted], nowMs: () => nowMs });
});
afterEach(async () => {
  wire.mend();
  await until('no call to run', () => server.app.paidCall.running + sound.app.paidCall.running === 0);
  await reconciled();
  await assertBooksClosed(database.patient);
});
after(async () => {
  await Promise.all([server.close(), sound.close()]);
  await Promise.all([fragile.sql.end({ timeout: 1 }), fragile.commits.end({ timeout: 1 })]);
  await wire.close();
  await database.close();
});

/** Lets every reservation come to its end, and both replicas do what they owe. */
async function reconciled(): Promise<void> {
  nowMs += MINUTE_MS;
  await until('the owed refunds', () =>
    server.app.reconciler.run().then(
      () => true,
      () => false,
    ),
  );
  await sound.app.reconciler.run();
}

async function told(response: Promise<Response>): Promise<{
  status: number;
  code: string | undefined;
  charged: unknown;
  run: number | undefined;
  replayed: boolean;
  remaining: string | null;
}> {
  const { status, headers } = await response;
  const { code, charged, run } = await jsonOf(response);
  const replayed = headers.get('idempotent-replayed') === 'true';
  return { status, code, charged, run, replayed, remaining: headers.get('x-credits-remaining') };
}

const buy = (from: TestServer, key: string, order?: string) =>
  told(from.call('counted', key, {}, order === undefined ? {} : { 'idempotency-key': order }));

/** Reads by the tables alone what the account holds and how its calls stand. */
async function books(key: string): Promise<{ micros: bigint; states: number[]; refunds: number }> {
  const account = await accountOf(database.sql, key);
  return {
    micros: await balanceOf(database.sql, account),
    states: (await callsOf(database.sql, account)).map(({ state }) => state).sort(),
    refunds: (await refundsOf(database.sql, account)).length,
  };
}

const ONE = usdToMicros('1');
const SPENT = usdToMicros('0.90');
const all = (first: Cut): Cut[] => [first, ...Array<Cut>(ATTEMPTS - 1).fill('statement lost')];

/** A key that the server knows already, so that the first thing it needs of the database is the reservation. */
async function knownKey(): Promise<string> {
  const key = await server.key('1');
  await told(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }));
  return key;
}

for (const cut of ['statement lost', 'reply lost'] as const) {
  test(`reserving, ${cut} once: nobody notices`, async () => {
    const key = await knownKey();
    wire.cutNext(begin, [cut]);
    const { status, remaining } = await buy(server, key);
    assert.deepEqual([status, remaining, wire.met], [200, '0.9000', 1]);
    assert.deepEqual(await books(key), { micros: SPENT, states: [1], refunds: 0 });
  });

  test(`taking, ${cut} once: nobody notices, and the receipt is true`, async () => {
    const key = await knownKey();
    wire.cutNext(capture, [cut]);
    const { status, remaining } = await buy(server, key);
    assert.deepEqual([status, wire.met], [200, 1]);
    assert.deepEqual(await books(key), { micros: SPENT, states: [1], refunds: 0 });
    // What is not known is left out; it is not zero.
    assert(remaining === '0.9000' || remaining === null, `the receipt says that ${remaining} USD remain`);
  });

  test(`reserving, ${cut} and then nothing: 503, uncharged, and the order can be placed again`, async () => {
    const key = await knownKey();
    const before = runs;
    wire.cutNext(begin, all(cut));
    const blind = await buy(server, key);
    assert.deepEqual([blind.status, blind.charged, wire.met], [503, false, ATTEMPTS]);
    wire.mend();
    await reconciled();
    wire.cutNext(begin, all(cut));
    const refused = await buy(server, key, 'order');
    // An earlier request with this key may have been charged: nobody could look.
    assert.deepEqual([refused.status, refused.charged, wire.met], [503, null, ATTEMPTS]);
    assert.equal(runs, before, 'what is not reserved is not run');
    await reconciled();
    const { micros, states } = await books(key);
    assert.equal(micros, ONE);
    assert(!states.includes(1));
    assert.equal((await buy(sound, key, 'order')).status, 200);
    assert.equal((await books(key)).micros, SPENT);
  });

  test(`taking, ${cut} and then nothing, without an Idempotency-Key: given back, once`, async () => {
    const key = await knownKey();
    wire.cutNext(capture, all(cut));
    const refused = await buy(server, key);
    assert.deepEqual([refused.status, refused.code, wire.met], [503, 'OUTCOME_UNKNOWN', ATTEMPTS]);
    wire.mend();
    // The reply to the refund is lost as well: it is sent again, and is the same refund.
    wire.cutNext(refund, ['reply lost']);
    await reconciled();
    await reconciled();
    const refunds = cut === 'reply lost' ? 1 : 0;
    assert.equal(wire.met, refunds);
    assert.deepEqual(await books(key), { micros: ONE, states: [refunds === 1 ? 1 : 2], refunds });
  });

  test(`taking, ${cut} and then nothing, with an Idempotency-Key: the order is kept or free`, async () => {
    const key = await knownKey();
    wire.cutNext(capture, all(cut));
    const unknown = await buy(server, key, 'order');
    assert.deepEqual([unknown.status, unknown.code, wire.met], [503, 'OUTCOME_UNKNOWN', ATTEMPTS]);
    assert.notEqual(unknown.charged, false, 'nobody knows yet whether it was charged');
    wire.mend();
    const boughtBy = runs;
    const again = buy(sound, key, 'order');
    if (cut === 'statement lost') {
      // The reservation still stands: the repeat waits until the server that lost its database gives it back.
      await until('the repeat to wait', () => sound.app.paidCall.running === 1);
      await until('the reservation to be given back', async () => (await server.app.reconciler.run()) > 0);
    }
    const { status, run, replayed } = await again;
    const kept = cut === 'reply lost';
    assert.deepEqual([status, run, replayed], [200, kept ? boughtBy : boughtBy + 1, kept]);
    await reconciled();
    assert.deepEqual(await books(key), { micros: SPENT, states: kept ? [1] : [1, 2], refunds: 0 });
  });
}

test('a database that is lost for good is told to all who wait, not to one after another', async () => {
  const key = await knownKey();
  await database.sql`select 1`;
  // Sent while the accounts are locked, so that they share their batches.
  const account = await accountOf(database.sql, key);
  const locked = Promise.withResolvers<void>();
  const lock = database.sql.begin(async (transaction) => {
    await transaction`select 1 from ledger_accounts where id = ${String(account)} for update`;
    await locked.promise;
  });
  const waiting = Array.from({ length: 60 }, () => buy(server, key));
  await until('all to wait', () => server.app.paidCall.running === 60);
  let left = waiting.length;
  for (const each of waiting) void each.then(() => left--);
  wire.cut();
  locked.resolve();
  await lock;
  await until('everybody to be told', () => left === 0);
  for (const { status } of await Promise.all(waiting)) assert.equal(status, 503);
  wire.mend();
  await reconciled();
  const { micros, states, refunds } = await books(key);
  const captured = BigInt(states.filter((state) => state === 1).length - refunds);
  assert.equal(captured, 0n);
  assert.equal(micros, ONE);
});

test('cut again and again while 150 calls run: what was delivered was charged, and nothing else', async () => {
  const keys = await Promise.all(Array.from({ length: 6 }, () => server.key('3')));
  let done = 0;
  let severed = 0;
  const calls = Array.from({ length: 150 }, async (_, i) => {
    const key = keys[i % keys.length] ?? '';
    const order = i % 2 === 0 ? `order-${i}` : undefined;
    const one = await buy(server, key, order);
    done += 1;
    // Cut by what has happened, not by the time of day.
    if (done % 30 === 0 && done <= 90) {
      severed += wire.cut();
      setImmediate(() => wire.mend());
    }
    return { key, order, ...one };
  });
  const answers = await Promise.all(calls);
  assert(severed >= 3, 'nothing was cut');
  for (const { status } of answers) assert([200, 402, 500, 503].includes(status), String(status));
  await reconciled();
  assert.equal(await openCalls(database.sql), 0);
  for (const key of keys) {
    const own = answers.filter((one) => one.key === key);
    for (const one of own) {
      if (one.order === undefined || one.status === 200) continue;
      Object.assign(one, await buy(sound, key, one.order));
    }
    const paid = own.filter(({ status }) => status === 200);
    const { micros } = await books(key);
    assert.equal(micros, usdToMicros('3') - BigInt(paid.length) * usdToMicros('0.10'));
    assert.equal(new Set(paid.map(({ run }) => run)).size, paid.length, 'each answer is a run of its own');
  }
});
