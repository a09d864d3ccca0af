/** Messages that a guest may send, and those that it may not, by hand: to one replica and to another. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { createGateStore } from '../../../../../packages/proxy/src/gate/gate-store.ts';
import { openTestDatabase, type TestDatabase } from '../../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf, openCalls } from '../../fire/money.fixture.ts';
import { until } from '../../fire/until.fixture.ts';
import { startTestServer, type TestServer } from '../../server.fixture.ts';
import { routesOf } from '../own-api.fixture.ts';
import { beginOf, bodyOf, finishOf, messageOf, say } from './guest-by-hand.fixture.ts';
import { configOf, SECRETS, secretOf } from './guests.fixture.ts';

const GRANT_MICROS = 1_000_000n;
const PRICE_MICROS = 20_000n;
const ORDER = { idempotencyKey: 'one-order' };

let database: TestDatabase;
let shop: TestServer;
let other: TestServer;
let impatient: TestServer;
let key: string;
let account: bigint;
let aheadMs = 0;
const nowMs = () => Date.now() + aheadMs;

const start = (timeoutMs?: number) =>
  startTestServer({
    pools: database,
    services: [],
    nowMs,
    routes: () => routesOf(configOf(timeoutMs === undefined ? {} : { timeoutMs }), { env: SECRETS, nowMs }),
  });

before(async () => {
  database = await openTestDatabase();
  [shop, other, impatient] = await Promise.all([start(), start(), start(50)]);
});
after(async () => {
  await Promise.all([shop?.close(), other?.close(), impatient?.close()]);
  await database?.close();
});
beforeEach(async () => {
  aheadMs = 0;
  key = await shop.key('1');
  account = await accountOf(database.sql, key);
});

const spent = async () => GRANT_MICROS - (await balanceOf(database.sql, account));
const stored = async () => (await callsOf(database.sql, account)).length;

/** Begins a call and holds that it is paid for. */
async function begun(url = shop.url, message = beginOf(key, ORDER)): Promise<string> {
  const { said, isSigned } = await say(url, 'begin', message);
  assert.deepEqual([said.do, isSigned], ['run', true], JSON.stringify(said));
  assert.notEqual(said.call, said.callId, 'a call may run again');
  return said.call;
}

test('a message that the gate has not signed begins nothing', async () => {
  const message = beginOf(key);
  const wrong = [
    { secret: secretOf('hono') },
    { name: 'nobody' },
    { name: 'hono', secret: secretOf('fastify') },
    { signed: { body: Buffer.from(JSON.stringify(beginOf(key, { place: 'there' }))) } },
    { signed: { to: 'POST /gate/finish' } },
    { signed: { kind: 'answer' } },
    { signed: { name: 'hono' } },
    { headers: { 'farebox-gate-signature': undefined } },
    { headers: { 'farebox-gate-nonce': 'another-nonce-than-the-signed-one' } },
    { headers: { 'farebox-gate-timestamp': String(Math.floor(Date.now() / 1_000) + 30) } },
    { nonce: 'short' },
  ] as const;
  for (const each of wrong) {
    const { status, said, isSigned } = await say(shop.url, 'begin', message, each);
    assert.deepEqual(
      [status, said.code, said.charged, isSigned],
      [401, 'GATE_SIGNATURE_INVALID', false, false],
      JSON.stringify(each),
    );
  }
  assert.equal(await stored(), 0);
});

test('a message of another time, and one that came before, are refused on every replica', async () => {
  for (const seconds of [-180, 180]) {
    const timestamp = Math.floor(Date.now() / 1_000) + seconds;
    const { status, said } = await say(shop.url, 'begin', beginOf(key), { timestamp });
    assert.deepEqual([status, said.code], [401, 'GATE_MESSAGE_STALE']);
  }
  const message = messageOf('begin', beginOf(key));
  const first = await message.sendTo(shop.url);
  assert.equal(first.said.do, 'run');
  for (const replica of [shop, other]) {
    const { status, said } = await message.sendTo(replica.url);
    assert.deepEqual([status, said.code], [409, 'GATE_MESSAGE_REPEATED']);
  }
  assert.equal(await stored(), 1);
  // As long as its time would let it in, it is remembered.
  aheadMs = 100_000;
  await shop.app.jobs.find(({ name }) => name === 'drop-gate-calls')?.run();
  assert.equal((await message.sendTo(other.url)).said.code, 'GATE_MESSAGE_REPEATED');
  aheadMs = 0;
  await say(shop.url, 'release', { call: first.said.call, why: 'test' });
});

test('a guest sells its own routes at their prices, whatever it says', async () => {
  for (const wrong of [
    { route: 'POST /hono/v1/forecast', url: '/hono/v1/forecast' },
    { route: 'POST /hono/v1/forecast' },
    { route: 'GET /fastify/v1/stations/:id' },
    { url: '/fastify/v1/stations/7' },
    { method: 'PUT' },
    { url: '/fastify/v1/../v1/forecast' },
  ]) {
    const { status, said } = await say(shop.url, 'begin', beginOf(key, wrong));
    assert.deepEqual([status, said.code, said.charged], [404, 'GATE_ROUTE_UNKNOWN', false]);
  }
  assert.equal(await stored(), 0);
  const cheap = { price: '0.000001', priceMicros: 1, amount: '1' };
  const { said } = await say(shop.url, 'begin', beginOf(key, cheap));
  assert.equal(said.price, '0.02');
  await say(shop.url, 'finish', finishOf(said.call, '{}', cheap));
  assert.equal(await spent(), PRICE_MICROS);
});

test('a HEAD with a key that could pay gets the terms, and begins nothing', async () => {
  const head = {
    route: 'GET /fastify/v1/stations/:id',
    method: 'HEAD',
    url: '/fastify/v1/stations/7',
    body: null,
    headers: ['x-api-key', key],
  };
  const { said } = await say(shop.url, 'begin', beginOf(key, head));
  assert.deepEqual([said.do, said.status], ['answer', 402]);
  assert.equal(await stored(), 0);
});

test('no guest ends the call of another one', async () => {
  const call = await begun();
  for (const verb of ['finish', 'release'] as const) {
    const message = verb === 'finish' ? finishOf(call) : { call, why: 'not mine' };
    for (const replica of [shop, other]) {
      const { status, said } = await say(replica.url, verb, message, { name: 'hono' });
      assert.deepEqual([status, said.code], [404, 'GATE_CALL_UNKNOWN']);
    }
  }
  const unknown = await say(shop.url, 'finish', finishOf(randomUUID()));
  assert.equal(unknown.said.code, 'GATE_CALL_UNKNOWN');
  const mine = await say(shop.url, 'finish', finishOf(call));
  assert.equal(mine.said.status, 200);
});

test('what is no message is refused before anything is bought', async () => {
  for (const [verb, message] of [
    ['begin', '{'],
    ['begin', []],
    ['begin', beginOf(key, { url: 'https://elsewhere.example/' })],
    ['begin', beginOf(key, { headers: ['x-api-key'] })],
    ['begin', beginOf(key, { headers: Array(500).fill('x') })],
    ['begin', beginOf(key, { body: 'no base64' })],
    ['finish', finishOf('one')],
    ['finish', finishOf(randomUUID(), '{}', { status: 700 })],
    ['release', { call: randomUUID() }],
  ] as const) {
    const { status, said } = await say(shop.url, verb, message);
    assert.deepEqual([status, said.code], [400, 'GATE_MESSAGE_INVALID'], JSON.stringify(message));
  }
  assert.equal(await stored(), 0);
});

test('the caller of a call is a digest that another gate does not share, and no answer holds the key', async () => {
  const callers = [];
  for (const name of ['fastify', 'fastify', 'hono']) {
    const at = { route: `POST /${name}/v1/forecast`, url: `/${name}/v1/forecast` };
    const began = await say(shop.url, 'begin', beginOf(key, at), { name });
    const ended = await say(shop.url, 'finish', finishOf(began.said.call), { name });
    for (const { text } of [began, ended]) assert.equal(text.includes(key.slice(9)), false);
    callers.push(began.said.caller);
  }
  assert.equal(callers[0], callers[1]);
  assert.notEqual(callers[1], callers[2]);
  const unpaid = await say(shop.url, 'begin', beginOf('fbx_live_unknown'));
  assert.equal(unpaid.said.do, 'answer');
  assert.equal(unpaid.text.includes('caller'), false, 'who does not pay has no digest');
});

test('said twice, at once or later, on this replica or another, an answer is paid once and told again', async () => {
  const call = await begun();
  const both = await Promise.all([shop, other].map(({ url }) => say(url, 'finish', finishOf(call))));
  const later = await say(other.url, 'finish', finishOf(call));
  const released = await say(shop.url, 'release', { call, why: 'too late' });
  for (const { said } of [...both, later, released]) {
    assert.deepEqual([said.status, said.body], [200, null]);
    assert.equal(said.headers['x-credits-used'], '0.0200');
  }
  assert.equal(await spent(), PRICE_MICROS);
  const again = await say(other.url, 'begin', beginOf(key, ORDER));
  assert.deepEqual([again.said.do, again.said.headers['idempotent-replayed']], ['answer', 'true']);
  assert.deepEqual(bodyOf(again), { celsius: 12.5 });
});

test('an answer that reaches another replica alone is paid where the call runs', async () => {
  const call = await begun();
  const { said } = await say(other.url, 'finish', finishOf(call, '{"from":"afar"}', { status: 201 }));
  assert.deepEqual([said.status, said.body, said.headers['x-credits-used']], [201, null, '0.0200']);
  assert.equal(await spent(), PRICE_MICROS);
  const [row] = await database.sql`select state, said, body from gate_calls where run_id = ${call}`;
  assert.deepEqual({ ...row }, { state: 3, said: null, body: null }, 'it is not kept twice');
});

test('a release gives the price back, here and from afar, and an answer after it is not charged', async () => {
  for (const replica of [shop, other]) {
    const call = await begun(shop.url, beginOf(key));
    const { said } = await say(replica.url, 'release', { call, why: 'its handler failed' });
    assert.equal(said.status, 502);
    const late = await say(replica.url, 'finish', finishOf(call));
    assert.deepEqual([late.said.status, bodyOf(late).charged], [502, false]);
  }
  assert.equal(await spent(), 0n);
});

test('a guest that dies after its begin is a release when its time is over', async () => {
  const call = await begun(impatient.url);
  await until('the call to be released', async () => (await openCalls(database.sql)) === 0);
  assert.equal(await spent(), 0n);
  for (const replica of [impatient, other]) {
    const late = await say(replica.url, 'finish', finishOf(call));
    assert.equal(late.said.status, 503);
    assert.deepEqual([bodyOf(late).code, bodyOf(late).charged], ['DEADLINE_EXCEEDED', false]);
  }
  assert.equal(await spent(), 0n);
});

test('a guest that leaves while its call begins was never told to answer: the price is given back at once', async () => {
  const runs = await database.sql<{ run_id: string }[]>`select run_id from gate_calls`;
  const earlier = `{${runs.map(({ run_id: id }) => id).join()}}`;
  const lock = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const locking = database.sql.begin(async (transaction) => {
    await transaction`lock table gate_calls in access exclusive mode`;
    locked.resolve();
    await lock.promise;
  });
  await locked.promise;
  const leaving = new AbortController();
  const left = assert.rejects(messageOf('begin', beginOf(key)).sendTo(shop.url, leaving.signal));
  await until('the price to be reserved', async () => (await openCalls(database.sql)) === 1);
  leaving.abort();
  await left;
  lock.resolve();
  await locking;
  await until('the call to be released', async () => (await openCalls(database.sql)) === 0);
  assert.equal(await spent(), 0n);
  // What its server would be told is noted after the price went back.
  let told = '';
  await until('its outcome to be noted', async () => {
    const rows = await database.sql<{ outcome: { body: string } }[]>`
      select outcome from gate_calls where not run_id = any(${earlier}::text::uuid[]) and outcome is not null`;
    told = rows.map(({ outcome }) => JSON.parse(Buffer.from(outcome.body, 'base64').toString()).code).join();
    return told !== '';
  });
  assert.equal(told, 'UPSTREAM_FAILED', 'and not by the end of its time');
});

test('of two words about a call the one that was taken first counts, also where the call runs', async () => {
  const call = await begun();
  // The replica that runs it has taken a word from afar, and has not ended it yet.
  await database.sql`update gate_calls set state = 2 where run_id = ${call}`;
  const asked = say(shop.url, 'finish', finishOf(call));
  const look = setInterval(() => {
    aheadMs += 20_000;
  }, 50);
  const told = await asked.finally(() => clearInterval(look));
  aheadMs = 0;
  assert.deepEqual([told.said.status, bodyOf(told).code], [503, 'OUTCOME_UNKNOWN']);
  assert.equal(await spent(), 0n);
  await database.sql`update gate_calls set state = 0 where run_id = ${call}`;
  await say(shop.url, 'release', { call, why: 'test' });
  assert.equal(await spent(), 0n);
});

test('whoever left before the answer pays for it only if it can be asked for again', async () => {
  const station = {
    route: 'GET /fastify/v1/stations/:id',
    method: 'GET',
    url: '/fastify/v1/stations/7',
    body: null,
    headers: ['x-api-key', key],
  };
  for (const replica of [shop, other]) {
    const { said } = await say(shop.url, 'begin', beginOf(key, station));
    await say(replica.url, 'finish', finishOf(said.call, '{}', { callerLeft: true }));
    assert.equal(await spent(), 0n);
  }
  const named = { ...station, headers: [...station.headers, 'idempotency-key', 'again'] };
  const { said } = await say(shop.url, 'begin', beginOf(key, named));
  await say(shop.url, 'finish', finishOf(said.call, '{}', { callerLeft: true }));
  assert.equal(await spent(), 10_000n);
});

test('a server that ends gives back what its guests have not answered, and another one says so', async () => {
  const mortal = await start();
  const call = await begun(mortal.url);
  await mortal.close();
  assert.equal(await spent(), 0n);
  const { said } = await say(other.url, 'finish', finishOf(call));
  assert.equal(said.status, 502);
  assert.equal(await spent(), 0n);
});

test('a call whose answer was taken a moment before is not given up', async () => {
  const store = createGateStore(database.sql, nowMs);
  const call = randomUUID();
  await store.begin(call, 'fastify', -1_000);
  await database.sql`update gate_calls set state = 2 where run_id = ${call}`;
  assert.equal(await store.giveUp(call, { status: 503, headers: {}, body: null }), false);
  assert.equal((await store.look(call, 'fastify'))?.outcome, null);
  await database.sql`update gate_calls set state = 1 where run_id = ${call}`;
  assert.equal(await store.giveUp(call, { status: 503, headers: {}, body: null }), true);
});

test('of a call whose process died with its answer, the outcome is unknown; without it, nothing was charged', async () => {
  const insert = async (state: number) => {
    const call = randomUUID();
    const past = new Date(nowMs() - 1_000).toISOString();
    await database.sql`
      insert into gate_calls (run_id, gate, state, open_until, expires_at)
      values (${call}, 'fastify', ${state}, ${past}, now() + interval '1 hour')`;
    return call;
  };
  for (const state of [0, 1]) {
    const over = await say(shop.url, 'finish', finishOf(await insert(state)));
    assert.deepEqual([bodyOf(over).code, bodyOf(over).charged], ['GATE_CALL_OVER', false]);
  }
  const taken = await insert(2);
  const asked = say(shop.url, 'finish', finishOf(taken));
  await until('the question to be asked', async () => {
    const [row] = await database.sql<{ n: number }[]>`select count(*)::integer as n from gate_messages`;
    return (row?.n ?? 0) > 0;
  });
  const look = setInterval(() => {
    aheadMs += 20_000;
  }, 50);
  const unknown = await asked.finally(() => clearInterval(look));
  assert.deepEqual([unknown.said.status, bodyOf(unknown).code], [503, 'OUTCOME_UNKNOWN']);
  assert.equal('charged' in bodyOf(unknown), false);
});

test('what has ended is forgotten after ten minutes, and the books balance', async () => {
  const call = await begun();
  await say(shop.url, 'finish', finishOf(call));
  const drop = () => shop.app.jobs.find(({ name }) => name === 'drop-gate-calls')?.run();
  const kept = async () => (await database.sql`select 1 from gate_calls where run_id = ${call}`).length;
  await drop();
  assert.equal(await kept(), 1);
  aheadMs = 700_000;
  await drop();
  assert.equal(await kept(), 0);
  assert.equal(await openCalls(database.sql), 0);
  await assertBooksClosed(database.patient);
});
