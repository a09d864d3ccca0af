/**
 * Routes whose answers leave as they come. With a key the end of an answer waits for the commit that takes the price, on a chain the
 * money moves first; an upstream that breaks is free, and its caller sees that the answer is not whole; a reader who leaves pays.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { x402Client } from '@x402/fetch';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf } from '../fire/money.fixture.ts';
import { type Blow, startMortalReplica } from '../fire/mortal-replica.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { METHODS, type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { bytesOf, startFlowingApi } from './flowing-api.fixture.ts';
import { routesOf } from './own-api.fixture.ts';

const GRANTED = 1_000_000n;
const PRICE = 40_000n;
const PUBLIC_URL = 'http://shop.test';
const REFUND_AFTER_SECONDS = 60;

let world: MppWorld;
let database: TestDatabase;
let api: Awaited<ReturnType<typeof startFlowingApi>>;
let here: TestServer;
let there: TestServer;
let laterMs = 0;
const nowMs = () => Date.now() + laterMs;

const routes = () =>
  routesOf(
    `
    upstreams:
      flow: { url: "${api.url}", prefix: "/", breaker: false, concurrency: 50 }
    routes:
      "GET /flow/:n": &flow
        upstream: flow
        price: "0.04"
        answer: streamed
        answerHeaders: [x-flow]
        maxAnswerBytes: 100000000
        stream: { maxMs: 60000 }
      "POST /done/:n": *flow
      "GET /short/:n": { upstream: flow, price: "0.04", answer: streamed, maxAnswerBytes: 10 }
      "GET /free/:n": { upstream: flow, free: true, answer: streamed }
      "GET /few/:n": { upstream: flow, price: "0.04", answer: streamed, stream: { maxOpen: 1 } }
      "GET /events/:n":
        upstream: flow
        price: "0.04"
        answer: streamed
        success: { contentType: [text/event-stream], lastEvent: "[DONE]" }
      "GET /stalled/:n":
        { upstream: flow, price: "0.04", answer: streamed, maxAnswerBytes: 1000000000, stream: { maxMs: 4000 } }
  `,
    { nowMs },
  );

before(async () => {
  [world, database, api] = await Promise.all([startMppWorld(), openTestDatabase(), startFlowingApi()]);
  const environment = {
    ...world.environment,
    PUBLIC_URL,
    X402_REFUND_AFTER_SECONDS: String(REFUND_AFTER_SECONDS),
  };
  const options = { pools: database, services: [], environment, routes, nowMs };
  [here, there] = (await Promise.all([1, 2].map(() => startTestServer(options)))) as [TestServer, TestServer];
});
after(async () => {
  await Promise.all([here?.close(), there?.close()]);
  await Promise.all([world?.stop(), database?.close(), api?.stop()]);
});

async function customer() {
  const key = await here.key('1');
  const account = await accountOf(database.sql, key);
  return {
    account,
    headers: { 'x-api-key': key, 'idempotency-key': 'one' },
    keyless: { 'x-api-key': key },
    charged: async () => GRANTED - (await balanceOf(database.sql, account)),
    states: async () => (await callsOf(database.sql, account)).map(({ state }) => state),
  };
}

/** Holds an account, so that no price can be taken from it. @returns lets go of it */
async function hold(account: bigint): Promise<() => Promise<void>> {
  const free = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const holder = database.patient.begin(async (sql) => {
    await sql`select 1 from ledger_accounts where id = ${String(account)} for no key update`;
    held.resolve();
    await free.promise;
  });
  await held.promise;
  return async () => {
    free.resolve();
    await holder;
  };
}

const connectedTo = (server: TestServer) =>
  new Promise<number>((resolve) => server.app.http.server.getConnections((_, open) => resolve(open)));

test('pieces leave as they come, with status and headers; the end waits for the commit that takes the price', async () => {
  const flow = api.flow('/flow');
  const { headers, account, charged, states } = await customer();
  const asking = fetch(here.url + flow.path, { headers });
  const reply = await flow.asked();
  reply.writeHead(203, { 'content-type': 'application/jsonl', 'x-flow': 'on', 'x-other': 'y' });
  reply.write('{"a":1}\n');
  const response = await asking;
  const told = (name: string) => response.headers.get(name);
  assert.deepEqual(
    [response.status, told('content-type'), told('x-flow'), told('x-other')],
    [203, 'application/jsonl', 'on', null],
  );
  assert.deepEqual(
    [told('x-credits-reserved'), told('x-credits-used'), told('x-accel-buffering')],
    ['0.0400', null, 'no'],
  );
  const body = bytesOf(response);
  await body.until('{"a":1}\n');
  assert.deepEqual([await charged(), await states()], [0n, [0]], 'reserved, and not taken');
  const letGo = await hold(account);
  reply.end('{"a":2}\n');
  let isWhole = false;
  const whole = body.rest().then((text) => {
    isWhole = true;
    return text;
  });
  await until('its price waits to be taken', () => here.app.calls.depth > 0);
  assert.deepEqual([isWhole, body.text], [false, '{"a":1}\n'], 'what came with the end waits with it');
  await letGo();
  assert.equal(await whole, '{"a":1}\n{"a":2}\n');
  assert.deepEqual([await charged(), await states()], [PRICE, [1]]);
  const again = await fetch(there.url + flow.path, { headers });
  const repeat = await jsonOf(again);
  assert.deepEqual([again.status, repeat.code, repeat.charged], [409, 'ANSWER_NOT_KEPT', true]);
  assert.deepEqual([await charged(), flow.times], [PRICE, 1]);
});

test('the last byte of a known length, and a last event, wait for the price though the end has not come', async () => {
  const tale = api.flow('/events');
  const map = api.flow('/flow');
  for (const { flow, head, first, last } of [
    { flow: map, head: { 'content-length': '6' }, first: 'abc', last: 'def' },
    {
      flow: tale,
      head: { 'content-type': 'text/event-stream' },
      first: 'data: a\n\n',
      last: 'data: [DONE]\n\n',
    },
  ]) {
    const { keyless, account, charged } = await customer();
    const asking = fetch(here.url + flow.path, { headers: keyless });
    const reply = await flow.asked();
    reply.writeHead(200, head);
    reply.write(first);
    const response = await asking;
    const length = 'content-length' in head ? '6' : null;
    assert.equal(response.headers.get('content-length'), length);
    const body = bytesOf(response);
    await body.until(first);
    const letGo = await hold(account);
    reply.write(last);
    if (length !== null) await until('its price waits to be taken', () => here.app.calls.depth > 0);
    reply.end();
    await until('its price waits to be taken', () => here.app.calls.depth > 0);
    assert.equal(body.text, first);
    await letGo();
    assert.equal(await body.rest(), first + last);
    assert.equal(await charged(), PRICE);
  }
});

test('an upstream that breaks costs nothing: before the first byte as any failure, later the connection is cut', async () => {
  const flow = api.flow('/flow');
  const { headers, charged, states } = await customer();
  const ask = () => fetch(here.url + flow.path, { headers });
  const breaks: Record<string, (reply: Awaited<ReturnType<typeof flow.asked>>) => void> = {
    'in the middle': (reply) => reply.socket?.destroy(),
    'before its end, in bytes of a length': (reply) => reply.socket?.end(),
  };
  const first = ask();
  // A read is sent again as long as nothing came.
  for (const _ of [1, 2]) (await flow.asked()).socket?.destroy();
  const refused = await first;
  const told = await jsonOf(refused);
  assert.deepEqual([refused.status, told.code, told.charged], [502, 'UPSTREAM_FAILED', false]);
  for (const [how, breakIt] of Object.entries(breaks)) {
    const asking = ask();
    const reply = await flow.asked();
    reply.writeHead(200, how.includes('length') ? { 'content-length': '100' } : {});
    reply.write('once');
    const body = bytesOf(await asking);
    await body.until('once');
    breakIt(reply);
    await assert.rejects(body.rest(), how);
    await until('its price is given back', async () => (await states()).every((state) => state === 2));
  }
  assert.deepEqual([await charged(), await states()], [0n, [2, 2, 2]]);
  const asking = ask();
  (await flow.asked()).end('again');
  assert.equal(await (await asking).text(), 'again');
  assert.deepEqual([await charged(), flow.times], [PRICE, 5]);
});

test('what only the end of its connection ends is not known to be whole: it is cut, and free', async () => {
  const flow = api.flow('/flow');
  const { keyless, charged, states } = await customer();
  const asking = fetch(here.url + flow.path, { headers: keyless });
  const { socket } = await flow.asked();
  socket?.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nonce');
  const body = bytesOf(await asking);
  await body.until('once');
  socket?.end();
  await assert.rejects(body.rest());
  await until('its price is given back', async () => (await states())[0] === 2);
  assert.equal(await charged(), 0n);
});

test('a caller that speaks HTTP/1.0, to whom the end of a connection is an end, sees a reset instead', async () => {
  const flow = api.flow('/flow');
  const { keyless } = await customer();
  const { port } = new URL(here.url);
  const socket = connect(Number(port), '127.0.0.1');
  const reset = Promise.withResolvers<string>();
  socket.on('error', (error) => reset.resolve('code' in error ? String(error.code) : ''));
  socket.on('end', () => reset.resolve('a clean end'));
  const got = Promise.withResolvers<void>();
  socket.on('data', (piece) => String(piece).includes('once') && got.resolve());
  socket.write(`GET ${flow.path} HTTP/1.0\r\nx-api-key: ${keyless['x-api-key']}\r\n\r\n`);
  const reply = await flow.asked();
  reply.write('once');
  await got.promise;
  reply.socket?.destroy();
  assert.equal(await reset.promise, 'ECONNRESET');
});

test('a stream above the bound of its route is free: refused where it tells its length, else cut', async () => {
  const flow = api.flow('/short');
  const { keyless, charged, states } = await customer();
  const ask = () => fetch(here.url + flow.path, { headers: keyless });
  const told = ask();
  (await flow.asked()).writeHead(200, { 'content-length': '11' }).end('0123456789x');
  assert.deepEqual([(await told).status, (await jsonOf(told)).charged], [502, false]);
  const asking = ask();
  const reply = await flow.asked();
  reply.write('01234');
  const body = bytesOf(await asking);
  await body.until('01234');
  reply.write('56789x');
  await assert.rejects(body.rest());
  await until('its price is given back', async () => (await states()).every((state) => state === 2));
  assert.equal(await charged(), 0n);
});

for (const withKey of [true, false]) {
  test(`a reader who leaves after the first byte pays, ${withKey ? 'with' : 'without'} an Idempotency-Key, and the upstream is let go`, async () => {
    const flow = api.flow('/flow');
    const { headers, keyless, charged, states } = await customer();
    const leaving = new AbortController();
    const sent = withKey ? headers : keyless;
    const asking = fetch(here.url + flow.path, { headers: sent, signal: leaving.signal });
    const reply = await flow.asked();
    let isLeft = false;
    reply.on('close', () => (isLeft = true));
    reply.write('once');
    await bytesOf(await asking).until('once');
    leaving.abort();
    await until('it is charged', async () => (await states())[0] === 1);
    await until('the upstream is let go', () => isLeft);
    assert.equal(await charged(), PRICE);
    if (!withKey) {
      // Nothing of it is kept that the next same call could get.
      const next = fetch(there.url + flow.path, { headers: keyless });
      (await flow.asked()).end('again');
      assert.deepEqual([(await next).status, await (await next).text()], [200, 'again']);
      assert.equal(await charged(), 2n * PRICE);
      return;
    }
    const again = await fetch(there.url + flow.path, { headers });
    assert.deepEqual([again.status, (await jsonOf(again)).code], [409, 'ANSWER_NOT_KEPT']);
    assert.equal(await charged(), PRICE);
  });
}

for (const { route, isCharged } of [
  { route: '/flow', isCharged: false },
  { route: '/done', isCharged: true },
]) {
  test(`a reader of ${route} who leaves before the first byte, without a key, is ${isCharged ? 'charged: it had its effect' : 'not charged'}`, async () => {
    const deserted = await startTestServer({ pools: database, services: [], routes, nowMs });
    const flow = api.flow(route);
    const { keyless, charged, states } = await customer();
    const leaving = new AbortController();
    const method = isCharged ? 'POST' : 'GET';
    const sent = { method, headers: keyless, signal: leaving.signal };
    const asking = fetch(deserted.url + flow.path, sent).catch(() => null);
    const reply = await flow.asked();
    leaving.abort();
    await asking;
    await until('nobody is connected', async () => (await connectedTo(deserted)) === 0);
    reply.end('once');
    await until('it has ended', async () => (await states())[0] === (isCharged ? 1 : 2));
    assert.equal(await charged(), isCharged ? PRICE : 0n);
    await deserted.close();
  });
}

test('a reader who reads nothing holds up the upstream, is cut off in the time of the route, and pays', async () => {
  const flow = api.flow('/stalled');
  const { keyless, charged, states } = await customer();
  const { port } = new URL(here.url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => {});
  socket.pause();
  socket.write(`GET ${flow.path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${keyless['x-api-key']}\r\n\r\n`);
  const reply = await flow.asked();
  const piece = Buffer.alloc(65_536);
  let sent = 0;
  let isHeldUp = false;
  while (!isHeldUp && sent < 500) {
    sent += 1;
    if (!reply.write(piece)) isHeldUp = !(await Promise.race([drained(reply), charges(states)]));
  }
  // What fits the buffers of the system and no more: the stream has a gigabyte.
  assert.ok(isHeldUp && sent < 500, `${sent} pieces left`);
  assert.equal(await charged(), PRICE);
  socket.destroy();
});

const drained = (reply: NodeJS.EventEmitter) =>
  new Promise<boolean>((resolve) => reply.once('drain', () => resolve(true)));

/** Resolves with false once the only call is charged. */
async function charges(states: () => Promise<number[]>): Promise<boolean> {
  await until('it is charged', async () => (await states())[0] === 1);
  return false;
}

test('two copies of one purchase at once are one: the second waits, and is told that the answer is not kept', async () => {
  const flow = api.flow('/flow');
  const { headers, charged } = await customer();
  const first = fetch(here.url + flow.path, { headers });
  const reply = await flow.asked();
  reply.write('once');
  const body = bytesOf(await first);
  await body.until('once');
  const second = fetch(there.url + flow.path, { headers });
  await until(
    'the second has arrived',
    async () => there.app.paidCall.running + (await connectedTo(there)) > 0,
  );
  reply.end();
  assert.equal(await body.rest(), 'once');
  assert.deepEqual([(await second).status, (await jsonOf(second)).code], [409, 'ANSWER_NOT_KEPT']);
  assert.deepEqual([await charged(), flow.times], [PRICE, 1]);
});

test('a route has so many streams open and no more: a further call is refused, uncharged', async () => {
  const [one, other] = [api.flow('/few'), api.flow('/few')];
  const { keyless, charged } = await customer();
  const first = fetch(here.url + one.path, { headers: keyless });
  const reply = await one.asked();
  reply.write('once');
  const body = bytesOf(await first);
  await body.until('once');
  const full = fetch(here.url + other.path, { headers: keyless });
  const told = await jsonOf(full);
  assert.deepEqual([(await full).status, told.code, told.charged], [503, 'BUSY', false]);
  assert.equal(other.times, 0);
  reply.end();
  await body.rest();
  const again = fetch(here.url + other.path, { headers: keyless });
  (await other.asked()).end('twice');
  assert.equal(await (await again).text(), 'twice');
  assert.equal(await charged(), 2n * PRICE);
});

for (const { falls, isTaken } of [
  { falls: 'lost before', isTaken: false },
  { falls: 'lost after', isTaken: true },
  { falls: 'dies before', isTaken: false },
  { falls: 'dies after', isTaken: true },
] satisfies { falls: Blow['falls']; isTaken: boolean }[]) {
  test(`a capture that ${falls.replace('lost', 'is lost')} its commit: nobody gets the end, and a repeat is charged once`, async () => {
    let aheadMs = 0;
    const replica = await startMortalReplica({
      databaseUrl: database.url,
      services: [],
      routes,
      nowMs: () => Date.now() + aheadMs,
    });
    try {
      const flow = api.flow('/flow');
      const { headers, charged, states } = await customer();
      const { url } = await replica.server();
      const asking = fetch(url + flow.path, { headers });
      const reply = await flow.asked();
      reply.write('once');
      const body = bytesOf(await asking);
      await body.until('once');
      // What is lost is tried again, so it is lost however often it is tried.
      replica.strike(
        Array.from({ length: falls.startsWith('lost') ? 100 : 1 }, () => ({ falls, on: 'capture' })),
      );
      reply.end('upon');
      await assert.rejects(body.rest(), 'the answer does not end as a whole one');
      assert.equal(body.text, 'once');
      replica.forgetBlows();
      await replica.server();
      aheadMs = 300_000;
      await replica.reconcile();
      await until('the call has ended', async () => (await states())[0] === (isTaken ? 1 : 2));
      assert.equal(await charged(), isTaken ? PRICE : 0n);
      const again = fetch(there.url + flow.path, { headers });
      if (!isTaken) (await flow.asked()).end('again');
      assert.equal((await again).status, isTaken ? 409 : 200);
      await (await again).text();
      assert.equal(await charged(), PRICE);
    } finally {
      await replica.close();
    }
  });
}

/** Signs for what a 402 asks. */
async function signFor(path: string): Promise<Record<string, string>> {
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(await world.base.wallet()));
  const challenge = await fetch(here.url + path);
  const terms = Buffer.from(challenge.headers.get('payment-required') ?? '', 'base64').toString();
  const payload = await client.createPaymentPayload(JSON.parse(terms));
  return { 'payment-signature': Buffer.from(JSON.stringify(payload)).toString('base64') };
}

test('by x402 the money moves before the first byte, and a repeat of the payment is told that the answer is not kept', async () => {
  const flow = api.flow('/flow');
  const terms = await jsonOf(fetch(here.url + flow.path));
  assert.deepEqual([terms.streaming.keptUpToBytes, terms.streaming.beyond], [0, 'ANSWER_NOT_KEPT']);
  const headers = await signFor(flow.path);
  const received = await world.received('evm');
  const asking = fetch(here.url + flow.path, { headers });
  const reply = await flow.asked();
  assert.equal((await world.received('evm')) - received, PRICE, 'it has moved before the upstream is asked');
  reply.write('once');
  const response = await asking;
  assert.notEqual(response.headers.get('payment-response'), null);
  reply.end();
  assert.equal(await response.text(), 'once');
  const again = fetch(there.url + flow.path, { headers });
  const told = await jsonOf(again);
  assert.deepEqual([(await again).status, told.code, told.charged], [409, 'ANSWER_NOT_KEPT', true]);
  assert.deepEqual([(await world.received('evm')) - received, flow.times], [PRICE, 1]);
});

test('by x402 a reader who leaves pays, and gets nothing back', async () => {
  const flow = api.flow('/flow');
  const headers = await signFor(flow.path);
  const leaving = new AbortController();
  const asking = fetch(here.url + flow.path, { headers, signal: leaving.signal });
  const reply = await flow.asked();
  reply.write('once');
  await bytesOf(await asking).until('once');
  leaving.abort();
  await until('it is charged', async () => {
    const again = fetch(there.url + flow.path, { headers });
    return (await again).status === 409 && (await jsonOf(again)).code === 'ANSWER_NOT_KEPT';
  });
});

for (const method of METHODS) {
  test(`by MPP (${method}) it is paid before the first byte`, async () => {
    const flow = api.flow('/flow');
    const account = await world.wallet();
    const received = await world.received(method);
    const authorization = await world.credential(account, method, await fetch(here.url + flow.path));
    const asking = fetch(here.url + flow.path, { headers: { authorization } });
    const reply = await flow.asked();
    assert.equal((await world.received(method)) - received, PRICE);
    reply.end('once');
    const response = await asking;
    assert.notEqual(response.headers.get('payment-receipt'), null);
    assert.equal(await response.text(), 'once');
  });
}

test('what cannot be sent back buys no stream: the 402 does not offer it, and a payment is refused', async () => {
  const { X402_REFUND_KEYS, MPP_TEMPO_REFUND_KEY, ...environment } = world.environment;
  const final = await startTestServer({
    pools: database,
    services: [],
    routes,
    nowMs,
    environment: { ...environment, PUBLIC_URL },
  });
  const flow = api.flow('/flow');
  const terms = await fetch(final.url + flow.path);
  assert.deepEqual(
    [terms.headers.get('payment-required'), terms.headers.get('www-authenticate')],
    [null, null],
  );
  const { accepts } = await jsonOf(terms);
  assert.deepEqual(
    accepts.map(({ scheme }: { scheme: string }) => scheme),
    ['prepaid'],
  );
  const received = await world.received('evm');
  const refused = fetch(final.url + flow.path, { headers: await signFor(flow.path) });
  const told = await jsonOf(refused);
  assert.deepEqual([(await refused).status, told.charged ?? false], [402, false]);
  assert.equal(told.last_error_reason.code, 'PAYMENT_NETWORK_UNSUPPORTED');
  assert.deepEqual([(await world.received('evm')) - received, flow.times], [0n, 0]);
  // Gathered, the answer is there before the money moves.
  const gathered = await fetch(`${final.url}/x402/get-flow-n`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"n":"1"}',
  });
  assert.notEqual(gathered.headers.get('payment-required'), null);
  await final.close();
});

test('a door that cannot stream gathers the answer, which is kept; one too large to keep is free', async () => {
  const flow = api.flow('/flow');
  const { headers, charged } = await customer();
  const call = () =>
    fetch(`${here.url}/x402/get-flow-n`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ n: flow.path.split('/').at(-1) }),
    });
  const large = call();
  (await flow.asked()).end(Buffer.alloc(1_400_001));
  const told = await jsonOf(large);
  assert.deepEqual([(await large).status, told.code, told.charged], [502, 'UPSTREAM_FAILED', false]);
  const whole = call();
  const reply = await flow.asked();
  reply.write('on');
  reply.end('ce');
  assert.deepEqual([await (await whole).text(), await charged()], ['once', PRICE]);
  const again = await call();
  assert.deepEqual([await again.text(), again.headers.get('idempotent-replayed')], ['once', 'true']);
  assert.deepEqual([await charged(), flow.times], [PRICE, 2]);
});

test('by x402 an upstream that breaks is cut off; the same payment runs it again, or is sent back', async () => {
  const [again, never] = [api.flow('/flow'), api.flow('/flow')];
  const received = await world.received('evm');
  const broken = async (flow: typeof again, headers: Record<string, string>) => {
    const asking = fetch(here.url + flow.path, { headers });
    const reply = await flow.asked();
    reply.write('once');
    const body = bytesOf(await asking);
    await body.until('once');
    reply.socket?.destroy();
    await assert.rejects(body.rest());
  };
  const [one, other] = [await signFor(again.path), await signFor(never.path)];
  await broken(again, one);
  await broken(never, other);
  assert.equal((await world.received('evm')) - received, 2n * PRICE);
  const asking = fetch(there.url + again.path, { headers: one });
  (await again.asked()).end('again');
  assert.equal(await (await asking).text(), 'again');
  laterMs += (REFUND_AFTER_SECONDS + 1) * 1_000;
  await until('it is sent back', async () => {
    await here.app.settlementFinisher.run();
    const repeat = fetch(here.url + never.path, { headers: other });
    return (await repeat).status === 410 && (await jsonOf(repeat)).code === 'REFUNDED';
  });
  assert.equal((await world.received('evm')) - received, 2n * PRICE);
});

test('a free route streams too, and is cut off where its upstream breaks', async () => {
  const flow = api.flow('/free');
  for (const isBroken of [false, true]) {
    const asking = fetch(here.url + flow.path);
    const reply = await flow.asked();
    reply.writeHead(203, { 'content-type': 'text/plain' });
    reply.write('once');
    const response = await asking;
    assert.deepEqual([response.status, response.headers.get('content-type')], [203, 'text/plain']);
    const body = bytesOf(response);
    await body.until('once');
    if (isBroken) reply.socket?.destroy();
    else reply.end('upon');
    if (isBroken) await assert.rejects(body.rest());
    else assert.equal(await body.rest(), 'onceupon');
  }
});

test('the books balance', () => assertBooksClosed(database.patient));
