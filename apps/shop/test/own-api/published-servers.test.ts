/** More published servers, sold by configuration alone: json-server, whose calls change its data, and streams of better-sse. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { createSession } from 'better-sse';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, assertCost, balanceOf, openCalls } from '../fire/money.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { routesOf } from './own-api.fixture.ts';

const require = createRequire(import.meta.url);
/** It has no types of its own. */
const jsonServer: {
  create(): RequestListener & { use(handler: unknown): void };
  defaults(options: { logger: boolean }): unknown;
  router(data: object): unknown;
} = require('json-server');

let database: TestDatabase;
const servers: Server[] = [];
let shop: TestServer;
let key: string;
let account: bigint;

async function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

before(async () => {
  database = await openTestDatabase();
  const rest = jsonServer.create();
  rest.use(jsonServer.defaults({ logger: false }));
  rest.use(
    jsonServer.router({
      stations: [
        { id: 7, name: 'Seven' },
        { id: 8, name: 'Eight' },
      ],
    }),
  );
  const restUrl = await listening(rest);
  const eventsUrl = await listening(async (request, response) => {
    const session = await createSession(request, response);
    for (const celsius of [12, 13]) session.push({ celsius }, 'reading', String(celsius));
    if (request.url === '/broken') return response.destroy();
    session.push('done');
    response.end();
  });
  shop = await startTestServer({
    pools: database,
    services: [],
    routes: () =>
      routesOf(`
        upstreams:
          rest: { url: "${restUrl}" }
          events: { url: "${eventsUrl}" }
        routes:
          "GET /rest/stations": { upstream: rest, price: "0.02", answerHeaders: [x-total-count] }
          "GET /rest/stations/:id": { upstream: rest, price: "0.01" }
          "POST /rest/stations": { upstream: rest, price: "0.05", success: { status: [201], has: [id] } }
          "DELETE /rest/stations/:id": { upstream: rest, price: "0.01" }
          "GET /events/:which":
            upstream: events
            price: "0.03"
            answer: streamed
            success: { contentType: [text/event-stream], lastEvent: '"done"' }
      `),
  });
  key = await shop.key('1');
  account = await accountOf(database.sql, key);
});
after(async () => {
  await shop?.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await database?.close();
});

function ask(
  path: string,
  { headers = {}, ...more }: RequestInit & { headers?: Record<string, string> } = {},
) {
  return fetch(shop.url + path, { ...more, headers: { 'x-api-key': key, ...headers } });
}

const costing = (micros: bigint, asking: () => Promise<Response>) =>
  assertCost({ sql: database.sql, account }, micros, asking);

test('json-server sells what it has, page by page, and what it does not have costs nothing', async () => {
  const seven = await costing(10_000n, () => ask('/rest/stations/7', { headers: { 'if-none-match': '*' } }));
  assert.deepEqual([seven.status, await seven.json()], [200, { id: 7, name: 'Seven' }]);
  const page = await costing(20_000n, () => ask('/rest/stations?_page=2&_limit=1'));
  assert.deepEqual(await page.json(), [{ id: 8, name: 'Eight' }]);
  assert.equal(page.headers.get('x-total-count'), '2');
  const missing = await costing(0n, () => ask('/rest/stations/900'));
  assert.deepEqual([missing.status, (await jsonOf(missing)).code], [404, 'UPSTREAM_REFUSED']);
  for (const unnamed of ['/rest/db', '/rest/stations/7/', '/rest/'])
    assert.equal((await costing(0n, () => ask(unnamed))).status, 404, unnamed);
});

test('json-server makes an order once, however often it comes; one that it cannot make costs nothing', async () => {
  const make = (name: object | string, order: string) =>
    ask('/rest/stations', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': order },
      body: typeof name === 'string' ? name : JSON.stringify(name),
    });
  const made = await costing(50_000n, () => make({ name: 'Nine' }, 'nine'));
  assert.deepEqual([made.status, await made.json()], [201, { name: 'Nine', id: 9 }]);
  const again = await costing(0n, () => make({ name: 'Nine' }, 'nine'));
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [201, 'true']);
  const twice = await costing(0n, () => make({ id: 9, name: 'Nine' }, 'twice'));
  assert.deepEqual([twice.status, (await jsonOf(twice)).code], [502, 'UPSTREAM_FAILED']);
  const broken = await costing(0n, () => make('{', 'broken'));
  assert.deepEqual([broken.status, (await jsonOf(broken)).charged], [502, false], 'it fails by 500');
  const all = await costing(20_000n, () => ask('/rest/stations'));
  assert.equal(all.headers.get('x-total-count'), null, 'it tells that with a page alone');
  assert.equal((await jsonOf(all)).length, 3);
  const gone = await costing(10_000n, () => ask('/rest/stations/9', { method: 'DELETE' }));
  assert.equal(gone.status, 200);
  assert.equal((await costing(0n, () => ask('/rest/stations/9'))).status, 404);
});

test('better-sse sells a stream of events with their ids; one that breaks off costs nothing', async () => {
  const held = await balanceOf(database.sql, account);
  const whole = await ask('/events/whole');
  assert.match(whole.headers.get('content-type') ?? '', /^text\/event-stream/);
  const text = await whole.text();
  for (const celsius of [12, 13])
    assert.match(text, new RegExp(`event:\\s?reading\\n(.*\\n)*?data:\\s?\\{"celsius":${celsius}\\}`));
  assert.match(text, /id:\s?13\n/);
  assert.match(text, /data:\s?"done"/);
  assert.equal(held - (await balanceOf(database.sql, account)), 30_000n);
  const broken = await ask('/events/broken').then(
    (answer) =>
      answer.text().then(
        () => 'whole',
        () => 'cut',
      ),
    () => 'cut',
  );
  assert.equal(broken, 'cut');
  await until('the call to be released', async () => (await openCalls(database.sql)) === 0);
  assert.equal(held - (await balanceOf(database.sql, account)), 30_000n);
});

test('the books balance', () => assertBooksClosed(database.patient));
