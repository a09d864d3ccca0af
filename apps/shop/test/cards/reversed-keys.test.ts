/**
 * Card payments that go back after keys were bought with them: what is left of the payment follows them there, over keys that
 * bought keys, and nothing else does; trial credit stays it; a dispute that is won gives back what was taken.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { type Lot, leftOf, spentLast } from '../../../../packages/core/src/keys/credit-lots.ts';
import { transferIdFor } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { lockAccounts } from '../fire/account-lock.fixture.ts';
import { accountOf, balanceOf } from '../fire/money.fixture.ts';
import { jsonOf, type TestServer } from '../server.fixture.ts';

const USD = 1_000_000n;
const DAY_MS = 86_400_000;

let world: CardWorld;
let there: TestServer;
let laterMs = 0;
before(async () => {
  world = await startCardWorld({
    environment: { NEW_CARD_KEYS_USD_PER_DAY: 'none', TRIAL_BUDGET_USD_PER_DAY: 'none' },
    nowMs: () => Date.now() + laterMs,
  });
  there = await world.open();
});
after(async () => {
  await there?.close();
  await world?.stop();
});
beforeEach(() => {
  laterMs = 0;
});

const at = (which: number) => (which % 2 === 0 ? world.server : there);

/** A key that holds what a person has paid on the payment page, or the key that was sent along with more on it. */
async function paid(amountUsd: number, onto?: string): Promise<{ key: string; payment: string }> {
  const headers: Record<string, string> = onto === undefined ? {} : { 'x-api-key': onto };
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', { amountUsd }, headers));
  await world.pay(opened.checkoutUrl);
  const path = `/api/m2m/credits/checkout/status/${opened.sessionId}?token=${opened.retrievalToken}`;
  const told = await jsonOf(fetch(world.server.url + path));
  assert.equal(told.paymentStatus, 'paid', JSON.stringify(told));
  const [order] = await world.database.sql<{ payment_intent_id: string }[]>`
    select payment_intent_id from card_orders where session_id = ${opened.sessionId}`;
  assert(order !== undefined);
  return { key: onto ?? told.apiKey, payment: order.payment_intent_id };
}

async function bought(key: string, count = 1, on = world.server): Promise<string[]> {
  const keys: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const answer = await on.call('instant-api-key', key, {});
    const told = await jsonOf(answer);
    assert.equal(answer.status, 200, JSON.stringify(told));
    keys.push(told.apiKey);
  }
  return keys;
}

const held = async (key: string) => balanceOf(world.database.sql, await accountOf(world.database.sql, key));
const heldBy = (keys: readonly string[]) => Promise.all(keys.map(held));
const total = async (keys: readonly string[]) => (await heldBy(keys)).reduce((sum, one) => sum + one, 0n);
const owed = async (key: string) => BigInt(Math.round(Number((await world.me(key)).owedUsd) * 1e6));
const status = async (key: string) => (await world.me(key)).status;
const refused = async (key: string, on = world.server) => {
  const answer = await on.call('ping', key, {});
  return [answer.status, (await jsonOf(answer)).last_error_reason?.code];
};
const dispute = async (payment: string): Promise<string> =>
  (await world.control('POST', '/disputes', { paymentIntent: payment })).id;
const turn = (id: string, to: string) => world.control('POST', `/disputes/${id}`, { status: to });
const refund = (payment: string) => world.control('POST', '/refunds', { paymentIntent: payment });

/** Looks at the provider, and books what it says of a payment; the walk is still to be made. */
async function heard(payment: string): Promise<void> {
  const { cards } = world.server.app;
  const order = await cards?.orders.findByPayment(payment);
  assert(cards !== null && order != null);
  await cards.reconciler.reconcile(order.id);
}
async function walked(payment: string): Promise<void> {
  await heard(payment);
  await Promise.all([world.server.app.walks.run(), there.app.walks.run()]);
  await world.server.app.debts.sweep(100);
}
/** As a wallet tops up. */
async function given(key: string, amountMicros: bigint, name: string): Promise<void> {
  const accountId = await accountOf(world.database.sql, key);
  const { app } = world.server;
  await world.database.sql.begin(async (transaction) => {
    await app.ledger.transferWithin(transaction, {
      id: transferIdFor(name),
      accountId,
      phase: 'posted',
      side: 'credit',
      amountMicros,
      house: 'operator_grants',
      code: 'operator_grant',
      note: 'test',
    });
    await app.keys.becomePaid(transaction, accountId);
    await app.debts.collect(transaction, accountId, 'test');
  });
}

test('25 USD by a stolen card are 25 keys: after the dispute none of them has anything left, nor the next ones', async () => {
  const { key, payment } = await paid(25);
  const keys = await Promise.all(Array.from({ length: 25 }, (_, n) => bought(key, 1, at(n))));
  const first = keys.flat();
  // Some have bought the next; one has spent a little.
  const second = [...(await bought(first[3] ?? '')), ...(await bought(first[4] ?? ''))];
  assert.equal((await world.server.call('ping', first[0] ?? '', {})).status, 200);
  const all = [key, ...first, ...second];
  const before = await total(all);
  await dispute(payment);
  await heard(payment);
  assert.equal((await refused(key))[1], 'ACCOUNT_OWES', 'its payer is frozen before any step is made');
  await walked(payment);
  assert.equal(await total(all), 0n);
  assert.equal(await owed(key), 25n * USD - before);
  for (const one of [first[0], first[3], second[0]]) {
    assert.equal(await owed(one ?? ''), 0n, 'a later holder owes nothing');
    assert.deepEqual((await refused(one ?? '')).at(0), 402);
  }
  assert.equal((await refused(first[0] ?? ''))[1], 'API_KEY_FROZEN');
  await world.assertBooks();
});

test('a dispute that is won gives back what was taken, to whom it was taken from', async () => {
  const { key, payment } = await paid(10);
  const keys = await bought(key, 6);
  assert.equal((await world.server.call('ping', keys[0] ?? '', {})).status, 200);
  const before = await heldBy([key, ...keys]);
  const id = await dispute(payment);
  await walked(payment);
  assert.equal(await total([key, ...keys]), 0n);
  await turn(id, 'won');
  await walked(payment);
  assert.deepEqual(await heldBy([key, ...keys]), before);
  for (const one of [key, ...keys]) assert.equal(await status(one), 'active');
  assert.equal(await owed(key), 0n);
  await world.assertBooks();
});

test('what is promised to keys and not given yet is kept when the payment goes back once more', async () => {
  const { key, payment } = await paid(10);
  const keys = await bought(key, 3);
  const sent = await refund(payment);
  await walked(payment);
  assert.equal(await total([key, ...keys]), 0n);
  await world.control('POST', `/refunds/${sent.id}/fail`);
  await heard(payment);
  await world.assertBooks();
  await refund(payment);
  await heard(payment);
  await world.assertBooks();
  await walked(payment);
  assert.equal(await total([key, ...keys]), 0n);
  await world.assertBooks();
});

test('what reached a key otherwise stays on it, and it is not frozen; what else its payer has pays the debt last', async () => {
  const { key, payment } = await paid(5);
  const [one = '', two = ''] = await bought(key, 2);
  await given(one, 2n * USD, 'more for one');
  // The oldest is spent first: what is left of the key's own credit is less by it.
  for (let n = 0; n < 3; n += 1) assert.equal((await world.server.call('ping', one, {})).status, 200);
  const spent = 3n * USD - (await held(one));
  await given(key, 7n * USD, 'more for the payer');
  await dispute(payment);
  await heard(payment);
  await world.server.app.debts.sweep(100);
  assert.equal(await held(key), 7n * USD, 'nothing but the payment itself is taken at first');
  await walked(payment);
  assert.deepEqual(await heldBy([one, two]), [2n * USD, 0n]);
  assert.deepEqual([await status(one), await status(two)], ['active', 'frozen']);
  assert.equal(await held(key), 7n * USD - spent);
  assert.deepEqual([await owed(key), await status(key)], [0n, 'active']);
  await given(two, 1n * USD, 'more for two');
  assert.equal(await status(two), 'active', 'something else is on it');
  await world.assertBooks();
});

test('keys that were bought before the payment, or with other credit after it, are none of its business', async () => {
  const key = await world.server.key('4');
  const earlier = await bought(key, 2);
  const { payment } = await paid(5, key);
  // Two of the four were left, and are older than the payment.
  const others = await bought(key, 2);
  const its = await bought(key, 3);
  await dispute(payment);
  await walked(payment);
  assert.deepEqual(await heldBy([...earlier, ...others]), [USD, USD, USD, USD]);
  assert.deepEqual([await total(its), await held(key)], [0n, 0n]);
  await world.assertBooks();
});

test('trial credit that paid for keys is trial credit there, whatever was bought beside it, and a refund leaves none that lasts', async () => {
  const trial = await jsonOf(
    fetch(`${world.server.url}/api/m2m/credits/trial`, { headers: { 'x-forwarded-for': '8.77.0.1' } }),
  );
  const { expiresAt } = await world.me(trial.apiKey);
  assert.equal((await world.server.call('ping', trial.apiKey, {})).status, 200);
  const left = await held(trial.apiKey);
  const { key, payment } = await paid(5, trial.apiKey);
  const keys = await Promise.all(Array.from({ length: 6 }, (_, n) => bought(key, 1, at(n))));
  const all = keys.flat();
  const rows = await world.database.sql<{ micros: bigint; keys: number; mixed: number }[]>`
    select sum(t.granted_micros)::bigint as micros, count(*)::integer as keys,
           (count(*) filter (where t.granted_micros < ${String(USD)}))::integer as mixed
    from trial_credits t where t.moved_from = ${String(await accountOf(world.database.sql, key))}`;
  assert.deepEqual(rows[0], { micros: left, keys: 5, mixed: 1 });
  const kinds = await Promise.all(all.map((one) => world.me(one)));
  assert.equal(kinds.filter(({ kind, expiresAt: ends }) => kind === 'trial' && ends === expiresAt).length, 4);
  await refund(payment);
  await walked(payment);
  assert.equal(await total([key, ...all]), left, 'all that is left is the trial’s');
  laterMs = 8 * DAY_MS;
  await world.server.app.trials.expire(100);
  laterMs = 0;
  assert.equal(await total([key, ...all]), 0n);
  await world.assertBooks();
});

test('credit of a new card buys keys for at most 5 USD in 24 hours; other credit, and older, as many as it likes', async () => {
  const strict = await (async () => {
    const { startTestServer } = await import('../server.fixture.ts');
    const { NEW_CARD_KEYS_USD_PER_DAY: _, ...environment } = world.environment as Record<string, string>;
    return startTestServer({
      pools: world.database,
      environment,
      upstreamsUrl: world.upstreams.url,
      nowMs: () => Date.now() + laterMs,
    });
  })();
  try {
    const { key } = await paid(25);
    const asked = await Promise.all(Array.from({ length: 9 }, () => strict.call('instant-api-key', key, {})));
    const told = await Promise.all(asked.map(async (answer) => [answer.status, (await jsonOf(answer)).code]));
    assert.equal(told.filter(([code]) => code === 200).length, 5, JSON.stringify(told));
    for (const [code, name] of told)
      if (code !== 200) assert.deepEqual([code, name], [422, 'NEW_CARD_KEYS_LIMIT']);
    assert.equal(await held(key), 20n * USD, 'what was refused costs nothing');
    laterMs = DAY_MS + 60_000;
    await bought(key, 5, strict);
    assert.equal((await strict.call('instant-api-key', key, {})).status, 422);
    laterMs = 8 * DAY_MS;
    await bought(key, 7, strict);
    laterMs = 0;
    await bought(await world.server.key('6'), 6, strict);
  } finally {
    laterMs = 0;
    await strict.close();
  }
});

test('more keys than a step takes, two replicas at once, a step that is cut off: each is taken from once', async () => {
  const { key, payment } = await paid(100);
  const chain = await bought(key, 1);
  const keys = (await Promise.all(Array.from({ length: 98 }, (_, n) => bought(key, 1, at(n))))).flat();
  for (let n = 0; n < 4; n += 1) chain.push(...(await bought(chain.at(-1) ?? '')));
  await dispute(payment);
  await heard(payment);
  // Somebody holds one of the accounts: the step that comes to it is given up, and nothing of it stays.
  const slow = await accountOf(world.database.sql, keys[40] ?? '');
  const letGo = await lockAccounts(world.database.url, [slow]);
  await Promise.allSettled([world.server.app.walks.run(), there.app.walks.run()]);
  await letGo();
  // The walk dies between its first step and the next, and a key that it has not come to buys one that it has passed.
  const letGoOfOldest = await lockAccounts(world.database.url, [
    await accountOf(world.database.sql, chain[0] ?? ''),
  ]);
  await world.server.app.walks.run().catch(() => {});
  await letGoOfOldest();
  const left = await Promise.all(keys.map(async (one) => ({ one, micros: await held(one) })));
  const untouched = left.filter(({ micros }) => micros > 0n).map(({ one }) => one);
  assert(untouched.length > 0 && untouched.length < 10, `${untouched.length} keys are still to come`);
  keys.push(...(await bought(untouched[0] ?? '')));
  await Promise.all([world.server.app.walks.run(), there.app.walks.run(), world.server.app.walks.run()]);
  laterMs = 20_000;
  await Promise.all([world.server.app.walks.run(), there.app.walks.run()]);
  await world.server.app.debts.sweep(100);
  assert.equal(await total([key, ...keys, ...chain]), 0n);
  assert.equal(await owed(key), 0n);
  const walks = await world.database
    .sql`select * from reversal_walks where account_id = ${String(await accountOf(world.database.sql, key))}`;
  assert.deepEqual([...walks], []);
  await world.assertBooks();
});

// ------------------------------------------------------------------------------------------------ in every order

const step = fc.oneof(
  { arbitrary: fc.record({ act: fc.constant('pay' as const), who: fc.nat(7) }), weight: 3 },
  { arbitrary: fc.record({ act: fc.constant('trial' as const) }), weight: 1 },
  { arbitrary: fc.record({ act: fc.constant('give' as const), who: fc.nat(7) }), weight: 2 },
  { arbitrary: fc.record({ act: fc.constant('sell' as const), who: fc.nat(7) }), weight: 8 },
  { arbitrary: fc.record({ act: fc.constant('spend' as const), who: fc.nat(7) }), weight: 4 },
  {
    arbitrary: fc.record({ act: fc.constantFrom('dispute', 'refund', 'win'), which: fc.nat(7) }),
    weight: 4,
  },
);

interface Payment {
  id: string;
  payment: string;
  payer: Model;
  dispute: string | null;
  gone: boolean;
  isSettled: boolean;
  /** What was taken of it from whom. */
  taken: Map<Model, bigint>;
}

/** What a key holds, part by part in the order of spending, as nothing but the steps say it. */
interface Model {
  key: string;
  parts: { of: string; micros: bigint }[];
}

test('over all orders of payment, trial, sale, resale, spending, dispute, winning and refund: each keeps its own, a thief nothing', async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 24 }), async (steps) => {
      run += 1;
      const models: Model[] = [];
      const payments: Payment[] = [];
      const spend = (model: Model, micros: bigint) => {
        const out: Model['parts'] = [];
        for (let rest = micros; rest > 0n; ) {
          const part = model.parts.find((one) => one.micros > 0n);
          assert(part !== undefined);
          const some = part.micros < rest ? part.micros : rest;
          part.micros -= some;
          rest -= some;
          out.push({ of: part.of, micros: some });
        }
        return out;
      };
      for (const [n, one] of steps.entries()) {
        const name = `run ${run} step ${n}`;
        const who = 'who' in one ? models.at(one.who % Math.max(models.length, 1)) : undefined;
        const sum = who?.parts.reduce((all, { micros }) => all + micros, 0n) ?? 0n;
        const isUsable = who !== undefined && sum > 0n && (await status(who.key)) === 'active';
        if (one.act === 'pay') {
          const onto = who !== undefined && n % 2 === 0 && isUsable ? who : undefined;
          const { key, payment } = await paid(5, onto?.key);
          const payer = onto ?? { key, parts: [] };
          if (onto === undefined) models.push(payer);
          payer.parts.push({ of: name, micros: 5n * USD });
          payments.push({
            id: name,
            payment,
            payer,
            dispute: null,
            gone: false,
            isSettled: false,
            taken: new Map(),
          });
        } else if (one.act === 'trial') {
          const { apiKey } = await jsonOf(
            fetch(`${world.server.url}/api/m2m/credits/trial`, {
              headers: { 'x-forwarded-for': `8.${80 + run}.${n}.1` },
            }),
          );
          models.push({ key: apiKey, parts: [{ of: 'trial', micros: 5n * USD }] });
        } else if (one.act === 'give' && who !== undefined && isUsable) {
          await given(who.key, USD, name);
          who.parts.push({ of: 'own', micros: USD });
        } else if (one.act === 'sell' && who !== undefined && isUsable && sum >= USD) {
          const [key = ''] = await bought(who.key, 1, at(n));
          models.push({ key, parts: spend(who, USD) });
        } else if (one.act === 'spend' && who !== undefined && isUsable) {
          const before = await held(who.key);
          assert.equal((await at(n).call('ping', who.key, {})).status, 200);
          spend(who, before - (await held(who.key)));
        } else if ('which' in one) {
          const its = payments.at(one.which % Math.max(payments.length, 1));
          if (its === undefined) continue;
          if (one.act === 'win') {
            if (its.dispute === null || !its.gone) continue;
            const taken = new Map(models.map((model) => [model, 0n]));
            for (const model of models) taken.set(model, await held(model.key));
            await turn(its.dispute, 'won');
            await walked(its.payment);
            its.gone = false;
            its.isSettled = true;
            // What came back is its again, wherever it came back to; what was spent stays spent.
            for (const model of models) {
              const more = (await held(model.key)) - (taken.get(model) ?? 0n);
              // Who has paid by card as well may owe for that.
              const isPayer = payments.some(({ payer }) => payer === model);
              if (isPayer) assert(more >= 0n, `${name}: a key lost credit when a dispute was won`);
              else assert.equal(more, its.taken.get(model) ?? 0n, `${name}: given back`);
              const part = model.parts.find(({ of }) => of === its.id);
              if (part !== undefined) part.micros += more;
              else if (more > 0n) model.parts.push({ of: its.id, micros: more });
            }
            continue;
          }
          // The provider sends nothing back of a payment whose dispute was won, and it is disputed once.
          if (its.gone || its.isSettled) continue;
          its.gone = true;
          if (one.act === 'dispute') its.dispute = await dispute(its.payment);
          else await refund(its.payment);
          await walked(its.payment);
          // Whatever is left of it is gone, from everybody; then its payer's other credit pays what was spent.
          let found = 0n;
          for (const model of models)
            for (const part of model.parts)
              if (part.of === its.id) {
                found += part.micros;
                its.taken.set(model, (its.taken.get(model) ?? 0n) + part.micros);
                part.micros = 0n;
              }
          const rest = its.payer.parts.reduce((all, { micros }) => all + micros, 0n);
          const missing = 5n * USD - found;
          spend(its.payer, missing < rest ? missing : rest);
        }
        for (const model of models) {
          const should = model.parts.reduce((all, { micros }) => all + micros, 0n);
          assert.equal(await held(model.key), should, `${name}: ${JSON.stringify(one)}`);
        }
      }
      await world.assertBooks();
    }),
    { numRuns: 8 },
  );
});

test('lots are spent in their order, what is left are the last, and a key takes what was spent last', () => {
  const lot = (id: string, amountMicros: bigint, soldMicros = 0n): Lot => ({
    id,
    orderId: null,
    trialEndsAt: null,
    amountMicros,
    soldMicros,
    soldLatelyMicros: 0n,
    at: new Date(0),
    isFirst: false,
  });
  const lots = [lot('trial', 5n), lot('card', 5n), lot('wallet', 3n)];
  assert.deepEqual(leftOf(lots, 13n), [5n, 5n, 3n]);
  assert.deepEqual(leftOf(lots, 6n), [0n, 3n, 3n]);
  assert.deepEqual(leftOf([lot('trial', 5n), lot('card', 5n, 4n)], 5n), [4n, 1n]);
  const parts = spentLast(lots, { availableMicros: 6n, priceMicros: 4n });
  assert.deepEqual(
    parts.map(({ lot: { id }, micros }) => [id, micros]),
    [
      ['trial', 2n],
      ['card', 2n],
    ],
  );
});
