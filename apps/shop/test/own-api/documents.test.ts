/** A seller's routes stand in every document as they are called and priced, and a price that the request decides is that of the 402. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { findingsOf } from '../../../../packages/core/src/discovery/openapi-validators.fixture.ts';
import { AGENTS } from '../agents/a2a-agents.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';
import { type OwnApi, routesOf, startOwnApi } from './own-api.fixture.ts';

let world: PaymentWorld;
let database: TestDatabase;
let api: OwnApi;
let server: TestServer;
before(async () => {
  [world, database, api] = await Promise.all([
    startPaymentWorld(),
    openTestDatabase(),
    startOwnApi((got, reply) => {
      if (got.url === '/v1/stations/lost') {
        reply.statusCode = 404;
        reply.setHeader('content-type', 'application/json');
        return reply.end('{"detail":"no such station"}');
      }
      if (got.url === '/v1/closed') reply.statusCode = 401;
      reply.setHeader('content-type', got.url === '/v1/lie' ? 'application/json' : 'text/plain');
      reply.end(`an answer to ${got.body}`);
    }),
  ]);
  server = await startTestServer({
    pools: database,
    environment: world.environment,
    services: [],
    routes: () =>
      routesOf(`
        upstreams:
          weather: { url: "${api.url}", prefix: "/" }
        routes:
          "POST /v1/forecasts":
            upstream: weather
            priceBy: { field: model, prices: { fast: "0.02", exact: "0.30" } }
            summary: The forecast of a place
            tags: [Weather]
            request: { body: { type: object, properties: { model: { type: string } }, required: [model] } }
            response: { type: object, properties: { text: { type: string } } }
            example: { body: { model: fast } }
          "GET /v1/stations/:id":
            upstream: weather
            price: "0.01"
            request: { query: { type: object, properties: { unit: { type: string } } } }
            example: { params: { id: "7" }, query: { unit: c } }
          "GET /v1/flow": { upstream: weather, price: "0.01", answer: streamed }
          "GET /v1/lie": { upstream: weather, price: "0.01" }
          "GET /v1/health": { upstream: weather, free: true }
          "GET /v1/closed": { upstream: weather, free: true }
      `),
  });
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), database?.close(), api?.stop()]);
});

const post = (body: string, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/v1/forecasts`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });

test('a 402 names the price of its very body, and that price is charged', async () => {
  for (const [model, price, used] of [
    ['fast', 0.02, '0.0200'],
    ['exact', 0.3, '0.3000'],
  ] as const) {
    const body = JSON.stringify({ model });
    const asked = await post(body);
    const terms = decodePaymentRequiredHeader(asked.headers.get('payment-required') ?? '');
    assert.equal(terms.accepts[0]?.amount, String(price * 1_000_000));
    const unpaid = await jsonOf(asked);
    assert.equal(unpaid.price_usd, price);
    assert.equal(unpaid.accepts[0].maxAmountRequired, String(price * 1_000_000));
    const bought = await post(body, { 'x-api-key': await server.key('1') });
    assert.deepEqual([bought.status, bought.headers.get('x-credits-used')], [200, used], await bought.text());
  }
});

test('what could be read as two prices is refused before any is named, and reaches no upstream', async () => {
  const asked = api.got.length;
  for (const body of [
    '{"model":"fast","model":"exact"}',
    '{"model":"fast","\\u006dodel":"exact"}',
    '{"model":"dear"}',
    '{"model":["fast"]}',
    '\ufeff{"model":"fast"}',
  ]) {
    const refused = await post(body, { 'x-api-key': await server.key('1') });
    const { code, charged, price_usd } = await jsonOf(refused);
    assert.deepEqual([refused.status, charged, price_usd], [400, false, undefined], `${body} ${code}`);
  }
  assert.equal(api.got.length, asked);
});

test('what its API refuses is told with its status and words, and costs nothing', async () => {
  const key = await server.key('1');
  const refused = await fetch(`${server.url}/v1/stations/lost`, { headers: { 'x-api-key': key } });
  const { code, charged, upstream } = await jsonOf(refused);
  assert.deepEqual(
    [refused.status, code, charged, upstream.body],
    [404, 'UPSTREAM_REFUSED', false, { detail: 'no such station' }],
  );
  const lie = await fetch(`${server.url}/v1/lie`, { headers: { 'x-api-key': key } });
  assert.deepEqual([lie.status, (await jsonOf(lie)).charged], [502, false]);
  const me = await jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }));
  assert.deepEqual([me.balanceUsd, me.reservedUsd], ['1.000000', '0.000000']);
});

test('an API that does not accept this server is told to the operator, behind a free route too', async () => {
  const closed = await fetch(`${server.url}/v1/closed`);
  assert.deepEqual([closed.status, (await jsonOf(closed)).code], [502, 'UPSTREAM_FAILED']);
  const line = server.log.find((each) => each.includes('a free route failed'));
  assert.match(line ?? '', /GET \/v1\/closed.*status 401|status 401.*GET \/v1\/closed/);
});

test('an address that two programs could read differently is refused', async () => {
  const { hostname, port } = new URL(server.url);
  const { request } = await import('node:http');
  const status = await new Promise<number | undefined>((resolve, reject) => {
    request({ hostname, port, path: '/v1/stations/..%2fhealth' }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .on('error', reject)
      .end();
  });
  assert.equal(status, 400);
  const refused = await fetch(`${server.url}/v1/stations/%5c`);
  assert.deepEqual([refused.status, (await jsonOf(refused)).code], [400, 'INVALID_ADDRESS']);
});

test('the catalog, the recipe and llms.txt name a route by its own address and prices', async () => {
  const { services } = await jsonOf(fetch(`${server.url}/x402/catalog`));
  const entry = services.find(({ id }: { id: string }) => id === 'post-v1-forecasts');
  assert.deepEqual(entry.route, {
    method: 'POST',
    path: '/v1/forecasts',
    url: 'http://farebox.test/v1/forecasts',
    example: { url: 'http://farebox.test/v1/forecasts', headers: {}, body: { model: 'fast' } },
    prices: { lowestUsd: '0.02', highestUsd: '0.30', decidedBy: 'the field model of the body' },
    paidFirst: true,
  });
  assert.equal(entry.tag, 'Weather');
  const recipe = await jsonOf(fetch(`${server.url}/x402/recipes/get-v1-stations-id`));
  assert.equal(recipe.route.example.url, 'http://farebox.test/v1/stations/7?unit=c');
  // A read is paid after its answer, unless that leaves as it comes. Gathered, at the other address, it is one like any other.
  assert.equal(recipe.route.paidFirst, false);
  const streamed = await jsonOf(fetch(`${server.url}/x402/recipes/get-v1-flow`));
  assert.deepEqual([streamed.route.paidFirst, streamed.payment.x402.paidFirst], [true, false]);
  const text = await (await fetch(`${server.url}/llms.txt`)).text();
  assert.match(
    text,
    /0\.02 to 0\.30 USD\. The forecast of a place Also POST http:\/\/farebox\.test\/v1\/forecasts\./,
  );
});

test('OpenAPI has each route at its own address, and its validators find nothing', async () => {
  const document = await jsonOf(fetch(`${server.url}/openapi.json`));
  assert.deepEqual(await findingsOf(document), []);
  const station = document.paths['/v1/stations/{id}'].get;
  assert.deepEqual(
    station.parameters.map((each: { name: string; in: string }) => [each.name, each.in]),
    [
      ['id', 'path'],
      ['unit', 'query'],
    ],
  );
  const forecast = document.paths['/v1/forecasts'].post;
  assert.deepEqual(forecast['x-payment-info'].price, {
    mode: 'dynamic',
    currency: 'USD',
    min: '0.02',
    max: '0.30',
  });
  assert.ok(forecast.responses[200].content['application/json'].schema.properties.text);
});

test('a JSON call tells its price before it is written out', async () => {
  const unpaid = await fetch(`${server.url}/x402/get-v1-stations-id`);
  assert.deepEqual([unpaid.status, (await jsonOf(unpaid)).price_usd], [402, 0.01]);
});

for (const [client, agentOf] of Object.entries(AGENTS))
  test(`${client} of A2A buys a route as a skill`, async () => {
    const key = await server.key('1');
    const agent = await agentOf(() => ({ url: server.url, headers: { 'x-api-key': key } }));
    const data = { skill: 'post-v1-forecasts', input: { model: 'exact' } };
    const task = await agent.send({ messageId: randomUUID(), data });
    assert.equal(task.state, 'completed', JSON.stringify(task));
    const { method, url, body } = api.got.at(-1) ?? {};
    assert.deepEqual([method, url, body], ['POST', '/v1/forecasts', '{"model":"exact"}']);
    const me = await jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }));
    assert.equal(me.balanceUsd, '0.700000');
    // A streamed route is gathered for a task.
    const flow = await agent.send({ messageId: randomUUID(), data: { skill: 'get-v1-flow', input: {} } });
    assert.equal(flow.state, 'completed', JSON.stringify(flow));
    assert.equal(api.got.at(-1)?.url, '/v1/flow');
    const left = await jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }));
    assert.equal(left.balanceUsd, '0.690000');
  });

test('a browser that asks for what is not there gets the page that says so, and others the same as JSON', async () => {
  const page = await fetch(`${server.url}/v1/nothing`, { headers: { accept: 'text/html' } });
  assert.equal(page.status, 404);
  assert.match(page.headers.get('content-type') ?? '', /text\/html/);
  const { code } = await jsonOf(fetch(`${server.url}/.well-known/nothing`));
  assert.equal(code, 'NOT_FOUND');
});

test('HEAD and OPTIONS reach no upstream, and another method is told which there are', async () => {
  const asked = api.got.length;
  const head = await fetch(`${server.url}/v1/stations/7`, {
    method: 'HEAD',
    headers: { 'x-api-key': await server.key('1') },
  });
  assert.deepEqual([head.status, head.headers.get('x-payment-price')], [402, '$0.01 USDC']);
  assert.equal((await fetch(`${server.url}/v1/stations/7`, { method: 'OPTIONS' })).status, 204);
  const put = await fetch(`${server.url}/v1/stations/7`, { method: 'PUT' });
  assert.deepEqual([put.status, put.headers.get('allow')], [405, 'GET, HEAD, OPTIONS']);
  assert.equal((await fetch(`${server.url}/v1/nothing`)).status, 404);
  assert.equal((await fetch(`${server.url}/v1/health`, { method: 'HEAD' })).status, 204);
  assert.equal(api.got.length, asked);
  assert.equal((await fetch(`${server.url}/v1/health`)).status, 200);
  assert.equal(api.got.length, asked + 1);
});
