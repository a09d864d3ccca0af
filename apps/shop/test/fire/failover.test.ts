/** The database's primary is lost, and the server that follows it is promoted: nothing answered is lost, and nothing is charged twice. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf } from './money.fixture.ts';
import { type ReplicatedDatabase, startReplicatedDatabase } from './replicated-database.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const CALLERS = 8;
const CALLS_EACH = 12;
const GRANT = usdToMicros('1000');

let database: ReplicatedDatabase;
let server: ServerProcess;
let pools: Pools;
let key: string;
before(async () => {
  database = await startReplicatedDatabase();
  pools = connectPools(database.url, 4);
  const parts = {
    sql: pools.sql,
    keys: createKeys(pools.sql, Date.now),
    ledger: createLedger(pools, Date.now),
    nowMs: Date.now,
  };
  ({ apiKey: key } = await grantKey(parts, { amountMicros: GRANT, label: 'test', note: 'test' }));
  server = await startServerProcess({ DATABASE_URL: database.url, RECONCILE_INTERVAL_MS: '100' });
});
after(async () => {
  await server?.end('SIGKILL');
  if (pools !== undefined) await endPools(pools, 1);
  await database?.close();
});

const isReady = async () => (await fetch(`${server.url}/health/ready`)).ok;

const ask = (name: string) =>
  fetch(`${server.url}/x402/ping`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key, 'idempotency-key': name },
    body: '{}',
  });

/** One call, asked for by its name until it is answered. @returns its id */
async function buy(): Promise<string> {
  const name = randomUUID();
  let id: string | null = null;
  await until('a call to be answered', async () => {
    const response = await ask(name);
    const text = await response.text();
    assert([200, 409, 503].includes(response.status), text);
    id = response.headers.get('x-call-id');
    return response.status === 200;
  });
  assert(id !== null);
  return id;
}

const buyMany = async (sold: string[], isOver: () => boolean) => {
  for (let count = 0; count < CALLS_EACH || !isOver(); count++) sold.push(await buy());
};

test('a promotion under load', async () => {
  assert.equal(await isReady(), true);
  const sold: string[] = [];
  let isPromoted = false;
  let soldWhenPromoted = Number.POSITIVE_INFINITY;
  const callers = Array.from({ length: CALLERS }, () =>
    buyMany(sold, () => isPromoted && sold.length > soldWhenPromoted + CALLERS),
  );
  await until('calls to be sold', () => sold.length > 2 * CALLERS);
  database.killFirst();
  await until('the server not to be ready while nothing takes writes', async () => !(await isReady()));
  await database.promoteSecond();
  soldWhenPromoted = sold.length;
  isPromoted = true;
  await Promise.all(callers);
  await until('the server to be ready again', isReady);

  const { second } = database;
  const account = await accountOf(second, key);
  await until('no call to be open', async () => {
    await second`update calls set expires_at = now() where state = 0`;
    return (await second`select 1 from calls where state = 0`).length === 0;
  });
  const captured = (await callsOf(second, account)).filter(({ state }) => state === 1);
  assert.equal(new Set(sold).size, sold.length, 'each name got an answer of its own');
  assert.deepEqual(
    captured.map(({ id }) => id).sort(),
    [...sold].sort(),
    'what was answered was charged, once',
  );
  const price = captured[0]?.price_micros ?? 0n;
  assert.equal(await balanceOf(second, account), GRANT - price * BigInt(sold.length));
  await assertBooksClosed(second);
});

test('a primary that comes back after another took its place is left alone, even when it is the only one', async () => {
  const first = await database.restartFirst();
  const countOf = async () => (await first`select 1 from calls`).length;
  const before = await countOf();
  for (let count = 0; count < CALLERS; count++) await buy();
  assert.equal(await countOf(), before);
  database.killSecond();
  await until('the server not to be ready', async () => !(await isReady()));
  // It asks the first all the time, and is told that it takes writes.
  for (let count = 0; count < CALLERS; count++) assert.equal((await ask(randomUUID())).status, 503);
  assert.equal(await isReady(), false);
  assert.equal(await countOf(), before);
});
