/** A person pays on the provider's page, and their agent fetches the key: whatever comes first, twice, or never. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

let world: CardWorld;
let aheadMs = 0;
before(async () => {
  world = await startCardWorld({ nowMs: () => Date.now() + aheadMs });
});
after(() => world.stop());
beforeEach(async () => {
  aheadMs = 0;
  world.gate(true);
  await world.control('DELETE', '/faults');
});

/** Lets time pass, here and at the provider. */
async function advance(ms: number): Promise<void> {
  aheadMs += ms;
  await world.control('POST', '/clock', { advanceSeconds: ms / 1_000 });
}

const CHECKOUT = '/api/m2m/credits/checkout';

async function open(body: object = { amountUsd: 10 }) {
  const response = await world.post(`${CHECKOUT}/session`, body);
  const opened = await jsonOf(response);
  assert.equal(response.status, 200, JSON.stringify(opened));
  return opened as Record<'sessionId' | 'checkoutUrl' | 'retrievalToken', string> & {
    autoRecharge: unknown;
    dailyLimit: unknown;
  };
}

function statusOf(session: { sessionId: string; retrievalToken: string }, to = world.server) {
  return fetch(`${to.url}${CHECKOUT}/status/${session.sessionId}?token=${session.retrievalToken}`);
}

/** Polls as an agent does, until there is something else to say than that nobody has paid. */
async function polled(session: { sessionId: string; retrievalToken: string }) {
  for (;;) {
    const got = await statusOf(session);
    const ready = await jsonOf(got);
    if (ready.status !== 'pending') return { got, ready };
  }
}

test('pay, and the agent that waits gets one key that works', async () => {
  const session = await open({ amountUsd: 10, email: 'person@example.com', keyName: 'my agent' });
  assert.match(session.sessionId, /^cs_/);
  assert.match(session.retrievalToken, /^[0-9a-f]{32}$/);
  const waiting = await jsonOf(statusOf(session));
  assert.deepEqual([waiting.status, waiting.keyReady, waiting.apiKey], ['pending', false, undefined]);

  const paid = await world.pay(session.checkoutUrl);
  assert.equal(paid.status, 303);
  const back = paid.headers.get('location') ?? '';
  assert.match(back, /\/credits\/return\?session=cs_/);
  assert(!back.includes(session.retrievalToken), 'the token stands in no address of the browser');

  const { got, ready } = await polled(session);
  assert.equal(got.headers.get('cache-control'), 'no-store');
  assert.deepEqual(
    [ready.status, ready.keyReady, ready.creditsAdded, ready.tier],
    ['paid', true, 10, 'Starter'],
  );
  assert.match(ready.apiKey, /^fbx_live_[0-9a-f]{64}$/);
  assert.equal(ready.keyPrefix, ready.apiKey.slice(0, 12));
  const me = await world.me(ready.apiKey);
  assert.deepEqual([me.balanceUsd, me.kind, me.label], ['10.000000', 'paid', 'my agent']);
  // As it was told before the payment: what is paid on the page can be spent at once.
  assert.deepEqual([session.dailyLimit, me.caps.perDayUsd], [null, null]);

  // The answer may have been lost: until the key is used it is told again, the same.
  const header = { 'x-retrieval-token': session.retrievalToken };
  const again = await fetch(`${world.server.url}${CHECKOUT}/status/${session.sessionId}`, {
    headers: header,
  });
  assert.equal((await jsonOf(again)).apiKey, ready.apiKey);
  assert.equal((await world.server.call('ping', ready.apiKey)).status, 200);
  const after = await jsonOf(statusOf(session));
  assert.deepEqual([after.status, after.keyReady, after.apiKey], ['delivered', false, undefined]);
  await world.assertBooks();
});

// The provider's clock, which others below set ahead, is still ours.
test('a network has sixty open at most, whichever replica it asks, and however many it asks for at once', async (t) => {
  const { sql } = world.database;
  const other = await world.open();
  t.after(() => other.close());
  const ask = (to = world.server, address = '10.200.0.7') =>
    world.post(`${CHECKOUT}/session`, { amountUsd: 10 }, { 'x-forwarded-for': address }, to);
  const { sessionId } = await jsonOf(ask());
  // As 58 others that nobody has paid yet; the sweeper looks at them when they end.
  await sql`
    insert into card_orders (id, kind, amount_micros, credit_micros, token_digest, address_digest, created_at, expires_at, next_at)
    select gen_random_uuid(), kind, amount_micros, credit_micros, token_digest, address_digest, created_at, expires_at, expires_at
    from card_orders, generate_series(1, 58) where session_id = ${sessionId}`;
  const atOnce = await Promise.all([ask(), ask(other), ask(), ask(other)]);
  assert.deepEqual(atOnce.map(({ status }) => status).sort(), [200, 429, 429, 429]);
  for (const refused of atOnce.filter(({ status }) => status === 429)) {
    const { limit, retryAfter, charged, error } = await jsonOf(refused);
    assert.deepEqual([error, limit, charged], ['RATE_LIMITED', 'checkouts_per_network', false]);
    assert(retryAfter > 3_000 && retryAfter <= 3_600, `${retryAfter}`);
    assert.equal(refused.headers.get('retry-after'), String(retryAfter));
  }
  assert.equal((await ask(other, '10.200.1.7')).status, 200, 'another network');
  await sql`update card_orders set state = 2, next_at = null where session_id = ${sessionId}`;
  assert.equal((await ask()).status, 200, 'one has ended');
});

test('of a payer who was erased before the payment was heard of, no card is written down', async () => {
  const session = await open({ amountUsd: 5 });
  const { sql } = world.database;
  await sql`update card_orders set erased_at = now() where session_id = ${session.sessionId}`;
  await world.pay(session.checkoutUrl);
  await polled(session);
  const [order] =
    await sql`select state, card_brand, card_last4 from card_orders where session_id = ${session.sessionId}`;
  assert.deepEqual(order, { state: 1, card_brand: null, card_last4: null });
});

test('a key that is never used is told for two minutes, then no more', async () => {
  const session = await open({ amountUsd: 5 });
  await world.pay(session.checkoutUrl);
  const first = (await polled(session)).ready;
  await advance(100_000);
  assert.equal((await jsonOf(statusOf(session))).apiKey, first.apiKey);
  await advance(30_000);
  assert.equal((await jsonOf(statusOf(session))).status, 'delivered');
});

test('the message, a poll and the sweeper: one is enough, all at once grant once', async () => {
  let before = 0;
  for (const [way, fulfil] of [
    ['message', async () => void (await until('the message', async () => (await paidOrders()) > before))],
    [
      'poll',
      async (session: Awaited<ReturnType<typeof open>>) => void (await statusOf(session).then(jsonOf)),
    ],
    [
      'sweeper',
      async () => {
        await advance(6 * 60_000);
        await world.settle();
      },
    ],
  ] as const) {
    world.gate(way === 'message');
    before = await paidOrders();
    const session = await open();
    await world.pay(session.checkoutUrl);
    await fulfil(session);
    assert.equal(await paidOrders(), before + 1, way);
    world.gate(true);
    const other = await world.open();
    const answers = await Promise.all(
      [world.server, other, world.server, other].map((to) => jsonOf(statusOf(session, to))),
    );
    assert.equal(new Set(answers.map(({ apiKey }) => apiKey)).size, 1, JSON.stringify(answers));
    await Promise.all([world.settle(), world.settle(other)]);
    assert.equal((await world.me(answers[0].apiKey)).balanceUsd, '10.000000', way);
    await other.close();
  }
  await world.assertBooks();
});

async function paidOrders(): Promise<number> {
  const [row] = await world.database.sql<{ paid: number }[]>`
    select count(*)::integer as paid from card_orders where state = 1`;
  return row?.paid ?? 0;
}

test('a person pays for a key that is there: its account gets the credit, and the card is kept if asked', async () => {
  const session = await open({ amountUsd: 5 });
  await world.pay(session.checkoutUrl);
  const { apiKey } = (await polled(session)).ready;
  const key = { 'x-api-key': apiKey };
  const autoRecharge = { enabled: true, thresholdUsd: 1, topUpUsd: 5 };
  const more = await jsonOf(
    world.post(`${CHECKOUT}/session`, { amountUsd: 25, autoRecharge, email: 'a@example.com' }, key),
  );
  assert.equal(more.creditTo, apiKey.slice(0, 12));
  await world.pay(more.checkoutUrl);
  const { ready } = await polled(more);
  assert.deepEqual([ready.status, ready.keyReady, ready.apiKey], ['paid', false, undefined]);
  const me = await world.me(apiKey);
  assert.deepEqual(
    [me.balanceUsd, me.autoRecharge.enabled, me.autoRecharge.card],
    ['30.000000', true, 'visa 4242'],
  );
  const stranger = await world.post(
    `${CHECKOUT}/session`,
    { amountUsd: 5 },
    { 'x-api-key': `fbx_live_${'0'.repeat(64)}` },
  );
  assert.deepEqual([stranger.status, (await jsonOf(stranger)).code], [401, 'API_KEY_INVALID']);
  await world.assertBooks();
});

test('what is wrong is said, and opens nothing', async () => {
  for (const amountUsd of ['5', 5.0000001, 7, 0, -5, null, undefined, [5], true]) {
    const response = await world.post(`${CHECKOUT}/session`, { amountUsd });
    const body = await jsonOf(response);
    assert.deepEqual([response.status, body.code], [400, 'INVALID_AMOUNT'], String(amountUsd));
    assert.deepEqual(
      body.tiers.map((tier: { amountUsd: number }) => tier.amountUsd),
      [5, 10, 25, 100],
    );
  }
  const noEmail = await world.post(`${CHECKOUT}/session`, { amountUsd: 5, email: 'not an address' });
  assert.equal(noEmail.status, 400);
  const session = await open();
  const url = `${world.server.url}${CHECKOUT}/status`;
  for (const [path, status, code] of [
    [`${session.sessionId}`, 401, 'TOKEN_REQUIRED'],
    [`${session.sessionId}?token=`, 401, 'TOKEN_REQUIRED'],
    [`${session.sessionId}?token=${'0'.repeat(32)}`, 403, 'INVALID_TOKEN'],
    [`cs_test_unknown0000?token=${session.retrievalToken}`, 403, 'INVALID_TOKEN'],
    [`${session.sessionId}?token=a&token=b`, 403, 'INVALID_TOKEN'],
    [`nothing?token=${session.retrievalToken}`, 400, 'INVALID_SESSION_ID'],
  ] as const) {
    const response = await fetch(`${url}/${path}`);
    assert.deepEqual([response.status, (await jsonOf(response)).code], [status, code], path);
  }
  await world.control('POST', '/faults', { on: 'api', fault: 'error-before', method: 'POST', times: 3 });
  const away = await world.post(`${CHECKOUT}/session`, { amountUsd: 5 });
  assert.deepEqual([away.status, (await jsonOf(away)).code], [503, 'CARD_PROVIDER_UNAVAILABLE']);
});

test('a refund takes back what is left; what was spent is owed, freezes the key, and later credit pays it', async () => {
  const session = await open({ amountUsd: 5 });
  await world.pay(session.checkoutUrl);
  const { apiKey } = (await polled(session)).ready;
  assert.equal((await world.server.call('ping', apiKey)).status, 200);
  const [order] = await world.database.sql<{ id: string; payment_intent_id: string }[]>`
    select id, payment_intent_id from card_orders where session_id = ${session.sessionId}`;
  assert(order !== undefined);
  await world.control('POST', '/refunds', { paymentIntent: order.payment_intent_id, amountCents: 200 });
  await until('the partial refund', async () => {
    await world.settle();
    return (await world.me(apiKey)).balanceUsd === '2.750000';
  });
  await world.assertBooks();

  assert(world.server.app.cards !== null);
  const refunded = await world.server.app.cards.refund({
    orderId: order.id,
    amountMicros: null,
    actKey: 'test',
  });
  assert.equal(refunded.status, 'refunded');
  const frozen = await world.me(apiKey);
  assert.deepEqual([frozen.status, frozen.balanceUsd], ['frozen', '0.000000']);
  const refusal = await world.server.call('ping', apiKey);
  const said = await jsonOf(refusal);
  assert.deepEqual([refusal.status, said.last_error_reason.code], [402, 'ACCOUNT_OWES']);
  assert.equal(said.last_error_reason.owedUsd, '0.2500');
  assert.equal(said.last_error_reason.newCardCustomers.usdPerDay, 25);
  await world.assertBooks();

  // The provider takes the refund back: the money is here again, and so is what is left of the credit.
  await world.control('POST', `/refunds/${refunded.status === 'refunded' ? refunded.refundId : ''}/fail`);
  await until('the failed refund', async () => {
    await world.settle();
    return (await world.me(apiKey)).balanceUsd === '2.750000';
  });
  assert.equal((await world.server.call('ping', apiKey)).status, 200);
  await world.assertBooks();
});

test('a dispute freezes its credit; won, it is given back; lost, it is gone', async () => {
  for (const [outcome, balanceUsd] of [
    ['won', '25.000000'],
    ['lost', '0.000000'],
  ] as const) {
    const session = await open({ amountUsd: 25 });
    await world.pay(session.checkoutUrl);
    const { apiKey } = (await polled(session)).ready;
    const [order] = await world.database.sql<{ payment_intent_id: string }[]>`
      select payment_intent_id from card_orders where session_id = ${session.sessionId}`;
    const dispute = await world.control('POST', '/disputes', { paymentIntent: order?.payment_intent_id });
    await until('the dispute', async () => {
      await world.settle();
      return (await world.me(apiKey)).balanceUsd === '0.000000';
    });
    assert.equal((await world.me(apiKey)).frozenUsd, '25.000000');
    await world.assertBooks();
    await world.control('POST', `/disputes/${dispute.id}`, { status: outcome });
    await until(outcome, async () => {
      await world.settle();
      const me = await world.me(apiKey);
      return me.balanceUsd === balanceUsd && me.frozenUsd === '0.000000';
    });
    await world.assertBooks();
  }
});

test('a bank that takes what was refunded already: the loss is booked, and is not the customer’s', async () => {
  const session = await open({ amountUsd: 25 });
  await world.pay(session.checkoutUrl);
  const { apiKey } = (await polled(session)).ready;
  const [order] = await world.database.sql<{ id: string; payment_intent_id: string }[]>`
    select id, payment_intent_id from card_orders where session_id = ${session.sessionId}`;
  assert(order !== undefined);
  const lost = async () => {
    await world.settle();
    const [row] = await world.database.sql<{ lost: bigint }[]>`
      select lost_micros as lost from card_orders where id = ${order.id}`;
    return row?.lost;
  };
  const inquiry = { paymentIntent: order.payment_intent_id, inquiry: true };
  const { id } = await world.control('POST', '/disputes', inquiry);
  await world.control('POST', '/refunds', { paymentIntent: order.payment_intent_id });
  await until('the refund', async () => {
    await world.settle();
    return (await world.me(apiKey)).balanceUsd === '0.000000';
  });
  await world.control('POST', `/disputes/${id}`, { status: 'needs_response' });
  await until('the loss', async () => (await lost()) === 25_000_000n);
  assert.equal((await world.me(apiKey)).owedUsd, '0.000000');
  await world.assertBooks();
  await world.control('POST', `/disputes/${id}`, { status: 'won' });
  await until('the loss to be made good', async () => (await lost()) === 0n);
  assert.equal((await world.me(apiKey)).balanceUsd, '0.000000', 'the refund stands');
  await world.assertBooks();
});

test('money that is not what the order says goes back, and buys nothing', async () => {
  const session = await open({ amountUsd: 10 });
  await world.database.sql`
    update card_orders set amount_micros = 25000000, credit_micros = 25000000 where session_id = ${session.sessionId}`;
  const before = await world.control('GET', '');
  await world.pay(session.checkoutUrl);
  const { ready } = await polled(session);
  assert.deepEqual([ready.status, ready.apiKey], ['expired', undefined]);
  await world.settle();
  const after = await world.control('GET', '');
  assert.equal(after.totals.refundedCents - before.totals.refundedCents, 1_000);
  await world.assertBooks();
});

test('a legacy package is the same checkout, with more credit than was paid', async () => {
  const opened = await jsonOf(world.post('/api/gpt/credits/create-session', { package: 'pro' }));
  await world.pay(opened.checkoutUrl);
  const status = await jsonOf(
    fetch(`${world.server.url}/api/gpt/credits/status?session=${opened.sessionId}`),
  );
  assert.deepEqual([status.status, status.credits], ['completed', 600]);
  assert.equal((await world.me(status.apiKey)).balanceUsd, '60.000000');
  await world.assertBooks();
});

// Last: the provider's clock does not go back.
test('nobody pays: the session expires, and says so', async () => {
  const session = await open();
  await advance(61 * 60_000);
  await world.settle();
  const status = await jsonOf(statusOf(session));
  assert.deepEqual([status.status, status.keyReady], ['expired', false]);
});
