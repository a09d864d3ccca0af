/** Published servers, written by others for other ends, sold by configuration alone: a file server with ranges, and GraphQL. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, assertCost } from '../fire/money.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { routesOf } from './own-api.fixture.ts';

const require = createRequire(import.meta.url);
/** It has no types of its own. */
const files: { createServer(options: { root: string; cache: number }): { server: Server } } =
  require('http-server');
/** Its types are those of browsers, which would then hold for all tests. */
const graph: { createSchema(of: object): object; createYoga(of: object): RequestListener } =
  require('graphql-yoga');

const TEXT = 'Seven hails of a long summer';

let database: TestDatabase;
let folder: string;
const servers: Server[] = [];
let shop: TestServer;
let key: string;
let account: bigint;

async function listening(server: Server): Promise<string> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

before(async () => {
  [database, folder] = await Promise.all([openTestDatabase(), mkdtemp(join(tmpdir(), 'files-'))]);
  await mkdir(join(folder, 'whole'));
  for (const path of ['poem.txt', 'whole/poem.txt']) await writeFile(join(folder, path), TEXT);
  const yoga = graph.createYoga({
    logging: false,
    schema: graph.createSchema({
      typeDefs: 'type Query { station(id: ID!): String, broken: String }',
      resolvers: {
        Query: {
          station: (_: unknown, { id }: { id: string }) => `station ${id}`,
          broken: () => {
            throw new Error('it is broken');
          },
        },
      },
    }),
  });
  const filesUrl = await listening(files.createServer({ root: folder, cache: 3_600 }).server);
  const graphUrl = await listening(createServer(yoga));
  shop = await startTestServer({
    pools: database,
    services: [],
    routes: () =>
      routesOf(`
        upstreams:
          files: { url: "${filesUrl}" }
          graph: { url: "${graphUrl}" }
        routes:
          "GET /files/:name":
            upstream: files
            price: "0.01"
            requestHeaders: [range, if-range, if-modified-since]
          "GET /files/whole/:name": { upstream: files, price: "0.01" }
          "POST /graph/graphql":
            upstream: graph
            price: "0.02"
            effect: read
            success:
              contentType: [application/json, application/graphql-response+json]
              has: [data]
              hasNot: [errors]
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
  await Promise.all([database?.close(), rm(folder, { recursive: true, force: true })]);
});

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(shop.url + path, { headers: { 'x-api-key': key, ...headers } });

const costing = (micros: bigint, asking: () => Promise<Response>) =>
  assertCost({ sql: database.sql, account }, micros, asking);

test('http-server sells whole files, and parts of them where the route names range', async () => {
  const whole = await costing(10_000n, () => get('/files/poem.txt'));
  assert.deepEqual([whole.status, await whole.text()], [200, TEXT]);
  assert.match(whole.headers.get('content-type') ?? '', /^text\/plain/);
  assert.match(whole.headers.get('cache-control') ?? '', /no-store/, 'a bought answer is for nobody else');
  const part = await costing(10_000n, () => get('/files/poem.txt', { range: 'bytes=0-4' }));
  assert.deepEqual([part.status, await part.text()], [206, 'Seven']);
  assert.equal(part.headers.get('content-range'), `bytes 0-4/${TEXT.length}`);
  const unasked = await costing(10_000n, () => get('/files/whole/poem.txt', { range: 'bytes=0-4' }));
  assert.deepEqual(
    [unasked.status, await unasked.text()],
    [200, TEXT],
    'a range that is not named is not sent',
  );
});

test('what http-server does not have, or does not send, costs nothing', async () => {
  const missing = await costing(0n, () => get('/files/none.txt'));
  assert.deepEqual([missing.status, (await jsonOf(missing)).code], [404, 'UPSTREAM_REFUSED']);
  const beyond = await costing(0n, () => get('/files/poem.txt', { range: 'bytes=900-' }));
  assert.deepEqual([beyond.status, (await jsonOf(beyond)).charged], [416, false]);
  const since = { 'if-modified-since': new Date(Date.now() + 60_000).toUTCString() };
  const unchanged = await costing(0n, () => get('/files/poem.txt', since));
  assert.deepEqual(
    [unchanged.status, (await jsonOf(unchanged)).code],
    [502, 'UPSTREAM_FAILED'],
    'nothing came',
  );
  const unnamed = await costing(10_000n, () => get('/files/whole/poem.txt', since));
  assert.deepEqual([unnamed.status, await unnamed.text()], [200, TEXT]);
  const outside = await costing(0n, () => get('/files/..%2fpoem.txt'));
  assert.equal(outside.status, 400);
});

const query = (text: string, accept = 'application/json') =>
  fetch(`${shop.url}/graph/graphql`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json', accept },
    body: JSON.stringify({ query: text }),
  });

test('graphql-yoga sells what it answers; errors, which it sends as 200, cost nothing', async () => {
  const station = await costing(20_000n, () => query('{ station(id: "7") }'));
  assert.deepEqual([station.status, await station.json()], [200, { data: { station: 'station 7' } }]);
  const newer = await costing(20_000n, () =>
    query('{ station(id: "7") }', 'application/graphql-response+json'),
  );
  assert.match(newer.headers.get('content-type') ?? '', /^application\/graphql-response\+json/);
  for (const wrong of ['{ broken }', '{ station(id: "7") broken }', '{ none }', '{ station }', 'no query']) {
    const failed = await costing(0n, () => query(wrong));
    const told = await jsonOf(failed);
    assert.deepEqual([failed.status, told.code, told.charged], [502, 'UPSTREAM_FAILED', false], wrong);
  }
  const partly = await jsonOf(query('{ station(id: "7") broken }'));
  assert.match(JSON.stringify(partly.upstream.said), /Unexpected error/, 'its caller reads what is wrong');
});

test('the books balance', async () => {
  await assertBooksClosed(database.patient);
});
