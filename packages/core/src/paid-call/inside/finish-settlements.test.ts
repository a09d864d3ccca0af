import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { newTransferId } from '../../ledger/transfer-id.ts';
import type { ChainVerdict } from '../rail.ts';
import {
  ACCOUNT,
  AT,
  dead,
  LIFE_MS,
  openSettlementStage,
  PRICE,
  REFUND_AFTER_MS,
  refused,
  type Says,
  type SettlementStage,
  settled,
  unknown,
} from '../settlements.fixture.ts';
import type { Finished } from './finish-settlements.ts';

const open: ChainVerdict = { status: 'open' };

let stage: SettlementStage;
before(async () => {
  stage = await openSettlementStage();
});
after(() => stage?.close());

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
    const left = await stage.leftBehind(row);
    const revenueBefore = await stage.posted('revenue_x402');
    const { told, asked } = await stage.round(row.says);
    assert.deepEqual([told, asked], [[row.becomes], row.asked]);
    const receipt = await stage.settlements.receipt(left.callId);
    assert.equal(receipt?.callState, row.leaves.call);
    assert.equal(receipt?.settlementState, row.leaves.settlement);
    assert.equal((await stage.posted('revenue_x402')) - revenueBefore, row.leaves.revenue);
    assert.equal((await stage.calls.answerOf(ACCOUNT, left.callId)) !== null, row.leaves.answer);
    if (row.leaves.settlement === 'settled') assert.equal(receipt?.transaction, AT.transaction);

    // The same round at once finds nothing to do, and what has still to stay a while later; neither takes money twice.
    assert.deepEqual((await stage.round({})).told, []);
    if (row.becomes === 'captured') stage.clock.nowMs += 15_000;
    const again = await stage.round(row.becomes === 'captured' ? { finality: 'waiting' } : {});
    assert.deepEqual(again.told, row.becomes === 'captured' ? ['waiting'] : []);
    assert.equal((await stage.posted('revenue_x402')) - revenueBefore, row.leaves.revenue);
    // A payment that is dead has bought nothing, and its name is free; any other is still this call's.
    const presented = await stage.calls.begin({ ...left.begin, id: newTransferId(stage.clock.nowMs) });
    assert.equal(
      presented.status,
      { captured: 'answered', released: 'authorized', settling: 'settling' }[row.leaves.call],
    );
    await stage.forgetAll();
  });
}

test('what waits is looked at again after a pause that grows to a minute', async () => {
  const left = await stage.leftBehind({ answered: true, state: 'with_chain' });
  const pausesMs: number[] = [];
  for (let attempt = 0; attempt < 8; attempt++) {
    assert.deepEqual((await stage.round({ look: unknown })).told, ['waiting']);
    pausesMs.push(await stage.dueAgainInMs(left.callId));
    stage.clock.nowMs += pausesMs.at(-1) ?? 0;
  }
  assert.deepEqual(pausesMs, [4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]);
  assert.deepEqual((await stage.round({ look: settled })).told, ['captured']);
  await stage.forgetAll();
});

test('a refused one is let alone until the chain must have forgotten it', async () => {
  const left = await stage.leftBehind({ answered: true, state: 'refused' });
  stage.clock.nowMs -= LIFE_MS;
  assert.equal(await stage.dueAgainInMs(left.callId), left.payment.deadAfterMs - stage.clock.nowMs);
  assert.deepEqual((await stage.round({})).told, []);
  stage.clock.nowMs = left.payment.deadAfterMs;
  assert.deepEqual((await stage.round({ look: dead })).told, ['released']);
  await stage.forgetAll();
});

test('a rail that is not configured here is left to whoever knows it', async () => {
  const left = await stage.leftBehind({ answered: true, state: 'with_chain' });
  const stranger = stage.finisherWith({}, 'unknown');
  assert.equal(await stranger.run(), 0);
  assert.deepEqual(stranger.told, ['waiting']);
  stage.clock.nowMs += await stage.dueAgainInMs(left.callId);
  assert.deepEqual((await stage.round({ look: settled })).told, ['captured']);
  await stage.forgetAll();
});

test('paid and never delivered: owed once its time is over, refunded once, and the books are even', async () => {
  const left = await stage.leftBehind({ answered: false, state: 'settled' });
  const before = {
    revenue: await stage.posted('revenue_x402'),
    clearing: await stage.posted('chain_clearing'),
  };
  stage.clock.nowMs += REFUND_AFTER_MS - 1_001;
  assert.deepEqual((await stage.round({})).told, ['waiting'], 'a moment too early');
  stage.clock.nowMs += 60_000;
  // Owed and asked for in the same round; the chain does not say that it was sent.
  assert.deepEqual((await stage.round({ refund: null })).told, ['owed', 'waiting']);
  const answer = await stage.calls.answerOf(ACCOUNT, left.callId);
  assert.equal(answer?.status, 410);
  assert.equal(JSON.parse(answer.body).code, 'REFUNDED');
  assert.deepEqual((await stage.settlements.receipt(left.callId))?.refund, {
    state: 'owed',
    amountMicros: PRICE,
    transaction: null,
    reason: 'not delivered in time',
  });
  assert.equal((await stage.posted('revenue_x402')) - before.revenue, PRICE, 'it came in');

  stage.clock.nowMs += 16_000;
  assert.deepEqual((await stage.round({ finality: 'final', refund: '0xbb' })).told, ['final', 'refunded']);
  const refund = (await stage.settlements.receipt(left.callId))?.refund;
  assert.deepEqual([refund?.state, refund?.transaction], ['paid', '0xbb']);
  assert.equal(await stage.posted('revenue_x402'), before.revenue, 'and went back');
  assert.equal(await stage.posted('chain_clearing'), before.clearing);
  stage.clock.nowMs += 3_600_000;
  assert.deepEqual((await stage.round({})).told, [], 'and that was all');
});

test('a settled transaction is final once the chain says so, and is not looked at again', async () => {
  const left = await stage.leftBehind({ answered: true, state: 'with_chain' });
  await stage.round({ look: settled });
  for (const finality of ['waiting', 'unknown', 'waiting'] as const) {
    stage.clock.nowMs += 60_000;
    assert.deepEqual((await stage.round({ finality })).told, ['waiting']);
    assert.equal((await stage.settlements.receipt(left.callId))?.final, false);
  }
  stage.clock.nowMs += 60_000;
  assert.deepEqual((await stage.round({ finality: 'final' })).told, ['final']);
  assert.equal((await stage.settlements.receipt(left.callId))?.final, true);
  stage.clock.nowMs += 3_600_000;
  assert.deepEqual((await stage.round({})).told, []);
});

for (const [settle, becomes, transaction, lost] of [
  [{ status: 'settled', transaction: '0xcc', blockNumber: 9n }, 'resettled', '0xcc', 0n],
  [dead, 'lost', AT.transaction, PRICE],
  [unknown, 'waiting', AT.transaction, 0n],
  [refused, 'waiting', AT.transaction, 0n],
] as const satisfies [ChainVerdict, Finished, string, bigint][]) {
  test(`a transaction that its chain forgot, when settling again says ${settle.status}: ${becomes}`, async () => {
    const left = await stage.leftBehind({ answered: true, state: 'with_chain' });
    await stage.round({ look: settled });
    const before = {
      revenue: await stage.posted('revenue_x402'),
      losses: await stage.posted('settlement_losses'),
    };
    // One node that does not know it is no proof: it is looked for several times before anything is done.
    let looks = 0;
    let last: { told: Finished[]; asked: string[] };
    do {
      stage.clock.nowMs += 60_000;
      last = await stage.round({ finality: 'gone', settle });
      looks += 1;
    } while (!last.asked.includes('settle') && looks < 20);
    assert.ok(looks >= 3 && looks < 20, `${looks} looks`);
    assert.deepEqual(last.told, [becomes]);
    const receipt = await stage.settlements.receipt(left.callId);
    assert.equal(receipt?.transaction, transaction);
    assert.equal(receipt?.settlementState, becomes === 'lost' ? 'lost' : 'settled');
    assert.equal(receipt?.callState, 'captured', 'the answer has left');
    assert.equal(await stage.posted('revenue_x402'), before.revenue);
    assert.equal(before.losses - (await stage.posted('settlement_losses')), lost);
    stage.clock.nowMs += 3_600_000;
    assert.deepEqual(
      (await stage.round(becomes === 'lost' ? {} : { finality: 'final' })).told,
      becomes === 'lost' ? [] : ['final'],
    );
    assert.equal(before.losses - (await stage.posted('settlement_losses')), lost);
    await stage.forgetAll();
  });
}

test('two replicas at once take each settlement and each refund once', async () => {
  const left = await Promise.all(
    Array.from({ length: 30 }, () => stage.leftBehind({ answered: true, state: 'with_chain' })),
  );
  stage.clock.nowMs += 60_000;
  // Whichever comes second may see what the first has captured already, and only looks whether it stays.
  const says: Says = { look: settled, finality: 'waiting' };
  const replicas = [stage.finisherWith(says), stage.finisherWith(says)];
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

  await stage.forgetAll();
  await stage.leftBehind({ answered: false, state: 'settled' });
  stage.clock.nowMs += REFUND_AFTER_MS;
  await stage.round({ refund: null });
  stage.clock.nowMs += 60_000;
  const payers = [
    { refund: '0xbb', finality: 'final' as const },
    { refund: '0xbb', finality: 'final' as const },
  ].map((each) => stage.finisherWith(each));
  await Promise.all(payers.map((payer) => payer.run()));
  assert.equal(payers.flatMap(({ told }) => told).filter((outcome) => outcome === 'refunded').length, 1);
  await stage.forgetAll();
});
