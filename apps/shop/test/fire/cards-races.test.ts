/** Races for card money, with names: two replicas on one database, and a provider that says what is asked of it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';
import { z } from 'zod';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { jsonOf, type TestServer } from '../server.fixture.ts';
import { type CardsStage, startCardsStage } from './cards-stage.fixture.ts';
import { accountOf } from './money.fixture.ts';
import { until } from './until.fixture.ts';

const VISA = '4242424242424242';
const OPERATOR = 'the-operators-token-of-the-card-races';
const note = defineService({
  path: 'note',
  name: 'note',
  tag: 'Discovery',
  priceUsd: '4',
  summary: 'For tests.',
  input: z.object({}),
  output: z.object({ done: z.boolean() }),
  example: {},
  run: async () => answer({ done: true }, { method: 'Done.' }),
});

let stage: CardsStage;
before(async () => {
  stage = await startCardsStage({ services: [note], environment: { ADMIN_TOKENS: `desk:${OPERATOR}` } });
});
afterEach(async () => {
  await quiet();
  await stage.assertBooks();
  for (const { server } of stage.replicas) {
    const bad = server.log.filter((line) => /deadlock|40P01|"level":(?:50|60)/.test(line));
    assert.deepEqual(bad, []);
  }
});
after(() => stage.stop());

const both = () => stage.replicas.map(({ server }) => server);
const server = (index: number): TestServer => stage.replica(index).server;

function cardsOf({ app }: TestServer) {
  assert(app.cards !== null);
  return app.cards;
}

/** Waits until nothing is under way any more, and all of it is worked. */
async function quiet(): Promise<void> {
  stage.gate(true);
  await until('everything to be worked', async () => {
    for (const each of both()) {
      await cardsOf(each).inbox.work();
      await each.app.debts.sweep(100);
    }
    const [left] = await stage.database.sql<{ events: number }[]>`
      select count(*)::integer as events from card_events where next_at is not null`;
    const isQuiet = left?.events === 0 && (await stage.posted());
    // What was refused, or did not go well, is tried again after a while.
    if (!isQuiet) await stage.advance(1_000);
    return isQuiet;
  });
}

async function open(amountUsd: number) {
  const opened = await jsonOf(
    stage.post(server(0), '/api/m2m/credits/checkout/session', { amountUsd, email: 'owner@example.com' }),
  );
  const [order] = await stage.database.sql<{ id: string }[]>`
    select id from card_orders where session_id = ${opened.sessionId}`;
  assert(order !== undefined);
  const path = `/api/m2m/credits/checkout/status/${opened.sessionId}?token=${opened.retrievalToken}`;
  return { orderId: order.id, sessionId: opened.sessionId, checkoutUrl: opened.checkoutUrl, path };
}

type Opened = Awaited<ReturnType<typeof open>>;
const poll = ({ path }: Opened, to: TestServer) => jsonOf(fetch(to.url + path));

async function buy(amountUsd: number): Promise<Opened & { apiKey: string; paymentIntent: string }> {
  const opened = await open(amountUsd);
  await stage.pay(opened.checkoutUrl, VISA);
  await cardsOf(server(0)).reconciler.reconcile(opened.orderId);
  const { apiKey } = await poll(opened, server(0));
  const [order] = await stage.database.sql<{ payment_intent_id: string }[]>`
    select payment_intent_id from card_orders where id = ${opened.orderId}`;
  assert(apiKey !== undefined && order !== undefined);
  return { ...opened, apiKey, paymentIntent: order.payment_intent_id };
}

const me = (apiKey: string) =>
  jsonOf(fetch(`${server(0).url}/api/keys/me`, { headers: { 'x-api-key': apiKey } }));

async function transfers(orderId: string) {
  const rows = await stage.database.sql<{ code: string; micros: bigint }[]>`
    select code, amount_micros as micros from ledger_transfers where note = ${`order ${orderId}`}
    order by created_at, code`;
  return rows.map(({ code, micros }) => `${code} ${micros}`);
}

function message(type: string, object: object): string {
  const created = Math.floor(stage.nowMs() / 1_000);
  return JSON.stringify({ id: `evt_${randomUUID().replaceAll('-', '')}`, type, created, data: { object } });
}

test('pollers, messages, sweepers and jobs, a hundred at once over two replicas: one grant, one key', async () => {
  stage.gate(false);
  const opened = await open(25);
  await stage.pay(opened.checkoutUrl, VISA);
  const keys = new Set<string>();
  await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const to = server(index >> 2);
      if (index % 4 === 0) {
        const { apiKey } = await poll(opened, to);
        if (apiKey !== undefined) keys.add(apiKey);
      } else if (index % 4 === 1) {
        const metadata = { order: opened.orderId };
        const object = { object: 'checkout.session', id: opened.sessionId, metadata };
        assert.equal((await stage.present(message('checkout.session.completed', object), to)).status, 200);
      } else if (index % 4 === 2) {
        await stage.database
          .sql`update card_orders set next_at = now() where id = ${opened.orderId} and state = 0`;
        await cardsOf(to).sweep();
      } else await cardsOf(to).reconciler.reconcile(opened.orderId);
    }),
  );
  for (const each of both()) keys.add((await poll(opened, each)).apiKey);
  assert.equal(keys.size, 1);
  const [apiKey = ''] = keys;
  assert.equal((await me(apiKey)).balanceUsd, '25.000000');
  assert.deepEqual(await transfers(opened.orderId), ['card_payment 25000000']);
});

test('fifty messages under names of their own about one refund: it is taken once', async () => {
  const bought = await buy(10);
  await stage.control('POST', '/refunds', { paymentIntent: bought.paymentIntent, amountCents: 300 });
  const refund = { object: 'refund', id: 're_1', payment_intent: bought.paymentIntent };
  await Promise.all(
    Array.from({ length: 50 }, async (_, index) => {
      await stage.present(message('refund.created', refund), server(index));
      await cardsOf(server(index)).inbox.work();
    }),
  );
  await quiet();
  assert.equal((await me(bought.apiKey)).balanceUsd, '7.000000');
  assert.deepEqual(await transfers(bought.orderId), ['card_payment 10000000', 'card_reversal 3000000']);
});

test('a refund and the fulfilment at once: whichever is seen first, nothing is left', async () => {
  for (const round of [1, 2, 3, 4]) {
    stage.gate(false);
    const opened = await open(5);
    await stage.pay(opened.checkoutUrl, VISA);
    const session = await stage.stripe.checkout.sessions.retrieve(opened.sessionId);
    const looks = () =>
      both().map((to) =>
        cardsOf(to)
          .reconciler.reconcile(opened.orderId)
          .then(() => poll(opened, to)),
      );
    const [, ...polled] = await Promise.all([
      stage.control('POST', '/refunds', { paymentIntent: session.payment_intent }),
      ...looks(),
      ...looks(),
    ]);
    await quiet();
    const [order] = await stage.database.sql<{ state: number; reversed: bigint }[]>`
      select state, reversed_micros as reversed from card_orders where id = ${opened.orderId}`;
    assert.deepEqual([order?.state, order?.reversed], [1, 5_000_000n], `round ${round}`);
    const keys = new Set([...polled, await poll(opened, server(0))].map(({ apiKey }) => apiKey));
    keys.delete(undefined);
    assert.equal(keys.size, 1);
    const { balanceUsd, status } = await me([...keys][0] ?? '');
    assert.deepEqual([balanceUsd, status], ['0.000000', 'active']);
  }
});

test('a dispute and refunds at once, then it is won and a refund fails: every step is taken once', async () => {
  const bought = await buy(25);
  const { paymentIntent, apiKey } = bought;
  const [, dispute] = await Promise.all([
    stage.control('POST', '/refunds', { paymentIntent, amountCents: 500 }),
    stage.control('POST', '/disputes', { paymentIntent }),
    cardsOf(server(1)).refund({ orderId: bought.orderId, amountMicros: 2_000_000n, actKey: randomUUID() }),
    ...both().flatMap((to) => [1, 2, 3].map(() => cardsOf(to).reconciler.reconcile(bought.orderId))),
  ]);
  await quiet();
  await stage.assertBooks();
  assert.equal((await me(apiKey)).balanceUsd, '0.000000');
  const refunds = await stage.stripe.refunds.list({ payment_intent: paymentIntent });
  const [first] = refunds.data;
  assert(first !== undefined);
  await Promise.all([
    stage.control('POST', `/disputes/${dispute.id}`, { status: 'won' }),
    stage.control('POST', `/refunds/${first.id}/fail`),
    ...both().map((to) => cardsOf(to).reconciler.reconcile(bought.orderId)),
  ]);
  await quiet();
  const left = refunds.data.reduce((sum, { amount, id }) => sum - (id === first.id ? 0 : amount), 2_500);
  assert.equal((await me(apiKey)).balanceUsd, `${(left / 100).toFixed(2)}0000`);
});

test('a key that is rotated while its account is frozen does not come out of it', async () => {
  for (let round = 0; round < 12; round++) {
    const bought = await buy(5);
    assert.equal((await server(0).call('note', bought.apiKey)).status, 200);
    await stage.control('POST', '/refunds', { paymentIntent: bought.paymentIntent });
    const [rotated] = await Promise.all([
      stage.post(server(1), '/api/keys/me/rotate', {}, { 'x-api-key': bought.apiKey }),
      cardsOf(server(0)).reconciler.reconcile(bought.orderId),
    ]);
    const key = rotated.status === 200 ? (await jsonOf(rotated)).apiKey : bought.apiKey;
    await quiet();
    assert.equal((await me(key)).status, 'frozen', `round ${round}: rotate answered ${rotated.status}`);
  }
});

test('two accounts, their debts, and everything that moves money at once: no deadlock, and all of it adds up', async () => {
  const cards = ['tok_visa', 'tok_mastercard', 'tok_amex'];
  const accounts = await Promise.all([buy(25), buy(25)]);
  const payments: string[] = accounts.map(({ paymentIntent }) => paymentIntent);
  const purchase = async (apiKey: string, index: number) => {
    const card = { token: cards[index % cards.length] ?? '' };
    const { id } = await stage.stripe.paymentMethods.create({ type: 'card', card });
    const body = { paymentMethodId: id, amountUsd: 5, idempotencyKey: randomUUID() };
    const bought = await stage.post(server(index), '/api/m2m/credits/purchase', body, {
      'x-api-key': apiKey,
    });
    assert.equal(bought.status, 200, await bought.text());
  };
  for (const [index, { apiKey }] of accounts.entries()) {
    await Promise.all([0, 1, 2].map((nth) => purchase(apiKey, index + nth)));
    for (let calls = 0; calls < 9; calls++) await server(calls).call('note', apiKey);
  }
  const orders = await stage.database.sql<{ id: string; payment_intent_id: string }[]>`
    select id, payment_intent_id from card_orders where state = 1 and reversed_micros = 0 and account_id in (
      select account_id from card_orders where payment_intent_id in ${stage.database.sql(payments)})`;
  assert.equal(orders.length, 8);

  const operate = async (act: string, apiKey: string, body: object) => {
    const account = await accountOf(stage.database.sql, apiKey);
    const headers = { authorization: `Bearer ${OPERATOR}`, 'idempotency-key': randomUUID() };
    const done = await stage.post(server(1), `/admin/api/accounts/${account}/${act}`, body, headers);
    assert([200, 409].includes(done.status), `${act}: ${done.status} ${await done.text()}`);
  };
  const acts: (() => Promise<unknown>)[] = [];
  for (let round = 0; round < 6; round++) {
    for (const [index, { id, payment_intent_id: paymentIntent }] of orders.entries()) {
      acts.push(
        () => stage.control('POST', '/refunds', { paymentIntent, amountCents: 60 + index }),
        () => cardsOf(server(index + round)).reconciler.reconcile(id),
      );
    }
    for (const [index, { apiKey }] of accounts.entries()) {
      acts.push(
        () => operate('grant', apiKey, { amountUsd: '1.50', reason: 'for the race' }),
        () => operate(round % 2 ? 'unfreeze' : 'freeze', apiKey, { reason: 'for the race' }),
        () => server(index + round).call('note', apiKey),
        () => server(round).app.debts.sweep(100),
        () => cardsOf(server(round)).inbox.work(),
      );
    }
  }
  // Not in the order in which they stand here, and always in the same other one.
  const shuffled = acts
    .map((act, index) => ({ act, place: (index * 7_919) % acts.length }))
    .sort((one, other) => one.place - other.place);
  const lanes = Array.from({ length: 24 }, async (_, lane) => {
    for (let next = lane; next < acts.length; next += 24) await shuffled[next]?.act();
  });
  await Promise.all(lanes);
  await quiet();
  const [owing] = await stage.database.sql<{ owed: bigint }[]>`
    select coalesce(sum(owed_micros), 0)::bigint as owed from account_debts`;
  const deadlocks = await stage.database.sql<{ deadlocks: bigint }[]>`
    select deadlocks from pg_stat_database where datname = current_database()`;
  assert.equal(deadlocks[0]?.deadlocks, 0n);
  assert(owing !== undefined && owing.owed > 0n, 'nobody came to owe anything');
});
