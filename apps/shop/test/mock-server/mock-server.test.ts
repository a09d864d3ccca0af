/** Prism, a published server that answers by an OpenAPI document and fails on demand: that document is imported, and sold. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { importOpenApi } from '../../../../packages/proxy/src/config/import-openapi.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, assertCost } from '../fire/money.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { installApart } from '../kept-apart.fixture.ts';
import { routesOf } from '../own-api/own-api.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const modules = installApart(import.meta.dirname, 'Prism');
const skip = modules === null && 'NOT TESTED: the package registry cannot be reached to install Prism';
if (typeof skip === 'string') process.stderr.write(`\n*** ${skip} ***\n\n`);

const START_MS = 120_000;
const PRICE_MICROS = 20_000n;

/** Prism answers with the status that the header asks for. */
const PREFER = { name: 'Prefer', in: 'header', schema: { type: 'string' } };
const FAILURES = ['401', '402', '404', '422', '429', '500', '503'];
const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Weather', version: '1.0.0' },
  paths: {
    '/v1/forecasts': {
      post: {
        summary: 'The forecast of a place',
        parameters: [PREFER],
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: {
                type: 'object',
                required: ['lat', 'lon'],
                properties: { lat: { type: 'number' }, lon: { type: 'number' } },
              },
            },
          },
        },
        responses: {
          '200': {
            description: 'The forecast',
            content: { 'application/json': { example: { celsius: 12, sky: 'clear' } } },
          },
          ...Object.fromEntries(
            FAILURES.map((status) => [
              status,
              { description: 'No forecast', content: { 'application/json': { example: { status } } } },
            ]),
          ),
        },
      },
    },
    '/v1/stations/{id}': {
      get: {
        summary: 'One station',
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }],
        responses: {
          '200': {
            description: 'The station',
            content: { 'application/json': { example: { id: 7, name: 'Seven' } } },
          },
        },
      },
    },
  },
};

const folder = mkdtempSync(join(tmpdir(), 'farebox-prism-'));
let prism: ChildProcess | null = null;
let said = '';
let database: TestDatabase;
let shop: TestServer;
let key: string;
let account: bigint;

before(async () => {
  if (modules === null) return;
  const file = join(folder, 'openapi.json');
  writeFileSync(file, JSON.stringify(DOCUMENT));
  const port = await freePort();
  const program = join(modules, '@stoplight/prism-cli/dist/index.js');
  const child = spawn(
    process.execPath,
    [program, 'mock', '--host', '127.0.0.1', '--port', String(port), file],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  prism = child;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (words: string) => {
      said += words;
    });
  const url = `http://127.0.0.1:${port}`;
  await until(
    'Prism listens',
    () => {
      assert.equal(child.exitCode, null, said);
      return said.includes('is listening');
    },
    START_MS,
  );
  // It loads most of what it needs with its first request, which takes longer than a buyer waits.
  await (await fetch(`${url}/v1/stations/1`)).text();
  const imported = importOpenApi(JSON.stringify(DOCUMENT), {
    priceUsd: '0.02',
    url,
    upstream: 'weather',
    schema: null,
  });
  assert.deepEqual([imported.routes, imported.leftOut], [2, []]);
  database = await openTestDatabase();
  shop = await startTestServer({ pools: database, services: [], routes: () => routesOf(imported.text) });
  key = await shop.key('1');
  account = await accountOf(database.sql, key);
});
after(async () => {
  await shop?.close();
  await database?.close();
  if (prism !== null && prism.exitCode === null) {
    prism.kill();
    await once(prism, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
});

function forecast(body: object, prefer?: string): Promise<Response> {
  return fetch(`${shop.url}/v1/forecasts`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': key,
      ...(prefer === undefined ? {} : { prefer }),
    },
    body: JSON.stringify(body),
  });
}

const costing = (micros: bigint, asking: () => Promise<Response>) =>
  assertCost({ sql: database.sql, account }, micros, asking);

const OSLO = { lat: 59.9, lon: 10.7 };

test('what its document promises is sold as it answers', { skip }, async () => {
  const bought = await costing(PRICE_MICROS, () => forecast(OSLO));
  assert.deepEqual([bought.status, await bought.json()], [200, { celsius: 12, sky: 'clear' }]);
  const station = await costing(PRICE_MICROS, () =>
    fetch(`${shop.url}/v1/stations/7`, { headers: { 'x-api-key': key } }),
  );
  assert.deepEqual([station.status, await station.json()], [200, { id: 7, name: 'Seven' }]);
});

test('what it fails with on demand costs nothing, and the next call is answered', { skip }, async () => {
  const told: Record<string, unknown> = {};
  for (const status of FAILURES) {
    const failed = await costing(0n, () => forecast(OSLO, `code=${status}`));
    told[status] = [failed.status, (await jsonOf(failed)).code];
    // One that is asked too much is left alone for a moment, as it wants.
    if (status !== '429')
      assert.equal((await costing(PRICE_MICROS, () => forecast(OSLO))).status, 200, status);
    else await until('it is asked again', async () => (await forecast(OSLO)).status === 200);
  }
  assert.deepEqual(told, {
    401: [502, 'UPSTREAM_FAILED'],
    402: [502, 'UPSTREAM_FAILED'],
    404: [404, 'UPSTREAM_REFUSED'],
    422: [422, 'UPSTREAM_REFUSED'],
    429: [503, 'UPSTREAM_UNAVAILABLE'],
    500: [502, 'UPSTREAM_FAILED'],
    503: [502, 'UPSTREAM_FAILED'],
  });
});

test('what it does not take costs nothing', { skip }, async () => {
  for (const body of [{}, { lat: 'north', lon: 1 }]) {
    const refused = await costing(0n, () => forecast(body));
    assert.ok(refused.status >= 400 && refused.status < 500, `status ${refused.status}`);
  }
  const unnamed = await costing(0n, () =>
    fetch(`${shop.url}/v1/stations`, { headers: { 'x-api-key': key } }),
  );
  assert.equal(unnamed.status, 404);
});

test('the books balance', { skip }, () => assertBooksClosed(database.patient));
