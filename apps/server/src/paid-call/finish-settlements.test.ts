import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
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
const open: ChainVerdict = { status: 'open' };
const unknown: ChainVerdict = { status: 'unknown' };
const refusal = new PaymentRefused('PAYMENT_INSUFFICIENT_FUNDS', 'none', 'fund it');
const refused: ChainVerdict = { status: 'refused', refusal };
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
    canEverRefund: () => true,
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
    identity: key,
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
    identity: payment.identity,
    onChainIdentity: payment.identity,
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

const CHARGED = { call: 'captured', settlement: 'settled', revenue: PRICE, answer: true } as const;
const FREED = { call: 'released', settlement: 'dead', revenue: 0n, answer: false } as const;
const PENDING = { call: 'settling', revenue: 0n } as const;

/** Every state in which a request can leave a call, and everything that the chain can say. */
const TABLE: {
  answered: boolean;
  state: 'with_chain' | 'refused' | 'settled';
  says: Says;
  asked: string[];
  becomes: Finished;
  leaves: { call: string; settlement: string; revenue: bigint; answer: boolean };
}[] = [true, false].flatMap((answered) => {
  const asWas = (settlement: string) => ({ ...PENDING, settlement, answer: answered });
  const common = (state: 'with_chain' | 'refused') => [
    {
      answered,
      state,
      says: { look: unknown },
      asked: ['look'],
      becomes: 'waiting' as const,
      leaves: asWas(state),
    },
    { answered, state, says: { look: dead }, asked: ['look'], becomes: 'released' as const, leaves: FREED },
    {
      answered,
      state,
      says: { look: settled },
      asked: ['look'],
      becomes: answered ? ('captured' as const) : ('waiting' as const),
      leaves: answered ? CHARGED : asWas('settled'),
    },
  ];
  const openAndSettled = (
    settle: ChainVerdict,
    becomes: Finished,
    leaves: (typeof TABLE)[number]['leaves'],
  ) => ({
    answered,
    state: 'with_chain' as const,
    says: { look: open, settle },
    asked: ['look', 'settle'],
    becomes,
    leaves,
  });
  return [
    ...common('with_chain'),
    ...common('refused'),
    // What was refused is not tried again without the payer.
    {
      answered,
      state: 'refused' as const,
      says: { look: open },
      asked: ['look'],
      becomes: 'waiting' as const,
      leaves: asWas('refused'),
    },
    ...(answered
      ? [
          openAndSettled(settled, 'captured', CHARGED),
          openAndSettled(dead, 'released', FREED),
          // An attempt before it may be on its way all the same.
          openAndSettled(refused, 'waiting', asWas('with_chain')),
          openAndSettled(unknown, 'waiting', asWas('with_chain')),
          openAndSettled(open, 'waiting', asWas('with_chain')),
        ]
      : [
          // Nobody is charged for an answer that is not there, unless they ask for it again.
          {
            answered,
            state: 'with_chain' as const,
            says: { look: open },
            asked: ['look'],
            becomes: 'waiting' as const,
            leaves: asWas('with_chain'),
          },
          // The chain was heard already; the time for a refund has not come.
          {
            answered,
            state: 'settled' as const,
            says: {},
            asked: [],
            becomes: 'waiting' as const,
            leaves: asWas('settled'),
          },
        ]),
  ];
});

for (const row of TABLE) {
  const said = Object.entries(row.says).map(
    ([question, verdict]) => `${question} says ${(verdict as ChainVerdict).status}`,
  );
  const what = `${row.answered ? 'answered' : 'not answered'}, ${row.state}: ${said.join(', ') || 'nobody is asked'}`;
  test(`${what}: ${row.becomes}`, async () => {
    const left = await leftBehind(row);
    const revenueBefore = await posted('revenue_x402');
    const { told, asked } = await round(row.says);
    assert.deepEqual([told, asked], [[row.becomes], row.asked]);
    const receipt = await settlements.receipt(left.callId);
    assert.equal(receipt?.callState, row.leaves.call);
    assert.equal(receipt?.settlementState, row.leaves.settlement);
    assert.equal((await posted('revenue_x402')) - revenueBefore, row.leaves.revenue);
    assert.equal((await calls.answerOf(ACCOUNT, left.callId)) !== null, row.leaves.answer);
    if (row.leaves.settlement === 'settled') assert.equal(receipt?.transaction, AT.transaction);

    // The same round at once finds nothing to do, and what has still to stay a while later; neither takes money twice.
    assert.deepEqual((await round({})).told, []);
    if (row.becomes === 'captured') nowMs += 15_000;
    const again = await round(row.becomes === 'captured' ? { finality: 'waiting' } : {});
    assert.deepEqual(again.told, row.becomes === 'captured' ? ['waiting'] : []);
    assert.equal((await posted('revenue_x402')) - revenueBefore, row.leaves.revenue);
    // A payment that is dead has bought nothing, and its name is free; any other is still this call's.
    const presented = await calls.begin({ ...left.begin, id: newTransferId(nowMs) });
    assert.equal(
      presented.status,
      { captured: 'answered', released: 'authorized', settling: 'settling' }[row.leaves.call],
    );
    await forgetAll();
  });
}

test('what waits is looked at again after a pause that grows to a minute', async () => {
  const left = await leftBehind({ answered: true, state: 'with_chain' });
  const pausesMs: number[] = [];
  for (let attempt = 0; attempt < 8; attempt++) {
    assert.deepEqual((await round({ look: unknown })).told, ['waiting']);
    pausesMs.push(await dueAgainInMs(left.callId));
    nowMs += pausesMs.at(-1) ?? 0;
  }
  assert.deepEqual(pausesMs, [4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]);
  assert.deepEqual((await round({ look: settled })).told, ['captured']);
  await forgetAll();
});

test('a refused one is let alone until the chain must have forgotten it', async () => {
  const left = await leftBehind({ answered: true, state: 'refused' });
  nowMs -= LIFE_MS;
  assert.equal(await dueAgainInMs(left.callId), left.payment.deadAfterMs - nowMs);
  assert.deepEqual((await round({})).told, []);
  nowMs = left.payment.deadAfterMs;
  assert.deepEqual((await round({ look: dead })).told, ['released']);
  await forgetAll();
});

test('a rail that is not configured here is left to whoever knows it', async () => {
  const left = await leftBehind({ answered: true, state: 'with_chain' });
  const stranger = finisherWith({}, 'unknown');
  assert.equal(await stranger.run(), 0);
  assert.deepEqual(stranger.told, ['waiting']);
  nowMs += await dueAgainInMs(left.callId);
  assert.deepEqual((await round({ look: settled })).told, ['captured']);
  await forgetAll();
});

test('paid and never delivered: owed once its time is over, refunded once, and the books are even', async () => {
  const left = await leftBehind({ answered: false, state: 'settled' });
  const before = { revenue: await posted('revenue_x402'), clearing: await posted('chain_clearing') };
  nowMs += REFUND_AFTER_MS - 1_001;
  assert.deepEqual((await round({})).told, ['waiting'], 'a moment too early');
  nowMs += 60_000;
  // Owed and asked for in the same round; the chain does not say that it was sent.
  assert.deepEqual((await round({ refund: null })).told, ['owed', 'waiting']);
  const answer = await calls.answerOf(ACCOUNT, left.callId);
  assert.equal(answer?.status, 410);
  assert.equal(JSON.parse(answer.body).code, 'REFUNDED');
  assert.deepEqual((await settlements.receipt(left.callId))?.refund, {
    state: 'owed',
    amountMicros: PRICE,
    transaction: null,
    reason: 'not delivered in time',
  });
  assert.equal((await posted('revenue_x402')) - before.revenue, PRICE, 'it came in');

  nowMs += 16_000;
  assert.deepEqual((await round({ finality: 'final', refund: '0xbb' })).told, ['final', 'refunded']);
  const refund = (await settlements.receipt(left.callId))?.refund;
  assert.deepEqual([refund?.state, refund?.transaction], ['paid', '0xbb']);
  assert.equal(await posted('revenue_x402'), before.revenue, 'and went back');
  assert.equal(await posted('chain_clearing'), before.clearing);
  nowMs += 3_600_000;
  assert.deepEqual((await round({})).told, [], 'and that was all');
});

test('a settled transaction is final once the chain says so, and is not looked at again', async () => {
  const left = await leftBehind({ answered: true, state: 'with_chain' });
  await round({ look: settled });
  for (const finality of ['waiting', 'unknown', 'waiting'] as const) {
    nowMs += 60_000;
    assert.deepEqual((await round({ finality })).told, ['waiting']);
    assert.equal((await settlements.receipt(left.callId))?.final, false);
  }
  nowMs += 60_000;
  assert.deepEqual((await round({ finality: 'final' })).told, ['final']);
  assert.equal((await settlements.receipt(left.callId))?.final, true);
  nowMs += 3_600_000;
  assert.deepEqual((await round({})).told, []);
});

for (const [settle, becomes, transaction, lost] of [
  [{ status: 'settled', transaction: '0xcc', blockNumber: 9n }, 'resettled', '0xcc', 0n],
  [dead, 'lost', AT.transaction, PRICE],
  [unknown, 'waiting', AT.transaction, 0n],
  [refused, 'waiting', AT.transaction, 0n],
] as const satisfies [ChainVerdict, Finished, string, bigint][]) {
  test(`a transaction that its chain forgot, when settling again says ${settle.status}: ${becomes}`, async () => {
    const left = await leftBehind({ answered: true, state: 'with_chain' });
    await round({ look: settled });
    const before = { revenue: await posted('revenue_x402'), losses: await posted('settlement_losses') };
    // One node that does not know it is no proof: it is looked for several times before anything is done.
    let looks = 0;
    let last: { told: Finished[]; asked: string[] };
    do {
      nowMs += 60_000;
      last = await round({ finality: 'gone', settle });
      looks += 1;
    } while (!last.asked.includes('settle') && looks < 20);
    assert.ok(looks >= 3 && looks < 20, `${looks} looks`);
    assert.deepEqual(last.told, [becomes]);
    const receipt = await settlements.receipt(left.callId);
    assert.equal(receipt?.transaction, transaction);
    assert.equal(receipt?.settlementState, becomes === 'lost' ? 'lost' : 'settled');
    assert.equal(receipt?.callState, 'captured', 'the answer has left');
    assert.equal(await posted('revenue_x402'), before.revenue);
    assert.equal(before.losses - (await posted('settlement_losses')), lost);
    nowMs += 3_600_000;
    assert.deepEqual(
      (await round(becomes === 'lost' ? {} : { finality: 'final' })).told,
      becomes === 'lost' ? [] : ['final'],
    );
    assert.equal(before.losses - (await posted('settlement_losses')), lost);
    await forgetAll();
  });
}

test('two replicas at once take each settlement and each refund once', async () => {
  const left = await Promise.all(
    Array.from({ length: 30 }, () => leftBehind({ answered: true, state: 'with_chain' })),
  );
  nowMs += 60_000;
  // Whichever comes second may see what the first has captured already, and only looks whether it stays.
  const says: Says = { look: settled, finality: 'waiting' };
  const replicas = [finisherWith(says), finisherWith(says)];
  await Promise.all(replicas.map((replica) => replica.run()));
  const told = replicas.flatMap((replica) => replica.told);
  assert.deepEqual(
    told.filter((outcome) => outcome !== 'waiting'),
    left.map(() => 'captured'),
  );
  assert.equal(
    replicas.flatMap(({ asked }) => asked).filter((asked) => asked === 'look').length,
    left.length,
  );

  await forgetAll();
  await leftBehind({ answered: false, state: 'settled' });
  nowMs += REFUND_AFTER_MS;
  await round({ refund: null });
  nowMs += 60_000;
  const payers = [
    { refund: '0xbb', finality: 'final' as const },
    { refund: '0xbb', finality: 'final' as const },
  ].map((each) => finisherWith(each));
  await Promise.all(payers.map((payer) => payer.run()));
  assert.equal(payers.flatMap(({ told }) => told).filter((outcome) => outcome === 'refunded').length, 1);
  await forgetAll();
});
