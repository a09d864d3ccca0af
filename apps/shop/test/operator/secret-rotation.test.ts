/**
 * Secrets in files change while a server sells: SIGHUP has them read again, the new ones are in force and the old ones are not, and no
 * call is lost.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import Stripe from 'stripe';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type ServerProcess, startServerProcess } from '../fire/server-process.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { filesIn, startLoad } from './load.fixture.ts';

const FIRST_WEBHOOK_SECRET = 'whsec_first_of_the_tests';
const OTHER_WEBHOOK_SECRET = 'whsec_other_of_the_tests';
/** More than any machine can spend meanwhile. */
const GRANT_MICROS = 1_000_000_000_000n;

let database: TestDatabase;
let folder: string;
let server: ServerProcess;
const files = filesIn(() => folder);
/** The role that the server comes to the database as. */
const role = `teller_${randomBytes(6).toString('hex')}`;

before(async () => {
  database = await openTestDatabase();
  folder = mkdtempSync(join(tmpdir(), 'rotation-'));
  await database.sql.unsafe(`create role ${role} superuser login password 'first'`);
  server = await startServerProcess({
    ...files({
      DATABASE_URL: addressWith('first'),
      METRICS_TOKEN: 'the-first-token-of-the-tests',
      ADMIN_TOKENS: 'desk:first-token-of-two-dozen',
      CARD_PROVIDER_KEY: 'sk_test_0123456789',
      CARD_WEBHOOK_SECRET: FIRST_WEBHOOK_SECRET,
      FAREBOX_SECRET: 'a-secret-of-the-tests-and-of-nothing-else',
    }),
    FAREBOX_SECRET: '',
    CARD_PROVIDER_URL: 'http://127.0.0.1:9',
    LOG_LEVEL: 'info',
  });
});
after(async () => {
  await server?.end('SIGKILL');
  await database?.sql.unsafe(`drop role if exists ${role}`).catch(() => {});
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

function addressWith(password: string): string {
  const url = new URL(database.url);
  [url.username, url.password] = [role, password];
  return url.href;
}

const asked = async (path: string, token: string) =>
  (await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${token}` } })).status;

async function webhookSignedWith(secret: string): Promise<number> {
  const created = Math.floor(Date.now() / 1_000);
  const payload = JSON.stringify({
    id: 'evt_1',
    object: 'event',
    type: 'unknown',
    created,
    data: { object: {} },
  });
  const signature = new Stripe('sk_test_x').webhooks.generateTestHeaderString({ payload, secret });
  const headers = { 'stripe-signature': signature, 'content-type': 'application/json' };
  const reply = await fetch(`${server.url}/api/m2m/credits/webhook`, {
    method: 'POST',
    headers,
    body: payload,
  });
  return reply.status;
}

async function hangUp(said: RegExp): Promise<void> {
  const saidSince = server.listen();
  server.process.kill('SIGHUP');
  await until(`the server to say ${said}`, () => said.test(saidSince()));
}

/** Four callers of one key, with more credit than they can spend. */
async function startCallers() {
  const keys = createKeys(database.sql, Date.now);
  const parts = { sql: database.sql, keys, ledger: createLedger(database, Date.now), nowMs: Date.now };
  const { apiKey } = await grantKey(parts, { amountMicros: GRANT_MICROS, label: 'test', note: 'test' });
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const buy = (url: string) => fetch(`${url}/x402/ping`, { method: 'POST', headers, body: '{}' });
  return startLoad(
    server,
    Array.from({ length: 4 }, () => ['credits', buy]),
  );
}

test('each is exchanged under load, and no call fails', async () => {
  const load = await startCallers();
  try {
    assert.deepEqual(
      [
        await asked('/metrics', 'the-first-token-of-the-tests'),
        await asked('/admin/api/caller', 'first-token-of-two-dozen'),
        await webhookSignedWith(FIRST_WEBHOOK_SECRET),
      ],
      [200, 200, 200],
    );

    files({ METRICS_TOKEN: '', ADMIN_TOKENS: 'desk:other-token-of-two-dozen' });
    await hangUp(/the old ones stay/);
    assert.equal(await asked('/admin/api/caller', 'first-token-of-two-dozen'), 200, 'all or none');

    files({
      METRICS_TOKEN: 'the-other-token-of-the-tests',
      CARD_PROVIDER_KEY: 'sk_test_9876543210',
      CARD_WEBHOOK_SECRET: OTHER_WEBHOOK_SECRET,
      FAREBOX_SECRET: 'another-secret-of-the-tests-and-of-nothing-else',
    });
    await hangUp(/"waiting":\["FAREBOX_SECRET"\]/);
    assert.deepEqual(
      [
        await asked('/metrics', 'the-first-token-of-the-tests'),
        await asked('/metrics', 'the-other-token-of-the-tests'),
        await asked('/admin/api/caller', 'first-token-of-two-dozen'),
        await asked('/admin/api/caller', 'other-token-of-two-dozen'),
        await webhookSignedWith(FIRST_WEBHOOK_SECRET),
        await webhookSignedWith(OTHER_WEBHOOK_SECRET),
      ],
      [403, 200, 401, 200, 400, 200],
    );
    await load.more(11);
  } finally {
    await load.stop();
  }
});

test('connections to the database open with the new password, one after the other under load, and no call fails', async () => {
  const load = await startCallers();
  try {
    await load.more();
    await database.sql.unsafe(`alter role ${role} password 'second'`);
    await load.more();
    files({ DATABASE_URL: addressWith('second') });
    await hangUp(/"renewed":\["DATABASE_URL"\]/);
    const sessions = () =>
      database.sql<{ pid: number }[]>`select pid from pg_stat_activity where usename = ${role}`;
    const former = new Set((await sessions()).map(({ pid }) => pid));
    assert(former.size > 0);
    for (const pid of former) {
      await database.sql`select pg_terminate_backend(${pid})`;
      await load.more();
    }
    await until('new sessions', async () => (await sessions()).some(({ pid }) => !former.has(pid)));
    assert((await sessions()).every(({ pid }) => !former.has(pid)));
  } finally {
    await load.stop();
  }
  assert((await fetch(`${server.url}/health/ready`)).ok);
});
