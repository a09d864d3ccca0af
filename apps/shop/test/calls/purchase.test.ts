/** An agent buys with a card that it names: every outcome has an answer, and no purchase is charged or granted twice. */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { createDebts } from '../../../../packages/core/src/cards/disputes/debts.ts';
import type { CardOrder } from '../../../../packages/core/src/cards/orders/orders.ts';
import { createOrderReconciler } from '../../../../packages/core/src/cards/orders/reconcile.ts';
import type { CardProvider } from '../../../../packages/core/src/cards/provider.ts';
import { createPurchases } from '../../../../packages/core/src/cards/ways/purchase.ts';
import { createPurchaseLimits } from '../../../../packages/core/src/cards/ways/purchase-limits.ts';
import { createBucketTurns } from '../../../../packages/core/src/ledger/bucket-turns.ts';
import { secretsOf } from '../../../../packages/core/src/secrets/secrets.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

const SECRETS = secretsOf(['a-secret-of-the-tests-and-of-nothing-else']);
const PURCHASE = '/api/m2m/credits/purchase';
const SECRET = 'a-secret-of-the-tests-and-of-nothing-else';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let world: CardWorld;
let aheadMs = 0;
/** What nobody may find in the log. */
const secrets = new Set<string>();

before(async () => {
  world = await startCardWorld({
    nowMs: () => Date.now() + aheadMs,
    environment: { TRIAL_ALLOW_INTERNAL: 'true' },
  });
});
after(async () => {
  const log = world.server.log.join('');
  for (const secret of secrets) assert(!log.includes(secret), 'a secret stands in the log');
  await world.stop();
});
beforeEach(async () => {
  // Cards and networks that were used before have been forgotten by then.
  if (aheadMs > 0) aheadMs += 8 * DAY_MS;
  world.gate(aheadMs === 0);
  await world.control('DELETE', '/faults');
});
// After everything that happens here.
afterEach(() => world.assertBooks());

/** A payment method as an agent's operator has made it. */
async function method(token = 'visa', customer?: string): Promise<string> {
  const { id } = await provider('payment_methods', { type: 'card', 'card[token]': `tok_${token}` });
  if (customer !== undefined) await provider(`payment_methods/${id}/attach`, { customer });
  return id;
}

async function provider(path: string, body: Record<string, string>) {
  const reply = await fetch(`${world.provider.url}/v1/${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${world.environment.CARD_PROVIDER_KEY}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams(body),
  });
  const object = await jsonOf(reply);
  assert.equal(reply.status, 200, JSON.stringify(object));
  return object;
}

interface Asked {
  paymentMethodId: string;
  amountUsd: number;
  idempotencyKey: string;
  email?: string;
  keyName?: string;
}

async function request(token = 'visa', amountUsd = 5): Promise<Asked> {
  const asked = { paymentMethodId: await method(token), amountUsd, idempotencyKey: randomUUID() };
  secrets.add(asked.idempotencyKey).add(asked.paymentMethodId);
  return asked;
}

async function buy(asked: object, headers: Record<string, string> = {}, to = world.server) {
  const response = await world.post(PURCHASE, asked, headers, to);
  const body = await jsonOf(response);
  if (body.apiKey !== undefined) secrets.add(body.apiKey);
  return { status: response.status, code: body.code, body, headers: response.headers };
}

async function totals(): Promise<{ chargedCents: number }> {
  return (await world.control('GET', '')).totals;
}

/** Runs something, and sees how much was charged meanwhile. */
async function chargedBy(run: () => Promise<unknown>): Promise<number> {
  const { chargedCents } = await totals();
  await run();
  return (await totals()).chargedCents - chargedCents;
}

const fault = (name: string, path = '/v1/payment_intents', times = 10, delayMs = 0) =>
  world.control('POST', '/faults', { on: 'api', method: 'POST', fault: name, path, times, delayMs });

async function ordersOf(where: { since: number }): Promise<{ open: number; paid: number; over: number }> {
  const [row] = await world.database.sql<{ open: number; paid: number; over: number }[]>`
    select (count(*) filter (where state = 0))::integer as open, (count(*) filter (where state = 1))::integer as paid,
           (count(*) filter (where state = 2))::integer as over
    from card_orders where kind = 'purchase' and created_at >= ${new Date(where.since).toISOString()}`;
  assert(row !== undefined);
  return { ...row };
}

/** What the order of a purchase is found by. */
const digestOf = ({ idempotencyKey }: Asked) => createHash('sha256').update(idempotencyKey).digest();

const now = () => Date.now() + aheadMs;

test('the provider’s message tells what came of a purchase that its answer did not', async () => {
  const asked = await request();
  world.gate(false);
  await fault('drop-after');
  const charged = await chargedBy(async () => {
    const first = await buy(asked);
    assert.deepEqual([first.status, first.code, first.body.charged], [503, 'OUTCOME_UNKNOWN', null]);
    await world.control('DELETE', '/faults');
    world.gate(true);
    await until('the message', async () => {
      await world.settle();
      return (await ordersOf({ since: 0 })).paid === 1;
    });
  });
  assert.equal(charged, 500);
  const told = await buy(asked);
  assert.equal(told.status, 200);
  assert.equal((await world.me(told.body.apiKey)).balanceUsd, '5.000000');
  // From here on the tests have a clock of their own, by which the provider's messages are too old.
  aheadMs = 1;
});

test('what a new customer may spend in a day is told before the card is charged', async () => {
  const document = async (path: string) => jsonOf(await fetch(`${world.server.url}${path}`));
  const { authModes } = await document('/api/auth/capabilities');
  const { newCustomers } = authModes[0].obtain.direct_card;
  assert.deepEqual([newCustomers.usdPerDay, newCustomers.days], [25, 7]);
  const { paths } = await document('/openapi.json');
  assert.equal(paths['/api/m2m/credits/purchase'].post.description, newCustomers.rule);
  const { body } = await buy(await request('visa', 10));
  const { caps } = await world.me(body.apiKey);
  assert.equal(Number(caps.perDayUsd), newCustomers.usdPerDay);
});

test('a new key: delivered until it is used, then no more', async () => {
  const asked = { ...(await request('visa', 10)), email: 'agent@example.com', keyName: 'bought' };
  const first = await buy(asked);
  assert.equal(first.status, 200, JSON.stringify(first.body));
  const { body } = first;
  assert.match(body.apiKey, /^fbx_live_[0-9a-f]{64}$/);
  assert.match(body.paymentIntentId, /^pi_/);
  assert.deepEqual(
    [body.success, body.keyPrefix, body.creditsAdded, body.newBalance, body.tier, body.charged],
    [true, body.apiKey.slice(0, 12), 10, 10, 'Starter', true],
  );
  assert.equal(first.headers.get('cache-control'), 'no-store');
  assert.equal(body.usage.alternativeHeader, `Authorization: Bearer ${body.apiKey}`);
  const me = await world.me(body.apiKey);
  assert.deepEqual([me.kind, me.label, me.status], ['paid', 'bought', 'active']);
  assert.deepEqual([me.caps.perDayUsd, body.capPerDay.until], ['25.000000', me.caps.fixedUntil]);

  assert.deepEqual((await buy(asked)).body, body);
  assert.deepEqual((await buy({ ...asked, idempotencyKey: asked.idempotencyKey.toUpperCase() })).body, body);
  assert.equal((await world.server.call('ping', body.apiKey)).status, 200);
  const later = (await buy(asked)).body;
  assert.deepEqual(
    [later.success, later.alreadyProvisioned, later.apiKey, later.keyPrefix, later.newBalance],
    [true, true, undefined, body.keyPrefix, 9.75],
  );
  assert.equal(later.paymentIntentId, body.paymentIntentId);
});

test('what the database and the provider have leads to no key', async () => {
  const asked = await request();
  const { body } = await buy(asked);
  const rows = await world.database.sql<{ text: string }[]>`
    select row_to_json(o)::text as text from card_orders o union all select row_to_json(k)::text from api_keys k`;
  const { requests } = await world.control('GET', '/requests');
  const kept = `${rows.map(({ text }) => text).join()}${JSON.stringify(requests)}`;
  assert(kept.includes(body.paymentIntentId));
  assert(!kept.includes(asked.idempotencyKey) && !kept.includes(body.apiKey.slice(12)));
});

test('fifty identical purchases at once, on two replicas: one charge, one key, one answer', async () => {
  const other = await world.open();
  const asked = await request('visa', 25);
  const since = now();
  const charged = await chargedBy(async () => {
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, index) => buy(asked, {}, index % 2 === 0 ? world.server : other)),
    );
    assert.deepEqual(new Set(all.map(({ status }) => status)), new Set([200]));
    const [first] = all;
    for (const { body } of all) assert.deepEqual(body, first?.body);
  });
  assert.equal(charged, 2_500);
  assert.deepEqual(await ordersOf({ since }), { open: 0, paid: 1, over: 0 });
  await other.close();
});

test('the same idempotency key is good for one request', async () => {
  const asked = await request();
  const { body } = await buy(asked);
  const key = await world.server.key('1');
  const others: [object, Record<string, string>][] = [
    [{ ...asked, amountUsd: 10 }, {}],
    [{ ...asked, paymentMethodId: await method() }, {}],
    [{ ...asked, email: 'other@example.com' }, {}],
    [{ ...asked, keyName: 'other' }, {}],
    [asked, { 'x-api-key': key }],
    [asked, { authorization: `Bearer ${body.apiKey}` }],
  ];
  const charged = await chargedBy(async () => {
    for (const [other, headers] of others) {
      const refusal = await buy(other, headers);
      assert.deepEqual(
        [refusal.status, refusal.code, refusal.body.charged, refusal.body.apiKey],
        [409, 'IDEMPOTENCY_KEY_REUSED', false, undefined],
      );
    }
  });
  assert.equal(charged, 0);
});

test('what is wrong with a request is said before anything is begun', async () => {
  const asked = await request();
  const cases: [object, string][] = [
    [{ ...asked, idempotencyKey: undefined }, 'MISSING_IDEMPOTENCY_KEY'],
    [{ ...asked, idempotencyKey: 'order-1' }, 'INVALID_IDEMPOTENCY_KEY'],
    [
      { ...asked, idempotencyKey: asked.idempotencyKey.replace(/^(.{14})4/, '$11') },
      'INVALID_IDEMPOTENCY_KEY',
    ],
    [{ ...asked, paymentMethodId: undefined }, 'INVALID_PAYMENT_METHOD'],
    [{ ...asked, paymentMethodId: 'tok_visa' }, 'INVALID_PAYMENT_METHOD'],
    [{ ...asked, paymentMethodId: 'pm_nobody_has_made_it' }, 'INVALID_PAYMENT_METHOD'],
    [
      { ...asked, paymentMethodId: await method('visa', (await provider('customers', {})).id) },
      'INVALID_PAYMENT_METHOD',
    ],
    [{ ...asked, amountUsd: '5' }, 'INVALID_AMOUNT'],
    [{ ...asked, amountUsd: 5.000_000_1 }, 'INVALID_AMOUNT'],
    [{ ...asked, amountUsd: 1_000_000 }, 'INVALID_AMOUNT'],
    [{ ...asked, email: 'nobody' }, 'INVALID_REQUEST'],
  ];
  const since = now();
  for (const [body, code] of cases) {
    const refusal = await buy(body);
    assert.deepEqual([refusal.status, refusal.code, refusal.body.charged], [400, code, false]);
  }
  assert.deepEqual(await ordersOf({ since }), { open: 0, paid: 0, over: 0 });
});

test('what cards are declined for, and that it stays so for the same idempotency key', async () => {
  const rows: [string, number, string, string | undefined][] = [
    ['chargeDeclined', 402, 'CARD_DECLINED', 'generic_decline'],
    ['chargeDeclinedInsufficientFunds', 402, 'CARD_DECLINED', 'insufficient_funds'],
    ['chargeDeclinedLostCard', 402, 'CARD_DECLINED', 'generic_decline'],
    ['chargeDeclinedStolenCard', 402, 'CARD_DECLINED', 'generic_decline'],
    ['radarBlock', 402, 'CARD_DECLINED', 'generic_decline'],
    ['chargeDeclinedExpiredCard', 402, 'CARD_DECLINED', 'expired_card'],
    ['chargeDeclinedIncorrectCvc', 402, 'CARD_DECLINED', 'incorrect_cvc'],
    ['chargeDeclinedProcessingError', 402, 'CARD_DECLINED', 'processing_error'],
    ['authenticationRequired', 402, 'AUTHENTICATION_REQUIRED', undefined],
  ];
  const charged = await chargedBy(async () => {
    for (const [token, status, code, declineCode] of rows) {
      const asked = await request(token);
      const refusal = await buy(asked);
      assert.deepEqual(
        [refusal.status, refusal.code, refusal.body.declineCode, refusal.body.charged],
        [status, code, declineCode, false],
        token,
      );
      if (declineCode === 'generic_decline')
        assert.doesNotMatch(JSON.stringify(refusal.body), /lost|stolen|fraud|radar|pickup/i);
      const { requestId: _first, ...said } = refusal.body;
      const { requestId: _second, ...again } = (await buy(asked)).body;
      assert.deepEqual(again, said);
      assert.match(said.retry, /new idempotencyKey/);
    }
    assert.match((await buy(await request('authenticationRequired'))).body.hostedCheckout.url, /checkout/);
  });
  assert.equal(charged, 0);
});

test('a payment method that was used up is refused by the provider, for good', async () => {
  const first = await request();
  assert.equal((await buy(first)).status, 200);
  const asked = { ...first, idempotencyKey: randomUUID() };
  for (const _ of [1, 2]) {
    const refusal = await buy(asked);
    assert.deepEqual(
      [refusal.status, refusal.code, refusal.body.charged],
      [400, 'INVALID_PAYMENT_METHOD', false],
    );
  }
  // Nor is it tried again behind the caller's back.
  assert.equal(
    await chargedBy(async () => {
      aheadMs += 60_000;
      await world.settle();
    }),
    0,
  );
});

describe('the provider fails', () => {
  test('it charges and says no: the purchase is what exists there, charged once', async () => {
    const asked = await request();
    await fault('refuse-after', '/v1/payment_intents', 1);
    const charged = await chargedBy(async () => {
      assert.deepEqual([(await buy(asked)).status, (await buy(asked)).status], [200, 200]);
    });
    assert.equal(charged, 500);
  });

  for (const path of ['/v1/customers', '/v1/payment_intents']) {
    for (const name of [
      'error-before',
      'error-after',
      'drop-before',
      'drop-after',
      'rate-limit',
      'garbage',
    ] as const) {
      test(`${name} at ${path}: charged once, whoever finds out`, async () => {
        const [asked, other] = [await request(), await request('mastercard')];
        await fault(name, path);
        const charged = await chargedBy(async () => {
          for (const each of [asked, other]) {
            const unknown = await buy(each);
            assert.deepEqual(
              [unknown.status, unknown.code, unknown.body.charged],
              [503, 'OUTCOME_UNKNOWN', null],
            );
            assert.equal(unknown.body.apiKey, undefined);
          }
          await world.control('DELETE', '/faults');
          // One is asked for again, the other one is found by the sweeper.
          const again = await buy(asked);
          assert.equal(again.status, 200, JSON.stringify(again.body));
          aheadMs += 10 * 60_000;
          const since = now();
          await world.settle();
          assert.deepEqual(await ordersOf({ since: since - HOUR_MS }), { open: 0, paid: 2, over: 0 });
          const swept = await buy(other);
          assert.equal((await world.me(swept.body.apiKey)).balanceUsd, '5.000000');
        });
        assert.equal(charged, 1_000);
      });
    }
  }

  test('never answered, with and without the work done: charged once', async () => {
    const asked = await request();
    await fault('never-before', '/v1/payment_intents', 1);
    await fault('never-after', '/v1/payment_intents', 1);
    const charged = await chargedBy(async () => {
      const unknown = buy(asked);
      // Not before somebody is at it: whoever asked sooner would make the attempt, and the first one would wait.
      await until('the first attempt', async () => {
        const [row] = await world.database.sql`
          select 1 from card_orders where token_digest = ${digestOf(asked)} and looked_at is not null`;
        return row !== undefined;
      });
      // Whoever asks meanwhile waits, and is told to wait on.
      const meanwhile = await buy(asked);
      assert.deepEqual(
        [meanwhile.status, meanwhile.code, meanwhile.body.charged, meanwhile.headers.get('retry-after')],
        [409, 'PURCHASE_IN_PROGRESS', null, '1'],
      );
      assert.equal((await unknown).code, 'OUTCOME_UNKNOWN');
      assert.equal((await buy(asked)).body.newBalance, 5);
    });
    assert.equal(charged, 500);
  });

  test('answered long after we gave up: charged once', async () => {
    const asked = await request();
    await fault('late', '/v1/payment_intents', 1, 20_000);
    const { chargedCents } = await totals();
    const charged = await chargedBy(async () => {
      assert.equal((await buy(asked)).code, 'OUTCOME_UNKNOWN');
      // It is still at work: neither the caller nor the sweeper starts another charge.
      assert.equal((await buy(asked)).code, 'OUTCOME_UNKNOWN');
      await until('the late answer', async () => (await totals()).chargedCents > chargedCents);
      await until('the purchase', async () => (await buy(asked)).status === 200);
    });
    assert.equal(charged, 500);
  });

  test('until the purchase’s time is over: then it is never charged, and said so', async () => {
    const asked = await request();
    for (const path of ['/v1/customers', '/v1/payment_intents']) {
      const one = path === '/v1/customers' ? asked : await request('mastercard');
      await fault('error-before', path, 1_000);
      const charged = await chargedBy(async () => {
        assert.equal((await buy(one)).code, 'OUTCOME_UNKNOWN');
        aheadMs += 18 * 60_000;
        await world.control('DELETE', '/faults');
        for (const _ of [1, 2]) {
          const over = await buy(one);
          assert.deepEqual([over.status, over.code, over.body.charged], [402, 'PAYMENT_FAILED', false]);
          await world.settle();
        }
      });
      assert.equal(charged, 0, path);
    }
  });

  test('nothing is begun when the card cannot be looked at', async () => {
    const asked = await request();
    await world.control('POST', '/faults', {
      on: 'api',
      method: 'GET',
      fault: 'error-before',
      path: '/v1/payment_methods',
      times: 10,
    });
    const since = now();
    const away = await buy(asked);
    assert.deepEqual([away.status, away.code, away.body.charged], [503, 'CARD_PROVIDER_UNAVAILABLE', false]);
    assert.deepEqual(await ordersOf({ since }), { open: 0, paid: 0, over: 0 });
    await world.control('DELETE', '/faults');
    assert.equal((await buy(asked)).status, 200);
  });
});

/** The parts of a purchase as the app has them, but for what a test puts in their place. */
function purchasesWith(reconcile: (orderId: string) => Promise<CardOrder | null>) {
  const { cards } = world.server.app;
  assert(cards !== null);
  const { sql } = world.database;
  const versions = { secrets: secretsOf([SECRET]), nowMs: now };
  return createPurchases({
    sql,
    distribution: world.database.distribution,
    orders: cards.orders,
    provider: cards.provider,
    ...versions,
    reconciler: { reconcile },
    limits: createPurchaseLimits({ sql, ...versions, onPause: () => {} }),
    onUnknown: () => {},
  });
}

test('a crash after the purchase was written down: the sweeper charges it, its owner gets the key', async () => {
  const asked = await request();
  const crashed = purchasesWith(async () => {
    throw new Error('the process died here');
  });
  const charged = await chargedBy(async () => {
    const outcome = await crashed.buy({
      paymentMethodId: asked.paymentMethodId,
      amountMicros: 5_000_000n,
      idempotencyKey: asked.idempotencyKey,
      accountId: null,
      email: null,
      keyName: null,
      address: '10.200.0.1',
    });
    assert.equal(outcome.status, 'unknown');
    aheadMs += 31_000;
    const other = await world.open();
    const [row] = await world.database.sql<{ id: string }[]>`
      select id from card_orders where kind = 'purchase' and state = 0`;
    assert(row !== undefined);
    // Whoever comes second may be told that the first is at it.
    await Promise.allSettled(
      [world.server, other, world.server].map((each) => each.app.cards?.reconciler.reconcile(row.id)),
    );
    await world.settle();
    await other.close();
    assert.match((await buy(asked)).body.apiKey, /^fbx_live_/);
  });
  assert.equal(charged, 500);
});

test('what was refused is not tried again, whatever the provider would say now', async () => {
  const { cards, ledger, keys } = world.server.app;
  assert(cards !== null);
  const { sql } = world.database;
  const { orders, recharges } = cards;
  let charges = 0;
  const charge: CardProvider['charge'] = async (order) => {
    charges += 1;
    if (charges > 1) return cards.provider.charge(order);
    return { status: 'refused', failure: { code: 'refused', declineCode: null, adviceCode: null } };
  };
  const reconciler = createOrderReconciler({
    sql,
    secrets: SECRETS,
    orders,
    ledger,
    keys,
    recharges,
    nowMs: now,
    report: () => {},
    debts: createDebts(sql, { ledger, keys, turns: createBucketTurns(world.database), nowMs: now }),
    walks: world.server.app.walks,
    provider: new Proxy(cards.provider, {
      get: (provider, name) => (name === 'charge' ? charge : Reflect.get(provider, name).bind(provider)),
    }),
  });
  const asked = await request();
  const outcome = await purchasesWith((orderId) => reconciler.reconcile(orderId)).buy({
    paymentMethodId: asked.paymentMethodId,
    amountMicros: 5_000_000n,
    idempotencyKey: asked.idempotencyKey,
    accountId: null,
    email: null,
    keyName: null,
    address: '10.200.2.1',
  });
  assert(outcome.status === 'failed', outcome.status);
  assert.equal((await reconciler.reconcile(outcome.order.id))?.state, 'over');
  assert.equal(charges, 1);
});

test('a crash between the charge and the books: whoever looks next finds the charge', async () => {
  const asked = await request();
  const { cards, ledger, keys } = world.server.app;
  assert(cards !== null);
  const { sql } = world.database;
  const dies = async () => {
    throw new Error('the process died here');
  };
  const { orders, provider: cardProvider, recharges } = cards;
  const reconciler = createOrderReconciler({
    sql,
    secrets: SECRETS,
    orders,
    provider: cardProvider,
    keys,
    recharges,
    nowMs: now,
    report: () => {},
    debts: createDebts(sql, { ledger, keys, turns: createBucketTurns(world.database), nowMs: now }),
    walks: world.server.app.walks,
    ledger: { ...ledger, transferWithin: dies },
  });
  const crashed = purchasesWith((orderId) => reconciler.reconcile(orderId).then(dies));
  const charged = await chargedBy(async () => {
    const { status } = await crashed.buy({
      paymentMethodId: asked.paymentMethodId,
      amountMicros: 5_000_000n,
      idempotencyKey: asked.idempotencyKey,
      accountId: null,
      email: null,
      keyName: null,
      address: '10.200.1.1',
    });
    assert.equal(status, 'unknown');
    assert.equal((await buy(asked)).body.newBalance, 5);
  });
  assert.equal(charged, 500);
});

test('a charge that was begun in time is not given up by whoever read the order before that', async () => {
  const asked = await request();
  const begun = purchasesWith(async () => {
    throw new Error('the process died here');
  });
  await begun.buy({
    paymentMethodId: asked.paymentMethodId,
    amountMicros: 5_000_000n,
    idempotencyKey: asked.idempotencyKey,
    accountId: null,
    email: null,
    keyName: null,
    address: '10.200.3.1',
  });
  const { cards, ledger, keys } = world.server.app;
  assert(cards !== null);
  const { sql } = world.database;
  const { orders, recharges, provider: cardProvider } = cards;
  const [row] = await sql<{ id: string }[]>`
    select id from card_orders where kind = 'purchase' and state = 0`;
  assert(row !== undefined);
  let readBefore = await orders.find(row.id);
  // By its clock the time is just over.
  const ahead = () => now() + 16 * 60_000;
  const late = createOrderReconciler({
    sql,
    secrets: SECRETS,
    provider: cardProvider,
    ledger,
    keys,
    recharges,
    nowMs: ahead,
    report: () => {},
    debts: createDebts(sql, { ledger, keys, turns: createBucketTurns(world.database), nowMs: ahead }),
    walks: world.server.app.walks,
    orders: {
      ...orders,
      async find(id) {
        const order = readBefore ?? (await orders.find(id));
        readBefore = null;
        return order;
      },
    },
  });
  const charged = await chargedBy(async () => {
    await fault('late', '/v1/payment_intents', 1, 2_000);
    const charging = cards.reconciler.reconcile(row.id);
    await until('the charge', async () => (await orders.find(row.id))?.looks === 1);
    assert.equal((await late.reconcile(row.id))?.state, 'open');
    assert.equal((await charging)?.state, 'paid');
  });
  assert.equal(charged, 500);
});

test('a charge that the provider began and never ended is over with its time, and cannot be made any more', async () => {
  const asked = await request();
  await fault('error-before', '/v1/payment_intents', 1_000);
  assert.equal((await buy(asked)).code, 'OUTCOME_UNKNOWN');
  await world.control('DELETE', '/faults');
  const [order] = await world.database.sql<{ id: string; customer_id: string }[]>`
    select id, customer_id from card_orders where kind = 'purchase' and state = 0`;
  assert(order !== undefined);
  // What an error in the middle leaves at the provider.
  const intent = await provider('payment_intents', {
    amount: '500',
    currency: 'usd',
    customer: order.customer_id,
    payment_method: asked.paymentMethodId,
    'automatic_payment_methods[enabled]': 'true',
    'automatic_payment_methods[allow_redirects]': 'never',
    'metadata[order]': order.id,
  });
  assert.equal(intent.status, 'requires_confirmation');
  assert.equal((await buy(asked)).code, 'OUTCOME_UNKNOWN');
  aheadMs += 18 * 60_000;
  const over = await buy(asked);
  assert.deepEqual([over.status, over.code, over.body.charged], [402, 'PAYMENT_FAILED', false]);
  await assert.rejects(provider(`payment_intents/${intent.id}/confirm`, {}), /canceled/);
});

test('however many pages wait for somebody to pay, the sweeper comes to a charge at once', async () => {
  const asked = await request();
  await fault('error-before', '/v1/payment_intents', 1_000);
  assert.equal((await buy(asked)).code, 'OUTCOME_UNKNOWN');
  await world.control('DELETE', '/faults');
  aheadMs += 12 * 60_000;
  const { sql } = world.database;
  await sql`
    insert into card_orders (id, kind, amount_micros, credit_micros, created_at, expires_at, next_at)
    select gen_random_uuid(), 'checkout', 5000000, 5000000, ${new Date(now()).toISOString()},
           ${new Date(now() + HOUR_MS).toISOString()}, ${new Date(now() - DAY_MS).toISOString()}
    from generate_series(1, 500)`;
  await world.server.app.cards?.sweep();
  assert.deepEqual(await ordersOf({ since: now() - HOUR_MS }), { open: 0, paid: 1, over: 0 });
  assert.equal((await buy(asked)).body.newBalance, 5);
  await sql`delete from card_orders where kind = 'checkout' and session_id is null`;
});

describe('credit for a key that is presented', () => {
  test('a trial’s: it is one no longer, and its cap is held for a week', async () => {
    const trial = await jsonOf(
      fetch(`${world.server.url}/api/m2m/credits/trial`, { headers: { 'x-forwarded-for': '10.201.0.1' } }),
    );
    const key: string = trial.apiKey;
    const patch = (perDayUsd: string | null) =>
      fetch(`${world.server.url}/api/keys/me`, {
        method: 'PATCH',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify({ caps: { perDayUsd } }),
      });
    assert.equal((await patch('40')).status, 200);
    const asked = await request('visa', 10);
    const first = await buy(asked, { 'x-api-key': key });
    assert.deepEqual(
      [first.status, first.body.apiKey, first.body.creditsAdded, first.body.newBalance],
      [200, undefined, 10, 15],
    );
    assert.deepEqual((await buy(asked, { authorization: `Bearer ${key}` })).body, first.body);
    const me = await world.me(key);
    assert.deepEqual([me.kind, me.expiresAt, me.caps.perDayUsd], ['paid', null, '25.000000']);
    assert.equal(Date.parse(me.caps.fixedUntil) > now() + 6.9 * DAY_MS, true);

    for (const higher of ['26', '1000', null]) {
      const refusal = await patch(higher);
      const body = await jsonOf(refusal);
      assert.deepEqual([refusal.status, body.code, body.until], [409, 'CAP_FIXED', me.caps.fixedUntil]);
    }
    assert.equal((await world.me(key)).caps.perDayUsd, '25.000000');
    // A key that takes its place has the same cap.
    const rotated = await jsonOf(
      fetch(`${world.server.url}/api/keys/me/rotate`, { method: 'POST', headers: { 'x-api-key': key } }),
    );
    secrets.add(rotated.apiKey);
    aheadMs += 7 * DAY_MS + 1_000;
    await world.server.app.keys.releaseCaps(500);
    const after = await world.me(rotated.apiKey);
    // What its owner had asked for before is what it is again.
    assert.deepEqual([after.caps.perDayUsd, after.caps.fixedUntil], ['40.000000', null]);
  });

  test('a cap that is held can be lowered, and stays so afterwards', async () => {
    const { apiKey } = (await buy(await request())).body;
    const lowered = await fetch(`${world.server.url}/api/keys/me`, {
      method: 'PATCH',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ caps: { perDayUsd: '3' } }),
    });
    assert.equal((await jsonOf(lowered)).caps.perDayUsd, '3.000000');
    aheadMs += 8 * DAY_MS;
    await world.server.app.keys.releaseCaps(500);
    assert.equal((await world.me(apiKey)).caps.perDayUsd, '3.000000');
  });

  test('one that a wallet has filled: 5 USDC say nothing of the card, whose cap is held for a week', async () => {
    const trial = await jsonOf(
      fetch(`${world.server.url}/api/m2m/credits/trial`, { headers: { 'x-forwarded-for': '10.202.0.1' } }),
    );
    const known = await world.server.app.keys.find(trial.apiKey);
    assert(known !== null);
    await world.database.sql.begin(async (transaction) => {
      await world.server.app.ledger.transferWithin(transaction, {
        id: randomUUID(),
        accountId: known.accountId,
        phase: 'posted',
        side: 'credit',
        house: 'revenue_x402',
        amountMicros: 5_000_000n,
        code: 'usdc_topup',
        note: `topup ${randomUUID()}`,
      });
      await world.server.app.keys.becomePaid(transaction, known.accountId);
    });
    assert.equal((await buy(await request('visa', 10), { 'x-api-key': trial.apiKey })).status, 200);
    const { caps } = await world.me(trial.apiKey);
    assert.deepEqual(
      [caps.perDayUsd, Date.parse(caps.fixedUntil) > now() + 6.9 * DAY_MS],
      ['25.000000', true],
    );
    // Nobody paid for it: the books would say so.
    const account = String(known.accountId);
    await world.database
      .sql`delete from ledger_transfers where account_id = ${account} and code = 'usdc_topup'`;
    await world.database.sql`
      update ledger_accounts set credits_posted = credits_posted - 5000000 where id = ${account}`;
  });

  test('one that owes: the debt is paid first, and the answer says how much', async () => {
    const { apiKey, transactionId } = (await buy(await request())).body;
    assert.equal((await world.server.call('ping', apiKey)).status, 200);
    assert(world.server.app.cards !== null);
    const actKey = randomUUID();
    await world.server.app.cards.refund({ orderId: transactionId, amountMicros: null, actKey });
    const owing = await world.me(apiKey);
    assert.deepEqual([owing.status, owing.owedUsd], ['frozen', '0.250000']);
    const paid = await buy(await request(), { 'x-api-key': apiKey });
    assert.deepEqual(
      [paid.status, paid.body.creditsAdded, paid.body.newBalance, paid.body.debt],
      [200, 5, 4.75, { paidUsd: 0.25, owedUsd: 0, frozenFor: [] }],
    );
    assert.equal((await world.me(apiKey)).status, 'active');
  });

  test('one that is unknown, revoked or frozen by the operator is refused before anything', async () => {
    const [revoked, frozen] = [await world.server.key('1'), await world.server.key('1')];
    await fetch(`${world.server.url}/api/keys/me`, { method: 'DELETE', headers: { 'x-api-key': revoked } });
    const known = await world.server.app.keys.find(frozen);
    assert(known !== null);
    await world.database.sql.begin((transaction) =>
      world.server.app.keys.freeze(transaction, known.accountId, 'operator', 'test'),
    );
    const asked = await request();
    const since = now();
    for (const [key, status, code] of [
      [`fbx_live_${'0'.repeat(64)}`, 401, 'API_KEY_INVALID'],
      [revoked, 401, 'API_KEY_REVOKED'],
      [frozen, 403, 'API_KEY_FROZEN'],
    ] as const) {
      const refusal = await buy(asked, { 'x-api-key': key });
      assert.deepEqual([refusal.status, refusal.code, refusal.body.charged], [status, code, false]);
    }
    assert.deepEqual(await ordersOf({ since }), { open: 0, paid: 0, over: 0 });
  });
});

describe('limits hold however many ask at once', () => {
  /** How many of fifty purchases at once were made; the others were refused by the limit. */
  async function rush(limit: string, each: (index: number) => Promise<Awaited<ReturnType<typeof buy>>>) {
    const all = await Promise.all(Array.from({ length: 50 }, (_, index) => each(index)));
    for (const { status, body } of all) {
      if (status === 200) continue;
      assert.deepEqual([status, body.code, body.limit, body.charged], [429, 'RATE_LIMITED', limit, false]);
      assert(body.retryAfter >= 1);
    }
    return all.filter(({ status }) => status === 200).length;
  }

  test('twenty purchases of an IPv6 site in an hour, whichever of its networks they come from', async () => {
    const headers = { 'x-api-key': await world.server.key('1') };
    const from = async (address: string) => {
      const { status, body } = await buy(await request(), { ...headers, 'x-forwarded-for': address });
      return status === 200 ? 200 : [status, body.limit];
    };
    for (let network = 1; network <= 20; network += 1)
      assert.equal(await from(`2606:4700:77:${network.toString(16)}::1`), 200);
    assert.deepEqual(await from('2606:4700:77:ffff::1'), [429, 'attempts_per_network']);
    assert.equal(await from('2606:4700:78:1::1'), 200, 'another site');
  });

  test('five purchases of a network in an hour', async () => {
    const key = await world.server.key('1');
    const requests = await Promise.all(Array.from({ length: 50 }, () => request()));
    const charged = await chargedBy(async () => {
      const made = await rush('attempts_per_network', (index) =>
        buy(requests[index] ?? {}, { 'x-api-key': key, 'x-forwarded-for': `10.202.0.${index + 1}` }),
      );
      assert.equal(made, 5);
    });
    assert.equal(charged, 2_500);
    aheadMs += HOUR_MS + 1_000;
    const later = await buy(await request(), { 'x-forwarded-for': '10.202.0.77' });
    assert.equal(later.status, 200, JSON.stringify(later.body));
  });

  test('three new accounts of a card in a week', async () => {
    const requests = await Promise.all(Array.from({ length: 50 }, () => request('amex')));
    assert.equal(await rush('new_accounts_per_card', (index) => buy(requests[index] ?? {})), 3);
    // It can still pay for a key that there is.
    const key = await world.server.key('1');
    assert.equal((await buy(await request('amex'), { 'x-api-key': key })).status, 200);
  });

  test('200 USD of a card in a day', async () => {
    const key = await world.server.key('1');
    const requests = await Promise.all(Array.from({ length: 50 }, () => request('visa', 100)));
    const charged = await chargedBy(async () => {
      const made = await rush('amount_per_card', (index) => buy(requests[index] ?? {}, { 'x-api-key': key }));
      assert.equal(made, 2);
    });
    assert.equal(charged, 20_000);
  });

  test('three declines of a network, and it waits for a day from the last', async () => {
    const from = { 'x-forwarded-for': '2001:db8:1:1::7' };
    for (const token of ['chargeDeclined', 'chargeDeclinedLostCard', 'chargeDeclinedExpiredCard'])
      assert.equal((await buy(await request(token), from)).status, 402);
    const good = await request();
    const neighbour = { 'x-forwarded-for': '2001:db8:1:1:ffff::1' };
    const blocked = await buy(good, neighbour);
    assert.deepEqual([blocked.status, blocked.body.limit], [429, 'declines_per_network']);
    assert.equal(blocked.headers.get('retry-after'), String(blocked.body.retryAfter));
    aheadMs += 23 * HOUR_MS;
    assert.equal((await buy(good, neighbour)).status, 429);
    aheadMs += HOUR_MS;
    assert.equal((await buy(good, neighbour)).status, 200);
  });

  test('five declines of a card in a day, from wherever', async () => {
    const requests = await Promise.all(Array.from({ length: 20 }, () => request('chargeDeclined')));
    const all = await Promise.all(requests.map((asked) => buy(asked)));
    // Those that were under way took the place of others: one after the other they come to the same.
    for (let n = 0; n < 5; n++) all.push(await buy(await request('chargeDeclined')));
    const codes = all.map(({ code }) => code);
    assert.equal(codes.filter((code) => code === 'CARD_DECLINED').length, 5, codes.join());
    assert.equal(codes.filter((code) => code === 'RATE_LIMITED').length, 20);
  });

  test('a card whose payment is disputed pays no more', async () => {
    const disputed = await buy(await request('createDispute'));
    await world
      .control('POST', '/disputes', { paymentIntent: disputed.body.paymentIntentId })
      .catch(() => null);
    assert(world.server.app.cards !== null);
    await until('the dispute', async () => {
      await world.server.app.cards?.reconciler.reconcile(disputed.body.transactionId);
      return (await world.me(disputed.body.apiKey)).balanceUsd === '0.000000';
    });
    const refused = await buy(await request('createDispute'));
    assert.deepEqual([refused.status, refused.code, refused.body.charged], [402, 'PAYMENT_FAILED', false]);
  });

  test('when too many cards are declined nobody can buy for ten minutes', async () => {
    const tokens = ['', 'InsufficientFunds', 'LostCard', 'ExpiredCard'].map(
      (name) => `chargeDeclined${name}`,
    );
    const pauses = () => world.server.log.filter((line) => line.includes('purchases are paused')).length;
    const before = pauses();
    for (let index = 0; index < 16; index++)
      assert.equal((await buy(await request(tokens[index % 4]))).code, 'CARD_DECLINED', `${index}`);
    const good = await request();
    const all = await Promise.all(Array.from({ length: 10 }, () => buy(good)));
    for (const { status, body } of all)
      assert.deepEqual([status, body.code, body.charged], [503, 'PURCHASES_PAUSED', false]);
    assert.match(all[0]?.body.hostedCheckout.url, /checkout\/session$/);
    assert.equal(pauses(), before + 1);
    aheadMs += 10 * 60_000 + 1_000;
    assert.equal((await buy(good)).status, 200);
    assert.equal(pauses(), before + 1);
  });
});
