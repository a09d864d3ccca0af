import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NETWORKS } from '../../rails/x402/networks.ts';
import { svmPayments } from '../../rails/x402/svm-payments.ts';
import { findSolanaTransfer } from '../../rails/x402/transfers.ts';

test('BUG14: a settlement whose fee payer the facilitator has since changed buys again as a transfer', async () => {
  const b = (owner: string, amount: string) => ({ mint: 'mint', owner, uiTokenAmount: { amount } });
  const tx = {
    blockTime: null,
    meta: { err: null, preTokenBalances: [b('payer', '50000')], postTokenBalances: [b('us', '50000')] },
    transaction: { message: { accountKeys: ['facilitator-key-1'] } },
  };
  await assert.rejects(
    findSolanaTransfer({ rpc: { call: async () => tx, close: async () => {} }, nowMs: Date.now }, 'sig', {
      asset: 'mint',
      payTo: 'us',
      amountUnits: 50000n,
      feePayers: new Set(['facilitator-key-2']),
    }),
  );
});
const payment = {
  key: 'k',
  network: 'solana',
  asset: 'a',
  payer: 'p',
  payTo: 'us',
  amountUnits: 1n,
  deadAfterMs: 0,
  evidence: { scheme: 'exact-svm', source: 's', blockhash: 'b', messageHash: 'none', forFacilitator: {} },
};
const look = (signatures: number, get: unknown) =>
  svmPayments({
    network: NETWORKS[4],
    nowMs: Date.now,
    report() {},
    facilitators: () => [],
    rpc: {
      close: async () => {},
      call: async (m: string, p: any) =>
        m === 'isBlockhashValid'
          ? { value: false }
          : m === 'getSignaturesForAddress'
            ? Array.from({ length: Math.min(signatures, p[1].limit) }, (_, i) => ({ signature: `s${i}` }))
            : get,
    },
  }).look(payment as any);
test('BUG15: a listed signature whose transaction the node does not find', async () => {
  assert.equal((await look(1, null)).status, 'unknown');
});
test('BUG16: more signatures since than are looked through', async () => {
  const k = await import('@solana/kit');
  const signer = await k.generateKeyPairSigner();
  const m = k.pipe(
    k.createTransactionMessage({ version: 0 }),
    (e) => k.setTransactionMessageFeePayer(signer.address, e),
    (e) =>
      k.setTransactionMessageLifetimeUsingBlockhash(
        { blockhash: '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi' as any, lastValidBlockHeight: 1n },
        e,
      ),
  );
  const other = {
    transaction: [k.getBase64EncodedWireTransaction(k.compileTransaction(m)), 'base64'],
    meta: { err: null },
  };
  const v = await look(500, other);
  console.log(v.status, (v as any).cause);
  assert.notEqual(v.status, 'dead');
});
