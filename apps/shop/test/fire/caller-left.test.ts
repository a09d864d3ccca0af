/** A caller who has left while the database stalled: the service is not run for them, and they pay nothing. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { connectPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, openCalls } from './money.fixture.ts';
import { startWire, type Wire } from './proxy.fixture.ts';
import { until } from './until.fixture.ts';

const CALLERS = 40;
const MINUTE_MS = 60_000;
const GRANTED_USD = '50';

let runs = 0;
const counted = defineService({
  path: 'counted',
  name: 'Counted',
  tag: 'Discovery',
  priceUsd: '0.10',
  summary: 'For tests.',
  input: z.object({}),
  output: z.object({ run: z.number().int() }),
  example: {},
  async run() {
    runs += 1;
    return answer({ run: runs }, { method: 'Counted.' });
  },
});

let database: TestDatabase;
let wire: Wire;
let fragile: Pools;
let server: TestServer;
let nowMs = Date.parse('2026-11-21T10:00:00Z');

before(async () => {
  database = await openTestDatabase();
  wire = await startWire(database.url);
  fragile = connectPools(wire.url, 5);
  server = await startTestServer({ pools: fragile, services: [counted], nowMs: () => nowMs });
});
after(async () => {
  wire?.thaw();
  await server?.close();
  await Promise.all([fragile?.sql.end({ timeout: 1 }), fragile?.commits.end({ timeout: 1 })]);
  await wire?.close();
  await database?.close();
});

test('who has left when the database answers again is not served', async () => {
  const key = await server.key(GRANTED_USD);
  const account = await accountOf(database.sql, key);
  const first = await server.call('counted', key);
  assert.equal(first.status, 200, await first.text());
  const runsBefore = runs;

  wire.freeze();
  const leave = new AbortController();
  const callers = Array.from({ length: CALLERS }, (_, i) =>
    fetch(`${server.url}/x402/counted`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': key,
        // One that can ask again has not left for good, but nobody waits for this run either.
        ...(i % 2 === 0 ? {} : { 'idempotency-key': `order-${i}` }),
      },
      body: '{}',
      signal: leave.signal,
    }).then(
      (response) => response.status,
      () => null,
    ),
  );
  await until('all to wait for the database', () => server.app.paidCall.running === CALLERS);
  leave.abort();
  assert.deepEqual(new Set(await Promise.all(callers)), new Set([null]));
  await until('the server to see that they left', async () => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    server.app.http.server.getConnections((error, count) =>
      error === null ? resolve(count) : reject(error),
    );
    return (await promise) <= 1;
  });
  wire.thaw();
  await until('no call to run', () => server.app.paidCall.running === 0);
  assert.equal(runs, runsBefore, 'the service ran for nobody');

  nowMs += MINUTE_MS;
  await until('open calls to end', async () => {
    await server.app.reconciler.run();
    return (await openCalls(database.sql)) === 0;
  });
  assert.equal(await balanceOf(database.sql, account), usdToMicros(GRANTED_USD) - usdToMicros('0.10'));
  await assertBooksClosed(database.patient);
});
