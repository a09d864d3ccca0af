import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeFunctionData, type Hex, keccak256, toBytes } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { Abis, Transaction } from 'viem/tempo';
import { type NodeRpc, RpcRefusal, RpcUnreachable } from '../../chain-rpc/json-rpc.ts';
import type { OnChainPayment } from '../../paid-call/rail.ts';
import { isBoundTo, readTempoTransaction, tempoPayments } from './tempo-payments.ts';

const TOKEN = '0x20c000000000000000000000b9537d11c60e8b50';
const US = '0x15d34aaf54267db7d7c367839aaf71a00a2c6a65';
const PAYER = privateKeyToAccount(`0x${'11'.repeat(32)}`);
const NOW_S = 1_800_000_000;
const HASH: Hex = `0x${'ab'.repeat(32)}`;
const HEAD: Hex = `0x${'cd'.repeat(32)}`;
const TRANSFER = keccak256(toBytes('Transfer(address,address,uint256)'));
/** The memo of challenge "c", by hand: tag, version, server, no client, the first 7 bytes of keccak256("c"). */
const MEMO: Hex = `0x${keccak256(toBytes('mpp')).slice(2, 10)}01${'22'.repeat(10)}${'00'.repeat(10)}${keccak256(toBytes('c')).slice(2, 16)}`;
const DATA = encodeFunctionData({
  abi: Abis.tip20,
  functionName: 'transferWithMemo',
  args: [US, 50_000n, MEMO],
});

const signed = (changes: Record<string, unknown> = {}): Promise<Hex> =>
  PAYER.signTransaction(
    {
      type: 'tempo',
      chainId: 4217,
      nonceKey: 2n ** 256n - 1n,
      nonce: 0,
      gas: 500_000n,
      maxFeePerGas: 1_000_000_000n,
      maxPriorityFeePerGas: 1n,
      validBefore: NOW_S + 25,
      calls: [{ to: TOKEN, data: DATA }],
      ...changes,
    } as never,
    { serializer: Transaction.serialize as never },
  ) as Promise<Hex>;

test('a transaction is read: who signed it, until when it is valid, and what it pays', async () => {
  const raw = await signed();
  assert.deepEqual(await readTempoTransaction(raw), {
    raw,
    hash: keccak256(raw),
    chainId: 4217,
    sender: PAYER.address.toLowerCase(),
    validBefore: NOW_S + 25,
    validAfter: null,
    callCount: 1,
    transfers: [{ data: DATA, token: TOKEN, to: US, amountUnits: 50_000n, memo: MEMO }],
  });
});

test('calls other than a transfer with a memo are not counted as payments', async () => {
  const plain = encodeFunctionData({ abi: Abis.tip20, functionName: 'transfer', args: [US, 50_000n] });
  const raw = await signed({
    calls: [{ to: TOKEN, data: plain }, { to: US }, { to: TOKEN, data: '0x1234' }],
  });
  assert.deepEqual((await readTempoTransaction(raw)).transfers, []);
});

test('a transaction has the hash that a node knows it by, whichever way its signature is encoded', async () => {
  const raw = await signed();
  const last = Number.parseInt(raw.slice(-2), 16);
  const parity = (last + 1) % 2;
  for (const written of [parity, 27 + parity, 35 + parity, 253 + parity]) {
    const byte = written.toString(16).padStart(2, '0');
    assert.deepEqual(
      await readTempoTransaction(`${raw.slice(0, -2)}${byte}` as Hex),
      await readTempoTransaction(raw),
    );
  }
});

test('an unsigned transaction, one that waits for a sponsor and one of another type are refused', async () => {
  const unsigned = await Transaction.serialize({
    type: 'tempo',
    chainId: 4217,
    calls: [{ to: TOKEN, data: DATA }],
  } as never);
  const sponsored = (await signed({ feePayerSignature: null })) as Hex;
  const ordinary = await PAYER.signTransaction({ type: 'eip1559', chainId: 4217, to: US, value: 1n });
  for (const raw of [
    unsigned as Hex,
    sponsored,
    `0x78${sponsored.slice(4)}` as Hex,
    ordinary,
    '0x76',
    '0x76c0',
  ] as Hex[])
    await assert.rejects(readTempoTransaction(raw), raw);
});

test('a memo is bound to one challenge', () => {
  assert.equal(isBoundTo(MEMO, 'c'), true);
  assert.equal(isBoundTo(MEMO, 'd'), false);
  assert.equal(isBoundTo(`0x${'00'.repeat(25)}${MEMO.slice(-14)}`, 'c'), false, 'without the tag');
});

const payment: OnChainPayment = {
  identity: 'k',
  network: 'eip155:4217',
  asset: TOKEN,
  payer: PAYER.address,
  payTo: US,
  amountUnits: 50_000n,
  deadAfterMs: (NOW_S + 25) * 1_000,
  evidence: { scheme: 'tempo', raw: '0x76', hash: HASH, data: DATA, validBefore: NOW_S + 25 },
};

/** `did`: the node passed the transaction on, and still answered with an error. */
type Sent = 'taken' | 'lost' | 'reply lost' | { code: number; message?: string; did?: true };

/**
 * A node that treats each sending as it is told to, and mines the transactions that it took.
 *
 * @param mined.hiddenFor for how many looks the receipt is not shown yet
 * @param mined.secondsALook how far the chain's clock advances from look to look
 * @param mined.receipt what it shows instead of a receipt
 * @param mined.atHead what another node at the same address shows, which answers whoever asks for the head by its hash
 */
function nodeThat(
  sendings: readonly Sent[],
  mined: {
    amountUnits?: bigint;
    timestamp?: number;
    hiddenFor?: number;
    secondsALook?: number;
    receipt?: unknown;
    atHead?: 'no such block' | 'the receipt';
  } = {},
) {
  let sent = 0;
  let isMined = false;
  const { amountUnits = 50_000n, secondsALook = 0 } = mined;
  let { hiddenFor = 0, timestamp = NOW_S } = mined;
  const word = (value: string) => `0x${value.slice(2).padStart(64, '0')}`;
  const receipt = () => {
    const topics = [TRANSFER, word(PAYER.address.toLowerCase()), word(US)];
    return {
      transactionHash: HASH,
      blockNumber: '0x1',
      status: '0x1',
      logs: [{ address: TOKEN, topics, data: `0x${amountUnits.toString(16).padStart(64, '0')}` }],
    };
  };
  const rpc: Pick<NodeRpc, 'call' | 'together'> = {
    async call(method) {
      if (method === 'eth_getBlockByNumber') {
        timestamp += secondsALook;
        return { number: '0x1', hash: HEAD, timestamp: `0x${timestamp.toString(16)}` };
      }
      if (method === 'eth_getTransactionReceipt') {
        if (mined.receipt !== undefined) return mined.receipt;
        return !isMined || hiddenFor-- > 0 ? null : receipt();
      }
      assert.equal(method, 'eth_sendRawTransaction');
      const does = sendings[Math.min(sent, sendings.length - 1)];
      sent += 1;
      if (does === 'taken' || does === 'reply lost') isMined = true;
      if (does === 'taken') return HASH;
      if (does === undefined || typeof does === 'string') throw new RpcUnreachable(method, does);
      isMined ||= does.did === true;
      throw new RpcRefusal(method, does.code, does.message ?? 'no', null);
    },
    async together(calls) {
      assert.deepEqual(calls, [
        { method: 'eth_getBlockByHash', params: [HEAD, false] },
        { method: 'eth_getTransactionReceipt', params: [HASH] },
      ]);
      return [
        mined.atHead === 'no such block' ? null : { hash: HEAD },
        isMined || mined.atHead === 'the receipt' ? receipt() : null,
      ];
    },
  };
  return {
    chain: tempoPayments({ rpc, refunds: null, nowMs: () => NOW_S * 1_000, report: () => {} }),
    sent: () => sent,
  };
}

for (const [name, sendings, status] of [
  ['is taken', ['taken'], 'settled'],
  ['is lost once', ['lost', 'taken'], 'settled'],
  ['is taken, and the reply lost', ['reply lost'], 'settled'],
  ['meets a node that is busy', [{ code: -32005 }, { code: -32603 }, 'taken'], 'settled'],
  ['is refused once', [{ code: -32003 }, 'taken'], 'settled'],
  ['may have arrived, and is refused after that', ['lost', { code: -32003 }, 'taken'], 'settled'],
] as const) {
  test(`a transaction that ${name}: ${status}`, async () => {
    const node = nodeThat(sendings);
    const verdict = await node.chain.settle(payment);
    assert.equal(verdict.status, status);
    if (verdict.status === 'settled') assert.equal(verdict.transaction, HASH);
    assert.equal(node.sent(), sendings.length);
  });
}

for (const [code, message] of [
  [-32000, 'transaction already in pool'],
  [-32000, 'internal error'],
  [-32003, 'transaction rejected'],
  [-32601, 'the method is not available'],
  [3, 'execution reverted'],
] as const) {
  test(`a node that passes it on, answers ${code} (${message}) and shows the receipt two looks later: settled`, async () => {
    const node = nodeThat([{ code, message, did: true }], { hiddenFor: 2 });
    assert.equal((await node.chain.settle(payment)).status, 'settled');
  });
}

test("a transaction that the node always refuses is dead once the chain's clock is past its end, and not before", async () => {
  const verdict = await nodeThat([{ code: -32003 }], { secondsALook: 8 }).chain.settle(payment);
  assert.equal(verdict.status, 'dead');
  assert.equal(verdict.status === 'dead' && verdict.refusal.code, 'PAYMENT_EXPIRED');
});

test('a receipt that cannot be read is no proof, also past the end: neither that none paid, nor that it failed', async () => {
  for (const receipt of [
    { transactionHash: HASH, blockNumber: '0x1', status: '0x1', gasUsed: 21_000, logs: [] },
    {
      transactionHash: HASH,
      blockNumber: '0x1',
      status: '0x1',
      logs: [{ address: TOKEN, topics: [TRANSFER] }],
    },
    { status: {} },
  ]) {
    const { chain } = nodeThat(['taken'], { timestamp: NOW_S + 31, receipt });
    assert.equal((await chain.look(payment)).status, 'unknown');
    assert.equal(await chain.finality(payment, HASH), 'unknown');
  }
});

test('a transaction that moved another amount does not count as paid', async () => {
  assert.equal((await nodeThat(['taken'], { amountUnits: 49_999n }).chain.settle(payment)).status, 'dead');
});

test("a transaction that was not mined before its end is dead, by the chain's clock", async () => {
  const at = async (timestamp: number) =>
    (await nodeThat(['lost'], { timestamp }).chain.look(payment)).status;
  assert.equal(await at(NOW_S + 30), 'open');
  assert.equal(await at(NOW_S + 31), 'dead');
});

test('two nodes at one address, one of which stands still: what is missing there has not expired', async () => {
  const at = async (atHead: 'no such block' | 'the receipt') =>
    (await nodeThat(['lost'], { timestamp: NOW_S + 31, atHead }).chain.look(payment)).status;
  assert.equal(await at('no such block'), 'unknown');
  assert.equal(await at('the receipt'), 'settled');
});
