import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../test/database.fixture.ts';
import { createSettlementFinisher, type Finished } from '../jobs/finish-settlements.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { createLedger } from '../ledger/ledger.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import { type CallStore, createCallStore } from '../paid-call/calls.ts';
import {
  type Chains,
  type ChainVerdict,
  type Finality,
  type OnChainPayment,
  PaymentRefused,
} from '../paid-call/rail.ts';
import { createSettlementStore, type SettlementStore } from '../paid-call/settlements.ts';

const ACCOUNT = HOUSE_ACCOUNTS.chain_clearing;
const PRICE = 50_000n;
const LIFE_MS = 120_000;
const REFUND_AFTER_MS = 900_000;
const AT = { transaction: '0xaa', blockNumber: 7n };
const settled: ChainVerdict = { status: 'settled', ...AT };
const _open: ChainVerdict = { status: 'open' };
const unknown: ChainVerdict = { status: 'unknown' };
const refusal = new PaymentRefused('PAYMENT_INSUFFICIENT_FUNDS', 'none', 'fund it');
const _refused: ChainVerdict = { status: 'refused', refusal };
const dead: ChainVerdict = {
  status: 'dead',
  refusal: new PaymentRefused('PAYMENT_EXPIRED', 'too late', 'sign again'),
};

let database: TestDatabase;
let nowMs = Date.now();
let calls: CallStore;
let settlements: SettlementStore;
before(async () => {
  database = await openTestDatabase();
  calls = createCallStore(database, { nowMs: () => nowMs, answerTtlMs: 86_400_000 });
  settlements = createSettlementStore(database.sql, () => nowMs);
});
after(() => database?.close());

/** What the chain says; what it is not told to say it must not be asked. */
interface Says {
  look?: ChainVerdict;
  settle?: ChainVerdict;
  finality?: Finality;
  refund?: string | null;
}

function finisherWith(says: Says, chains: 'known' | 'unknown' = 'known') {
  const told: Finished[] = [];
  const asked: string[] = [];
  const answer = <K extends keyof Says>(question: K): NonNullable<Says[K]> | null => {
    asked.push(question);
    if (!(question in says)) throw new Error(`nobody expected to be asked to ${question}`);
    return says[question] ?? null;
  };
  const verdict = (question: 'look' | 'settle'): ChainVerdict => answer(question) ?? { status: 'unknown' };
  const fake: Chains = {
    verify: async () => {},
    look: async () => verdict('look'),
    settle: async () => verdict('settle'),
    finality: async () => answer('finality') ?? 'unknown',
    canRefund: () => true,
    refund: async () => answer('refund'),
  };
  const finisher = createSettlementFinisher({
    calls,
    settlements,
    ledger: createLedger(database, () => nowMs),
    chainsOf: (rail) => (rail === 'x402' && chains === 'known' ? fake : undefined),
    refundAfterMs: REFUND_AFTER_MS,
    nowMs: () => nowMs,
    report: (outcome) => void told.push(outcome),
  });
  return { told, asked, run: () => finisher.run() };
}

/** One round in which the chain says this. @returns what became of everything that was due */
async function round(says: Says): Promise<{ told: Finished[]; asked: string[] }> {
  const finisher = finisherWith(says);
  const further = await finisher.run();
  assert.equal(further, finisher.told.filter((outcome) => outcome !== 'waiting').length);
  return { told: finisher.told, asked: finisher.asked };
}

function paymentOf(key: string): OnChainPayment {
  return {
    key,
    network: 'eip155:8453',
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    payer: `0x${'11'.repeat(20)}`,
    payTo: `0x${'22'.repeat(20)}`,
    amountUnits: PRICE,
    deadAfterMs: nowMs + LIFE_MS,
    evidence: { scheme: 'fake' },
  };
}

/** A call as a request leaves it behind, and whose lease is over. */
async function leftBehind(how: { answered: boolean; state: 'with_chain' | 'refused' | 'settled' }): Promise<{
  accountId: bigint;
  callId: string;
  payment: OnChainPayment;
  begin: Parameters<CallStore['begin']>[0];
}> {
  const callId = newTransferId(nowMs);
  const payment = paymentOf(`test:${callId}`);
  const begin = {
    id: callId,
    accountId: ACCOUNT,
    keyId: null,
    rail: 'x402',
    service: 'first-call',
    priceMicros: PRICE,
    revenue: 'revenue_x402' as const,
    identity: payment.key,
    paymentKey: payment.key,
    fingerprint: randomBytes(32),
    ttlMs: 60_000,
  };
  assert.equal((await calls.begin(begin)).status, 'authorized');
  const kept = await calls.keep({
    id: callId,
    accountId: ACCOUNT,
    rail: 'x402',
    payment,
    answer: how.answered ? { status: 200, headers: {}, body: '{"it":"is"}' } : null,
    leaseMs: 1_000,
  });
  assert.equal(kept.status, 'kept');
  const one = { accountId: ACCOUNT, callId, payment };
  if (how.state === 'refused') await settlements.markRefused(one, refusal.code);
  if (how.state === 'settled') await settlements.markSettled(one, AT, 1_000);
  nowMs += how.state === 'refused' ? LIFE_MS : 1_000;
  return { ...one, begin };
}

/** Money that moved for good, as seen by an account of the house: credits less debits. */
async function posted(account: keyof typeof HOUSE_ACCOUNTS): Promise<bigint> {
  const id = String(HOUSE_ACCOUNTS[account]);
  const [row] = await database.sql<{ sum: bigint }[]>`
    select coalesce(sum(case when credit_account = ${id} then amount_micros else -amount_micros end), 0)::bigint as sum
    from ledger_transfers where phase in (1, 3) and ${id} in (credit_account, debit_account)`;
  return row?.sum ?? 0n;
}

async function dueAgainInMs(callId: string): Promise<number> {
  const [row] = await database.sql<{ next_at: Date }[]>`
    select next_at from settlements where call_id = ${callId}`;
  return (row?.next_at.getTime() ?? Number.NaN) - nowMs;
}

/** So that the next test has nothing but its own. */
async function forgetAll(): Promise<void> {
  await database.sql`update settlements set final_at = now()`;
  await database.sql`update refunds set state = 1`;
}

test('BUG9: looks before the capture count as looks for a transaction that is gone', async () => {
  const left = await leftBehind({ answered: true, state: 'with_chain' });
  for (let i = 0; i < 6; i++) {
    await round({ look: unknown });
    nowMs += await dueAgainInMs(left.callId);
  }
  assert.deepEqual((await round({ look: settled })).told, ['captured']);
  nowMs += 60_000;
  const last = await round({ finality: 'gone', settle: dead });
  assert.deepEqual(last.asked, ['finality'], 'one node that does not know it is no proof');
});
test('BUG9b: looks that saw it count as looks for a transaction that is gone', async () => {
  await forgetAll();
  await leftBehind({ answered: true, state: 'with_chain' });
  await round({ look: settled });
  for (let i = 0; i < 6; i++) {
    nowMs += 60_000;
    await round({ finality: 'waiting' });
  }
  nowMs += 60_000;
  const last = await round({ finality: 'gone', settle: dead });
  assert.deepEqual(last.asked, ['finality'], 'one node that does not know it is no proof');
});
test('BUG10: two replicas lease the same refused settlement', async () => {
  await forgetAll();
  const left = await leftBehind({ answered: false, state: 'refused' });
  const leased = await Promise.all([1, 2].map(() => settlements.lease(ACCOUNT, left.callId, 45_000)));
  assert.equal(leased.filter((each) => each !== null).length, 1);
});
test('BUG11: a transfer of more than the price, refunded', async () => {
  await forgetAll();
  const before = { revenue: await posted('revenue_x402'), clearing: await posted('chain_clearing') };
  const callId = newTransferId(nowMs);
  const payment = { ...paymentOf(`x${callId}`), amountUnits: 5_000_000n };
  await calls.begin({
    id: callId,
    accountId: ACCOUNT,
    keyId: null,
    rail: 'x402',
    service: 's',
    priceMicros: PRICE,
    revenue: 'revenue_x402',
    identity: payment.key,
    paymentKey: payment.key,
    fingerprint: randomBytes(32),
    ttlMs: 60_000,
  });
  await calls.keep({ id: callId, accountId: ACCOUNT, rail: 'x402', payment, answer: null, leaseMs: 1_000 });
  await settlements.markSettled({ accountId: ACCOUNT, callId }, AT, 0);
  nowMs += REFUND_AFTER_MS + 1_000;
  await round({ refund: '0xbb', finality: 'final' });
  assert.equal((await posted('revenue_x402')) - before.revenue, 0n, 'revenue');
});
