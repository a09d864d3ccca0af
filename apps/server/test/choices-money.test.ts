/** What is refused with a list to choose from costs nothing by any means of payment, and its payment buys what is chosen. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from './database.fixture.ts';
import { METHODS, type MppWorld, startMppWorld } from './mpp.fixture.ts';
import { jsonOf, startUpstreams } from './server.fixture.ts';
import { openStorefront, type Storefront } from './storefront.fixture.ts';
import { paymentHeader, signPayment } from './x402.fixture.ts';

type Json = Record<string, unknown>;

/** Bodies that are refused by the schema and by the service, and what is added to be answered. */
const PATH = 'weather-station-data';
const CALLS = {
  'what does not fit': { refused: { radiusKm: 25 }, status: 400, chosen: { stationId: 'KATL' } },
  'what has no answer': {
    ...{ refused: { lat: 34.1, lon: -84.39, radiusKm: 1 }, status: 422 },
    chosen: { radiusKm: 200 },
  },
} as const;

let database: TestDatabase;
let world: MppWorld;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: Storefront;
before(async () => {
  [database, world, upstreams] = await Promise.all([openTestDatabase(), startMppWorld(), startUpstreams()]);
  server = await openStorefront({
    ...{ pools: database, upstreamsUrl: upstreams.url, environment: world.environment },
  });
});
after(async () => {
  await server?.stop();
  await Promise.all([database?.close(), upstreams?.stop(), world?.stop()]);
});

const post = (body: Json, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/x402/${PATH}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

async function assertRefused(response: Response, status: number): Promise<void> {
  const body = await jsonOf(response);
  const { charged, choices } = body as { charged: unknown; choices: Json[] };
  assert.equal(response.status, status, JSON.stringify(body));
  assert.equal(charged, false);
  assert.ok(choices.length > 0);
  assert.equal(response.headers.get('payment-response'), null);
  assert.equal(response.headers.get('payment-receipt'), null);
}

for (const [what, { refused, status, chosen }] of Object.entries(CALLS)) {
  const right = { ...refused, ...chosen };

  test(`${what}, with credits`, async () => {
    const key = await server.key('1');
    const balance = async () =>
      (await jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }))).balanceUsd;
    const headers = { 'x-api-key': key, 'idempotency-key': 'one' };
    const before = await balance();
    await assertRefused(await post(refused, headers), status);
    assert.equal(await balance(), before);
    assert.equal((await post(right, headers)).status, 200, 'the name of the call is free too');
    assert.notEqual(await balance(), before);
  });

  test(`${what}, by x402`, async () => {
    const account = await world.base.wallet(5);
    const unpaid = await post(right);
    const { amount } = JSON.parse(
      Buffer.from(unpaid.headers.get('payment-required') ?? '', 'base64').toString(),
    ).accepts[0];
    const signed = await signPayment(account, { to: world.base.recipient, valueUnits: BigInt(amount) });
    const headers = { 'payment-signature': await paymentHeader(unpaid, signed) };
    const before = await world.base.balanceOf(account.address);
    await assertRefused(await post(refused, headers), status);
    assert.equal(await world.base.balanceOf(account.address), before);
    const bought = await post(right, headers);
    assert.equal(bought.status, 200, await bought.text());
    assert.ok((await world.base.balanceOf(account.address)) < before);
  });

  for (const method of METHODS)
    test(`${what}, by MPP (${method})`, async () => {
      const account = await world.wallet();
      const authorization = await world.credential(account, method, await post(right));
      const before = await world.holds(account.address, method);
      await assertRefused(await post(refused, { authorization }), status);
      assert.equal(await world.holds(account.address, method), before);
      const bought = await post(right, { authorization });
      assert.equal(bought.status, 200, await bought.text());
      assert.ok((await world.holds(account.address, method)) < before);
    });
}
