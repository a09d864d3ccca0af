/**
 * Real processes, ended between what the card provider has done and what the database knows of it. The provider does its
 * work and says nothing; the process that waits for the answer is killed; the next one must find out by itself.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import Stripe from 'stripe';
import {
  type CardProvider,
  startCardProvider,
} from '../../../../packages/sandbox/src/cards/card-provider.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const SECRET_KEY = 'sk_test_of_the_card_kill';
const FORM = { email: 'payer@example.com', number: '4242424242424242', expiry: '12/34', cvc: '123' };
const CHECKOUT = '/api/m2m/credits/checkout';

let database: TestDatabase;
let provider: CardProvider;
let server: ServerProcess;
before(async () => {
  database = await openTestDatabase();
  // No messages: what nobody is told of has to be looked for.
  provider = await startCardProvider({ stateDir: null, webhooks: [], secretKey: SECRET_KEY });
});
beforeEach(async () => {
  server = await start();
});
afterEach(async () => {
  await server.end('SIGKILL');
  const { totals } = await control('GET', '');
  const books = await proveBooks(database.patient);
  for (const { name, finding } of books.checks) assert.equal(finding, null, name);
  assert.equal(books.cards.paidMicros - books.cards.reversedMicros, BigInt(totals.netCents) * 10_000n);
});
after(async () => {
  await provider.stop();
  await database.close();
});

const start = () =>
  startServerProcess({
    DATABASE_URL: database.url,
    CARD_PROVIDER_URL: provider.url,
    CARD_PROVIDER_KEY: SECRET_KEY,
    CARD_WEBHOOK_SECRET: 'whsec_of_the_card_kill',
  });

async function control(method: 'GET' | 'POST' | 'DELETE', path: string, body: object = {}) {
  const reply = await fetch(`${provider.url}/__control${path}`, {
    method,
    ...(method === 'POST' && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  assert(reply.ok, `${path}: ${reply.status}`);
  return jsonOf(reply);
}

const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

/**
 * Kills the process that waits for an answer of the card provider, which did what it was asked or did not, and starts
 * another in its place.
 */
async function killedWhile(
  method: string,
  path: string,
  act: () => Promise<unknown>,
  fault: 'never-after' | 'never-before' = 'never-after',
): Promise<void> {
  await control('DELETE', '/requests');
  await control('POST', '/faults', { on: 'api', fault, method, path });
  const asked = act().catch(() => null);
  await until(`${method} ${path} to be done`, async () => {
    const { requests } = await control('GET', '/requests');
    return requests.some(
      (one: { path: string; status: number | null }) => one.path.startsWith(path) && one.status === null,
    );
  });
  await server.end('SIGKILL');
  await asked;
  await control('DELETE', '/faults');
  server = await start();
}

/** Lets all the time pass that somebody who died would have had, and that their order had. */
async function passTime(): Promise<void> {
  await database.sql`
    update card_orders set looked_at = null, next_at = now() - interval '1 second',
      charge_asked_at = charge_asked_at - interval '1 hour',
      created_at = case when session_id is null and kind = 'checkout' then now() - interval '1 hour' else created_at end
    where state = 0`;
}

async function orders() {
  const rows = await database.sql<{ kind: string; state: number; failure: string | null }[]>`
    select kind, state, failure from card_orders order by created_at desc`;
  return rows.map(({ kind, state, failure }) => ({ kind, state, failure }));
}

/** The provider's own library, for what the house does not tell. */
function library(): Stripe {
  const { hostname: host, port } = new URL(provider.url);
  return new Stripe(SECRET_KEY, { host, port, protocol: 'http', telemetry: false });
}

async function charges(): Promise<number> {
  const { data } = await library().charges.list({ limit: 100 });
  return data.filter(({ paid }) => paid).length;
}

async function open(body: object) {
  const opened = await jsonOf(post(`${CHECKOUT}/session`, body));
  const path = `${CHECKOUT}/status/${opened.sessionId}?token=${opened.retrievalToken}`;
  const pay = () =>
    fetch(opened.checkoutUrl, { method: 'POST', body: new URLSearchParams(FORM), redirect: 'manual' });
  return { ask: () => jsonOf(fetch(server.url + path)), pay };
}

async function keyOf(checkout: Awaited<ReturnType<typeof open>>): Promise<string> {
  let answer: { apiKey?: string } = {};
  await until('the key', async () => {
    answer = await checkout.ask();
    return answer.apiKey !== undefined;
  });
  return answer.apiKey ?? '';
}

const me = (key: string) => jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }));

test('while a page is opened: nobody was told of it, nobody can pay there, and the order ends', async () => {
  await killedWhile('POST', '/v1/checkout/sessions', () => open({ amountUsd: 5 }));
  await passTime();
  await until('the order to end', async () => (await orders())[0]?.state === 2);
  assert.deepEqual((await orders())[0], { kind: 'checkout', state: 2, failure: 'not_opened' });
});

test('between a person’s payment and its credit: the next process grants it, once', async () => {
  const before = await charges();
  const checkout = await open({ amountUsd: 10 });
  await checkout.pay();
  await killedWhile('GET', '/v1/checkout/sessions', checkout.ask);
  await passTime();
  const key = await keyOf(checkout);
  assert.equal((await me(key)).balanceUsd, '10.000000');
  assert.equal((await charges()) - before, 1);
});

test('between the charge of a purchase and its credit: the same request again is the same purchase', async () => {
  const before = await charges();
  const card = { token: 'tok_visa' };
  const { id: paymentMethodId } = await library().paymentMethods.create({ type: 'card', card });
  const body = { paymentMethodId, amountUsd: 25, idempotencyKey: randomUUID() };
  const buy = () => post('/api/m2m/credits/purchase', body);
  await killedWhile('POST', '/v1/payment_intents', buy);
  await passTime();
  const bought = await buy();
  const answer = await jsonOf(bought);
  assert.equal(bought.status, 200, JSON.stringify(answer));
  assert.equal((await me(answer.apiKey)).balanceUsd, '25.000000');
  assert.equal((await charges()) - before, 1);
});

test('between the charge of a kept card and its credit: it is found, and not charged again', async () => {
  const before = await charges();
  const checkout = await open({
    amountUsd: 5,
    autoRecharge: { enabled: true, thresholdUsd: 5, topUpUsd: 5 },
  });
  await checkout.pay();
  const key = await keyOf(checkout);
  await killedWhile('POST', '/v1/payment_intents', async () => {
    const spent = await post('/x402/ping', {}, { 'x-api-key': key });
    assert.equal(spent.status, 200);
  });
  await passTime();
  await until('the refill to be credited', async () => (await me(key)).balanceUsd === '9.750000');
  assert.equal((await charges()) - before, 2);
  const { state, enabled } = (await me(key)).autoRecharge;
  assert.deepEqual([state, enabled], ['idle', true]);
});

test('between the attempt on a kept card and its charge, and switched off meanwhile: the next process charges nothing', async () => {
  const checkout = await open({
    amountUsd: 5,
    autoRecharge: { enabled: true, thresholdUsd: 5, topUpUsd: 5 },
  });
  await checkout.pay();
  const key = await keyOf(checkout);
  const before = await charges();
  const spend = async () => {
    const spent = await post('/x402/ping', {}, { 'x-api-key': key });
    assert.equal(spent.status, 200);
  };
  await killedWhile('POST', '/v1/payment_intents', spend, 'never-before');
  const off = await fetch(`${server.url}/api/keys/me`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify({ autoRecharge: { enabled: false } }),
  });
  assert.match((await jsonOf(off)).autoRecharge.chargeUnderWay.note, /may still come/);
  await passTime();
  await until('the order to end', async () => (await orders())[0]?.state === 2);
  assert.deepEqual((await orders())[0], { kind: 'recharge', state: 2, failure: 'withdrawn' });
  assert.equal(await charges(), before);
});
