/** Getting a key, spending within its caps, replacing and ending it: over HTTP. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createBucketTurns } from '../../../../packages/core/src/ledger/bucket-turns.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const DAY_MS = 86_400_000;
const START_MS = Date.parse('2026-11-21T10:00:00Z');

let database: TestDatabase;
let server: TestServer;
let nowMs = START_MS;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({
    pools: database,
    nowMs: () => nowMs,
    environment: { TRUSTED_PROXIES: 'loopback' },
  });
});
beforeEach(() => {
  nowMs = START_MS;
});
after(async () => {
  await server.close();
  await database.close();
});

const as = (address: string) => ({ 'x-forwarded-for': address });
const trial = (address: string) => fetch(`${server.url}/api/m2m/credits/trial`, { headers: as(address) });
const demo = (address: string, installId: string) =>
  fetch(`${server.url}/api/sdk/demo-key`, {
    method: 'POST',
    headers: { ...as(address), 'content-type': 'application/json' },
    body: JSON.stringify({ installId, sdkType: 'python-mcp' }),
  });
async function me(
  key: string,
  init: RequestInit = {},
): Promise<{ status: number; body: Awaited<ReturnType<typeof jsonOf>> }> {
  const response = await fetch(`${server.url}/api/keys/me`, { ...init, headers: { 'x-api-key': key } });
  return { status: response.status, body: await jsonOf(response) };
}

test('a trial is exactly the record of the interface, and its key buys', async () => {
  const response = await trial('198.51.100.1');
  assert.equal(response.status, 403, 'documentation ranges are not the open internet');
  const granted = await trial('8.8.4.1');
  assert.equal(granted.status, 200);
  const record = await jsonOf(granted);
  assert.deepEqual(Object.keys(record), [
    ...[
      'success',
      'apiKey',
      'keyPrefix',
      'credits',
      'currency',
      'serviceCalls',
      'expiresIn',
      'usage',
      'upgradeAt',
    ],
    'note',
  ]);
  assert.match(record.apiKey, /^\w+_live_[0-9a-f]{64}$/);
  assert.equal(record.keyPrefix, record.apiKey.slice(0, 12));
  assert.deepEqual(
    [record.success, record.credits, record.currency, record.expiresIn],
    [true, 5, 'USD', '7 days'],
  );
  assert.equal(record.usage.header, 'X-API-KEY');
  assert.equal(record.upgradeAt, '/api/m2m/credits/purchase');
  const call = await fetch(`${server.url}/x402/ping`, {
    method: 'POST',
    headers: { authorization: `Bearer ${record.apiKey}` },
  });
  assert.equal(call.headers.get('x-credits-remaining'), '4.7500');
});

test('one trial for an address in seven days, whatever it writes into its headers', async () => {
  assert.equal((await trial('8.8.4.2')).status, 200);
  const again = await trial('8.8.4.2');
  assert.equal(again.status, 429);
  const refusal = await jsonOf(again);
  assert.equal(refusal.code, 'TRIAL_ALREADY_CLAIMED');
  assert.equal(refusal.retryAfterSeconds, 7 * 86_400);
  assert.equal(again.headers.get('retry-after'), String(7 * 86_400));
  // The proxy appends the true address on the right; what stands left of it is the caller's own invention.
  assert.equal((await trial('9.9.9.9, 8.8.4.2')).status, 429);
  assert.equal((await trial('2606:4700:1:1::1')).status, 200);
  assert.equal((await trial('2606:4700:1:1:ffff::2')).status, 429, 'the same /64');
  nowMs += 7 * DAY_MS + 1;
  assert.equal((await trial('8.8.4.2')).status, 200);
});

test('internal callers get 403, and no proxy is trusted unless configured', async () => {
  const untrusting = await startTestServer({ pools: database });
  try {
    const forged = await fetch(`${untrusting.url}/api/m2m/credits/trial`, { headers: as('8.8.4.3') });
    assert.equal(forged.status, 403);
    assert.equal((await jsonOf(forged)).code, 'INTERNAL_IP');
  } finally {
    await untrusting.close();
  }
});

test('an SDK takes the same grant, and asking again replaces its key without new money', async () => {
  const first = await jsonOf(demo('8.8.4.10', 'install-0001'));
  assert.deepEqual([first.success, first.status, first.credits_remaining], [true, 'new', 5]);
  assert.equal((await server.call('ping', first.api_key)).status, 200);
  const second = await jsonOf(demo('8.8.4.10', 'install-0001'));
  assert.deepEqual([second.status, second.credits_remaining], ['existing', 4.75]);
  assert.notEqual(second.api_key, first.api_key);
  const old = await server.call('ping', first.api_key);
  assert.equal((await jsonOf(old)).last_error_reason.code, 'API_KEY_REVOKED');
  assert.equal((await server.call('ping', second.api_key)).headers.get('x-credits-remaining'), '4.5000');

  assert.equal(
    (await demo('8.8.4.11', 'install-0001')).status,
    429,
    'another address with a known install id',
  );
  assert.equal(
    (await demo('8.8.4.10', 'install-0002')).status,
    429,
    'another install id from a known address',
  );
  assert.equal((await trial('8.8.4.10')).status, 429, 'one grant, whichever door');
  const short = await demo('8.8.4.12', 'short');
  assert.deepEqual([short.status, (await jsonOf(short)).fields[0].field], [400, 'installId']);
});

test('telemetry is accepted and nothing of it is stored', async () => {
  const response = await fetch(`${server.url}/api/sdk/telemetry`, {
    method: 'POST',
    body: JSON.stringify({
      installId: 'mcp-0123456789abcdef',
      sdkType: 'python-mcp',
      sdkVersion: '1.2.0',
      event: 'usage',
      environment: { hasApiKey: false, baseUrl: server.url },
    }),
  });
  assert.equal(response.status, 202);
  assert(!server.log.some((line) => line.includes('mcp-0123456789abcdef')));
  assert.equal((await fetch(`${server.url}/api/sdk/telemetry`, { method: 'POST', body: '{}' })).status, 400);
});

test('a trial that buys credit while it is being closed loses nothing, and is closed no more', async () => {
  const { apiKey } = await jsonOf(trial('8.8.4.21'));
  const known = await server.app.keys.find(apiKey);
  assert(known !== null);
  const { accountId } = known;
  nowMs += 7 * DAY_MS;
  const { body: before } = await me(apiKey);
  await database.sql.begin(async (transaction) => {
    await server.app.ledger.lock(transaction, [accountId]);
    await server.app.trials.expire(100);
    await server.app.keys.becomePaid(transaction, accountId);
  });
  await server.app.trials.expire(100);
  const { body } = await me(apiKey);
  assert.deepEqual([body.status, body.kind, body.balanceUsd], ['active', 'paid', before.balanceUsd]);
  // As an operator's grant asks: whether there is a key to spend it with.
  const [key] = await database.sql`select trial_closed from api_keys where id = ${String(known.id)}`;
  assert.deepEqual({ ...key }, { trial_closed: false });
});

test('a trial ends after seven days by a transfer, once, and the books show it', async () => {
  const { apiKey } = await jsonOf(trial('8.8.4.20'));
  await server.call('ping', apiKey);
  nowMs += 7 * DAY_MS;
  const refused = await server.call('ping', apiKey);
  assert.equal(refused.status, 402);
  assert.equal((await jsonOf(refused)).last_error_reason.code, 'API_KEY_EXPIRED');
  await Promise.all([server.app.trials.expire(100), server.app.trials.expire(100)]);
  const { body } = await me(apiKey);
  assert.deepEqual([body.status, body.balanceUsd, body.availableUsd], ['expired', '0.000000', '0.000000']);
  assert.equal(await server.app.trials.expire(100), 0, 'nothing is left to do');
  const books = await proveBooks(database.patient);
  assert.deepEqual(
    books.checks.filter(({ ok }) => !ok),
    [],
  );
});

test('a key shows its balance, what it spent on what, and its caps', async () => {
  const key = await server.key('3');
  await server.call('ping', key);
  await server.call('first-call', key);
  nowMs += DAY_MS;
  await server.call('ping', key);
  const { body } = await me(key);
  assert.deepEqual(
    [body.balanceUsd, body.reservedUsd, body.spentUsd, body.spentTodayUsd],
    ['2.450000', '0.000000', '0.550000', '0.250000'],
  );
  assert.deepEqual(body.spending, [
    { day: '2026-11-22', service: 'ping', calls: 1, spentUsd: '0.250000' },
    { day: '2026-11-21', service: 'ping', calls: 1, spentUsd: '0.250000' },
    { day: '2026-11-21', service: 'first-call', calls: 1, spentUsd: '0.050000' },
  ]);
});

test('caps hold: per call, per day, changed at once, and a new day starts anew', async () => {
  const key = await server.key('10');
  const patch = (caps: unknown) => me(key, { method: 'PATCH', body: JSON.stringify({ caps }) });
  const code = async (path: string) => (await jsonOf(server.call(path, key))).last_error_reason?.code;
  assert.deepEqual((await patch({ perCallUsd: '0.10' })).body.caps, {
    perCallUsd: '0.100000',
    perDayUsd: null,
    fixedUntil: null,
  });
  assert.equal(await code('ping'), 'SPEND_CAP_PER_CALL');
  assert.equal(await code('first-call'), undefined);
  await patch({ perCallUsd: null, perDayUsd: 0.3 });
  assert.equal(await code('ping'), undefined);
  assert.equal(await code('first-call'), 'SPEND_CAP_PER_DAY');
  nowMs += DAY_MS;
  assert.equal(await code('ping'), undefined);
  for (const caps of [{ perDayUsd: 0 }, { perDayUsd: '1e3' }, { perDayUsd: -1 }, { perHourUsd: 1 }]) {
    const wrong = await patch(caps);
    assert.equal(wrong.status, 400, JSON.stringify(caps));
    assert.equal((await me(key)).body.caps.perDayUsd, '0.300000');
  }
});

test('rotation gives the account one new key; revocation ends the last', async () => {
  const key = await server.key('1');
  const rotate = () =>
    fetch(`${server.url}/api/keys/me/rotate`, { method: 'POST', headers: { 'x-api-key': key } });
  const both = await Promise.all([rotate(), rotate()]);
  const winner = both.find(({ status }) => status === 200);
  const loser = both.find((response) => response !== winner);
  assert(winner !== undefined && loser !== undefined);
  assert([401, 409].includes(loser.status), `${loser.status}`);
  const { apiKey } = await jsonOf(winner);
  assert.equal((await server.call('ping', apiKey)).headers.get('x-credits-remaining'), '0.7500');
  assert.equal((await me(key)).status, 401);
  assert.equal((await me(apiKey, { method: 'DELETE' })).body.status, 'revoked');
  const dead = await server.call('ping', apiKey);
  assert.deepEqual([dead.status, (await jsonOf(dead)).last_error_reason.code], [402, 'API_KEY_REVOKED']);
});

test('a key that is frozen is not exchanged for one that buys', async () => {
  const key = await server.key('1');
  const { accountId } = (await server.app.keys.find(key)) ?? assert.fail();
  await database.sql.begin((transaction) =>
    server.app.keys.freeze(transaction, accountId, 'operator', 'asked by its owner'),
  );
  const refused = await rotate(key);
  assert.deepEqual([refused.status, (await jsonOf(refused)).code], [409, 'KEY_NOT_ACTIVE']);
  assert.equal((await rowsOf(accountId)).length, 1);
  assert.equal((await server.call('ping', key)).status, 402);
});

const rotate = (key: string, url = server.url) =>
  fetch(`${url}/api/keys/me/rotate`, { method: 'POST', headers: { 'x-api-key': key } });
const rowsOf = async (accountId: bigint) =>
  (
    await database.sql<{ prefix: string }[]>`
      select prefix from api_keys where account_id = ${String(accountId)} order by id`
  ).map(({ prefix }) => prefix);

test('the keys of an account are rotated 24 times in 24 hours, whichever replica is asked', async () => {
  const other = await startTestServer({ pools: database, nowMs: () => nowMs });
  let key = await server.key('1');
  const { accountId } = (await server.app.keys.find(key)) ?? assert.fail();
  for (let n = 0; n < 24; n++) {
    const { keys } = (n % 2 === 0 ? server : other).app;
    const { id } = (await keys.find(key)) ?? assert.fail();
    key = (await keys.rotate(id))?.apiKey ?? assert.fail();
    nowMs += 60_000;
  }
  const known = await rowsOf(accountId);
  for (const { url } of [server, other]) {
    const refused = await rotate(key, url);
    assert.deepEqual([refused.status, (await jsonOf(refused)).code], [429, 'KEY_ROTATED_TOO_OFTEN']);
    assert.equal(refused.headers.get('retry-after'), String(86_400 - 24 * 60));
  }
  assert.deepEqual(await rowsOf(accountId), known, 'a refused rotation leaves nothing');
  assert.equal((await server.call('ping', key)).status, 200);
  nowMs = START_MS + DAY_MS;
  const last = await Promise.all([rotate(key), rotate(key, other.url)]);
  assert.equal(last.filter(({ status }) => status === 200).length, 1);
  await other.close();
});

test('a rotated key is forgotten after 90 days where nothing names it, and buys nothing where it is still known', async () => {
  const other = await startTestServer({ pools: database, nowMs: () => nowMs });
  const key = await server.key('1');
  const known = (await server.app.keys.find(key)) ?? assert.fail();
  // Both replicas know the key, and it has paid for calls.
  for (const { app, url } of [server, other]) {
    assert(await app.keys.find(key));
    assert.equal((await fetch(`${url}/api/keys/me`, { headers: { 'x-api-key': key } })).status, 200);
  }
  const buy = (url: string, identity?: string) =>
    fetch(`${url}/x402/ping`, {
      method: 'POST',
      headers: { 'x-api-key': key, ...(identity === undefined ? {} : { 'idempotency-key': identity }) },
    });
  for (const identity of [undefined, 'answered']) assert.equal((await buy(server.url, identity)).status, 200);
  const second = (await jsonOf(rotate(key))).apiKey;
  const held = (await server.app.keys.find(second)) ?? assert.fail();
  const third = (await jsonOf(rotate(second))).apiKey;
  await database.sql`
    insert into operator_acts (id, at, actor, act, account_id, key_id, amount_micros, reason, transfer_id, call_id,
                               idempotency_digest, request_digest)
    values (gen_random_uuid(), now(), 'test', 'freeze', ${String(held.accountId)}, ${String(held.id)}, null, 'names it', null,
            null, ${Buffer.from('names a key')}, ${Buffer.alloc(32)})`;
  const prefixes = [key, second, third].map((each) => each.slice(0, 12));

  nowMs = START_MS + 90 * DAY_MS - 1;
  const forget = () =>
    Promise.all([server, other].map(({ app }) => app.keys.forgetRotated(createBucketTurns(database))));
  await forget();
  assert.deepEqual(await rowsOf(known.accountId), prefixes);
  nowMs = START_MS + 90 * DAY_MS;
  await forget();
  assert.deepEqual(await rowsOf(known.accountId), prefixes.slice(1), 'an operator’s act names the second');

  for (const { url } of [server, other]) {
    for (const identity of [undefined, 'another', 'answered']) {
      const bought = await buy(url, identity);
      const { last_error_reason: reason } = await jsonOf(bought);
      assert.deepEqual([bought.status, reason.code], [402, 'API_KEY_REVOKED'], identity);
    }
    const asked = await fetch(`${url}/api/keys/me`, { headers: { 'x-api-key': key } });
    assert.deepEqual([asked.status, (await jsonOf(asked)).code], [401, 'API_KEY_INVALID']);
  }
  assert.equal((await server.call('ping', third)).status, 200);
  assert.deepEqual(
    (await proveBooks(database.patient)).checks.filter(({ ok }) => !ok),
    [],
  );
  await other.close();
});

test('what stays does not keep what comes after it from being forgotten', async () => {
  const key = await server.key('1');
  const { accountId } = (await server.app.keys.find(key)) ?? assert.fail();
  // 700 rotated keys, the first 600 of which somebody names; a step looks at 500.
  await database.sql`
    with made as (
      insert into api_keys (account_id, lookup, digest, prefix, kind, status, created_at, rotated_at)
      select ${String(accountId)}, -n, sha256(convert_to('rotated ' || n, 'UTF8')), 'rotated', 'paid', 'revoked',
             ${new Date(START_MS).toISOString()}::timestamptz, ${new Date(START_MS).toISOString()}::timestamptz
      from generate_series(1, 700) n returning id
    )
    insert into key_addresses (key_id, digest, seen_at)
    select id, '\\x00', now() from made order by id limit 600`;
  nowMs = START_MS + 90 * DAY_MS;
  await server.app.keys.forgetRotated(createBucketTurns(database));
  assert.equal((await rowsOf(accountId)).length, 601);
});

test('a change of a key that is rotated at the same moment holds for its successor, or is refused', async () => {
  const key = await server.key('1');
  const waiting = async () => {
    const [found] = await database.sql<{ waiting: number }[]>`
      select count(*)::integer as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    return found?.waiting ?? 0;
  };
  const released = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const lock = database.sql.begin(async (transaction) => {
    await transaction`
      select 1 from api_keys where digest = sha256(convert_to(${key}, 'UTF8')) for no key update`;
    locked.resolve();
    await released.promise;
  });
  await locked.promise;
  const rotated = me(key).then(() =>
    fetch(`${server.url}/api/keys/me/rotate`, { method: 'POST', headers: { 'x-api-key': key } }),
  );
  await until('the rotation to wait', async () => (await waiting()) === 1);
  const changes = [{ perCallUsd: '0.10' }, { perDayUsd: '0.20' }].map((caps) =>
    fetch(`${server.url}/api/keys/me`, {
      method: 'PATCH',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ caps }),
    }),
  );
  await until('the changes to wait', async () => (await waiting()) === 3);
  released.resolve();
  await lock;
  const { apiKey } = await jsonOf(rotated);
  for (const response of await Promise.all(changes)) {
    assert.deepEqual([response.status, (await jsonOf(response)).code], [401, 'API_KEY_REVOKED']);
  }
  const { body } = await me(apiKey);
  assert.deepEqual([body.caps.perCallUsd, body.caps.perDayUsd], [null, null]);
});

test('keys that cannot pay are told apart in the 402, and a key is stored and logged nowhere', async () => {
  const code = async (key: string) => (await jsonOf(server.call('ping', key))).last_error_reason.code;
  assert.equal(await code('nonsense'), 'API_KEY_INVALID');
  assert.equal(await code(`fbx_live_${'0'.repeat(64)}`), 'API_KEY_INVALID');
  const poor = await server.key('0.10');
  const refused = await server.call('ping', poor);
  assert.equal(refused.headers.get('x-credits-remaining'), '0.1000');
  const { last_error_reason: reason } = await jsonOf(refused);
  assert.deepEqual(
    [reason.code, reason.balanceUsd, reason.requiredUsd],
    ['INSUFFICIENT_CREDITS', '0.1000', '0.2500'],
  );
  const frozen = await server.key('1');
  await database.sql`update api_keys set status = 'frozen' where prefix = ${frozen.slice(0, 12)}`;
  assert.equal(await code(frozen), 'API_KEY_FROZEN');

  const secret = poor.slice('fbx_live_'.length);
  assert(server.log.length > 10);
  assert(!server.log.some((line) => line.includes(secret)));
  const tables = await database.sql<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_schema = 'public'`;
  for (const { name } of tables) {
    const [row] = await database.sql`
      select count(*)::int as n from ${database.sql(name)} t where t::text like ${`%${secret}%`}`;
    assert.equal(row?.n, 0, name);
  }
});
