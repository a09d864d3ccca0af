/** Balances that refill themselves, end to end: a checkout keeps a card, paid calls use the balance up, the card pays. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Stripe from 'stripe';
import type { AutoRecharges } from '../../../../packages/core/src/cards/recharge/auto-recharge.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { jsonOf, type TestServer } from '../server.fixture.ts';

const HOUR_MS = 3_600_000;
const PATIENCE_MS = 20_000;
const OWNER = 'owner-of-the-card@example.com';

let world: CardWorld;
let replica: TestServer;
let aheadMs = 0;
before(async () => {
  world = await startCardWorld({
    nowMs: () => Date.now() + aheadMs,
    // Nothing listens there: what would be sent waits in its table.
    environment: { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'credits@farebox.test' },
  });
  replica = await world.open();
});
beforeEach(async () => {
  world.gate(true);
  await world.control('DELETE', '/faults');
});
after(async () => {
  const logged = [...world.server.log, ...replica.log].join('\n');
  await replica.close();
  await world.stop();
  assert(!logged.includes(OWNER), 'no address is logged');
});

const run = (server: TestServer = world.server): ReturnType<AutoRecharges['run']> => {
  const { cards } = server.app;
  assert(cards !== null);
  return cards.recharges.run();
};

/** Waits until `look` finds something. */
async function until<T>(what: string, look: () => Promise<T>): Promise<T> {
  const endMs = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    assert(Date.now() < endMs, `still waiting for ${what}`);
    await sleep(20);
  }
}

/** Lets the clocks of both sides go on. */
async function later(ms: number): Promise<void> {
  aheadMs += ms;
  await world.control('POST', '/clock', { advanceSeconds: ms / 1_000 });
}

/** Buys a key on the provider's page, with a card that is kept. */
async function buyKey(
  amountUsd: number,
  autoRecharge: object,
  number?: string,
): Promise<{ key: string; accountId: bigint }> {
  const opened = await jsonOf(
    world.post('/api/m2m/credits/checkout/session', {
      amountUsd,
      email: OWNER,
      autoRecharge: { enabled: true, ...autoRecharge },
    }),
  );
  assert.equal((await world.pay(opened.checkoutUrl, number === undefined ? {} : { number })).status, 303);
  const address = `${world.server.url}/api/m2m/credits/checkout/status/${opened.sessionId}`;
  const { apiKey } = await until('the key', async () => {
    const status = await jsonOf(fetch(`${address}?token=${opened.retrievalToken}`));
    return status.keyReady && status;
  });
  const known = await world.server.app.keys.find(apiKey);
  assert(known !== null);
  return { key: apiKey, accountId: known.accountId };
}

const spend = (key: string, calls: number, servers: TestServer[] = [world.server]) =>
  Promise.all(
    Array.from({ length: calls }, async (_, index) => {
      const response = await (servers[index % servers.length] ?? world.server).call('ping', key);
      assert.equal(response.status, 200);
    }),
  );

function library(): Stripe {
  const { hostname, port } = new URL(world.provider.url);
  const { CARD_PROVIDER_KEY: secretKey } = world.environment;
  return new Stripe(secretKey, { host: hostname, port, protocol: 'http', telemetry: false });
}

/** The provider's records of an account's recharges, newest first. */
async function chargesOf(accountId: bigint): Promise<Stripe.PaymentIntent[]> {
  const rows = await world.database.sql<{ id: string; customer_id: string }[]>`
    select id, customer_id from card_orders where account_id = ${String(accountId)} and kind = 'recharge'`;
  const [first] = rows;
  if (first === undefined) return [];
  const { data } = await library().paymentIntents.list({ customer: first.customer_id, limit: 100 });
  return data.filter(({ metadata }) => rows.some(({ id }) => id === metadata.order));
}

const paidOf = async (accountId: bigint) =>
  (await chargesOf(accountId)).filter(({ status }) => status === 'succeeded');

/** The kept card becomes one that behaves otherwise from now on. */
async function changeCard(accountId: bigint, token: string): Promise<void> {
  const [row] = await world.database.sql<{ customer_id: string }[]>`
    select customer_id from auto_recharges where account_id = ${String(accountId)}`;
  assert(row !== undefined);
  const method = await library().paymentMethods.attach(token, { customer: row.customer_id });
  await world.database.sql`
    update auto_recharges set payment_method_id = ${method.id} where account_id = ${String(accountId)}`;
}

async function subjectsTo(address: string): Promise<string[]> {
  const rows = await world.database.sql<{ subject: string }[]>`
    select subject from mails where recipient = ${address} order by created_at`;
  await world.database.sql`delete from mails`;
  return rows.map(({ subject }) => subject);
}

const patch = (key: string, autoRecharge: unknown) =>
  fetch(`${world.server.url}/api/keys/me`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify({ autoRecharge }),
  });

const recharge = async (key: string) => (await world.me(key)).autoRecharge;

test('a hundred paid calls across the threshold at once, with two replicas and their jobs: one charge', async () => {
  const { key, accountId } = await buyKey(100, { thresholdUsd: 90 });
  await changeCard(accountId, 'pm_card_mastercard');
  const shown = await recharge(key);
  assert.deepEqual(shown, {
    enabled: true,
    state: 'idle',
    thresholdUsd: '90.000000',
    topUpUsd: '100.000000',
    agreed: { thresholdUsd: '90.000000', topUpUsd: '100.000000', perDayUsd: '300.000000' },
    card: 'visa 4242',
    email: 'o***@example.com',
    alsoTold: [],
    lastChargedAt: null,
    chargesToday: 0,
    maxChargesPerDay: 3,
    nextAttemptAt: null,
    waitingFor: null,
    disabledReason: null,
    chargeUnderWay: null,
  });
  let isSpending = true;
  const job = async (server: TestServer) => {
    let begun = 0;
    while (isSpending) begun += await run(server);
    return begun + (await run(server));
  };
  const jobs = Promise.all([job(world.server), job(replica)]);
  await spend(key, 100, [world.server, replica]);
  isSpending = false;
  const begun = await jobs;
  assert.equal(begun[0] + begun[1], 1);
  const [charge, ...more] = await chargesOf(accountId);
  assert.equal(more.length, 0);
  assert.deepEqual([charge?.amount, charge?.currency, charge?.status], [10_000, 'usd', 'succeeded']);
  // Each order keeps the card that paid it, as the provider's charge has it, and no more of its number.
  const orders = await world.database.sql<{ kind: string; card: string; whole: string }[]>`
    select kind, card_brand || ' ' || card_last4 as card, to_jsonb(o)::text as whole from card_orders o
    where account_id = ${String(accountId)} order by created_at`;
  assert.deepEqual(
    orders.map(({ kind, card }) => [kind, card]),
    [
      ['checkout', 'visa 4242'],
      ['recharge', 'mastercard 4444'],
    ],
  );
  for (const { whole } of orders) assert.doesNotMatch(whole, /424242|555555|12\/34/);
  const me = await world.me(key);
  // 100 bought, 100 calls of 0.25, 100 recharged.
  assert.equal(me.balanceUsd, '175.000000');
  assert.deepEqual([me.autoRecharge.state, me.autoRecharge.chargesToday], ['idle', 1]);
  assert.deepEqual(await subjectsTo(OWNER), [
    'Auto-recharge is on',
    'Your balance was topped up by 100.00 USD',
  ]);
  await world.assertBooks();
});

test('a dispute of any of its payments switches it off, and the card is not kept', async () => {
  const { key, accountId } = await buyKey(5, { thresholdUsd: 4.9 }, '5555 5555 5555 4444');
  await spend(key, 1);
  assert.equal(await run(), 1);
  const [charge] = await chargesOf(accountId);
  await world.control('POST', '/disputes', { charge: charge?.latest_charge });
  await until('the dispute to arrive', async () => {
    await world.settle();
    return (await recharge(key)).enabled === false;
  });
  const { disabledReason, card } = await recharge(key);
  assert.deepEqual([disabledReason, card], ['dispute', null]);
  assert.equal(await run(), 0);
  await world.assertBooks();
});

for (const fault of ['drop-after', 'never-after'] as const) {
  test(`${fault}: an outcome that nobody knows is found, and not paid for twice`, async () => {
    const { key, accountId } = await buyKey(5, { thresholdUsd: 4.9 });
    await spend(key, 1);
    // Nor does the provider's own message tell.
    world.gate(false);
    await world.control('POST', '/faults', {
      on: 'api',
      fault,
      method: 'POST',
      path: '/v1/payment_intents',
      times: 2,
    });
    const under = run();
    await until('the charge at the provider', async () => (await paidOf(accountId)).length === 1);
    // Meanwhile nobody else begins one, and calls go on.
    assert.equal(await run(replica), 0);
    await spend(key, 1);
    assert.equal(await under, 1);
    const waiting = await world.me(key);
    assert.deepEqual([waiting.autoRecharge.state, waiting.balanceUsd], ['charging', '4.500000']);
    await later(HOUR_MS);
    assert.equal(await run(), 0);
    await Promise.all([world.settle(), world.settle(replica)]);
    const found = await world.me(key);
    assert.deepEqual([found.autoRecharge.state, found.balanceUsd], ['idle', '9.500000']);
    assert.equal((await chargesOf(accountId)).length, 1);
    await world.assertBooks();
  });
}

test('refuse-after: a provider that charges and says no is looked at, and not asked again', async () => {
  const { key, accountId } = await buyKey(5, { thresholdUsd: 4.9 });
  await spend(key, 1);
  world.gate(false);
  await world.control('POST', '/faults', {
    on: 'api',
    fault: 'refuse-after',
    method: 'POST',
    path: '/v1/payment_intents',
    times: 2,
  });
  assert.equal(await run(), 1);
  const { autoRecharge, balanceUsd } = await world.me(key);
  assert.deepEqual([autoRecharge.state, balanceUsd], ['idle', '9.750000']);
  await later(HOUR_MS);
  assert.equal(await run(), 0);
  await world.settle();
  assert.equal((await paidOf(accountId)).length, 1);
  await world.assertBooks();
});

test('a provider that is away charges nobody; the sweeper has it charged when it is back', async () => {
  const { key, accountId } = await buyKey(5, { thresholdUsd: 4.9 });
  await spend(key, 1);
  await world.control('POST', '/faults', {
    on: 'api',
    fault: 'error-before',
    method: 'POST',
    path: '/v1/payment_intents',
    times: 2,
  });
  assert.equal(await run(), 1);
  assert.equal((await chargesOf(accountId)).length, 0);
  assert.equal((await recharge(key)).state, 'charging');
  await spend(key, 1);
  await later(HOUR_MS);
  await world.settle();
  assert.equal((await world.me(key)).balanceUsd, '9.500000');
  assert.equal((await paidOf(accountId)).length, 1);
});

test('a process that dies between opening the order and charging it: another one charges, once', async () => {
  const { key, accountId } = await buyKey(5, { thresholdUsd: 4.9 });
  await spend(key, 1);
  // What `run` commits before it asks the provider for anything.
  const orderId = '0199d1b0-0000-7000-8000-000000000001';
  await world.database.sql.begin(async (transaction) => {
    await transaction`
      insert into card_orders (id, kind, amount_micros, credit_micros, account_id, customer_id, payment_method_id,
                               created_at, expires_at, next_at)
      select ${orderId}, 'recharge', top_up_micros, top_up_micros, account_id, customer_id, payment_method_id,
             changed_at, changed_at + interval '23 hours', changed_at
      from auto_recharges where account_id = ${String(accountId)}`;
    await transaction`
      update auto_recharges set state = 2, order_id = ${orderId} where account_id = ${String(accountId)}`;
  });
  assert.equal(await run(), 0);
  await Promise.all([world.settle(), world.settle(replica)]);
  await world.settle();
  assert.equal((await world.me(key)).balanceUsd, '9.750000');
  assert.equal((await chargesOf(accountId)).length, 1);
  assert.equal((await recharge(key)).state, 'idle');
});

test('a card that declines by now: calls go on, attempts are spaced, and then it is off with the reason', async () => {
  const { key, accountId } = await buyKey(5, { thresholdUsd: 4.9 });
  await changeCard(accountId, 'pm_card_chargeCustomerFail');
  await spend(key, 1);
  await subjectsTo(OWNER);
  for (const hours of [1, 6, 24]) {
    assert.equal(await run(), 1);
    assert.deepEqual([(await recharge(key)).state, (await recharge(key)).waitingFor], ['due', 'decline']);
    await spend(key, 1);
    assert.equal(await run(), 0);
    await later(hours * HOUR_MS);
  }
  assert.equal(await run(), 1);
  const { enabled, disabledReason, card } = await recharge(key);
  assert.deepEqual([enabled, disabledReason, card], [false, 'generic_decline', 'visa 4242']);
  assert.equal((await chargesOf(accountId)).length, 4);
  assert.equal((await paidOf(accountId)).length, 0);
  assert.deepEqual(await subjectsTo(OWNER), [
    ...Array.from({ length: 3 }, () => 'Your card was declined: we will try again'),
    'Auto-recharge is off',
  ]);
  assert.equal((await world.me(key)).balanceUsd, '4.000000');
  await world.assertBooks();
});

test('a card whose issuer wants to see its owner: off at once, on again by its owner alone', async () => {
  const { key, accountId } = await buyKey(5, { thresholdUsd: 4.9, topUpUsd: 10 });
  await changeCard(accountId, 'pm_card_authenticationRequired');
  await spend(key, 1);
  assert.equal(await run(), 1);
  assert.deepEqual(
    [(await recharge(key)).enabled, (await recharge(key)).disabledReason],
    [false, 'authentication_required'],
  );
  await later(48 * HOUR_MS);
  await spend(key, 1);
  assert.equal(await run(), 0);
  await changeCard(accountId, 'pm_card_visa');
  const changed = await patch(key, { enabled: true, topUpUsd: '7.50', thresholdUsd: 4.9, email: null });
  assert.equal(changed.status, 200);
  const { autoRecharge } = await jsonOf(changed);
  assert.deepEqual(
    [autoRecharge.enabled, autoRecharge.state, autoRecharge.topUpUsd, autoRecharge.email],
    [true, 'due', '7.500000', null],
  );
  assert.equal(await run(), 1);
  assert.equal((await world.me(key)).balanceUsd, '12.000000');
});

test('a lost card is given up for good', async () => {
  const { key, accountId } = await buyKey(5, { thresholdUsd: 4.9 });
  await changeCard(accountId, 'pm_card_radarBlock');
  await spend(key, 1);
  assert.equal(await run(), 1);
  const { enabled, disabledReason, card } = await recharge(key);
  assert.deepEqual([enabled, disabledReason, card], [false, 'fraudulent', null]);
  const refused = await patch(key, { enabled: true });
  assert.equal(refused.status, 409);
  assert.equal((await jsonOf(refused)).code, 'NO_SAVED_CARD');
});

test('two changes by whoever found the key: the card is not charged more than its owner agreed to, who hears of it', async () => {
  const { key, accountId } = await buyKey(5, { thresholdUsd: 2 });
  await subjectsTo(OWNER);
  assert.equal((await patch(key, { email: null })).status, 200);
  const raised = await patch(key, { thresholdUsd: 500, topUpUsd: 500 });
  const { code, fields, how } = await jsonOf(raised);
  assert.deepEqual([raised.status, code, fields.length], [409, 'RECHARGE_NOT_AGREED', 2]);
  assert.match(how, /checkout\/session/);
  await spend(key, 13);
  assert.equal(await run(), 1);
  assert.deepEqual(
    (await paidOf(accountId)).map(({ amount }) => amount),
    [500],
  );
  assert.deepEqual(await subjectsTo(OWNER), [
    'Auto-recharge mail goes to another address now',
    'Your card was charged 5.00 USD',
  ]);
  for (const name of ['a', 'b', 'c', 'd']) await patch(key, { email: `${name}@example.com` });
  await patch(key, { email: 'e@example.com' });
  const often = await patch(key, { email: 'f@example.com' });
  assert.deepEqual([often.status, (await jsonOf(often)).code], [409, 'ADDRESS_MOVED_TOO_OFTEN']);
});

test('the payment page says what is agreed to by paying', async () => {
  const opened = await jsonOf(
    world.post('/api/m2m/credits/checkout/session', {
      amountUsd: 5,
      autoRecharge: { enabled: true, thresholdUsd: 20, topUpUsd: 100 },
    }),
  );
  const page = await (await fetch(opened.checkoutUrl)).text();
  assert.match(
    page,
    /charged 100\.00 USD whenever the prepaid balance falls below 20\.00 USD: at most 3 times and 300\.00 USD in 24 hours/,
  );
});

test('what is wrong with a request is said with its field; a key without a card learns how to get one', async () => {
  const { key } = await buyKey(5, {});
  for (const [field, wrong] of [
    ['topUpUsd', { topUpUsd: 4 }],
    ['topUpUsd', { topUpUsd: '10.001' }],
    ['thresholdUsd', { thresholdUsd: 0 }],
    ['thresholdUsd', { thresholdUsd: 5.01 }],
    ['email', { email: 'nobody' }],
  ] as const) {
    const refused = await patch(key, wrong);
    const { code, fields, charged } = await jsonOf(refused);
    assert.deepEqual(
      [refused.status, code, fields[0].field, charged],
      [400, 'INVALID_AUTO_RECHARGE', `autoRecharge.${field}`, false],
    );
  }
  assert.deepEqual((await recharge(key)).thresholdUsd, '5.000000');
  const opened = await world.post('/api/m2m/credits/checkout/session', {
    amountUsd: 5,
    autoRecharge: { enabled: true, thresholdUsd: 6 },
  });
  assert.deepEqual([opened.status, (await jsonOf(opened)).code], [400, 'INVALID_AUTO_RECHARGE']);

  // Other changes of a key do not speak of it.
  const named = await fetch(`${world.server.url}/api/keys/me`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify({ label: 'mine' }),
  });
  assert.deepEqual([named.status, (await jsonOf(named)).autoRecharge.enabled], [200, true]);

  const without = await world.server.key('5');
  const { enabled, how } = await recharge(without);
  assert.equal(enabled, false);
  assert.match(how, /checkout\/session/);
  const refused = await patch(without, { enabled: true });
  assert.deepEqual([refused.status, (await jsonOf(refused)).code], [409, 'NO_SAVED_CARD']);
});

test('a card that is disputed on one account is forgotten on the others too, and charged on none', async () => {
  const disputed = await buyKey(5, { thresholdUsd: 4.9 });
  const other = await buyKey(5, { thresholdUsd: 4.9 });
  const waiting = await buyKey(5, { thresholdUsd: 4.9 });
  const unconcerned = await buyKey(5, { thresholdUsd: 4.9 }, '3782 822463 10005');
  // Its balance never falls: only the job comes to it.
  const idle = await buyKey(5, { thresholdUsd: 4.9 });
  // One of the others has a charge under way that the provider has not heard of.
  await spend(waiting.key, 1);
  await world.control('POST', '/faults', {
    on: 'api',
    fault: 'error-before',
    method: 'POST',
    path: '/v1/payment_intents',
    times: 2,
  });
  assert.equal(await run(), 1);
  const [payment] = await world.database.sql<{ id: string; payment_intent_id: string }[]>`
    select id, payment_intent_id from card_orders where account_id = ${String(disputed.accountId)}`;
  assert(payment !== undefined);
  await world.control('POST', '/disputes', { paymentIntent: payment.payment_intent_id });
  const { cards } = world.server.app;
  assert(cards !== null && replica.app.cards !== null);
  await cards.reconciler.reconcile(payment.id);
  // From the dispute's own commit on, before any job has been at the other accounts.
  await later(HOUR_MS);
  await world.settle();
  for (const { key } of [other, unconcerned]) await spend(key, 1);
  assert.equal(await run(), 1);
  const chargedOf = async ({ accountId }: { accountId: bigint }) => (await paidOf(accountId)).length;
  assert.deepEqual(await Promise.all([disputed, other, waiting, unconcerned].map(chargedOf)), [0, 0, 0, 1]);
  // Two replicas at once; one that was put off by a crash in between would do the same.
  await Promise.all([cards.recharges.forgetDisputed(), replica.app.cards.recharges.forgetDisputed()]);
  for (const { key } of [disputed, other, waiting, idle]) {
    const { enabled, disabledReason, card } = await recharge(key);
    assert.deepEqual([enabled, disabledReason, card], [false, 'dispute', null]);
    assert.equal((await patch(key, { enabled: true })).status, 409);
  }
  assert.equal((await recharge(unconcerned.key)).enabled, true);
  const [marked] = await world.database.sql`select 1 from card_orders where forget_card_since is not null`;
  assert.equal(marked, undefined);
  await world.assertBooks();
});
