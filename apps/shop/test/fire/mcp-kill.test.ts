/** `kill -9` between the charge of an MCP call and its answer: another replica hands the answer to the next same call. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import postgres from 'postgres';
import inference from '../../../../packages/catalogue/src/services/ai-services/ai-inference.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from './money.fixture.ts';
import { startWire, type Wire } from './proxy.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { type SlowModel, startSlowModel } from './slow-model.fixture.ts';
import { until } from './until.fixture.ts';

const STARTS_WITHIN_MS = 120_000;

let database: TestDatabase;
let model: SlowModel;
let wire: Wire;
let mortal: ServerProcess;
let other: TestServer;
before(async () => {
  [database, model] = await Promise.all([openTestDatabase(), startSlowModel()]);
  wire = await startWire(database.url);
  [mortal, other] = await Promise.all([
    startServerProcess({ DATABASE_URL: wire.url, ...model.environment }),
    startTestServer({ pools: database, services: [inference], environment: model.environment }),
  ]);
});
after(async () => {
  await mortal?.end('SIGKILL');
  await other?.close();
  await wire?.close();
  await Promise.all([database?.close(), model?.close()]);
});

function ask(url: string, key: string): Promise<string> {
  return fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'x-api-key': key,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'ai_inference', arguments: { prompt: 'Hello' } },
    }),
  }).then((response) => response.text());
}

test('the charge is not taken twice, and the answer is not lost', { timeout: STARTS_WITHIN_MS }, async () => {
  const key = await other.key('1');
  const account = await accountOf(database.sql, key);
  model.isSlow = false;
  await ask(mortal.url, key);
  assert.equal(await balanceOf(database.sql, account), 950_000n);

  // Another session holds a row that the charge has to write, until its process hears nothing of the database any more.
  const session = postgres(database.url, { max: 1, onnotice: () => {} });
  const held = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const holding = session.begin(async (sql) => {
    await sql`select 1 from call_spending where account_id = ${String(account)} for update`;
    held.resolve();
    await release.promise;
  });
  await held.promise;
  const lost = ask(mortal.url, key).catch(() => null);
  await until('the charge to wait for the row', async () => {
    const waits = await database.sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    return waits.length > 0;
  });
  wire.freeze();
  release.resolve();
  await holding;
  await session.end();
  await until('the charge', async () => (await balanceOf(database.sql, account)) === 900_000n);
  await mortal.end('SIGKILL');
  assert.equal(await lost, null);

  await until('the other replica to see that', async () => {
    const rows = await database.sql`select 1 from replicas where ended_at is not null`;
    return rows.length > 0;
  });
  const asked = model.asked;
  const again = await ask(other.url, key);
  assert.match(again, /"replayed":"true"/);
  assert.match(again, /Answer 2/);
  assert.equal(model.asked, asked);
  assert.equal(await balanceOf(database.sql, account), 900_000n);
  assert.doesNotMatch(await ask(other.url, key), /"replayed"/);
  await assertBooksClosed(database.patient);
});
