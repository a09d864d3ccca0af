import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pino from 'pino';
import { createRateLimit } from '../http/rate-limit.ts';
import { createHttpServer } from '../http/server.ts';
import type { CheckoutStatus, CreditCheckout } from './credit-checkout.ts';
import { creditRoutes } from './credit-routes.ts';
import { creditsOf } from './credits.ts';

const NOW_MS = Date.parse('2026-11-21T05:30:00Z');
const TOKEN = 'a'.repeat(32);
type Order = Parameters<CreditCheckout['open']>[0];

/** The routes over a checkout that records what it was asked, and answers what it is told to. */
function opened(status: CheckoutStatus | null) {
  const orders: Order[] = [];
  const polls: { sessionId: string; retrievalToken: string }[] = [];
  const app = createHttpServer(pino({ level: 'silent' }));
  const nowMs = () => NOW_MS;
  const limit = () => createRateLimit({ perMinute: 10, maxNames: 10, nowMs });
  creditRoutes(app, {
    checkout:
      status === null
        ? null
        : {
            async open(order) {
              orders.push(order);
              return {
                sessionId: 'cs_test_1',
                retrievalToken: TOKEN,
                checkoutUrl: 'https://cards.test/pay/1',
                expiresAtMs: NOW_MS + 1_800_000,
              };
            },
            async status(session) {
              polls.push(session);
              return status;
            },
          },
    baseUrl: 'https://farebox.test',
    checkoutLimit: limit(),
    accountLimit: limit(),
    walletsPay: () => false,
    addressOf: () => '198.51.100.7',
    nowMs,
  });
  const ask = async (method: 'GET' | 'POST', url: string, payload?: object) => {
    const response = await app.inject({
      method,
      url: `/api/gpt/credits/${url}`,
      ...(payload && { payload }),
    });
    return { status: response.statusCode, headers: response.headers, body: response.json() };
  };
  return { ask, orders, polls };
}

test('credits are tenths of a dollar, rounded up as the interface lists them', () => {
  const listed = [
    [1_000_000n, 10],
    [1_250_000n, 13],
    [750_000n, 8],
    [500_000n, 5],
    [400_000n, 4],
  ] as const;
  for (const [micros, credits] of listed) assert.equal(creditsOf(micros), credits);
});

test('the packages are those of the interface', async () => {
  const { status, body } = await opened(null).ask('GET', 'packages');
  assert.equal(status, 200);
  assert.deepEqual(
    body.packages.map((each: Record<string, unknown>) => [
      each.id,
      each.name,
      each.price,
      each.priceUSD,
      each.credits,
      each.pricePerCredit,
      each.savingPercent,
    ]),
    [
      ['starter', 'Starter', '$10', 10, 100, 0.1, 0],
      ['pro', 'Pro', '$50', 50, 600, 0.083, 17],
      ['enterprise', 'Enterprise', '$200', 200, 3000, 0.067, 33],
    ],
  );
  assert.deepEqual(
    body.paymentMethods.map((each: { available: boolean }) => each.available),
    [false, false],
  );
});

test('without cards both helpers say that they are unavailable', async () => {
  const { ask } = opened(null);
  for (const { status, headers, body } of [
    await ask('POST', 'create-session', { package: 'starter' }),
    await ask('GET', `status?session=cs_test_1.${TOKEN}`),
  ]) {
    assert.deepEqual(
      [status, body.error, headers['retry-after'], headers['cache-control']],
      [503, 'CARDS_NOT_CONFIGURED', '3600', 'no-store'],
    );
  }
});

describe('with cards', () => {
  test('a session is opened for exactly the package, and its id alone fetches the key', async () => {
    const ready: CheckoutStatus = {
      status: 'ready',
      apiKey: 'the-key',
      keyPrefix: 'the',
      creditMicros: 60_000_000n,
    };
    const { ask, orders, polls } = opened(ready);
    const { status, body } = await ask('POST', 'create-session', { package: 'Pro', email: 'a@b.test' });
    assert.equal(status, 200);
    const [order] = orders;
    assert.deepEqual(
      [order?.package.priceMicros, order?.package.creditMicros, order?.email, order?.address],
      [50_000_000n, 60_000_000n, 'a@b.test', '198.51.100.7'],
    );
    assert.equal(body.checkoutUrl, 'https://cards.test/pay/1');
    assert(!body.checkoutUrl.includes(TOKEN));
    const { pathname, search } = new URL(body.statusEndpoint);
    assert.equal(pathname, '/api/gpt/credits/status');
    const polled = await ask('GET', `status${search}`);
    assert.deepEqual(polls, [{ sessionId: 'cs_test_1', retrievalToken: TOKEN }]);
    assert.deepEqual(
      [polled.body.status, polled.body.apiKey, polled.body.credits, polled.headers['cache-control']],
      ['completed', 'the-key', 600, 'no-store'],
    );
  });

  test('a status without its session is refused before the checkout is asked', async () => {
    const { ask, polls } = opened({ status: 'delivered' });
    for (const query of ['', '?session=', '?session=a&session=b']) {
      const { status, body } = await ask('GET', `status${query}`);
      assert.deepEqual([status, body.code], [400, 'SESSION_REQUIRED'], query);
    }
    assert.deepEqual(polls, []);
  });

  test('an unknown package opens no session, and the answer lists the packages', async () => {
    const { ask, orders } = opened({ status: 'delivered' });
    for (const payload of [{}, { package: 'gold' }]) {
      const { status, body } = await ask('POST', 'create-session', payload);
      assert.deepEqual([status, body.code, body.packages.length], [400, 'INVALID_PACKAGE', 3]);
    }
    assert.equal(orders.length, 0);
  });

  test("the checkout's own session, which a browser has seen, fetches nothing", async () => {
    const { ask, polls } = opened({ status: 'delivered' });
    for (const session of ['cs_test_1', 'cs_test_1.', `.${TOKEN}`, `cs_test_1.${TOKEN}.x`]) {
      assert.equal((await ask('GET', `status?session=${session}`)).status, 404, session);
    }
    for (const query of ['', '?session=', '?session=a&session=b']) {
      assert.equal((await ask('GET', `status${query}`)).status, 400, query);
    }
    assert.equal(polls.length, 0);
  });

  test('each state of a checkout has its own answer', async () => {
    const states: [CheckoutStatus, number, string | undefined, Record<string, unknown>][] = [
      [{ status: 'unknown' }, 404, undefined, { code: 'UNKNOWN_SESSION' }],
      [
        { status: 'unpaid', checkoutUrl: 'https://cards.test/pay/1', expiresAtMs: NOW_MS + 61_000 },
        200,
        'pending',
        { remainingTimeMs: 61_000, pollsRemaining: 12, nextPollAfterMs: 5_000 },
      ],
      [{ status: 'delivered' }, 200, 'completed', { alreadyDelivered: true }],
      [{ status: 'expired' }, 200, 'expired', { success: false }],
    ];
    for (const [state, status, said, fields] of states) {
      const polled = await opened(state).ask('GET', `status?session=cs_test_1.${TOKEN}`);
      assert.deepEqual([polled.status, polled.body.status], [status, said]);
      assert.equal(polled.body.apiKey, undefined);
      for (const [name, value] of Object.entries(fields)) assert.equal(polled.body[name], value, name);
    }
  });

  test('an address may open a limited number of sessions', async () => {
    const { ask, orders } = opened({ status: 'delivered' });
    for (let n = 0; n < 12; n++) await ask('POST', 'create-session', { package: 'starter' });
    assert.equal(orders.length, 10);
  });
});
