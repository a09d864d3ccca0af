/** Tests what somebody may send to where the card provider sends its messages, and what becomes of it. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { proveBooks } from '../books.fixture.ts';
import { type CardWorld, startCardWorld, WEBHOOK_SECRET } from '../cards.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, type TestServer } from '../server.fixture.ts';

const OLD_SECRET = 'whsec_that_is_being_replaced';
const HOOK = '/api/m2m/credits/webhook';
const MINUTE_MS = 60_000;

let world: CardWorld;
let aheadMs = 0;
let events = 0;
before(async () => {
  world = await startCardWorld({
    nowMs: () => Date.now() + aheadMs,
    environment: { CARD_WEBHOOK_SECRET: `${WEBHOOK_SECRET}, ${OLD_SECRET}` },
  });
});
after(() => world.stop());
beforeEach(async () => {
  world.gate(true);
  await world.control('DELETE', '/faults');
});

const nowS = () => Math.floor((Date.now() + aheadMs) / 1_000);

function v1(body: string | Buffer, atS: number, secret = WEBHOOK_SECRET): string {
  return createHmac('sha256', secret).update(`${atS}.`).update(body).digest('hex');
}

const signed = (body: string | Buffer, atS = nowS(), secret = WEBHOOK_SECRET) =>
  `t=${atS},v1=${v1(body, atS, secret)}`;

/** A message as the provider writes it, of an event that nobody else has. */
function eventOf(object: object, special: object = {}): string {
  events += 1;
  return JSON.stringify({
    id: `evt_test_${events}`,
    object: 'event',
    created: nowS(),
    livemode: false,
    type: 'payment_intent.succeeded',
    data: { object: { object: 'payment_intent', ...object } },
    ...special,
  });
}

async function send(body: string, signature: string | null = signed(body), to: TestServer = world.server) {
  const response = await fetch(to.url + HOOK, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(signature !== null && { 'stripe-signature': signature }),
    },
    body,
  });
  const text = await response.text();
  return { status: response.status, body: JSON.parse(text) };
}

async function inbox(): Promise<{ all: number; waiting: number }> {
  const [row] = await world.database.sql<{ all: number; waiting: number }[]>`
    select count(*)::integer as all, count(next_at)::integer as waiting from card_events`;
  return row ?? { all: 0, waiting: 0 };
}

async function work(): Promise<void> {
  assert(world.server.app.cards !== null);
  await until('the inbox to be worked', async () => {
    await world.server.app.cards?.inbox.work();
    return (await inbox()).waiting === 0;
  });
}

interface Bought {
  orderId: string;
  paymentIntent: string;
  apiKey: string;
}

async function buy(amountUsd = 5): Promise<Bought> {
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', { amountUsd }));
  await world.pay(opened.checkoutUrl);
  const path = `/api/m2m/credits/checkout/status/${opened.sessionId}?token=${opened.retrievalToken}`;
  let status: { apiKey?: string } = {};
  await until('the key', async () => {
    status = await jsonOf(fetch(world.server.url + path));
    return status.apiKey !== undefined;
  });
  const [order] = await world.database.sql<{ id: string; payment_intent_id: string }[]>`
    select id, payment_intent_id from card_orders where session_id = ${opened.sessionId}`;
  assert(order !== undefined && status.apiKey !== undefined);
  return { orderId: order.id, paymentIntent: order.payment_intent_id, apiKey: status.apiKey };
}

/** An order that waits for its payment. */
async function openOrder(): Promise<string> {
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', { amountUsd: 100 }));
  const [order] = await world.database.sql<{ id: string }[]>`
    select id from card_orders where session_id = ${opened.sessionId}`;
  assert(order !== undefined);
  return order.id;
}

describe('what is not signed by the provider, and lately, is not read', () => {
  const body = () => eventOf({ id: 'pi_of_nobody' });

  test('no signature, another’s, too old, from the future, of another body', async () => {
    const { all } = await inbox();
    const one = body();
    const tampered = one.replace('pi_of_nobody', 'pi_of_nobodx');
    for (const [what, text, signature] of [
      ['none', one, null],
      ['empty', one, ''],
      ['nonsense', one, 't=,v1='],
      ['no time', one, `v1=${v1(one, nowS())}`],
      ['another secret', one, signed(one, nowS(), 'whsec_of_somebody_else')],
      ['the secret without its name', one, signed(one, nowS(), WEBHOOK_SECRET.replace('whsec_', ''))],
      ['301 s old', one, signed(one, nowS() - 301)],
      ['from the future', one, signed(one, nowS() + 302)],
      ['two times, one of them good', one, `t=${nowS() - 4_000},${signed(one)},t=${nowS() + 4_000}`],
      ['another time than was signed', one, `t=${nowS()},v1=${v1(one, nowS() - 10)}`],
      ['of another body', tampered, signed(one)],
      ['one byte more', `${one} `, signed(one)],
      ['an older scheme', one, signed(one).replace('v1=', 'v0=')],
    ] as const) {
      const { status, body: said } = await send(text, signature);
      assert.deepEqual([status, said.code], [400, 'NOT_SIGNED'], what);
    }
    assert.equal((await inbox()).all, all, 'nothing was written down');
  });

  test('at the edge of its time it is', async () => {
    for (const atS of [nowS() - 299, nowS() + 299]) {
      const one = body();
      assert.equal((await send(one, signed(one, atS))).status, 200);
    }
  });

  test('while the secret is replaced both are good, together and alone, and no third', async () => {
    const one = body();
    const atS = nowS();
    const [fresh, old, strange] = [WEBHOOK_SECRET, OLD_SECRET, 'whsec_of_somebody_else'].map((secret) =>
      v1(one, atS, secret),
    );
    for (const [signature, status, isNew] of [
      [`t=${atS},v1=${fresh},v1=${old}`, 200, true],
      [`t=${atS},v1=${old},v1=${fresh}`, 200, false],
      [`t=${atS},v1=${strange},v1=${old}`, 200, false],
      [`t=${atS},v1=${old}`, 200, false],
      [`t=${atS},v1=${fresh},v0=${strange}`, 200, false],
      [`t=${atS},v1=${strange}`, 400, undefined],
    ] as const) {
      const said = await send(one, signature);
      assert.deepEqual([said.status, said.body.new], [status, isNew], signature);
    }
  });
});

describe('what is signed and strange', () => {
  test('a body that is too large, or no event', async () => {
    const huge = eventOf({ id: 'pi_huge', note: 'x'.repeat(300_000) });
    const refused = await send(huge);
    assert.deepEqual([refused.status, refused.body.code], [413, 'BODY_TOO_LARGE']);
    for (const text of ['', 'not JSON', 'null', '[]', '{}', '"evt"', '{"id":"evt_1"}', '{"data":{}}'])
      assert.equal((await send(text)).status, 400, text);
  });

  test('types that mean nothing to us are answered, and forgotten', async () => {
    const { all } = await inbox();
    for (const type of ['customer.created', 'invoice.paid', 'x', '__proto__', 'payment_intent.created']) {
      const said = await send(eventOf({ id: 'pi_1' }, { type }));
      assert.deepEqual([said.status, said.body.new], [200, false], type);
    }
    // How many of the earlier ones still wait changes by itself.
    assert.equal((await inbox()).all, all);
  });

  test('names that are none are not looked for, and hold up nothing', async () => {
    const { orderId } = await buy();
    const hostile = [
      { metadata: { order: '-'.repeat(36) } },
      { metadata: { order: 'f'.repeat(36) } },
      { metadata: { order: '00000000-0000-0000-0000-00000000000g' } },
      { metadata: { order: `${orderId}'; drop table card_orders; --` } },
      { metadata: { order: [orderId] } },
      { metadata: { order: { id: orderId } } },
      { metadata: { order: '\u0000' } },
      { metadata: null },
      { metadata: [] },
      { metadata: 'order' },
      { id: '\u0000\u0000' },
      { id: 'x'.repeat(10_000) },
      { id: ['pi_1'] },
      { id: { id: 'pi_1' } },
      { object: 'checkout.session', id: "cs_'); --" },
      { object: 'charge', payment_intent: '../../v1/customers' },
      { object: 'charge', payment_intent: null },
      { object: null },
    ];
    for (const object of hostile)
      assert.equal((await send(eventOf(object))).status, 200, JSON.stringify(object).slice(0, 80));
    // As text: a literal would set a prototype here and not in the message.
    const polluted = eventOf({}).replace(
      '"object":{',
      '"object":{"__proto__":{"order":"x"},"metadata":{"__proto__":{"order":"y"}},',
    );
    assert.equal((await send(polluted)).status, 200);
    assert.equal(Reflect.get({}, 'order'), undefined);
    for (const special of [
      { id: '' },
      { id: 5 },
      { id: 'evt_\u0000' },
      { id: `evt_${'x'.repeat(5_000)}` },
      { created: 'now' },
      { created: 1e300 },
      { created: -1e12 },
      { created: null },
      { type: ['payment_intent.succeeded'] },
    ]) {
      const { status } = await send(eventOf({ id: 'pi_1' }, special));
      assert.equal(status, 400, JSON.stringify(special).slice(0, 80));
    }
    await work();
    await world.assertBooks();
  });

  test('a payment that names an order which it is not of pays for nothing', async () => {
    const paid = await buy(5);
    const orderId = await openOrder();
    const other = await openOrder();
    for (const object of [
      { id: paid.paymentIntent, metadata: { order: orderId }, status: 'succeeded', amount_received: 10_000 },
      { object: 'charge', id: 'ch_1', payment_intent: paid.paymentIntent, metadata: { order: other } },
      { id: 'pi_that_is_none', metadata: { order: other } },
    ])
      assert.deepEqual((await send(eventOf(object))).body.new, true);
    // Payments that the provider does have, made by the same account for something else.
    const { stripe } = await library();
    for (const [metadata, amount] of [
      [{ order: orderId }, 10_000],
      [{ order: 'nothing of ours' }, 500],
    ] as const) {
      await stripe.paymentIntents.create({
        amount,
        currency: 'usd',
        confirm: true,
        payment_method: 'pm_card_visa',
        metadata,
        automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
      });
    }
    await until(
      'the provider to have told',
      async () => (await world.control('GET', '')).deliveries.pending === 0,
    );
    await work();
    await world.settle();
    const states = await world.database.sql<{ state: number; account_id: bigint | null }[]>`
      select state, account_id from card_orders where id in ${world.database.sql([orderId, other])}`;
    assert.deepEqual(
      states.map(({ state, account_id }) => [state, account_id]),
      [
        [0, null],
        [0, null],
      ],
    );
    assert.equal((await world.me(paid.apiKey)).balanceUsd, '5.000000');
  });
});

/** The provider's own library, as somebody else with the same account would use it. */
async function library() {
  const { default: Stripe } = await import('stripe');
  const { hostname, port } = new URL(world.provider.url);
  const { CARD_PROVIDER_KEY = '' } = world.environment;
  const stripe = new Stripe(CARD_PROVIDER_KEY, { host: hostname, port, protocol: 'http', telemetry: false });
  return { stripe };
}

describe('many, late, or lost', () => {
  test('2,000 messages at once are each answered, and are few looks at the provider', async () => {
    const bought = await Promise.all([buy(), buy(), buy(), buy()]);
    await until(
      'the provider to have told',
      async () => (await world.control('GET', '')).deliveries.pending === 0,
    );
    await work();
    await world.control('DELETE', '/requests');
    const before = await inbox();
    const answers: number[] = [];
    const queue = Array.from({ length: 2_000 }, (_, index) => {
      const of = bought[index % bought.length];
      return eventOf({ id: of?.paymentIntent, metadata: { order: of?.orderId } });
    });
    const lanes = Array.from({ length: 40 }, async () => {
      for (let body = queue.pop(); body !== undefined; body = queue.pop())
        answers.push((await send(body)).status);
    });
    await Promise.all(lanes);
    assert.equal(answers.length, 2_000);
    assert.deepEqual(new Set(answers), new Set([200]));
    await work();
    const after = await inbox();
    assert.equal(after.all - before.all, 2_000, 'each was written down');
    const { total } = await world.control('GET', '/requests');
    assert(total > 0 && total <= 500, `${total} requests to the provider`);
    for (const { apiKey } of bought) assert.equal((await world.me(apiKey)).balanceUsd, '5.000000');
  });

  test('the same message fifty times at once is one', async () => {
    const { orderId, paymentIntent } = await buy();
    const body = eventOf({ id: paymentIntent, metadata: { order: orderId } });
    const other = await world.open();
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => send(body, signed(body), index % 2 ? other : world.server)),
    );
    await other.close();
    assert(answers.every(({ status }) => status === 200));
    assert.equal(answers.filter(({ body: said }) => said.new).length, 1);
    await work();
  });

  test('while the provider is away they are kept, and worked when it is back', async () => {
    const { paymentIntent, apiKey } = await buy();
    await until(
      'the provider to have told',
      async () => (await world.control('GET', '')).deliveries.pending === 0,
    );
    await work();
    await world.control('POST', '/faults', { on: 'api', fault: 'error-before', times: 100_000 });
    await world.control('POST', '/refunds', { paymentIntent, amountCents: 100 });
    await until('the messages', async () => (await inbox()).waiting >= 2);
    await world.server.app.cards?.inbox.work();
    await until('nobody to be at it', async () => (await world.server.app.cards?.inbox.work()) === 0);
    assert((await inbox()).waiting >= 2, 'they wait');
    assert.equal((await world.me(apiKey)).balanceUsd, '5.000000');
    await world.control('DELETE', '/faults');
    aheadMs += MINUTE_MS;
    await work();
    assert.equal((await world.me(apiKey)).balanceUsd, '4.000000');
    // Not against the provider: another test of this file has paid it for something else.
    assert((await proveBooks(world.database.sql)).balanced);
  });
});

describe('an outage of ours', () => {
  test('what nobody delivered is in the provider’s list, over as many pages as it takes, and is read once', async () => {
    const quiet = await startCardWorld();
    try {
      const { cards } = quiet.server.app;
      assert(cards !== null);
      await cards.inbox.catchUp();
      quiet.gate(false);
      const opened = await jsonOf(quiet.post('/api/m2m/credits/checkout/session', { amountUsd: 25 }));
      await quiet.pay(opened.checkoutUrl);
      const status = `${quiet.server.url}/api/m2m/credits/checkout/status/${opened.sessionId}?token=${opened.retrievalToken}`;
      // An event of the list that points nowhere holds up none of the others.
      const { hostname, port } = new URL(quiet.provider.url);
      const { default: Stripe } = await import('stripe');
      const stripe = new Stripe(quiet.environment.CARD_PROVIDER_KEY, {
        host: hostname,
        port,
        protocol: 'http',
        telemetry: false,
      });
      await stripe.paymentIntents.create({
        amount: 700,
        currency: 'usd',
        confirm: true,
        payment_method: 'pm_card_visa',
        automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
        metadata: { order: '-'.repeat(36) },
      });
      const sessions = await stripe.checkout.sessions.retrieve(opened.sessionId);
      for (let refund = 0; refund < 120; refund++)
        await quiet.control('POST', '/refunds', { paymentIntent: sessions.payment_intent, amountCents: 10 });

      const isNew = await cards.inbox.catchUp();
      assert(isNew > 240, `${isNew} events were found`);
      assert.equal(await cards.inbox.catchUp(), 0, 'and none of them again');
      await until('all to be worked', async () => (await cards.inbox.work()) === 0);
      const ready = await jsonOf(fetch(status));
      assert.equal((await quiet.me(ready.apiKey)).balanceUsd, '13.000000');

      // Time goes on from where the list was read, less what may have been listed late.
      const [cursor] = await quiet.database.sql<{ age: number }[]>`
        select extract(epoch from now() - read_until)::float8 as age from card_event_cursor`;
      assert(cursor !== undefined && cursor.age < 60);
      await quiet.control('POST', '/refunds', { paymentIntent: sessions.payment_intent, amountCents: 300 });
      assert.equal(await cards.inbox.catchUp(), 2);

      // A list that breaks off leaves the cursor where it was: nothing between is passed over.
      await quiet.control('POST', '/refunds', { paymentIntent: sessions.payment_intent, amountCents: 300 });
      const [before] = await quiet.database.sql`select read_until from card_event_cursor`;
      await quiet.control('POST', '/faults', {
        on: 'api',
        fault: 'error-before',
        path: '/v1/events',
        times: 2,
      });
      await assert.rejects(cards.inbox.catchUp(), { name: 'ProviderUnavailable' });
      assert.deepEqual((await quiet.database.sql`select read_until from card_event_cursor`)[0], before);
      assert.equal(await cards.inbox.catchUp(), 2);
      await quiet.settle();
      assert.equal((await quiet.me(ready.apiKey)).balanceUsd, '7.000000');
    } finally {
      await quiet.stop();
    }
  });
});
