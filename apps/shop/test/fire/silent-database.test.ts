/**
 * The database goes silent: its packets are dropped, or its process is frozen. Nobody is told anything and no connection
 * breaks; in the better case a new connection works. Whoever has paid is told the truth in time all the same, and whoever
 * watches the server hears of it.
 */
import assert from 'node:assert/strict';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf, openCalls, refundsOf } from './money.fixture.ts';
import { startWire, type Wire } from './proxy.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const TOLD_WITHIN_MS = 5_000;
const READINESS_WITHIN_MS = 1_000;
const ENDS_WITHIN_MS = 10_000;
/** The time for giving back: what was on its way when the database fell silent is tried again when its lease is over, in half a minute. */
const GIVEN_BACK_WITHIN_MS = 60_000;
/** The time that this process itself may lose on a busy machine. */
const GRACE_MS = 1_000;
const GRANT = usdToMicros('20');
const PRICE = usdToMicros('0.05');
const MODEL_CALL = { path: 'ai-inference', body: { prompt: 'Say something.' } };
/** No more than the source's budget lets through at once. */
const INSIDE = 6;
const LATER = 20;
const QUICK_CALL = { path: 'first-call', body: {} };

let database: TestDatabase;
let wire: Wire;
/** A language model that answers when the test lets it. */
let model: Server;
let modelUrl: string;
let asked: ServerResponse[] = [];
let server: ServerProcess;
/** Everything that a caller was told in this test. */
let told: Told[] = [];

function complete(response: ServerResponse): void {
  response.setHeader('content-type', 'application/json');
  response.end(
    JSON.stringify({ model: 'slow', choices: [{ message: { content: 'Done.' }, finish_reason: 'stop' }] }),
  );
}

before(async () => {
  database = await openTestDatabase();
  wire = await startWire(database.url);
  model = createServer((request, response) => {
    request.resume();
    asked.push(response);
  });
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve));
  const address = model.address();
  assert(address !== null && typeof address === 'object');
  modelUrl = `http://127.0.0.1:${address.port}/v1`;
});
beforeEach(async () => {
  server = await startServerProcess({
    DATABASE_URL: wire.url,
    AI_BASE_URL: modelUrl,
    AI_MODEL: 'slow',
    RECONCILE_INTERVAL_MS: '100',
    LOG_LEVEL: 'warn',
    MAX_CONCURRENT_CALLS_PER_KEY: '100',
  });
});
afterEach(async () => {
  wire.thaw();
  await server.end('SIGKILL');
  asked = [];
  told = [];
});
after(async () => {
  model?.closeAllConnections();
  model?.close();
  await wire?.close();
  await database?.close();
});

async function newKey(): Promise<string> {
  const nowMs = Date.now;
  const { sql } = database;
  const parts = { sql, keys: createKeys(sql, nowMs), ledger: createLedger(database, nowMs), nowMs };
  return (await grantKey(parts, { amountMicros: GRANT, label: 'test', note: 'test' })).apiKey;
}

interface Told {
  order: string | null;
  status: number;
  charged: unknown;
  code: string | undefined;
  callId: string | null;
  atMs: number;
}

async function buy(key: string, what: { path: string; body: object }, order: string | null): Promise<Told> {
  const response = await fetch(`${server.url}/x402/${what.path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': key,
      ...(order === null ? {} : { 'idempotency-key': order }),
    },
    body: JSON.stringify(what.body),
  });
  const { charged, code }: { charged?: unknown; code?: string } = JSON.parse(await response.text());
  const one: Told = {
    order,
    status: response.status,
    charged,
    code,
    callId: response.headers.get('x-call-id'),
    atMs: performance.now(),
  };
  told.push(one);
  return one;
}

/** Asks until somebody answers or the time is over. */
async function readiness(): Promise<{ status: number; ms: number }> {
  const startedAtMs = performance.now();
  const { status } = await fetch(`${server.url}/health/ready`);
  return { status, ms: performance.now() - startedAtMs };
}

/** The number of calls that the server still has to give back, what it could not write into the database yet included. */
async function undelivered(): Promise<number> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const [, count] = /^farebox_undelivered_calls (\d+)$/m.exec(metrics) ?? [];
  return Number(count);
}

const SILENCES = [
  { silence: 'the connections that are open', everybody: undefined },
  { silence: 'every connection', everybody: 'new ones too' },
] as const;

for (const { silence, everybody } of SILENCES) {
  test(`${silence}: every caller is told the truth in time, and all is well when it speaks again`, async () => {
    const key = await newKey();
    assert.equal((await buy(key, QUICK_CALL, null)).status, 200);

    // Some are inside of the service when it falls silent, the others come afterwards.
    const inside = Array.from({ length: INSIDE }, (_, i) =>
      buy(key, MODEL_CALL, i % 2 === 0 ? `inside-${i}` : null),
    );
    await until('the model to be asked', () => asked.length === inside.length);
    wire.freeze(everybody);
    const silentSinceMs = performance.now();
    for (const response of asked) complete(response);
    const later = Array.from({ length: LATER }, (_, i) =>
      buy(key, QUICK_CALL, i % 2 === 0 ? `later-${i}` : null),
    );
    const first = await readiness();
    assert(first.ms < READINESS_WITHIN_MS + GRACE_MS, `readiness took ${first.ms} ms`);
    const caught = await Promise.all([...inside, ...later]);
    for (const { atMs, status, code } of caught) {
      const ms = atMs - silentSinceMs;
      assert(ms < TOLD_WITHIN_MS + GRACE_MS, `${status} ${code} after ${ms} ms`);
      assert(status === 200 || status === 503, `${status} ${code}`);
    }
    if (everybody !== undefined) {
      for (const { status, code } of caught) assert.equal(status, 503, code);
      const second = await readiness();
      assert.equal(second.status, 503);
      assert(second.ms < READINESS_WITHIN_MS + GRACE_MS, `readiness took ${second.ms} ms`);
    } else {
      // A new connection works: the server finds one by itself.
      await until('the server to be ready', async () => (await readiness()).status === 200);
      await until('calls to be sold', async () => (await buy(key, QUICK_CALL, null)).status === 200);
    }
    assert.equal(server.process.exitCode, null);

    wire.thaw();
    await until('the server to be ready', async () => (await readiness()).status === 200);
    // What is open has its time; the test does not wait for it.
    await database.sql`update calls set expires_at = now() where state = 0`;
    await until('open calls to end', async () => (await openCalls(database.sql)) === 0);
    const account = await accountOf(database.sql, key);
    const delivered = new Set(told.flatMap(({ status, callId }) => (status === 200 ? [callId] : [])));
    // Who cannot ask again has paid for what was delivered, and for nothing else.
    const isSettled = async () => {
      const refunded = new Set(await refundsOf(database.sql, account));
      const calls = await callsOf(database.sql, account);
      return (
        (await undelivered()) === 0 &&
        calls.every(
          ({ id, state, identity }) =>
            state !== 1 || identity !== null || delivered.has(id) || refunded.has(id),
        )
      );
    };
    await until('what is owed to be given back', isSettled, GIVEN_BACK_WITHIN_MS);
    const captured = new Map(
      (await callsOf(database.sql, account)).filter(({ state }) => state === 1).map((row) => [row.id, row]),
    );
    const ofOrder = (order: string) =>
      [...captured.values()].find(({ identity }) => identity === `key:${order}`);
    for (const callId of delivered) assert(captured.has(callId ?? ''), 'an answer was not charged');
    for (const { order, charged, code } of caught) {
      if (charged !== false || order === null) continue;
      assert.equal(ofOrder(order), undefined, `${code} said that ${order} cost nothing`);
    }
    const refunded = new Set(await refundsOf(database.sql, account));
    for (const { id, identity } of captured.values()) {
      if (identity === null)
        assert.equal(delivered.has(id), !refunded.has(id), 'an answer that was delivered was given back');
    }
    assert.equal(
      await balanceOf(database.sql, account),
      GRANT - PRICE * BigInt(captured.size - refunded.size),
      'the balance is not what the calls took',
    );
    // And whoever can ask again gets it.
    const again = Array.from(captured.values(), ({ identity }) => identity).filter((each) => each !== null);
    for (const identity of again) {
      const order = identity.replace(/^key:/, '');
      const what = order.startsWith('inside') ? MODEL_CALL : QUICK_CALL;
      const repeated = await buy(key, what, order);
      assert.equal(repeated.status, 200, repeated.code);
    }
    await assertBooksClosed(database.patient);

    const lines = server.words().match(/"msg":"the database went silent/g) ?? [];
    assert(lines.length === 1 || lines.length === 2, `${lines.length} lines for one silence`);
  });
}

for (const [when, afterMs] of [
  ['while its database is silent', 0],
  ['when its database falls silent after seven seconds', 7_000],
] as const) {
  test(`a process that drains ${when} ends in time`, async () => {
    const key = await newKey();
    assert.equal((await buy(key, QUICK_CALL, null)).status, 200);
    const inside = buy(key, MODEL_CALL, 'order').catch(() => null);
    await until('the model to be asked', () => asked.length === 1);
    let silentSinceMs = 0;
    const silent = async () => {
      const toldAtMs = performance.now();
      await until('the database to fall silent', () => performance.now() - toldAtMs >= afterMs);
      wire.freeze('new ones too');
      silentSinceMs = performance.now();
      for (const response of asked) complete(response);
    };
    const falls = silent();
    if (afterMs === 0) await falls;
    await server.end('SIGTERM');
    await falls;
    const tookMs = performance.now() - silentSinceMs;
    assert(
      tookMs < ENDS_WITHIN_MS + GRACE_MS,
      `it took ${tookMs} ms: ${server.words().match(/"msg":"[^"]*"/g)}`,
    );
    const told = await inside;
    assert(told === null || told.status === 503, `${told?.status} without a database`);
  });
}
