/**
 * Holds what may reach the API behind a route, and what never does: addresses that two programs could read differently, requests within
 * requests, other methods, what is free beside what is priced, and the addresses of the shop itself.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from '../fire/money.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type OwnApi, routesOf, startOwnApi } from './own-api.fixture.ts';

let database: TestDatabase;
let api: OwnApi;
let shop: TestServer;
let key: string;

const start = (routes: string, environment: Record<string, string> = {}) =>
  startTestServer({
    pools: database,
    environment,
    services: [],
    routes: () =>
      routesOf(`
        upstreams: { weather: { url: "${api.url}", prefix: "/" } }
        routes:
          ${routes.trim()}
      `),
  });

before(async () => {
  [database, api] = await Promise.all([
    openTestDatabase(),
    startOwnApi((_, reply) => {
      reply.setHeader('content-type', 'text/plain');
      reply.end('seven hails');
    }),
  ]);
  shop = await start(`
          "GET /v1/stations/:id": { upstream: weather, price: "0.01" }
          "POST /v1/stations/:id": { upstream: weather, price: "0.01", maxRequestBytes: 100 }
          "GET /v1/health": { upstream: weather, free: true }
          "GET /v1/:kind/:id": { upstream: weather, free: true }
          "POST /v1/notes": { upstream: weather, free: true, maxRequestBytes: 10 }
  `);
  key = await shop.key('1');
});
after(async () => {
  await shop?.close();
  await Promise.all([database?.close(), api?.stop()]);
});

/** Sends bytes as they are, and returns all that comes back. */
async function raw(text: string): Promise<string> {
  const { hostname, port } = new URL(shop.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  socket.write(Buffer.from(text, 'latin1'));
  let answer = '';
  for await (const piece of socket) answer += String(piece);
  return answer;
}

/** A request that would buy, if it were let through. */
function request(method: string, target: string, lines: readonly string[] = [], body = ''): string {
  const head = [
    `${method} ${target} HTTP/1.1`,
    'host: shop',
    'connection: close',
    `x-api-key: ${key}`,
    ...lines,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

async function assertUnreached(sent: string, statuses: readonly number[]): Promise<void> {
  const before = {
    asked: api.got.length,
    balance: await balanceOf(database.sql, await accountOf(database.sql, key)),
  };
  const answer = await raw(sent);
  const what = JSON.stringify(sent.slice(0, 300));
  assert.ok(statuses.includes(statusOf(answer)), `${what}: ${answer.slice(0, 2_000)}`);
  assert.match(answer, /"charged":false/, what);
  assert.doesNotMatch(answer, /seven hails/, what);
  assert.equal(api.got.length, before.asked, `${what} reached the API`);
  assert.equal(await balanceOf(database.sql, await accountOf(database.sql, key)), before.balance, what);
}

test('an address that two programs could read differently is refused before anything is priced', async () => {
  for (const target of [
    ...[
      '/v1/stations/%2e%2e',
      '/v1/stations/..',
      '/v1/stations/.',
      '/v1/./stations/7',
      '/v1/x/../stations/7',
    ],
    ...[
      '/v1/stations/a%2fb',
      '/v1/stations/a%2Fb',
      '/v1/stations/..%2fhealth',
      '/v1/stations/%2e%2e%2fhealth',
    ],
    ...[
      '/v1/stations/a%5cb',
      '/v1/stations/a\\b',
      '/v1/stations/%252e',
      '/v1/stations/%00',
      '/v1/stations/a%0d%0ab',
    ],
    ...[
      '/v1/stations/%zz',
      '/v1/stations/%',
      '/v1/stations/%ff',
      '/v1/stations/%ef%bc%8f',
      '/v1/stations/..;/health',
    ],
    ...[
      '/v1/stations/..;a=b',
      '/v1/stations;a/7',
      '/v1/Stations/7',
      '/v1/stations./7',
      '/v1/stations.json/7',
    ],
    ...['/v1/stations/7#part', '/v1/stations/é', '/v1/stations%20/7', '/v1/free/%2e%2e/stations/7'],
  ])
    await assertUnreached(request('GET', target), [400]);
  const told = await jsonOf(fetch(`${shop.url}/v1/stations/a%2fb`));
  assert.deepEqual([told.code, told.charged], ['INVALID_ADDRESS', false]);
  for (const target of [
    '//v1/stations/7',
    '/v1//stations/7',
    '/v1/stations//7',
    '/v1/stations/7//',
    '/v1/stations/7/x',
  ])
    await assertUnreached(request('GET', target), [404]);
  for (const target of [
    `/v1/stations/${'x'.repeat(9_000)}`,
    `/v1/stations/7?${'x'.repeat(9_000)}`,
    '/a'.repeat(200),
  ])
    await assertUnreached(request('GET', target), [414]);
});

test('a request within a request, or of two lengths, is refused', async () => {
  const inner = request('POST', '/v1/stations/8', ['content-length: 0']);
  for (const [lines, body] of [
    [['content-length: 2', 'content-length: 2'], '{}'],
    [['content-length: 2', 'content-length: 3'], '{}x'],
    [['content-length: 2, 2'], '{}'],
    [['content-length: +2'], '{}'],
    [['content-length: 2', 'transfer-encoding: chunked'], `0\r\n\r\n${inner}`],
    [['transfer-encoding: chunked', 'content-length: 4'], `0\r\n\r\n${inner}`],
    [['transfer-encoding: xchunked'], `0\r\n\r\n${inner}`],
    [['transfer-encoding: chunked, identity'], `0\r\n\r\n${inner}`],
    [['transfer-encoding : chunked'], `0\r\n\r\n${inner}`],
    [['transfer-encoding:\x0bchunked'], `0\r\n\r\n${inner}`],
    [[' folded: 1', 'content-length: 2'], '{}'],
    [['content-length: 2', 'content-encoding: gzip'], '{}'],
    [['content-length: 2', 'content-type: a/b', 'content-type: c/d'], '{}'],
    [['content-length: 2', 'connection: content-type', 'content-type: a/b'], '{}'],
  ] as const)
    await assertUnreached(request('POST', '/v1/stations/7', lines, body), [400]);
  await assertUnreached(request('GET', '/v1/stations/7', ['content-length: 2'], '{}'), [400]);
  await assertUnreached(request('GET', '/v1/health', ['content-length: 2'], '{}'), [400]);
  await assertUnreached(
    request('GET', '/v1/stations/7', ['transfer-encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n'),
    [400],
  );
  const long = 'x'.repeat(101);
  await assertUnreached(request('POST', '/v1/stations/7', ['content-length: 101'], long), [413]);
  const chunks = `65\r\n${long}\r\n0\r\n\r\n`;
  await assertUnreached(request('POST', '/v1/stations/7', ['transfer-encoding: chunked'], chunks), [413]);
  await assertUnreached(request('GET', 'http://elsewhere/v1/stations/7'), [400, 404]);
});

test('a body in chunks that is larger than any route takes is refused with the bound of its own route', async () => {
  const much = 'x'.repeat(300_000);
  for (const [path, bound] of [
    ['/v1/stations/7', 100],
    ['/v1/notes', 10],
  ] as const) {
    const chunked = `${much.length.toString(16)}\r\n${much}\r\n0\r\n\r\n`;
    const answer = await raw(request('POST', path, ['transfer-encoding: chunked'], chunked));
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.ok(answer.includes(`The body of this route has at most ${bound} bytes.`), answer);
    assert.match(answer, /"charged":false/);
  }
});

test('HEAD, OPTIONS, other methods and unknown addresses never reach the API', async () => {
  const headers = { 'x-api-key': key };
  const asked = api.got.length;
  const heads = await Promise.all(
    ['/v1/stations/7', '/v1/health', '/v1/none'].map((path) =>
      fetch(shop.url + path, { method: 'HEAD', headers }),
    ),
  );
  assert.deepEqual(
    heads.map(({ status }) => status),
    [402, 204, 404],
  );
  assert.ok(heads[0]?.headers.has('payment-required') || heads[0]?.headers.has('content-type'));
  const options = await fetch(`${shop.url}/v1/stations/7`, { method: 'OPTIONS', headers });
  assert.equal(options.status, 204);
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    const other = await fetch(`${shop.url}/v1/stations/7`, { method, headers });
    assert.deepEqual(
      [other.status, (await jsonOf(other)).charged, other.headers.get('allow')],
      [405, false, 'GET, POST, HEAD, OPTIONS'],
    );
  }
  for (const path of ['/v2', '/v1', '/v1/', '/v1/stations/7/8', '/weather/v1/health'])
    assert.equal((await fetch(shop.url + path, { headers })).status, 404, path);
  assert.equal(api.got.length, asked);
});

test('a free route is bounded, and leads to nothing that is priced', async () => {
  const free = await fetch(`${shop.url}/v1/rivers/7`, { headers: { 'x-api-key': key } });
  assert.deepEqual([free.status, await free.text()], [200, 'seven hails']);
  assert.equal(free.headers.get('x-credits-used'), null);
  const asked = api.got.length;
  // Spelled otherwise it is the priced one all the same.
  const spelled = await fetch(`${shop.url}/v1/%73tations/7`);
  assert.equal(spelled.status, 402);
  await spelled.text();
  const note = await fetch(`${shop.url}/v1/notes`, { method: 'POST', body: 'x'.repeat(11) });
  assert.deepEqual([note.status, (await jsonOf(note)).code], [413, 'BODY_TOO_LARGE']);
  assert.equal(api.got.length, asked);
  const bounded = await start('"GET /v1/health": { upstream: weather, free: true }', {
    RATE_LIMIT_PER_ADDRESS: '3',
  });
  try {
    const statuses: number[] = [];
    for (let at = 0; at < 5; at++) statuses.push((await fetch(`${bounded.url}/v1/health`)).status);
    assert.deepEqual(statuses, [200, 200, 200, 429, 429]);
    assert.equal(api.got.length, asked + 3);
  } finally {
    await bounded.close();
  }
});

test('the addresses of the shop itself win over patterns that cover them, and the log names those', async () => {
  const wide = await start(`
          "GET /:a": { upstream: weather, price: "0.01" }
          "GET /:a/:b": { upstream: weather, price: "0.01" }
          "GET /:a/:b/:c": { upstream: weather, price: "0.01" }
          "POST /:a/:b": { upstream: weather, price: "0.01" }
          "GET /:a/:b/:c/:d": { upstream: weather, free: true }
  `);
  try {
    const buyer = { 'x-api-key': await wide.key('1') };
    const asked = api.got.length;
    const own = wide.app.http.knownAddresses.all();
    const covered = own.filter(
      ({ path, methods }) => methods.includes('GET') && path.split('/').length <= 5 && path !== '/*',
    );
    assert.ok(
      covered.some(({ path }) => path === '/x402/*'),
      'what is below the door is ours',
    );
    assert.ok(covered.length > 20, 'there are own addresses to be covered');
    for (const { path } of covered) {
      const answer = await fetch(wide.url + path.replaceAll(/:\w+/g, 'x'), {
        headers: buyer,
        redirect: 'manual',
      });
      assert.doesNotMatch(await answer.text(), /seven hails/, path);
      assert.equal(answer.headers.get('x-credits-used'), null, path);
    }
    for (const path of ['/health/live', '/openapi.json', '/llms.txt', '/x402/catalog'].filter((path) =>
      own.some((each) => each.path === path),
    ))
      assert.equal((await fetch(wide.url + path)).status, 200, path);
    // Below these nothing is an upstream's, whether something is there or not.
    for (const path of [
      '/admin',
      '/Admin/x',
      '/admin/x/y',
      '/.well-known/x',
      '/.well-known/acme-challenge/x',
      '/%61dmin/x',
      '/mcp/x',
      '/a2a/x/y/z',
      '/MCP',
    ])
      assert.doesNotMatch(
        await (await fetch(wide.url + path, { headers: buyer })).text(),
        /seven hails/,
        path,
      );
    assert.equal((await fetch(`${wide.url}/.well-known/x`, { method: 'POST', headers: buyer })).status, 404);
    assert.equal(api.got.length, asked, 'nothing of ours reached the API');
    const theirs = await fetch(`${wide.url}/none/of/ours`, { headers: buyer });
    assert.equal(await theirs.text(), 'seven hails');
    const line = wide.log.find((each) => each.includes('GET /:a covers'));
    assert.match(line ?? '', /\/llms\.txt/);
    assert.match(line ?? '', /prefix/);
  } finally {
    await wide.close();
  }
});

test('a route of which the shop itself would take every call is refused at the start', async () => {
  const below = ['POST /x402/mine', 'GET /api/x402/:name', 'GET /x402/mine/:id'];
  for (const route of ['GET /health/live', 'GET /health/live/', 'GET /', 'GET /openapi/mine', ...below])
    await assert.rejects(
      start(`"${route}": { upstream: weather, price: "0.01" }`),
      new RegExp(`${route.replace(/[/:]/g, '\\$&')} is an address of this server itself.*prefix of its own`),
    );
});

test('the books balance', async () => {
  await assertBooksClosed(database.patient);
});
