/** Tests what a relayer does when replicas, the node or the chain itself do what they seldom do. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { keccak256, parseTransaction } from 'viem';
import type { TestChain } from '../../../../apps/shop/test/chain.fixture.ts';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { type Rpc, RpcRefusal, RpcUnreachable } from '../chain-rpc/json-rpc.ts';
import { connectDatabase } from '../db/connection.ts';
import type { MinedTransaction } from './node-reply.ts';
import { type RelayerStage, startRelayerStage } from './relayer.fixture.ts';
import { OutOfGas } from './to-send.ts';

const SEND_AND_WAIT = 'eth_sendRawTransactionSync';
const SEND_METHODS = ['eth_sendRawTransaction', SEND_AND_WAIT];
const WAIT_MS = 20_000;

let stage: RelayerStage;
let chain: TestChain;
let rpc: Rpc;
before(async () => {
  stage = await startRelayerStage();
  ({ chain, rpc } = stage);
});
afterEach(() => chain.client.setAutomine(true));
after(() => stage?.close());

const settingOf: RelayerStage['setting'] = (...given) => stage.setting(...given);
const nodeThat: RelayerStage['nodeThat'] = (...given) => stage.nodeThat(...given);

/** The fees of what was signed last under the first nonce. */
async function feesOf(setting: {
  rows: Awaited<ReturnType<RelayerStage['setting']>>['rows'];
}): Promise<{ maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }> {
  const [row] = await setting.rows();
  assert(row !== undefined);
  const { maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(row.raw);
  return { maxFeePerGas, maxPriorityFeePerGas };
}

const notKnown = (method: string) => new RpcRefusal(method, -32601, 'Method not found', undefined);
const cutOff = (method: string) => new RpcUnreachable(method, new Error('cut off'));
const withoutSync = () =>
  nodeThat([SEND_AND_WAIT], async (method) => {
    throw notKnown(method);
  });

function succeeded(sent: readonly PromiseSettledResult<MinedTransaction | null>[]): MinedTransaction[] {
  return sent.map((each) => {
    if (each.status === 'rejected') throw each.reason;
    assert(each.value !== null);
    assert.equal(each.value.status, 'success');
    return each.value;
  });
}

test('the first transactions of two replicas at the same moment: none fails, no nonce twice, no gap', async (t) => {
  const setting = await settingOf(t);
  const sent = await Promise.allSettled(
    Array.from({ length: 4 }, (_, index) => setting.relayer().send(setting.call(`call ${index}`), WAIT_MS)),
  );
  assert.equal(new Set(succeeded(sent).map(({ hash }) => hash)).size, 4);
  assert.deepEqual(
    (await setting.rows()).map(({ nonce }) => Number(nonce)),
    [0, 1, 2, 3],
  );
  assert.equal(await setting.mined(), 4);
});

test('one id asked for 20 times at once is one transaction, though it is mined while some are still on their way', async (t) => {
  const setting = await settingOf(t);
  const relayer = setting.relayer();
  const copies = await Promise.allSettled(
    Array.from({ length: 20 }, () => relayer.send(setting.call('a'), WAIT_MS)),
  );
  assert.equal(new Set(succeeded(copies).map(({ hash }) => hash)).size, 1);
  assert.equal(await setting.mined(), 1);
});

for (const [whose, keyOfOther, keyOfThis] of [
  ['the same key', 0, 0],
  ['another key', 0, 1],
] as const) {
  test(`one that is mined by another replica with ${whose} while this one measures its gas is not sent again`, async (t) => {
    const setting = await settingOf(t, 2);
    const { gasLimit: _, ...measured } = setting.call('refund');
    const keyOf = (index: number) => setting.keys.slice(index, index + 1);
    const other = setting.relayer(rpc, keyOf(keyOfOther));
    const slow = nodeThat(['eth_estimateGas'], async (_method, ask) => {
      await other.send(measured, WAIT_MS);
      return ask();
    });
    const relayer = setting.relayer(slow, keyOf(keyOfThis));
    // From its second transaction on it expects its nonce.
    await relayer.send(setting.call('first'), WAIT_MS);
    await relayer.send(measured, WAIT_MS);
    assert.deepEqual((await setting.rows()).map(({ id }) => id).toSorted(), ['first', 'refund']);
  });
}

test('a key that no other process uses begins a transaction of the database once, and two that share it stay right', async (t) => {
  const setting = await settingOf(t);
  let begun = 0;
  const counting = new Proxy(stage.database.sql, {
    get(sql, name) {
      if (name === 'begin') begun += 1;
      const found = Reflect.get(sql, name);
      return typeof found === 'function' ? found.bind(sql) : found;
    },
  });
  const relayer = setting.relayer(rpc, setting.keys, counting);
  for (const id of ['a', 'b', 'c'])
    assert.equal((await relayer.send(setting.call(id), WAIT_MS))?.status, 'success');
  assert.equal(begun, 1);
  assert.equal((await setting.relayer().send(setting.call('another process'), WAIT_MS))?.status, 'success');
  relayer.prepare();
  for (const id of ['d', 'e'])
    assert.equal((await relayer.send(setting.call(id), WAIT_MS))?.status, 'success');
  assert.equal(begun, 2);
  assert.equal(await setting.mined(), 6);
});

test('a key promises no more than it holds, however many wait and however they are stored', async (t) => {
  const setting = await settingOf(t);
  const node = withoutSync();
  const relayer = setting.relayer(node);
  assert.equal((await relayer.send(setting.call('first'), WAIT_MS))?.status, 'success');
  await chain.client.setAutomine(false);
  const { maxFeePerGas } = await relayer.fees();
  const COUNT = 230;
  // Enough for 215: the first ones are stored as expected, and the last ones only after a look at the balance.
  await chain.client.setBalance({ address: setting.address, value: 215n * 60_000n * maxFeePerGas });
  const sendAll = (from: number, to: number) =>
    Promise.allSettled(
      Array.from({ length: to - from }, (_, index) => relayer.send(setting.call(`call ${from + index}`), 0)),
    );
  const sent = await sendAll(0, 190);
  for (let index = 190; index < COUNT; index++) sent.push(...(await sendAll(index, index + 1)));
  const refused = sent.filter((each) => each.status === 'rejected' && each.reason instanceof OutOfGas);
  assert.equal(refused.length, COUNT - 215);
  assert.equal((await setting.rows()).length, 216);
});

test('the same purposes that two keys take in opposite orders are sent once each: neither waits for the other', async (t) => {
  const setting = await settingOf(t, 2);
  const ready = Promise.withResolvers<void>();
  let batches = 0;
  let looks = 0;
  const node = nodeThat(['eth_getTransactionCount', 'eth_getTransactionReceipt'], async (method, ask) => {
    if (method === 'eth_getTransactionReceipt') looks += 1;
    else if (++batches > 2) await ready.promise;
    return ask();
  });
  // They wait for a lock here, on a slow machine for longer than a request may.
  const patient = connectDatabase(stage.database.url, 4);
  t.after(() => patient.end({ timeout: 1 }));
  const sent: Promise<MinedTransaction | null>[] = [];
  for (const [index, ids] of [
    ['a', 'between', 'b'],
    ['b', 'between', 'a'],
  ].entries()) {
    const relayer = setting.relayer(node, setting.keys.slice(index, index + 1), patient);
    // The first one is stored alone. Those that come meanwhile are the next batch, in this order.
    for (const id of [`first of ${index}`, ...ids])
      sent.push(relayer.send({ ...setting.call(id), again: true }, WAIT_MS));
  }
  const settled = Promise.allSettled(sent);
  await Promise.all([sent[0], sent[4]]);
  // Nothing is mined before both have stored: what is mined may be sent again.
  await chain.client.setAutomine(false);
  looks = 0;
  // Somebody else is about to store the purpose between: each of the two has stored what it has before it.
  const blocked = patient.begin(async (transaction) => {
    await transaction`set local idle_in_transaction_session_timeout = 0`;
    await transaction`
      insert into relayer_transactions (network, address, nonce, id, to_address, data, gas_limit, max_fee_wei, raw,
                                        hashes, created_at, sent_at)
      values (${t.name}, 'somebody', 0, 'between', '', '', 0, 0, '', '{}', now(), now())`;
    ready.resolve();
    await until('both to wait for a lock', async () => {
      const [count] = await stage.database.patient<{ waiting: number }[]>`
        select count(*)::integer as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into relayer_transactions%'`;
      return count?.waiting === 2;
    });
    throw new Error('rolled back');
  });
  await assert.rejects(blocked, /rolled back/);
  await until('one to find them taken', () => looks > 0);
  await chain.client.setAutomine(true);
  await chain.client.mine({ blocks: 1 });
  assert.equal(new Set(succeeded(await settled).map(({ hash }) => hash)).size, 5);
});

test('one id that several keys take at once is one transaction, and holds up no other', async (t) => {
  const setting = await settingOf(t, 4);
  const relayer = setting.relayer(withoutSync());
  const sent = await Promise.allSettled(
    Array.from({ length: 12 }, (_, index) =>
      relayer.send(setting.call(index % 2 === 0 ? 'a' : `other ${index}`), WAIT_MS),
    ),
  );
  const hashes = succeeded(sent).map(({ hash }) => hash);
  assert.equal(new Set(hashes.filter((_, index) => index % 2 === 0)).size, 1);
  assert.equal(new Set(hashes).size, 7);
});

for (const [when, others, pauseMs] of [
  ['long after', ['a', 'b'], 61_000],
  ['at once', ['a'], 1_000],
] as const)
  test(`a chain that was put back takes the nonces it forgot once more, ${when}`, async (t) => {
    const setting = await settingOf(t);
    // A node keeps whoever waits for a nonce behind a gap: here for half a second.
    const impatient = nodeThat([SEND_AND_WAIT], (method, ask) =>
      Promise.race([
        ask(),
        sleep(500).then(() => {
          throw cutOff(method);
        }),
      ]),
    );
    const relayer = setting.relayer(when === 'at once' ? withoutSync() : impatient);
    const id = await chain.client.snapshot();
    for (const other of others)
      assert.equal((await relayer.send(setting.call(other), WAIT_MS))?.status, 'success');
    await chain.client.revert({ id });
    setting.passMs(pauseMs);
    await relayer.send(setting.call('c'), 0);
    for (let round = 0; round < 4; round += 1) {
      setting.passMs(11_000);
      await relayer.resume();
    }
    assert.equal((await relayer.send(setting.call('c'), 0))?.status, 'success');
  });

test('while a key has no gas its fees are not raised beyond what it can pay once it has some', async (t) => {
  const setting = await settingOf(t);
  const { address } = setting;
  const unheard = nodeThat(SEND_METHODS, async (method) => {
    throw cutOff(method);
  });
  assert.equal(await setting.relayer(unheard).send(setting.call('a'), 0), null);
  await chain.client.setBalance({ address, value: 0n });
  const relayer = setting.relayer(withoutSync());
  const first = await feesOf(setting);
  for (let round = 0; round < 90; round += 1) {
    setting.passMs(11_000);
    await relayer.resume();
  }
  const last = await feesOf(setting);
  assert(last.maxFeePerGas > first.maxFeePerGas, 'it was never raised');
  assert(last.maxFeePerGas <= first.maxFeePerGas * 20n, `raised to ${last.maxFeePerGas} wei`);
  await chain.client.setBalance({ address, value: 10n ** 18n });
  for (let round = 0; round < 3; round += 1) {
    setting.passMs(11_000);
    await relayer.resume();
  }
  assert.equal(await setting.mined(), 1, 'one ether is enough for a transaction');
});

for (const [how, receipt] of [
  ['does not find its receipt', async () => null],
  [
    'does not say what became of it',
    async (method: string) => {
      throw cutOff(method);
    },
  ],
  ['sends a receipt that cannot be read', async () => ({ status: {} })],
] as const)
  test(`a node that counts the nonce and ${how}: sent once all the same`, async (t) => {
    const setting = await settingOf(t);
    const node = nodeThat([...SEND_METHODS, 'eth_getTransactionReceipt'], async (method, ask) => {
      if (method === 'eth_getTransactionReceipt') return receipt(method);
      await ask();
      throw cutOff(method);
    });
    assert.equal(await setting.relayer(node).send(setting.call('refund'), 0), null);
    setting.passMs(31_000);
    await setting
      .relayer(node)
      .resume()
      .catch(() => {});
    assert.equal((await setting.relayer().send(setting.call('refund'), WAIT_MS))?.status, 'success');
    assert.equal(await setting.mined(), 1);
  });

test('the tip is raised by a tenth too when most of the fee is the tip', async (t) => {
  const setting = await settingOf(t);
  const node = nodeThat([SEND_AND_WAIT, 'eth_maxPriorityFeePerGas'], async (method) => {
    if (method === SEND_AND_WAIT) throw notKnown(method);
    return '0x6fc23ac00';
  });
  const relayer = setting.relayer(node);
  await chain.client.setAutomine(false);
  await relayer.send(setting.call('a'), 0);
  const before = await feesOf(setting);
  assert.equal(before.maxPriorityFeePerGas, 30_000_000_000n);
  setting.passMs(31_000);
  await relayer.resume();
  const now = await feesOf(setting);
  assert(now.maxPriorityFeePerGas * 10n >= before.maxPriorityFeePerGas * 11n);
});

test('a node that refuses to try it out has not said that it would fail', async (t) => {
  const setting = await settingOf(t);
  const node = nodeThat([SEND_AND_WAIT, 'eth_call'], async (method) => {
    if (method === SEND_AND_WAIT) throw notKnown(method);
    throw new RpcRefusal(method, -32005, 'limit exceeded', undefined);
  });
  const relayer = setting.relayer(node);
  await chain.client.setAutomine(false);
  await relayer.send(setting.call('a'), 0);
  setting.passMs(31_000);
  await relayer.resume();
  assert.deepEqual(
    (await setting.rows()).map(({ filler }) => filler),
    [null],
  );
});

for (const [what, count, receipt] of [
  [
    'refuses',
    // More than one look takes.
    60,
    async (method: string) => {
      throw new RpcRefusal(method, -32000, 'this one I do not look up', undefined);
    },
  ],
  ['never says', 30, (_method: string, gone: Promise<null>) => gone],
] as const)
  test(`one whose fate the node ${what}: those behind it have their turn`, async (t) => {
    const setting = await settingOf(t, 3);
    const isBad = (params: readonly unknown[]) => params[0] === bad;
    let bad: unknown = null;
    const sent: unknown[] = [];
    const gone = Promise.withResolvers<null>();
    gone.promise.catch(() => {});
    const node: Rpc = {
      call(method, params, options) {
        if (SEND_METHODS.includes(method)) {
          sent.push(params[0]);
          return Promise.reject(cutOff(method));
        }
        if (method === 'eth_getTransactionReceipt' && isBad(params)) return receipt(method, gone.promise);
        return rpc.call(method, params, options);
      },
      close: async () => {},
    };
    const relayer = setting.relayer(node);
    for (let n = 0; n < count; n += 1) await relayer.send(setting.call(`call ${n}`), 0);
    const rows = await setting.rows();
    const [first] = rows.toSorted((a, b) => Number(a.nonce - b.nonce));
    assert(first !== undefined);
    bad = keccak256(first.raw);
    sent.length = 0;
    setting.passMs(11_000);
    const resumed = relayer.resume();
    const told = assert.rejects(resumed, what === 'refuses' ? /I do not look up/ : /gone/);
    const others = rows.map(({ raw }) => raw).filter((raw) => raw !== first.raw);
    await until('all others to be sent', async () => others.every((raw) => sent.includes(raw)));
    gone.reject(new Error('gone'));
    await told;
    assert(!sent.includes(first.raw), 'what may be mined is not raised');
  });

test('a relayer with other keys leaves a transaction to the one that can send it again, unless nobody does', async (t) => {
  const [setting, other] = [await settingOf(t), await settingOf(t)];
  let isLost = true;
  const losing = nodeThat(SEND_METHODS, async (method, ask) => {
    if (isLost) throw cutOff(method);
    return ask();
  });
  const relayer = setting.relayer(losing);
  assert.equal(await relayer.send(setting.call('a'), 10), null);
  isLost = false;
  for (const each of [setting, other]) each.passMs(10_000);
  assert.equal(await other.relayer().resume(), 1, 'it is pending');
  await relayer.resume();
  await until('it to be mined', async () => (await setting.mined()) === 1);
  // Its key is gone from the configuration: what became of it is seen all the same.
  other.passMs(200_000);
  assert.equal(await other.relayer().resume(), 0);
});
