/**
 * A card whose owner has said no since is not charged: a charge that waits for the provider is withdrawn when it is not
 * wanted any more, once it is known that nothing was charged.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import Stripe from 'stripe';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, type TestServer } from '../server.fixture.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const INTENTS = '/v1/payment_intents';
const AMEX = '3782 822463 10005';
const MASTERCARD = '5555 5555 5555 4444';

let world: CardWorld;
let replica: TestServer;
let aheadMs = 0;
before(async () => {
  world = await startCardWorld({ nowMs: () => Date.now() + aheadMs });
  replica = await world.open();
});
beforeEach(async () => {
  world.gate(false);
  await world.control('DELETE', '/faults');
});
after(async () => {
  await replica.close();
  await world.stop();
});

function cardsOf({ app }: TestServer) {
  assert(app.cards !== null);
  return app.cards;
}

const charged = async (): Promise<number> => (await world.control('GET', '')).totals.chargedCents;
const fault = (name: string, times: number, delayMs = 0) =>
  world.control('POST', '/faults', { on: 'api', fault: name, method: 'POST', path: INTENTS, times, delayMs });

/** Lets the clocks of both sides go on, and looks at what is due, on two replicas. */
async function later(ms: number): Promise<void> {
  aheadMs += ms;
  await world.control('POST', '/clock', { advanceSeconds: ms / 1_000 });
  await Promise.all([world.settle(), world.settle(replica)]);
}

/** A key whose card is kept, and the payment that it was bought by. */
interface Kept {
  key: string;
  accountId: bigint;
  paymentIntent: string;
}

/** Pays a checkout whose card is kept for a key: a new one unless it is given. */
async function keepCard(autoRecharge: object, key: string | null = null, number?: string): Promise<Kept> {
  const opened = await jsonOf(
    world.post(
      '/api/m2m/credits/checkout/session',
      { amountUsd: 10, email: 'owner@example.com', autoRecharge: { enabled: true, ...autoRecharge } },
      key === null ? {} : { 'x-api-key': key },
    ),
  );
  assert.equal((await world.pay(opened.checkoutUrl, number === undefined ? {} : { number })).status, 303);
  const path = `/api/m2m/credits/checkout/status/${opened.sessionId}?token=${opened.retrievalToken}`;
  let apiKey = key;
  await until('the credit', async () => {
    aheadMs += 2_000;
    const status = await jsonOf(fetch(world.server.url + path));
    apiKey ??= status.apiKey ?? null;
    return status.ready === true;
  });
  assert(apiKey !== null);
  const [order] = await world.database.sql<{ account_id: bigint; payment_intent_id: string }[]>`
    select account_id, payment_intent_id from card_orders where session_id = ${opened.sessionId}`;
  assert(order !== undefined);
  return { key: apiKey, accountId: order.account_id, paymentIntent: order.payment_intent_id };
}

async function spend(key: string): Promise<void> {
  assert.equal((await world.server.call('ping', key)).status, 200);
}

/** A card that is due while the provider is away: its order is open, and nothing was charged. */
async function waiting(number?: string): Promise<Kept> {
  const kept = await keepCard({ thresholdUsd: 9.9, topUpUsd: 10 }, null, number);
  await spend(kept.key);
  await fault('error-before', 2);
  assert.equal(await cardsOf(world.server).recharges.run(), 1);
  assert.equal((await recharge(kept.key)).state, 'charging');
  return kept;
}

async function patch(key: string, autoRecharge: object, to = world.server) {
  const response = await fetch(`${to.url}/api/keys/me`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify({ autoRecharge }),
  });
  assert.equal(response.status, 200);
  return (await jsonOf(response)).autoRecharge;
}

/** Sends money of a payment back, or has it disputed, and has the house hear of it: its messages are of another clock. */
async function goesBack(path: string, payment: { paymentIntent: string; amountCents?: number }) {
  await world.control('POST', path, payment);
  const [order] = await world.database.sql<{ id: string }[]>`
    select id from card_orders where payment_intent_id = ${payment.paymentIntent}`;
  await cardsOf(world.server).reconciler.reconcile(order?.id ?? '');
}

const recharge = async (key: string) => (await world.me(key)).autoRecharge;

async function orderOf(accountId: bigint) {
  const [order] = await world.database.sql<{ id: string; state: number; failure: string | null }[]>`
    select id, state, failure from card_orders where account_id = ${String(accountId)} and kind = 'recharge'
    order by created_at limit 1`;
  assert(order !== undefined);
  return order;
}

/** What happens while a charge waits, and what a card is charged for afterwards, in cents. */
const CASES: [name: string, act: (kept: Kept) => Promise<unknown>, afterwards: number][] = [
  ['its owner switches it off', ({ key }) => patch(key, { enabled: false }), 0],
  [
    'the only key is revoked',
    ({ key }) =>
      fetch(`${world.server.url}/api/keys/me`, { method: 'DELETE', headers: { 'x-api-key': key } }),
    0,
  ],
  [
    'the only key expires',
    ({ accountId }) =>
      world.database.sql`
        update api_keys set expires_at = ${new Date(Date.now() + aheadMs).toISOString()}
        where account_id = ${String(accountId)}`,
    0,
  ],
  [
    'the operator freezes the account',
    ({ accountId }) =>
      world.database.sql.begin((transaction) =>
        world.server.app.keys.freeze(transaction, accountId, 'operator', 'a test'),
      ),
    0,
  ],
  [
    'a part of its payment is refunded',
    ({ paymentIntent }) => goesBack('/refunds', { paymentIntent, amountCents: 100 }),
    0,
  ],
  ['its payment is disputed', ({ paymentIntent }) => goesBack('/disputes', { paymentIntent }), 0],
  // 10 USD are paid for the new card to be kept; what it refills is not asked for yet.
  ['another card is kept', ({ key }) => keepCard({ thresholdUsd: 5, topUpUsd: 10 }, key, MASTERCARD), 1_000],
  ['the amount is lowered', ({ key }) => patch(key, { thresholdUsd: 5, topUpUsd: 5 }), 0],
];

for (const [name, act, afterwards] of CASES) {
  test(`while a charge waits for the provider ${name}: the card is not charged, and the order ends`, async () => {
    // A card that is disputed pays nowhere from then on.
    const kept = await waiting(name.includes('disputed') ? AMEX : undefined);
    const before = await charged();
    await act(kept);
    await later(HOUR_MS);
    await later(23 * HOUR_MS);
    assert.equal((await charged()) - before, afterwards);
    const { state, failure } = await orderOf(kept.accountId);
    assert.deepEqual([state, failure], [2, 'withdrawn']);
    await world.assertBooks();
  });
}

test('while a charge waits the amount is lowered and raised again: the order’s own amount is charged, once', async () => {
  const kept = await waiting();
  const before = await charged();
  await patch(kept.key, { thresholdUsd: 5, topUpUsd: 5 });
  await patch(kept.key, { thresholdUsd: 9.9, topUpUsd: 10 });
  await later(HOUR_MS);
  assert.equal((await charged()) - before, 1_000);
  assert.equal((await orderOf(kept.accountId)).state, 1);
});

test('a key that is rotated is as good as before; one that is frozen waits, and counts no decline', async () => {
  const kept = await waiting();
  const before = await charged();
  const rotated = await world.post('/api/keys/me/rotate', {}, { 'x-api-key': kept.key });
  assert.equal(rotated.status, 200);
  await later(HOUR_MS);
  assert.equal((await charged()) - before, 1_000);

  const frozen = await waiting();
  const { keys } = world.server.app;
  const { sql } = world.database;
  await sql.begin((transaction) => keys.freeze(transaction, frozen.accountId, 'operator', 'a test'));
  await later(HOUR_MS);
  assert.equal(await cardsOf(world.server).recharges.run(), 0);
  const { state, waitingFor } = await recharge(frozen.key);
  assert.deepEqual([state, waitingFor], ['due', 'thaw']);
  await sql.begin((transaction) => keys.thaw(transaction, frozen.accountId, 'operator'));
  await later(11 * MINUTE_MS);
  assert.equal(await cardsOf(world.server).recharges.run(), 1);
  const [row] = await sql<{ soft_failures: number }[]>`
    select soft_failures from auto_recharges where account_id = ${String(frozen.accountId)}`;
  assert.equal(row?.soft_failures, 0);
  assert.equal((await charged()) - before, 3_000, 'both, and the other key that was bought');
});

test('"off" says what is under way; what the provider has done is credited all the same', async () => {
  const kept = await keepCard({ thresholdUsd: 9.9, topUpUsd: 10 });
  await spend(kept.key);
  await fault('never-after', 2);
  const under = cardsOf(world.server).recharges.run();
  const before = await charged();
  await until('the charge', async () => (await charged()) > before);
  const off = await patch(kept.key, { enabled: false });
  assert.deepEqual([off.state, off.chargeUnderWay.amountUsd], ['off', '10.000000']);
  assert.match(off.chargeUnderWay.note, /may still come/);
  assert.notEqual(off.chargeUnderWay.askedAt, null);
  await under;
  await later(HOUR_MS);
  const { balanceUsd, autoRecharge } = await world.me(kept.key);
  assert.deepEqual([balanceUsd, autoRecharge.state], ['19.750000', 'off']);
  assert.equal(autoRecharge.chargeUnderWay, null);
  assert.equal((await orderOf(kept.accountId)).state, 1);
  await world.assertBooks();
});

test('the provider charged and said no, and the owner says no: what was charged is credited, nothing more is', async () => {
  const kept = await keepCard({ thresholdUsd: 9.9, topUpUsd: 10 });
  await spend(kept.key);
  const before = await charged();
  await fault('refuse-after', 2);
  // The look that would find the charge fails as well.
  await world.control('POST', '/faults', {
    on: 'api',
    fault: 'error-before',
    method: 'GET',
    path: INTENTS,
    times: 2,
  });
  await cardsOf(world.server).recharges.run();
  await patch(kept.key, { enabled: false });
  await later(HOUR_MS);
  assert.equal((await charged()) - before, 1_000);
  assert.equal((await world.me(kept.key)).balanceUsd, '19.750000');
  await world.assertBooks();
});

test('what was asked for a moment ago may still be on its way: the order ends two minutes after', async () => {
  const kept = await waiting();
  await patch(kept.key, { enabled: false });
  const { id } = await orderOf(kept.accountId);
  const { reconciler } = cardsOf(replica);
  aheadMs += MINUTE_MS;
  assert.equal((await reconciler.reconcile(id))?.state, 'open');
  aheadMs += MINUTE_MS;
  const ended = await reconciler.reconcile(id);
  assert.deepEqual([ended?.state, ended?.failure], ['over', 'withdrawn']);
});

/** An order that `run` has opened and nobody has begun to charge, since the process that opened it died. */
async function openedByADeadProcess(): Promise<Kept & { orderId: string }> {
  const kept = await keepCard({ thresholdUsd: 9.9, topUpUsd: 10 });
  await spend(kept.key);
  const orderId = randomUUID();
  await world.database.sql.begin(async (transaction) => {
    await transaction`
      insert into card_orders (id, kind, amount_micros, credit_micros, account_id, customer_id, payment_method_id,
                               created_at, expires_at, next_at)
      select ${orderId}, 'recharge', top_up_micros, top_up_micros, account_id, customer_id, payment_method_id,
             changed_at, changed_at + interval '23 hours', changed_at
      from auto_recharges where account_id = ${String(kept.accountId)}`;
    await transaction`
      update auto_recharges set state = 2, order_id = ${orderId} where account_id = ${String(kept.accountId)}`;
  });
  return { ...kept, orderId };
}

test('switched off in the same moment as another replica looks: it waits for the owner’s word', async () => {
  const { accountId, orderId } = await openedByADeadProcess();
  const before = await charged();
  const { sql } = world.database;
  let looking: Promise<unknown> = Promise.resolve();
  await sql.begin(async (transaction) => {
    await transaction`
      update auto_recharges set state = 3, off_reason = 'owner' where account_id = ${String(accountId)}`;
    looking = cardsOf(replica).reconciler.reconcile(orderId);
    await until('the look to wait', async () => {
      const waits = await sql`
        select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%auto_recharges%for share%'`;
      return waits.length > 0;
    });
  });
  await looking;
  assert.equal((await charged()) - before, 0);
  assert.equal((await orderOf(accountId)).failure, 'withdrawn');
});

test('"off" and looks on two replicas at once: what "off" says will not come never comes', async () => {
  for (let round = 0; round < 8; round++) {
    const { key, accountId, orderId } = await openedByADeadProcess();
    const before = await charged();
    const looks = [world.server, replica].map((to) => cardsOf(to).reconciler.reconcile(orderId));
    const [off] = await Promise.all([patch(key, { enabled: false }, replica), ...looks]);
    await later(HOUR_MS);
    const cents = (await charged()) - before;
    const { state, failure } = await orderOf(accountId);
    assert.deepEqual([state, failure], cents === 0 ? [2, 'withdrawn'] : [1, null], `round ${round}`);
    const mayCome = off.lastChargedAt !== null || off.chargeUnderWay?.askedAt != null;
    assert(cents === 0 || (cents === 1_000 && mayCome), `round ${round}: ${JSON.stringify(off)}`);
  }
  await world.assertBooks();
});

test('a purchase of an agent that waits: not charged once the account is frozen, its key revoked, or its card disputed', async () => {
  const { hostname, port } = new URL(world.provider.url);
  const { CARD_PROVIDER_KEY: secretKey } = world.environment;
  const library = new Stripe(secretKey, { host: hostname, port, protocol: 'http', telemetry: false });
  const cases: [string, (kept: Kept) => Promise<unknown>][] = [
    ['visa', CASES[1]?.[1] ?? assert.fail()],
    ['visa', CASES[3]?.[1] ?? assert.fail()],
    // By somebody else, with the same card.
    [
      'mastercard',
      async () => {
        const { paymentIntent } = await keepCard({}, null, MASTERCARD);
        await goesBack('/disputes', { paymentIntent });
      },
    ],
  ];
  for (const [token, act] of cases) {
    const kept = await keepCard({ thresholdUsd: 1, topUpUsd: 5 });
    const method = await library.paymentMethods.create({ type: 'card', card: { token: `tok_${token}` } });
    await fault('error-before', 2);
    const asked = { paymentMethodId: method.id, amountUsd: 25, idempotencyKey: randomUUID() };
    const unknown = await world.post('/api/m2m/credits/purchase', asked, { 'x-api-key': kept.key });
    assert.equal(unknown.status, 503, await unknown.text());
    await act(kept);
    for (let minutes = 0; minutes < 14; minutes += 3) await later(3 * MINUTE_MS);
    const [order] = await world.database.sql<{ state: number; failure: string | null }[]>`
      select state, failure from card_orders where kind = 'purchase' order by created_at desc limit 1`;
    assert.deepEqual([order?.state, order?.failure], [2, 'withdrawn'], token);
    await world.database.sql`delete from card_orders where kind = 'purchase'`;
  }
  await world.assertBooks();
});
