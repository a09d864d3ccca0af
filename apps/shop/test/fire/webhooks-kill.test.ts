/**
 * `kill -9` of the server while a webhook is told: before the receiver has answered, and between its answer and the note of it.
 * The next process tells it again, with the same id, so nothing is lost. Beside it the receivers that fail otherwise.
 */
import assert from 'node:assert/strict';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { Webhook as Verifier } from 'standardwebhooks';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { makeCertificate } from '../../../../packages/sandbox/src/devices/certificate.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { type Receiver, startReceiver } from '../webhooks.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

let database: TestDatabase;
let receiver: Receiver;
let server: ServerProcess;
let key: string;

const start = () => startServerProcess({ DATABASE_URL: database.url, WEBHOOK_PRIVATE_ADDRESSES: 'true' });
before(async () => {
  [database, receiver] = await Promise.all([openTestDatabase(), startReceiver()]);
  server = await start();
  const keys = createKeys(database.sql, Date.now);
  const ledger = createLedger(database, Date.now);
  const grant = { amountMicros: 1_000_000n, label: 'test', note: 'test' };
  key = (await grantKey({ sql: database.sql, keys, ledger, nowMs: Date.now }, grant)).apiKey;
});
after(async () => {
  await server?.end('SIGKILL');
  await receiver?.stop();
  await database?.close();
});

async function ask(method: string, path: string, body?: object) {
  const response = await fetch(server.url + path, {
    method,
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const told = await jsonOf(response);
  assert.ok(response.ok, `${method} ${path}: ${JSON.stringify(told)}`);
  return told;
}
const register = (url: string) => ask('POST', '/api/webhooks', { url, events: ['refund.made'] });
const remove = (webhookId: string) => ask('DELETE', `/api/webhooks/${webhookId}`);
const deliveriesOf = async (webhookId: string) =>
  (await ask('GET', `/api/webhooks/${webhookId}/deliveries`)).deliveries;

/** Makes the webhook's one unsent delivery due, as if the minute had passed for which a process has a webhook for itself. */
async function endLease(webhookId: string): Promise<void> {
  const rows = await database.sql`
    update webhook_deliveries set next_at = now()
    where webhook_id = ${webhookId} and next_at is not null and delivered_at is null and last_result is null
    returning id`;
  assert.equal(rows.length, 1, 'it is not lost');
  await database.sql`update webhooks set not_before = now() where id = ${webhookId}`;
}

/** The latest delivery of a webhook, once there is a result of it. */
async function noted(webhookId: string, result: string): Promise<void> {
  const isNoted = async () => {
    const rows = await database.sql`
      select 1 from webhook_deliveries where webhook_id = ${webhookId} and last_result = ${result}`;
    return rows.length === 1;
  };
  await until(`${result} is noted`, isNoted);
}

/** Both copies, and what the owner sees of them. */
async function assertToldAgain(path: string, { webhookId, secret }: { webhookId: string; secret: string }) {
  await until('it is told again', () => receiver.at(path).length === 2);
  const [first, second] = receiver.at(path);
  assert.ok(first !== undefined && second !== undefined);
  assert.deepEqual([first.id, first.body], [second.id, second.body]);
  for (const { body, headers } of [first, second])
    new Verifier(secret).verify(body, headers as Record<string, string>);
  await noted(webhookId, '204');
  const [delivery] = await deliveriesOf(webhookId);
  assert.deepEqual([delivery.deliveryId, delivery.status, delivery.attempts], [first.id, 'delivered', 2]);
}

test('killed before the receiver has answered, it is told again with the same id', async () => {
  const made = await register(`${receiver.url}/held`);
  receiver.answers.set('/held', 'silent');
  await ask('POST', `/api/webhooks/${made.webhookId}/test`);
  await until('it arrives', () => receiver.at('/held').length === 1);
  await server.end('SIGKILL');
  receiver.answers.delete('/held');
  await endLease(made.webhookId);
  server = await start();
  await assertToldAgain('/held', made);
  await remove(made.webhookId);
});

test('killed between the answer and its note, it is told again with the same id', async () => {
  const made = await register(`${receiver.url}/noted`);
  receiver.answers.set('/noted', 'silent');
  await ask('POST', `/api/webhooks/${made.webhookId}/test`);
  await until('it arrives', () => receiver.at('/noted').length === 1);
  // Who holds the webhook's row holds up the note.
  const held = await database.sql.reserve();
  await held`begin`;
  await held`select 1 from webhooks where id = ${made.webhookId} for update`;
  receiver.letGo('/noted', 204);
  const waitingNotes = () => database.sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%select not_before from webhooks%'`;
  await until('the note waits', async () => (await waitingNotes()).length === 1);
  const notes = await waitingNotes();
  await server.end('SIGKILL');
  // As the connection of a process ends that is no more; PostgreSQL would notice it with the next word to it.
  for (const { pid } of notes) await database.sql`select pg_terminate_backend(${pid})`;
  await held`rollback`;
  held.release();
  receiver.answers.delete('/noted');
  await endLease(made.webhookId);
  server = await start();
  await assertToldAgain('/noted', made);
  await remove(made.webhookId);
});

test('who is silent, moved, refused by its certificate or gone is told so to its owner, and keeps nobody waiting', async () => {
  const { cert, key: privateKey } = makeCertificate(new Date(Date.now() - 60_000));
  let secure = 0;
  const tls = createTlsServer({ cert, key: privateKey }, (_request, response) => {
    secure += 1;
    response.end();
  });
  await new Promise<void>((done) => tls.listen(0, '127.0.0.1', done));
  const { port } = tls.address() as AddressInfo;
  receiver.answers.set('/silent', 'silent');
  receiver.answers.set('/moved', { redirectTo: `${receiver.url}/elsewhere` });
  receiver.answers.set('/gone', 410);
  const addresses = {
    timeout: `${receiver.url}/silent`,
    302: `${receiver.url}/moved`,
    'certificate refused': `https://127.0.0.1:${port}/`,
    410: `${receiver.url}/gone`,
    204: `${receiver.url}/fine`,
  };
  try {
    const made: Record<string, string> = {};
    for (const [result, url] of Object.entries(addresses)) {
      made[result] = (await register(url)).webhookId;
      await ask('POST', `/api/webhooks/${made[result]}/test`);
    }
    for (const result of Object.keys(addresses)) {
      await noted(made[result] ?? '', result);
      const [delivery] = await deliveriesOf(made[result] ?? '');
      const status = result === '204' ? 'delivered' : result === '410' ? 'given_up' : 'waiting';
      assert.equal(delivery.status, status, result);
    }
    assert.deepEqual([secure, receiver.at('/elsewhere').length], [0, 0], 'nothing was sent there');
    const { webhooks } = await ask('GET', '/api/webhooks');
    for (const { webhookId, enabled, disabledReason, disabledAt, failingSince } of webhooks) {
      const result = Object.keys(made).find((each) => made[each] === webhookId);
      assert.deepEqual([enabled, disabledReason], result === '410' ? [false, 'gone'] : [true, null], result);
      assert.equal(disabledAt === null, enabled, result);
      assert.equal(failingSince === null, result === '204', result);
    }
  } finally {
    tls.closeAllConnections();
    tls.close();
  }
});
