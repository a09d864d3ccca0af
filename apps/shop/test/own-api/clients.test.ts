/**
 * Unmodified clients of each way to pay buy the routes of somebody's own API, which is sold by configuration alone, at its own
 * addresses and as a tool.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { generateKeyPairSigner } from '@solana/kit';
import { ExactEvmScheme } from '@x402/evm';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { METHODS, type MppWorld, receiptOf, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { openStorefront, type Storefront } from '../storefront.fixture.ts';
import { type OwnApi, routesOf, startOwnApi } from './own-api.fixture.ts';

let world: MppWorld;
let database: TestDatabase;
let api: OwnApi;
let shop: Storefront;
before(async () => {
  [world, database, api] = await Promise.all([
    startMppWorld({ solana: true }),
    openTestDatabase(),
    startOwnApi((got, reply) => {
      const { pathname, searchParams } = new URL(got.url, 'http://api');
      if (pathname === '/v1/map') {
        reply.setHeader('content-type', 'application/octet-stream');
        return reply.end(BYTES);
      }
      if (pathname === '/v1/flow/broken') {
        reply.writeHead(200, { 'content-length': '100' }).write('half of it');
        return setImmediate(() => reply.destroy());
      }
      reply.setHeader('content-type', 'application/json');
      reply.statusCode = got.method === 'POST' ? 201 : 200;
      reply.end(
        JSON.stringify({
          station: pathname.split('/').at(-1),
          unit: searchParams.get('unit'),
          sent: got.body,
        }),
      );
    }),
  ]);
  shop = await openStorefront({
    pools: database,
    environment: { ...world.environment, ...world.made, TRIAL_ALLOW_INTERNAL: 'true' },
    services: [],
    routes: () =>
      routesOf(`
        upstreams:
          weather: { url: "${api.url}", prefix: "/" }
        routes:
          "GET /v1/stations/:id":
            upstream: weather
            price: "0.01"
            summary: What a weather station measures now
            request: { query: { type: object, properties: { unit: { type: string } } } }
            example: { params: { id: "7" }, query: { unit: c } }
          "POST /v1/forecasts":
            upstream: weather
            price: "0.02"
            request: { body: { type: object, properties: { days: { type: integer } }, required: [days] } }
            example: { body: { days: 3 } }
          "GET /v1/map": { upstream: weather, price: "0.05" }
          "GET /v1/flow/:id": { upstream: weather, price: "0.03", answer: streamed }
      `),
  });
});
after(async () => {
  await shop?.stop();
  await Promise.all([world?.stop(), database?.close(), api?.stop()]);
});

/** Bytes that are no UTF-8, with a zero among them. */
const BYTES = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0d, 0x0a]);

const STATION = { station: '7', unit: 'c', sent: '' };

test('a key buys each form of answer: JSON with its status, and bytes as they are', async () => {
  const headers = { 'x-api-key': await shop.key('1'), 'content-type': 'application/json' };
  const station = await fetch(`${shop.url}/v1/stations/7?unit=c`, { headers });
  assert.deepEqual([station.status, await station.json()], [200, STATION]);
  assert.equal(station.headers.get('x-credits-used'), '0.0100');
  const made = await fetch(`${shop.url}/v1/forecasts`, { method: 'POST', headers, body: '{"days":3}' });
  assert.deepEqual([made.status, (await jsonOf(made)).sent], [201, '{"days":3}']);
  const map = await fetch(`${shop.url}/v1/map`, { headers });
  assert.deepEqual(Buffer.from(await map.arrayBuffer()), BYTES);
  assert.equal(map.headers.get('content-type'), 'application/octet-stream');
});

test('@x402/fetch buys on Base and on Solana, and each payment gets its own answer once more', async () => {
  const account = await world.base.wallet();
  const solana = world.base.solana?.url ?? '';
  const wallet = await generateKeyPairSigner();
  const params = [wallet.address, { usdcUnits: 1_000_000 }];
  const funded = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'sandbox_fund', params });
  await fetch(solana, { method: 'POST', headers: { 'content-type': 'application/json' }, body: funded });
  const clients = [
    new x402Client().register('eip155:*', new ExactEvmScheme(account)),
    new x402Client().register('solana:*', new ExactSvmScheme(wallet, { rpcUrl: solana })),
  ];
  for (const client of clients) {
    const pay = wrapFetchWithPayment(fetch, client);
    const answer = await pay(`${shop.url}/v1/stations/7?unit=c`);
    const text = await answer.text();
    assert.deepEqual([answer.status, JSON.parse(text)], [200, STATION], shop.log());
    const receipt = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '');
    assert.equal(receipt.success, true);
    const asked = api.got.length;
    const presented = shop.payments.at(-1);
    assert.ok(presented);
    await shop.restart();
    const again = await fetch(shop.url + presented.path, { headers: withoutConnection(presented.headers) });
    assert.deepEqual([again.status, await again.text()], [200, text]);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.equal(api.got.length, asked, 'the API is not asked again');
    const other = await fetch(`${shop.url}/v1/stations/8?unit=c`, {
      headers: withoutConnection(presented.headers),
    });
    assert.equal(other.status, 409, 'the same payment buys nothing else');
  }
});

for (const method of METHODS)
  test(`the mppx client buys a GET and a POST by ${method}`, async () => {
    const account = await world.wallet();
    const { fetch: pay } = world.client(account, method);
    const before = await world.received(method);
    const station = await pay(`${shop.url}/v1/stations/7?unit=c`);
    assert.deepEqual([station.status, await station.json()], [200, STATION], shop.log());
    assert.equal(receiptOf(station)?.method, method);
    const made = await pay(`${shop.url}/v1/forecasts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"days":3}',
    });
    assert.deepEqual([made.status, (await jsonOf(made)).sent], [201, '{"days":3}'], shop.log());
    const below = await pay(`${shop.url}/mpp/get-v1-stations-id`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: '7', unit: 'c' }),
    });
    assert.deepEqual([below.status, await below.json()], [200, STATION], shop.log());
    assert.equal((await world.received(method)) - before, 40_000n);
  });

test('a client of MCP finds the routes as tools, with flat arguments, and buys by key', async () => {
  const client = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: { 'x-api-key': await shop.key('1') } };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`), { requestInit }) as never,
  );
  const { tools } = await client.listTools();
  const tool = tools.find(({ description }) => description?.includes('What a weather station measures now'));
  assert.ok(tool, tools.map(({ name }) => name).join(' '));
  assert.deepEqual(Object.keys(tool.inputSchema.properties ?? {}).sort(), ['id', 'unit']);
  const bought = await client.callTool({ name: tool.name, arguments: { id: '7', unit: 'c' } });
  assert.deepEqual(bought.structuredContent, STATION);
  assert.equal(api.got.at(-1)?.url, '/v1/stations/7?unit=c');
  await client.close();
});

test('a client of MCP gets the answer of a streamed route whole, and pays nothing for one that breaks off', async () => {
  const client = new Client({ name: 'test', version: '1' });
  const headers = { 'x-api-key': await shop.key('1') };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`), { requestInit: { headers } }) as never,
  );
  const name = 'get_v1_flow_id';
  const asked = api.got.length;
  const _meta = { 'farebox/idempotencyKey': 'one-flow' };
  const call = () => client.callTool({ name, arguments: { id: '8' }, _meta });
  const bought = await call();
  assert.deepEqual(bought.structuredContent, { station: '8', unit: null, sent: '' });
  // Gathered, it is kept: the same purchase is not asked for again.
  assert.deepEqual((await call()).structuredContent, bought.structuredContent);
  assert.equal(api.got.length - asked, 1);
  const broken = await client.callTool({ name, arguments: { id: 'broken' } });
  assert.equal(broken.isError, true);
  assert.match(JSON.stringify(broken.content), /UPSTREAM_FAILED/);
  const me = await jsonOf(fetch(`${shop.url}/api/keys/me`, { headers }));
  assert.equal(me.balanceUsd, '0.970000');
  await client.close();
});

test('the books balance', async () => {
  const { checks } = await proveBooks(database.patient);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
});

function withoutConnection(headers: Record<string, string>): Record<string, string> {
  const { host, connection, ...kept } = headers;
  return kept;
}
