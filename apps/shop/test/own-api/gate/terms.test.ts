/** Behind a gate hold the terms of every other route: metered prices, free calls, quotas and plans of keys, and wallets of Solana. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { generateKeyPairSigner } from '@solana/kit';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm';
import { createKeys } from '../../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../../packages/core/src/ledger/ledger.ts';
import { openTestDatabase, type TestDatabase } from '../../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from '../../fire/money.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../../x402.fixture.ts';
import { routesOf } from '../own-api.fixture.ts';
import { finishOf, say } from './guest-by-hand.fixture.ts';
import { secretOf } from './guests.fixture.ts';

const GRANT_MICROS = 1_000_000n;
const THREE = '{"results":[1,2,3]}';

let world: PaymentWorld;
let database: TestDatabase;
let shop: TestServer;
let partner: string;
/** The calls that the guest was told to answer. */
let ran = 0;

before(async () => {
  [world, database] = await Promise.all([startPaymentWorld({ solana: true }), openTestDatabase()]);
  const nowMs = Date.now;
  const keys = createKeys(database.sql, nowMs);
  const parts = { sql: database.sql, keys, ledger: createLedger(database, nowMs), nowMs };
  partner = (await grantKey(parts, { amountMicros: GRANT_MICROS, label: 'test', note: 'test' })).apiKey;
  const account = await accountOf(database.sql, partner);
  shop = await startTestServer({
    pools: database,
    environment: world.environment,
    services: [],
    routes: () =>
      routesOf(
        `
        gates: { fastify: { url: "https://fastify.example", secret: "\${SECRET}" } }
        plans: { partner: { accounts: [${account}] } }
        routes:
          "GET /counted":
            gate: fastify
            metered: { items: results, price: "0.001", atMost: "0.10", whenUnmeasured: "0.05" }
          "GET /free": { gate: fastify, price: "0.01", freeCallsPerDay: 1 }
          "GET /day": { gate: fastify, price: "0.01", quota: { perDay: 2 } }
          "GET /planned": { gate: fastify, price: "0.01", plans: { partner: { price: "0.004" } } }
      `,
        { env: { SECRET: secretOf('fastify') } },
      ),
  });
});
after(async () => {
  await shop?.close();
  await Promise.all([world?.stop(), database?.close()]);
});

/** Asks the guest for a route, as a caller's request. The guest answers what is paid for. */
async function ask(path: string, sent: Readonly<Record<string, string>>, answer = '{}'): Promise<Response> {
  const begun = await say(shop.url, 'begin', {
    route: `GET ${path}`,
    method: 'GET',
    url: path,
    headers: Object.entries(sent).flat(),
    body: null,
    address: null,
  });
  if (begun.said.do === 'run') ran += 1;
  const told =
    begun.said.do === 'run' ? await say(shop.url, 'finish', finishOf(begun.said.call, answer)) : begun;
  const { status, headers, body } = told.said;
  return new Response(body === null ? answer : Buffer.from(body, 'base64'), { status, headers });
}

const used = async (path: string, key: string, answer?: string) => {
  const { status, headers } = await ask(path, { 'x-api-key': key }, answer);
  return [status, headers.get('x-credits-used'), headers.get('x-credits-reserved')];
};
const spent = async (key: string) =>
  GRANT_MICROS - (await balanceOf(database.sql, await accountOf(database.sql, key)));

test('a metered route takes what Farebox counts in the guest’s answer, and its most is reserved meanwhile', async () => {
  const key = await shop.key('1');
  assert.deepEqual(await used('/counted', key, THREE), [200, '0.003000', '0.100000']);
  assert.deepEqual(await used('/counted', key, '{"other":1}'), [200, '0.050000', '0.100000']);
  assert.deepEqual((await used('/counted', key, '{"results":[]}')).slice(0, 2), [200, '0.000000']);
  assert.equal(await spent(key), 53_000n);
});

test('a wallet cannot pay for a metered route behind a gate: nothing moves, and the guest is not told to answer', async () => {
  const before = ran;
  const unpaid = await jsonOf(ask('/counted', {}));
  assert.deepEqual(
    unpaid.accepts.map(({ scheme }: { scheme: string }) => scheme),
    ['prepaid'],
  );
  const refused = await ask('/counted', { 'payment-signature': Buffer.from('{}').toString('base64') });
  const { code, last_error_reason: why } = await jsonOf(Promise.resolve(refused));
  assert.deepEqual([refused.status, why?.code ?? code], [402, 'PAYMENT_BY_KEY_ALONE']);
  assert.equal(ran, before);
});

test('free calls, quotas and prices of plans are those of the key that calls the guest', async () => {
  const key = await shop.key('1');
  assert.deepEqual((await used('/free', key)).slice(0, 2), [200, '0.0000']);
  assert.deepEqual((await used('/free', key)).slice(0, 2), [200, '0.0100']);
  const [first, second, third] = [
    await ask('/day', { 'x-api-key': key }),
    await used('/day', key),
    await ask('/day', { 'x-api-key': key }),
  ];
  assert.deepEqual([first.status, second[0], third.status], [200, 200, 429]);
  assert.equal((await jsonOf(Promise.resolve(third))).code, 'DAY_QUOTA_REACHED');
  assert.ok(Number(third.headers.get('retry-after')) > 0);
  assert.equal(await spent(key), 30_000n);
  assert.deepEqual((await used('/planned', key)).slice(0, 2), [200, '0.0100']);
  assert.deepEqual((await used('/planned', partner)).slice(0, 2), [200, '0.0040']);
});

test('@x402/fetch buys a route behind a gate on Solana, and the same payment gets the same answer once more', async () => {
  const rpcUrl = world.solana?.url ?? '';
  const wallet = await generateKeyPairSigner();
  const params = [wallet.address, { usdcUnits: 1_000_000 }];
  const funded = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'sandbox_fund', params });
  await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body: funded });
  let last: Record<string, string> = {};
  const atGuest: typeof fetch = (input, init) => {
    last = Object.fromEntries(new Request(input, init).headers);
    return ask('/planned', last, THREE);
  };
  const client = new x402Client().register('solana:*', new ExactSvmScheme(wallet, { rpcUrl }));
  const answer = await wrapFetchWithPayment(atGuest, client)('https://fastify.example/planned');
  assert.deepEqual([answer.status, await answer.text()], [200, THREE], shop.log.slice(-3).join('\n'));
  assert.equal(decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '').success, true);
  const before = ran;
  const again = await ask('/planned', last);
  assert.deepEqual([again.status, await again.text(), ran], [200, THREE, before]);
});

test('what is sold at a gate stands in no document of this server, and at none of its addresses', async () => {
  for (const path of ['/x402/catalog', '/openapi.json', '/llms.txt', '/.well-known/agent-card.json']) {
    const text = await (await fetch(shop.url + path)).text();
    assert.doesNotMatch(text, /planned|get-counted/, path);
  }
  const list = await fetch(`${shop.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  });
  assert.doesNotMatch(await list.text(), /planned/);
  for (const path of ['/planned', '/x402/get-planned', '/x402/recipes/get-planned'])
    assert.equal((await fetch(shop.url + path)).status, 404, path);
});

test('the books balance', () => assertBooksClosed(database.patient));
