/** Looking at settlements at the wrong moment, twice or too often must not change their outcome. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import {
  ACCOUNT,
  dead,
  openSettlementStage,
  REFUND_AFTER_MS,
  type SettlementStage,
  settled,
  unknown,
} from '../settlements.fixture.ts';

let stage: SettlementStage;
before(async () => {
  stage = await openSettlementStage();
});
after(() => stage?.close());
beforeEach(() => stage.forgetAll());

test('a transaction does not count as gone because of checks made before its capture', async () => {
  const left = await stage.leftBehind({ answered: true, state: 'with_chain' });
  for (let look = 0; look < 6; look += 1) {
    await stage.round({ look: unknown });
    stage.clock.nowMs += await stage.dueAgainInMs(left.callId);
  }
  assert.deepEqual((await stage.round({ look: settled })).told, ['captured']);
  stage.clock.nowMs += 60_000;
  const last = await stage.round({ finality: 'gone', settle: dead });
  assert.deepEqual(last.asked, ['finality'], 'one node that does not know it is no proof');
});

test('a transaction does not count as gone because of checks that found it', async () => {
  await stage.leftBehind({ answered: true, state: 'with_chain' });
  assert.deepEqual((await stage.round({ look: settled })).told, ['captured']);
  for (let look = 0; look < 6; look += 1) {
    stage.clock.nowMs += 60_000;
    assert.deepEqual((await stage.round({ finality: 'waiting' })).asked, ['finality']);
  }
  stage.clock.nowMs += 60_000;
  const last = await stage.round({ finality: 'gone', settle: dead });
  assert.deepEqual(last.asked, ['finality'], 'one node that does not know it is no proof');
});

test('a refused payment that comes again on two replicas at once is taken by one of them', async () => {
  const left = await stage.leftBehind({ answered: false, state: 'refused' });
  const leased = await Promise.all([1, 2].map(() => stage.settlements.lease(ACCOUNT, left.callId, 45_000)));
  assert.equal(leased.filter((each) => each !== null).length, 1);
});

test('a call paid by a transfer above its price is refunded, and no revenue is left', async () => {
  const before = await stage.posted('revenue_x402');
  await stage.leftBehind({ answered: false, state: 'settled', amountUnits: 5_000_000n });
  stage.clock.nowMs += REFUND_AFTER_MS;
  assert.deepEqual((await stage.round({ refund: '0xbb', finality: 'final' })).told, ['owed', 'refunded']);
  assert.equal(await stage.posted('revenue_x402'), before);
});
