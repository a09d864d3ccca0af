/** One payment for a route, presented many times at once, or for something else: one request reaches the API, and one price is taken. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from '../fire/money.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, paymentHeader, signPayment, startPaymentWorld } from '../x402.fixture.ts';
import { type OwnApi, routesOf, startOwnApi } from './own-api.fixture.ts';

const COPIES = 50;
const PRICE_MICROS = 20_000n;
const ORDER = '{"item":"chair"}';

let world: PaymentWorld;
let database: TestDatabase;
let api: OwnApi;
let shop: TestServer;
/** The API's orders wait for this. */
let opened = Promise.resolve();

before(async () => {
  [world, database, api] = await Promise.all([
    startPaymentWorld(),
    openTestDatabase(),
    startOwnApi(async ({ method }, reply) => {
      const number = api.got.filter((each) => each.method === method).length;
      await opened;
      reply.setHeader('content-type', 'application/json');
      reply.statusCode = method === 'POST' ? 201 : 200;
      reply.end(JSON.stringify({ number }));
    }),
  ]);
  shop = await startTestServer({
    pools: database,
    environment: { ...world.environment, ...world.made },
    services: [],
    routes: () =>
      routesOf(`
        upstreams:
          orders: { url: "${api.url}", prefix: "/", breaker: false }
        routes:
          "POST /orders": { upstream: orders, price: "0.02", requestHeaders: [x-variant] }
          "POST /returns": { upstream: orders, price: "0.02", requestHeaders: [x-variant] }
          "GET /orders": { upstream: orders, price: "0.02", requestHeaders: [x-variant] }
      `),
  });
});
after(async () => {
  await shop?.close();
  await Promise.all([world?.stop(), database?.close(), api?.stop()]);
});

interface Asking {
  method?: 'GET' | 'POST';
  address?: string;
  body?: string;
  headers?: Record<string, string>;
}

function ask(credential: Record<string, string>, asking: Asking = {}): Promise<Response> {
  const { method = 'POST', address = '/orders', body = ORDER, headers = {} } = asking;
  return fetch(shop.url + address, {
    method,
    headers: {
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      'x-variant': 'a',
      ...credential,
      ...headers,
    },
    ...(method === 'POST' ? { body } : {}),
  });
}

const WAYS = [
  {
    way: 'one x402 payment',
    async credential() {
      const payer = await world.wallet();
      const before = { held: await world.balanceOf(payer.address), received: await world.received() };
      const challenge = await ask({});
      assert.equal(challenge.status, 402);
      const signed = await signPayment(payer, { to: world.recipient, valueUnits: PRICE_MICROS });
      return {
        headers: { 'payment-signature': await paymentHeader(challenge, signed) },
        async assertPaidOnce() {
          assert.equal(before.held - (await world.balanceOf(payer.address)), PRICE_MICROS);
          assert.equal((await world.received()) - before.received, PRICE_MICROS);
        },
      };
    },
  },
  {
    way: 'one Idempotency-Key',
    async credential() {
      const key = await shop.key('1');
      const account = await accountOf(database.sql, key);
      const headers: Record<string, string> = { 'x-api-key': key, 'idempotency-key': 'one-order' };
      return {
        headers,
        async assertPaidOnce() {
          assert.equal(await balanceOf(database.sql, account), 1_000_000n - PRICE_MICROS);
        },
      };
    },
  },
];

for (const { way, credential } of WAYS)
  test(`${COPIES} copies of ${way} at once are one order and one price; other requests are refused`, async () => {
    const asked = api.got.length;
    const { headers, assertPaidOnce } = await credential();
    const gate = Promise.withResolvers<void>();
    opened = gate.promise;
    const copies = Array.from({ length: COPIES }, () => ask(headers));
    // Most copies come while the first is at work, and some after it: what they get must be right in either case.
    await until('the API to be asked', () => api.got.length > asked);
    gate.resolve();
    const answers = await Promise.all(
      (await Promise.all(copies)).map(async (answer) => ({
        status: answer.status,
        text: await answer.text(),
      })),
    );
    const bought = answers.filter(({ status }) => status === 201);
    assert.ok(bought.length > 0);
    assert.equal(new Set(bought.map(({ text }) => text)).size, 1, 'one payment has one answer');
    for (const { status, text } of answers) {
      if (status === 201) continue;
      assert.ok(status === 503 || status === 429, text);
      assert.notEqual(JSON.parse(text).charged, true, text);
    }
    assert.equal(api.got.length - asked, 1, 'one request reaches the API');
    await assertPaidOnce();

    const again = await ask(headers);
    assert.deepEqual(
      [again.status, await again.text(), again.headers.get('idempotent-replayed')],
      [201, bought[0]?.text, 'true'],
    );
    for (const other of [
      { body: '{"item":"table"}' },
      { body: `${ORDER} ` },
      { body: '' },
      { address: '/orders?urgent=1' },
      { address: '/orders?' },
      { address: '/returns' },
      { headers: { 'x-variant': 'b' } },
      { headers: { 'content-type': 'application/vnd.order+json' } },
      { method: 'GET' },
    ] as const) {
      const refused = await ask(headers, other);
      const told = await refused.text();
      assert.equal(refused.status, 409, `${JSON.stringify(other)}: ${told}`);
      assert.equal(JSON.parse(told).code, 'IDEMPOTENCY_KEY_REUSED');
    }
    assert.equal(api.got.length - asked, 1, 'nothing else reaches the API');
    await assertPaidOnce();
  });

test('values of one named header in another order are another request', async () => {
  const headers = { 'x-api-key': await shop.key('1'), 'idempotency-key': 'in-order' };
  const order = (first: string, second: string) => rawPost({ ...headers }, [first, second]);
  assert.match(await order('a', 'b'), /^HTTP\/1\.1 201 /);
  assert.match(await order('b', 'a'), /^HTTP\/1\.1 409 /);
  assert.match(await order('a', 'b'), /^HTTP\/1\.1 201 /);
});

/** Sends the order with a header that comes twice, which `fetch` would join. */
async function rawPost(headers: Record<string, string>, variants: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(shop.url);
  const socket = connect(Number(port), hostname);
  const lines = [
    'POST /orders HTTP/1.1',
    'host: shop',
    'connection: close',
    `content-length: ${ORDER.length}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...variants.map((value) => `x-variant: ${value}`),
  ];
  // Not ended: who ends its side has left.
  socket.write(`${lines.join('\r\n')}\r\n\r\n${ORDER}`);
  let text = '';
  for await (const piece of socket) text += String(piece);
  return text;
}

test('the books balance', async () => {
  await assertBooksClosed(database.patient);
});
