/** Trials cost the shop no more than it said, and what somebody has bought is never taken for the rest of one. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { KEYS } from '../../../../packages/core/src/keys/declared.ts';
import { TrialBudget } from '../../../../packages/core/src/keys/trial-budget.ts';
import { NotGiven } from '../../../../packages/core/src/keys/trial-outcome.ts';
import type { TransferCode } from '../../../../packages/core/src/ledger/ledger.ts';
import { transferIdFor } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { lockAccounts } from '../fire/account-lock.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const DAY_MS = 86_400_000;
const START_MS = Date.parse('2026-11-21T10:00:00Z');
const TRIAL = 5_000_000n;

let database: TestDatabase;
let nowMs = START_MS;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

function startShop(environment: Record<string, string> = {}): Promise<TestServer> {
  return startTestServer({
    pools: database,
    nowMs: () => nowMs,
    environment: { TRUSTED_PROXIES: 'loopback', ...environment },
  });
}
const trialAt = (shop: TestServer, address: string) =>
  fetch(`${shop.url}/api/m2m/credits/trial`, { headers: { 'x-forwarded-for': address } });
const demoAt = (shop: TestServer, address: string, installId: string) =>
  fetch(`${shop.url}/api/sdk/demo-key`, {
    method: 'POST',
    headers: { 'x-forwarded-for': address, 'content-type': 'application/json' },
    body: JSON.stringify({ installId, sdkType: 'python-mcp' }),
  });
async function givenInTrials(): Promise<bigint> {
  const [row] = await database.sql<{ micros: bigint }[]>`
    select coalesce(sum(amount_micros), 0)::bigint as micros from ledger_transfers where code = 'trial_grant'`;
  return row?.micros ?? 0n;
}

describe('the budget of a day', () => {
  test('two replicas give out what there is by now to the last trial and not beyond; then 503 until the next one', async () => {
    nowMs = START_MS;
    const shops = await Promise.all([1, 2].map(() => startShop({ TRIAL_BUDGET_USD_PER_DAY: '38' })));
    try {
      const before = await givenInTrials();
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, n) => {
          const shop = shops[n % 2] as TestServer;
          return n % 3 === 0 ? demoAt(shop, `8.20.0.${n}`, `install-${n}`) : trialAt(shop, `8.20.0.${n}`);
        }),
      );
      const bodies = await Promise.all(
        answers.map(async (answer) => ({ answer, body: await jsonOf(answer) })),
      );
      // At 10:00: 38 USD * (1/8 + 10/24) = 20.6 USD.
      assert.equal(bodies.filter(({ answer }) => answer.status === 200).length, 4);
      assert.equal((await givenInTrials()) - before, 4n * TRIAL);
      const refused = bodies.filter(({ answer }) => answer.status !== 200);
      // 25 USD have come after 25/38 - 1/8 of the day: 12:47:22.1 UTC.
      const nextTrialAt = '2026-11-21T12:47:22.106Z';
      const untilNext = Math.ceil((Date.parse(nextTrialAt) - START_MS) / 1_000);
      for (const { answer, body } of refused) {
        assert.deepEqual(
          [
            answer.status,
            body.code,
            body.retryAfterSeconds,
            body.nextTrialAt,
            answer.headers.get('retry-after'),
          ],
          [503, 'TRIALS_TEMPORARILY_DISABLED', untilNext, nextTrialAt, String(untilNext)],
        );
      }
      const [left] = await database.sql`
        select (select count(*)::integer from trial_claims) as claims, (select trials from trial_days) as trials`;
      assert.equal(left?.trials, 4);

      // Who has one is told of that one, and replaces its key for nothing.
      const own = bodies.findIndex(({ answer, body }) => answer.status === 200 && body.api_key !== undefined);
      if (own !== -1) {
        const again = await demoAt(shops[0] as TestServer, `8.20.0.${own}`, `install-${own}`);
        assert.deepEqual([again.status, (await jsonOf(again)).status], [200, 'existing']);
      }
      const had = bodies.findIndex(({ answer, body }) => answer.status === 200 && body.apiKey !== undefined);
      assert.equal((await trialAt(shops[1] as TestServer, `8.20.0.${had}`)).status, 429);
      assert.equal((await givenInTrials()) - before, 4n * TRIAL);

      // A burst ends nothing: the next one comes at its time, and the last of the day too.
      const [shop] = shops as [TestServer, TestServer];
      nowMs = Date.parse(nextTrialAt) - 1;
      assert.equal((await trialAt(shop, '8.20.2.1')).status, 503);
      nowMs += 1;
      assert.equal((await trialAt(shop, '8.20.2.1')).status, 200);
      nowMs = Date.parse('2026-11-21T23:59:59.999Z');
      const late = [];
      for (let n = 2; n < 6; n += 1) late.push((await trialAt(shop, `8.20.2.${n}`)).status);
      assert.deepEqual(late, [200, 200, 503, 503]);
      assert.equal((await givenInTrials()) - before, 7n * TRIAL);

      assert.equal((await trialAt(shops[0] as TestServer, '8.20.1.1')).headers.get('retry-after'), '1');
      nowMs += 1;
      assert.equal((await trialAt(shops[0] as TestServer, '8.20.1.1')).status, 200, 'a new day');
    } finally {
      await Promise.all(shops.map((shop) => shop.close()));
    }
  });

  test('whoever is refused while the day ends is told of the day that begins, not of the one after it', async () => {
    const midnightMs = Date.parse('2026-11-25T00:00:00Z');
    for (const ask of [
      (budget: TrialBudget) => budget.spent(),
      (budget: TrialBudget) =>
        database.sql
          .begin((transaction) => budget.take(transaction))
          .catch((error: unknown) =>
            error instanceof NotGiven ? error.outcome : assert.fail(String(error)),
          ),
    ]) {
      // The day ends while the database is asked.
      const times = [midnightMs - 1];
      const clock = () => times.shift() ?? midnightMs;
      const budget = new TrialBudget(database.sql, { trialMicros: TRIAL, microsPerDay: 0n, nowMs: clock });
      assert.deepEqual(await ask(budget), { status: 'spent', untilMs: midnightMs });
    }
  });

  test('100 USD unless it is said otherwise, so that a /48 of claims is no hole; without one there is no end', async () => {
    nowMs = START_MS + 20 * DAY_MS;
    const ordinary = await startShop({
      TRIAL_BUDGET_USD_PER_DAY: KEYS.variables.trialBudgetMicrosPerDay.fallback,
    });
    try {
      const before = await givenInTrials();
      const statuses: Record<string, number> = {};
      // Four sites, each asking from fifteen of its networks: a minute apart, or the limit of claims would tell.
      for (let n = 0; n < 60; n += 1) {
        nowMs += 10_000;
        const { status } = await trialAt(ordinary, `2606:4700:${(n % 4) + 1}:${n.toString(16)}::1`);
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
      // From 10:00 to 10:10: 100 USD * (1/8 + 10/24) = 54.2 USD, and 0.7 more.
      assert.deepEqual(statuses, { 200: 10, 503: 50 });
      nowMs += 13 * 3_600_000 + 49 * 60_000;
      for (let n = 0; n < 20; n += 1) await trialAt(ordinary, `8.23.0.${n}`);
      assert.equal((await givenInTrials()) - before, 20n * TRIAL);
    } finally {
      await ordinary.close();
    }
    nowMs += DAY_MS;
    const generous = await startShop({ TRIAL_BUDGET_USD_PER_DAY: 'none' });
    try {
      const statuses = [];
      for (let n = 0; n < 20; n += 1) {
        nowMs += 10_000;
        const answer = await trialAt(generous, `2606:4700:99:${n.toString(16)}::1`);
        statuses.push(answer.status === 429 ? (await jsonOf(answer)).message.split('.')[0] : answer.status);
      }
      // A site has sixteen in seven days.
      const toomany = 'The network of this address has had its trials';
      assert.deepEqual(statuses, [...Array(16).fill(200), ...Array(4).fill(toomany)]);
      for (let n = 0; n < 30; n += 1) assert.equal((await trialAt(generous, `8.21.0.${n}`)).status, 200);
      nowMs += 7 * DAY_MS;
      assert.equal((await trialAt(generous, '2606:4700:99:ffff::1')).status, 200);
    } finally {
      await generous.close();
    }
    const stingy = await startShop({ TRIAL_BUDGET_USD_PER_DAY: '0' });
    try {
      assert.equal((await trialAt(stingy, '8.22.0.1')).status, 503);
    } finally {
      await stingy.close();
    }
  });
});

test('what promises a trial says the truth: the 402 of every door, and the documents', async () => {
  nowMs = START_MS + 50 * DAY_MS;
  const [shop, other] = (await Promise.all(
    [1, 2].map(() => startShop({ TRIAL_BUDGET_USD_PER_DAY: '5' })),
  )) as [TestServer, TestServer];
  try {
    const promised = async ({ url }: TestServer) => {
      const headers = { 'content-type': 'application/json' };
      const challenge = await jsonOf(fetch(`${url}/x402/ping`, { method: 'POST', headers, body: '{}' }));
      assert.equal(challenge.code, 'PAYMENT_REQUIRED', JSON.stringify(challenge).slice(0, 600));
      const document = await jsonOf(fetch(`${url}/.well-known/agent-instructions.json`));
      const ways = /a call\. ([^.]+)\./.exec(challenge.message)?.[1];
      return [challenge.trial_access.available, ways, document.freeTrial !== null];
    };
    const open = [true, 'Send an API key in X-API-KEY, or take a trial key first', true];
    const closed = [false, 'Send an API key in X-API-KEY', false];
    assert.deepEqual(await promised(shop), open);
    assert.equal((await trialAt(shop, '8.24.0.1')).status, 200);
    assert.equal((await trialAt(shop, '8.24.0.2')).status, 503);
    assert.deepEqual(await promised(shop), closed);
    // Another replica hears of it from the database.
    for (const { name, run } of other.app.jobs)
      if (name === 'look-at-trials') await run(new AbortController().signal);
    assert.deepEqual(await promised(other), closed);
    nowMs += DAY_MS;
    assert.deepEqual(await promised(shop), open);
  } finally {
    await Promise.all([shop.close(), other.close()]);
  }
});

describe('the end of a trial', () => {
  let shop: TestServer;
  before(async () => {
    nowMs = START_MS + 100 * DAY_MS;
    shop = await startShop({ TRIAL_BUDGET_USD_PER_DAY: 'none' });
  });
  after(() => shop.close());

  /** As whoever sells credit books it: the transfer, and that the account is no trial any more. */
  async function buys(
    accountId: bigint,
    amountMicros: bigint,
    code: TransferCode,
    name: string,
  ): Promise<void> {
    await database.sql.begin(async (transaction) => {
      const house = code === 'operator_grant' ? 'operator_grants' : 'card_clearing';
      const { status } = await shop.app.ledger.transferWithin(transaction, {
        id: transferIdFor(name),
        accountId,
        phase: 'posted',
        side: 'credit',
        house,
        amountMicros,
        code,
      });
      assert.equal(status, 'done');
      await shop.app.keys.becomePaid(transaction, accountId);
    });
  }
  const availableTo = async (accountId: bigint) => (await shop.app.ledger.balance(accountId)).availableMicros;

  test('trial, rotated or taken by a second demo key, then 10 USD bought: on day 7 all of it is there', async () => {
    for (const [n, second] of ['rotate', 'demo'].entries()) {
      const address = `8.30.0.${n}`;
      const first = await jsonOf(demoAt(shop, address, `install-${second}`));
      const next = await jsonOf(
        second === 'demo'
          ? demoAt(shop, address, `install-${second}`)
          : fetch(`${shop.url}/api/keys/me/rotate`, {
              method: 'POST',
              headers: { 'x-api-key': first.api_key },
            }),
      );
      const key: string = next.apiKey ?? next.api_key;
      const known = await shop.app.keys.find(key);
      assert(known !== null && key !== first.api_key);
      assert.equal((await shop.call('ping', key)).status, 200);
      await buys(known.accountId, 10_000_000n, 'card_payment', `bought by ${second}`);
      nowMs += 7 * DAY_MS + 1;
      await shop.app.trials.expire(100);
      assert.equal(await availableTo(known.accountId), 14_750_000n, second);
      assert.equal((await shop.call('ping', key)).status, 200);
    }
  });

  test('accounts with running calls hold up nobody behind them', async () => {
    const open = async (address: string) => {
      const { apiKey } = await jsonOf(trialAt(shop, address));
      const known = await shop.app.keys.find(apiKey);
      assert(known !== null);
      return known.accountId;
    };
    const [busy, idle] = [await open('8.31.0.1'), await open('8.31.0.2')];
    const reserved = {
      id: transferIdFor('a running call'),
      accountId: busy,
      side: 'debit',
      code: 'call',
    } as const;
    const rest = { house: 'revenue_credits', amountMicros: 1_000_000n } as const;
    await shop.app.ledger.transfer({ ...reserved, ...rest, phase: 'pending' });
    nowMs += 7 * DAY_MS + 1;
    await shop.app.trials.expire(1);
    assert.deepEqual([await availableTo(busy), await availableTo(idle)], [4_000_000n, 0n]);
    await shop.app.ledger.transfer({ ...reserved, ...rest, phase: 'post' });
    await Promise.all([shop.app.trials.expire(10), shop.app.trials.expire(10)]);
    assert.equal(await availableTo(busy), 0n);
  });

  test('one that cannot be ended and one that somebody holds keep nobody else waiting', async () => {
    const accounts: bigint[] = [];
    for (let n = 0; n < 5; n += 1) {
      const { apiKey } = await jsonOf(trialAt(shop, `8.33.0.${n}`));
      const known = await shop.app.keys.find(apiKey);
      assert(known !== null);
      accounts.push(known.accountId);
      nowMs += 1_000;
    }
    const [bad, held] = accounts as [bigint, bigint];
    const left = () => Promise.all(accounts.map(availableTo));
    nowMs += 7 * DAY_MS + 1;
    await database.sql.unsafe(`
      create function refuse_it() returns trigger language plpgsql as $$ begin raise exception 'a bad row'; end $$;
      create trigger refuse_it before update on trial_credits
      for each row when (new.account_id = ${bad}) execute function refuse_it()`);
    const letGo = await lockAccounts(database.url, [held]);
    try {
      // One at a time: the bad one is the first of every look.
      await assert.rejects(shop.app.trials.expire(1), /a bad row/);
      assert.deepEqual(await left(), [TRIAL, TRIAL, 0n, 0n, 0n]);
    } finally {
      await letGo();
      await database.sql.unsafe('drop function refuse_it cascade');
    }
    assert.equal(await shop.app.trials.expire(1), 2);
    assert.deepEqual(await left(), [0n, 0n, 0n, 0n, 0n]);
  });

  test('the price of a call that comes back after the end is taken as well, and never anything that was bought', async () => {
    const { apiKey } = await jsonOf(trialAt(shop, '8.32.0.1'));
    const known = await shop.app.keys.find(apiKey);
    assert(known !== null);
    const { accountId } = known;
    const call = {
      id: transferIdFor('a call'),
      accountId,
      side: 'debit',
      house: 'revenue_credits',
      code: 'call',
    } as const;
    for (const phase of ['pending', 'post'] as const)
      await shop.app.ledger.transfer({ ...call, phase, amountMicros: 2_000_000n });
    // All that it bought has gone back: it is a trial again.
    await buys(accountId, 1_000_000n, 'card_payment', 'a payment that goes back');
    const back = { id: transferIdFor('it goes back'), accountId, phase: 'posted', side: 'debit' } as const;
    await shop.app.ledger.transfer({
      ...back,
      house: 'card_clearing',
      amountMicros: 1_000_000n,
      code: 'card_reversal',
    });
    nowMs += 7 * DAY_MS;
    await shop.app.trials.expire(100);
    assert.equal(await availableTo(accountId), 0n);
    await buys(accountId, 3_000_000n, 'card_payment', 'a payment that stays');
    await shop.app.ledger.transfer({
      id: transferIdFor('its price'),
      accountId,
      phase: 'posted',
      side: 'credit',
      house: 'revenue_credits',
      amountMicros: 2_000_000n,
      code: 'call_refund',
    });
    assert.equal(await availableTo(accountId), 5_000_000n);
    await Promise.all([shop.app.trials.expire(100), shop.app.trials.expire(100)]);
    assert.equal(await availableTo(accountId), 3_000_000n);
    assert.equal(await shop.app.trials.expire(100), 0);
  });

  // ---------------------------------------------------------------------------------------------- in every order

  /** What is known of the account without a look at the books. */
  interface Model {
    trial: bigint;
    bought: bigint;
    /** Bought and not gone back: what `bought` can be at most. */
    paid: bigint;
    hasPaid: boolean;
    ended: 'kept' | 'expired' | null;
    calls: { id: string; price: bigint; refunded: boolean }[];
    orders: { id: string; left: bigint }[];
  }

  const usd = fc.bigInt({ min: 10_000n, max: 6_000_000n });
  const step = fc.oneof(
    { arbitrary: fc.record({ act: fc.constant('spend' as const), usd }), weight: 5 },
    {
      arbitrary: fc.record({ act: fc.constantFrom('card_payment', 'usdc_topup', 'operator_grant'), usd }),
      weight: 3,
    },
    { arbitrary: fc.record({ act: fc.constant('give back a call' as const), at: fc.nat(5) }), weight: 3 },
    {
      arbitrary: fc.record({ act: fc.constant('send back a payment' as const), at: fc.nat(3), usd }),
      weight: 2,
    },
    { arbitrary: fc.record({ act: fc.constant('rotate' as const) }), weight: 1 },
    { arbitrary: fc.record({ act: fc.constant('a second demo key' as const) }), weight: 1 },
    { arbitrary: fc.record({ act: fc.constant('days pass' as const), days: fc.nat(9) }), weight: 3 },
    { arbitrary: fc.record({ act: fc.constant('expire' as const) }), weight: 3 },
  );

  const program = fc.oneof(
    fc.array(step, { minLength: 4, maxLength: 25 }),
    // Its time ends in the middle: what is bought then stands beside prices that come back.
    fc
      .tuple(fc.array(step, { maxLength: 5 }), fc.array(step, { minLength: 5, maxLength: 15 }))
      .map(([first, then]) => [
        ...[{ act: 'spend' as const, usd: 1_000_000n }, ...first, { act: 'days pass' as const, days: 7 }],
        ...[{ act: 'expire' as const }, ...then],
      ]),
  );

  test('over all orders of trial, key, purchase, spending, refund and expiry: bought credit is never taken, trial credit never left', async () => {
    let programs = 0;
    const ledger = () => shop.app.ledger;
    await fc.assert(
      fc.asyncProperty(program, async (steps) => {
        programs += 1;
        const name = `program ${programs}`;
        const address = `8.${40 + Math.floor(programs / 250)}.0.${programs % 250}`;
        const { api_key: first } = await jsonOf(demoAt(shop, address, `install-${programs}`));
        let key: string = first;
        const known = await shop.app.keys.find(key);
        assert(known !== null);
        const { accountId } = known;
        const startedMs = nowMs;
        const m: Model = {
          trial: TRIAL,
          bought: 0n,
          paid: 0n,
          hasPaid: false,
          ended: null,
          calls: [],
          orders: [],
        };
        const keyed = async (response: Promise<Response>) => {
          const body = await jsonOf(response);
          key = body.apiKey ?? body.api_key ?? key;
        };
        for (const [n, one] of steps.entries()) {
          const id = `${name}, step ${n}`;
          if (one.act === 'spend') {
            const amountMicros = one.usd;
            const call = {
              id: transferIdFor(id),
              accountId,
              side: 'debit',
              house: 'revenue_credits',
              code: 'call',
            } as const;
            const { status } = await ledger().transfer({ ...call, amountMicros, phase: 'pending' });
            assert.equal(status === 'done', amountMicros <= m.trial + m.bought, id);
            if (status !== 'done') continue;
            await ledger().transfer({ ...call, amountMicros, phase: 'post' });
            m.calls.push({ id: call.id, price: amountMicros, refunded: false });
            // A trial's credit goes first.
            const ofTrial = amountMicros < m.trial ? amountMicros : m.trial;
            m.trial -= ofTrial;
            m.bought -= amountMicros - ofTrial;
          } else if (one.act === 'give back a call') {
            const call = m.calls.at(one.at);
            if (call === undefined || call.refunded) continue;
            call.refunded = true;
            await ledger().transfer({
              id: transferIdFor(`refund:${call.id}`),
              accountId,
              phase: 'posted',
              side: 'credit',
              house: 'revenue_credits',
              amountMicros: call.price,
              code: n % 2 ? 'call_refund' : 'operator_refund',
            });
            // It comes back in the other order: what was bought first, as far as it was spent.
            const ofBought = call.price < m.paid - m.bought ? call.price : m.paid - m.bought;
            m.bought += ofBought;
            m.trial += call.price - ofBought;
          } else if (one.act === 'send back a payment') {
            const order = m.orders.at(one.at);
            const most = order === undefined ? 0n : one.usd < order.left ? one.usd : order.left;
            const amountMicros = most < m.trial + m.bought ? most : m.trial + m.bought;
            if (order === undefined || amountMicros === 0n) continue;
            order.left -= amountMicros;
            await ledger().transfer({
              id: transferIdFor(id),
              accountId,
              phase: 'posted',
              side: 'debit',
              house: 'card_clearing',
              amountMicros,
              code: n % 2 ? 'card_reversal' : 'usdc_topup_lost',
            });
            const ofBought = amountMicros < m.bought ? amountMicros : m.bought;
            m.bought -= ofBought;
            m.trial -= amountMicros - ofBought;
            m.paid -= amountMicros;
          } else if (one.act === 'rotate') {
            const headers = { 'x-api-key': key };
            await keyed(fetch(`${shop.url}/api/keys/me/rotate`, { method: 'POST', headers }));
          } else if (one.act === 'a second demo key') {
            await keyed(demoAt(shop, address, `install-${programs}`));
            const now = await shop.app.keys.find(key);
            // After seven days that is a trial of its own.
            if (now?.accountId !== accountId) key = first;
          } else if (one.act === 'days pass') {
            nowMs += one.days * DAY_MS;
          } else if (one.act === 'expire') {
            const before = { bought: m.bought };
            await shop.app.trials.expire(1_000);
            if (nowMs - startedMs >= 7 * DAY_MS && m.ended !== 'kept') {
              if (m.ended === null && m.hasPaid && m.paid > 0n) m.ended = 'kept';
              else {
                m.ended = 'expired';
                m.trial = 0n;
              }
            }
            assert.equal(m.bought, before.bought);
          } else {
            const amountMicros = one.usd;
            await buys(accountId, amountMicros, one.act as TransferCode, id);
            m.orders.push({ id, left: amountMicros });
            m.bought += amountMicros;
            m.paid += amountMicros;
            m.hasPaid = true;
          }
          assert.equal(await availableTo(accountId), m.trial + m.bought, `${id}: ${one.act}`);
        }
        // However it went on: a while later nothing is left of a trial that no purchase has ended.
        nowMs = Math.max(nowMs, startedMs + 7 * DAY_MS);
        await shop.app.trials.expire(1_000);
        const kept = m.ended === 'kept' || (m.ended === null && m.hasPaid && m.paid > 0n);
        assert.equal(await availableTo(accountId), m.bought + (kept ? m.trial : 0n), 'in the end');
        assert.equal(await shop.app.trials.expire(1_000), 0, 'and nothing is left to do');
      }),
      { numRuns: 50 },
    );
    const ends = await database.sql<{ ended: string; count: number }[]>`
      select ended, count(*)::integer as count from trial_credits where rounds > 0 or ended = 'kept' group by 1`;
    for (const ended of ['kept', 'expired'])
      assert(
        (ends.find((each) => each.ended === ended)?.count ?? 0) > 5,
        `${ended}: ${JSON.stringify(ends)}`,
      );
  });

  test('the books agree with all of it', async () => {
    const { checks } = await proveBooks(database.patient);
    const [all, balances, grants] = [
      'all entries sum to zero',
      'every balance equals its transfers',
      'what trials gave',
    ];
    for (const name of [all, balances, grants])
      assert.deepEqual(
        checks
          .filter((check) => check.name.startsWith(name as string))
          .map(({ ok, finding }) => [ok, finding]),
        [[true, null]],
        name,
      );
  });
});
