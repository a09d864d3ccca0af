import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { createWalletClient, http, parseTransaction } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { TestChain } from '../../../../apps/shop/test/chain.fixture.ts';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { connectRpc, RpcRefusal, RpcUnreachable } from '../chain-rpc/json-rpc.ts';
import type { Database } from '../db/connection.ts';
import { type RelayerStage, STOP, startRelayerStage } from './relayer.fixture.ts';
import { type Hex, NotWanted } from './to-send.ts';

/** Code that reverts every call. */
const REVERT: Hex = '0x5f5ffd';
const SEND_METHODS = ['eth_sendRawTransaction', 'eth_sendRawTransactionSync'];
const WAIT_MS = 20_000;

let stage: RelayerStage;
let chain: TestChain;
before(async () => {
  stage = await startRelayerStage();
  ({ chain } = stage);
});
afterEach(() => chain.client.setAutomine(true));
after(() => stage?.close());

type Setting = Awaited<ReturnType<RelayerStage['setting']>>;
const settingOf: RelayerStage['setting'] = (...given) => stage.setting(...given);
const nodeThat: RelayerStage['nodeThat'] = (...given) => stage.nodeThat(...given);

/** How many transactions to an address the last blocks hold. */
async function transactionsTo(to: Hex): Promise<number> {
  const head = await chain.client.getBlockNumber();
  const blocks = await Promise.all(
    Array.from({ length: 5 }, (_, back) =>
      chain.client.getBlock({ blockNumber: head - BigInt(back), includeTransactions: true }),
    ),
  );
  return blocks.flatMap(({ transactions }) => transactions).filter((each) => each.to === to.toLowerCase())
    .length;
}

const withoutSync = () =>
  nodeThat(['eth_sendRawTransactionSync'], async (method) => {
    throw new RpcRefusal(method, -32601, 'Method not found', undefined);
  });
/** Makes everything that is sent get lost, as when the process is killed between storing and sending. */
const deaf = () =>
  nodeThat(SEND_METHODS, async (method) => {
    throw new RpcUnreachable(method, new Error('cut off'));
  });

async function assertNoGap(setting: Setting, address: Hex, count: number): Promise<void> {
  const rows = (await setting.rows()).filter((row) => row.address === address.toLowerCase());
  assert.deepEqual(
    rows.map(({ nonce }) => Number(nonce)),
    Array.from({ length: count }, (_, index) => index),
  );
  assert.equal(await setting.mined(address), count);
}

test('what depends on something that is not there is neither stored nor sent, and takes no nonce from the others', async (t) => {
  const setting = await settingOf(t);
  const relayer = setting.relayer();
  const wanted = (is: boolean) => ({ onlyIf: (sql: Database) => sql`${is}::boolean` });
  // The first of a key holds its nonce, and those after it are stored by what comes next.
  for (const round of ['first', 'second']) {
    const [not, yes] = await Promise.allSettled([
      relayer.send({ ...setting.call(`${round} not`), ...wanted(false) }, WAIT_MS),
      relayer.send({ ...setting.call(`${round} yes`), ...wanted(true) }, WAIT_MS),
    ]);
    assert(not.status === 'rejected' && not.reason instanceof NotWanted);
    assert(yes.status === 'fulfilled' && yes.value?.status === 'success');
    await assert.rejects(
      relayer.send({ ...setting.call(`${round} alone`), ...wanted(false) }, WAIT_MS),
      NotWanted,
    );
  }
  const rows = await setting.rows();
  assert.deepEqual(
    rows.map(({ id, nonce }) => [id, nonce]),
    [
      ['first yes', 0n],
      ['second yes', 1n],
    ],
  );
  assert.equal(await setting.mined(), 2);
});

test('many at once from two replicas with one key: no nonce twice, no gap, all mined', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  assert.ok(address !== undefined);
  const second = connectRpc(chain.url, { timeoutMs: 10_000 });
  t.after(() => second.close());
  const replicas = [setting.relayer(), setting.relayer(second)];
  assert.equal((await replicas[0]?.send(setting.call('first'), WAIT_MS))?.status, 'success');
  const mined = await Promise.all(
    Array.from({ length: 80 }, (_, index) =>
      replicas[index % 2]?.send(setting.call(`call ${index}`), WAIT_MS),
    ),
  );
  assert.ok(mined.every((each) => each?.status === 'success'));
  assert.equal(new Set(mined.map((each) => each?.hash)).size, 80);
  await assertNoGap(setting, address, 81);
  await until('all to be noted as mined', async () => {
    for (const replica of replicas) await replica.resume();
    return (await setting.rows()).every(({ state }) => state === 1);
  });
});

test('killed between storing and sending: the next process sends it, once', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  assert.ok(address !== undefined);
  assert.equal(await setting.relayer(deaf()).send(setting.call('a'), 0), null);
  assert.equal(await setting.relayer(deaf()).send(setting.call('b'), 0), null);
  assert.equal(await setting.mined(address), 0);

  const restarted = setting.relayer();
  await restarted.resume();
  assert.equal(await setting.mined(address), 0, 'whoever stored it may be sending it still');
  setting.passMs(11_000);
  await Promise.all([restarted.resume(), setting.relayer().resume()]);
  assert.equal(await setting.mined(address), 2);
  setting.passMs(11_000);
  assert.equal(await restarted.resume(), 0);

  const [a, b] = await Promise.all(['a', 'b'].map((id) => restarted.send(setting.call(id), WAIT_MS)));
  assert.deepEqual([a?.status, b?.status], ['success', 'success']);
  await assertNoGap(setting, address, 2);
});

test('a reply that is lost after the node took the transaction', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  assert.ok(address !== undefined);
  const node = nodeThat(SEND_METHODS, async (method, ask) => {
    await ask();
    throw new RpcUnreachable(method, new Error('cut off'));
  });
  const mined = await setting.relayer(node).send(setting.call('a'), WAIT_MS);
  assert.equal(mined?.status, 'success');
  await assertNoGap(setting, address, 1);
});

// What nodes were seen to answer to a transaction that they had taken.
for (const [code, message] of [
  [-32000, 'already known'],
  [-32000, 'internal error'],
  [-32003, 'transaction rejected'],
] as const) {
  test(`a node that takes the transaction and says no: ${code} ${message}`, async (t) => {
    const setting = await settingOf(t);
    const [address] = setting.addresses;
    assert.ok(address !== undefined);
    const node = nodeThat(SEND_METHODS, async (method, ask) => {
      await ask();
      throw new RpcRefusal(method, code, message, undefined);
    });
    const relayer = setting.relayer(node);
    assert.equal((await relayer.send(setting.call('a'), WAIT_MS))?.status, 'success');
    assert.equal((await relayer.send(setting.call('b'), WAIT_MS))?.status, 'success');
    await assertNoGap(setting, address, 2);
  });
}

test('a node without eth_sendRawTransactionSync is asked for it once, and then polled', async (t) => {
  const setting = await settingOf(t);
  let asked = 0;
  const node = nodeThat(['eth_sendRawTransactionSync'], async (method) => {
    asked += 1;
    throw new RpcRefusal(method, -32601, 'the method does not exist', undefined);
  });
  const relayer = setting.relayer(node);
  for (const id of ['a', 'b', 'c']) {
    const mined = await relayer.send(setting.call(id), WAIT_MS);
    assert.equal(mined?.status, 'success');
    const receipt = await chain.client.getTransactionReceipt({ hash: mined.hash });
    assert.deepEqual([mined.blockNumber, mined.gasUsed], [receipt.blockNumber, receipt.gasUsed]);
  }
  assert.equal(asked, 1);
});

test('one that is stuck gets higher fees; only one of the two is mined, and found', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  assert.ok(address !== undefined);
  const relayer = setting.relayer(withoutSync());
  await chain.client.setAutomine(false);
  assert.equal(await relayer.send(setting.call('a'), 0), null);
  const [stuck] = await setting.rows();
  assert.ok(stuck !== undefined);

  setting.passMs(31_000);
  assert.equal(await relayer.resume(), 1);
  const [raised] = await setting.rows();
  assert.equal(raised?.hashes.length, 2);
  const [before, now] = [stuck.raw, raised?.raw ?? '0x'].map((raw) => parseTransaction(raw));
  assert.deepEqual(
    [now?.nonce, now?.to?.toLowerCase(), now?.data, now?.gas],
    [before?.nonce ?? 0, setting.target.toLowerCase(), '0x1234', 60_000n],
  );
  assert.ok((now?.maxFeePerGas ?? 0n) * 10n >= (before?.maxFeePerGas ?? 0n) * 11n);

  await chain.client.mine({ blocks: 1 });
  const mined = await relayer.send(setting.call('a'), WAIT_MS);
  assert.equal(mined?.hash, raised?.hashes[1], 'the node took the dearer one in place of the other');
  assert.equal(await transactionsTo(setting.target), 1);
  setting.passMs(11_000);
  assert.equal(await relayer.resume(), 0);
  await assertNoGap(setting, address, 1);
});

test('the first of two is mined after all, and found', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  assert.ok(address !== undefined);
  await chain.client.setAutomine(false);
  assert.equal(await setting.relayer(withoutSync()).send(setting.call('a'), 0), null);
  setting.passMs(31_000);
  await setting.relayer(deaf()).resume();
  const [row] = await setting.rows();
  assert.equal(row?.hashes.length, 2, 'the dearer one was written down before it was sent');
  await chain.client.mine({ blocks: 1 });
  setting.passMs(11_000);
  assert.equal(await setting.relayer().resume(), 0);
  const mined = await setting.relayer().send(setting.call('a'), WAIT_MS);
  assert.equal(mined?.hash, row.hashes[0]);
  await assertNoGap(setting, address, 1);
});

test('one that would only fail by now is replaced by a transfer of nothing, which fills its nonce', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  assert.ok(address !== undefined);
  const relayer = setting.relayer(withoutSync());
  await chain.client.setAutomine(false);
  assert.equal(await relayer.send(setting.call('a'), 0), null);
  await chain.client.setCode({ address: setting.target, bytecode: REVERT });
  setting.passMs(31_000);
  await relayer.resume();
  await chain.client.mine({ blocks: 1 });
  await chain.client.setAutomine(true);

  const [row] = await setting.rows();
  const filler = await chain.client.getTransaction({ hash: row?.filler ?? '0x' });
  assert.deepEqual([filler.to, filler.input, filler.value], [address.toLowerCase(), '0x', 0n]);
  setting.passMs(11_000);
  assert.equal(await relayer.resume(), 0);
  assert.equal((await setting.rows())[0]?.state, 3);

  // What had this id may be tried again: it was given up, not sent.
  await chain.client.setCode({ address: setting.target, bytecode: STOP });
  assert.equal((await relayer.send(setting.call('a'), WAIT_MS))?.status, 'success');
  await assertNoGap(setting, address, 2);
});

test('a nonce that somebody else used with the same key is given up, and the next ones are good', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  const [key] = setting.keys;
  assert.ok(address !== undefined && key !== undefined);
  const stranger = createWalletClient({ account: privateKeyToAccount(key), transport: http(chain.url) });
  const elsewhere = async (nonce: number) => {
    const before = await setting.mined(address);
    await stranger.sendTransaction({ chain: null, to: address, value: 1n, nonce, gas: 30_000n });
    await until('it to be mined', async () => (await setting.mined(address)) > before);
  };
  assert.equal(await setting.relayer(deaf()).send(setting.call('a'), 0), null);
  await elsewhere(0);

  const relayer = setting.relayer();
  setting.passMs(3_600_000);
  assert.equal(await relayer.resume(), 0);
  assert.deepEqual(
    (await setting.rows()).map(({ state }) => state),
    [3],
  );
  assert.equal((await relayer.send(setting.call('a'), WAIT_MS))?.status, 'success');
  // While ours goes on without a pause.
  await elsewhere(2);
  assert.equal((await relayer.send(setting.call('b'), WAIT_MS))?.status, 'success');
  assert.deepEqual(
    (await setting.rows()).map(({ nonce }) => Number(nonce)),
    [0, 1, 3],
  );
  assert.equal(await setting.mined(address), 4);
});

test('one id is one transaction, however often it is asked for, until another one is asked for', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  assert.ok(address !== undefined);
  const relayer = setting.relayer(withoutSync());
  await chain.client.setAutomine(false);
  const copies = await Promise.all(Array.from({ length: 20 }, () => relayer.send(setting.call('a'), 0)));
  assert.ok(copies.every((each) => each === null));
  await chain.client.mine({ blocks: 1 });
  await chain.client.setAutomine(true);
  const mined = await Promise.all(
    [relayer, setting.relayer()].map((each) => each.send(setting.call('a'), WAIT_MS)),
  );
  assert.ok(mined[0] !== undefined && mined[0] !== null);
  assert.deepEqual(mined[1], mined[0]);
  await assertNoGap(setting, address, 1);
  setting.passMs(1_000);
  const anew = await relayer.send({ ...setting.call('a'), again: true }, WAIT_MS);
  assert.notEqual(anew?.hash, mined[0].hash);
  await assertNoGap(setting, address, 2);
});

test('what the node says would fail is not sent; what fails in its block is told, and may be tried again', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  assert.ok(address !== undefined);
  const relayer = setting.relayer();
  await chain.client.setCode({ address: setting.target, bytecode: REVERT });
  const { gasLimit, ...measured } = setting.call('a');
  await assert.rejects(relayer.send(measured, WAIT_MS), RpcRefusal);
  assert.deepEqual([...(await setting.rows())], []);
  assert.equal((await relayer.send({ ...measured, gasLimit }, WAIT_MS))?.status, 'reverted');
  await chain.client.setCode({ address: setting.target, bytecode: STOP });
  setting.passMs(1_000);
  const mined = await relayer.send(measured, WAIT_MS);
  assert.equal(mined?.status, 'success');
  // Gas by measurement: a quarter above what it uses.
  const { gas } = await chain.client.getTransaction({ hash: mined.hash });
  assert.equal(gas, (mined.gasUsed * 5n) / 4n);
  await assertNoGap(setting, address, 2);
});

test('several keys side by side share the load', async (t) => {
  const setting = await settingOf(t, 3);
  const relayer = setting.relayer();
  assert.deepEqual(
    relayer.addresses,
    setting.addresses.map((address) => address.toLowerCase()),
  );
  const mined = await Promise.all(
    Array.from({ length: 60 }, (_, index) => relayer.send(setting.call(`call ${index}`), WAIT_MS)),
  );
  assert.ok(mined.every((each) => each?.status === 'success'));
  const counts = await Promise.all(setting.addresses.map((address) => setting.mined(address)));
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    60,
  );
  for (const [index, address] of setting.addresses.entries()) {
    assert.ok((counts[index] ?? 0) > 0, 'every key is used');
    await assertNoGap(setting, address, counts[index] ?? 0);
  }
});
