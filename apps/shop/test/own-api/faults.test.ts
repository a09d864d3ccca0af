/**
 * A broken, silent or lying API behind a route costs its buyer nothing. One row a fault, bought on credits and by a payment
 * that a chain moves. Nothing of the API's own words about money or identity comes back, and nothing of our credentials there.
 */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { after, before, test } from 'node:test';
import type { PrivateKeyAccount } from 'viem/accounts';
import { CHUNKED, rawServer, sized } from '../../../../packages/proxy/src/wire/raw-upstream.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf } from '../fire/money.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, paymentHeader, signPayment, startPaymentWorld } from '../x402.fixture.ts';
import { routesOf } from './own-api.fixture.ts';

/** In each header by which an API could speak for us. */
const MARK = 'of-the-upstream';
const SPOKEN = [
  `WWW-Authenticate: Basic realm="${MARK}"`,
  `Proxy-Authenticate: Basic realm="${MARK}"`,
  `Authentication-Info: ${MARK}`,
  `Payment-Required: ${MARK}`,
  `Payment-Response: ${MARK}`,
  `Payment-Receipt: ${MARK}`,
  `X-Payment: ${MARK}`,
  `X-Payment-Response: ${MARK}`,
  `X-Credits-Used: ${MARK}`,
  `X-Credits-Remaining: ${MARK}`,
  `X-Call-Id: ${MARK}`,
  `X-Price-Usd: ${MARK}`,
  `Idempotent-Replayed: ${MARK}`,
  `Set-Cookie: session=${MARK}`,
  `Location: http://${MARK}/`,
  `Refresh: 0; url=http://${MARK}/`,
]
  .map((line) => `${line}\r\n`)
  .join('');
const JSON_TYPE = 'Content-Type: application/json\r\n';
const SECRETS = { WEATHER_TOKEN: 'wt-0c8d7e6f5a4b3c2d1e0f', WEATHER_APP: 'app-91a2b3c4d5e6f708' };
const PRICE_MICROS = 10_000n;

const answered = (status: string, body = '{"told":"nothing"}') =>
  sized(body, `HTTP/1.1 ${status}`, SPOKEN + JSON_TYPE);

const LARGE = 'sends more than is kept here';

interface Fault {
  fault: string;
  sends(socket: Socket, request: string): unknown;
  told: readonly [status: number, code: string];
}

const FAILED = [502, 'UPSTREAM_FAILED'] as const;

const FAULTS: readonly Fault[] = [
  { fault: 'closes before headers', sends: (socket) => socket.destroy(), told: FAILED },
  {
    fault: 'closes within the head',
    sends: (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-'),
    told: FAILED,
  },
  {
    fault: 'dies within a body of chunks',
    sends: (socket) => socket.end(`${CHUNKED}${SPOKEN}${JSON_TYPE}\r\n5\r\n{"a":\r\n`),
    told: FAILED,
  },
  {
    fault: 'says 100 bytes and sends 50',
    sends: (socket) => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 100\r\n${SPOKEN}\r\n${'x'.repeat(50)}`),
    told: FAILED,
  },
  { fault: 'sends garbage', sends: (socket) => socket.end('NOT HTTP AT ALL\r\n\r\n'), told: FAILED },
  {
    fault: 'says a length and chunks',
    sends: (socket) => socket.end(`${CHUNKED}Content-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
    told: FAILED,
  },
  {
    fault: 'sends a chunk of no size',
    sends: (socket) => socket.end(`${CHUNKED}\r\nzz\r\nhello\r\n0\r\n\r\n`),
    told: FAILED,
  },
  {
    fault: 'tells the end of text by the end of its connection',
    sends: (socket) => socket.end(`HTTP/1.1 200 OK\r\n${SPOKEN}Content-Type: text/plain\r\n\r\nhalf of it`),
    told: FAILED,
  },
  { fault: 'says nothing', sends: () => {}, told: [504, 'UPSTREAM_TIMEOUT'] },
  {
    fault: 'is silent within its body',
    sends: (socket) => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 100\r\n${SPOKEN}\r\nhalf`),
    told: [504, 'UPSTREAM_TIMEOUT'],
  },
  {
    fault: 'says that it sends too much',
    sends: (socket) => socket.write(answered('200 OK', 'x'.repeat(5_000))),
    told: FAILED,
  },
  {
    fault: LARGE,
    sends: (socket) => socket.write(answered('200 OK', JSON.stringify({ data: ['x'.repeat(20_000)] }))),
    told: FAILED,
  },
  {
    fault: 'sends too much in chunks',
    sends: (socket) => socket.write(`${CHUNKED}${SPOKEN}\r\n1388\r\n${'x'.repeat(5_000)}\r\n0\r\n\r\n`),
    told: FAILED,
  },
  ...[
    '301 Moved',
    '302 Found',
    '303 See Other',
    '307 Again',
    '308 Moved',
    '304 Not Modified',
    '300 Choices',
  ].map(
    (status): Fault => ({
      fault: status,
      sends: (socket) =>
        socket.write(status.startsWith('304') ? `HTTP/1.1 ${status}\r\n${SPOKEN}\r\n` : answered(status)),
      told: FAILED,
    }),
  ),
  ...[
    ...['401 Unauthorized', '402 Payment Required', '403 Forbidden', '407 Proxy'],
    ...['500 Broken', '501 Not', '502 Bad Gateway', '503 Away', '504 Late', '599 Odd'],
  ].map(
    (status): Fault => ({ fault: status, sends: (socket) => socket.write(answered(status)), told: FAILED }),
  ),
  {
    fault: '429 Too Many',
    sends: (socket) => socket.write(answered('429 Too Many')),
    told: [503, 'UPSTREAM_UNAVAILABLE'],
  },
  {
    fault: '408 Timeout',
    sends: (socket) => socket.write(answered('408 Timeout')),
    told: [504, 'UPSTREAM_TIMEOUT'],
  },
  ...['206 Partial Content', '299 Odd'].map(
    (status): Fault => ({
      fault: `${status}, which nobody asked for`,
      sends: (socket) =>
        socket.write(
          sized('{}', `HTTP/1.1 ${status}`, `Content-Range: bytes 0-1/9\r\n${SPOKEN}${JSON_TYPE}`),
        ),
      told: FAILED,
    }),
  ),
  {
    fault: 'answers in another content type',
    sends: (socket) =>
      socket.write(sized('<p>Sign in</p>', 'HTTP/1.1 200 OK', `${SPOKEN}Content-Type: text/html\r\n`)),
    told: FAILED,
  },
  {
    fault: 'compresses, though nobody asked for it',
    sends: (socket) => socket.write(sized('{}', 'HTTP/1.1 200 OK', `Content-Encoding: gzip\r\n${JSON_TYPE}`)),
    told: FAILED,
  },
  {
    fault: 'answers 200 with errors, as GraphQL does',
    sends: (socket) => socket.write(answered('200 OK', '{"data":[],"errors":[{"message":"no such field"}]}')),
    told: FAILED,
  },
  {
    fault: 'answers 200 without the field that its route expects',
    sends: (socket) => socket.write(answered('200 OK', '{"date":null}')),
    told: FAILED,
  },
  ...['400 Bad', '404 Not Found', '409 Conflict', '410 Gone', '422 Unfit', '428 Needed'].map(
    (status): Fault => ({
      fault: status,
      sends: (socket) => socket.write(answered(status)),
      told: [Number(status.slice(0, 3)), 'UPSTREAM_REFUSED'],
    }),
  ),
  {
    fault: '418 Teapot',
    sends: (socket) => socket.write(answered('418 Teapot')),
    told: [422, 'UPSTREAM_REFUSED'],
  },
  {
    fault: '451 Legal',
    sends: (socket) => socket.write(answered('451 Legal')),
    told: [422, 'UPSTREAM_REFUSED'],
  },
  {
    fault: '400 Bad with our credentials in it',
    sends: (socket, request) => socket.write(answered('400 Bad', JSON.stringify({ request }))),
    told: FAILED,
  },
  {
    fault: '200 OK with our credentials in a header',
    sends: (socket) =>
      socket.write(
        sized('{"data":[]}', 'HTTP/1.1 200 OK', `${JSON_TYPE}X-Trace: ${SECRETS.WEATHER_APP}\r\n`),
      ),
    told: FAILED,
  },
  {
    fault: '200 OK with our credentials in its errors',
    sends: (socket, request) =>
      socket.write(answered('200 OK', JSON.stringify({ data: [], errors: [request] }))),
    told: FAILED,
  },
  {
    fault: '200 OK with our credentials in it',
    sends: (socket, request) => socket.write(answered('200 OK', JSON.stringify({ data: [], request }))),
    told: FAILED,
  },
];

let world: PaymentWorld;
let database: TestDatabase;
let shop: TestServer;
let payer: PrivateKeyAccount;
let key: string;
let account: bigint;

/** The fault whose number stands in the address, or its whole answer. */
function answer(socket: Socket, request: string): void {
  const path = request.split(' ')[1] ?? '';
  const fault = FAULTS[Number(/faults\/(\d+)/.exec(path)?.[1] ?? Number.NaN)];
  if (fault !== undefined) return void fault.sends(socket, request);
  socket.write(answered('200 OK', '{"data":[1]}'));
}

const api = await rawServer(answer);
/** How far the shop's clock runs ahead. */
let aheadMs = 0;

before(async () => {
  [world, database] = await Promise.all([startPaymentWorld(), openTestDatabase()]);
  const silent = FAULTS.flatMap(({ told: [status] }, index) => (status === 504 ? [index] : []));
  const good = 'contentType: [application/json], has: [data], hasNot: [errors]';
  shop = await startTestServer({
    pools: database,
    environment: {
      ...world.environment,
      ...world.made,
      X402_REFUND_AFTER_SECONDS: '60',
      MAX_ANSWER_BYTES: '10000',
    },
    services: [],
    nowMs: () => Date.now() + aheadMs,
    routes: () =>
      routesOf(
        `
        upstreams:
          weather:
            url: "${api.url}"
            headers: { authorization: "Bearer \${WEATHER_TOKEN}" }
            query: { app: "\${WEATHER_APP}" }
            breaker: false
          hasty:
            url: "${api.url}"
            timeouts: { headersMs: 100, idleMs: 100 }
            breaker: false
          failing:
            url: "${api.url}"
            breaker: { failures: 1, openMs: 3600000 }
        routes:
          "GET /weather/faults/:id":
            upstream: weather
            price: "0.01"
            maxAnswerBytes: 4000
            answerHeaders: [x-trace]
            success: { ${good} }
          "POST /weather/faults/:id": { upstream: weather, price: "0.01", success: { ${good} } }
          "GET /weather/whole": { upstream: weather, price: "0.01" }
          "GET /failing/faults/:id": { upstream: failing, price: "0.01" }
          "POST /failing/faults/:id": { upstream: failing, price: "0.01" }
          ${silent.map((index) => `"GET /hasty/faults/${index}": { upstream: hasty, price: "0.01" }`).join('\n          ')}
      `,
        { env: SECRETS },
      ),
  });
  key = await shop.key('5');
  account = await accountOf(database.sql, key);
  payer = await world.wallet();
});
after(async () => {
  await shop?.close();
  await Promise.all([world?.stop(), database?.close()]);
});

/** The address of a fault: the silent ones have a server of little patience. */
function addressOf({ told: [status] }: Fault, index: number): string {
  return `${shop.url}/${status === 504 ? 'hasty' : 'weather'}/faults/${index}`;
}

/** A payment for an address, as a client makes it. */
async function paid(address: string, method = 'GET'): Promise<Record<string, string>> {
  const challenge = await fetch(address, { method });
  assert.equal(challenge.status, 402);
  assertOurs(challenge, await challenge.text());
  const signed = await signPayment(payer, { to: world.recipient, valueUnits: PRICE_MICROS });
  return { 'payment-signature': await paymentHeader(challenge, signed) };
}

/** Asserts that nothing in an answer is the API's word for ours, nor a credential that the API knows us by. */
function assertOurs(answer: Response, text: string): void {
  const headers = JSON.stringify([...answer.headers]);
  assert.doesNotMatch(headers, new RegExp(MARK), 'the API speaks for us');
  for (const secret of Object.values(SECRETS))
    assert(!`${headers}${text}`.includes(secret), 'a credential came back');
}

for (const [index, fault] of FAULTS.entries())
  test(`an API that ${fault.fault} costs nothing on credits or by x402`, async () => {
    const before = { balance: await balanceOf(database.sql, account), asked: api.requests.length };
    const onCredits = await fetch(addressOf(fault, index), {
      headers: { 'x-api-key': key },
      redirect: 'manual',
    });
    await assertFree(onCredits, fault);
    assert.ok(api.requests.length > before.asked, 'the API was not asked');
    assert.equal(await balanceOf(database.sql, account), before.balance);

    const held = { wallet: await world.balanceOf(payer.address), shop: await world.received() };
    const headers = await paid(addressOf(fault, index));
    await assertFree(await fetch(addressOf(fault, index), { headers, redirect: 'manual' }), fault);
    assert.deepEqual({ wallet: await world.balanceOf(payer.address), shop: await world.received() }, held);
    const [{ count } = { count: -1 }] = await database.sql<{ count: number }[]>`
      select count(*)::integer as count from settlements`;
    assert.equal(count, 0, 'a payment was given to the chain');
  });

async function assertFree(answer: Response, { told: [status, code] }: Fault): Promise<void> {
  const text = await answer.text();
  assertOurs(answer, text);
  const body = JSON.parse(text);
  assert.deepEqual([answer.status, body.code, body.charged], [status, code, false], text);
  assert.equal(answer.headers.get('x-credits-used'), null);
  assert.equal(answer.headers.get('location'), null);
}

test('what an API says of money and identity does not come with a whole answer either', async () => {
  const answer = await fetch(`${shop.url}/weather/whole`, { headers: { 'x-api-key': key } });
  assertOurs(answer, await answer.text());
  assert.deepEqual([answer.status, answer.headers.get('x-credits-used')], [200, '0.0100']);
  const last = api.requests.at(-1) ?? '';
  assert.match(last, /^GET \/whole\?app=app-91a2b3c4d5e6f708 /);
  assert.match(last, /authorization: Bearer wt-0c8d7e6f5a4b3c2d1e0f/i);
  assert.ok(!last.includes(key), 'the API was told the key of the caller');
});

test('an answer above what this server keeps costs nothing, though its route would take it', async () => {
  const index = FAULTS.findIndex(({ fault }) => fault === LARGE);
  const headers = { 'x-api-key': key };
  const answer = await fetch(`${shop.url}/weather/faults/${index}`, { method: 'POST', headers });
  const told = await jsonOf(answer);
  assert.deepEqual([answer.status, told.code, told.charged], [502, 'UPSTREAM_FAILED', false]);
});

test('the API that answers 200 with errors is quoted, because its caller can mend the query', async () => {
  const index = FAULTS.findIndex(({ fault }) => fault.includes('GraphQL'));
  const told = await jsonOf(fetch(`${shop.url}/weather/faults/${index}`, { headers: { 'x-api-key': key } }));
  assert.deepEqual(told.upstream, { said: [{ message: 'no such field' }] });
});

test('a write that fails after its payment has moved is refunded; one whose API is known to be down moves nothing', async () => {
  const index = FAULTS.findIndex(({ fault }) => fault === '500 Broken');
  const held = await world.balanceOf(payer.address);
  const address = `${shop.url}/weather/faults/${index}`;
  const moved = await fetch(address, { method: 'POST', headers: await paid(address, 'POST') });
  const told = await jsonOf(moved);
  assert.deepEqual([moved.status, told.code, told.charged], [502, 'UPSTREAM_FAILED', true]);
  assert.ok(told.refund.dueAt, 'it is told when its money comes back');
  assert.equal(held - (await world.balanceOf(payer.address)), PRICE_MICROS);

  const failing = `${shop.url}/failing/faults/${FAULTS.findIndex(({ fault }) => fault === '503 Away')}`;
  const down = await fetch(failing, { headers: { 'x-api-key': key } });
  assert.equal(down.status, 502, 'the API fails once, and is left alone for an hour');
  await down.text();
  const asked = api.requests.length;
  const unmoved = await fetch(failing, { method: 'POST', headers: await paid(failing, 'POST') });
  const refused = await jsonOf(unmoved);
  assert.deepEqual(
    [unmoved.status, refused.code, refused.charged, refused.reason],
    [503, 'UPSTREAM_UNAVAILABLE', false, 'down'],
  );
  assert.equal(held - (await world.balanceOf(payer.address)), PRICE_MICROS, 'nothing more has moved');
  assert.equal(api.requests.length, asked);

  aheadMs += 120_000;
  await shop.app.settlementFinisher.run();
  assert.equal(await world.balanceOf(payer.address), held, 'what had moved came back');
});

test('no call of a fault was captured, the books balance, and no credential stands in a log', async () => {
  const captured = (await callsOf(database.sql, account)).filter(({ state }) => state === 1);
  assert.deepEqual(
    captured.map(({ service }) => service),
    ['get-weather-whole'],
  );
  for (const secret of Object.values(SECRETS))
    assert.ok(!shop.log.join('\n').includes(secret), 'a credential stands in the log');
  await assertBooksClosed(database.patient);
});
