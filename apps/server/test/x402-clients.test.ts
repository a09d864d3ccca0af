import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client, x402HTTPClient } from '@x402/fetch';
import { openTestDatabase, type TestDatabase } from './database.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from './server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from './x402.fixture.ts';

let world: PaymentWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;

before(async () => {
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld(),
    openTestDatabase(),
    startUpstreams(),
  ]);
  server = await startTestServer({
    pools: database,
    environment: world.environment,
    upstreamsUrl: upstreams.url,
  });
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
});

test('@x402/fetch buys a call', async () => {
  const account = await world.wallet();
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account));
  const pay = wrapFetchWithPayment(fetch, client);
  const before = await world.received();
  const answer = await pay(`${server.url}/x402/first-call`, {
    method: 'POST',
    body: '{}',
    headers: { 'content-type': 'application/json' },
  });
  const body = await jsonOf(answer);
  assert.equal(answer.status, 200, JSON.stringify(body) + server.log.slice(-5).join('\n'));
  assert.equal((await world.received()) - before, 50_000n);
  console.log(body, [...answer.headers]);
  const receipt = new x402HTTPClient(client).getPaymentSettleResponse((name) => answer.headers.get(name));
  console.log(receipt);
});
