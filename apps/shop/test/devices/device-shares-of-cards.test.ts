/**
 * Tests what the owner of a device gets of calls that were paid with credit bought by card: it waits while the payment is new, goes
 * back with the payment as far as it was spent on them, and is paid to no account without a key.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import {
  type CallShares,
  createCallShares,
} from '../../../../packages/core/src/paid-call/inside/call-shares.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { post, register } from '../devices.fixture.ts';
import { accountOf, assertBooksClosed } from '../fire/money.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

const OPERATOR = 'the-operators-token-of-the-share-tests';
const DAY_MS = 86_400_000;

let world: CardWorld;
let shares: CallShares;
let owner: string;
let ownerId: bigint;
let aheadMs = 0;
let devices = 0;
const nowMs = () => Date.now() + aheadMs;
before(async () => {
  world = await startCardWorld({
    nowMs,
    environment: { DEVICE_OWNER_SHARE_PERCENT: '50', ADMIN_TOKENS: `desk:${OPERATOR}` },
  });
  world.gate(false);
  const { ledger } = world.server.app;
  shares = createCallShares(world.database, { ledger, nowMs, cardHoldMs: 7 * DAY_MS });
});
// Each test has an owner and a device of its own.
beforeEach(async () => {
  devices += 1;
  owner = await world.server.key('1');
  ownerId = await accountOf(world.database.sql, owner);
  const device = await register(world.server, owner, { deviceId: `earner-${devices}` });
  await post(world.server, device, { at: new Date(nowMs()).toISOString(), values: { temperature: 1 } });
});
after(() => world.stop());

/** A key that was bought by card, and the payment. @param onto a key that gets the credit instead */
async function buyKey(amountUsd: number, onto?: string) {
  const headers: Record<string, string> = onto === undefined ? {} : { 'x-api-key': onto };
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', { amountUsd }, headers));
  await world.pay(opened.checkoutUrl);
  const path = `/api/m2m/credits/checkout/status/${opened.sessionId}?token=${opened.retrievalToken}`;
  let key = '';
  await until('the key', async () => {
    aheadMs += 2_000;
    const told = await jsonOf(fetch(world.server.url + path));
    key = told.apiKey ?? (told.paymentStatus === 'paid' ? (onto ?? '') : '');
    return key !== '';
  });
  const [order] = await world.database.sql<{ id: string; payment_intent_id: string }[]>`
    select id, payment_intent_id from card_orders where session_id = ${opened.sessionId}`;
  assert(order !== undefined);
  return { key, orderId: order.id, paymentIntent: order.payment_intent_id };
}

/** Buys readings for 0.05 USD each, of which the owner gets 0.025. */
async function read(key: string, times: number): Promise<void> {
  for (let nth = 0; nth < times; nth++) {
    const answer = await world.server.call('iot-sensor-reading', key, { deviceId: `earner-${devices}` });
    assert.equal(answer.status, 200, await answer.clone().text());
  }
}

/** Makes all card payments a week older. The clock of the devices stays: their readings are kept by the day. */
async function weekLater(): Promise<void> {
  await world.database.sql`update card_orders set paid_at = paid_at - interval '7 days'`;
  await world.database.sql`update call_shares set held_until = held_until - interval '7 days'`;
}

async function hears(orderId: string): Promise<void> {
  assert(world.server.app.cards !== null);
  await world.server.app.cards.reconciler.reconcile(orderId);
}

const dueMicros = async () => (await shares.earned(ownerId)).dueMicros;
const earnings = async () => {
  const { earnings: shown } = await jsonOf(
    fetch(`${world.server.url}/api/devices`, { headers: { 'x-api-key': owner } }),
  );
  return shown;
};
const closed = async () => {
  await assertBooksClosed(world.database.sql);
  await world.assertBooks();
};

test('a share of new card credit waits seven days, whoever asks for it; a dispute takes it, and a dispute that is won gives it back', async () => {
  const thief = await buyKey(5);
  await read(thief.key, 4);
  assert.equal(await shares.payOut(-1, 100), 0);
  const { dueUsd, heldUsd, heldFor } = await earnings();
  assert.deepEqual([dueUsd, heldUsd, heldFor], ['0.100000', '0.100000', ['new_card']]);

  const dispute = await world.control('POST', '/disputes', { paymentIntent: thief.paymentIntent });
  await hears(thief.orderId);
  assert.deepEqual((await earnings()).earnedUsd, '0.000000');
  assert.equal(await dueMicros(), 0n);
  await closed();
  // Again brings nothing new.
  await hears(thief.orderId);
  assert.equal(await dueMicros(), 0n);

  await world.control('POST', `/disputes/${dispute.id}`, { status: 'won' });
  await hears(thief.orderId);
  assert.equal(await dueMicros(), 100_000n);
  await closed();
  await weekLater();
  assert.equal(await shares.payOut(-1, 100), 1);
  assert.equal(await dueMicros(), 0n);
  assert.equal((await world.server.app.ledger.balance(ownerId)).balanceMicros, 1_100_000n);
  await closed();
});

test('credit that no card paid, or long ago, waits for the usual time alone', async () => {
  await read(await world.server.key('1'), 1);
  assert.equal(await shares.payOut(-1, 100), 1);
  const known = await buyKey(5);
  await weekLater();
  await read(known.key, 1);
  assert.equal(await shares.payOut(-1, 100), 1);
  await closed();
});

test('a share goes back only as far as what went back of the payment was spent, the newest first', async () => {
  const customer = await buyKey(5);
  await read(customer.key, 4);
  // 4.75 USD on something else: 0.05 USD are left.
  for (let nth = 0; nth < 19; nth++)
    assert.equal((await world.server.call('ping', customer.key)).status, 200);
  // 0.05 USD are there, 0.08 are missing: one call of 0.05, and three fifths of another.
  await world.control('POST', '/refunds', { paymentIntent: customer.paymentIntent, amountCents: 13 });
  await hears(customer.orderId);
  assert.equal(await dueMicros(), 100_000n - 25_000n - 15_000n);
  await closed();
  await world.control('POST', '/disputes', { paymentIntent: customer.paymentIntent });
  await hears(customer.orderId);
  assert.equal(await dueMicros(), 10_000n);
  await weekLater();
  assert.equal(await shares.payOut(-1, 100), 0, 'its customer owes');
  assert.deepEqual((await earnings()).heldFor, ['payer_owes']);
  await closed();
});

test('a call that is given back after its share went back costs the owner nothing more', async () => {
  const customer = await buyKey(5);
  await read(customer.key, 1);
  await world.control('POST', '/disputes', { paymentIntent: customer.paymentIntent });
  await hears(customer.orderId);
  const accountId = await accountOf(world.database.sql, customer.key);
  const [call] = await world.database.sql<{ call_id: string }[]>`
    select call_id from call_shares where account_id = ${String(accountId)}`;
  await world.server.app.ledger.transfer({
    id: call?.call_id.replace(/^.{8}/, 'ffffffff') ?? '',
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'revenue_credits',
    amountMicros: 50_000n,
    code: 'call_refund',
    note: `undelivered call ${call?.call_id}`,
  });
  assert.equal(await dueMicros(), 0n);
  await assertBooksClosed(world.database.sql);
});

test('a stolen card that is spent by a key which was bought with it: the share waits and goes back as well', async () => {
  const thief = await buyKey(5);
  const sold = await world.post('/x402/instant-api-key', {}, { 'x-api-key': thief.key });
  const { apiKey } = await jsonOf(sold);
  assert.equal(sold.status, 200);
  await read(apiKey, 4);
  assert.equal(await shares.payOut(-1, 100), 0);
  await world.control('POST', '/disputes', { paymentIntent: thief.paymentIntent });
  await hears(thief.orderId);
  assert.equal(await dueMicros(), 0n);
  await assertBooksClosed(world.database.sql);
});

test('credit that no card paid earns its share, whatever card its account paid with beside it', async () => {
  const bought = async (by: string): Promise<string> => {
    const sold = await world.post('/x402/instant-api-key', {}, { 'x-api-key': by });
    const { apiKey } = await jsonOf(sold);
    assert.equal(sold.status, 200);
    return apiKey;
  };
  const key = await world.server.key('1');
  const ofGrant = await bought(key);
  const card = await buyKey(5, key);
  const ofCard = await bought(key);
  for (let nth = 1; nth < 5; nth++) await bought(key);
  const accountId = await accountOf(world.database.sql, key);
  await world.server.app.ledger.transfer({
    id: card.orderId.replace(/^.{8}/, 'ffffffff'),
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'operator_grants',
    amountMicros: 1_000_000n,
    code: 'operator_grant',
  });
  await read(ofGrant, 2);
  assert.equal(await shares.payOut(-1, 100), 1, 'what no card paid is not held');
  await read(ofGrant, 2);
  await read(key, 3);
  await read(ofCard, 1);
  await world.control('POST', '/disputes', { paymentIntent: card.paymentIntent });
  await hears(card.orderId);
  assert.equal(await dueMicros(), 125_000n);
  assert.equal(await shares.payOut(-1, 100), 1);
  assert.equal(await dueMicros(), 75_000n, 'an account that owes is waited for');
  await assertBooksClosed(world.database.sql);
});

test('an account without a usable key is paid nothing until it has one, and the operator sees it', async () => {
  const { keys } = world.server.app;
  const { sql } = world.database;
  await read(await world.server.key('1'), 2);
  await fetch(`${world.server.url}/api/keys/me`, { method: 'DELETE', headers: { 'x-api-key': owner } });
  assert.equal(await shares.payOut(-1, 100), 0);
  const shown = await jsonOf(
    fetch(`${world.server.url}/admin/api/accounts/${ownerId}`, {
      headers: { authorization: `Bearer ${OPERATOR}` },
    }),
  );
  assert.deepEqual(shown.shares, { dueUsd: '0.050000', heldUsd: '0.050000', heldFor: ['no_usable_key'] });
  await sql.begin((transaction) =>
    keys.issue(transaction, { accountId: ownerId, kind: 'paid', label: null, expiresAtMs: null }),
  );
  // One that is frozen is as good as none.
  await sql.begin((transaction) => keys.freeze(transaction, ownerId, 'operator', 'a test'));
  assert.equal(await shares.payOut(-1, 100), 0);
  await sql.begin((transaction) => keys.thaw(transaction, ownerId, 'operator'));
  assert.equal(await shares.payOut(-1, 100), 1);
  await closed();
});
