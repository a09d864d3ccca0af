/** A process that ends by force says in its log what it leaves open: of an answer that was charged and lost nobody else knows. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database });
});
after(async () => {
  await server?.close();
  await database?.close();
});

test('calls that run and answers that did not arrive are told, until they are written down', async () => {
  const { app } = server;
  assert.deepEqual(app.leftOpen(), { running: 0, undelivered: [] });
  const id = randomUUID();
  const call = {
    id,
    accountId: 100_001n,
    bucket: 0,
    service: 'ping',
    revenue: 'revenue_credits' as const,
    priceMicros: 10_000n,
  };
  app.reconciler.undelivered({ ...call, retrievable: false });
  assert.deepEqual(app.leftOpen(), { running: 0, undelivered: [id] });
});
