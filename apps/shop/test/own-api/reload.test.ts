/**
 * What is sold changes while it is sold: a real server process is told by SIGHUP, or sees that its file has changed, and puts the new
 * table in force whole or not at all. No request is lost, and what was quoted is honoured.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from '../fire/money.fixture.ts';
import { type ServerProcess, startServerProcess } from '../fire/server-process.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';
import { type OwnApi, startOwnApi } from './own-api.fixture.ts';

const GRANT_MICROS = 10_000_000n;
const ADMIN_TOKEN = 'a-token-of-two-dozen-characters';

let world: PaymentWorld;
let api: OwnApi;
let database: TestDatabase;
let folder: string;
let file: string;
const servers: ServerProcess[] = [];
const held: ServerResponse[] = [];

before(async () => {
  [world, api] = await Promise.all([
    startPaymentWorld(),
    startOwnApi(({ url, headers }, reply) => {
      if (url.startsWith('/v1/held')) return held.push(reply);
      reply.setHeader('content-type', 'application/json');
      reply.end(JSON.stringify({ url, secret: headers['x-secret'] !== undefined }));
    }),
  ]);
});
after(() => Promise.all([world?.stop(), api?.stop()]));
beforeEach(async () => {
  [database, folder] = await Promise.all([openTestDatabase(), mkdtemp(join(tmpdir(), 'reload-'))]);
  file = join(folder, 'farebox.config.yaml');
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.end('SIGKILL')));
  await Promise.all([database.close(), rm(folder, { recursive: true, force: true })]);
});

interface Written {
  price?: string;
  routes?: string;
  upstream?: string;
  services?: string;
}
const config = ({ price = '0.02', routes = '', upstream = '', services = '{}' }: Written = {}) => `
upstreams:
  weather: { url: "${api.url}", prefix: "/" ${upstream} }
routes:
  "GET /v1/stations/:id": { upstream: weather, price: "${price}", summary: "A station at ${price}" }
  ${routes}
services: ${services}
`;
const write = (written: Written = {}) => writeFile(file, config(written));

/** A second file with the same content, as another machine has it. */
async function anotherFile(): Promise<string> {
  const other = join(folder, 'other.config.yaml');
  await writeFile(other, config());
  return other;
}

async function start(environment: Record<string, string> = {}): Promise<ServerProcess> {
  const server = await startServerProcess({
    ...world.environment,
    DATABASE_URL: database.url,
    FAREBOX_CONFIG: file,
    ADMIN_TOKENS: `desk:${ADMIN_TOKEN}`,
    ...environment,
  });
  servers.push(server);
  return server;
}

// biome-ignore lint/suspicious/noExplicitAny: what a server says of itself is read as an operator would
type Json = any;
/** What a server says of itself. Where it is slow to hear of its database it says less, and is asked again. */
async function ready({ url }: ServerProcess): Promise<Json> {
  let said: Json;
  await until('the server to say what it sells', async () => {
    said = await jsonOf(fetch(`${url}/health/ready`));
    return said.sells !== undefined;
  });
  return said;
}
const admin = async ({ url }: ServerProcess, path: string): Promise<Json> =>
  jsonOf(fetch(`${url}/admin/api${path}`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } }));

const served = async (server: ServerProcess) => (await ready(server)).sells.file as string;
const isServed = (server: ServerProcess, version: number) =>
  until(`version ${version} to be in force`, async () => (await served(server)) === String(version));

/** Writes the file, tells the server, and waits until it is in force. */
async function reload(server: ServerProcess, version: number, written: Written): Promise<void> {
  await write(written);
  server.process.kill('SIGHUP');
  await isServed(server, version);
}

/** Tells the server, and waits until it says that it refuses. @returns the reason */
async function refused(server: ServerProcess, text: string): Promise<string> {
  await writeFile(file, text);
  server.process.kill('SIGHUP');
  await until('the file to be refused', async () => (await ready(server)).sells.refused !== null);
  return (await ready(server)).sells.refused.reason;
}

async function newKey(): Promise<string> {
  const nowMs = Date.now;
  const keys = createKeys(database.sql, nowMs);
  const parts = { sql: database.sql, keys, ledger: createLedger(database, nowMs), nowMs };
  return (await grantKey(parts, { amountMicros: GRANT_MICROS, label: 'test', note: 'test' })).apiKey;
}

const STATION = '/v1/stations/7';
const buy = ({ url }: ServerProcess, key: string, path = STATION, name?: string) =>
  fetch(url + path, {
    headers: { 'x-api-key': key, ...(name === undefined ? {} : { 'idempotency-key': name }) },
  });
const priceOf = async ({ url }: ServerProcess, path = STATION) =>
  ((await jsonOf(fetch(url + path))) as Json).accepts.map(({ amount }: Json) => amount)[0] as string;

test('while thousands of requests come, five tables follow one another, and no request fails or pays another price', async () => {
  await write();
  const server = await start();
  const key = await newKey();
  const account = await accountOf(database.sql, key);
  let isOver = false;
  const told: string[] = [];
  const caller = async (path: string) => {
    while (!isOver) {
      const answer = await buy(server, key, path);
      const used = answer.headers.get('x-credits-used');
      told.push(`${answer.status} ${used}`);
      await answer.arrayBuffer();
    }
  };
  const callers = Array.from({ length: 8 }, (_, index) => caller(`/v1/stations/${index}`));
  for (const [version, written] of [
    [2, { price: '0.03' }],
    [3, { price: '0.03', upstream: ', concurrency: 32' }],
    [
      4,
      {
        price: '0.03',
        upstream: ', concurrency: 64',
        routes: '"GET /v1/more": { upstream: weather, price: "0.01" }',
      },
    ],
    [5, { price: '0.03', services: '{ first-call: { price: "0.5" } }' }],
    [6, { price: '0.02' }],
  ] as const) {
    const before = told.length;
    await until('some calls to have ended', () => told.length > before + 50);
    await reload(server, version, written);
  }
  isOver = true;
  await Promise.all(callers);
  // Whoever was told 0.02 a moment ago pays no more.
  assert.deepEqual([...new Set(told)], ['200 0.0200']);
  assert.equal(await balanceOf(database.sql, account), GRANT_MICROS - 20_000n * BigInt(told.length));
  await assertBooksClosed(database.patient);
});

test('a call that began keeps the service that it began with, though its route and its upstream have left', async () => {
  await write({ routes: '"GET /v1/held": { upstream: weather, price: "0.05" }' });
  const server = await start();
  const key = await newKey();
  const running = buy(server, key, '/v1/held');
  await until('the API to be asked', () => held.length === 1);
  await reload(server, 2, { upstream: ', concurrency: 7' });
  assert.equal((await buy(server, key, '/v1/held')).status, 404);
  held.splice(0)[0]?.end('late');
  const answer = await running;
  assert.deepEqual(
    [answer.status, await answer.text(), answer.headers.get('x-credits-used')],
    [200, 'late', '0.0500'],
  );
});

test('every view tells the new table: prices, routes that came, and routes that left', async () => {
  await write({ routes: '"GET /v1/leaves": { upstream: weather, price: "0.01" }' });
  const server = await start();
  const { url } = server;
  const text = async (path: string, headers = {}) => (await fetch(url + path, { headers })).text();
  const mcp = async (method: string, params: object) => {
    const answer = await fetch(`${url}/mcp?toolset=other`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const sent = await answer.text();
    return /^data: (.*)$/m.exec(sent)?.[1] ?? sent;
  };
  const VIEWS: Record<string, () => Promise<string>> = {
    catalog: () => text('/x402/catalog'),
    openapi: () => text('/openapi.json'),
    'llms.txt': () => text('/llms.txt'),
    'llms-full.txt': () => text('/llms-full.txt'),
    'the card of A2A': () => text('/.well-known/agent-card.json'),
    'tools of MCP': () => mcp('tools/list', {}),
    'MCP’s own catalog': () => mcp('tools/call', { name: 'catalog', arguments: {} }),
    'the manifest of x402': () => text('/.well-known/x402.json'),
    'the search of the catalog': () => text('/x402/catalog?q=station'),
    sitemap: () => text('/sitemap.xml'),
    manifest: () => text('/x402/payment-manifest.json'),
  };
  const id = (path: string) => new RegExp(`get[-_]v1[-_]${path}`);
  for (const [view, ask] of Object.entries(VIEWS)) {
    const said = await ask();
    if (view !== 'the search of the catalog') assert.match(said, id('leaves'), view);
    assert.doesNotMatch(said, id('comes'), view);
  }
  const etag = (await fetch(`${url}/x402/catalog`)).headers.get('etag') ?? '';
  await reload(server, 2, {
    price: '0.07',
    routes: '"GET /v1/comes": { upstream: weather, price: "0.01", requestHeaders: [x-unit] }',
    services: '{ first-call: { price: "0.31" }, ping: { available: false }, token-price: { mpp: false } }',
  });
  for (const [view, ask] of Object.entries(VIEWS)) {
    const said = await ask();
    assert.doesNotMatch(said, id('leaves'), view);
    if (view !== 'the search of the catalog') assert.match(said, id('comes'), view);
    if (view !== 'sitemap') assert.match(said, /0\.07|A station at 0\.07/, view);
  }
  assert.equal((await fetch(`${url}/x402/catalog`, { headers: { 'if-none-match': etag } })).status, 200);
  const recipe: Json = await jsonOf(fetch(`${url}/x402/recipes/get-v1-stations-id`));
  assert.equal(recipe.priceUsd, '0.07');
  assert.deepEqual(
    await Promise.all(
      [
        '/x402/recipes/get-v1-leaves',
        '/docs/get-v1-leaves',
        '/v1/leaves',
        '/x402/get-v1-leaves',
        '/x402/ping',
      ].map(async (path) => (await fetch(url + path)).status),
    ),
    [404, 404, 404, 404, 404],
  );
  assert.deepEqual(
    [await priceOf(server), await priceOf(server, '/v1/comes'), await priceOf(server, '/x402/get-v1-comes')],
    ['70000', '10000', '10000'],
  );
  assert.equal(await priceOf(server, '/x402/first-call'), '310000');
  const asked = await fetch(`${url}/v1/comes`, { method: 'OPTIONS' });
  assert.match(asked.headers.get('access-control-allow-headers') ?? '', /x-unit/i);
  const key = await newKey();
  const bought = await fetch(`${url}/x402/get-v1-comes`, {
    method: 'POST',
    headers: { 'x-api-key': key },
    body: '{}',
  });
  assert.equal(bought.status, 200);
  // What came later has an address as whatever was there at the start.
  assert.equal(await priceOf(server, '/x402/get-v1-comes/'), '10000');
  for (const [path, allow] of [
    ['/x402/get-v1-comes', 'GET, HEAD, POST, OPTIONS'],
    ['/x402/get-v1-leaves', null],
  ] as const)
    assert.equal((await fetch(url + path, { method: 'OPTIONS' })).headers.get('allow'), allow, path);
  const misspelt: Json = await jsonOf(fetch(`${url}/X402/Get-V1-Comes`));
  assert.deepEqual(misspelt.knownPaths, ['/x402/get-v1-comes']);
});

test('a bad file changes nothing, and the log, the readiness and the operator are told line and reason', async () => {
  await write();
  const server = await start();
  const wrongs: readonly (readonly [string, RegExp])[] = [
    [config({ price: '0.03' }).replace('"0.03",', '0.03,'), /^farebox\.config\.yaml:5:\d+ .*price/],
    [
      config({ routes: '"GET /v1/stations/:name": { upstream: weather, price: "0.01" }' }),
      /yaml:6:\d+ .*same addresses/,
    ],
    [
      config({ upstream: `, headers: { x-secret: "$${'{WEATHER_TOKEN}'}" }` }).replace('$$', '$'),
      /WEATHER_TOKEN is not set/,
    ],
    [
      config({ routes: '"GET /health/live": { upstream: weather, price: "0.01" }' }),
      /GET \/health\/live is an address of this server/,
    ],
    [config({ services: '{ first-cal: { price: "0.01" } }' }), /did you mean "first-call"/],
    [config({ services: '{ first-call: { price: "0" } }' }), /above zero/],
    ['', /sells nothing|empty|object/i],
    ['upstreams: {', /yaml:1:/],
  ];
  for (const [text, reason] of wrongs) {
    const said = await refused(server, text);
    assert.match(said, reason);
    assert.ok(!said.includes(folder), 'the folder is nobody’s business');
    assert.deepEqual([await served(server), await priceOf(server)], ['1', '20000']);
    await write();
    server.process.kill('SIGHUP');
    await until('the refusal to be over', async () => (await ready(server)).sells.refused === null);
  }
  const reason = await refused(server, 'upstreams: 7');
  const { refused: told } = await admin(server, '/services');
  assert.deepEqual([told.version, told.reason], [null, reason]);
  // Other replicas read it in the database, where it stands a moment after this one refuses.
  await until('the refusal to be noted for other replicas', async () => {
    const { replicas } = await admin(server, '/services');
    return replicas[0].refused?.reason === reason;
  });
  assert.match(server.words(), /a configuration is refused/);
  assert.match(server.words(), /WEATHER_TOKEN is not set/);
  await reload(server, 2, { price: '0.03' });
  assert.equal((await ready(server)).sells.refused, null);
  await rm(file);
  server.process.kill('SIGHUP');
  await until('the file to be missed', async () =>
    /cannot be read/.test((await ready(server)).sells.refused?.reason ?? ''),
  );
  assert.equal(await served(server), '2');
});

test('a price that a 402 named before the exchange is what @x402/fetch pays after it, dearer or cheaper', async () => {
  await write({ price: '0.02' });
  const server = await start();
  const wallet = await world.wallet(1);
  for (const [version, next, paid] of [
    [2, '0.03', 20_000n],
    [3, '0.01', 30_000n],
  ] as const) {
    const received = await world.received();
    const client = new x402Client().register('eip155:8453', new ExactEvmScheme(wallet));
    let asked = 0;
    const pay = wrapFetchWithPayment(async (input, init) => {
      const answer = await fetch(input, init);
      asked += 1;
      if (asked === 1) await reload(server, version, { price: next });
      return answer;
    }, client);
    const answer = await pay(`${server.url}${STATION}`);
    assert.deepEqual([answer.status, asked], [200, 2]);
    assert.equal((await world.received()) - received, paid);
  }
  await assertBooksClosed(database.patient);
});

test('a key pays no more than what a 402 named a moment ago, and the less where the price fell', async () => {
  await write({ price: '0.02' });
  const server = await start();
  const key = await newKey();
  const used = async () => (await buy(server, key)).headers.get('x-credits-used');
  assert.equal(await priceOf(server), '20000');
  await reload(server, 2, { price: '0.03' });
  assert.deepEqual([await priceOf(server), await used()], ['30000', '0.0200']);
  await reload(server, 3, { price: '0.01' });
  assert.deepEqual([await priceOf(server), await used()], ['10000', '0.0100']);
  await reload(server, 4, { price: '0.05' });
  assert.equal(await used(), '0.0100');
  // A new start knows what was named before it.
  await server.end('SIGTERM');
  const again = await start();
  assert.deepEqual(
    [await priceOf(again), (await buy(again, key)).headers.get('x-credits-used')],
    ['50000', '0.0100'],
  );
  await assertBooksClosed(database.patient);
});

test('two replicas serve the newest version that each accepts, and say which one does not', async () => {
  await write({ price: '0.02' });
  const [one, other] = await Promise.all([start({ WEATHER_TOKEN: 'the-secret-of-the-api' }), start()]);
  await Promise.all([isServed(one, 1), isServed(other, 1)]);
  const secret = `, headers: { x-secret: "${['$', '{WEATHER_TOKEN}'].join('')}" }`;
  await reload(one, 2, { price: '0.04', upstream: secret });
  // Both watch one file: the other one refuses it as the file, as version 2, or as both.
  await until('the other one to refuse it', async () => {
    const { refused, newest: seen } = (await ready(other)).sells;
    return refused !== null && seen.file === '2';
  });
  const { refused: why, file: stays, newest } = (await ready(other)).sells;
  assert.deepEqual([stays, newest.file], ['1', '2']);
  assert.match(why.reason, /WEATHER_TOKEN is not set/);
  assert.deepEqual([await priceOf(one), await priceOf(other)], ['40000', '20000']);
  await until('the one to know why', async () =>
    /WEATHER_TOKEN is not set/.test((await ready(one)).sells.behind[0]?.reason ?? ''),
  );
  const { replicas } = await admin(one, '/services');
  assert.deepEqual(replicas.map((each: Json) => [each.file, each.refused !== null]).sort(), [
    ['1', true],
    ['2', false],
  ]);
  const dump = JSON.stringify(await database.sql`select content from stock_versions`);
  assert.ok(!dump.includes('the-secret-of-the-api'), 'no secret is in the database');

  // The one that was told is enough for both, and what the other refused is forgotten.
  await reload(one, 3, { price: '0.06' });
  await isServed(other, 3);
  assert.deepEqual([(await ready(other)).sells.refused, await priceOf(other)], [null, '60000']);
  const { versions } = await admin(other, '/stock/versions');
  assert.deepEqual(
    versions.map(({ version, kind, by }: Json) => [version, kind, /^(SIGHUP|a start) on /.test(by)]),
    [
      ['3', 'file', true],
      ['2', 'file', true],
      ['1', 'file', true],
    ],
  );
  const second = await admin(other, '/stock/versions/2');
  assert.equal(second.content.routes['GET /v1/stations/:id'].price, '0.04');
  assert.match(second.sha256, /^[0-9a-f]{64}$/);
});

test('a route that one replica has begun to sell is sold by the other from the next request on', async () => {
  await write();
  const [one, other] = await Promise.all([start(), start({ FAREBOX_CONFIG: await anotherFile() })]);
  let routes = '';
  for (const [index, method] of ['GET', 'POST', 'PUT', 'GET', 'PATCH', 'GET'].entries()) {
    const path = index < 3 ? '/v1/new' : `/v1/new-${index}`;
    routes += `"${method} ${path}": { upstream: weather, price: "0.01" }\n  `;
    await reload(one, index + 2, { routes });
    const answer = await fetch(other.url + path, { method });
    assert.equal(answer.status, 402, `${method} ${path}: ${await answer.text()}`);
  }
  assert.equal((await fetch(`${other.url}/v1/never`)).status, 404);
  assert.equal((await fetch(`${other.url}/v1/new`, { method: 'DELETE' })).status, 405);
});

test('an address that nobody sells is 404 while the database is gone', async () => {
  await write();
  const server = await start();
  const { close } = database;
  await close.call(database);
  database = await openTestDatabase();
  assert.equal((await fetch(`${server.url}/v1/never`)).status, 404);
});

test('a file that changes is read without a signal, and one that was left behind does not undo a newer version', async () => {
  await write({ price: '0.02' });
  const server = await start();
  await isServed(server, 1);
  await write({ price: '0.03' });
  await isServed(server, 2);
  await server.end('SIGTERM');
  await write({ price: '0.02' });
  // It stands as it did before the newest version was made.
  await utimes(file, 1_000_000, 1_000_000);
  const behind = await start();
  assert.deepEqual([await served(behind), await priceOf(behind)], ['2', '30000']);
  assert.equal((await ready(behind)).sells.refused, null);
  await behind.end('SIGTERM');
  // Whoever writes it anew means it.
  await write({ price: '0.02' });
  const meant = await start();
  assert.deepEqual([await served(meant), await priceOf(meant)], ['3', '20000']);
});

test('a route that was taken out is 404, and what was bought there before is given again, also after a new start', async () => {
  await write({ routes: '"GET /v1/leaves": { upstream: weather, price: "0.05" }' });
  const server = await start();
  const key = await newKey();
  const account = await accountOf(database.sql, key);
  const first = await buy(server, key, '/v1/leaves', 'bought-once');
  const bought = await first.text();
  assert.equal(first.status, 200);
  await reload(server, 2, {});
  const asked = api.got.length;
  const assertGone = async (at: ServerProcess) => {
    const again = await buy(at, key, '/v1/leaves', 'bought-once');
    assert.deepEqual(
      [again.status, await again.text(), again.headers.get('idempotent-replayed')],
      [200, bought, 'true'],
    );
    for (const answer of [
      await fetch(`${at.url}/v1/leaves`),
      await buy(at, key, '/v1/leaves'),
      await buy(at, key, '/v1/leaves', 'bought-never'),
    ]) {
      const said: Json = await answer.json();
      assert.deepEqual([answer.status, said.code, said.charged], [404, 'NOT_SOLD_HERE', false]);
    }
  };
  await assertGone(server);
  await server.end('SIGTERM');
  await assertGone(await start());
  assert.equal(api.got.length, asked, 'the API is asked no more');
  assert.equal(await balanceOf(database.sql, account), GRANT_MICROS - 50_000n);
});
