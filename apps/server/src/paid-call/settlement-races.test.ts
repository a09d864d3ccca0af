/** What looks at settlements at the wrong moment, twice or too often must not change. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../test/database.fixture.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { createLedger } from '../ledger/ledger.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import { type CallStore, createCallStore } from './calls.ts';
import { createSettlementFinisher, type Finished } from './finish-settlements.ts';
import {
  type Chains,
  type ChainVerdict,
  type Finality,
  type OnChainPayment,
  PaymentRefused,
} from './rail.ts';
import { createSettlementStore, type SettlementStore } from './settlements.ts';

const ACCOUNT = HOUSE_ACCOUNTS.chain_clearing;
const PRICE = 50_000n;
const LIFE_MS = 120_000;
const REFUND_AFTER_MS = 900_000;
const AT = { transaction: '0xaa', blockNumber: 7n };
const settled: ChainVerdict = { status: 'settled', ...AT };
const unknown: ChainVerdict = { status: 'unknown' };
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
  refund?: string;
}

/** One round in which the chain says this. @returns what became of everything that was due, and what was asked */
async function round(says: Says): Promise<{ told: Finished[]; asked: string[] }> {
  const told: Finished[] = [];
  const asked: string[] = [];
  async function said<T>(question: keyof Says, answer: T | undefined): Promise<T> {
    asked.push(question);
    assert(answer !== undefined, `nobody expected to be asked to ${question}`);
    return answer;
  }
  const chains: Chains = {
    verify: async () => {},
    look: () => said('look', says.look),
    settle: () => said('settle', says.settle),
    finality: () => said('finality', says.finality),
    canRefund: () => true,
    canEverRefund: () => true,
    refund: () => said('refund', says.refund),
  };
  const finisher = createSettlementFinisher({
    calls,
    settlements,
    ledger: createLedger(database, () => nowMs),
    chainsOf: () => chains,
    refundAfterMs: REFUND_AFTER_MS,
    nowMs: () => nowMs,
    report: (outcome) => void told.push(outcome),
  });
  await finisher.run();
  return { told, asked };
}

function paymentOf(key: string, amountUnits: bigint): OnChainPayment {
  return {
    identity: key,
    network: 'eip155:8453',
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    payer: `0x${'11'.repeat(20)}`,
    payTo: `0x${'22'.repeat(20)}`,
    amountUnits,
    deadAfterMs: nowMs + LIFE_MS,
    evidence: { scheme: 'fake' },
  };
}

/** A call as a request leaves it behind, and whose lease is over. */
async function leftBehind(how: {
  answered: boolean;
  state: 'with_chain' | 'refused' | 'settled';
  amountUnits?: bigint;
}): Promise<{ accountId: bigint; callId: string; payment: OnChainPayment }> {
  const callId = newTransferId(nowMs);
  const payment = paymentOf(`test:${callId}`, how.amountUnits ?? PRICE);
  const begun = await calls.begin({
    id: callId,
    accountId: ACCOUNT,
    keyId: null,
    rail: 'x402',
    service: 'first-call',
    priceMicros: PRICE,
    revenue: 'revenue_x402',
    identity: payment.identity,
    onChainIdentity: payment.identity,
    fingerprint: randomBytes(32),
    ttlMs: 60_000,
  });
  assert.equal(begun.status, 'authorized');
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
  if (how.state === 'refused') await settlements.markRefused(one, 'PAYMENT_INSUFFICIENT_FUNDS');
  if (how.state === 'settled') await settlements.markSettled(one, AT, 1_000);
  nowMs += how.state === 'refused' ? LIFE_MS : 1_000;
  return one;
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

beforeEach(async () => {
  // So that each test has nothing but its own.
  await database.sql`update settlements set final_at = now()`;
  await database.sql`update refunds set state = 1`;
});

test('a transaction is not believed gone for the looks before it was captured', async () => {
  const left = await leftBehind({ answered: true, state: 'with_chain' });
  for (let look = 0; look < 6; look += 1) {
    await round({ look: unknown });
    nowMs += await dueAgainInMs(left.callId);
  }
  assert.deepEqual((await round({ look: settled })).told, ['captured']);
  nowMs += 60_000;
  const last = await round({ finality: 'gone', settle: dead });
  assert.deepEqual(last.asked, ['finality'], 'one node that does not know it is no proof');
});

test('a transaction is not believed gone for the looks that saw it', async () => {
  await leftBehind({ answered: true, state: 'with_chain' });
  assert.deepEqual((await round({ look: settled })).told, ['captured']);
  for (let look = 0; look < 6; look += 1) {
    nowMs += 60_000;
    assert.deepEqual((await round({ finality: 'waiting' })).asked, ['finality']);
  }
  nowMs += 60_000;
  const last = await round({ finality: 'gone', settle: dead });
  assert.deepEqual(last.asked, ['finality'], 'one node that does not know it is no proof');
});

test('a refused one whose payer comes again on two replicas is taken by one of them', async () => {
  const left = await leftBehind({ answered: false, state: 'refused' });
  const leased = await Promise.all([1, 2].map(() => settlements.lease(ACCOUNT, left.callId, 45_000)));
  assert.equal(leased.filter((each) => each !== null).length, 1);
});

test('of a transfer of more than the price the price is refunded, and no revenue is left', async () => {
  const before = await posted('revenue_x402');
  await leftBehind({ answered: false, state: 'settled', amountUnits: 5_000_000n });
  nowMs += REFUND_AFTER_MS;
  assert.deepEqual((await round({ refund: '0xbb', finality: 'final' })).told, ['owed', 'refunded']);
  assert.equal(await posted('revenue_x402'), before);
});
