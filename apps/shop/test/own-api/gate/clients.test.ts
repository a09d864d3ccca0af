/** Unmodified clients of x402 and MPP buy routes of servers behind gates: reads, and what has an effect. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { openTestDatabase, type TestDatabase } from '../../database.fixture.ts';
import { assertBooksClosed } from '../../fire/money.fixture.ts';
import { until } from '../../fire/until.fixture.ts';
import { METHODS, type MppWorld, receiptOf, startMppWorld } from '../../mpp.fixture.ts';
import { openStorefront, type Storefront } from '../../storefront.fixture.ts';
import { paymentHeader, signPayment } from '../../x402.fixture.ts';
import { routesOf } from '../own-api.fixture.ts';
import { configOf, GUESTS, type Guest, type GuestName, SECRETS, startGuest } from './guests.fixture.ts';

const COPIES = 50;

let world: MppWorld;
let database: TestDatabase;
let shop: Storefront;
const guests = new Map<GuestName, Guest>();

before(async () => {
  [world, database] = await Promise.all([startMppWorld(), openTestDatabase()]);
  shop = await openStorefront({
    pools: database,
    environment: { ...world.environment, ...world.made },
    services: [],
    routes: () => routesOf(configOf(), { env: SECRETS }),
  });
  for (const name of GUESTS) guests.set(name, await startGuest(name, shop.url));
});
after(async () => {
  for (const guest of guests.values()) await guest.stop();
  await shop?.stop();
  await Promise.all([world?.stop(), database?.close()]);
});

function guestOf(name: GuestName): Guest {
  const guest = guests.get(name);
  assert.ok(guest);
  return guest;
}

const FORECAST = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: '{"place":"here"}',
};

for (const name of GUESTS)
  test(`@x402/fetch and mppx buy a GET and a POST of ${name}`, async () => {
    const guest = guestOf(name);
    const wallet = await world.base.wallet();
    const mpp = world.client(await world.wallet(), METHODS[0]).fetch;
    const received = { x402: await world.base.received(), mpp: await world.received(METHODS[0]) };
    const x402 = wrapFetchWithPayment(
      fetch,
      new x402Client().register('eip155:*', new ExactEvmScheme(wallet)),
    );
    for (const [pay, isMpp] of [
      [x402, false],
      [mpp, true],
    ] as const) {
      const station = await pay(`${guest.url}/v1/stations/7?unit=c`);
      assert.equal(station.status, 201, shop.log());
      const forecast = await pay(`${guest.url}/v1/forecast`, FORECAST);
      assert.deepEqual([forecast.status, await forecast.json()], [201, { place: 'here', celsius: 12.5 }]);
      if (isMpp) assert.equal(receiptOf(forecast)?.method, METHODS[0]);
      else {
        const receipt = decodePaymentResponseHeader(forecast.headers.get('payment-response') ?? '');
        assert.equal(receipt.success, true);
      }
      const [seen] = guest.seen.slice(-1);
      const money = Object.keys(seen?.headers ?? {}).filter((each) => /payment|authorization/.test(each));
      assert.deepEqual(money, [], 'no payment reaches a handler');
    }
    assert.equal((await world.base.received()) - received.x402, 30_000n);
    assert.equal((await world.received(METHODS[0])) - received.mpp, 30_000n);
  });

test(`${COPIES} copies of one x402 payment at a guest are one answer and one price; another request is refused`, async () => {
  const guest = guestOf('fastify');
  const payer = await world.base.wallet();
  const held = await world.base.balanceOf(payer.address);
  const ask = (headers: Record<string, string>, place = 'order') =>
    fetch(`${guest.url}/v1/forecast`, {
      ...FORECAST,
      headers: { ...FORECAST.headers, ...headers },
      body: JSON.stringify({ place }),
    });
  const challenge = await ask({});
  const signed = await signPayment(payer, { to: world.base.recipient, valueUnits: 20_000n });
  const paid = { 'payment-signature': await paymentHeader(challenge, signed) };
  const handled = guest.seen.length;
  const open = Promise.withResolvers<void>();
  guest.hold = open.promise;
  const copies = Array.from({ length: COPIES }, () => ask(paid));
  await until('the handler to be asked', () => guest.seen.length > handled);
  open.resolve();
  const answers = await Promise.all(copies);
  for (const answer of answers) assert.ok([201, 409, 503].includes(answer.status), String(answer.status));
  assert.ok(answers.some(({ status }) => status === 201));
  const again = await ask(paid);
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [201, 'true']);
  assert.equal((await ask(paid, 'another')).status, 409);
  assert.equal(guest.seen.length, handled + 1);
  assert.equal(held - (await world.base.balanceOf(payer.address)), 20_000n);
});

test('a payment that moved before its guest failed buys the answer when it comes again', async () => {
  const guest = guestOf('hono');
  const payer = await world.base.wallet();
  const held = await world.base.balanceOf(payer.address);
  const ask = (headers: Record<string, string>) =>
    fetch(`${guest.url}/v1/forecast`, { ...FORECAST, headers: { ...FORECAST.headers, ...headers } });
  const signed = await signPayment(payer, { to: world.base.recipient, valueUnits: 20_000n });
  const paid = { 'payment-signature': await paymentHeader(await ask({}), signed) };
  guest.hold = Promise.reject(new Error('its database is away'));
  guest.hold.catch(() => {});
  const failed = await ask(paid);
  const told = (await failed.json()) as { code: string; refund?: { dueAt: string } };
  assert.deepEqual([failed.status, told.code], [502, 'UPSTREAM_FAILED']);
  assert.ok(told.refund?.dueAt, 'what has moved is sent back, unless the payment comes again');
  guest.hold = Promise.resolve();
  const answer = await ask(paid);
  assert.deepEqual([answer.status, await answer.json()], [201, { place: 'here', celsius: 12.5 }]);
  assert.equal(held - (await world.base.balanceOf(payer.address)), 20_000n);
});

test('the books balance', () => assertBooksClosed(database.patient));
