import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { evm, Mppx } from 'mppx/client';
import { openTestDatabase, type TestDatabase } from './database.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from './server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from './x402.fixture.ts';

let world: PaymentWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;

before(async () => {
  [world, database, upstreams] = await Promise.all([startPaymentWorld(), openTestDatabase(), startUpstreams()]);
  server = await startTestServer({
    pools: database,
    environment: { ...world.environment, MPP_METHODS: 'evm', MPP_SECRET_KEY: 'a-secret-of-32-characters-for-tests' },
    upstreamsUrl: upstreams.url,
  });
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
});

test('the mppx client pays by evm', async () => {
  const account = await world.wallet();
  const client = Mppx.create({
    polyfill: false,
    methods: [evm.charge({ account, authorization: { name: 'USD Coin', version: '2' } })],
  });
  const before = await world.received();
  const unpaid = await fetch(`${server.url}/mpp/ping`, { method: 'POST' });
  console.log(unpaid.status, [...unpaid.headers], await unpaid.text());
  const answer = await client.fetch(`${server.url}/mpp/ping`, { method: 'POST', body: '{"message":"hi"}', headers: { 'content-type': 'application/json' } });
  const body = await jsonOf(answer);
  assert.equal(answer.status, 200, JSON.stringify(body) + server.log.slice(-3).join('\n'));
  assert.equal((await world.received()) - before, 250_000n);
  console.log(body, [...answer.headers]);
});
