import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { parseTransaction } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../test/chain.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../test/database.fixture.ts';
import { connectRpc, type Rpc, RpcRefusal, RpcUnreachable } from '../chain-rpc/json-rpc.ts';
import { createRelayer, type Hex, type Relayer } from '../relayer/relayer.ts';

/** Code that takes any call, and code that reverts every call. */
const STOP: Hex = '0x00';
const _REVERT: Hex = '0x5f5ffd';
const SEND_METHODS = ['eth_sendRawTransaction', 'eth_sendRawTransactionSync'];
const WAIT_MS = 20_000;

let chain: TestChain;
let database: TestDatabase;
let rpc: Rpc;
before(async () => {
  [chain, database] = await Promise.all([startTestChain(), openTestDatabase()]);
  rpc = connectRpc(chain.url, { timeoutMs: 10_000 });
});
afterEach(() => chain.client.setAutomine(true));
after(async () => {
  await rpc?.close();
  await Promise.all([chain?.stop(), database?.close()]);
});

/** One test's own network, keys and clock; any number of relayers on them are replicas, or the same one restarted. */
async function settingOf(test: { name: string }, keyCount = 1) {
  const network = test.name;
  const keys = Array.from({ length: keyCount }, () => generatePrivateKey());
  const addresses = keys.map((key) => privateKeyToAccount(key).address);
  for (const address of addresses) await chain.client.setBalance({ address, value: 10n ** 18n });
  const target = privateKeyToAccount(generatePrivateKey()).address;
  await chain.client.setCode({ address: target, bytecode: STOP });
  let nowMs = Date.now();
  return {
    keys,
    addresses,
    target,
    passMs(ms: number) {
      nowMs += ms;
    },
    relayer: (on: Rpc = rpc): Relayer =>
      createRelayer({ sql: database.sql, rpc: on, network, chainId: 8453, keys, nowMs: () => nowMs }),
    call: (id: string) => ({ id, to: target, data: '0x1234' as Hex, gasLimit: 60_000n }),
    rows: () => database.sql<
      { address: string; nonce: bigint; id: string; state: number; raw: Hex; hashes: Hex[]; filler: Hex }[]
    >`select address, nonce, id, state, raw, hashes, filler from relayer_transactions
      where network = ${network} order by address, nonce`,
    mined: (address: Hex) => chain.client.getTransactionCount({ address }),
    /** How many the last blocks hold. */
    async transactionsTo(to: Hex): Promise<number> {
      const head = await chain.client.getBlockNumber();
      const blocks = await Promise.all(
        Array.from({ length: 5 }, (_, back) =>
          chain.client.getBlock({ blockNumber: head - BigInt(back), includeTransactions: true }),
        ),
      );
      return blocks.flatMap(({ transactions }) => transactions).filter((each) => each.to === to.toLowerCase())
        .length;
    },
  };
}

/** The node, with some of its methods replaced. */
function nodeThat(
  methods: readonly string[],
  replaced: (method: string, ask: () => Promise<unknown>) => Promise<unknown>,
): Rpc {
  return {
    call: (method, params, options) =>
      methods.includes(method)
        ? replaced(method, () => rpc.call(method, params, options))
        : rpc.call(method, params, options),
    close: async () => {},
  };
}

const withoutSync = () =>
  nodeThat(['eth_sendRawTransactionSync'], async (method) => {
    throw new RpcRefusal(method, -32601, 'Method not found', undefined);
  });
/** Nothing that is sent arrives: as when the process is killed between storing and sending. */
const _deaf = () =>
  nodeThat(SEND_METHODS, async (method) => {
    throw new RpcUnreachable(method, new Error('cut off'));
  });

async function assertNoGap(
  setting: Awaited<ReturnType<typeof settingOf>>,
  address: Hex,
  count: number,
): Promise<void> {
  const rows = (await setting.rows()).filter((row) => row.address === address.toLowerCase());
  assert.deepEqual(
    rows.map(({ nonce }) => Number(nonce)),
    Array.from({ length: count }, (_, index) => index),
  );
  assert.equal(await setting.mined(address), count);
}

test('BUG1: two replicas whose first transactions come at the same moment', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  assert.ok(address !== undefined);
  const mined = await Promise.allSettled(
    Array.from({ length: 4 }, (_, index) => setting.relayer().send(setting.call(`call ${index}`), WAIT_MS)),
  );
  assert.deepEqual(
    mined.filter(({ status }) => status === 'rejected').map((e) => String((e as any).reason)),
    [],
  );
  await assertNoGap(setting, address, 4);
});

test('BUG2: 20 copies of one id at once: one is mined while others are still on their way into the queue', async (t) => {
  const setting = await settingOf(t);
  const relayer = setting.relayer();
  const copies = await Promise.all(
    Array.from({ length: 20 }, () => relayer.send(setting.call('a'), WAIT_MS)),
  );
  assert.equal(new Set(copies.map((each) => each?.hash)).size, 1);
});
test('BUG2b: deterministic: the second is measured by the node while the first is mined', async (t) => {
  const setting = await settingOf(t);
  const { gasLimit: _, ...measured } = setting.call('refund:1');
  const first = setting.relayer();
  const slow = nodeThat(['eth_estimateGas'], async (_m, ask) => {
    await first.send(measured, WAIT_MS);
    return ask();
  });
  await setting.relayer(slow).send(measured, WAIT_MS);
  assert.equal((await setting.rows()).length, 1);
});

test('BUG3: one id with two keys at once', async (t) => {
  const setting = await settingOf(t, 4);
  const relayer = setting.relayer(withoutSync());
  const copies = await Promise.allSettled(
    Array.from({ length: 12 }, (_, i) =>
      relayer.send(setting.call(i % 2 === 0 ? 'a' : `other ${i}`), WAIT_MS),
    ),
  );
  assert.deepEqual(
    copies.filter(({ status }) => status === 'rejected').map((e) => String((e as any).reason)),
    [],
  );
});

test('BUG4: a chain that was put back', async (t) => {
  const setting = await settingOf(t);
  const relayer = setting.relayer();
  const id = await chain.client.snapshot();
  assert.equal((await relayer.send(setting.call('a'), WAIT_MS))?.status, 'success');
  assert.equal((await relayer.send(setting.call('b'), WAIT_MS))?.status, 'success');
  await chain.client.revert({ id });
  setting.passMs(61_000);
  await relayer.send(setting.call('c'), 0);
  for (let i = 0; i < 4; i++) {
    setting.passMs(11_000);
    await relayer.resume();
  }
  assert.equal((await relayer.send(setting.call('c'), 0))?.status, 'success');
});

test('BUG4b: a chain that was put back, at once', async (t) => {
  const setting = await settingOf(t);
  const relayer = setting.relayer(withoutSync());
  const id = await chain.client.snapshot();
  assert.equal((await relayer.send(setting.call('a'), WAIT_MS))?.status, 'success');
  await chain.client.revert({ id });
  setting.passMs(1_000);
  const _first = await relayer.send(setting.call('b'), 0);
  for (let i = 0; i < 10; i++) {
    setting.passMs(11_000);
    await relayer.resume();
  }
  assert.equal((await relayer.send(setting.call('b'), 0))?.status, 'success');
});

test('BUG5: fees are raised without end while a key has no gas', async (t) => {
  const setting = await settingOf(t);
  const [address] = setting.addresses;
  assert.ok(address !== undefined);
  await chain.client.setBalance({ address, value: 0n });
  const relayer = setting.relayer(withoutSync());
  assert.equal(await relayer.send(setting.call('a'), 0), null);
  for (let round = 0; round < 90; round++) {
    setting.passMs(11_000);
    await relayer.resume();
  }
  const [row] = await setting.rows();
  console.log(
    'maxFeePerGas after 16 minutes, gwei:',
    parseTransaction(row?.raw ?? '0x').maxFeePerGas! / 10n ** 9n,
    row?.hashes.length,
  );
  await chain.client.setBalance({ address, value: 10n ** 18n });
  for (let round = 0; round < 3; round++) {
    setting.passMs(11_000);
    await relayer.resume();
  }
  assert.equal(await setting.mined(address), 1, 'one ether is enough for a transaction');
});

test('BUG6: a node that says the nonce is used and does not find the receipt', async (t) => {
  const setting = await settingOf(t);
  const lost = nodeThat(SEND_METHODS, async (method, ask) => {
    await ask();
    throw new RpcUnreachable(method, new Error('cut off'));
  });
  const noReceipts = (how: 'lagging' | 'silent') =>
    nodeThat([...SEND_METHODS, 'eth_getTransactionReceipt'], async (method, ask) => {
      if (method !== 'eth_getTransactionReceipt') {
        await ask();
        throw new RpcUnreachable(method, new Error('cut'));
      }
      if (how === 'lagging') return null;
      throw new RpcUnreachable(method, new Error('cut'));
    });
  for (const how of ['lagging', 'silent'] as const) {
    const id = `refund:${how}`;
    const before = await setting.mined(setting.addresses[0]!);
    assert.equal(await setting.relayer(noReceipts(how)).send(setting.call(id), 0), null);
    setting.passMs(31_000);
    await setting
      .relayer(noReceipts(how))
      .resume()
      .catch(() => {});
    await setting.relayer().send(setting.call(id), WAIT_MS);
    assert.equal((await setting.mined(setting.addresses[0]!)) - before, 1, `${how}: refunded once`);
  }
  void lost;
});

test('BUG7: the tip is raised by a tenth too, when most of the fee is the tip', async (t) => {
  const setting = await settingOf(t);
  const relayer = setting.relayer(
    nodeThat(['eth_sendRawTransactionSync', 'eth_maxPriorityFeePerGas'], async (method) => {
      if (method === 'eth_maxPriorityFeePerGas') return '0x6fc23ac00';
      throw new RpcRefusal(method, -32601, 'no', undefined);
    }),
  );
  await chain.client.setAutomine(false);
  await relayer.send(setting.call('a'), 0);
  const before = parseTransaction((await setting.rows())[0]?.raw);
  setting.passMs(31_000);
  await relayer.resume();
  const now = parseTransaction((await setting.rows())[0]?.raw);
  console.log(before.maxFeePerGas, before.maxPriorityFeePerGas, now.maxFeePerGas, now.maxPriorityFeePerGas);
  assert.ok(now.maxPriorityFeePerGas! * 10n >= before.maxPriorityFeePerGas! * 11n);
});

test('BUG8: a rate limit is not a revert', async (t) => {
  const setting = await settingOf(t);
  const relayer = setting.relayer(
    nodeThat(['eth_sendRawTransactionSync', 'eth_call'], async (method) => {
      if (method === 'eth_call') throw new RpcRefusal(method, -32005, 'limit exceeded', undefined);
      throw new RpcRefusal(method, -32601, 'no', undefined);
    }),
  );
  await chain.client.setAutomine(false);
  await relayer.send(setting.call('a'), 0);
  setting.passMs(31_000);
  await relayer.resume();
  assert.equal((await setting.rows())[0]?.filler, null);
});
