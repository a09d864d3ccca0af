/**
 * The fault table of Solana: one row a fault, of settlements with a fee payer of our own and of refunds, played on the
 * harness of all rails.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { KeyPairSigner } from '@solana/kit';
import { memo, transferOf, unitLimit, unitPrice } from '../solana.fixture.ts';
import {
  byNeed,
  fails,
  ONE_SALE,
  proveBeyondMeans,
  rowsOfAnyChain,
  rowsOfAnyRail,
  stagePool,
  type Row as TableRow,
  UNKNOWN,
} from './fault-table.fixture.ts';
import { newKey, PRICE, REFUND_AFTER_SECONDS, SOL, type Stage, setStage } from './solana-stage.fixture.ts';
import type { NodeFault } from './x402-node.fixture.ts';

type Row = TableRow<Stage, KeyPairSigner>;

const SEND = 'sendTransaction';

/** Paid for, failed, and sent back. */
const GIVEN_BACK = {
  service: 'deed',
  told: ['503 SOURCE_DOWN'],
  atRest: '410 REFUNDED again',
  runs: 1,
  paid: 1,
  refunded: 1,
  books: { captured: 1 },
} as const;
const sendingMeets =
  (fault: NodeFault, times = 1): NonNullable<Row['given']> =>
  (stage) =>
    stage.node.next(SEND, fault, times);
const DID_IT_AND_SAID_NO: NodeFault = {
  did: true,
  says: { error: { code: -32002, message: 'Transaction simulation failed: Blockhash not found' } },
};

/** A paid call that fails; its refund meets this. */
function refundMeets(fault: (stage: Stage, payer: KeyPairSigner) => Promise<void> | void): Partial<Row> {
  return {
    given: (stage) => {
      stage.script.during = fails;
    },
    play: async (stage, header, payer) => {
      const told = await stage.present(header, { path: 'deed' });
      stage.later((REFUND_AFTER_SECONDS + 1) * 1_000);
      await fault(stage, payer);
      return [told];
    },
  };
}

const ROWS: readonly Row[] = [
  ...rowsOfAnyRail<Stage, KeyPairSigner>(),
  ...rowsOfAnyChain<Stage, KeyPairSigner>(),

  // Settling with a fee payer of our own.
  {
    fault: 'the transaction gets lost on its way to the node',
    given: sendingMeets('request lost'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'the node takes the transaction and its reply gets lost',
    given: sendingMeets('reply lost'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'the node takes the transaction and says no',
    given: sendingMeets(DID_IT_AND_SAID_NO),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'the node takes the transaction and never replies',
    waits: true,
    given: sendingMeets('reply held'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'killed between storing the signature and sending it',
    given: (stage) => stage.node.before(SEND, () => stage.crash()),
    play: async (stage, header) => {
      const crashed = stage.crashed();
      stage.node.next(SEND, 'request lost');
      await assert.rejects(stage.present(header));
      await crashed;
      return [];
    },
    told: [],
    ...ONE_SALE,
  },
  {
    fault: 'killed between sending and hearing that it landed',
    given: (stage) =>
      stage.node.before('getEpochInfo', async () => {
        // The first tells the end of the blockhash; the next asks what became of it.
        stage.node.before('getEpochInfo', () => stage.crash());
      }),
    play: async (stage, header) => {
      const crashed = stage.crashed();
      await assert.rejects(stage.present(header));
      await crashed;
      return [];
    },
    told: [],
    ...ONE_SALE,
  },
  {
    fault: 'the network loses it every time, until its blockhash is over',
    waits: true,
    play: async (stage, header) => {
      await stage.chain.ask('sandbox_setFault', { fault: 'never-lands', count: 1_000 });
      const told = await stage.present(header);
      await stage.chain.pass(250);
      await stage.chain.ask('sandbox_clearFaults');
      return [told];
    },
    told: [UNKNOWN],
    atRest: '402 PAYMENT_EXPIRED',
    runs: 1,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'the balance moves between verifying and settling',
    given: (stage, payer) => {
      stage.script.during = () => stage.empty(payer);
    },
    told: ['402 PAYMENT_INSUFFICIENT_FUNDS'],
    // Tried out a moment ago it is sent, and fails on the chain for good; else it is tried again, and ends unsent.
    atRest: '402 PAYMENT_INSUFFICIENT_FUNDS|402 PAYMENT_EXPIRED',
    runs: 1,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'a priority fee that our key would pay',
    pay: async (stage, payer) =>
      stage.sign(payer, 'nickel', [
        unitLimit(1_400_000),
        unitPrice(5_000_000n),
        await transferOf(payer.address, stage.recipient, PRICE.nickel),
      ]),
    told: ['402 PAYMENT_TRANSACTION_UNSUITABLE'],
    atRest: '402 PAYMENT_TRANSACTION_UNSUITABLE',
    runs: 0,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'a memo in the name of our key',
    pay: async (stage, payer) =>
      stage.sign(payer, 'nickel', [
        unitLimit(60_000),
        unitPrice(1n),
        await transferOf(payer.address, stage.recipient, PRICE.nickel),
        { ...memo('said by the shop'), accounts: [{ address: stage.settler as never, role: 2 }] },
      ]),
    told: ['402 PAYMENT_TRANSACTION_UNSUITABLE'],
    atRest: '402 PAYMENT_TRANSACTION_UNSUITABLE',
    runs: 0,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'a budget that is not said',
    pay: async (stage, payer) =>
      stage.sign(payer, 'nickel', [await transferOf(payer.address, stage.recipient, PRICE.nickel)]),
    told: ['402 PAYMENT_TRANSACTION_UNSUITABLE'],
    atRest: '402 PAYMENT_TRANSACTION_UNSUITABLE',
    runs: 0,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'the fee payer runs dry: the chain is not offered until it is filled',
    play: async (stage, header) => {
      await stage.restart({ X402_RELAYER_KEY_SOLANA: newKey() });
      assert.equal((await stage.unpaid()).accepts.length, 0);
      const refused = await stage.present(header);
      await stage.restart();
      return [refused, await stage.present(header)];
    },
    told: ['402 PAYMENT_NETWORK_UNSUPPORTED', '200'],
    ...ONE_SALE,
  },
  {
    fault:
      'the chain says that the fee payer cannot pay: refused before the service runs, until it was looked at again',
    play: async (stage, header) => {
      const result = { context: { slot: 1 }, value: { err: 'InsufficientFundsForFee' } };
      stage.node.next('simulateTransaction', { did: false, says: { result } });
      const refused = await stage.present(header);
      assert.equal((await stage.unpaid()).accepts.length, 0);
      await stage.here.app.jobs.find(({ name }) => name === 'look-at-gas')?.run();
      return [refused, await stage.present(header)];
    },
    told: ['402 PAYMENT_SETTLER_OUT_OF_GAS', '200'],
    ...ONE_SALE,
    books: { released: 1, captured: 1 },
  },
  {
    fault: 'the key is replaced while a payment is on its way',
    waits: true,
    play: async (stage, header) => {
      stage.node.next(SEND, 'request lost', 20);
      const told = await stage.present(header);
      stage.node.mend();
      await stage.restart({ X402_RELAYER_KEY_SOLANA: await stage.fundedKey() });
      await stage.rest();
      await stage.restart();
      return [told];
    },
    told: [UNKNOWN],
    ...ONE_SALE,
  },

  // Refunds.
  { fault: 'a paid call that fails', ...GIVEN_BACK, ...refundMeets(() => {}) },
  {
    fault: 'a refund that two replicas are at, again and again',
    waits: true,
    ...GIVEN_BACK,
    ...refundMeets(async (stage) => {
      for (let round = 0; round < 4; round += 1) {
        await Promise.all([stage.finish(stage.here), stage.finish(stage.there)]);
        stage.later(3_000);
      }
    }),
  },
  {
    fault: 'a refund that the node takes, and its reply gets lost',
    ...GIVEN_BACK,
    ...refundMeets((stage) => stage.node.next(SEND, 'reply lost')),
  },
  {
    fault: 'a refund that the node takes, and says no',
    ...GIVEN_BACK,
    ...refundMeets((stage) => stage.node.next(SEND, DID_IT_AND_SAID_NO)),
  },
  {
    fault: 'a refund while the node is silent',
    ...GIVEN_BACK,
    ...refundMeets(async (stage) => {
      stage.node.cut();
      await stage.finish(stage.here);
      await stage.finish(stage.here);
      stage.node.mend();
    }),
  },
  {
    fault: 'a refund whose process is killed between storing and sending',
    ...GIVEN_BACK,
    ...refundMeets((stage) => {
      const crashed = stage.crashed();
      stage.node.before(SEND, () => stage.crash());
      stage.node.next(SEND, 'request lost');
      void stage.finish(stage.here);
      return crashed;
    }),
  },
  {
    fault: 'a refund whose process is killed between sending and hearing that it landed',
    ...GIVEN_BACK,
    ...refundMeets((stage) => {
      const crashed = stage.crashed();
      stage.node.before('getEpochInfo', () => stage.crash());
      void stage.finish(stage.here);
      return crashed;
    }),
  },
  {
    fault: 'a refund that gets lost until its blockhash is over: another one is sent',
    waits: true,
    ...GIVEN_BACK,
    ...refundMeets(async (stage) => {
      await stage.chain.ask('sandbox_setFault', { fault: 'never-lands', count: 1_000 });
      await stage.finish(stage.here);
      await stage.finish(stage.here);
      await stage.chain.ask('sandbox_clearFaults');
      await stage.chain.pass(250);
    }),
  },
  {
    fault: 'a refund key without funds, until it has some',
    ...GIVEN_BACK,
    ...refundMeets(async (stage) => {
      await stage.restart({ X402_REFUND_KEY_SOLANA: newKey() });
      for (let round = 0; round < 3; round += 1) {
        await stage.finish(stage.here);
        stage.later(11_000);
      }
      assert.deepEqual(await stage.refunds(), { owed: 1, paid: 0 });
      await stage.restart();
    }),
  },
];

const pool = stagePool<Stage, KeyPairSigner>(setStage);
after(() => pool.close());

function play(rows: readonly Row[]): void {
  for (const row of rows) test(row.fault, () => pool.prove(row));
}

const { waiting, busy, crowded } = byNeed(ROWS);
describe('the fault table', { concurrency: 2 }, () => {
  describe('rows that wait for a time-out', { concurrency: 3 }, () => play(waiting));
  describe('all others', { concurrency: 2 }, () => play(busy));
});
describe('crowds', () => play(crowded));

test('60 payments of a wallet that holds the price of one run the service once', async () => {
  const stage = await setStage();
  try {
    await stage.reset();
    await proveBeyondMeans(stage, { prices: 1, payments: 60 });
  } finally {
    await stage.close();
  }
});

test('a payee without a token account gets one from us, once', async () => {
  const stage = await setStage();
  try {
    stage.script.during = fails;
    const payer = await stage.wallet();
    const [first, second] = [await stage.sign(payer, 'deed'), await stage.sign(payer, 'deed')];
    for (const header of [first, second])
      assert.equal((await stage.present(header, { path: 'deed' })).text, '503 SOURCE_DOWN');
    await stage.closeAccount(payer);
    stage.later((REFUND_AFTER_SECONDS + 1) * 1_000);
    await stage.rest();
    assert.equal(await stage.chain.holds(payer.address), 2n * PRICE.deed, 'both fit into one new account');

    const third = await stage.sign(payer, 'deed');
    assert.equal((await stage.present(third, { path: 'deed' })).text, '503 SOURCE_DOWN');
    await stage.closeAccount(payer);
    stage.later((REFUND_AFTER_SECONDS + 1) * 1_000);
    await stage.rest();
    assert.deepEqual(await stage.refunds(), { owed: 1, paid: 2 }, 'it waits until the payee opens one');
    await stage.chain.give(payer.address, { usdcUnits: 1 });
    await stage.rest();
    assert.deepEqual(await stage.refunds(), { owed: 0, paid: 3 });
    assert.equal(await stage.chain.holds(payer.address), PRICE.deed + 1n);

    // What our keys paid is known to the lamport, the deposit of the account that we opened among it.
    await stage.rest(1);
    for (const address of [stage.settler, stage.refunder]) {
      const [row] = await stage.database.sql<{ transactions: number; spent: string }[]>`
        select sum(transactions)::integer as transactions, sum(spent)::text as spent from gas_spent
        where address = ${address}`;
      const lost = SOL - (await stage.chain.lamports(address));
      assert.deepEqual({ ...row }, { transactions: 3, spent: String(lost) });
    }
  } finally {
    await stage.close();
  }
});
