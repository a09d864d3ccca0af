/** Keys that cannot pay: nothing is stored for them, another one goes in their stead; and what the others paid is known. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../apps/shop/test/chain.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { connectRpc, type Rpc, RpcUnreachable } from '../chain-rpc/json-rpc.ts';
import { relayerOn } from './relayer.fixture.ts';
import { type Hex, OutOfGas } from './to-send.ts';

/** Code that takes any call, and code that reverts every call. */
const STOP: Hex = '0x00';
const REVERT: Hex = '0x5f5ffd';
const WAIT_MS = 20_000;
const GAS = 60_000n;

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

/** @param wei what each key holds */
async function settingOf(test: { name: string }, wei: readonly bigint[]) {
  const network = test.name;
  const keys = wei.map(() => generatePrivateKey());
  const addresses = keys.map((key) => privateKeyToAccount(key).address);
  for (const [index, address] of addresses.entries())
    await chain.client.setBalance({ address, value: wei[index] ?? 0n });
  const target = privateKeyToAccount(generatePrivateKey()).address;
  await chain.client.setCode({ address: target, bytecode: STOP });
  let nowMs = Date.now();
  return {
    addresses,
    target,
    passMs(ms: number) {
      nowMs += ms;
    },
    relayer: (on: Rpc = rpc) => relayerOn({ sql: database.sql, rpc: on, network, keys, nowMs: () => nowMs }),
    call: (id: string) => ({ id, to: target, data: '0x1234' as Hex, gasLimit: GAS }),
    rows: async () => [
      ...(await database.sql<{ address: string; id: string; state: number }[]>`
        select address, id, state from relayer_transactions where network = ${network} order by id`),
    ],
    spent: async () => {
      const rows = await database.sql<
        { address: string; transactions: number; priced: number; spent: string }[]
      >`
        select address, transactions, priced, spent::text from gas_spent where network = ${network}`;
      return rows.map(({ address, transactions, priced, spent }) => [
        address,
        transactions,
        priced,
        BigInt(spent),
      ]);
    },
  };
}

/** The node, but for one of its methods. */
function nodeWithout(name: string): Rpc {
  return {
    call: (method, params, options) =>
      method === name
        ? Promise.reject(new RpcUnreachable(method, new Error('cut off')))
        : rpc.call(method, params, options),
    close: async () => {},
  };
}

test('of several keys the dry one is passed by, at once and from then on', async (t) => {
  const setting = await settingOf(t, [0n, 10n ** 18n, 0n]);
  const funded = setting.addresses[1]?.toLowerCase();
  const asked = new Set<unknown>();
  const relayer = setting.relayer({
    call(method, params, options) {
      if (method === 'eth_getTransactionCount' && params[0] !== funded) asked.add(params[0]);
      return rpc.call(method, params, options);
    },
    close: async () => {},
  });
  const send = async (round: string) => {
    const calls = Array.from({ length: 12 }, (_, n) => setting.call(`${round} ${n}`));
    const mined = await Promise.all(calls.map((call) => relayer.send(call, WAIT_MS)));
    assert(mined.every((each) => each?.status === 'success'));
  };
  await send('at once');
  // What was found dry is not asked any more; of twelve keys' turns some went to one that was.
  const found = [...asked];
  assert(found.length > 0);
  asked.clear();
  await send('from then on');
  assert(!found.some((address) => asked.has(address)));
  const by = new Set((await setting.rows()).map(({ address }) => address));
  assert.deepEqual([...by], [funded]);
});

test('without a key that can pay nothing is stored and no nonce is used; what is on its way counts as spent', async (t) => {
  const setting = await settingOf(t, [0n]);
  const [address] = setting.addresses;
  assert(address !== undefined);
  const relayer = setting.relayer();
  await assert.rejects(relayer.send(setting.call('a'), WAIT_MS), OutOfGas);
  assert.deepEqual(await setting.rows(), []);

  await chain.client.setAutomine(false);
  const { maxFeePerGas } = await relayer.fees();
  await chain.client.setBalance({ address, value: (GAS * maxFeePerGas * 5n) / 2n });
  const sent = await Promise.allSettled(['a', 'b', 'c'].map((id) => relayer.send(setting.call(id), 0)));
  assert.deepEqual(sent.map(({ status }) => status).toSorted(), ['fulfilled', 'fulfilled', 'rejected']);
  await assert.rejects(relayer.send(setting.call('d'), 0), OutOfGas);
  assert.equal((await setting.rows()).length, 2);
  // What is on its way is found, not refused.
  const [first] = await setting.rows();
  assert.equal(await relayer.send({ ...setting.call(first?.id ?? ''), again: true }, 0), null);

  await chain.client.setBalance({ address, value: 10n ** 18n });
  await chain.client.setAutomine(true);
  await chain.client.mine({ blocks: 1 });
  assert.equal((await relayer.send(setting.call('d'), WAIT_MS))?.status, 'success');
  assert.equal(await chain.client.getTransactionCount({ address }), 3);
});

test('a key that cannot pay for its trial is no reason to say that the transaction would fail', async (t) => {
  const dry = await settingOf({ name: `${t.name}, alone` }, [0n]);
  // Tried as it is sent: with fees.
  const measured = { id: 'a', data: '0x1234' as Hex, maxCostWei: 10n ** 18n };
  await assert.rejects(dry.relayer().send({ ...measured, to: dry.target }, WAIT_MS), OutOfGas);
  const setting = await settingOf(t, [0n, 10n ** 18n, 0n, 0n]);
  assert.equal(
    (await setting.relayer().send({ ...measured, to: setting.target }, WAIT_MS))?.status,
    'success',
  );
});

test('a node that does not say what a key holds does not keep it from sending', async (t) => {
  const setting = await settingOf(t, [10n ** 18n]);
  const relayer = setting.relayer(nodeWithout('eth_getBalance'));
  assert.equal((await relayer.send(setting.call('a'), WAIT_MS))?.status, 'success');
});

test('what is written down as spent is what the key lost, each transaction once: mined, failed, replaced', async (t) => {
  const setting = await settingOf(t, [10n ** 18n]);
  const [address] = setting.addresses;
  assert(address !== undefined);
  const [here, there] = [
    setting.relayer(nodeWithout('eth_sendRawTransactionSync')),
    setting.relayer(nodeWithout('eth_sendRawTransactionSync')),
  ];
  const both = () => Promise.all([here.resume(), there.resume()]);
  for (const id of ['a', 'b']) assert.equal((await here.send(setting.call(id), WAIT_MS))?.status, 'success');
  await chain.client.setCode({ address: setting.target, bytecode: REVERT });
  assert.equal((await there.send(setting.call('fails'), WAIT_MS))?.status, 'reverted');
  await chain.client.setCode({ address: setting.target, bytecode: STOP });

  await chain.client.setAutomine(false);
  assert.equal(await here.send(setting.call('replaced'), 0), null);
  await chain.client.setCode({ address: setting.target, bytecode: REVERT });
  setting.passMs(31_000);
  await here.resume();
  await chain.client.mine({ blocks: 1 });
  await chain.client.setAutomine(true);
  setting.passMs(11_000);
  await both();
  setting.passMs(11_000);
  await both();
  assert.deepEqual(
    (await setting.rows()).map(({ id, state }) => [id, state]),
    [
      ['a', 1],
      ['b', 1],
      ['fails', 2],
      ['replaced', 3],
    ],
  );
  const lost = 10n ** 18n - (await chain.client.getBalance({ address }));
  assert.deepEqual(await setting.spent(), [[address.toLowerCase(), 4, 4, lost]]);
});
