/** When a balance counts as low, and what becomes of it then: on a real database, with a provider that says as told. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { connectPools, type Pools, type Transaction } from '../../db/connection.ts';
import { Problem } from '../../http/problem.ts';
import { createKeys, type Keys } from '../../keys/keys.ts';
import { createLedger, type Ledger } from '../../ledger/ledger.ts';
import { newTransferId, transferIdFor } from '../../ledger/transfer-id.ts';
import type { Mail } from '../../mail/mailer.ts';
import { type CardOrder, createOrderStore, type OrderStore } from '../orders/orders.ts';
import type { Failure } from '../provider.ts';
import { type AutoRecharges, createAutoRecharges, type NewKeptCard } from './auto-recharge.ts';
import { readDecline } from './declines.ts';
import type { RechargeReport } from './due-recharges.ts';
import { type Attempt, limitOf } from './recharge-limits.ts';
import { readRechargeChange, readRechargeRequest } from './recharge-settings.ts';

const USD = 1_000_000n;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const START_MS = Date.parse('2026-11-21T10:00:00Z');
const NO_FUNDS: Failure = {
  code: 'card_declined',
  declineCode: 'insufficient_funds',
  adviceCode: 'try_again_later',
};
const LOST: Failure = { code: 'card_declined', declineCode: 'lost_card', adviceCode: 'do_not_try_again' };

let database: TestDatabase;
/** Another replica's connections. */
let replica: Pools;
let ledger: Ledger;
let keys: Keys;
let orders: OrderStore;
let recharges: AutoRecharges;
let nowMs = START_MS;
const mails: Mail[] = [];
const reports: (RechargeReport & { outcome: string })[] = [];
/** The provider's answer to the order as it was opened. */
let charge: (order: CardOrder) => Promise<unknown>;

const make = (pools: Pools) =>
  createAutoRecharges(pools, {
    orders,
    reconcile: async (id) => {
      const order = await orders.find(id);
      assert(order !== null);
      await charge(order);
    },
    mailer: { enqueue: async (_transaction, mail) => void mails.push(mail) },
    baseUrl: 'https://farebox.test',
    maxPerDay: 3,
    nowMs: () => nowMs,
    report: (outcome, account) => void reports.push({ outcome, ...account }),
  });

before(async () => {
  database = await openTestDatabase();
  replica = connectPools(database.url, 4);
  const now = () => nowMs;
  ledger = createLedger(database, now);
  keys = createKeys(database.sql, now);
  orders = createOrderStore(database.sql, now);
  recharges = make(database);
  await database.sql.unsafe(`
    create table times_due (account_id bigint);
    create function count_due() returns trigger language plpgsql as
      $$ begin insert into times_due values (new.account_id); return null; end $$;
    create trigger count_due after update on auto_recharges for each row
      when (old.state = 0 and new.state = 1) execute function count_due();`);
});
beforeEach(async () => {
  // Every test has accounts of its own; what others left due is not its business.
  await database.sql`truncate times_due`;
  await database.sql`delete from auto_recharges`;
  nowMs = START_MS;
  mails.length = 0;
  reports.length = 0;
  charge = pay;
});
after(async () => {
  await Promise.all([replica.sql.end({ timeout: 1 }), replica.commits.end({ timeout: 1 })]);
  await database.close();
});

const within = <T>(act: (transaction: Transaction) => Promise<T>) => database.sql.begin(act);

async function account(creditMicros: bigint): Promise<bigint> {
  return within(async (transaction) => {
    const accountId = await ledger.openAccount(transaction);
    await credit(transaction, accountId, creditMicros);
    await keys.issue(transaction, { accountId, kind: 'paid', label: null, expiresAtMs: null });
    return accountId;
  }) as Promise<bigint>;
}

async function credit(transaction: Transaction, accountId: bigint, amountMicros: bigint, cause?: string) {
  const { status } = await ledger.transferWithin(transaction, {
    id: cause === undefined ? newTransferId(Date.now()) : transferIdFor(cause),
    accountId,
    amountMicros,
    phase: 'posted',
    side: 'credit',
    house: 'card_clearing',
    code: 'card_payment',
  });
  assert.equal(status, 'done');
}

const spend = (accountId: bigint, amountMicros: bigint, through: Ledger = ledger) =>
  through.transfer({
    id: newTransferId(Date.now()),
    accountId,
    amountMicros,
    phase: 'posted',
    side: 'debit',
    house: 'revenue_credits',
    code: 'call',
  });

const enable = (accountId: bigint, special: Partial<NewKeptCard> = {}) =>
  within((transaction) =>
    recharges.enable(transaction, {
      accountId,
      thresholdMicros: 5n * USD,
      topUpMicros: 10n * USD,
      customerId: 'cus_1',
      paymentMethodId: 'pm_1',
      cardLabel: 'visa 4242',
      cardFingerprint: null,
      email: 'owner@example.com',
      ...special,
    }),
  );

/** An account with a card and so much credit, which is below the threshold of 5 USD by then or is not. */
async function kept(creditMicros: bigint, special: Partial<NewKeptCard> = {}): Promise<bigint> {
  const accountId = await account(creditMicros);
  await enable(accountId, special);
  mails.length = 0;
  return accountId;
}

async function pay(order: CardOrder): Promise<void> {
  await within(async (transaction) => {
    assert(await orders.change(transaction, order, { state: 'paid', paidAtMs: nowMs }));
    assert(order.accountId !== null);
    await credit(transaction, order.accountId, order.creditMicros, `card:${order.id}:payment`);
    await recharges.paid(transaction, order);
  });
}

const decline = (failure: Failure) => (order: CardOrder) =>
  within(async (transaction) => {
    assert(await orders.change(transaction, order, { state: 'over', failure: failure.code }));
    await recharges.failed(transaction, order, failure);
  });

async function view(accountId: bigint) {
  const seen = await recharges.describe(accountId);
  assert('state' in seen, 'a card is kept');
  return seen;
}

const stateOf = async (accountId: bigint) => (await view(accountId)).state;

async function ordersOf(accountId: bigint): Promise<CardOrder[]> {
  const rows = await database.sql<{ id: string }[]>`
    select id from card_orders where account_id = ${String(accountId)} order by created_at`;
  const found = await Promise.all(rows.map(({ id }) => orders.find(id)));
  return found.filter((order) => order !== null);
}

async function timesDue(accountId: bigint): Promise<number> {
  const rows = await database.sql`select 1 from times_due where account_id = ${String(accountId)}`;
  return rows.length;
}

async function codeOf(act: Promise<unknown>): Promise<string> {
  try {
    await act;
  } catch (error) {
    assert(error instanceof Problem, String(error));
    return error.code;
  }
  assert.fail('it was accepted');
}

test('at the threshold a balance is not low yet; a micro-USD below it is', async () => {
  const accountId = await kept(6n * USD);
  await spend(accountId, 1n * USD);
  assert.equal(await stateOf(accountId), 'idle');
  await spend(accountId, 1n);
  assert.equal(await stateOf(accountId), 'due');
});

test('what is only reserved may come back: neither the hold nor its release is a reason, the capture is', async () => {
  const accountId = await kept(6n * USD);
  const reserve = async (id: string, phase: 'pending' | 'void' | 'post') =>
    ledger.transfer({
      id,
      accountId,
      phase,
      amountMicros: 2n * USD,
      side: 'debit',
      house: 'revenue_credits',
      code: 'call',
    });
  const [first, second] = [newTransferId(nowMs), newTransferId(nowMs)];
  await reserve(first, 'pending');
  assert.equal(await stateOf(accountId), 'idle');
  await reserve(first, 'void');
  assert.equal(await stateOf(accountId), 'idle');
  await reserve(second, 'pending');
  await spend(accountId, USD / 2n);
  assert.equal(await stateOf(accountId), 'idle', '5.50 USD, of which 2 are reserved');
  await reserve(second, 'post');
  assert.equal(await stateOf(accountId), 'due');
});

test('a hundred debits at once over two connections make it due once, and two jobs charge once', async () => {
  const accountId = await kept(10n * USD);
  const elsewhere = createLedger(replica, () => nowMs);
  const spent = await Promise.all(
    Array.from({ length: 100 }, (_, index) => spend(accountId, USD / 10n, index % 2 ? ledger : elsewhere)),
  );
  assert(spent.every(({ status }) => status === 'done'));
  assert.equal(await timesDue(accountId), 1);
  const other = make(replica);
  // The charge takes until every other job has looked.
  const othersDone = Promise.withResolvers<void>();
  charge = (order) => othersDone.promise.then(() => pay(order));
  const begun: number[] = [];
  const jobs = [recharges, other, recharges, other].map(async (each) => {
    begun.push(await each.run());
    if (begun.length === 3) othersDone.resolve();
  });
  await Promise.all(jobs);
  assert.deepEqual(begun, [0, 0, 0, 1]);
  const [order, ...more] = await ordersOf(accountId);
  assert.equal(more.length, 0);
  assert.deepEqual(
    [order?.kind, order?.amountMicros, order?.creditMicros, order?.customerId, order?.paymentMethodId],
    ['recharge', 10n * USD, 10n * USD, 'cus_1', 'pm_1'],
  );
  const { lastChargedAt, chargesToday, state, card } = await view(accountId);
  assert.deepEqual(
    [lastChargedAt, chargesToday, state, card],
    [new Date(nowMs).toISOString(), 1, 'idle', 'visa 4242'],
  );
  assert.match(mails[0]?.text ?? '', /below 5\.00 USD.*\(visa 4242\).*10\.00 USD.*balance is now 10\.00 USD/);
  assert.equal(mails[0]?.to, 'owner@example.com');
  assert.equal(mails.length, 1);
});

test('one that is off notices nothing; switched on again it sees at once that the balance is low', async () => {
  const accountId = await kept(6n * USD);
  const off = await recharges.change(accountId, { enabled: false });
  assert.deepEqual([off.enabled, off.disabledReason], [false, 'owner']);
  await spend(accountId, 2n * USD);
  assert.equal(await stateOf(accountId), 'off');
  const watched = await database.sql`
    select 1 from ledger_accounts where id = ${String(accountId)} and low_below_micros is not null`;
  assert.equal(watched.length, 0, 'its debits cost nothing more');
  assert.equal(await recharges.run(), 0);
  await recharges.change(accountId, { enabled: true });
  assert.equal(await stateOf(accountId), 'due');
  assert.equal(await timesDue(accountId), 0, 'no debit did it');
  assert.equal(await recharges.run(), 1);
});

test('a card that is kept for a low balance is charged at once; a balance that was topped up is left alone', async () => {
  const low = await kept(1n * USD);
  const full = await kept(1n * USD);
  await within((transaction) => credit(transaction, full, 4n * USD));
  assert.deepEqual([await stateOf(low), await stateOf(full)], ['due', 'due']);
  assert.equal(await recharges.run(), 1);
  assert.deepEqual([(await ordersOf(low)).length, (await ordersOf(full)).length], [1, 0]);
  assert.deepEqual([await stateOf(low), await stateOf(full)], ['idle', 'idle']);
  await spend(full, 1n);
  assert.equal(await stateOf(full), 'due');
});

test('on a spread database the notices of each bucket make due what is low, and those alone are struck that were read', async () => {
  const { sql } = database;
  // One takes the place of a debit on the account's server, which cannot make the row of the coordinator due.
  const note = (accountId: bigint, bucket: number) =>
    sql`insert into auto_recharge_notices (bucket, account_id, id) values (${bucket}, ${String(accountId)}, gen_random_uuid())`;
  const [low, full, off, elsewhere] = [
    await kept(1n * USD),
    await kept(6n * USD),
    await kept(1n * USD),
    await kept(1n * USD),
  ];
  await recharges.change(off, { enabled: false });
  await sql`update auto_recharges set state = 0 where state = 1`;
  for (const accountId of [low, low, full, off]) await note(accountId, 0);
  // No account is in this bucket, so it has no turn.
  await note(elsewhere, 7);
  const spread = make({ ...database, distribution: { isDistributed: true } });
  assert.equal(await spread.run(), 1, 'once, however many notices there were');
  assert.deepEqual(await Promise.all([low, full, off].map(stateOf)), ['idle', 'idle', 'off']);
  assert.deepEqual([(await ordersOf(low)).length, (await ordersOf(elsewhere)).length], [1, 0]);
  const left = async () => (await sql`select bucket from auto_recharge_notices`).map(({ bucket }) => bucket);
  assert.deepEqual(await left(), [7]);
  await sql`truncate auto_recharge_notices`;
  // Killed before the notices were struck.
  await sql`update auto_recharges set state = 0 where account_id = ${String(low)}`;
  await note(full, 0);
  await sql.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin raise 'the process died'; end $$;
    create trigger refuse before delete on auto_recharge_notices for each statement execute function refuse()`);
  await assert.rejects(spread.run(), /the process died/);
  assert.deepEqual(await left(), [0], 'it is found again');
  await sql.unsafe('drop trigger refuse on auto_recharge_notices; drop function refuse()');
  assert.equal(await spread.run(), 0);
  assert.deepEqual(await left(), []);
});

test('when the process is to end no more charges are begun; the rest stay due', async () => {
  const accounts: bigint[] = [];
  for (let n = 0; n < 22; n += 1) accounts.push(await kept(1n * USD));
  const stopping = new AbortController();
  charge = (order) => {
    stopping.abort();
    return pay(order);
  };
  const begun = await recharges.run(stopping.signal);
  const states = await Promise.all(accounts.map(stateOf));
  assert.equal(states.filter((state) => state === 'idle').length, begun);
  assert.equal(states.filter((state) => state === 'due').length, 22 - begun);
  assert(begun > 0 && begun < 22, `${begun} of 22 were charged`);
  assert.equal(await recharges.run(), 22 - begun, 'the next process charges them');
});

test('when the process is to end just after it was read who is due, nobody is charged any more', async () => {
  const accountId = await kept(1n * USD);
  // Not aborted when it is looked at first, before the reading.
  const looks = [false];
  const stopping: Pick<AbortSignal, 'aborted'> = {
    get aborted() {
      return looks.shift() ?? true;
    },
  };
  assert.equal(await recharges.run(stopping as AbortSignal), 0);
  assert.deepEqual([await stateOf(accountId), (await ordersOf(accountId)).length], ['due', 0]);
  assert.equal(await recharges.run(), 1, 'the next process charges it');
});

test('an outcome that nobody knows is waited for, whatever happens meanwhile; then it goes on', async () => {
  const accountId = await kept(1n * USD);
  charge = () => Promise.reject(new Error('no answer'));
  assert.equal(await recharges.run(), 1);
  assert.equal(reports.at(-1)?.outcome, 'unknown');
  assert.equal(await stateOf(accountId), 'charging');
  await spend(accountId, USD / 2n);
  nowMs += HOUR_MS;
  assert.equal(await recharges.run(), 0);
  // Neither another card nor switching it off and on opens a second order.
  await recharges.change(accountId, { enabled: false });
  assert.equal(await stateOf(accountId), 'off');
  await recharges.change(accountId, { enabled: true });
  await enable(accountId, { paymentMethodId: 'pm_2', cardLabel: 'visa 1111' });
  assert.equal(await stateOf(accountId), 'charging');
  assert.equal(await recharges.run(), 0);
  // The sweeper finds the order by itself: it is due there.
  const [order] = await ordersOf(accountId);
  assert(order !== undefined && order.expiresAtMs - order.createdAtMs < 24 * HOUR_MS);
  assert((await orders.takeDue({ pages: false }, 100, MINUTE_MS)).includes(order.id));
  // What becomes of the card of before says nothing of the new one.
  await decline(LOST)(order);
  assert.deepEqual([await stateOf(accountId), (await view(accountId)).card], ['due', 'visa 1111']);
  charge = pay;
  nowMs += HOUR_MS;
  assert.equal(await recharges.run(), 1);
  assert.equal((await ordersOf(accountId)).at(-1)?.paymentMethodId, 'pm_2');
});

test('declines that may pass are tried again after 1, 6 and 24 hours, then no more', async () => {
  const accountId = await kept(1n * USD);
  charge = decline(NO_FUNDS);
  for (const hours of [1, 6, 24]) {
    assert.equal(await recharges.run(), 1);
    const { state, nextAttemptAt, waitingFor, enabled } = await view(accountId);
    assert.deepEqual(
      [state, nextAttemptAt, waitingFor, enabled],
      ['due', new Date(nowMs + hours * HOUR_MS).toISOString(), 'decline', true],
    );
    // Neither debits nor repeating the settings shorten it.
    await spend(accountId, 1n);
    await recharges.change(accountId, { enabled: true, topUpMicros: 10n * USD });
    nowMs += hours * HOUR_MS - 1;
    assert.equal(await recharges.run(), 0);
    nowMs += 1;
  }
  assert.equal(await recharges.run(), 1);
  const { enabled, disabledReason, card, nextAttemptAt } = await view(accountId);
  assert.deepEqual(
    [enabled, disabledReason, card, nextAttemptAt],
    [false, 'insufficient_funds', 'visa 4242', null],
  );
  assert.deepEqual(
    mails.map(({ subject }) => subject.split(':')[0]),
    ['Your card was declined', 'Your card was declined', 'Your card was declined', 'Auto-recharge is off'],
  );
  assert.equal(new Set(mails.map(({ id }) => id)).size, 4);
  assert.match(
    mails[0]?.text ?? '',
    /insufficient funds\. Nothing was taken\.[\s\S]*2026-11-21T11:00:00\.000Z/,
  );
  // Its owner may try again, and is not let off the limits by that: three declines in a day are enough.
  await recharges.change(accountId, { enabled: true });
  nowMs += MINUTE_MS;
  assert.equal(await recharges.run(), 1);
  await recharges.change(accountId, { enabled: false });
  await recharges.change(accountId, { enabled: true });
  nowMs += MINUTE_MS;
  assert.equal(await recharges.run(), 1);
  await recharges.change(accountId, { enabled: false });
  await recharges.change(accountId, { enabled: true });
  nowMs += MINUTE_MS;
  assert.equal(await recharges.run(), 0);
  assert.equal((await view(accountId)).waitingFor, 'decline');
});

test('a payment ends a row of declines', async () => {
  const accountId = await kept(1n * USD);
  charge = decline(NO_FUNDS);
  await recharges.run();
  nowMs += HOUR_MS;
  charge = pay;
  assert.equal(await recharges.run(), 1);
  await spend(accountId, 10n * USD);
  nowMs += HOUR_MS;
  charge = decline(NO_FUNDS);
  assert.equal(await recharges.run(), 1);
  assert.equal((await view(accountId)).nextAttemptAt, new Date(nowMs + HOUR_MS).toISOString());
});

test('a decline that does not pass switches it off at once; a lost card is not even kept', async () => {
  const asking = await kept(1n * USD);
  charge = decline({
    code: 'authentication_required',
    declineCode: 'authentication_required',
    adviceCode: 'try_again_later',
  });
  await recharges.run();
  const asked = await view(asking);
  assert.deepEqual([asked.disabledReason, asked.card], ['authentication_required', 'visa 4242']);
  assert.equal((await recharges.change(asking, { enabled: true })).enabled, true);
  await recharges.change(asking, { enabled: false });

  const lost = await kept(1n * USD);
  charge = decline(LOST);
  await recharges.run();
  const gone = await view(lost);
  assert.deepEqual([gone.enabled, gone.disabledReason, gone.card], [false, 'lost_card', null]);
  assert.equal(await codeOf(recharges.change(lost, { enabled: true })), 'NO_SAVED_CARD');
  assert.match(mails.at(-1)?.text ?? '', /lost card[\s\S]*checkout\/session/);
});

test('at most three charges in a day and one in a minute; what waits says so, and goes on by itself', async () => {
  const accountId = await kept(1n * USD, { topUpMicros: 5n * USD });
  assert.equal(await recharges.run(), 1);
  await spend(accountId, 5n * USD);
  assert.equal(await recharges.run(), 0);
  assert.deepEqual(
    [(await view(accountId)).waitingFor, (await view(accountId)).nextAttemptAt],
    ['spacing', new Date(START_MS + MINUTE_MS).toISOString()],
  );
  nowMs += MINUTE_MS - 1;
  assert.equal(await recharges.run(), 0);
  nowMs += 1;
  assert.equal(await recharges.run(), 1);
  await spend(accountId, 5n * USD);
  nowMs += MINUTE_MS;
  assert.equal(await recharges.run(), 1);
  await spend(accountId, 5n * USD);
  nowMs += MINUTE_MS;
  assert.equal(await recharges.run(), 0);
  const { enabled, waitingFor, nextAttemptAt, chargesToday, maxChargesPerDay } = await view(accountId);
  assert.deepEqual(
    [enabled, waitingFor, nextAttemptAt, chargesToday, maxChargesPerDay],
    [true, 'daily_limit', new Date(START_MS + 24 * HOUR_MS).toISOString(), 3, 3],
  );
  nowMs = START_MS + 24 * HOUR_MS;
  assert.equal(await recharges.run(), 1);
  assert.equal((await ordersOf(accountId)).length, 4);
});

test('the limits by hand: money in a day, declines of one card in a month', () => {
  const agreed = { thresholdMicros: 5n * USD, topUpMicros: 5n * USD };
  const kept = { topUpMicros: 5n * USD, agreed, paymentMethodId: 'pm_1' };
  const attempt = (hoursAgo: number, special: Partial<Attempt> = {}): Attempt => ({
    atMs: START_MS - hoursAgo * HOUR_MS,
    amountMicros: 5n * USD,
    failed: false,
    paymentMethodId: 'pm_1',
    ...special,
  });
  const limit = (...attempts: Attempt[]) => limitOf(attempts, kept, 10, START_MS);
  assert.equal(limit(), null);
  // 21 USD and 5 more are beyond five times 5 USD; 20 and 5 more are not.
  assert.deepEqual(limit(attempt(2, { amountMicros: 21n * USD })), {
    untilMs: START_MS + 22 * HOUR_MS,
    waitingFor: 'daily_limit',
  });
  assert.equal(limit(attempt(2, { amountMicros: 20n * USD })), null);
  assert.equal(limit(attempt(24, { amountMicros: 21n * USD })), null);
  // What is set now neither raises the limit nor lowers it.
  const less = { ...kept, topUpMicros: 1n * USD };
  assert.equal(limitOf([attempt(2, { amountMicros: 24n * USD })], less, 10, START_MS), null);
  const more = { ...kept, topUpMicros: 26n * USD };
  assert.equal(limitOf([], more, 10, START_MS) !== null, true);
  const declines = Array.from({ length: 14 }, (_, index) => attempt(30 * (index + 1), { failed: true }));
  assert.equal(limit(...declines), null);
  assert.deepEqual(limit(...declines, attempt(500, { failed: true })), { off: 'declined_too_often' });
  assert.equal(limit(...declines, attempt(500, { failed: true, paymentMethodId: 'pm_0' })), null);
});

test('a frozen account waits, and one without a key is off', async () => {
  const frozen = await kept(1n * USD);
  await within((transaction) => keys.freeze(transaction, frozen, 'operator', 'test'));
  assert.equal(await recharges.run(), 0);
  assert.equal((await view(frozen)).waitingFor, 'thaw');
  await within((transaction) => keys.thaw(transaction, frozen, 'operator'));
  nowMs += HOUR_MS;
  assert.equal(await recharges.run(), 1);

  const revoked = await kept(1n * USD);
  await database.sql`update api_keys set status = 'revoked' where account_id = ${String(revoked)}`;
  assert.equal(await recharges.run(), 0);
  assert.equal((await view(revoked)).disabledReason, 'no_active_key');
});

test('a dispute ends it, and the card with it; a refund leaves the card; a payment under way still counts', async () => {
  const accountId = await kept(1n * USD);
  charge = () => Promise.reject(new Error('no answer'));
  await recharges.run();
  await within((transaction) => recharges.stop(transaction, accountId, 'refund'));
  await within((transaction) => recharges.stop(transaction, accountId, 'refund'));
  assert.equal((await view(accountId)).card, 'visa 4242');
  const [order] = await ordersOf(accountId);
  assert(order !== undefined);
  await pay(order);
  assert.equal(await stateOf(accountId), 'off');
  await within((transaction) => recharges.stop(transaction, accountId, 'dispute'));
  const { enabled, disabledReason, card } = await view(accountId);
  assert.deepEqual([enabled, disabledReason, card], [false, 'dispute', null]);
  assert.deepEqual(
    mails.map(({ subject }) => subject),
    ['Auto-recharge is off', 'Your balance was topped up by 10.00 USD'],
  );
  await within((transaction) => recharges.stop(transaction, 1n, 'dispute'));
});

test('an account that is still low after a charge is charged again, a minute later', async () => {
  const accountId = await kept(USD, { thresholdMicros: 8n * USD, topUpMicros: 20n * USD });
  await recharges.change(accountId, { thresholdMicros: 5n * USD, topUpMicros: 5n * USD });
  charge = async (order) => {
    await recharges.change(accountId, { thresholdMicros: 8n * USD, topUpMicros: 20n * USD });
    await pay(order);
  };
  assert.equal(await recharges.run(), 1);
  assert.equal(await stateOf(accountId), 'due', '6 USD are below 8');
  assert.equal(await recharges.run(), 0);
  assert.equal((await view(accountId)).waitingFor, 'spacing');
  nowMs += MINUTE_MS;
  charge = pay;
  assert.equal(await recharges.run(), 1);
  assert.deepEqual(
    (await ordersOf(accountId)).map(({ amountMicros }) => amountMicros),
    [5n * USD, 20n * USD],
  );
  assert.equal(await stateOf(accountId), 'idle');
});

test('the owner changes amounts and address; who had the mail before is told', async () => {
  const accountId = await kept(6n * USD, { thresholdMicros: 7n * USD, topUpMicros: 50n * USD });
  await recharges.change(accountId, { thresholdMicros: 5n * USD, topUpMicros: 10n * USD });
  await recharges.change(accountId, { thresholdMicros: 6n * USD });
  assert.equal(await stateOf(accountId), 'idle');
  await recharges.change(accountId, { thresholdMicros: 7n * USD });
  assert.equal(await stateOf(accountId), 'due');
  await recharges.change(accountId, { thresholdMicros: 2n * USD });
  assert.equal(await stateOf(accountId), 'idle');
  assert.equal(await codeOf(recharges.change(accountId, { topUpMicros: 1n * USD })), 'INVALID_AUTO_RECHARGE');
  const subjects = () => mails.splice(0).map(({ to, subject }) => `${to}: ${subject}`);
  const raised = 'owner@example.com: Auto-recharge charges more now';
  assert.deepEqual(subjects(), [raised, raised], 'a lower threshold needs no word');
  const changed = await recharges.change(accountId, { topUpMicros: 50n * USD, email: 'next@example.org' });
  assert.deepEqual('state' in changed && [changed.thresholdUsd, changed.topUpUsd, changed.email], [
    '2.000000',
    '50.000000',
    'n***@example.org',
  ]);
  assert.deepEqual(subjects(), ['owner@example.com: Auto-recharge mail goes to another address now', raised]);

  const without = await account(1n);
  assert.equal(await codeOf(recharges.change(without, { enabled: true })), 'NO_SAVED_CARD');
  const nothing = await recharges.change(without, { enabled: false });
  assert.deepEqual([nothing.enabled, nothing.disabledReason, 'how' in nothing], [false, null, true]);
});

test('nobody who holds the key asks more of a card than its owner agreed to; a person agrees anew on the page', async () => {
  const accountId = await kept(6n * USD);
  for (const [field, patch] of [
    ['topUpUsd', { topUpMicros: 10n * USD + 10_000n }],
    ['thresholdUsd', { thresholdMicros: 5n * USD + 1n }],
  ] as const) {
    const refused = await recharges.change(accountId, patch).catch((error: unknown) => error);
    assert(refused instanceof Problem && refused.code === 'RECHARGE_NOT_AGREED' && refused.status === 409);
    assert.match(JSON.stringify(refused.details), new RegExp(`autoRecharge.${field}`));
  }
  await recharges.change(accountId, { thresholdMicros: USD, topUpMicros: 5n * USD });
  await recharges.change(accountId, { thresholdMicros: 5n * USD, topUpMicros: 10n * USD });
  await enable(accountId, { thresholdMicros: 50n * USD, topUpMicros: 100n * USD });
  const changed = await recharges.change(accountId, { topUpMicros: 90n * USD });
  assert('agreed' in changed);
  const { topUpUsd, agreed } = changed;
  assert.deepEqual(
    [topUpUsd, agreed],
    ['90.000000', { thresholdUsd: '50.000000', topUpUsd: '100.000000', perDayUsd: '300.000000' }],
  );
});

test('who the mail was moved away from hears of each charge for 30 days, and cannot be pushed out', async () => {
  const accountId = await kept(6n * USD, { email: 'owner@example.com' });
  const move = (email: string | null) => recharges.change(accountId, { email });
  await move('thief@example.org');
  assert.match(mails[0]?.text ?? '', /10\.00 USD.*below 5\.00 USD.*30\.00 USD in 24 hours/);
  await move(null);
  mails.length = 0;
  const charged = async () => {
    await spend(accountId, 10n * USD).then(({ status }) =>
      status === 'done' ? null : spend(accountId, 5n * USD),
    );
    assert.equal(await recharges.run(), 1);
    return mails.splice(0).map(({ to, subject }) => `${to}: ${subject}`);
  };
  const told = (who: string) => `${who}: Your card was charged 10.00 USD`;
  assert.deepEqual(await charged(), [told('owner@example.com'), told('thief@example.org')]);
  // Moved back and away again, and to as many others as there may be: the owner is still among them.
  for (const email of ['a', 'b', 'c', 'owner'].map((name) => `${name}@example.com`)) await move(email);
  await move('d@example.com');
  assert.equal(await codeOf(move('e@example.com')), 'ADDRESS_MOVED_TOO_OFTEN');
  mails.length = 0;
  nowMs += 30 * 24 * HOUR_MS - 1;
  assert((await charged()).includes(told('owner@example.com')));
  nowMs += MINUTE_MS;
  assert.deepEqual(await charged(), ['d@example.com: Your balance was topped up by 10.00 USD']);
  const { alsoTold } = await view(accountId);
  assert.deepEqual(alsoTold, []);
});

test('a debit does not wait for whoever holds what is kept', async () => {
  const accountId = await kept(1n * USD);
  await database.sql.begin(async (transaction) => {
    await transaction`select 1 from auto_recharges where account_id = ${String(accountId)} for update`;
    assert.equal((await spend(accountId, 1n)).status, 'done');
  });
});

test('a wish is read with its defaults and its limits, field by field', async () => {
  const tier = { topUpMicros: 25n * USD };
  assert.deepEqual(readRechargeRequest({ enabled: true }, tier), {
    thresholdMicros: 5n * USD,
    topUpMicros: 25n * USD,
  });
  assert.deepEqual(readRechargeRequest({ enabled: true, thresholdUsd: '12.345678', topUpUsd: 19.99 }, tier), {
    thresholdMicros: 12_345_678n,
    topUpMicros: 19_990_000n,
  });
  assert.equal(readRechargeRequest({ enabled: false, topUpUsd: 7 }, tier), null);
  assert.equal(readRechargeRequest(undefined, tier), null);
  for (const [field, wish] of [
    ['autoRecharge', true],
    ['autoRecharge.enabled', {}],
    ['autoRecharge.topUpUsd', { enabled: true, topUpUsd: 4.99 }],
    ['autoRecharge.topUpUsd', { enabled: true, topUpUsd: 500.01 }],
    ['autoRecharge.topUpUsd', { enabled: true, topUpUsd: 5.001 }],
    ['autoRecharge.topUpUsd', { enabled: true, topUpUsd: null }],
    ['autoRecharge.thresholdUsd', { enabled: true, thresholdUsd: 0 }],
    ['autoRecharge.thresholdUsd', { enabled: true, thresholdUsd: 1e-7 }],
    ['autoRecharge.thresholdUsd', { enabled: true, thresholdUsd: '501', topUpUsd: 500 }],
    ['autoRecharge.thresholdUsd', { enabled: true, thresholdUsd: 26 }],
    ['autoRecharge', { enabled: true, treshold: 1 }],
  ] as const) {
    assert.throws(
      () => readRechargeRequest(wish, tier),
      (error) => {
        assert(error instanceof Problem && error.code === 'INVALID_AUTO_RECHARGE' && error.status === 400);
        const { fields } = error.details;
        assert(Array.isArray(fields));
        assert.equal(fields[0]?.field, field);
        return true;
      },
    );
  }
  assert.deepEqual(readRechargeChange({ email: null, topUpUsd: '5' }), {
    email: null,
    topUpMicros: 5n * USD,
  });
  assert.equal(
    await codeOf((async () => readRechargeChange({ email: 'nobody' }))()),
    'INVALID_AUTO_RECHARGE',
  );
});

test('declines are read by their most telling code, and what nobody calls passing is not', () => {
  const read = (code: string, declineCode: string | null = null, adviceCode: string | null = null) =>
    readDecline({ code, declineCode, adviceCode });
  assert.equal(read('card_declined', 'insufficient_funds', 'try_again_later'), 'later');
  assert.equal(read('card_declined', 'generic_decline'), 'later');
  assert.equal(read('card_declined', 'generic_decline', 'do_not_try_again'), 'forget');
  assert.equal(read('processing_error', 'processing_error'), 'later');
  assert.equal(read('card_declined', 'do_not_honor', 'try_again_later'), 'off');
  assert.equal(read('expired_card', 'expired_card', 'confirm_card_data'), 'off');
  assert.equal(read('card_declined', 'stolen_card'), 'forget');
  assert.equal(read('card_declined', 'something_new'), 'off');
  assert.equal(read('card_declined'), 'off');
  assert.equal(read('resource_missing'), 'forget');
  // The provider's refusal of a request, or ours to wait any longer: no issuer was asked.
  assert.equal(read('parameter_invalid_integer'), 'later');
  assert.equal(read('not_charged'), 'later');
});
