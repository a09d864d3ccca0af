/**
 * Routes whose price is measured in their answers: the most is reserved, what came out is taken, and the rest is free again. Only keys
 * buy them.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { x402Client } from '@x402/fetch';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from '../fire/money.fixture.ts';
import { type Blow, startMortalReplica } from '../fire/mortal-replica.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { bytesOf, startFlowingApi } from './flowing-api.fixture.ts';
import { routesOf } from './own-api.fixture.ts';

const GRANTED = 1_000_000n;
const CEILING = 40_000n;
/** The price that the routes name for an answer that tells no usage. */
const UNMEASURED = 15_000n;
const TOKEN = 'a-token-of-an-operator-for-tests-0001';
const JSON_HEAD = { 'content-type': 'application/json' };
const EVENTS_HEAD = { 'content-type': 'text/event-stream' };

let world: MppWorld;
let database: TestDatabase;
let api: Awaited<ReturnType<typeof startFlowingApi>>;
let here: TestServer;
let there: TestServer;

const routes = () =>
  routesOf(`
    upstreams:
      flow: { url: "${api.url}", prefix: "/", breaker: false, concurrency: 50 }
    routes:
      "POST /ask/:n":
        upstream: flow
        metered: { usage: usage.total_tokens, price: "0.10", per: 1000, atMost: "0.04", whenUnmeasured: "0.015" }
        requestHeaders: [accept-encoding]
      "GET /chat/:n": &chat
        upstream: flow
        metered: { usage: usage.total_tokens, price: "0.10", per: 1000, atMost: "0.04", whenUnmeasured: "0.015" }
        answer: streamed
        success: { contentType: [text/event-stream], lastEvent: "[DONE]" }
      "POST /chat/:n": *chat
      "GET /list/:n":
        { upstream: flow, metered: { items: results, price: "0.001", atMost: "0.04", whenUnmeasured: "0.015" } }
      "GET /file/:n": { upstream: flow, metered: { bytes: true, price: "0.002", per: 3, atMost: "0.04" } }
      "GET /flow/:n":
        { upstream: flow, metered: { bytes: true, price: "0.002", per: 3, atMost: "0.04" }, answer: streamed }
      "GET /fixed/:n": { upstream: flow, price: "0.04" }
  `);

before(async () => {
  [world, database, api] = await Promise.all([startMppWorld(), openTestDatabase(), startFlowingApi()]);
  const environment = {
    ...world.environment,
    PUBLIC_URL: 'http://shop.test',
    ADMIN_TOKENS: `desk:${TOKEN}`,
  };
  const options = { pools: database, services: [], environment, routes };
  [here, there] = (await Promise.all([1, 2].map(() => startTestServer(options)))) as [TestServer, TestServer];
});
after(async () => {
  await Promise.all([here?.close(), there?.close()]);
  await Promise.all([world?.stop(), database?.close(), api?.stop()]);
});

interface Row {
  id: string;
  state: number;
  outcome: string | null;
  price_micros: bigint;
  reserved_micros: bigint | null;
}

async function customer() {
  const key = await here.key('1');
  const account = await accountOf(database.sql, key);
  const keyless = { 'x-api-key': key, 'content-type': 'text/plain' };
  return {
    key,
    account,
    keyless,
    headers: { ...keyless, 'idempotency-key': 'one' },
    charged: async () => GRANTED - (await balanceOf(database.sql, account)),
    rows: async () => [
      ...(await database.sql<Row[]>`
        select id, state, outcome, price_micros, reserved_micros from calls
        where account_id = ${String(account)} order by created_at, id`),
    ],
  };
}

const money = (response: Response) =>
  ['used', 'reserved', 'remaining'].map((name) => response.headers.get(`x-credits-${name}`));

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

for (const { what, route, body, takes } of [
  {
    what: 'the usage that a JSON answer tells',
    route: '/ask',
    body: '{"usage":{"total_tokens":12}}',
    takes: 1_200n,
  },
  { what: 'the ceiling and no more', route: '/ask', body: '{"usage":{"total_tokens":401}}', takes: CEILING },
  { what: 'the price named for an answer without usage', route: '/ask', body: '{"a":1}', takes: UNMEASURED },
  {
    what: 'the same for an absurd usage',
    route: '/ask',
    body: '{"usage":{"total_tokens":-7}}',
    takes: UNMEASURED,
  },
  { what: 'the items of a list', route: '/list', body: '{"results":[1,{},"x"]}', takes: 3_000n },
  { what: 'the same of a list that is none', route: '/list', body: '{"results":3}', takes: UNMEASURED },
  { what: 'the bytes, rounded up to a micro-USD', route: '/file', body: '"1234"', takes: 4_000n },
  { what: 'the bytes up to the ceiling', route: '/file', body: `"${'x'.repeat(1_000)}"`, takes: CEILING },
]) {
  test(`a whole answer takes ${what}: both amounts are told, and a repeat costs nothing`, async () => {
    const flow = api.flow(route);
    const { headers, charged, rows } = await customer();
    const ask = (server: TestServer) =>
      fetch(server.url + flow.path, route === '/ask' ? { method: 'POST', headers, body: 'x' } : { headers });
    const asking = ask(here);
    const reply = await flow.asked();
    const [open] = await rows();
    assert.deepEqual([open?.state, open?.price_micros], [0, CEILING], 'the most is reserved');
    reply.writeHead(200, JSON_HEAD).end(body);
    const answered = await asking;
    assert.deepEqual([answered.status, await answered.text()], [200, body]);
    const usd = (micros: bigint) => (Number(micros) / 1_000_000).toFixed(6);
    assert.deepEqual(money(answered), [usd(takes), '0.040000', usd(GRANTED - takes).slice(0, 6)]);
    const again = await ask(there);
    assert.deepEqual([again.status, await again.text(), flow.times], [200, body, 1]);
    assert.deepEqual([again.headers.get('idempotent-replayed'), money(again)[0]], ['true', '0.0000']);
    const [row] = await rows();
    assert.deepEqual([row?.state, row?.price_micros, row?.reserved_micros], [1, takes, CEILING]);
    assert.equal(await charged(), takes);
  });
}

test('an answer that measures nothing is given and free; it is not kept, and the same key asks again', async () => {
  const flow = api.flow('/list');
  const { headers, charged, rows } = await customer();
  for (const server of [here, there]) {
    const asking = fetch(server.url + flow.path, { headers });
    (await flow.asked()).writeHead(200, JSON_HEAD).end('{"results":[]}');
    const answered = await asking;
    assert.deepEqual([answered.status, await answered.text()], [200, '{"results":[]}']);
    assert.deepEqual(money(answered), ['0.000000', '0.040000', '1.0000']);
  }
  assert.deepEqual(
    (await rows()).map(({ state, outcome, reserved_micros }) => [state, outcome, reserved_micros]),
    [1, 2].map(() => [2, 'MEASURED_NOTHING', null]),
  );
  assert.deepEqual([await charged(), flow.times], [0n, 2]);
});

test('the caller has no say in the measure: a compressed answer is not asked for', async () => {
  const flow = api.flow('/ask');
  const { keyless } = await customer();
  const asking = fetch(here.url + flow.path, {
    method: 'POST',
    headers: { ...keyless, 'accept-encoding': 'gzip' },
    body: '{"usage":{"total_tokens":0}}',
  });
  (await flow.asked()).writeHead(200, JSON_HEAD).end('{"usage":{"total_tokens":12}}');
  assert.equal(money(await asking)[0], '0.001200');
  const got = api.got.find(({ url }) => url === flow.path);
  assert.equal(got?.headers['accept-encoding'], 'identity');
});

test('what is refused, and what is no answer, costs nothing', async () => {
  const { keyless, charged, rows } = await customer();
  for (const status of [404, 500]) {
    const flow = api.flow('/list');
    const asking = fetch(here.url + flow.path, { headers: keyless });
    (await flow.asked()).writeHead(status, JSON_HEAD).end('{"results":[1,2]}');
    assert.equal((await jsonOf(asking)).charged, false);
  }
  assert.deepEqual(
    (await rows()).map(({ state }) => state),
    [2, 2],
  );
  assert.equal(await charged(), 0n);
});

const delta = (text: string) =>
  `data: {"choices":[{"delta":{"content":${JSON.stringify(text)}}}],"usage":null}\n\n`;
const usage = (tokens: number) => `data: {"choices":[],"usage":{"total_tokens":${tokens}}}\n\n`;
const DONE = 'data: [DONE]\n\n';

for (const { what, last, takes } of [
  { what: 'the usage that it tells at its end', last: usage(123), takes: 12_300n },
  { what: 'the price that the route names where it tells none', last: '', takes: UNMEASURED },
  { what: 'the ceiling where it tells more', last: usage(1_000_000), takes: CEILING },
]) {
  test(`a stream takes ${what}, and its end waits for that`, async () => {
    const flow = api.flow('/chat');
    const { headers, account, charged, rows } = await customer();
    const asking = fetch(here.url + flow.path, { headers });
    const reply = await flow.asked();
    reply.writeHead(200, EVENTS_HEAD);
    // A model that is told to say what a usage looks like has used what it used.
    const said = delta('{"usage":{"total_tokens":1}}');
    reply.write(said);
    const response = await asking;
    assert.deepEqual(money(response), [null, '0.0400', '0.9600']);
    const body = bytesOf(response);
    await body.until(said);
    const letGo = await hold(account);
    reply.write(last);
    await body.until(said + last);
    reply.end(DONE);
    await until('its price waits to be taken', () => here.app.calls.depth > 0);
    assert.equal(body.text, said + last);
    await letGo();
    assert.equal(await body.rest(), said + last + DONE);
    assert.equal(await charged(), takes);
    const [row] = await rows();
    assert.deepEqual([row?.state, row?.price_micros, row?.reserved_micros], [1, takes, CEILING]);
    const again = fetch(there.url + flow.path, { headers });
    assert.deepEqual([(await again).status, (await jsonOf(again)).code], [409, 'ANSWER_NOT_KEPT']);
    assert.equal(await charged(), takes);
  });
}

for (const { what, route, first, head, takes } of [
  { what: 'what came of it', route: '/flow', first: '123456', head: {}, takes: 4_000n },
  {
    what: 'the price that the route names, before the figure came',
    route: '/chat',
    first: delta('a'),
    head: EVENTS_HEAD,
    takes: UNMEASURED,
  },
  { what: 'the figure that came', route: '/chat', first: usage(20), head: EVENTS_HEAD, takes: 2_000n },
]) {
  test(`a reader who leaves a stream pays ${what}`, async () => {
    const flow = api.flow(route);
    const { keyless, charged, rows } = await customer();
    const leaving = new AbortController();
    const asking = fetch(here.url + flow.path, { headers: keyless, signal: leaving.signal });
    const reply = await flow.asked();
    reply.writeHead(200, head);
    reply.write(first);
    await bytesOf(await asking).until(first);
    leaving.abort();
    await until('it is charged', async () => (await rows())[0]?.state === 1);
    assert.equal(await charged(), takes);
  });
}

test('a metered stream that its upstream breaks is free, also behind its figure', async () => {
  const flow = api.flow('/chat');
  const { headers, charged, rows } = await customer();
  const asking = fetch(here.url + flow.path, { headers });
  const reply = await flow.asked();
  reply.writeHead(200, EVENTS_HEAD);
  reply.write(usage(20));
  const body = bytesOf(await asking);
  await body.until(usage(20));
  reply.socket?.destroy();
  await assert.rejects(body.rest());
  await until('its price is given back', async () => (await rows())[0]?.state === 2);
  assert.equal(await charged(), 0n);
});

test('a stream that measures nothing ends whole, and is free', async () => {
  const flow = api.flow('/chat');
  const { headers, charged, rows } = await customer();
  const asking = fetch(here.url + flow.path, { headers });
  (await flow.asked()).writeHead(200, EVENTS_HEAD).end(usage(0) + DONE);
  assert.equal(await (await asking).text(), usage(0) + DONE);
  assert.deepEqual([(await rows())[0]?.outcome, await charged()], ['MEASURED_NOTHING', 0n]);
});

test('a door that gathers a stream takes what the whole of it tells', async () => {
  const flow = api.flow('/chat');
  const { key, charged } = await customer();
  const asking = here.call('post-chat-n', key, { n: flow.path.slice('/chat/'.length) });
  (await flow.asked()).writeHead(200, EVENTS_HEAD).end(delta('a') + usage(30) + DONE);
  const answered = await asking;
  assert.deepEqual([answered.status, await answered.text()], [200, delta('a') + usage(30) + DONE]);
  assert.deepEqual([money(answered)[0], await charged()], ['0.003000', 3_000n]);
});

test('two copies of one purchase at once are one, and take once what was measured', async () => {
  const flow = api.flow('/list');
  const { headers, charged } = await customer();
  const copies = [here, there].map((server) => fetch(server.url + flow.path, { headers }));
  const reply = await flow.asked();
  reply.writeHead(200, JSON_HEAD).end('{"results":[1,2]}');
  const answers = await Promise.all(copies);
  assert.deepEqual(await Promise.all(answers.map((each) => each.text())), [
    '{"results":[1,2]}',
    '{"results":[1,2]}',
  ]);
  assert.deepEqual(answers.map((each) => money(each)[0]).sort(), ['0.0000', '0.002000']);
  assert.deepEqual([await charged(), flow.times], [2_000n, 1]);
});

test('caps and credit hold what may be taken, and count what was', async () => {
  const { key, keyless, charged } = await customer();
  const cap = (caps: Record<string, number | null>) =>
    fetch(`${here.url}/api/keys/me`, {
      method: 'PATCH',
      headers: { 'x-api-key': key, ...JSON_HEAD },
      body: JSON.stringify({ caps }),
    });
  const flow = api.flow('/list');
  const ask = () => fetch(here.url + flow.path, { headers: keyless });
  assert.equal((await cap({ perCallUsd: 0.039 })).status, 200);
  const refused = await jsonOf(ask());
  assert.equal(refused.last_error_reason.code, 'SPEND_CAP_PER_CALL');
  assert.equal((await cap({ perCallUsd: null, perDayUsd: 0.045 })).status, 200);
  for (const turn of [1, 2]) {
    const asking = ask();
    const reply = await flow.asked();
    const beside = await jsonOf(ask());
    assert.equal(beside.last_error_reason.code, 'SPEND_CAP_PER_DAY', 'while one runs, another may not');
    reply.writeHead(200, JSON_HEAD).end('{"results":[1,2]}');
    assert.equal((await asking).status, 200, `call ${turn} fits by what was taken`);
  }
  assert.equal(await charged(), 4_000n);
  const view = await jsonOf(fetch(`${here.url}/api/keys/me`, { headers: keyless }));
  assert.equal(Number(view.spending[0].spentUsd), 0.004);
  assert.equal(view.spending[0].calls, 2);
});

for (const { falls, isTaken } of [
  { falls: 'lost before', isTaken: false },
  { falls: 'lost after', isTaken: true },
  { falls: 'dies before', isTaken: false },
  { falls: 'dies after', isTaken: true },
] satisfies { falls: Blow['falls']; isTaken: boolean }[])
  for (const isNamed of [true, false]) {
    test(`between answer and charge the commit ${falls}, ${isNamed ? 'with' : 'without'} an Idempotency-Key: nobody pays for what never came, and no more goes back than was taken`, async () => {
      let aheadMs = 0;
      const nowMs = () => Date.now() + aheadMs;
      const replica = await startMortalReplica({ databaseUrl: database.url, services: [], routes, nowMs });
      try {
        const flow = api.flow('/list');
        const { headers, keyless, account, charged, rows } = await customer();
        const { url } = await replica.server();
        const sent = { headers: isNamed ? headers : keyless };
        const asking = fetch(url + flow.path, sent).then(
          (response) => response.status,
          () => null,
        );
        const reply = await flow.asked();
        // What is lost is tried again, so it is lost however often it is tried.
        replica.strike(
          Array.from({ length: falls.startsWith('lost') ? 100 : 1 }, () => ({ falls, on: 'capture' })),
        );
        reply.writeHead(200, JSON_HEAD).end('{"results":[1,2,3]}');
        assert.notEqual(await asking, 200);
        replica.forgetBlows();
        await replica.server();
        aheadMs = 300_000;
        await replica.reconcile();
        await until('the call has ended', async () => (await rows())[0]?.state === (isTaken ? 1 : 2));
        await replica.reconcile();
        const [refund] = await database.sql<{ back: bigint }[]>`
          select coalesce(sum(amount_micros), 0)::bigint as back from ledger_transfers
          where account_id = ${String(account)} and code = 'call_refund'`;
        // Of a process that died nobody knows that its answer was lost.
        const isRefunded = isTaken && !isNamed && falls === 'lost after';
        assert.equal(refund?.back, isRefunded ? 3_000n : 0n);
        assert.equal(await charged(), isTaken && !isRefunded ? 3_000n : 0n);
        if (!isNamed) return;
        const again = fetch(there.url + flow.path, { headers });
        if (!isTaken) (await flow.asked()).writeHead(200, JSON_HEAD).end('{"results":[1,2,3]}');
        assert.deepEqual([(await again).status, await (await again).text()], [200, '{"results":[1,2,3]}']);
        assert.equal(await charged(), 3_000n);
      } finally {
        await replica.close();
      }
    });
  }

async function admin(path: string, body?: unknown) {
  const response = await fetch(`${here.url}/admin/api/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(body === undefined ? {} : { 'idempotency-key': randomUUID(), ...JSON_HEAD }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: JSON.parse(await response.text()) };
}

test('an operator sees what a metered call took, and gives back that and no more', async () => {
  const flow = api.flow('/list');
  const { headers, account, charged, rows } = await customer();
  const asking = fetch(here.url + flow.path, { headers });
  (await flow.asked()).writeHead(200, JSON_HEAD).end('{"results":[1,2,3]}');
  await (await asking).text();
  const [row] = await rows();
  const callId = row?.id ?? '';
  const record = await admin(`accounts/${account}`);
  const [call] = record.body.calls;
  assert.deepEqual([call.callId, call.priceUsd, call.reservedUsd], [callId, '0.003000', '0.040000']);
  const story = await admin(`calls/${callId}?account=${account}`);
  assert.deepEqual([story.body.priceUsd, story.body.reservedUsd], ['0.003000', '0.040000']);
  const found = JSON.stringify((await admin(`find?q=${callId}`)).body);
  assert.match(found, /0\.003000 USD/);
  const reason = 'it was wrong';
  const given = await admin(`accounts/${account}/refund-call`, { reason, callId });
  assert.equal(given.status, 200, JSON.stringify(given.body));
  const twice = await admin(`accounts/${account}/refund-call`, { reason, callId });
  assert.deepEqual([twice.status, twice.body.code], [409, 'CALL_ALREADY_REFUNDED']);
  assert.equal(await charged(), 0n);
});

/** Signs for what another route's 402 asks. */
async function signed(): Promise<Record<string, string>> {
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(await world.base.wallet()));
  const challenge = await fetch(`${here.url}/fixed/1`);
  const terms = Buffer.from(challenge.headers.get('payment-required') ?? '', 'base64').toString();
  const payload = await client.createPaymentPayload(JSON.parse(terms));
  return { 'payment-signature': Buffer.from(JSON.stringify(payload)).toString('base64') };
}

test('no wallet buys a metered route: the 402 asks for none, and a payment is refused before anything moves', async () => {
  const flow = api.flow('/list');
  const asked = await fetch(here.url + flow.path);
  const terms = await jsonOf(Promise.resolve(asked));
  assert.equal(asked.status, 402);
  assert.deepEqual(
    ['payment-required', 'www-authenticate'].map((name) => asked.headers.get(name)),
    [null, null],
  );
  assert.match(
    terms.message,
    /costs at most 0\.04 USD a call, which is reserved: 0\.001 USD for each of the items in results/,
  );
  assert.match(terms.message, /0\.015 USD where it does not tell/);
  assert.deepEqual(
    terms.accepts.map(({ scheme }: { scheme: string }) => scheme),
    ['prepaid'],
  );
  assert.equal(terms.metered.atMostUsd, '0.04');
  const received = await world.received('evm');
  for (const headers of [await signed(), { authorization: 'Payment e30' }]) {
    const refused = fetch(here.url + flow.path, { headers });
    const told = await jsonOf(refused);
    assert.deepEqual([(await refused).status, told.last_error_reason.code], [402, 'PAYMENT_BY_KEY_ALONE']);
  }
  assert.deepEqual([(await world.received('evm')) - received, flow.times], [0n, 0]);
});

test('catalog, recipe, OpenAPI and the doors say so too', async () => {
  const read = (path: string) => jsonOf(fetch(here.url + path));
  const catalog = await read('/x402/catalog');
  const entry = catalog.services.find(({ id }: { id: string }) => id === 'get-list-n');
  assert.deepEqual([entry.paymentNetworks, entry.mpp, entry.priceUSD], [[], false, 0.04]);
  assert.deepEqual(entry.route.metered, {
    measured: 'items in results of the answer',
    priceUsd: '0.001',
    per: 1,
    atMostUsd: '0.04',
    whenUnmeasuredUsd: '0.015',
  });
  assert.deepEqual(entry.route.prices, {
    lowestUsd: '0',
    highestUsd: '0.04',
    decidedBy: 'the items in results of the answer',
  });
  const recipe = await read('/x402/recipes/get-list-n');
  assert.deepEqual([recipe.payment.x402, recipe.payment.mpp], [null, null]);
  assert.match(recipe.charged, /^At most 0\.04 USD \(0\.001 USD for each of the items in results/);
  const openapi = await read('/openapi.json');
  const operation = openapi.paths['/list/{n}'].get;
  assert.deepEqual(operation['x-payment-info'], {
    price: { mode: 'dynamic', currency: 'USD', min: '0', max: '0.04' },
    protocols: [],
  });
  assert.equal(operation['x-metered'].measured, 'items in results of the answer');
  assert.deepEqual(operation.security, [{ ApiKeyHeader: [] }, { BearerKey: [] }]);
  const byMpp = await fetch(`${here.url}/mpp/get-list-n`, { method: 'POST' });
  assert.equal(byMpp.status, 404);
  const mppCatalog = JSON.stringify(await read('/mpp/catalog'));
  assert.ok(!mppCatalog.includes('get-list-n') && mppCatalog.includes('get-fixed-n'));
});

test('the books balance', () => assertBooksClosed(database.patient));
