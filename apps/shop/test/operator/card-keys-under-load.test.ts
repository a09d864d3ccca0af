/**
 * The card provider's keys are exchanged while cards are charged and calls sold, and so is the secret of a customer's webhook while
 * messages go to it. No purchase fails, and no message is missed or refused.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { Webhook as Verifier } from 'standardwebhooks';
import Stripe from 'stripe';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import {
  type CardProvider,
  startCardProvider,
} from '../../../../packages/sandbox/src/cards/card-provider.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type ServerProcess, startServerProcess } from '../fire/server-process.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { type Receiver, startReceiver } from '../webhooks.fixture.ts';
import { bearerOf, type KeyedService, startKeyedService } from './keyed-service.fixture.ts';
import { assertTakenOnce, boughtOn, filesIn, hangUp, startLoad } from './load.fixture.ts';

/** The key of the double, whose door takes others. */
const PROVIDER_KEY = 'sk_test_of_the_double_itself';
const [FIRST_KEY, OTHER_KEY] = ['sk_test_first_of_the_tests', 'sk_test_other_of_the_tests'];
const [FIRST_SECRET, OTHER_SECRET] = ['whsec_first_of_the_tests', 'whsec_other_of_the_tests'];
const PING_MICROS = 250_000n;
const GRANT_MICROS = 1_000_000_000_000n;
const TIER = { usd: 5, cents: 500 };

let database: TestDatabase;
let provider: CardProvider;
let door: KeyedService;
let gate: Server;
let receiver: Receiver;
let server: ServerProcess;
let folder: string;
let apiKey: string;
/** The secrets that the provider signs its messages with, as it does while two are in force. */
const signedWith = new Set([FIRST_SECRET]);
/** The server's answers to the provider's messages. */
const answered: number[] = [];
const files = filesIn(() => folder);

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'card-keys-'));
  [database, receiver] = await Promise.all([openTestDatabase(), startReceiver()]);
  gate = createServer(async (incoming, outgoing) => {
    const status = await deliver((await buffer(incoming)).toString()).catch(() => 502);
    answered.push(status);
    outgoing.writeHead(status).end();
  });
  gate.listen(0, '127.0.0.1');
  await once(gate, 'listening');
  const { port } = gate.address() as AddressInfo;
  provider = await startCardProvider({
    stateDir: null,
    webhooks: [{ url: `http://127.0.0.1:${port}/hook`, secret: 'whsec_of_the_double_itself' }],
    secretKey: PROVIDER_KEY,
  });
  door = await startKeyedService({
    secretOf: bearerOf,
    behind: ({ url }) => `${provider.url}${url}`,
    headers: ({ headers }) => ({
      authorization: `Bearer ${PROVIDER_KEY}`,
      ...(headers['idempotency-key'] === undefined
        ? {}
        : { 'idempotency-key': String(headers['idempotency-key']) }),
    }),
  });
  door.accepted.add(FIRST_KEY);
  server = await startServerProcess({
    DATABASE_URL: database.url,
    SERVICES: 'ping',
    TRUSTED_PROXIES: 'loopback',
    WEBHOOK_PRIVATE_ADDRESSES: 'true',
    CARD_PROVIDER_URL: door.url,
    LOG_LEVEL: 'info',
    ...files({ CARD_PROVIDER_KEY: FIRST_KEY, CARD_WEBHOOK_SECRET: FIRST_SECRET }),
  });
  const keys = createKeys(database.sql, Date.now);
  const parts = { sql: database.sql, keys, ledger: createLedger(database, Date.now), nowMs: Date.now };
  ({ apiKey } = await grantKey(parts, { amountMicros: GRANT_MICROS, label: 'test', note: 'test' }));
});
after(async () => {
  await server?.end('SIGKILL');
  gate?.closeAllConnections();
  gate?.close();
  await Promise.all([door?.stop(), provider?.stop(), receiver?.stop()]);
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Hands the server a message of the provider's. @returns the status of its answer */
async function deliver(payload: string, secrets: Iterable<string> = signedWith): Promise<number> {
  const signatures = [...secrets].map((secret) =>
    new Stripe('sk_test_x').webhooks.generateTestHeaderString({ payload, secret }),
  );
  // One time, and a signature by each secret.
  const [first = '', ...more] = signatures;
  const signature = [first, ...more.map((each) => each.replace(/^t=\d+,/, ''))].join();
  const reply = await fetch(`${server.url}/api/m2m/credits/webhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'stripe-signature': signature },
    body: payload,
  });
  return reply.status;
}

let addresses = 0;
/** POSTs from a network that was never seen. */
function post(url: string, path: string, body: object, key?: string): Promise<Response> {
  addresses += 1;
  return fetch(`${url}/${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': `10.${(addresses >> 8) & 255}.${addresses & 255}.1`,
      ...(key === undefined ? {} : { 'x-api-key': key }),
    },
    body: JSON.stringify(body),
  });
}

async function newCard(): Promise<string> {
  const method = await fetch(`${provider.url}/v1/payment_methods`, {
    method: 'POST',
    headers: { authorization: `Bearer ${PROVIDER_KEY}` },
    body: new URLSearchParams({ type: 'card', 'card[token]': 'tok_visa' }),
  });
  return String((await jsonOf(method)).id);
}

/** Charges a card for credit of the key that the card bought first, since one card may buy few keys. */
function cardBuyer() {
  let bought: string | undefined;
  return async (url: string): Promise<Response> => {
    const asked = { paymentMethodId: await newCard(), amountUsd: TIER.usd, idempotencyKey: randomUUID() };
    const reply = await post(url, 'api/m2m/credits/purchase', asked, bought);
    if (reply.ok) bought ??= (await jsonOf(reply.clone())).apiKey;
    return reply;
  };
}

/** A customer with a webhook, and all secrets that they were ever given for it. */
async function startCustomer() {
  const ask = async (path: string, body: object) => {
    const reply = await post(server.url, `api/webhooks${path}`, body, apiKey);
    const told = await jsonOf(reply);
    assert(reply.ok, JSON.stringify(told));
    return told;
  };
  const made = await ask('', { url: `${receiver.url}/hook`, events: ['key.new_address'] });
  const secrets: string[] = [made.secret];
  const verifies = (secret: string, { body, headers }: Receiver['arrived'][number]) => {
    try {
      new Verifier(secret).verify(body, headers as Record<string, string>);
      return true;
    } catch {
      return false;
    }
  };
  return {
    async rotate(overlapHours: number): Promise<void> {
      secrets.push((await ask(`/${made.webhookId}/rotate`, { overlapHours })).secret);
    },
    /** Waits for a message from now on that is signed with these secrets and no other, by their numbers. */
    async isToldBy(...wanted: readonly number[]): Promise<void> {
      const known = receiver.arrived.length;
      const isSignedSo = (message: Receiver['arrived'][number]) =>
        secrets.every((secret, index) => verifies(secret, message) === wanted.includes(index));
      const what = `a message signed with ${wanted.join(' and ')}`;
      await until(what, () => receiver.arrived.slice(known).some(isSignedSo));
    },
    /** Asserts that each message was signed with one of the secrets. */
    assertAllVerified(): void {
      const unsigned = receiver.arrived.filter(
        (message) => !secrets.some((secret) => verifies(secret, message)),
      );
      assert.deepEqual(unsigned, []);
    },
  };
}

const unknownEvent = () =>
  JSON.stringify({
    id: `evt_${randomUUID().replaceAll('-', '')}`,
    object: 'event',
    type: 'unknown',
    created: Math.floor(Date.now() / 1_000),
    data: { object: {} },
  });

test('the provider’s key, the secret of its webhook and that of a customer’s are exchanged', async () => {
  const before = await boughtOn(database);
  const customer = await startCustomer();
  const byCredits = (url: string) => post(url, 'x402/ping', {}, apiKey);
  // One card may pay for forty of this tier in a day, which is more than five waits give.
  const load = startLoad(
    server,
    [
      ['credits', byCredits],
      ['cards', cardBuyer()],
    ],
    ['cards'],
  );
  try {
    await Promise.all([load.more(), customer.isToldBy(0)]);

    // Both are in force at the provider, as while it is asked to roll them with some hours of overlap.
    door.accepted.add(OTHER_KEY);
    signedWith.add(OTHER_SECRET);
    files({ CARD_PROVIDER_KEY: OTHER_KEY, CARD_WEBHOOK_SECRET: `${OTHER_SECRET},${FIRST_SECRET}` });
    const both = ['CARD_PROVIDER_KEY', 'CARD_WEBHOOK_SECRET'];
    assert.deepEqual(await hangUp(server), { renewed: both, waiting: [] });
    await load.more();
    assert(door.cameBy.has(OTHER_KEY));

    // The provider ends the first of each.
    door.accepted.delete(FIRST_KEY);
    signedWith.delete(FIRST_SECRET);
    const refusedBefore = door.refused;
    await load.more();
    assert.equal(door.refused, refusedBefore, 'it comes by the other key alone');
    assert.equal(await deliver(unknownEvent(), [FIRST_SECRET]), 200, 'what was signed before is taken');
    files({ CARD_WEBHOOK_SECRET: OTHER_SECRET });
    assert.deepEqual(await hangUp(server), { renewed: ['CARD_WEBHOOK_SECRET'], waiting: [] });
    assert.equal(await deliver(unknownEvent(), [FIRST_SECRET]), 400);
    await load.more();

    // A customer rotates with an hour in which either secret will do, and then at once.
    await customer.rotate(1);
    await customer.isToldBy(0, 1);
    await customer.rotate(0);
    await customer.isToldBy(0, 2);
    await load.more();
  } finally {
    await load.stop();
  }
  customer.assertAllVerified();
  assert.deepEqual([...new Set(answered)], [200], 'no message of the provider was refused');
  const { credits, cards } = load.sold;
  const haveArrived = async () => {
    const [row] = await database.sql<{ waiting: number }[]>`
      select count(*)::integer as waiting from card_events where next_at is not null`;
    return row?.waiting === 0;
  };
  await until('the provider’s messages to be worked', haveArrived);
  const [paid] = await database.sql<{ orders: number; micros: bigint }[]>`
    select count(*)::integer as orders, sum(amount_micros)::bigint as micros from card_orders where state = 1`;
  assert.deepEqual(
    { orders: paid?.orders, micros: BigInt(paid?.micros ?? 0) },
    { orders: cards, micros: BigInt(cards * TIER.cents) * 10_000n },
  );
  await assertTakenOnce(database, before, { calls: credits, micros: BigInt(credits) * PING_MICROS });
});
