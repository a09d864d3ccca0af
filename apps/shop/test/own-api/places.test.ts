/** The places of a seller's API are shared by payer: neither free callers nor one payer's many keys keep all others waiting. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type OwnApi, routesOf, startOwnApi } from './own-api.fixture.ts';

const services = (await loadServices()).filter(({ path }) => path === 'instant-api-key');
let database: TestDatabase;
let api: OwnApi;
let shop: TestServer;
/** Slow answers wait for this. */
let opened = Promise.resolve();

before(async () => {
  [database, api] = await Promise.all([
    openTestDatabase(),
    startOwnApi(async ({ url }, reply) => {
      if (url.endsWith('/slow')) await opened;
      reply.end('done');
    }),
  ]);
  shop = await startTestServer({
    pools: database,
    services,
    routes: () =>
      routesOf(`
        upstreams:
          api: { url: "${api.url}", prefix: "/", concurrency: 4 }
        routes:
          "GET /free/:pace": { upstream: api, free: true }
          "GET /paid/:pace": { upstream: api, price: "0.01" }
      `),
  });
});
after(async () => {
  await shop?.close();
  await Promise.all([database?.close(), api?.stop()]);
});

const get = (path: string, key?: string) =>
  fetch(shop.url + path, { headers: key === undefined ? {} : { 'x-api-key': key } });

/** Has so many slow calls asked for at once, of which three reach the API, while another payer's call is answered. */
async function holdsThree(slow: readonly (() => Promise<Response>)[]): Promise<void> {
  const gate = Promise.withResolvers<void>();
  opened = gate.promise;
  const asked = api.got.length;
  try {
    const calls = slow.map((call) => call());
    await until('three to be with the API', () => api.got.length - asked === 3);
    assert.equal((await get('/paid/fast', await shop.key('1'))).status, 200);
    assert.equal(api.got.length - asked, 4);
    gate.resolve();
    for (const { status } of await Promise.all(calls)) assert.equal(status, 200);
  } finally {
    gate.resolve();
  }
}

test('callers of free routes, however many they are, leave a place to who pays', async () => {
  await holdsThree(Array.from({ length: 6 }, () => () => get('/free/slow')));
});

test('a payer with several keys leaves a place to another', async () => {
  const key = await shop.key('3');
  const next = (await jsonOf(shop.call('instant-api-key', key, { name: 'next' }))).apiKey;
  await holdsThree(
    Array.from({ length: 6 }, (_, index) => () => get('/paid/slow', index % 2 === 0 ? key : next)),
  );
});
