import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Blockhash } from '@solana/kit';
import { type ChainVerdict, PaymentRefused } from '../../paid-call/rail.ts';
import { NETWORKS } from './networks.ts';
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

/** What is said of a payment that can land no more, by a node that lists so many signatures of its payer at a time. */
function look(listed: number, transaction: unknown): Promise<ChainVerdict> {
  const network = NETWORKS.find(({ kind }) => kind === 'solana');
  assert(network?.kind === 'solana');
  const evidence: SvmEvidence = {
    scheme: 'exact-svm',
    source: 'source',
    blockhash: BLOCKHASH,
    messageHash: 'of none of them',
    forFacilitator: { x402Version: 2, paymentPayload: {}, paymentRequirements: {} },
  };
  const answers: Record<string, unknown> = {
    isBlockhashValid: { value: false },
    getSignaturesForAddress: Array.from({ length: listed }, (_, index) => ({
      signature: `signature ${index}`,
      blockTime: null,
    })),
    getTransaction: transaction,
  };
  return svmPayments({
    network,
    nowMs: Date.now,
    report: () => {},
    facilitators: () => [],
    rpc: { call: async (method) => answers[method], batch: async () => [], close: async () => {} },
  }).look({
    key: 'key',
    network: network.id,
    asset: network.asset,
    payer: 'payer',
    payTo: 'us',
    amountUnits: 1n,
    deadAfterMs: 0,
    evidence,
  });
}

test('a signature that is listed and whose transaction the node does not find may be that of the payment', async () => {
  assert.equal((await look(1, null)).status, 'unknown');
});
