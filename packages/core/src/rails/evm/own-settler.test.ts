/** A settlement is sent only for a call that was kept: a keep that the database has forgotten moves no money. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openSettlementStage, type SettlementStage } from '../../paid-call/settlements.fixture.ts';
import { NotWanted, type TransactionToSend } from '../../relayer/to-send.ts';
import type { EvmChain } from './chain.ts';
import type { LostGas } from './lost-gas.ts';
import { settleOurselves } from './own-settler.ts';

let stage: SettlementStage;
before(async () => {
  stage = await openSettlementStage();
});
after(() => stage?.close());

const CHAIN = {
  settlementCall: async () => ({ to: '0xaa', data: '0xbb' }),
  paidBy: () => true,
} as unknown as EvmChain;

test('the settlement of a payment whose call was not kept is not sent, and one that was kept is', async () => {
  const { payment } = await stage.leftBehind({ answered: true, state: 'with_chain' });
  const { sql } = stage.database;
  const sent: string[] = [];
  const held: string[] = [];
  const own = {
    async send({ id, onlyIf }: TransactionToSend) {
      const [row] = await sql<{ wanted: boolean }[]>`select ${onlyIf?.(sql) ?? sql`true`} as wanted`;
      if (row?.wanted !== true) throw new NotWanted(id);
      sent.push(id);
      return { hash: '0xcc', blockNumber: 7n, status: 'success' };
    },
  } as unknown as Parameters<typeof settleOurselves>[1];
  const lostGas = {
    async take() {
      held.push('taken');
      return null;
    },
    async giveBack() {
      held.push('given back');
    },
  } as unknown as LostGas;
  const sending = { runsPayersCode: true, party: 'somebody' } as unknown as Parameters<
    typeof settleOurselves
  >[4];
  const authorization = {
    from: '0x1',
    to: '0x2',
    value: '1',
    validAfter: '0',
    validBefore: '9',
    nonce: '0x3',
  };
  const withEvidence = { ...payment, evidence: { authorization, signature: '0x4' } };

  const settled = await settleOurselves(CHAIN, own, lostGas, withEvidence, sending);
  assert.deepEqual(settled, { status: 'settled', transaction: '0xcc', blockNumber: 7n });

  const begun = { ...withEvidence, identity: `test:${randomBytes(8).toString('hex')}` };
  await assert.rejects(settleOurselves(CHAIN, own, lostGas, begun, sending), NotWanted);
  assert.deepEqual(sent, [`settle:${payment.identity}`]);
  assert.deepEqual(held, ['taken', 'given back', 'taken', 'given back']);
});
