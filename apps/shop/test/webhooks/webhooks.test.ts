/** Webhooks end to end: what an owner registers, what the house tells, and what a receiver gets. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Webhook as Verifier } from 'standardwebhooks';
import { z } from 'zod';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type Receiver, startReceiver } from '../webhooks.fixture.ts';

const PATIENCE_MS = 60_000;
let aheadMs = 0;
/** Takes as long as it is told, by the clock of the server. */
const slow = defineService({
  path: 'slow',
  name: 'Slow',
  tag: 'Discovery',
  priceUsd: '0.10',
  summary: 'For tests.',
  input: z.object({ takesMs: z.int().min(0).default(0) }),
  output: z.object({ took: z.int() }),
  example: {},
  async run({ takesMs }) {
    aheadMs += takesMs;
    return answer({ took: takesMs }, { method: 'Waited.' });
  },
});

let database: TestDatabase;
let server: TestServer;
let replica: TestServer;
let receiver: Receiver;
before(async () => {
  database = await openTestDatabase();
  receiver = await startReceiver();
  const open = () =>
    startTestServer({
      pools: database,
      services: [slow],
      environment: { WEBHOOK_PRIVATE_ADDRESSES: 'true', TRUSTED_PROXIES: 'loopback' },
      nowMs: () => Date.now() + aheadMs,
    });
  server = await open();
  replica = await open();
});
beforeEach(() => receiver.arrived.splice(0));
after(async () => {
  await receiver.stop();
  await replica.close();
  await server.close();
  await database.close();
});

// biome-ignore lint/suspicious/noExplicitAny: the boundary at which tests look at whatever came
type Body = any;

async function ask(
  method: string,
  path: string,
  key: string | null,
  body?: object,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Body }> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      ...headers,
      ...(key === null ? {} : { 'x-api-key': key }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await jsonOf(response) };
}

async function register(key: string, path: string, events: string[], more: object = {}): Promise<Body> {
  const made = await ask('POST', '/api/webhooks', key, { url: receiver.url + path, events, ...more });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return made.body;
}

/** One round of a job, of whichever replica. */
async function job(name: string, of: TestServer = server): Promise<void> {
  const found = of.app.jobs.find((each) => each.name === name);
  assert(found !== undefined, name);
  await found.run();
}

async function told(path: string, count: number, of: TestServer = server) {
  await job('send-webhooks', of);
  const endMs = Date.now() + PATIENCE_MS;
  while (receiver.at(path).length < count) {
    assert(Date.now() < endMs, `still waiting for ${count} messages at ${path}`);
    await pause(10);
  }
  const all = receiver.at(path);
  assert.equal(all.length, count);
  return all;
}

const from = (address: string) => ({ 'x-forwarded-for': address });

test('an owner registers, tries, lists, replays, rotates, switches and deletes a webhook', async () => {
  const key = await server.key('1');
  const made = await register(key, '/mine', ['refund.made', 'refund.made']);
  assert.match(made.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.deepEqual(made.events, ['refund.made']);
  const at = `/api/webhooks/${made.webhookId}`;
  const listed = await ask('GET', '/api/webhooks', key);
  assert.equal(listed.body.webhooks.length, 1);
  assert(!JSON.stringify(listed.body).includes('whsec_'));

  const sent = await ask('POST', `${at}/test`, key);
  assert.equal(sent.status, 202);
  const [first] = await told('/mine', 1);
  assert(first !== undefined);
  assert.deepEqual([first.id, first.message.type], [sent.body.deliveryId, 'webhook.test']);
  // The library refuses a message whose time is not about now.
  assert.equal(aheadMs, 0);
  new Verifier(made.secret).verify(first.body, first.headers as Record<string, string>);

  await until('it is noted', async () => {
    const { body } = await ask('GET', `${at}/deliveries`, key);
    return body.deliveries[0]?.status === 'delivered' ? body.deliveries : null;
  });
  assert.equal((await ask('POST', `${at}/deliveries/${first.id}/resend`, key)).status, 202);
  const [, second] = await told('/mine', 2, replica);
  assert.equal(second?.id, first.id, 'the same id again');

  const rotated = await ask('POST', `${at}/rotate`, key, { overlapHours: 1 });
  assert.notEqual(rotated.body.secret, made.secret);
  assert(Date.parse(rotated.body.oldSecretUntil) > Date.now());
  for (let times = 2; times <= 5; times += 1) await ask('POST', `${at}/rotate`, key, { overlapHours: 168 });
  const tooMany = await ask('POST', `${at}/rotate`, key, {});
  assert.deepEqual([tooMany.status, tooMany.body.code], [409, 'TOO_MANY_OLD_SECRETS']);
  assert.equal(tooMany.body.nextRotationAt, rotated.body.oldSecretUntil);
  const ended = await ask('POST', `${at}/rotate`, key, { overlapHours: 0 });
  assert.deepEqual(
    [ended.status, ended.body.oldSecretUntil, ended.body.oldSecretsUntil.length],
    [200, null, 5],
  );
  assert.equal(ended.body.oldSecretsUntil[4], rotated.body.oldSecretUntil, 'the first promise stands');

  assert.equal((await ask('PATCH', at, key, { enabled: false })).body.disabledReason, 'owner');
  assert.equal((await ask('POST', `${at}/test`, key)).body.code, 'WEBHOOK_OFF');
  assert.equal((await ask('PATCH', at, key, { enabled: true })).body.enabled, true);
  assert.equal((await ask('DELETE', at, key)).status, 200);
  assert.deepEqual((await ask('GET', '/api/webhooks', key)).body.webhooks, []);
  assert.equal((await ask('GET', `${at}/deliveries`, key)).status, 404);
});

async function until<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const endMs = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    assert(Date.now() < endMs, `still waiting until ${what}`);
    await pause(10);
  }
}

test('what is wrong is refused with its field; nobody reads or changes what is another’s', async () => {
  const key = await server.key('1');
  const good = { url: `${receiver.url}/x`, events: ['refund.made'] };
  const wrong: [object, string][] = [
    [{ ...good, url: 'ftp://example.com' }, 'url'],
    [{ ...good, url: `${receiver.url}/${'a'.repeat(600)}` }, 'url'],
    [{ ...good, url: 5 }, 'url'],
    [{ ...good, events: [] }, 'events'],
    [{ ...good, events: ['refund.made', 'everything'] }, 'events.1'],
    [{ ...good, events: ['balance.low'] }, 'lowBalanceUsd'],
    [{ ...good, lowBalanceUsd: '1' }, 'lowBalanceUsd'],
    [{ ...good, events: ['balance.low'], lowBalanceUsd: '-1' }, 'lowBalanceUsd'],
    [{ ...good, email: 'owner@example.org\r\nBcc: x@example.org' }, 'email'],
    [{ ...good, secret: 'whsec_mine' }, ''],
    [{ events: ['refund.made'] }, 'url'],
  ];
  for (const [body, field] of wrong) {
    const refused = await ask('POST', '/api/webhooks', key, body);
    assert.deepEqual([refused.status, refused.body.fields?.[0]?.field], [400, field], JSON.stringify(body));
  }
  const other = await server.key('1');
  const { webhookId } = await register(key, '/x', ['refund.made']);
  const at = `/api/webhooks/${webhookId}`;
  for (const [method, path, body] of [
    ['PATCH', at, { enabled: false }],
    ['PATCH', at, { url: `${receiver.url}/thief` }],
    ['POST', `${at}/recover`, { since: '2026-01-01T00:00:00Z' }],
    ['DELETE', at],
    ['POST', `${at}/rotate`, {}],
    ['POST', `${at}/test`],
    ['GET', `${at}/deliveries`],
    ['POST', `${at}/deliveries/${randomUUID()}/resend`],
  ] as const) {
    assert.equal((await ask(method, path, other, body)).body.code, 'WEBHOOK_NOT_FOUND', `${method} ${path}`);
    assert.equal((await ask(method, path, null, body)).status, 401);
    assert.equal((await ask(method, path.replace(webhookId, 'no%00id'), key, body)).status >= 400, true);
  }
  assert.equal((await ask('GET', '/api/webhooks', other)).body.webhooks.length, 0);
  assert.equal((await ask('GET', '/api/webhooks', `fbx_live_${'0'.repeat(64)}`)).status, 401);

  const made = await Promise.all(Array.from({ length: 8 }, () => ask('POST', '/api/webhooks', key, good)));
  assert.equal(made.filter(({ status }) => status === 201).length, 4, 'five in all, however many at once');
  assert.equal(made.find(({ status }) => status !== 201)?.body.code, 'TOO_MANY_WEBHOOKS');
});

test('an owner changes where a webhook leads and what it hears of, and what does not fit is refused with its field', async () => {
  const key = await server.key('1');
  const { webhookId } = await register(key, '/before', ['balance.low'], { lowBalanceUsd: '2' });
  const at = `/api/webhooks/${webhookId}`;
  for (const [body, field] of [
    [{}, ''],
    [{ url: 'ftp://example.com' }, 'url'],
    [{ events: ['balance.low', 'everything'] }, 'events.1'],
    [{ events: ['balance.low'], lowBalanceUsd: null }, 'lowBalanceUsd'],
    [{ lowBalanceUsd: null }, 'lowBalanceUsd'],
    [{ events: ['refund.made'], lowBalanceUsd: '1' }, 'lowBalanceUsd'],
    [{ email: 'nobody' }, 'email'],
  ] as const) {
    const refused = await ask('PATCH', at, key, body);
    assert.deepEqual([refused.status, refused.body.fields?.[0]?.field], [400, field], JSON.stringify(body));
  }
  const changed = await ask('PATCH', at, key, {
    url: `${receiver.url}/after`,
    events: ['refund.made', 'key.new_address'],
    email: 'owner@example.org',
  });
  assert.equal(changed.status, 200);
  const { url, events, lowBalanceUsd, email, enabled } = changed.body;
  assert.deepEqual(
    { url, events, lowBalanceUsd, email, enabled },
    {
      url: `${receiver.url}/after`,
      events: ['refund.made', 'key.new_address'],
      lowBalanceUsd: null,
      email: 'owner@example.org',
      enabled: true,
    },
  );
  const low = await ask('PATCH', at, key, { events: ['balance.low'], lowBalanceUsd: '0.5', enabled: false });
  assert.deepEqual([low.body.lowBalanceUsd, low.body.enabled, low.body.email], ['0.500000', false, email]);
});

test('what cannot be sent again, or waits in too great a number, is refused', async () => {
  const [key, other] = [await server.key('1'), await server.key('1')];
  const { webhookId } = await register(key, '/never-sent', ['refund.made']);
  const { webhookId: otherId } = await register(other, '/of-another', ['refund.made']);
  // An address of its own, whose requests of a minute no other test counts on.
  const post = (path: string, by = key) =>
    ask('POST', `/api/webhooks/${path}`, by, undefined, from('198.51.100.77'));
  const waiting: string[] = [];
  for (let n = 0; n < 20; n++) waiting.push((await post(`${webhookId}/test`)).body.deliveryId);
  const many = await post(`${webhookId}/test`);
  assert.deepEqual([many.status, many.body.code], [409, 'TOO_MANY_WAITING']);
  for (const [webhook, delivery, by] of [
    // It waits already.
    [webhookId, waiting[0], key],
    [webhookId, randomUUID(), key],
    [webhookId, 'nonsense', key],
    [otherId, waiting[0], other],
  ]) {
    const refused = await post(`${webhook}/deliveries/${delivery}/resend`, by);
    assert.deepEqual([refused.status, refused.body.code], [404, 'DELIVERY_NOT_FOUND'], delivery);
  }
  await database.sql`delete from webhooks where id in ${database.sql([webhookId, otherId])}`;
});

test('a webhook whose secret is lost is switched on by a new secret alone', async () => {
  const key = await server.key('1');
  const { webhookId, secret } = await register(key, '/secret-lost', ['refund.made']);
  const at = `/api/webhooks/${webhookId}`;
  const as = (method: string, path: string, body?: object) =>
    ask(method, at + path, key, body, from('198.51.100.78'));
  // As the job leaves it that seals secrets anew, where no secret of this server opens it.
  await database.sql`
    update webhooks set disabled_at = now(), disabled_because = 'secret_lost' where id = ${webhookId}`;
  const refused = await as('PATCH', '', { enabled: true });
  assert.deepEqual([refused.status, refused.body.code], [409, 'WEBHOOK_SECRET_LOST']);
  assert.equal((await as('POST', '/test')).body.code, 'WEBHOOK_OFF');
  assert.notEqual((await as('POST', '/rotate', {})).body.secret, secret);
  assert.equal((await as('PATCH', '', { enabled: true })).body.enabled, true);
  assert.equal((await as('POST', '/test')).status, 202);
  await database.sql`delete from webhooks where id = ${webhookId}`;
});

test('the log of an account is read with its key: in pages, from a time on, and by nobody else', async () => {
  const key = await server.key('1');
  await register(key, '/logged', ['refund.made']);
  const { accountId } = (await server.app.keys.find(key)) ?? assert.fail();
  for (let nth = 1; nth <= 3; nth += 1)
    await database.sql`
      insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at)
      values (${String(accountId)}, ${randomUUID()}, 1, 1, ${String(accountId)}, ${nth * 100_000}, 'call_refund', 'undelivered', now())`;
  const page = await ask('GET', '/api/events?limit=2', key);
  const amounts = (body: Body) => body.events.map((each: Body) => each.data.amountUsd);
  assert.deepEqual(amounts(page.body), ['0.300000', '0.200000']);
  const next = await ask('GET', `/api/events?before=${page.body.next}`, key);
  assert.deepEqual([amounts(next.body), next.body.next], [['0.100000'], null]);
  aheadMs += 31_000;
  const since = await ask('GET', '/api/events?since=2026-01-01T00:00:00Z&limit=1', key);
  const after = await ask('GET', `/api/events?after=${since.body.next}`, key);
  assert.deepEqual([...amounts(since.body), ...amounts(after.body)], ['0.100000', '0.200000', '0.300000']);
  for (const [query, field] of [
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['before=1', 'before'],
    ['since=yesterday', 'since'],
    [`before=${page.body.next}&since=2026-01-01T00:00:00Z`, 'since'],
  ]) {
    const refused = await ask('GET', `/api/events?${query}`, key);
    assert.deepEqual([refused.status, refused.body.fields?.[0]?.field], [400, field], query);
  }
  assert.equal((await ask('GET', '/api/events', null)).body.code, 'API_KEY_MISSING');
  assert.deepEqual((await ask('GET', '/api/events', await server.key('1'))).body.events, []);
});

test('a webhook that was off is told afterwards of what it missed', async () => {
  const key = await server.key('5');
  const { webhookId } = await register(key, '/missed', ['answer.ready']);
  const at = `/api/webhooks/${webhookId}`;
  await ask('PATCH', at, key, { enabled: false });
  assert.equal(
    (await ask('POST', `${at}/recover`, key, { since: '2026-01-01T00:00:00Z' })).body.code,
    'WEBHOOK_OFF',
  );
  assert.equal(
    (await server.call('slow', key, { takesMs: 6_000 }, { 'idempotency-key': 'off-1' })).status,
    200,
  );
  await job('tell-of-key-use');
  assert.equal((await ask('GET', '/api/webhooks', key)).body.webhooks[0]?.missedEvents, 1);
  await ask('PATCH', at, key, { enabled: true });
  const recovered = await ask('POST', `${at}/recover`, key, { since: '2026-01-01T00:00:00Z' });
  assert.deepEqual(
    [recovered.status, recovered.body.missed, recovered.body.givenUp, recovered.body.more],
    [202, 1, 0, false],
  );
  const [message] = await told('/missed', 1);
  assert.equal(message?.message.type, 'answer.ready');
  assert.equal(
    (await ask('POST', `${at}/recover`, key, { since: 'last week' })).body.fields?.[0]?.field,
    'since',
  );
});

test('a trial has no webhooks', async () => {
  const key = await server.key('1');
  await database.sql`update api_keys set kind = 'trial' where prefix = ${key.slice(0, 12)}`;
  const refused = await ask('POST', '/api/webhooks', key, {
    url: `${receiver.url}/x`,
    events: ['refund.made'],
  });
  assert.deepEqual([refused.status, refused.body.code], [403, 'TRIAL_KEY']);
});

test('a balance that is low is told once, and again once it was not low any more', async () => {
  const key = await server.key('0.65');
  await register(key, '/low', ['balance.low'], { lowBalanceUsd: 0.5 });
  const look = () => Promise.all([job('tell-of-low-balances'), job('tell-of-low-balances', replica)]);
  assert.equal((await server.call('slow', key)).status, 200);
  await look();
  await told('/low', 0);
  assert.equal((await server.call('slow', key)).status, 200);
  await look();
  await look();
  const [first] = await told('/low', 1);
  assert.deepEqual(
    { ...first?.message.data, asOf: '' },
    { balanceUsd: '0.450000', lowBelowUsd: '0.500000', asOf: '' },
  );
  assert(first !== undefined && !first.body.includes(key));
  const credit = (micros: number) => database.sql`
    update ledger_accounts set credits_posted = credits_posted + ${micros}
    where id = (select account_id from api_keys where prefix = ${key.slice(0, 12)})`;
  await credit(200_000);
  await look();
  await credit(-200_000);
  await look();
  await told('/low', 2);
});

test('a low balance that finds no room in a full queue is told when there is room, and keeps no other from being told', async () => {
  const [full, other] = [await server.key('0.4'), await server.key('0.4')];
  const { webhookId } = await register(full, '/full', ['balance.low'], { lowBalanceUsd: 0.5 });
  await database.sql`
    insert into webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, next_at)
    select gen_random_uuid(), ${webhookId}, 'refund.made', '{}', now(), now(), now() + interval '1 day'
    from generate_series(1, 1000)`;
  await register(other, '/other', ['balance.low'], { lowBalanceUsd: 0.5 });
  await job('tell-of-low-balances');
  await told('/other', 1);
  await database.sql`delete from webhook_deliveries where webhook_id = ${webhookId}`;
  await job('tell-of-low-balances');
  await job('tell-of-low-balances', replica);
  await told('/full', 1);
});

test('a key that is used from a new address is told, from a known one not; nobody else’s is learned', async () => {
  const [key, unwatched] = [await server.key('5'), await server.key('5')];
  await register(key, '/from', ['key.new_address']);
  const learn = async () => {
    await job('tell-of-key-use');
    await job('tell-of-key-use', replica);
  };
  await learn();
  const use = (of: TestServer, address: string, with_ = key) => of.call('slow', with_, {}, from(address));
  await use(server, '127.0.0.1');
  await use(server, '203.0.113.7');
  await use(server, '203.0.113.7');
  await use(server, '203.0.113.7', unwatched);
  await learn();
  await use(replica, '203.0.113.7');
  await use(replica, '2001:db8:1:2::3');
  await use(replica, '2001:db8:1:2::4');
  await learn();
  const all = await told('/from', 2);
  assert.deepEqual(
    all.map(({ message }) => message.data),
    [
      { keyPrefix: key.slice(0, 12), address: '203.0.113.7' },
      { keyPrefix: key.slice(0, 12), address: '2001:db8:1:2::/64' },
    ],
  );
  assert(all.every(({ body }) => !body.includes(key)));
  const rows = await database.sql<{ digest: Buffer }[]>`select digest from key_addresses`;
  assert.equal(rows.length, 3, 'of the key that is watched alone');
  assert(rows.every(({ digest }) => digest.length === 32));

  // Without end: the oldest make room.
  for (let nth = 0; nth < 70; nth += 1) await use(server, `198.51.100.${nth}`);
  await learn();
  const [kept] = await database.sql`select count(*)::int as n from key_addresses`;
  assert.equal(kept?.n, 64);
});

test('a key that was rotated is told when it is first used from elsewhere, and all is forgotten in time', async () => {
  const key = await server.key('5');
  const { webhookId } = await register(key, '/rotated', ['key.new_address']);
  await server.call('slow', key, {}, from('203.0.113.7'));
  await job('tell-of-key-use');
  const { accountId, id } = (await server.app.keys.find(key)) ?? assert.fail();
  const rotate = async (old: string): Promise<string> =>
    (await ask('POST', '/api/keys/me/rotate', old, {})).body.apiKey;
  const rotated = await rotate(key);
  await server.call('slow', rotated, {}, from('203.0.113.7'));
  await job('tell-of-key-use');
  await told('/rotated', 1);
  const stolen = await rotate(rotated);
  const deliveries = await fetch(`${server.url}/api/webhooks/${webhookId}/deliveries`, {
    headers: { 'x-api-key': stolen, ...from('198.51.100.9') },
  });
  assert.equal(deliveries.status, 200);
  await job('tell-of-key-use');
  const all = await told('/rotated', 2);
  assert.deepEqual(
    all.map(({ message }) => message.data),
    [
      { keyPrefix: key.slice(0, 12), address: '203.0.113.7' },
      { keyPrefix: stolen.slice(0, 12), address: '198.51.100.9' },
    ],
  );
  const kept = () => database.sql`
    select 1 from key_addresses where key_id in (select id from api_keys where account_id = ${String(accountId)})`;
  await job('forget-key-addresses');
  assert.equal((await kept()).length, 4);
  await database.sql`
    update key_addresses set seen_at = seen_at - interval '91 days' where key_id = ${String(id)}`;
  await job('forget-key-addresses');
  assert.equal((await kept()).length, 2);
  // They are kept for as long as one webhook wants them, and not a moment longer.
  const { webhookId: other } = await register(stolen, '/rotated-too', ['key.new_address']);
  const remove = (id: string) => ask('DELETE', `/api/webhooks/${id}`, stolen);
  assert.equal((await remove(webhookId)).status, 200);
  assert.equal((await kept()).length, 2);
  assert.equal((await remove(other)).status, 200);
  assert.equal((await kept()).length, 0);
});

test('an answer that took long is told with its call, a quick one and one that failed are not', async () => {
  const key = await server.key('5');
  const { webhookId } = await register(key, '/ready', ['answer.ready']);
  await server.call('slow', key, { takesMs: 100 });
  const long = await server.call('slow', key, { takesMs: 6_000 }, { 'idempotency-key': 'long-1' });
  assert.equal(long.status, 200);
  // Without a key of its own its answer is not kept.
  assert.equal((await server.call('slow', key, { takesMs: 6_000 })).status, 200);
  // Sent again it is what was bought before, and no news.
  await server.call('slow', key, { takesMs: 6_000 }, { 'idempotency-key': 'long-1' });
  await job('tell-of-key-use');
  const written = await database.sql`
    select 1 from webhook_deliveries where type = 'answer.ready' and webhook_id = ${webhookId}`;
  assert.equal(written.length, 1);
  const [ready, ...others] = await told('/ready', 1);
  assert.equal(others.length, 0);
  const { callId, service, durationMs } = ready?.message.data ?? {};
  assert.deepEqual([callId, service], [long.headers.get('x-call-id'), 'slow']);
  assert(durationMs >= 6_000);
});

test('money that moves is told in the commit that moves it', async () => {
  const key = await server.key('5');
  const [owner] = await database.sql<{ account_id: bigint }[]>`
    select account_id from api_keys where prefix = ${key.slice(0, 12)}`;
  const account = String(owner?.account_id);
  const all = ['recharge.succeeded', 'recharge.failed', 'refund.made', 'dispute.changed'];
  await register(key, '/money', all);
  const order = async (kind: string) => {
    const id = randomUUID();
    await database.sql`
      insert into card_orders (id, kind, amount_micros, credit_micros, account_id, created_at, expires_at)
      values (${id}, ${kind}, 10000000, 10000000, ${account}, now(), now())`;
    return id;
  };
  const [paid, declined] = [await order('recharge'), await order('purchase')];
  await assert.rejects(
    database.sql.begin(async (transaction) => {
      await transaction`update card_orders set state = 1 where id = ${paid}`;
      throw new Error('undone');
    }),
  );
  await told('/money', 0);
  await database.sql`update card_orders set state = 1, paid_at = now() where id = ${paid}`;
  // Not a recharge: whoever paid knows.
  await database.sql`update card_orders set state = 2, failure = 'declined' where id = ${declined}`;
  const failed = await order('recharge');
  await database.sql`
    update card_orders set state = 2, failure = 'declined', decline_code = 'expired_card' where id = ${failed}`;
  await database.sql`update card_orders set looks = looks + 1, next_at = now() where id = ${paid}`;
  await database.sql`update card_orders set reversed_micros = 2500000 where id = ${paid}`;
  await database.sql`
    update card_orders set reversed_micros = 10000000, disputed_micros = 7500000, dispute = 'needs_response'
    where id = ${paid}`;
  await database.sql`
    update card_orders set reversed_micros = 2500000, disputed_micros = 0, dispute = 'won' where id = ${paid}`;
  // Over, and then paid after all.
  await database.sql`update card_orders set state = 1, paid_at = now() where id = ${failed}`;
  const call = randomUUID();
  await database.sql`
    insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at)
    values (${account}, ${randomUUID()}, 1, 1, ${account}, 100000, 'call_refund', ${`undelivered call ${call}`}, now())`;
  const messages = await told('/money', 7);
  const summary = messages.map(({ message: { type, data } }) => [
    ...[type, data.orderId ?? data.callId, data.amountUsd ?? data.disputedUsd, data.reason ?? data.status],
  ]);
  assert.deepEqual(
    summary.sort(),
    [
      ['dispute.changed', paid, '0.000000', 'won'],
      ['dispute.changed', paid, '7.500000', 'needs_response'],
      ['recharge.failed', failed, '10.000000', 'expired_card'],
      ['recharge.succeeded', paid, '10.000000', undefined],
      ['recharge.succeeded', failed, '10.000000', undefined],
      ['refund.made', paid, '2.500000', undefined],
      ['refund.made', call, '0.100000', undefined],
    ].sort(),
  );
  for (const { message } of messages)
    assert.match(message.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

  // The commit of money waits for nobody who deletes a webhook.
  await database.sql.begin(async (deleting) => {
    await deleting`delete from webhooks where account_id = ${account}`;
    await database.sql.begin(async (money) => {
      await money`set local lock_timeout = '5s'`;
      await money`update card_orders set reversed_micros = 3500000 where id = ${paid}`;
      await money`
        insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at)
        values (${account}, ${randomUUID()}, 1, 1, ${account}, 100000, 'call_refund', ${`undelivered call ${call}`}, now())`;
    });
  });
});
