/** Real processes, ended between the begin and the finish of a call: the guest, and Farebox. Nothing is charged twice, or without an answer. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createKeys } from '../../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../../packages/core/src/ledger/ledger.ts';
import { openTestDatabase, type TestDatabase } from '../../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, openCalls } from '../../fire/money.fixture.ts';
import { startServerProcess } from '../../fire/server-process.fixture.ts';
import { until } from '../../fire/until.fixture.ts';
import { beginOf, bodyOf, finishOf, say } from './guest-by-hand.fixture.ts';
import { configOf, SECRETS, startGuest } from './guests.fixture.ts';

const GRANT_MICROS = 1_000_000n;
const PRICE_MICROS = 20_000n;

let database: TestDatabase;
let folder: string;
before(async () => {
  [database, folder] = await Promise.all([openTestDatabase(), mkdtemp(join(tmpdir(), 'gate-'))]);
  await writeFile(join(folder, 'farebox.config.yaml'), configOf({ timeoutMs: 2_000 }));
});
after(async () => {
  await Promise.all([database?.close(), rm(folder, { recursive: true, force: true })]);
});

const start = () =>
  startServerProcess({
    DATABASE_URL: database.url,
    FAREBOX_CONFIG: join(folder, 'farebox.config.yaml'),
    RECONCILE_INTERVAL_MS: '100',
    ...SECRETS,
  });

async function newKey(): Promise<string> {
  const nowMs = Date.now;
  const keys = createKeys(database.sql, nowMs);
  const parts = { sql: database.sql, keys, ledger: createLedger(database, nowMs), nowMs };
  return (await grantKey(parts, { amountMicros: GRANT_MICROS, label: 'test', note: 'test' })).apiKey;
}

test('kill -9 of Farebox between begin and finish: the late answer is not charged, and the same order is sold once', async () => {
  const key = await newKey();
  const account = await accountOf(database.sql, key);
  const order = beginOf(key, { idempotencyKey: 'the-order' });
  let server = await start();
  try {
    const { said } = await say(server.url, 'begin', order);
    assert.equal(said.do, 'run');
    await server.end('SIGKILL');
    await database.sql`update calls set expires_at = now() - interval '1 second' where state = 0`;
    server = await start();
    await until('the open call to be released', async () => (await openCalls(database.sql)) === 0);
    const late = await say(server.url, 'finish', finishOf(said.call));
    assert.deepEqual([bodyOf(late).code, bodyOf(late).charged], ['GATE_CALL_OVER', false]);
    assert.equal(await balanceOf(database.sql, account), GRANT_MICROS);

    const again = await say(server.url, 'begin', order);
    const paid = await say(server.url, 'finish', finishOf(again.said.call));
    assert.equal(paid.said.status, 200);
    assert.equal(again.said.idempotencyKey, said.idempotencyKey, 'a guest that knows the order does it once');
    assert.equal(await balanceOf(database.sql, account), GRANT_MICROS - PRICE_MICROS);

    await server.end('SIGKILL');
    server = await start();
    const repeated = await say(server.url, 'finish', finishOf(again.said.call));
    assert.deepEqual([repeated.said.status, repeated.said.headers['x-call-id']], [200, again.said.callId]);
    assert.equal(await balanceOf(database.sql, account), GRANT_MICROS - PRICE_MICROS);
    await assertBooksClosed(database.patient);
  } finally {
    await server.end('SIGKILL');
  }
});

test('while Farebox is away a guest serves nobody, and an answer that waits for it is told as unknown, not as free', async () => {
  const key = await newKey();
  const account = await accountOf(database.sql, key);
  const server = await start();
  const guest = await startGuest('fastify', server.url);
  try {
    const open = Promise.withResolvers<void>();
    guest.hold = open.promise;
    const ask = () =>
      fetch(`${guest.url}/v1/forecast`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: '{"place":"here"}',
      });
    const held = ask();
    await until('the handler to be asked', () => guest.seen.length === 1);
    await server.end('SIGKILL');
    open.resolve();
    const closed = await ask();
    const told = (await closed.json()) as { code: string; charged: boolean };
    assert.deepEqual([closed.status, told.code, told.charged], [503, 'FAREBOX_UNAVAILABLE', false]);
    assert.equal(guest.seen.length, 1);
    const unknown = await held;
    assert.deepEqual(
      [unknown.status, ((await unknown.json()) as { code: string }).code],
      [503, 'OUTCOME_UNKNOWN'],
    );
    assert.equal(unknown.headers.get('x-own'), null, 'nobody gets an answer that is not paid');
    const last = await start();
    try {
      await database.sql`update calls set expires_at = now() - interval '1 second' where state = 0`;
      await until('the open call to be released', async () => (await openCalls(database.sql)) === 0);
      assert.equal(await balanceOf(database.sql, account), GRANT_MICROS);
      await assertBooksClosed(database.patient);
    } finally {
      await last.end('SIGKILL');
    }
  } finally {
    await server.end('SIGKILL');
    await guest.stop();
  }
});
