import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { connectDatabase } from '../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import { type CallStore, createCallStore } from './inside/calls.ts';
import { createSettlementStore } from './inside/settlement-store.ts';
import type { OnChainPayment } from './rail.ts';
import { claimedFingerprint } from './request-body.ts';
import type { SettlementStore } from './settlements.ts';

const ACCOUNT = HOUSE_ACCOUNTS.chain_clearing;
const FINGERPRINT = randomBytes(32);

let database: TestDatabase;
let second: ReturnType<typeof connectDatabase>;
let nowMs = Date.UTC(2026, 0, 1);
let calls: CallStore;
/** Two replicas. */
let replicas: [SettlementStore, SettlementStore];
before(async () => {
  database = await openTestDatabase();
  second = connectDatabase(database.url, 4);
  calls = createCallStore(database, { nowMs: () => nowMs, answerTtlMs: 3_600_000 });
  replicas = [createSettlementStore(database.sql, () => nowMs), createSettlementStore(second, () => nowMs)];
});
afterEach(async () => {
  await database.sql`delete from settlements`;
  await database.sql`delete from refunds`;
});
after(async () => {
  await second?.end();
  await database?.close();
});

interface Kept {
  accountId: bigint;
  callId: string;
  payment: OnChainPayment;
}

/** A call that was begun and kept, with a lease of so long. */
async function keep(
  how: { answered?: boolean; leaseMs?: number; payer?: string; claim?: Buffer } = {},
): Promise<Kept> {
  const claim = how.claim ?? null;
  const callId = newTransferId(nowMs);
  const payment: OnChainPayment = {
    identity: `test:${callId}`,
    network: 'eip155:8453',
    asset: '0xasset',
    payer: how.payer ?? '0xpayer',
    payTo: '0xpayto',
    amountUnits: 50_000n,
    deadAfterMs: nowMs + 120_000,
    evidence: {
      scheme: 'fake',
      nested: { quote: '"\\{},' },
      ...(claim === null ? {} : { claim: claim.toString('hex') }),
    },
  };
  const begun = await calls.begin({
    id: callId,
    accountId: ACCOUNT,
    bucket: 0,
    keyId: null,
    rail: 'x402',
    service: 'first-call',
    priceMicros: 50_000n,
    revenue: 'revenue_x402',
    identity: payment.identity,
    onChainIdentity: payment.identity,
    fingerprint: claimedFingerprint(FINGERPRINT, claim),
    ttlMs: 60_000,
  });
  assert.equal(begun.status, 'authorized');
  await calls.keep({
    id: callId,
    accountId: ACCOUNT,
    bucket: 0,
    rail: 'x402',
    payment,
    answer: how.answered === false ? null : { status: 200, headers: {}, body: '{}' },
    leaseMs: how.leaseMs ?? 0,
  });
  return { accountId: ACCOUNT, callId, payment };
}

const capture = ({ callId }: Kept) =>
  calls.finish({
    id: callId,
    accountId: ACCOUNT,
    bucket: 0,
    service: 'first-call',
    priceMicros: 50_000n,
    revenue: 'revenue_x402',
    capture: true,
    outcome: 'answered',
    answer: null,
    settled: { transaction: `0x${callId}`, blockNumber: 12n },
  });

test('what was kept comes back whole', async () => {
  const kept = await keep({ leaseMs: 1_000 });
  assert.equal(await replicas[1].lease(ACCOUNT, kept.callId, 1_000), null, 'whoever kept it is at it');
  assert.deepEqual(await replicas[0].leaseDue(10, 1_000), []);
  nowMs += 1_000;
  const leased = await replicas[1].lease(ACCOUNT, kept.callId, 1_000);
  assert.deepEqual(leased, {
    ...kept,
    rail: 'x402',
    service: 'first-call',
    priceMicros: 50_000n,
    revenue: 'revenue_x402',
    bucket: 0,
    captured: false,
    answered: true,
    state: 'with_chain',
    transaction: null,
    blockNumber: null,
    attempts: 1,
    missed: 0,
    createdAtMs: nowMs - 1_000,
  });
  assert.equal(await replicas[0].lease(ACCOUNT, newTransferId(nowMs), 1_000), null);
});

/** What a call is by its row, what became of its payment, and whether its answer is there. */
async function standingOf(callId: string) {
  const [row] = await database.sql<{ state: number; settlement: number | null; answered: boolean }[]>`
    select c.state, (select s.state from settlements s where s.call_id = c.id) as settlement,
      exists (select 1 from call_answers a where a.account_id = c.account_id and a.id = c.id) as answered
    from calls c where c.account_id = ${String(ACCOUNT)} and c.id = ${callId}`;
  return row;
}

const ended = ({ callId }: Pick<Kept, 'callId'>, settled: { transaction: string } | null | undefined) =>
  calls.finish({
    id: callId,
    accountId: ACCOUNT,
    bucket: 0,
    service: 'first-call',
    priceMicros: 50_000n,
    revenue: 'revenue_x402',
    capture: settled !== undefined && settled !== null,
    outcome: settled == null ? 'ENDED' : 'answered',
    answer: null,
    ...(settled === undefined ? {} : { settled: settled && { ...settled, blockNumber: 12n } }),
  });

test('only a call that is open is kept, and one that is kept ends with its payment alone', async () => {
  const kept = await keep();
  const open = { state: 3, settlement: 0, answered: true };
  assert.equal((await ended(kept, undefined)).status, 'not_open', 'who does not know of its payment');
  assert.deepEqual(await standingOf(kept.callId), open);
  assert.equal((await ended(kept, { transaction: '0xaa' })).status, 'done');
  const captured = { state: 1, settlement: 1, answered: true };
  assert.deepEqual(await standingOf(kept.callId), captured);
  assert.equal((await ended(kept, null)).status, 'not_open', 'it was captured');
  const { payment, ...named } = kept;
  const again = { id: named.callId, accountId: ACCOUNT, bucket: 0, rail: 'x402', payment, leaseMs: 0 };
  const answer = { status: 200, headers: {}, body: '{}' };
  assert.equal((await calls.keep({ ...again, answer })).status, 'not_open');
  assert.deepEqual(await standingOf(kept.callId), captured);

  const dead = await keep();
  assert.equal((await ended(dead, null)).status, 'done');
  assert.deepEqual(
    await standingOf(dead.callId),
    { state: 2, settlement: 2, answered: false },
    'nobody paid it',
  );
  assert.equal((await calls.keep({ ...again, id: dead.callId, answer })).status, 'not_open');
  assert.equal((await ended(dead, { transaction: '0xbb' })).status, 'not_open', 'it was released');
  assert.equal((await standingOf(dead.callId))?.state, 2);
  const spent = await database.sql`select 1 from call_spending where account_id = ${String(ACCOUNT)}`;
  assert.equal(spent.length, 0, 'an account of the house has no cap that it would count against');
});

test('two replicas never lease the same, one by one or in bulk, until the lease is over', async () => {
  const kept = await Promise.all(Array.from({ length: 40 }, () => keep()));
  const [first] = kept;
  assert.ok(first !== undefined);
  nowMs += 1;
  const attempts = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      replicas[index % 2 === 0 ? 0 : 1].lease(ACCOUNT, first.callId, 5_000),
    ),
  );
  assert.equal(attempts.filter((each) => each !== null).length, 1);
  const bulks = await Promise.all(
    Array.from({ length: 6 }, (_, index) => replicas[index % 2 === 0 ? 0 : 1].leaseDue(10, 5_000)),
  );
  const ids = bulks.flat().map(({ callId }) => callId);
  assert.equal(new Set(ids).size, ids.length, 'nobody has what another has');
  assert.ok(!ids.includes(first.callId));
  // Rows that were locked at that moment are passed over, and found the next time.
  const rest = await replicas[0].leaseDue(100, 5_000);
  assert.equal(ids.length + rest.length, 39);
  nowMs += 5_000;
  assert.equal((await replicas[1].leaseDue(100, 5_000)).length, 40, 'a replica that died keeps nothing');
});

test('the longest due come first', async () => {
  const kept: Kept[] = [];
  for (const leaseMs of [3_000, 1_000, 2_000]) kept.push(await keep({ leaseMs }));
  nowMs += 10_000;
  const order: (string | undefined)[] = [];
  for (let index = 0; index < 3; index++) order.push((await replicas[0].leaseDue(1, 60_000))[0]?.callId);
  assert.deepEqual(order, [kept[1]?.callId, kept[2]?.callId, kept[0]?.callId]);
});

test('a refused one is left alone until it is dead, unless its payer comes again', async () => {
  const kept = await keep();
  await replicas[0].markRefused(kept, 'PAYMENT_INSUFFICIENT_FUNDS');
  assert.deepEqual(await replicas[0].leaseDue(10, 1_000), []);
  const again = await replicas[1].lease(ACCOUNT, kept.callId, 5_000);
  assert.equal(again?.callId, kept.callId);
  await replicas[1].markRefused(kept, 'PAYMENT_INSUFFICIENT_FUNDS');
  assert.equal((await replicas[0].receipt(kept.callId))?.reason, 'PAYMENT_INSUFFICIENT_FUNDS');
  assert.notEqual(await replicas[0].lease(ACCOUNT, kept.callId, 5_000), null, 'as often as they like');
  await replicas[0].markRefused(kept, 'PAYMENT_INSUFFICIENT_FUNDS');
  nowMs = kept.payment.deadAfterMs;
  assert.equal((await replicas[0].leaseDue(10, 1_000))[0]?.state, 'refused');
});

test('what came to an end is leased no more, and no late word changes it', async () => {
  const [dead, final] = [await keep(), await keep()];
  await calls.finish({
    id: dead.callId,
    accountId: ACCOUNT,
    bucket: 0,
    service: 'first-call',
    priceMicros: 50_000n,
    revenue: 'revenue_x402',
    capture: false,
    outcome: 'PAYMENT_EXPIRED',
    answer: null,
    settled: null,
  });
  await capture(final);
  nowMs += 15_000;
  const [settlement] = await replicas[0].leaseDue(10, 0);
  assert.ok(settlement !== undefined);
  assert.deepEqual(
    [
      settlement.callId,
      settlement.captured,
      settlement.state,
      settlement.transaction,
      settlement.blockNumber,
    ],
    [final.callId, true, 'settled', `0x${final.callId}`, 12n],
  );
  await replicas[0].markFinal(settlement);
  nowMs += 86_400_000;
  assert.deepEqual(await replicas[1].leaseDue(10, 1_000), []);
  for (const kept of [dead, final]) {
    assert.equal(await replicas[0].lease(ACCOUNT, kept.callId, 1_000), null);
    await replicas[0].markRefused(kept, 'LATE');
  }
  await replicas[0].markSettled(dead, { transaction: '0xlate', blockNumber: 1n }, 0);
  await replicas[0].markGone(settlement, 'lost');
  const receipts = await Promise.all([dead, final].map(({ callId }) => replicas[0].receipt(callId)));
  assert.deepEqual(
    receipts.map((each) => [
      each?.settlementState,
      each?.callState,
      each?.reason,
      each?.transaction,
      each?.final,
    ]),
    [
      ['dead', 'released', 'PAYMENT_EXPIRED', null, false],
      ['settled', 'captured', null, `0x${final.callId}`, true],
    ],
  );
});

test('an answer is found by its payer, service and request; not by others, and not before it is paid', async () => {
  const find = (changes: { payer?: string; service?: string; fingerprint?: Buffer } = {}) =>
    replicas[0].boughtBy(
      ACCOUNT,
      changes.payer ?? '0xsomebody',
      changes.service ?? 'first-call',
      changes.fingerprint ?? FINGERPRINT,
    );
  const kept = await keep({ payer: '0xsomebody' });
  assert.equal(await find(), null);
  await capture(kept);
  assert.equal(await find(), kept.callId);
  assert.equal(await find({ payer: '0xsomebodyelse' }), null);
  assert.equal(await find({ service: 'ping' }), null);
  assert.equal(await find({ fingerprint: randomBytes(32) }), null);
  nowMs += 1_000;
  const newer = await keep({ payer: '0xsomebody' });
  await capture(newer);
  assert.equal(await find(), newer.callId);
  nowMs += 1_000;
  const claimed = await keep({ payer: '0xsomebody', claim: randomBytes(32) });
  await capture(claimed);
  assert.equal(await find(), claimed.callId, 'whatever it was claimed with');
  assert.equal(await find({ fingerprint: randomBytes(32) }), null);
  nowMs += 3_600_001;
  assert.equal(await find(), null, 'answers are not kept for ever');
});

test('a refund is owed once, leased to one replica at a time, and paid once', async () => {
  const kept = await keep({ answered: false });
  const settlement = await replicas[0].lease(ACCOUNT, kept.callId, 1_000);
  assert.ok(settlement !== null);
  await Promise.all(replicas.map((replica) => replica.owe(settlement, 'not delivered in time')));
  await replicas[0].owe(settlement, 'another reason');
  const due = (await Promise.all(replicas.map((replica) => replica.leaseDueRefunds(10, 5_000)))).flat();
  assert.deepEqual(due, [
    {
      rail: 'x402',
      revenue: 'revenue_x402',
      accountId: ACCOUNT,
      callId: kept.callId,
      network: 'eip155:8453',
      asset: '0xasset',
      payee: '0xpayer',
      amountUnits: 50_000n,
      amountMicros: 50_000n,
      attempts: 1,
    },
  ]);
  const [refund] = due;
  assert.ok(refund !== undefined);
  await replicas[0].refundLater(refund, 2_000);
  assert.deepEqual(await replicas[1].leaseDueRefunds(10, 5_000), []);
  nowMs += 2_000;
  assert.equal((await replicas[1].leaseDueRefunds(10, 5_000))[0]?.attempts, 2);
  await replicas[1].markRefunded(refund, '0xrefund');
  await replicas[0].refundLater(refund, 0);
  nowMs += 86_400_000;
  assert.deepEqual(await replicas[0].leaseDueRefunds(10, 5_000), []);
  assert.deepEqual((await replicas[0].receipt(kept.callId))?.refund, {
    state: 'paid',
    amountMicros: 50_000n,
    transaction: '0xrefund',
    reason: 'not delivered in time',
  });
});
