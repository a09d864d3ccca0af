/**
 * Card money under random fire: checkouts, packages, purchases and balances that refill themselves, paid, declined,
 * authenticated or abandoned; messages that are lost, doubled, late, in another order or under another name; refunds,
 * refunds that fail, disputes won and lost, fraud warnings; agents that poll two replicas at once, replicas that die.
 * Then everything is let through, and what the provider holds is compared with the books, order by order and customer by
 * customer.
 *
 * FIRE_SEED and FIRE_PATH of a failure make the same choices again; how they interleave is up to the machine.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { z } from 'zod';
import { defineService, type Service } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { notFound } from '../../../../packages/core/src/words/failure.ts';
import { type CardsStage, type Replica, startCardsStage } from './cards-stage.fixture.ts';
import { isDeep } from './depth.fixture.ts';
import { accountOf } from './money.fixture.ts';
import { until } from './until.fixture.ts';

const PROGRAMS = isDeep ? 500 : 5;
const ACTS = 150;
const MOST_ROUNDS = 5;
const MAX_OUTSTANDING = 12;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const CENT = 10_000n;

const held: (() => void)[] = [];
const PRICES = { dime: '0.10', note: '4' } as const;
const services: Service[] = Object.entries(PRICES).map(([path, priceUsd]) =>
  defineService({
    path,
    name: path,
    tag: 'Discovery',
    priceUsd,
    summary: 'For tests.',
    input: z.object({ mode: z.enum(['ok', 'none', 'held']) }),
    output: z.object({ done: z.boolean() }),
    example: { mode: 'ok' },
    timeoutMs: 20_000,
    async run({ mode }) {
      if (mode === 'held') await new Promise<void>((resolve) => held.push(resolve));
      // What was held is given back, and by then a refund may have taken all that was not reserved.
      if (mode !== 'ok') throw notFound('mode', 'nothing there');
      return answer({ done: true }, { method: 'Done.' });
    },
  }),
);

// ------------------------------------------------------------------------------------------------- the acts

const often = <T>(arbitrary: fc.Arbitrary<T>, weight: number) => ({ arbitrary, weight });
const any = fc.nat(1_000);
const replica = fc.nat(1);

const GOOD = ['4242424242424242', '5555555555554444', '378282246310005'] as const;
const card = fc.oneof(
  often(fc.constantFrom(...GOOD), 9),
  often(fc.constantFrom('4000000000000002', '4000000000009995', '4000000000000341'), 2),
  often(fc.constantFrom('4000002500003155', '4000002760003184', '4000008260003178'), 3),
  // Disputed, inquired about or warned of as soon as it is paid; refunds that fail later, or take their time.
  often(fc.constantFrom('4000000000000259', '4000000000001976', '4000000000005423'), 2),
  often(fc.constantFrom('4000000000005126', '4000000000007726'), 2),
);
const PURCHASE_CARDS = [
  ...['visa', 'mastercard', 'amex', 'chargeDeclined', 'authenticationRequired', 'createDispute'],
  ...['createIssuerFraudRecord', 'refundFail', 'pendingRefund'],
] as const;
const API_PATHS = [
  ...[
    '',
    '/v1/checkout',
    '/v1/payment_intents',
    '/v1/customers',
    '/v1/refunds',
    '/v1/disputes',
    '/v1/events',
  ],
] as const;

const act = fc.oneof(
  often(
    fc.record({
      act: fc.constant('open' as const),
      replica,
      amountUsd: fc.constantFrom(5, 10, 25, 100),
      recharge: fc.option(fc.constantFrom(5, 10), { freq: 3 }),
      package: fc.option(fc.constantFrom('starter', 'pro', 'enterprise'), { freq: 4 }),
    }),
    10,
  ),
  often(
    fc.record({
      act: fc.constant('purchase' as const),
      replica,
      amountUsd: fc.constantFrom(5, 10, 25),
      card: fc.constantFrom(...PURCHASE_CARDS),
      onto: fc.option(any, { freq: 2 }),
      copies: fc.integer({ min: 1, max: 3 }),
      trouble: fc.option(fc.constantFrom('error-after', 'drop-after', 'garbage', 'late', 'error-before')),
    }),
    9,
  ),
  often(fc.record({ act: fc.constant('pay' as const), which: any, card }), 22),
  often(fc.record({ act: fc.constant('authenticate' as const), which: any, approve: fc.boolean() }), 5),
  often(
    fc.record({
      act: fc.constant('poll' as const),
      replica,
      which: any,
      copies: fc.integer({ min: 1, max: 4 }),
    }),
    16,
  ),
  often(
    fc.record({
      act: fc.constant('job' as const),
      replica,
      job: fc.constantFrom(
        'inbox',
        'inbox',
        'sweep',
        'sweep',
        'recharge',
        'catch up',
        'debts',
        'walks',
        'calls',
      ),
    }),
    18,
  ),
  often(
    fc.record({
      act: fc.constant('clock' as const),
      ms: fc.oneof(
        often(fc.constant(3_000), 6),
        often(fc.constant(MINUTE_MS), 4),
        often(fc.constant(6 * MINUTE_MS), 2),
        often(fc.constant(65 * MINUTE_MS), 1),
      ),
    }),
    8,
  ),
  often(
    fc.record({
      act: fc.constant('refund' as const),
      replica,
      which: any,
      cents: fc.option(fc.integer({ min: 1, max: 600 })),
      by: fc.constantFrom('the bank', 'an operator'),
    }),
    9,
  ),
  often(fc.record({ act: fc.constant('fail refund' as const), which: any }), 4),
  often(fc.record({ act: fc.constant('dispute' as const), which: any, inquiry: fc.boolean() }), 6),
  often(
    fc.record({
      act: fc.constant('turn dispute' as const),
      which: any,
      status: fc.constantFrom('needs_response', 'under_review', 'warning_closed', 'won', 'won', 'lost'),
    }),
    9,
  ),
  often(fc.record({ act: fc.constant('warn' as const), which: any }), 2),
  often(
    fc.record({
      act: fc.constant('call' as const),
      replica,
      which: any,
      path: fc.constantFrom('dime' as const, 'note' as const, 'note' as const),
      mode: fc.constantFrom('ok', 'ok', 'ok', 'none', 'held'),
    }),
    24,
  ),
  often(fc.record({ act: fc.constant('release' as const) }), 6),
  often(
    fc.record({
      act: fc.constant('api fault' as const),
      fault: fc.constantFrom(
        ...['error-before', 'error-after', 'drop-before', 'drop-after', 'late', 'garbage', 'rate-limit'],
      ),
      path: fc.constantFrom(...API_PATHS),
      method: fc.constantFrom('', 'POST', 'GET'),
      times: fc.integer({ min: 1, max: 8 }),
    }),
    10,
  ),
  often(
    fc.record({
      act: fc.constant('webhook fault' as const),
      fault: fc.constantFrom('drop', 'duplicate', 'echo', 'delay', 'reorder'),
      times: fc.integer({ min: 1, max: 4 }),
    }),
    9,
  ),
  often(fc.record({ act: fc.constant('gate' as const), open: fc.boolean() }), 3),
  often(fc.record({ act: fc.constant('send again' as const), which: any }), 5),
  often(fc.record({ act: fc.constant('crash' as const), replica }), 1),
  often(fc.record({ act: fc.constant('wait' as const), ms: fc.nat(40) }), 12),
);
type Act = typeof act extends fc.Arbitrary<infer T> ? T : never;

// ------------------------------------------------------------------------------------- what somebody remembers

/** An agent that waits for a key. */
interface Agent {
  /** Where it asks, without the replica's address. */
  statusPath: string;
  sessionId: string | null;
  checkoutUrl: string | null;
  /** The body of a purchase, which is sent again to hear of it. */
  purchase: object | null;
  keys: Set<string>;
  /** An answer was lost on its way: it may have been the one with the key. */
  lost: boolean;
  last: string;
}

let stage: CardsStage;
let agents: Agent[] = [];
let challenges: string[] = [];
const troubles: string[] = [];
const seen = { opened: 0, paid: 0, over: 0, refunds: 0, disputes: 0, calls: 0, owing: 0, crashes: 0 };

let crashesOver = 0;
/** Watches from now on. @returns whether a replica was dying at any time since */
function watchCrashes(): () => boolean {
  const overBefore = crashesOver;
  return () => seen.crashes > overBefore;
}

before(async () => {
  stage = await startCardsStage({
    services,
    environment: { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'credits@farebox.test' },
  });
});
after(() => stage.stop());

function pick<T>(list: readonly T[], which: number): T | undefined {
  return list.length === 0 ? undefined : list[which % list.length];
}

const objects = (type: string) => stage.told.filter((event) => event.type === type);

// ------------------------------------------------------------------------------------------ running a program

class Scene {
  readonly #running = new Set<Promise<void>>();

  async perform(one: Act): Promise<void> {
    const doing: Promise<void> = this.#do(one)
      .catch((error: unknown) => {
        troubles.push(`${JSON.stringify(one)}: ${error instanceof Error ? error.stack : error}`);
      })
      .finally(() => this.#running.delete(doing));
    this.#running.add(doing);
    if (one.act === 'wait' || one.act === 'clock' || one.act === 'crash') await doing;
    else await new Promise(setImmediate);
    while (this.#running.size > MAX_OUTSTANDING) await Promise.race([...this.#running, this.#nudge()]);
  }

  /** Lets go what is held when nothing else goes on. */
  async #nudge(): Promise<void> {
    await sleep(150);
    held.shift()?.();
  }

  async rest(): Promise<void> {
    while (this.#running.size > 0) await Promise.race([...this.#running, this.#nudge()]);
  }

  async #do(one: Act): Promise<void> {
    const { control } = stage;
    switch (one.act) {
      case 'open':
        return this.#open(one);
      case 'purchase':
        return this.#purchase(one);
      case 'pay': {
        const urls = agents.flatMap(({ checkoutUrl }) => checkoutUrl ?? []).slice(-8);
        const url = pick(urls, one.which);
        if (url === undefined) return;
        const next = await stage.pay(url, one.card);
        if (next?.includes('/authenticate/')) challenges.push(next);
        return;
      }
      case 'authenticate': {
        const url = pick(challenges, one.which);
        if (url === undefined) return;
        const decision = one.approve ? 'approve' : 'fail';
        const reply = await fetch(url, {
          method: 'POST',
          body: new URLSearchParams({ decision }),
          redirect: 'manual',
        });
        return void (await reply.body?.cancel());
      }
      case 'poll': {
        const agent = pick(agents.slice(-10), one.which);
        if (agent === undefined) return;
        await Promise.all(
          Array.from({ length: one.copies }, (_, copy) => ask(agent, stage.replica(one.replica + copy))),
        );
        return;
      }
      case 'job':
        return job(stage.replica(one.replica), one.job);
      case 'clock':
        return stage.advance(one.ms);
      case 'refund':
        return this.#refund(one);
      case 'fail refund': {
        const refund = pick(objects('refund.created'), one.which);
        return void (refund && (await control('POST', `/refunds/${refund.object.id}/fail`)));
      }
      case 'dispute': {
        const payment = pick(objects('payment_intent.succeeded').slice(-12), one.which);
        const { inquiry } = one;
        return void (
          payment && (await control('POST', '/disputes', { paymentIntent: payment.object.id, inquiry }))
        );
      }
      case 'turn dispute': {
        const dispute = pick(objects('charge.dispute.created').slice(-6), one.which);
        const { status } = one;
        return void (dispute && (await control('POST', `/disputes/${dispute.object.id}`, { status })));
      }
      case 'warn': {
        const payment = pick(objects('payment_intent.succeeded').slice(-12), one.which);
        const body = { paymentIntent: payment?.object.id };
        return void (payment && (await control('POST', '/early-fraud-warnings', body)));
      }
      case 'call':
        return this.#call(one);
      case 'release':
        return held.shift()?.();
      case 'api fault': {
        const { fault, path, method, times } = one;
        await control('POST', '/faults', { on: 'api', fault, path, method, times, delayMs: 400 });
        return;
      }
      case 'webhook fault': {
        const { fault, times } = one;
        await control('POST', '/faults', { on: 'webhook', fault, times, delayMs: 700 });
        return;
      }
      case 'gate':
        return stage.gate(one.open);
      case 'send again': {
        const event = pick(stage.told, one.which);
        return void (event && (await control('POST', `/events/${event.id}/send`)));
      }
      case 'crash':
        seen.crashes += 1;
        await stage.replica(one.replica).crash();
        crashesOver += 1;
        return;
      case 'wait':
        return sleep(one.ms);
    }
  }

  async #open(one: Extract<Act, { act: 'open' }>): Promise<void> {
    const { server } = stage.replica(one.replica);
    const isPackage = one.package !== null;
    const path = isPackage ? '/api/gpt/credits/create-session' : '/api/m2m/credits/checkout/session';
    const topUpUsd = one.recharge;
    const body = isPackage
      ? { package: one.package }
      : {
          amountUsd: one.amountUsd,
          email: 'owner@example.com',
          ...(topUpUsd !== null && { autoRecharge: { enabled: true, thresholdUsd: 2, topUpUsd } }),
        };
    const reply = await read(stage.post(server, path, body));
    if (reply === null) return;
    assert([200, 500, 503].includes(reply.status), `${path}: ${reply.status} ${reply.text}`);
    if (reply.status !== 200) return allowTrouble(reply);
    const { sessionId, checkoutUrl, retrievalToken } = reply.body;
    seen.opened += 1;
    agents.push({
      statusPath: isPackage
        ? `/api/gpt/credits/status?session=${sessionId}`
        : `/api/m2m/credits/checkout/status/${sessionId}?token=${retrievalToken}`,
      sessionId: sessionId.split('.')[0] ?? null,
      checkoutUrl,
      purchase: null,
      keys: new Set(),
      lost: false,
      last: '',
    });
  }

  async #purchase(one: Extract<Act, { act: 'purchase' }>): Promise<void> {
    const method = await stage.stripe.paymentMethods
      .create({ type: 'card', card: { token: `tok_${one.card}` } })
      .catch(() => null);
    if (method === null) return;
    if (one.trouble !== null) {
      const path = '/v1/payment_intents';
      const order = { on: 'api', fault: one.trouble, method: 'POST', path, times: 2, delayMs: 400 };
      await stage.control('POST', '/faults', order);
    }
    const onto = one.onto === null ? undefined : pick(keysInUse(), one.onto);
    const agent: Agent = {
      statusPath: '/api/m2m/credits/purchase',
      sessionId: null,
      checkoutUrl: null,
      keys: new Set(),
      lost: false,
      last: '',
      purchase: {
        body: { paymentMethodId: method.id, amountUsd: one.amountUsd, idempotencyKey: randomUUID() },
        headers: onto === undefined ? {} : { 'x-api-key': onto },
      },
    };
    agents.push(agent);
    await Promise.all(
      Array.from({ length: one.copies }, (_, copy) => ask(agent, stage.replica(one.replica + copy))),
    );
  }

  async #refund(one: Extract<Act, { act: 'refund' }>): Promise<void> {
    const payment = pick(objects('payment_intent.succeeded').slice(-15), one.which);
    if (payment === undefined) return;
    if (one.by === 'the bank') {
      const body = {
        paymentIntent: payment.object.id,
        ...(one.cents !== null && { amountCents: one.cents }),
      };
      return void (await stage.control('POST', '/refunds', body));
    }
    const { app } = stage.replica(one.replica).server;
    assert(app.cards !== null);
    const hasCrashed = watchCrashes();
    try {
      const order = await app.cards.orders.findByPayment(payment.object.id);
      if (order === null) return;
      await app.cards.refund({
        orderId: order.id,
        actKey: randomUUID(),
        amountMicros: one.cents === null ? null : BigInt(one.cents) * CENT,
      });
    } catch (error) {
      if (!hasCrashed()) throw error;
    }
  }

  async #call(one: Extract<Act, { act: 'call' }>): Promise<void> {
    const key = pick(keysInUse().slice(-8), one.which);
    if (key === undefined) return;
    const { server } = stage.replica(one.replica);
    const reply = await read(server.call(one.path, key, { mode: one.mode }));
    if (reply === null) return;
    seen.calls += reply.status === 200 ? 1 : 0;
    assert([200, 402, 404, 503].includes(reply.status), `${one.path}: ${reply.status} ${reply.text}`);
  }
}

const keysInUse = () => agents.flatMap(({ keys }) => [...keys]);

/** Reads what came back; null when the connection broke, as it does when a replica dies. */
async function read(response: Promise<Response>) {
  const hasCrashed = watchCrashes();
  try {
    const reply = await response;
    const text = await reply.text();
    return { status: reply.status, text, body: JSON.parse(text), crashed: hasCrashed() };
  } catch (error) {
    if (!hasCrashed()) throw error;
    return null;
  }
}

/** A replica that dies answers what it still can. */
function allowTrouble(reply: NonNullable<Awaited<ReturnType<typeof read>>>): void {
  assert(reply.status !== 500 || reply.crashed, `500 without a crash: ${reply.text}`);
}

/** The agent asks what became of it, and keeps what it is given. */
async function ask(agent: Agent, { server }: Replica): Promise<void> {
  const { purchase } = agent;
  const reply = await read(
    purchase === null
      ? fetch(server.url + agent.statusPath)
      : stage.post(server, agent.statusPath, Reflect.get(purchase, 'body'), Reflect.get(purchase, 'headers')),
  );
  if (reply === null) {
    agent.lost = true;
    return;
  }
  allowTrouble(reply);
  const { status, body } = reply;
  if (status === 500) agent.lost = true;
  const allowed = purchase === null ? [200, 500] : [200, 401, 402, 403, 409, 429, 500, 503];
  assert(allowed.includes(status), `${agent.statusPath}: ${status} ${reply.text}`);
  agent.last = `${status} ${reply.text.replaceAll(/fbx_live_\w+/g, 'fbx_live_…')}`;
  if (typeof body.apiKey !== 'string') return;
  assert.match(body.apiKey, /^fbx_live_[0-9a-f]{64}$/);
  agent.keys.add(body.apiKey);
  assert.equal(agent.keys.size, 1, 'one order was delivered two keys');
}

async function job(replica: Replica, name: string): Promise<void> {
  const { app } = replica.server;
  assert(app.cards !== null);
  const hasCrashed = watchCrashes();
  try {
    if (name === 'inbox') await app.cards.inbox.work();
    else if (name === 'sweep') await app.cards.sweep();
    else if (name === 'recharge') await app.cards.recharges.run();
    else if (name === 'catch up') await stage.catchUp(replica);
    else if (name === 'debts') await app.debts.sweep(100);
    else if (name === 'walks') await app.walks.run();
    else await app.reconciler.run();
  } catch (error) {
    // The provider did not answer, or the replica is dead; the next round is another one.
    const isAway = error instanceof Error && error.name === 'ProviderUnavailable';
    if (!isAway && !hasCrashed()) throw error;
  }
}

/** Lets everything through, until nothing is left to be done. */
async function settle(scene: Scene): Promise<void> {
  await scene.rest();
  stage.gate(true);
  await stage.control('DELETE', '/faults');
  await stage.control('POST', '/webhooks/release');
  await stage.advance(2 * HOUR_MS);
  await scene.rest();
  for (const replica of stage.replicas) await stage.catchUp(replica);
  let what = '';
  await until('everything to be done', async () => {
    // Asked before the jobs, so that they work on all that it told, and after them, since they may have asked it for more.
    const wasQuiet = await stage.posted();
    for (const replica of stage.replicas)
      for (const name of ['inbox', 'sweep', 'calls', 'walks', 'debts']) await job(replica, name);
    const [left] = await stage.database.sql<{ events: number; orders: number; calls: number }[]>`
      select (select count(*)::integer from card_events where next_at is not null) as events,
             (select count(*)::integer from card_orders where state = 0 or next_at is not null) as orders,
             (select count(*)::integer from calls where state = 0)
               + (select count(*)::integer from reversal_walks) as calls`;
    const isDone =
      wasQuiet && left?.events === 0 && left.orders === 0 && left.calls === 0 && (await stage.posted());
    if (!isDone) {
      what = JSON.stringify(left);
      // What waits for another time gets it.
      await stage.advance(10 * MINUTE_MS);
      await sleep(20);
    }
    return isDone;
  }).catch(async (error: unknown) => {
    const stuck = await stage.database.sql`
      select id, kind, state, version, failure, looks, next_at, session_id is not null as has_page, payment_intent_id
      from card_orders where state = 0 or next_at is not null`;
    const events = await stage.database.sql`select * from card_events where next_at is not null`;
    throw new Error(`${what} ${JSON.stringify([...stuck, ...events])}`, { cause: error });
  });
}

// ------------------------------------------------------------------------------------------------ the judgement

interface OrderRow {
  id: string;
  kind: string;
  state: number;
  account_id: bigint | null;
  amount_micros: bigint;
  credit_micros: bigint;
  reversed_micros: bigint;
  lost_micros: bigint;
  bonus_taken_micros: bigint;
  session_id: string | null;
  payment_intent_id: string | null;
  has_key: boolean;
  key_id: bigint | null;
  failure: string | null;
}

/** Reads what the provider holds of each payment, and how much of it went back: from its own lists, past our reading of them. */
async function paymentsAtProvider() {
  const payments = new Map<string, { orderId: string; cents: number; reversed: number }>();
  for await (const intent of stage.stripe.paymentIntents.list({ limit: 100 })) {
    if (intent.status !== 'succeeded') continue;
    payments.set(intent.id, {
      orderId: intent.metadata.order ?? '',
      cents: intent.amount_received,
      reversed: 0,
    });
  }
  const takeBack = (intent: unknown, cents: number) => {
    const payment = payments.get(String(intent));
    if (payment !== undefined) payment.reversed += cents;
  };
  for await (const { payment_intent, amount, status } of stage.stripe.refunds.list({ limit: 100 }))
    if (status !== 'failed' && status !== 'canceled') takeBack(payment_intent, amount);
  for await (const { payment_intent, amount, status } of stage.stripe.disputes.list({ limit: 100 }))
    if (['needs_response', 'under_review', 'lost'].includes(status)) takeBack(payment_intent, amount);
  return payments;
}

async function judge(): Promise<void> {
  const { sql } = stage.database;
  const payments = await paymentsAtProvider();
  const orders = await sql<OrderRow[]>`
    select *, key_digest is not null as has_key from card_orders order by created_at`;
  const byId = new Map(orders.map((order) => [order.id, order]));

  // Every payment is one paid order's, and every paid order has one payment, of its amount.
  const paidBy = new Map<string, string>();
  for (const [intent, { orderId, cents, reversed }] of payments) {
    const order = byId.get(orderId);
    assert(order !== undefined, `payment ${intent} is of no order`);
    assert.equal(paidBy.get(orderId), undefined, `order ${orderId} was charged twice`);
    paidBy.set(orderId, intent);
    // A refund does not keep a bank from taking the same money once more. That loss is not the customer's.
    const lost = Math.max(0, reversed - cents);
    assert.deepEqual(
      [order.state, order.payment_intent_id, order.amount_micros, order.reversed_micros, order.lost_micros],
      [1, intent, BigInt(cents) * CENT, BigInt(reversed - lost) * CENT, BigInt(lost) * CENT],
      `order ${orderId} (${order.kind}, ${order.failure}) against its payment`,
    );
  }
  for (const order of orders) {
    assert.equal(
      order.state === 1,
      paidBy.has(order.id),
      `order ${order.id} has credit that nobody paid for`,
    );
    assert.equal(order.state === 1 && order.has_key, order.key_id !== null);
    const bonus = order.credit_micros - order.amount_micros;
    assert(order.bonus_taken_micros * order.amount_micros <= bonus * order.reversed_micros, 'bonus taken');
  }

  await stage.assertBooks();

  // Every customer has what was paid, less what went back and what was spent.
  const accounts = await sql<
    { id: bigint; balance: bigint; reserved: bigint; spent: bigint; owed: bigint; statuses: string[] }[]
  >`
    select a.id, a.credits_posted - a.debits_posted as balance, a.debits_pending as reserved,
           (select coalesce(sum(price_micros), 0)::bigint from calls c where c.account_id = a.id and c.state = 1)
             - (select coalesce(sum(amount_micros), 0)::bigint from ledger_transfers t
                where t.account_id = a.id and t.code = 'call_refund') as spent,
           coalesce(d.owed_micros, 0)::bigint as owed,
           (select array_agg(k.status) from api_keys k where k.account_id = a.id) as statuses
    from ledger_accounts a left join account_debts d on d.account_id = a.id
    where not a.house`;
  seen.owing = 0;
  for (const { id, balance, reserved, spent, owed, statuses } of accounts) {
    const own = orders.filter(({ account_id, state }) => account_id === id && state === 1);
    const bought = own.reduce((sum, order) => sum + order.credit_micros, 0n);
    const back = own.reduce((sum, order) => sum + order.reversed_micros + order.bonus_taken_micros, 0n);
    assert.equal(balance - owed, bought - back - spent, `account ${id}`);
    assert.equal(reserved, 0n, `account ${id} has something reserved`);
    assert(owed === 0n || balance === 0n, `account ${id} owes ${owed} and has ${balance}`);
    assert.deepEqual(new Set(statuses), new Set([owed > 0n ? 'frozen' : 'active']), `the keys of ${id}`);
    seen.owing += owed > 0n ? 1 : 0;
  }
  seen.paid = paidBy.size;
  seen.over = orders.length - paidBy.size;
}

/** Every agent whose order was paid has its key, or gets it now; and every key does what it should. */
async function judgeAgents(): Promise<void> {
  const { sql } = stage.database;
  const owners = new Set<string>();
  for (const agent of agents) {
    const { sessionId, keys, purchase } = agent;
    let isPaid = false;
    if (sessionId !== null) {
      const [order] = await sql<{ state: number }[]>`
        select state from card_orders where session_id = ${sessionId}`;
      assert(order !== undefined, `the session ${sessionId} is of no order`);
      isPaid = order.state === 1;
    }
    if (keys.size === 0) await ask(agent, stage.replica(agents.indexOf(agent)));
    if (isPaid && !agent.lost) assert.equal(keys.size, 1, `paid, and no key: ${agent.last}`);
    if (sessionId !== null && !isPaid) assert.equal(keys.size, 0, 'a key for nothing');
    if (purchase !== null && /"charged":\s*null/.test(agent.last))
      assert.fail(`a purchase stayed unknown: ${agent.last}`);
    for (const key of keys) {
      assert(!owners.has(key), 'two agents were given the same key');
      owners.add(key);
      await judgeKey(key);
    }
  }
}

async function judgeKey(key: string): Promise<void> {
  const { sql } = stage.database;
  const accountId = String(await accountOf(sql, key));
  const [{ owed = 0n, balance = 0n } = {}] = await sql<{ owed: bigint; balance: bigint }[]>`
    select coalesce((select owed_micros from account_debts where account_id = ${accountId}), 0)::bigint as owed,
           credits_posted - debits_posted as balance
    from ledger_accounts where id = ${accountId}`;
  const { server } = stage.replica(0);
  const reply = await read(server.call('dime', key, { mode: 'ok' }));
  const code = reply?.body.last_error_reason?.code ?? null;
  const expected =
    owed > 0n ? [402, 'ACCOUNT_OWES'] : balance < 100_000n ? [402, 'INSUFFICIENT_CREDITS'] : [200, null];
  // Who buys with a card that nobody knows pays for little at first.
  if (code === 'SPEND_CAP_PER_DAY') return;
  assert.deepEqual([reply?.status, code], expected, reply?.text);
}

function assertQuietLogs(): void {
  for (const { server } of stage.replicas) {
    const bad = server.log
      .filter((line) => /deadlock|"level":(?:50|60)/.test(line) && !line.includes('"ProviderUnavailable"'))
      .map((line) => line.slice(0, 1_000));
    assert.deepEqual(bad.slice(0, 3), [], 'a replica that lives logged errors');
  }
}

const anyProgram = fc.asyncProperty(fc.array(act, { minLength: ACTS, maxLength: ACTS }), async (program) => {
  agents = [];
  challenges = [];
  const scene = new Scene();
  for (const one of program) await scene.perform(one);
  await settle(scene);
  assert.deepEqual(troubles, []);
  await judge();
  await judgeAgents();
  assertQuietLogs();
});

/** Whether the programs so far have met everything that they are meant to meet. */
function hasMetAll(): boolean {
  seen.refunds = objects('refund.created').length;
  seen.disputes = objects('charge.dispute.created').length;
  const { opened, paid, calls, refunds, disputes } = seen;
  return opened >= 8 && paid >= 6 && calls >= 3 && refunds >= 2 && disputes >= 1;
}

test('whatever happens, the provider and the books agree', async (t) => {
  const { FIRE_SEED: seed, FIRE_PATH: path } = process.env;
  const again = { ...(seed !== undefined && { seed: Number(seed) }), ...(path !== undefined && { path }) };
  // How often a program comes to a call is up to its seed, so more of them run when the first have missed something.
  for (let round = 1; round === 1 || (round <= MOST_ROUNDS && !hasMetAll()); round += 1)
    await fc.assert(anyProgram, { numRuns: PROGRAMS, endOnFailure: true, ...again });
  const metAll = hasMetAll();
  t.diagnostic(JSON.stringify(seen));
  assert(metAll || path !== undefined, JSON.stringify(seen));
});
