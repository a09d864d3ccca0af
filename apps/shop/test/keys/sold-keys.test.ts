/**
 * A key that is bought with one call: it holds what was paid, once, whichever rail paid and wherever a process died, and
 * what was trial credit stays it.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { bucketNamedBy } from '../../../../packages/core/src/keys/api-key.ts';
import { transferIdFor } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf } from '../fire/money.fixture.ts';
import { startMortalReplica } from '../fire/mortal-replica.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { openStorefront, type Storefront } from '../storefront.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

const PRICE = 1_000_000n;
const DAY_MS = 86_400_000;
const OPERATOR = 'the-operator-of-the-tests-0123456789abcdef';
const services = (await loadServices()).filter(({ path }) => ['instant-api-key', 'ping'].includes(path));

let world: PaymentWorld;
let database: TestDatabase;
let shop: Storefront;
let here: TestServer;
let there: TestServer;
let laterMs = 0;
const nowMs = () => Date.now() + laterMs;

before(async () => {
  [world, database] = await Promise.all([startPaymentWorld(), openTestDatabase()]);
  const environment = {
    ...world.environment,
    TRUSTED_PROXIES: 'loopback',
    ADMIN_TOKENS: `ops:${OPERATOR}`,
    ACCOUNT_BUCKETS: '64',
  };
  const options = { pools: database, services, nowMs };
  shop = await openStorefront({ ...options, environment: world.environment });
  [here, there] = (await Promise.all(
    [1, 2].map(() => startTestServer({ ...options, environment: { ...environment, PUBLIC_URL: shop.url } })),
  )) as [TestServer, TestServer];
});
after(async () => {
  await Promise.all([shop?.stop(), here?.close(), there?.close()]);
  await Promise.all([world?.stop(), database?.close()]);
});

const asking = (headers: Record<string, string> = {}, body: object = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});
const buy = (on: { url: string }, key: string, once?: string, body: object = { name: 'bought' }) =>
  fetch(
    `${on.url}/x402/instant-api-key`,
    asking({ 'x-api-key': key, ...(once === undefined ? {} : { 'idempotency-key': once }) }, body),
  );
const facts = (key: string, on: { url: string } = here) =>
  jsonOf(fetch(`${on.url}/api/keys/me`, { headers: { 'x-api-key': key } }));
/** Every key whose balance was asked for. */
const seen = new Set<string>();
const held = async (key: string) => {
  seen.add(key);
  return balanceOf(database.sql, await accountOf(database.sql, key));
};

/** One round of the job that ends what a crash left. */
async function round(server: TestServer = here): Promise<void> {
  const job = server.app.parts
    .flatMap(({ jobs }) => jobs ?? [])
    .find(({ name }) => name === 'finish-sold-keys');
  assert(job !== undefined);
  await job.run(new AbortController().signal);
}
/** What is left to do, of keys that a key paid for. */
const left = async () => {
  await round();
  await round();
  const [row] = await database.sql<{ open: number; sealed: number }[]>`
    select count(*) filter (where closed_at is null)::integer as open,
           count(sealed_key)::integer as sealed from sold_keys where payer_account >= 1000`;
  return row;
};

test('bought with a key: one new key with what was paid, however often and wherever it is asked for', async () => {
  const payer = await here.key('5');
  const answers = await Promise.all([
    buy(here, payer, 'one'),
    buy(there, payer, 'one'),
    buy(here, payer, 'one'),
  ]);
  const bought = await Promise.all(answers.map(jsonOf));
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  const { apiKey, keyPrefix, starterCredits, expires_at } = bought[0];
  assert.match(apiKey, /^fbx_live_[0-9a-f]{64}$/);
  for (const each of bought) assert.deepEqual([each.apiKey, each.api_key], [apiKey, apiKey]);
  assert.deepEqual([keyPrefix, starterCredits, expires_at], [apiKey.slice(0, 12), 1, null]);
  assert.deepEqual([await held(payer), await held(apiKey)], [5_000_000n - PRICE, PRICE]);
  const { label, kind } = await facts(apiKey);
  assert.deepEqual([label, kind], ['bought', 'paid']);
  assert.equal((await here.call('ping', apiKey)).status, 200);
  const again = await buy(there, payer, 'one');
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal((await jsonOf(again)).apiKey, apiKey);
  assert.equal((await jsonOf(buy(here, payer, 'two'))).apiKey === apiKey, false);
  const kept = await database.sql<{ text: string }[]>`
    select k::text as text from sold_keys k union all select a::text from call_answers a
    union all select k::text from api_keys k`;
  assert.ok(kept.length > 3);
  for (const { text } of kept) assert.ok(!text.includes(apiKey.slice(12)), 'it is kept');
  await round();
  assert.deepEqual(await left(), { open: 0, sealed: 0 });
});

test('too little credit buys nothing, and a name that is too long is told before it', async () => {
  const payer = await here.key('0.99');
  assert.equal((await buy(here, payer)).status, 402);
  const wrong = await buy(here, payer, undefined, { name: 'x'.repeat(101) });
  assert.deepEqual([wrong.status, (await jsonOf(wrong)).fields[0].field], [400, 'name']);
  assert.equal(await held(payer), 990_000n);
});

test('trial credit stays it in the new key, and ends when the trial would have', async () => {
  const trial = await jsonOf(
    fetch(`${here.url}/api/m2m/credits/trial`, { headers: { 'x-forwarded-for': '8.33.0.1' } }),
  );
  assert.equal(trial.success, true, JSON.stringify(trial));
  const { expiresAt } = await facts(trial.apiKey);
  const bought = await jsonOf(buy(here, trial.apiKey));
  assert.equal(bought.expires_at, expiresAt);
  assert.match(bought.credits_note, /trial/);
  const own = await facts(bought.apiKey);
  assert.deepEqual([own.kind, own.expiresAt], ['trial', expiresAt]);
  // A key of a key: nothing lasts longer by going round.
  const second = await jsonOf(buy(here, bought.apiKey));
  assert.equal(second.expires_at, expiresAt);
  // Another one buys credit of its own, which ends its trial.
  const kept = await jsonOf(buy(here, trial.apiKey));
  const account = await accountOf(database.sql, kept.apiKey);
  await database.sql.begin(async (transaction) => {
    const gift = { id: transferIdFor('a gift of the test'), accountId: account, phase: 'posted' } as const;
    const credit = { side: 'credit', house: 'operator_grants', amountMicros: 10_000n } as const;
    await here.app.ledger.transferWithin(transaction, {
      ...gift,
      ...credit,
      code: 'operator_grant',
      note: 'test',
    });
    await here.app.keys.becomePaid(transaction, account);
  });
  await assertBooksClosed(database.patient);
  laterMs = 8 * DAY_MS;
  await here.app.trials.expire(100);
  laterMs = 0;
  assert.deepEqual(
    [await held(trial.apiKey), await held(bought.apiKey), await held(second.apiKey), await held(kept.apiKey)],
    [0n, 0n, 0n, PRICE + 10_000n],
  );
  await assertBooksClosed(database.patient);
});

test('bought by x402 with the reference client, the same payment shows it again, and nobody else gets it', async () => {
  const account = await world.wallet();
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account));
  // The client refuses above its cap unless it is told.
  const received = await world.received();
  const response = await wrapFetchWithPayment(fetch, client)(`${shop.url}/x402/instant-api-key`, asking());
  const { apiKey, payment } = await jsonOf(response);
  assert.equal(response.status, 200);
  assert.equal((await world.received()) - received, PRICE);
  assert.deepEqual([await held(apiKey), payment.token, payment.chain], [PRICE, 'USDC', 'eip155:8453']);
  const presented = shop.payments.at(-1) ?? assert.fail('nothing was presented');
  assert.equal((await jsonOf(shop.present(presented))).apiKey, apiKey);
  const header = presented.headers['payment-signature'] ?? assert.fail('nothing was signed');
  const signed = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  delete signed.accepted.extra.claimSecret;
  const stolen = Buffer.from(JSON.stringify(signed)).toString('base64');
  const thief = await fetch(`${here.url}/x402/instant-api-key`, asking({ 'payment-signature': stolen }));
  assert.notEqual(thief.status, 200);
  assert.equal((await here.call('ping', apiKey)).status, 200);
});

test('a process that dies before or after the price is taken leaves a key or nothing, and the same payment tells which', async () => {
  const replica = await startMortalReplica({
    databaseUrl: database.url,
    services,
    environment: world.environment,
    nowMs,
  });
  try {
    for (const falls of ['dies before', 'dies after'] as const) {
      const payer = await here.key('2');
      const on = await replica.server();
      replica.strike([{ falls, on: 'capture' }]);
      assert.equal(await buy(on, payer, 'one').catch(() => null), null, 'it was answered before it died');
      await replica.server();
      laterMs = 300_000;
      await replica.reconcile();
      laterMs = 0;
      const account = await accountOf(database.sql, payer);
      const states = (await callsOf(database.sql, account)).map(({ state }) => state);
      assert.deepEqual(states, [falls === 'dies after' ? 1 : 2]);
      await round();
      const made = async () =>
        (
          await database.sql`select 1 from sold_keys where payer_account = ${String(account)} and granted_at is not null`
        ).length;
      assert.equal(await made(), falls === 'dies after' ? 1 : 0);
      const { apiKey } = await jsonOf(buy(there, payer, 'one'));
      assert.deepEqual([await held(payer), await held(apiKey), await made()], [PRICE, PRICE, 1]);
    }
    await round();
    assert.deepEqual(await left(), { open: 0, sealed: 0 });
  } finally {
    await replica.close();
  }
});

/** Leaves a captured sale without its key: the process dies between the two. @returns whose sale it is, and its call */
async function cutOff(once?: string): Promise<{ payer: string; accountId: bigint; callId: string }> {
  const replica = await startMortalReplica({
    databaseUrl: database.url,
    services,
    environment: world.environment,
    nowMs,
  });
  try {
    const payer = await here.key('2');
    const on = await replica.server();
    replica.strike([{ falls: 'dies after', on: 'capture' }]);
    assert.equal(await buy(on, payer, once).catch(() => null), null, 'it was answered before it died');
    await replica.server();
    const accountId = await accountOf(database.sql, payer);
    const [call] = await callsOf(database.sql, accountId);
    assert(call !== undefined);
    assert.equal(call.state, 1);
    return { payer, accountId, callId: call.id };
  } finally {
    await replica.close();
  }
}
/**
 * Has a call, the only one of its account that day, captured twenty minutes earlier, which may be the day before: the
 * rule passes by what may be on its way.
 */
const longAgo = (callId: string) => database.sql`
  with moved as (
    update calls set finished_at = finished_at - interval '20 minutes' where id = ${callId}
    returning account_id, service, (finished_at at time zone 'UTC')::date as day
  )
  update call_spending s set day = m.day from moved m where s.account_id = m.account_id and s.service = m.service`;
/** As the operator's page does it. */
const refundCall = (accountId: bigint, callId: string) =>
  fetch(`${here.url}/admin/api/accounts/${accountId}/refund-call`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${OPERATOR}`,
      'content-type': 'application/json',
      'idempotency-key': `refund ${callId}`.slice(0, 40).replaceAll(' ', '-'),
    },
    body: JSON.stringify({ callId, reason: 'It died on the way.' }),
  });
const rowOf = async (callId: string) => {
  const [row] = await database.sql<
    { granted: boolean; refunded: boolean; closed: boolean; sealed: boolean }[]
  >`
    select granted_at is not null as granted, refunded_at is not null as refunded, closed_at is not null as closed,
           sealed_key is not null as sealed
    from sold_keys where call_id = ${callId}`;
  return row;
};

test('a process that dies between the price and a key that nobody can ask for again: the price goes back, once', async () => {
  const { payer, accountId, callId } = await cutOff();
  await Promise.all([round(here), round(there)]);
  assert.deepEqual(
    [await held(payer), await rowOf(callId)],
    [PRICE, { granted: false, refunded: false, closed: false, sealed: true }],
    'as long as somebody may still be answering it',
  );
  laterMs = 61_000;
  await Promise.all([round(here), round(there), round(here)]);
  laterMs = 0;
  await longAgo(callId);
  assert.equal(await held(payer), 2n * PRICE);
  assert.deepEqual(await rowOf(callId), { granted: false, refunded: true, closed: true, sealed: false });
  await assert.rejects(
    here.app.ledger
      .transfer({
        id: transferIdFor(`refund:${callId}`),
        accountId,
        phase: 'posted',
        side: 'credit',
        house: 'revenue_credits',
        amountMicros: 2n * PRICE,
        code: 'call_refund',
      })
      .then(({ status }) => assert.equal(status, 'done')),
  );
  await assertBooksClosed(database.patient);
});

test('the operator gives back the price of a key that was not granted: none is granted any more, and the books balance', async () => {
  for (const once of [undefined, 'one']) {
    const { payer, accountId, callId } = await cutOff(once);
    assert.equal((await refundCall(accountId, callId)).status, 200);
    laterMs = 61_000;
    await Promise.all([round(here), round(there)]);
    laterMs = 0;
    await longAgo(callId);
    assert.equal(await held(payer), 2n * PRICE);
    assert.deepEqual(await rowOf(callId), { granted: false, refunded: true, closed: true, sealed: false });
    await assertBooksClosed(database.patient);
  }
});

test('a grant that waits for a refund finds it, and a refund that comes after a grant takes the key with it', async () => {
  const { payer, accountId, callId } = await cutOff('one');
  const refund = {
    id: transferIdFor(`refund:${callId}`),
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'revenue_credits',
    amountMicros: PRICE,
    code: 'call_refund',
    note: `undelivered call ${callId}`,
  } as const;
  const isWaiting = async () => {
    const [row] = await database.patient<{ waiting: number }[]>`
      select count(*)::integer as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%sold_keys%'`;
    return (row?.waiting ?? 0) > 0;
  };
  const asked = await database.patient.begin(async (transaction) => {
    await here.app.ledger.transferWithin(transaction, refund);
    await round(there);
    // As before an answer is handed over.
    const capability = there.app.parts.find(({ name }) => name === 'sold-keys')?.capabilities?.[0];
    assert(capability?.name === 'keySales' && capability.beforeAnswer !== undefined);
    const asking = capability.beforeAnswer(callId).then(
      () => 'granted',
      ({ message }: Error) => message,
    );
    await until('the grant waits for the refund', isWaiting);
    return { asking };
  });
  assert.match(await asked.asking, /is not paid/);
  assert.deepEqual([await held(payer), (await rowOf(callId))?.granted], [2n * PRICE, false]);
  await round();
  assert.equal((await rowOf(callId))?.closed, true);

  const other = await here.key('2');
  const bought = await buy(here, other, 'one');
  const { apiKey } = await jsonOf(bought);
  const soldBy = bought.headers.get('x-call-id') ?? '';
  await here.app.ledger.transfer({
    ...refund,
    note: `undelivered call ${soldBy}`,
    id: transferIdFor(`refund:${soldBy}`),
    accountId: await accountOf(database.sql, other),
  });
  await database.sql`
    update ledger_transfers set created_at = created_at - interval '20 minutes' where id = ${transferIdFor(`refund:${soldBy}`)}`;
  await assert.rejects(
    assertBooksClosed(database.patient),
    { name: 'AssertionError' },
    'the key is still good',
  );
  await round();
  assert.deepEqual([await held(other), await held(apiKey)], [2n * PRICE, 0n]);
  await assertBooksClosed(database.patient);
});

test('a job that is about to pay a sale back, and waits for the account, finds the key that was granted meanwhile', async () => {
  const { payer, accountId, callId } = await cutOff();
  const isWaiting = async () => {
    const [row] = await database.patient<{ waiting: number }[]>`
      select count(*)::integer as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%ledger_accounts%'`;
    return (row?.waiting ?? 0) > 0;
  };
  const capability = here.app.parts.find(({ name }) => name === 'sold-keys')?.capabilities?.[0];
  assert(capability?.name === 'keySales' && capability.beforeAnswer !== undefined);
  const { beforeAnswer } = capability;
  laterMs = 61_000;
  const { paying } = await database.patient.begin(async (transaction) => {
    await transaction`select 1 from ledger_accounts where id = ${String(accountId)} for update`;
    const paying = round(there);
    await until('the job waits for the account', isWaiting);
    await beforeAnswer(callId);
    return { paying };
  });
  await paying;
  laterMs = 0;
  await longAgo(callId);
  const row = await rowOf(callId);
  assert.deepEqual([await held(payer), row?.granted, row?.refunded], [PRICE, true, false]);
  await assertBooksClosed(database.patient);
});

test('one that cannot be handed over now is handed over later, or costs nothing', async () => {
  await database.patient.unsafe(`
    create function no_new_keys() returns trigger language plpgsql as $$ begin raise 'not now'; end $$;
    create trigger no_new_keys before insert on api_keys for each row when (new.label = 'not now')
    execute function no_new_keys()`);
  const payers = await Promise.all([here.key('2'), here.key('2')]);
  const [withOne = '', without = ''] = payers;
  try {
    const waits = await buy(here, withOne, 'one', { name: 'not now' });
    const lost = await buy(here, without, undefined, { name: 'not now' });
    const told = await Promise.all([waits, lost].map(jsonOf));
    assert.deepEqual(
      [waits.status, lost.status, told[0].code, told[1].code, told[1].charged],
      [503, 503, 'OUTCOME_UNKNOWN', 'OUTCOME_UNKNOWN', null],
    );
    await until('its price is given back', async () => {
      await here.app.reconciler.run();
      return (await held(without)) === 2n * PRICE;
    });
  } finally {
    await database.patient.unsafe('drop trigger no_new_keys on api_keys; drop function no_new_keys');
  }
  await round();
  const { apiKey } = await jsonOf(buy(there, withOne, 'one', { name: 'not now' }));
  assert.deepEqual([await held(withOne), await held(apiKey)], [PRICE, PRICE]);
  assert.deepEqual(await left(), { open: 0, sealed: 0 });
});

test('a price that is given back takes with it what is left of the key, once', async () => {
  const payer = await here.key('2');
  const response = await buy(here, payer, 'one');
  const { apiKey } = await jsonOf(response);
  await here.call('ping', apiKey);
  await round();
  const accountId = await accountOf(database.sql, payer);
  await here.app.ledger.transfer({
    id: transferIdFor(`refund:${response.headers.get('x-call-id')}`),
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'revenue_credits',
    amountMicros: PRICE,
    code: 'call_refund',
    note: `undelivered call ${response.headers.get('x-call-id')}`,
  });
  await Promise.all([round(here), round(there)]);
  await round();
  assert.deepEqual([await held(payer), await held(apiKey)], [2n * PRICE, 0n]);
  assert.deepEqual(await left(), { open: 0, sealed: 0 });
});

test('a payment that the chain forgot takes with it what is left of the key', async () => {
  const account = await world.wallet();
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account));
  const pay = wrapFetchWithPayment(fetch, client);
  const response = await pay(`${shop.url}/x402/instant-api-key`, asking());
  const { apiKey } = await jsonOf(response);
  const callId = response.headers.get('x-call-id') ?? '';
  await here.call('ping', apiKey);
  // As the finisher writes it down when a reorganisation has left nothing to settle again.
  await here.app.ledger.transfer({
    id: transferIdFor(`lost:${callId}`),
    accountId: 5n,
    phase: 'posted',
    side: 'credit',
    house: 'settlement_losses',
    amountMicros: PRICE,
    code: 'settlement_lost',
    note: `lost settlement of call ${callId}`,
  });
  await database.sql`update settlements set state = 4, final_at = now() where call_id = ${callId}`;
  await Promise.all([round(here), round(there)]);
  assert.equal(await held(apiKey), 0n);
});

test('a sold key lies in the bucket of its buyer, whatever bucket that is, and names it', async () => {
  const rows = await database.sql<{ buyer: number; bought: number; named: number; key: number }[]>`
    select p.bucket as buyer, a.bucket as bought, s.key_bucket as named, k.bucket as key from sold_keys s
    join ledger_accounts p on p.id = s.payer_account join ledger_accounts a on a.id = s.account_id
    join api_keys k on k.lookup = s.key_lookup where not p.house`;
  assert.ok(rows.length >= 5);
  assert.ok(new Set(rows.map(({ buyer }) => buyer)).size > 1);
  for (const { buyer, bought, named, key } of rows)
    assert.deepEqual([bought, named, key], [buyer, buyer, buyer]);
  let sold = 0;
  for (const apiKey of seen) {
    const [row] = await database.sql<{ named: number }[]>`
      select key_bucket as named from sold_keys where account_id = ${String(await accountOf(database.sql, apiKey))}`;
    if (row === undefined) continue;
    assert.equal(bucketNamedBy(apiKey), row.named);
    sold += 1;
  }
  assert.ok(sold >= 5);
});

test('the books balance, and say so of no other', async () => {
  await assertBooksClosed(database.patient);
  const broken = async (change: string, back: string) => {
    await database.patient.unsafe(change);
    await assert.rejects(assertBooksClosed(database.patient), { name: 'AssertionError' }, change);
    await database.patient.unsafe(back);
  };
  const one = `(select call_id from sold_keys where granted_at is not null and taken_back_micros is null limit 1)`;
  await broken(
    `create table put_by as select * from sold_keys where call_id = ${one}; delete from sold_keys where call_id in (select call_id from put_by)`,
    'insert into sold_keys select * from put_by; drop table put_by',
  );
  await broken(
    'update trial_credits set moved_from = null, due = false where moved_from is not null',
    'select 1',
  );
});
