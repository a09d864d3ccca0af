/** A replica that is killed: whoever sends its call again to another one does not wait for a lease that nobody holds. */
import assert from 'node:assert/strict';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type PaymentWorld, paymentHeader, signPayment, startPaymentWorld } from '../x402.fixture.ts';
import { accountOf, assertBooksClosed, callsOf } from './money.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const TAKEN_OVER_WITHIN_MS = 10_000;
const PRICE_UNITS = 50_000n;

let world: PaymentWorld;
let database: TestDatabase;
/** A language model that answers when the test lets it. */
let model: Server;
let modelUrl: string;
let asked: ServerResponse[] = [];
let holds = true;
const servers: ServerProcess[] = [];

function complete(response: ServerResponse): void {
  response.setHeader('content-type', 'application/json');
  const choices = [{ message: { content: 'Done.' }, finish_reason: 'stop' }];
  response.end(JSON.stringify({ model: 'slow', choices }));
}

before(async () => {
  [world, database] = await Promise.all([startPaymentWorld(), openTestDatabase()]);
  model = createServer((request, response) => {
    request.resume();
    asked.push(response);
    if (!holds) complete(response);
  });
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve));
  const address = model.address();
  assert(address !== null && typeof address === 'object');
  modelUrl = `http://127.0.0.1:${address.port}/v1`;
});
after(async () => {
  for (const server of servers) await server.end('SIGKILL');
  model?.closeAllConnections();
  model?.close();
  await Promise.all([world?.stop(), database?.close()]);
});

async function start(): Promise<ServerProcess> {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    AI_BASE_URL: modelUrl,
    AI_MODEL: 'slow',
    ...world.environment,
  });
  servers.push(server);
  return server;
}

const ask = (url: string, headers: Record<string, string>) =>
  fetch(`${url}/x402/ai-inference`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ prompt: 'Say something.' }),
  });

/**
 * How long whoever asks another replica waits for the answer, from the death of the first.
 *
 * @param pay makes what the caller pays with, once there is a server to ask
 */
async function waitedAfterDeath(pay: (url: string) => Promise<Record<string, string>>): Promise<number> {
  asked = [];
  holds = true;
  const [first, second] = await Promise.all([start(), start()]);
  const headers = await pay(second.url);
  const lost = ask(first.url, headers).catch(() => null);
  await until('the model to be asked', () => asked.length === 1);
  await first.end('SIGKILL');
  const diedAtMs = performance.now();
  assert.equal(await lost, null);
  holds = false;
  // As a client does that is told to send the same again.
  await until('the call to be taken over', async () => {
    const response = await ask(second.url, headers);
    const text = await response.text();
    assert([200, 409, 429, 503].includes(response.status), text);
    return response.status === 200;
  });
  const waitedMs = performance.now() - diedAtMs;
  await second.end('SIGTERM');
  return waitedMs;
}

test('a call for credits', async () => {
  const { sql } = database;
  const nowMs = Date.now;
  const parts = { sql, keys: createKeys(sql, nowMs), ledger: createLedger(database, nowMs), nowMs };
  const grant = { amountMicros: usdToMicros('5'), label: 'test', note: 'test' };
  const { apiKey } = await grantKey(parts, grant);
  const waitedMs = await waitedAfterDeath(async () => ({ 'x-api-key': apiKey, 'idempotency-key': 'order' }));
  assert(waitedMs < TAKEN_OVER_WITHIN_MS, `it was taken over after ${waitedMs} ms`);
  const calls = await callsOf(sql, await accountOf(sql, apiKey));
  assert.equal(calls.filter(({ state }) => state === 1).length, 1);
  await assertBooksClosed(sql);
});

test('a call that a chain pays', async () => {
  const receivedBefore = await world.received();
  const waitedMs = await waitedAfterDeath(async (url) => {
    const challenge = await ask(url, {});
    assert.equal(challenge.status, 402);
    const payment = await signPayment(await world.wallet(), { to: world.recipient, valueUnits: PRICE_UNITS });
    return { 'payment-signature': await paymentHeader(challenge, payment) };
  });
  assert(waitedMs < TAKEN_OVER_WITHIN_MS, `it was taken over after ${waitedMs} ms`);
  assert.equal((await world.received()) - receivedBefore, PRICE_UNITS);
  await assertBooksClosed(database.patient);
});
