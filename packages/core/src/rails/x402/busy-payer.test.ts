/** Looking up a payment whose payer has many other transactions: the answer is right, and costs few requests. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import {
  generateKeyPairSigner,
  getBase64Encoder,
  getTransactionDecoder,
  type KeyPairSigner,
} from '@solana/kit';
import { startNodeWire } from '../../../../../apps/shop/test/fire/x402-node.fixture.ts';
import {
  memo,
  signTransaction,
  solanaNode,
  transferOf,
  unitLimit,
  unitPrice,
} from '../../../../../apps/shop/test/solana.fixture.ts';
import { SEED } from '../../../../sandbox/src/accounts.fixture.ts';
import { USDC_MINT } from '../../../../sandbox/src/solana/programs.ts';
import { type SolanaChain, startSolana } from '../../../../sandbox/src/solana/solana.ts';
import { type BatchingRpc, connectRpc, RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import type { OnChainPayment } from '../../paid-call/rail.ts';
import { NETWORKS } from './networks.ts';
import { tokenAccountOf } from './solana-programs.ts';
import { type SvmEvidence, svmPayments } from './svm-payments.ts';

const PRICE = 50_000n;
const BLOCKHASH = '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi';
const BLOCKHASH_LIFE_MS = 150_000;
const NETWORK = NETWORKS.find((each) => each.kind === 'solana') ?? assert.fail('Solana is no network');

let chain: SolanaChain;
let node: ReturnType<typeof solanaNode>;
let wire: Awaited<ReturnType<typeof startNodeWire>>;
let rpc: BatchingRpc;
let us: KeyPairSigner;
let feePayer: KeyPairSigner;
before(async () => {
  chain = await startSolana({ seed: SEED, stateDir: null });
  node = solanaNode(chain.url);
  wire = await startNodeWire(chain.url);
  rpc = connectRpc(wire.url, { timeoutMs: 30_000 });
  [us, feePayer] = await Promise.all([generateKeyPairSigner(), generateKeyPairSigner()]);
  await node.give(us.address, { usdcUnits: 1 });
  await node.give(feePayer.address, { lamports: 1e9 });
});
after(async () => {
  await rpc?.close();
  await wire?.close();
  await chain?.stop();
});

/** Presents a payment of a payer who holds the price. */
async function presented(text: string | null) {
  const made = await signed(text, await node.blockhash());
  await node.give(made.payer.address, { usdcUnits: 5_000_000 });
  return made;
}

/** A payment that is presented now, with or without a memo, and the transaction that settles it. */
async function signed(text: string | null, blockhash: string) {
  const payer = await generateKeyPairSigner();
  const instructions = [
    unitLimit(60_000),
    unitPrice(1n),
    await transferOf(payer.address, us.address, PRICE),
    ...(text === null ? [] : [memo(text)]),
  ];
  const settled = await signTransaction(instructions, {
    feePayer: feePayer.address,
    blockhash,
    signers: [payer, feePayer],
  });
  const { messageBytes } = getTransactionDecoder().decode(getBase64Encoder().encode(settled.wire));
  const evidence: SvmEvidence = {
    scheme: 'exact-svm',
    source: await tokenAccountOf(payer.address, USDC_MINT),
    blockhash,
    messageHash: createHash('sha256').update(Uint8Array.from(messageBytes)).digest('hex'),
    memo: text,
    forFacilitator: { x402Version: 2, paymentPayload: {}, paymentRequirements: {} },
  };
  const payment: OnChainPayment = {
    identity: 'key',
    network: NETWORK.id,
    asset: NETWORK.asset,
    payer: payer.address,
    payTo: us.address,
    amountUnits: PRICE,
    deadAfterMs: Date.now() + BLOCKHASH_LIFE_MS,
    evidence,
  };
  return { payer, payment, settled };
}

/** Makes the payer send this many other transactions, each with or without a memo. */
async function doElse(payer: KeyPairSigner, count: number, withMemos: boolean): Promise<void> {
  const blockhash = await node.blockhash();
  for (let index = 0; index < count; index += 1) {
    const { wire: other } = await signTransaction(
      [
        unitLimit(60_000 + index),
        await transferOf(payer.address, us.address, 1n),
        ...(withMemos ? [memo(`something else ${index}`)] : []),
      ],
      { feePayer: feePayer.address, blockhash, signers: [payer, feePayer] },
    );
    await node.send(other);
  }
}

function payments(on: BatchingRpc, laterMs = 0) {
  return svmPayments({
    network: NETWORK,
    rpc: on,
    nowMs: () => Date.now() + laterMs,
    settler: null,
    refunds: null,
    facilitators: () => [],
    report: () => {},
  });
}

async function look(payment: OnChainPayment) {
  const before = requests();
  const verdict = await payments(rpc).look(payment);
  return { verdict, requests: requests() - before };
}
const requests = () => [...wire.asked.values()].reduce((sum, count) => sum + count, 0);

for (const text of ['a memo of its own', null]) {
  const whose = text === null ? 'all without memos' : 'and a memo';
  test(`a payer with 300 other transactions, ${whose}: a payment that settled is found, and one that did not may still be paid`, async () => {
    const { payer, payment, settled } = await presented(text);
    await doElse(payer, 300, text !== null);
    const most = text === null ? 2 + 300 / 25 + 1 : 3;
    const unpaid = await look(payment);
    assert.equal(unpaid.verdict.status, 'open');
    assert(unpaid.requests <= most, `${unpaid.requests} requests`);

    await node.send(settled.wire);
    const paid = await look(payment);
    assert.deepEqual(
      [paid.verdict.status, paid.verdict.status === 'settled' && paid.verdict.transaction],
      ['settled', settled.signature],
    );
    assert(paid.requests <= most, `${paid.requests} requests`);
  });
}

/** A node that knows this many transactions of the payer, newest first, and counts requests. */
function nodeWith(
  transactions: readonly { signature: string; memo: string | null; wire: string }[],
  isBlockhashValid: boolean,
) {
  const shown = new Map(transactions.map(({ signature, wire: bytes }) => [signature, bytes]));
  const node = {
    requests: 0,
    answer(method: string, params: readonly unknown[]): unknown {
      if (method === 'isBlockhashValid') return { context: { slot: 1 }, value: isBlockhashValid };
      if (method === 'getTransaction')
        return { transaction: [shown.get(String(params[0])), 'base64'], meta: { err: null } };
      assert.equal(method, 'getSignaturesForAddress');
      const { limit, before } = params[1] as { limit: number; before?: string };
      const from = transactions.findIndex(({ signature }) => signature === before) + 1;
      const blockTime = Math.floor(Date.now() / 1_000);
      return transactions.slice(from, from + limit).map(({ signature, memo: text }) => ({
        signature,
        blockTime,
        memo: text === null ? null : `[${text.length}] ${text}`,
      }));
    },
    async call(method: string, params: readonly unknown[]) {
      node.requests += 1;
      return node.answer(method, params);
    },
    async batch(method: string, paramsOfEach: readonly (readonly unknown[])[]) {
      assert(paramsOfEach.length <= 25);
      node.requests += 1;
      return paramsOfEach.map((params) => node.answer(method, params));
    },
    close: async () => {},
  };
  return node;
}

for (const { others, text, isOver, place, verdict, most } of [
  { others: 2_000, text: 'ours', isOver: false, place: null, verdict: 'open', most: 4 },
  { others: 2_000, text: 'ours', isOver: false, place: 1_500, verdict: 'settled', most: 5 },
  { others: 2_000, text: 'ours', isOver: true, place: null, verdict: 'dead', most: 4 },
  { others: 2_000, text: null, isOver: false, place: 100, verdict: 'settled', most: 4 + 20 },
  // This is deeper than is searched while the payment is open. The end of the blockhash decides then.
  { others: 2_000, text: null, isOver: false, place: 1_500, verdict: 'open', most: 4 + 20 },
  { others: 2_000, text: null, isOver: true, place: 1_500, verdict: 'settled', most: 4 + 80 },
  { others: 2_000, text: null, isOver: true, place: null, verdict: 'dead', most: 4 + 80 },
  { others: 100_000, text: null, isOver: false, place: null, verdict: 'open', most: 11 + 20 },
  { others: 100_000, text: null, isOver: true, place: null, verdict: 'dead', most: 51 + 200 },
]) {
  const whose = `${others} other transactions${text === null ? ' without memos' : ''}`;
  const where = place === null ? 'not paid' : `paid before the last ${place}`;
  test(`${whose}, ${where}, ${isOver ? 'and over' : 'not over'}: ${verdict}`, async () => {
    const { payer, payment, settled } = await signed(text, BLOCKHASH);
    const { wire: other } = await signTransaction([await transferOf(payer.address, us.address, 1n)], {
      feePayer: feePayer.address,
      blockhash: BLOCKHASH,
      signers: [payer, feePayer],
    });
    const transactions = Array.from({ length: others }, (_, index) => ({
      signature: `other ${index}`,
      memo: text === null ? null : `something else ${index}`,
      wire: other,
    }));
    if (place !== null) transactions.splice(place, 0, { signature: 'it', memo: text, wire: settled.wire });
    const many = nodeWith(transactions, !isOver);
    const said = await payments(many, isOver ? BLOCKHASH_LIFE_MS + 1 : 0).look(payment);
    assert.equal(said.status, verdict);
    assert(many.requests <= most, `${many.requests} requests`);
  });
}

test('a node that does not take batches is asked one request at a time', async () => {
  const { payment, settled } = await signed(null, BLOCKHASH);
  const transactions = ['it', 'another'].map((signature) => ({ signature, memo: null, wire: settled.wire }));
  const many = nodeWith(transactions, true);
  const refuses = async (method: string) => {
    throw new RpcRefusal(method, -32600, 'no batches', undefined);
  };
  const said = await payments({ ...many, batch: refuses }).look(payment);
  assert.equal(said.status, 'settled');
});
