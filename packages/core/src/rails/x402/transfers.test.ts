import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { encodeFunctionData, erc20Abi } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { signPayment } from '../../../../../apps/shop/test/x402.fixture.ts';
import { connectRpc, type NodeRpc, type Rpc, RpcUnreachable } from '../../chain-rpc/json-rpc.ts';
import { Problem } from '../../http/problem.ts';
import { PaymentRefused } from '../../paid-call/rail.ts';
import { type EvmChain, openEvmChain } from '../evm/chain.ts';
import { type Hex, transferCalldata } from '../evm/eip3009.ts';
import { NETWORKS } from './networks.ts';
import { findEvmTransfer, findSolanaTransfer, lookAtTransfer } from './transfers.ts';

const [network] = NETWORKS;
const PRICE = 50_000n;

let node: TestChain;
let rpc: NodeRpc;
let payTo: Hex;
let payer: Hex;
before(async () => {
  node = await startTestChain();
  // These tests count confirmations, so no block may be mined on its own.
  await node.client.setAutomine(false);
  rpc = connectRpc(node.url, { timeoutMs: 10_000 });
  payTo = node.accounts.recipient.address.toLowerCase() as Hex;
  payer = node.accounts.faucet.address;
});
after(async () => {
  await rpc?.close();
  await node?.stop();
});

/** The head is cached for seconds, so each look uses a server that has none cached. */
const chainNow = (): EvmChain => openEvmChain(network, rpc, Date.now);
const find = (hash: string, nowMs = Date.now()) =>
  findEvmTransfer({ chain: chainNow(), rpc, nowMs: () => nowMs }, hash, { payTo, amountUnits: PRICE });

async function send(data: Hex, to: Hex = network.asset, gas?: bigint): Promise<Hex> {
  const hash = await node.client.sendTransaction({
    account: payer,
    chain: null,
    to,
    data,
    ...(gas === undefined ? {} : { gas }),
  });
  await node.client.mine({ blocks: 1 });
  return hash;
}
const transfer = (to: Hex, units: bigint) =>
  encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, units] });

const refusedWith = (code: string) => (error: unknown) => {
  assert.ok(error instanceof PaymentRefused, `not a refusal: ${error}`);
  assert.equal(error.code, code);
  return true;
};
/** A refusal for now: the transfer is unconfirmed or unknown, and a new payment would not help. */
const laterWith = (code: string, confirmations?: number) => (error: unknown) => {
  assert.ok(error instanceof Problem, `not a problem: ${error}`);
  assert.deepEqual([error.status, error.code], [503, code]);
  assert.equal(error.details.charged, null);
  if (confirmations !== undefined) assert.equal(error.details.confirmations, confirmations);
  return true;
};

test('a transfer counts once it has its confirmations, with what it moved', async () => {
  const exact = await send(transfer(payTo, PRICE));
  await assert.rejects(find(exact), laterWith('PAYMENT_NOT_CONFIRMED', 1));
  const more = await send(transfer(payTo, 3n * PRICE));
  const found = await find(exact);
  assert.deepEqual([found?.payer, found?.amountUnits], [payer.toLowerCase(), PRICE]);
  await node.client.mine({ blocks: 1 });
  const { blockNumber } = await node.client.getTransactionReceipt({ hash: more });
  assert.deepEqual(await find(more), { payer: payer.toLowerCase(), amountUnits: 3n * PRICE, blockNumber });
});

test('a transfer that is not in a block yet is waited for; an unknown one may be on another chain', async () => {
  const hash = await node.client.sendTransaction({
    account: payer,
    chain: null,
    to: network.asset,
    data: transfer(payTo, PRICE),
  });
  await assert.rejects(find(hash), laterWith('PAYMENT_NOT_CONFIRMED', 0));
  await node.client.mine({ blocks: 2 });
  assert.notEqual(await find(hash), null);
  assert.equal(await find(generatePrivateKey()), null);
});

test('two nodes at one address, one of which stands still: what it does not know may have been paid', async (t) => {
  const standing = await startTestChain();
  t.after(() => standing.stop());
  const still = connectRpc(standing.url, { timeoutMs: 10_000 });
  t.after(() => still.close());
  const hash = await send(transfer(payTo, PRICE));
  await node.client.mine({ blocks: 2 });
  const behind: NodeRpc = {
    ...rpc,
    call: (method, params) => (method === 'eth_getBlockByNumber' ? rpc : still).call(method, params),
    together: (calls) => still.together(calls),
  };
  const findBy = (by: NodeRpc) =>
    findEvmTransfer({ chain: openEvmChain(network, by, Date.now), rpc: by, nowMs: Date.now }, hash, {
      payTo,
      amountUnits: PRICE,
    });
  await assert.rejects(findBy(behind), laterWith('CHAIN_UNAVAILABLE'));
  const found = await findBy({ ...behind, together: (calls) => rpc.together(calls) });
  assert.equal(found?.amountUnits, PRICE, 'the node that has the head is believed');
});

test('a transfer that does not pay us is refused, each kind with its reason', async () => {
  const failed = await send(transfer(payTo, 10n ** 18n), network.asset, 100_000n);
  const elsewhere = await send(transfer(payer, PRICE));
  const less = await send(transfer(payTo, PRICE - 1n));
  const nothing = await send('0x', payTo);
  // This code logs a Transfer to us of far more than the price, but it is not the asset.
  const counterfeit = privateKeyToAccount(generatePrivateKey()).address;
  const topics = ['0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef', payer, payTo].map(
    (topic) => topic.slice(2).toLowerCase().padStart(64, '0'),
  );
  await node.client.setCode({
    address: counterfeit,
    // mstore(0, 2^64); log3(0, 32, Transfer, payer, payTo)
    bytecode: `0x680100000000000000005f527f${topics[2]}7f${topics[1]}7f${topics[0]}60205fa300`,
  });
  const counterfeited = await send('0x', counterfeit, 100_000n);
  const logged = await node.client.getTransactionReceipt({ hash: counterfeited });
  assert.equal(logged.logs[0]?.topics[2], `0x${topics[2]}`, 'the counterfeit is a good one');
  await node.client.mine({ blocks: 2 });
  await assert.rejects(find(failed), refusedWith('PAYMENT_TRANSACTION_FAILED'));
  for (const hash of [elsewhere, less, nothing, counterfeited])
    await assert.rejects(find(hash), refusedWith('PAYMENT_TRANSFER_MISMATCH'));
});

test("somebody's settlement cannot be presented as a transfer of one's own", async () => {
  const account = privateKeyToAccount(generatePrivateKey());
  await send(transfer(account.address, PRICE));
  const { authorization, signature } = await signPayment(account, {
    to: payTo,
    valueUnits: PRICE,
    validForSeconds: 3_600,
  });
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const hash = await send(
    transferCalldata(
      {
        from: from as Hex,
        to: to as Hex,
        value: BigInt(value),
        validAfter: BigInt(validAfter),
        validBefore: BigInt(validBefore),
        nonce: nonce as Hex,
      },
      signature,
    ),
  );
  await node.client.mine({ blocks: 2 });
  await assert.rejects(find(hash), refusedWith('PAYMENT_TRANSFER_NOT_PLAIN'));
});

test('a transfer can be presented for a day', async () => {
  const hash = await send(transfer(payTo, PRICE));
  await node.client.mine({ blocks: 2 });
  const { blockNumber } = await node.client.getTransactionReceipt({ hash });
  const madeMs = Number((await node.client.getBlock({ blockNumber })).timestamp) * 1_000;
  assert.notEqual(await find(hash, madeMs + 24 * 3_600_000), null);
  await assert.rejects(find(hash, madeMs + 24 * 3_600_000 + 1), refusedWith('PAYMENT_TRANSFER_TOO_OLD'));
});

test('a node that does not answer is no reason to pay again', async () => {
  const fail = async (): Promise<never> => {
    throw new RpcUnreachable('test', new Error('cut off'));
  };
  const broken: NodeRpc = {
    call: fail,
    batch: fail,
    together: fail,
    close: async () => {},
  };
  const parts = { chain: openEvmChain(network, broken, Date.now), rpc: broken, nowMs: Date.now };
  const wanted = { payTo, amountUnits: PRICE };
  await assert.rejects(findEvmTransfer(parts, generatePrivateKey(), wanted), laterWith('CHAIN_UNAVAILABLE'));
  await assert.rejects(
    findSolanaTransfer(parts, 'signature', { ...wanted, asset: 'mint', feePayers: new Set() }),
    laterWith('CHAIN_UNAVAILABLE'),
  );
  const looked = await lookAtTransfer(
    () => findEvmTransfer(parts, generatePrivateKey(), wanted),
    '0xaa',
    true,
  );
  assert.equal(looked.status, 'unknown');
  assert.equal((await lookAtTransfer(async () => null, '0xaa', false)).status, 'unknown');
  assert.equal(
    (await lookAtTransfer(async () => null, '0xaa', true)).status,
    'dead',
    'it is not waited for for ever',
  );
  assert.deepEqual(
    await lookAtTransfer(async () => ({ payer, amountUnits: 1n, blockNumber: 7n }), '0xaa', true),
    {
      status: 'settled',
      transaction: '0xaa',
      blockNumber: 7n,
    },
  );
});

const SECONDS = 1_800_000_000;
const balance = (owner: string, amount: bigint, mint = 'mint') => ({
  mint,
  owner,
  uiTokenAmount: { amount: String(amount) },
});
/** A transaction as a Solana node reports it, in which `payer` moves the price to `us`. */
function told(changes: {
  pre?: unknown[];
  post?: unknown[];
  err?: unknown;
  feePayer?: string;
  blockTime?: number | null;
}) {
  return {
    blockTime: changes.blockTime === undefined ? SECONDS : changes.blockTime,
    meta: {
      err: changes.err ?? null,
      preTokenBalances: changes.pre ?? [balance('payer', 70_000n), balance('us', 1n)],
      postTokenBalances: changes.post ?? [balance('payer', 20_000n), balance('us', 50_001n)],
    },
    transaction: { message: { accountKeys: [changes.feePayer ?? 'payer', 'other'] } },
  };
}
function findTold(transaction: unknown, status: unknown = null, nowMs = SECONDS * 1_000, slot = 7) {
  const said: Record<string, unknown> = {
    getTransaction: transaction,
    getSlot: slot,
    getSignatureStatuses: { context: { slot: 7 }, value: [status] },
  };
  const rpcOf: Rpc = {
    call: async (method) => said[method],
    close: async () => {},
  };
  return findSolanaTransfer({ rpc: rpcOf, nowMs: () => nowMs }, 'signature', {
    asset: 'mint',
    payTo: 'us',
    amountUnits: PRICE,
    feePayers: new Set(['facilitator']),
  });
}

test('Solana: a transfer is read from the balances of the asset', async () => {
  const found = { payer: 'payer', amountUnits: PRICE, blockNumber: null };
  assert.deepEqual(await findTold(told({})), found);
  assert.deepEqual(await findTold(told({ blockTime: null })), found);
  // The same transaction opened our token account, and emptied and closed the payer's.
  assert.deepEqual(
    await findTold(told({ pre: [balance('payer', PRICE)], post: [balance('us', PRICE)] })),
    found,
  );
  assert.equal(await findTold(null), null);
  await assert.rejects(findTold(null, { confirmations: 5 }), laterWith('PAYMENT_NOT_CONFIRMED', 5));
});

test('Solana: a node that is behind the newest slot cannot say that nothing was paid', async () => {
  await assert.rejects(findTold(null, null, SECONDS * 1_000, 8), laterWith('CHAIN_UNAVAILABLE'));
  const seen = { confirmations: 5 };
  await assert.rejects(findTold(null, seen, SECONDS * 1_000, 8), laterWith('PAYMENT_NOT_CONFIRMED', 5));
});

const UNPAID: Record<string, [string, unknown]> = {
  'it failed': ['PAYMENT_TRANSACTION_FAILED', told({ err: { InstructionError: [0, 'x'] } })],
  'it is a settlement': ['PAYMENT_TRANSFER_NOT_PLAIN', told({ feePayer: 'facilitator' })],
  'it is old': ['PAYMENT_TRANSFER_TOO_OLD', told({ blockTime: SECONDS - 86_401 })],
  'it is too little': [
    'PAYMENT_TRANSFER_MISMATCH',
    told({ post: [balance('payer', 20_001n), balance('us', 50_000n)] }),
  ],
  'it is another token': [
    'PAYMENT_TRANSFER_MISMATCH',
    told({
      pre: [balance('payer', 70_000n, 'other'), balance('us', 1n, 'other')],
      post: [balance('payer', 20_000n, 'other'), balance('us', 50_001n, 'other')],
    }),
  ],
  'it went to somebody else': [
    'PAYMENT_TRANSFER_MISMATCH',
    told({ post: [balance('payer', 20_000n), balance('us', 1n), balance('else', 50_000n)] }),
  ],
  'it was minted': ['PAYMENT_TRANSFER_MISMATCH', told({ pre: [], post: [balance('us', PRICE)] })],
};
for (const [what, [code, transaction]] of Object.entries(UNPAID))
  test(`Solana: ${what}: ${code}`, () => assert.rejects(findTold(transaction), refusedWith(code)));
