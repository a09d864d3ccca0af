import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  type Blockhash,
  compileTransaction,
  createTransactionMessage,
  generateKeyPairSigner,
  getBase64EncodedWireTransaction,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit';
import { RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import { type ChainVerdict, type OnChainPayment, PaymentRefused } from '../../paid-call/rail.ts';
import type { Facilitator } from '../on-chain/facilitator.ts';
import { NETWORKS } from './networks.ts';
import { solanaSettler } from './solana-settler.ts';
import { type SvmEvidence, svmPayments } from './svm-payments.ts';
import { findSolanaTransfer } from './transfers.ts';

const BLOCKHASH = '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi' as Blockhash;

test('a settlement whose fee payer the facilitator has changed since does not buy again as a transfer', async () => {
  const holds = (owner: string, amount: string) => ({ mint: 'mint', owner, uiTokenAmount: { amount } });
  const settlement = {
    blockTime: null,
    meta: {
      err: null,
      preTokenBalances: [holds('payer', '50000')],
      postTokenBalances: [holds('us', '50000')],
    },
    transaction: { message: { accountKeys: ['earlier fee payer'] } },
  };
  const rpc = { call: async () => settlement, close: async () => {} };
  await assert.rejects(
    findSolanaTransfer({ rpc, nowMs: Date.now }, 'signature', {
      asset: 'mint',
      payTo: 'us',
      amountUnits: 50_000n,
      feePayers: new Set(['fee payer of today']),
    }),
    (error) => error instanceof PaymentRefused && error.code === 'PAYMENT_TRANSFER_NOT_PLAIN',
  );
});

const NETWORK = NETWORKS.find((each) => each.kind === 'solana') ?? assert.fail('Solana is no network');

function paymentOf(messageHash: string, deadAfterMs: number): OnChainPayment {
  const evidence: SvmEvidence = {
    scheme: 'exact-svm',
    source: 'source',
    blockhash: BLOCKHASH,
    messageHash,
    forFacilitator: { x402Version: 2, paymentPayload: {}, paymentRequirements: {} },
  };
  const { id: network, asset } = NETWORK;
  return {
    identity: 'key',
    network,
    asset,
    payer: 'payer',
    payTo: 'us',
    amountUnits: 1n,
    deadAfterMs,
    evidence,
  };
}

/** What is said of a payment that can land no more, by a node that lists so many signatures of its payer at a time. */
function look(listed: number, transaction: unknown): Promise<ChainVerdict> {
  const answers: Record<string, unknown> = {
    isBlockhashValid: { context: { slot: 7 }, value: false },
    getSignaturesForAddress: Array.from({ length: listed }, (_, index) => ({
      signature: `signature ${index}`,
      blockTime: null,
    })),
    getTransaction: transaction,
  };
  return svmPayments({
    network: NETWORK,
    nowMs: Date.now,
    report: () => {},
    settler: null,
    refunds: null,
    facilitators: () => [],
    rpc: { call: async (method) => answers[method], batch: async () => [], close: async () => {} },
  }).look(paymentOf('of none of them', 0));
}

test('a signature that is listed and whose transaction the node does not find may be that of the payment', async () => {
  assert.equal((await look(1, null)).status, 'unknown');
});

/** A transaction on the wire, and what its message is known by. */
async function anyTransaction(): Promise<{ wire: string; messageHash: string }> {
  const { address } = await generateKeyPairSigner();
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (empty) => setTransactionMessageFeePayer(address, empty),
    (paid) =>
      setTransactionMessageLifetimeUsingBlockhash({ blockhash: BLOCKHASH, lastValidBlockHeight: 1n }, paid),
  );
  const compiled = compileTransaction(message);
  const messageHash = createHash('sha256').update(Uint8Array.from(compiled.messageBytes)).digest('hex');
  return { wire: getBase64EncodedWireTransaction(compiled), messageHash };
}

for (const reason of ['insufficient_funds', 'invalid_exact_svm_transaction_expired']) {
  test(`a facilitator that sends it, says ${reason}, and the chain shows it two looks later: settled`, async () => {
    const { wire, messageHash } = await anyTransaction();
    let hiddenFor = 2;
    let isSent = false;
    const facilitator: Facilitator = {
      url: 'http://facilitator.test',
      supported: async () => [],
      verify: async () => ({ status: 'valid' }),
      async settle() {
        isSent = true;
        return { status: 'failed', reason, transaction: null };
      },
      close: async () => {},
    };
    const landed = { transaction: [wire, 'base64'], meta: { err: null } };
    const verdict = await svmPayments({
      network: NETWORK,
      nowMs: Date.now,
      report: () => {},
      settler: null,
      refunds: null,
      facilitators: () => [facilitator],
      rpc: {
        async call(method) {
          if (method === 'isBlockhashValid') return { context: { slot: 7 }, value: true };
          if (method === 'getTransaction') return landed;
          return isSent && hiddenFor-- <= 0
            ? [{ signature: 'signature', blockTime: null, memo: null, err: null, slot: 1 }]
            : [];
        },
        batch: async (_method, each) => each.map(() => landed),
        close: async () => {},
      },
    }).settle(paymentOf(messageHash, Date.now() + 60_000));
    assert.equal(verdict.status, 'settled');
  });
}

test('two nodes at one address, one of which stands still: it is asked for what it has not seen, and refuses', async () => {
  const verdictOf = (answers: (method: string, params: readonly unknown[]) => unknown) =>
    svmPayments({
      network: NETWORK,
      nowMs: Date.now,
      report: () => {},
      settler: null,
      refunds: null,
      facilitators: () => [],
      rpc: {
        call: async (method, params) =>
          method === 'isBlockhashValid' ? { context: { slot: 7 }, value: false } : answers(method, params),
        batch: async () => [],
        close: async () => {},
      },
    }).look(paymentOf('of none of them', 0));
  const behind = (method: string, params: readonly unknown[]) => {
    const { minContextSlot } = params[1] as { minContextSlot?: number };
    if (minContextSlot === 7) throw new RpcRefusal(method, -32016, 'Minimum context slot not reached', null);
    return [];
  };
  assert.equal((await verdictOf(behind)).status, 'unknown');
  assert.equal((await verdictOf(() => [])).status, 'dead');
});

test('a payment for our own fee payer of which no record tells is judged by a node that is not behind', async () => {
  const { wire } = await anyTransaction();
  const payment = paymentOf('of none of them', 0);
  const forFacilitator = {
    x402Version: 2 as const,
    paymentPayload: { payload: { transaction: wire } },
    paymentRequirements: {},
  };
  const lookAt = (slot: number) =>
    solanaSettler({
      rpc: {
        call: async (method) =>
          method === 'isBlockhashValid'
            ? { context: { slot: 7 }, value: false }
            : { context: { slot }, value: [null] },
        close: async () => {},
      },
      sender: {
        find: async () => null,
        fateOf: unasked,
        deliver: unasked,
        failed: unasked,
        opened: unasked,
        resume: unasked,
      },
      key: { address: 'ours', sign: async () => new Uint8Array(64) },
      tank: null,
      isPoor: unasked,
      nowMs: Date.now,
    }).look({ ...payment, evidence: { ...payment.evidence, feePayer: 'ours', forFacilitator } });
  assert.equal((await lookAt(7)).status, 'dead');
  await assert.rejects(lookAt(6), /behind/);
});

const unasked = (): never => assert.fail('not asked for');
