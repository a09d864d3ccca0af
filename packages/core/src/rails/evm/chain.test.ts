import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { encodeFunctionData, parseAbi } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { cancelData, transferData } from '../../../../sandbox/src/chain/eip3009.fixture.ts';
import { fund } from '../../../../sandbox/src/chain/faucet.ts';
import { connectRpc, type Rpc, RpcRefusal, RpcUnreachable } from '../../chain-rpc/json-rpc.ts';
import type { MinedTransaction } from '../../relayer/node-reply.ts';
import { NETWORKS } from '../x402/networks.ts';
import { type EvmChain, openEvmChain } from './chain.ts';
import {
  type Authorization,
  type Hex,
  TOPIC_CANCELED,
  TOPIC_TRANSFER,
  TOPIC_USED,
  topicOf,
  transferCalldata,
} from './eip3009.ts';
import type { EvmNetwork } from './network.ts';

const [network] = NETWORKS;
const DOMAIN = { ...network.domain, chainId: network.chainId, verifyingContract: network.asset };
const PRICE = 50_000n;
const USDC_ABI = parseAbi([
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'function blacklist(address account)',
  'function transfer(address to, uint256 value) returns (bool)',
]);

let node: TestChain;
let rpc: Rpc;
let chain: EvmChain;
let payTo: Hex;
before(async () => {
  node = await startTestChain();
  rpc = connectRpc(node.url, { timeoutMs: 10_000 });
  chain = openEvmChain(network, rpc, Date.now);
  payTo = node.accounts.recipient.address.toLowerCase() as Hex;
});
after(async () => {
  await rpc?.close();
  await node?.stop();
});

async function walletWith(usdcMicros: bigint): Promise<PrivateKeyAccount> {
  const account = privateKeyToAccount(generatePrivateKey());
  await fund(node.url, account.address, { usdcMicros, ethWei: 10n ** 16n });
  return account;
}

async function chainSeconds(): Promise<bigint> {
  return (await node.client.getBlock()).timestamp;
}

async function authorize(
  account: PrivateKeyAccount,
  changes: Partial<Authorization> = {},
): Promise<{ authorization: Authorization; signature: Hex }> {
  const authorization: Authorization = {
    from: account.address.toLowerCase() as Hex,
    to: payTo,
    value: PRICE,
    validAfter: 0n,
    validBefore: (await chainSeconds()) + 300n,
    nonce: generatePrivateKey(),
    ...changes,
  };
  const signature = await account.signTypedData(transferData(authorization, DOMAIN));
  return { authorization, signature };
}

/** Sends from an account of the node: it does not matter who settles. */
async function transact(data: Hex, from: Hex = node.accounts.faucet.address): Promise<MinedTransaction> {
  const hash = await node.client.sendTransaction({ account: from, chain: null, to: network.asset, data });
  await node.client.waitForTransactionReceipt({ hash });
  const mined = await chain.receipt(hash);
  assert.ok(mined !== null);
  return mined;
}

async function cancel(account: PrivateKeyAccount, { from, nonce }: Authorization): Promise<void> {
  const signature = await account.signTypedData(cancelData({ authorizer: from, nonce }, DOMAIN));
  await transact(
    encodeFunctionData({
      abi: USDC_ABI,
      functionName: 'cancelAuthorization',
      args: [from, nonce, signature],
    }),
  );
}

const whyNot = async (payment: { authorization: Authorization; signature: Hex }) =>
  (await chain.whyNot(payment.authorization, payment.signature))?.code ?? 'it would';

/** The node with some of its methods replaced. */
function nodeThat(replaced: Record<string, (params: readonly unknown[]) => unknown>): Rpc {
  return {
    async call(method, params, options) {
      return replaced[method] === undefined ? rpc.call(method, params, options) : replaced[method](params);
    },
    close: async () => {},
  };
}
const silent = () => {
  throw new RpcUnreachable('test', new Error('cut off'));
};

test('each revert of the asset has its own refusal code', async () => {
  const account = await walletWith(PRICE);
  const good = await authorize(account);
  assert.equal(await whyNot(good), 'it would');
  const now = await chainSeconds();
  assert.equal(await whyNot(await authorize(account, { validBefore: now - 1n })), 'PAYMENT_EXPIRED');
  assert.equal(await whyNot(await authorize(account, { validAfter: now + 200n })), 'PAYMENT_NOT_YET_VALID');
  assert.equal(await whyNot(await authorize(account, { value: PRICE + 1n })), 'PAYMENT_INSUFFICIENT_FUNDS');
  const stranger = await authorize(await walletWith(PRICE));
  assert.equal(await whyNot({ ...good, signature: stranger.signature }), 'PAYMENT_SIGNATURE_INVALID');
  const altered = { ...good, authorization: { ...good.authorization, value: PRICE - 1n } };
  assert.equal(await whyNot(altered), 'PAYMENT_SIGNATURE_INVALID');
  const cancelled = await authorize(account);
  await cancel(account, cancelled.authorization);
  assert.equal(await whyNot(cancelled), 'PAYMENT_AUTHORIZATION_USED');
  await transact(transferCalldata(good.authorization, good.signature));
  assert.equal(await whyNot(good), 'PAYMENT_AUTHORIZATION_USED');
  const blocked = await authorize(await walletWith(PRICE));
  await transact(
    encodeFunctionData({ abi: USDC_ABI, functionName: 'blacklist', args: [blocked.authorization.from] }),
    node.accounts.deployer.address,
  );
  assert.equal(await whyNot(blocked), 'PAYMENT_PAYER_BLOCKED');
});

test('a node that fails says nothing about the payment', async () => {
  const payment = await authorize(await walletWith(PRICE));
  for (const failure of [
    silent,
    () => {
      throw new RpcRefusal('eth_call', -32005, 'limit exceeded', undefined);
    },
  ]) {
    const broken = openEvmChain(network, nodeThat({ eth_call: failure }), Date.now);
    await assert.rejects(broken.whyNot(payment.authorization, payment.signature));
    assert.equal((await broken.look(payment.authorization)).status, 'unknown');
  }
});

test("the chain's verdict on an authorization: open, settled by anybody, cancelled, expired", async () => {
  const account = await walletWith(10n * PRICE);
  const { authorization, signature } = await authorize(account);
  assert.deepEqual(await chain.look(authorization), { status: 'open' });
  const mined = await transact(transferCalldata(authorization, signature));
  assert.deepEqual(await chain.look(authorization), {
    status: 'settled',
    transaction: mined.hash,
    blockNumber: mined.blockNumber,
  });
  // The same nonce with another amount or recipient is another authorization, and was not paid.
  for (const change of [{ value: PRICE - 1n }, { to: `0x${'66'.repeat(20)}` as const }]) {
    const looked = await chain.look({ ...authorization, ...change });
    assert.equal(looked.status, 'dead');
  }
  const cancelled = await authorize(account);
  await cancel(account, cancelled.authorization);
  const looked = await chain.look(cancelled.authorization);
  assert.equal(looked.status === 'dead' && looked.refusal.code, 'PAYMENT_AUTHORIZATION_USED');

  // The next block may still have a time that is a little earlier than that of the newest block we saw.
  const now = await chainSeconds();
  const late = await chain.look((await authorize(account, { validBefore: now - 15n })).authorization);
  assert.equal(late.status, 'open');
  const dead = await chain.look((await authorize(account, { validBefore: now - 16n })).authorization);
  assert.equal(dead.status === 'dead' && dead.refusal.code, 'PAYMENT_EXPIRED');
});

test('an incomplete answer from the chain is not believed', async () => {
  const { authorization, signature } = await authorize(await walletWith(PRICE));
  const mined = await transact(transferCalldata(authorization, signature));
  for (const half of [
    { eth_getLogs: () => [] },
    { eth_getLogs: silent },
    { eth_getTransactionReceipt: () => null },
    { eth_getBlockByNumber: () => null },
    { eth_call: silent },
  ])
    assert.equal(
      (await openEvmChain(network, nodeThat(half), Date.now).look(authorization)).status,
      'unknown',
    );
  // Nodes limit the width of log queries differently.
  const windows: bigint[] = [];
  const narrow = nodeThat({
    eth_blockNumber: silent,
    eth_getBlockByNumber: async () => ({
      ...((await rpc.call('eth_getBlockByNumber', ['latest', false])) as object),
      number: `0x${(mined.blockNumber + 100_000n).toString(16)}`,
    }),
    eth_getLogs: async ([filter]) => {
      const { fromBlock } = filter as { fromBlock: Hex };
      windows.push(mined.blockNumber + 100_000n - BigInt(fromBlock));
      if (windows.length < 3) throw new RpcRefusal('eth_getLogs', -32000, 'block range too large', undefined);
      return rpc.call('eth_getLogs', [{ ...(filter as object), fromBlock: '0x0' }]);
    },
  });
  assert.equal((await openEvmChain(network, narrow, Date.now).look(authorization)).status, 'settled');
  assert.deepEqual(windows, [9_000n, 1_900n, 450n]);
});

test('two nodes at one address, one of which stands still: what is missing there has not expired', async (t) => {
  const account = await walletWith(10n * PRICE);
  const paid = await authorize(account);
  const standing = await startTestChain();
  t.after(() => standing.stop());
  const still = connectRpc(standing.url, { timeoutMs: 10_000 });
  t.after(() => still.close());
  const mined = await transact(transferCalldata(paid.authorization, paid.signature));

  const fresh = (await rpc.call('eth_getBlockByNumber', ['latest', false])) as { number: Hex; hash: Hex };
  const pastItsEnd = `0x${(paid.authorization.validBefore + 16n).toString(16)}`;
  const eth_getBlockByNumber = ([block]: readonly unknown[]) =>
    block === 'latest'
      ? { ...fresh, timestamp: pastItsEnd }
      : rpc.call('eth_getBlockByNumber', [block, false]);
  const asked: unknown[] = [];
  const lookBy = (answers: (block: unknown) => Rpc) => {
    const eth_call = (params: readonly unknown[]) => {
      asked.push(params[1]);
      return answers(params[1]).call('eth_call', params);
    };
    return openEvmChain(network, nodeThat({ eth_getBlockByNumber, eth_call }), Date.now);
  };

  const behind = await lookBy(() => still).look(paid.authorization);
  assert.equal(behind.status, 'unknown', 'the money has moved, and a 402 would have it signed again');
  const whole = await lookBy((block) => (block === 'latest' ? still : rpc)).look(paid.authorization);
  assert.deepEqual(whole, { status: 'settled', transaction: mined.hash, blockNumber: mined.blockNumber });
  const pinned = { blockHash: fresh.hash, requireCanonical: true };
  assert.deepEqual(asked, ['latest', pinned, 'latest', pinned]);
  const unpaid = await authorize(account, { validBefore: paid.authorization.validBefore });
  assert.equal((await lookBy(() => rpc).look(unpaid.authorization)).status, 'dead');
  // Nothing is at stake while it can still be paid, so one read is enough.
  asked.length = 0;
  const open = await authorize(account, { validBefore: paid.authorization.validBefore + 1n });
  assert.equal((await lookBy(() => still).look(open.authorization)).status, 'open');
  assert.deepEqual(asked, ['latest']);
});

test('a transaction pays an authorization only by the transfer directly after its use', async () => {
  const payer = `0x${'11'.repeat(20)}` as const;
  const authorization: Authorization = {
    from: payer,
    to: payTo,
    value: PRICE,
    validAfter: 0n,
    validBefore: 0n,
    nonce: `0x${'77'.repeat(32)}`,
  };
  const asset = network.asset.toLowerCase() as Hex;
  const word = (value: bigint): Hex => `0x${value.toString(16).padStart(64, '0')}`;
  const used = (nonce: Hex = authorization.nonce, address = asset) => ({
    address,
    topics: [TOPIC_USED, topicOf(payer), nonce] as Hex[],
    data: '0x' as Hex,
  });
  const moved = (to: Hex = payTo, value = PRICE, from: Hex = payer, address = asset) => ({
    address,
    topics: [TOPIC_TRANSFER, topicOf(from), topicOf(to)] as Hex[],
    data: word(value),
  });
  const other = `0x${'99'.repeat(32)}` as const;
  const thief = `0x${'66'.repeat(20)}` as const;
  const paid = (logs: MinedTransaction['logs'], status: MinedTransaction['status'] = 'success') =>
    chain.paidBy({ status, hash: '0x', blockNumber: 1n, gasUsed: 0n, costWei: null, logs }, authorization);

  assert.equal(paid([used(), moved()]), true);
  assert.equal(paid([moved(thief), used(other), moved(thief), used(), moved(), moved(thief)]), true);
  assert.equal(paid([used(), moved()], 'reverted'), false);
  // The attack: one transfer of the price, beside authorizations that paid somebody else.
  assert.equal(paid([used(), moved(thief), moved()]), false);
  assert.equal(paid([used(), moved(thief), used(other), moved()]), false, 'another authorization paid us');
  assert.equal(paid([moved(), used()]), false);
  assert.equal(paid([used(other), moved(), used()]), false);
  assert.equal(paid([used()]), false);
  assert.equal(paid([moved()]), false);
  assert.equal(paid([]), false);
  // Anybody can deploy a contract that logs the same events.
  assert.equal(paid([used(undefined, thief), moved()]), false);
  assert.equal(paid([used(), moved(undefined, undefined, undefined, thief)]), false);
  assert.equal(paid([used(), moved(payTo, PRICE - 1n)]), false);
  assert.equal(paid([used(), moved(payTo, PRICE, thief)]), false);
  assert.equal(
    paid([{ ...used(), topics: [TOPIC_CANCELED, topicOf(payer), authorization.nonce] }, moved()]),
    false,
  );
});

test('a transaction is final once enough blocks lie on it; one that a reorganisation removed is gone', async () => {
  const account = await walletWith(10n * PRICE);
  const kept = await authorize(account);
  const { hash } = await transact(transferCalldata(kept.authorization, kept.signature));
  assert.equal(await chain.finality(hash, kept.authorization), 'waiting');
  await node.still(async () => {
    const { blockNumber } = await node.client.getTransactionReceipt({ hash });
    const newest = await node.client.getBlockNumber({ cacheTime: 0 });
    await node.client.mine({ blocks: Number(blockNumber + 29n - newest) });
    assert.equal(await chain.finality(hash, kept.authorization), 'waiting');
    await node.client.mine({ blocks: 1 });
    assert.equal(await chain.finality(hash, kept.authorization), 'final');
  });
  assert.equal(await chain.finality(hash, null), 'final');
  assert.equal(
    await chain.finality(hash, (await authorize(account)).authorization),
    'gone',
    'it paid another one',
  );

  const id = await node.client.snapshot();
  const lost = await authorize(account);
  const mined = await transact(transferCalldata(lost.authorization, lost.signature));
  await node.client.revert({ id });
  await node.client.mine({ blocks: 1 });
  assert.equal(await chain.finality(mined.hash, lost.authorization), 'gone');
  assert.equal((await chain.look(lost.authorization)).status, 'open');
  // A node that is behind cannot call a transaction gone, nor can one that does not answer.
  const later = openEvmChain(network, rpc, () => Date.now() + 3_600_000);
  assert.equal(await later.finality(mined.hash, lost.authorization), 'unknown');
  assert.equal(later.isBehind(await later.head()), true);
  assert.equal(chain.isBehind(await chain.head()), false);
  for (const said of [silent, () => ({ status: {} }), () => ({ ...mined, logs: [{}] })]) {
    const broken = openEvmChain(network, nodeThat({ eth_getTransactionReceipt: said }), Date.now);
    assert.equal(await broken.finality(mined.hash, lost.authorization), 'unknown');
  }
});

test('who signed: an account is known by its key, a contract by its own answer (EIP-1271)', async () => {
  const account = await walletWith(PRICE);
  const own = await authorize(account);
  assert.equal(await chain.isSignedByPayer(own.authorization, own.signature), true);
  const stranger = await authorize(privateKeyToAccount(generatePrivateKey()));
  assert.equal(await chain.isSignedByPayer(own.authorization, stranger.signature), false);
  for (const [, other] of Object.entries({ polygon: NETWORKS[2], ethereum: NETWORKS[1] })) {
    const elsewhere = openEvmChain(other satisfies EvmNetwork, rpc, Date.now);
    assert.equal(await elsewhere.isSignedByPayer(own.authorization, own.signature), false);
  }

  const answersWith = async (code: Hex) => {
    const address = privateKeyToAccount(generatePrivateKey()).address.toLowerCase() as Hex;
    await node.client.setCode({ address, bytecode: code });
    return chain.isSignedByPayer({ ...own.authorization, from: address }, '0x1234');
  };
  // The codes: return(0x1626ba7e << 224), return(0), revert, and one that returns nothing.
  assert.equal(await answersWith('0x631626ba7e60e01b5f5260205ff3'), true);
  assert.equal(await answersWith('0x5f5f5260205ff3'), false);
  assert.equal(await answersWith('0x5f5ffd'), false);
  assert.equal(await answersWith('0x00'), false);
  // Whoever settles would pay for code that never ends.
  const wallet = privateKeyToAccount(generatePrivateKey()).address;
  await fund(node.url, wallet, { usdcMicros: PRICE, ethWei: 0n });
  const greedy = { ...own.authorization, from: wallet.toLowerCase() as Hex };
  await node.client.setCode({ address: wallet, bytecode: '0x5b5f56' });
  assert.notEqual(await whyNot({ authorization: greedy, signature: '0x1234' }), 'it would');

  const broken = openEvmChain(network, nodeThat({ eth_getCode: silent }), Date.now);
  await assert.rejects(broken.isSignedByPayer(own.authorization, stranger.signature), RpcUnreachable);
});
