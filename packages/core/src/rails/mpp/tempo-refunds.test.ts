/**
 * Refunds on the sandbox's Tempo: each call is refunded once, however often it is asked for and whatever happens to the
 * node and the process.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type Address, erc20Abi, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { type NodeFault, startNodeWire } from '../../../../../apps/shop/test/fire/x402-node.fixture.ts';
import { SEED } from '../../../../sandbox/src/accounts.fixture.ts';
import { USDC_E } from '../../../../sandbox/src/tempo/addresses.ts';
import { fundTempo } from '../../../../sandbox/src/tempo/faucet.ts';
import { connect } from '../../../../sandbox/src/tempo/node.ts';
import { startTempo, type TempoChain } from '../../../../sandbox/src/tempo/tempo.ts';
import { connectRpc } from '../../chain-rpc/json-rpc.ts';
import { createEndingSender } from '../../relayer/ending-sender.ts';
import { tempoChain, tempoGas, tempoRefunds } from './tempo-refunds.ts';

const CHAIN_ID = 4217;
const SEND = 'eth_sendRawTransaction';
const AMOUNT = 50_000n;

let chain: TempoChain;
let database: TestDatabase;
before(async () => {
  [chain, database] = await Promise.all([startTempo({ seed: SEED, stateDir: null }), openTestDatabase()]);
});
after(() => Promise.all([chain?.stop(), database?.close()]));

const holds = (account: Address): Promise<bigint> =>
  connect(chain.url).readContract({
    address: USDC_E,
    abi: erc20Abi,
    functionName: 'balanceOf',
    args: [account],
  });

/** A key with its own rows, a payee, a connection to the node that can be disturbed, and any number of processes. */
async function setting(test: { name: string }, usdcMicros = 1_000_000n) {
  const privateKey = generatePrivateKey();
  const { address } = privateKeyToAccount(privateKey);
  if (usdcMicros > 0n) await fundTempo(chain.url, address, usdcMicros);
  const payee = privateKeyToAccount(generatePrivateKey()).address;
  const wire = await startNodeWire(chain.url);
  const rpcs: ReturnType<typeof connectRpc>[] = [];
  let aheadMs = 0;
  const refund = { callId: randomUUID(), network: 'eip155:4217', asset: USDC_E, payee, amountUnits: AMOUNT };
  return {
    address,
    payee,
    wire,
    refund,
    pass(ms: number) {
      aheadMs += ms;
    },
    rpc() {
      const rpc = connectRpc(wire.url, { timeoutMs: 5_000 });
      rpcs.push(rpc);
      return rpc;
    },
    process() {
      const rpc = this.rpc();
      const sender = createEndingSender({
        sql: database.sql,
        network: test.name,
        chain: tempoChain(rpc),
        nowMs: () => Date.now() + aheadMs,
      });
      const refunds = tempoRefunds({ rpc, sender, chainId: CHAIN_ID, key: privateKey });
      return { refund: () => refunds.refund(refund), resume: () => sender.resume() };
    },
    rows: async () =>
      (
        await database.sql<{ state: number }[]>`
        select state from ending_transactions where network = ${test.name} order by created_at`
      ).map(({ state }) => state),
    async close() {
      wire.mend();
      await Promise.all(rpcs.map((rpc) => rpc.close()));
      await wire.close();
    },
  };
}

test('four processes ask for a refund at once, and again later: one transfer, which names the call', async (t) => {
  const it = await setting(t);
  const said = await Promise.all(Array.from({ length: 4 }, () => it.process().refund()));
  said.push(await it.process().refund());
  const [hash] = new Set(said.filter((each) => each !== null));
  assert(hash !== undefined && said.every((each) => each === null || each === hash), String(said));
  assert.equal(await holds(it.payee), AMOUNT);
  const receipt = await connect(chain.url).getTransactionReceipt({ hash: hash as Hex });
  const memo = it.refund.callId.replaceAll('-', '');
  assert(receipt.logs.some(({ topics, data }) => [...topics, data].some((word) => word?.includes(memo))));
  assert.deepEqual(await it.rows(), [1]);
  await it.close();
});

const FAULTS: readonly [string, NodeFault][] = [
  ['gets lost on its way', 'request lost'],
  ['is taken, and the reply lost', 'reply lost'],
  ['is taken, and the node says no', { did: true, says: { error: { code: -32003, message: 'rejected' } } }],
  ['is not taken, and the node says yes', { did: false, says: { result: `0x${'12'.repeat(32)}` } }],
];
for (const [what, fault] of FAULTS) {
  test(`a refund that ${what}: one transfer`, async (t) => {
    const it = await setting(t);
    it.wire.next(SEND, fault);
    const first = await it.process().refund();
    it.wire.mend();
    it.pass(3_000);
    await it.process().resume();
    const hash = (await it.process().refund()) ?? (await it.process().refund());
    assert(hash !== null && (first === null || first === hash));
    assert.equal(await holds(it.payee), AMOUNT);
    assert.deepEqual(await it.rows(), [1]);
    await it.close();
  });
}

test('a process is killed between storing and sending: the next one sends the same transaction', async (t) => {
  const it = await setting(t);
  // Nothing that the first process sends arrives.
  it.wire.next(SEND, 'request lost', 100);
  assert.equal(await it.process().refund(), null);
  it.wire.mend();
  it.pass(3_000);
  assert.equal(await it.process().resume(), 1);
  assert.notEqual(await it.process().refund(), null);
  assert.equal(await holds(it.payee), AMOUNT);
  assert.deepEqual(await it.rows(), [1]);
  await it.close();
});

test('the stored cost of a refund equals what the key lost, however often it is asked', async (t) => {
  const it = await setting(t);
  await Promise.all(Array.from({ length: 3 }, () => it.process().refund()));
  it.pass(3_000);
  await it.process().resume();
  const feeUnits = 1_000_000n - AMOUNT - (await holds(it.address));
  const spent = await database.sql<{ address: string; transactions: number; spent: string }[]>`
    select address, transactions, spent::text from gas_spent where network = ${t.name}`;
  assert(feeUnits > 0n);
  assert.deepEqual(
    spent.map((row) => ({ ...row })),
    [{ address: it.address.toLowerCase(), transactions: 1, spent: String(feeUnits) }],
  );
  const gas = tempoGas(it.rpc(), USDC_E);
  assert.equal(await gas.balanceOf(it.address), await holds(it.address));
  // The estimate is not below the real cost, and of the same order. Estimates follow the real chain, whose first nonces
  // cost more than these.
  const cost = await gas.cost();
  assert(cost >= feeUnits && cost <= feeUnits * 5n, `${cost} is reckoned, ${feeUnits} was paid`);
  await it.close();
});

test('a silent node is asked again, and nothing is sent twice', async (t) => {
  const it = await setting(t);
  it.wire.cut();
  assert.equal(await it.process().refund(), null);
  assert.deepEqual(await it.rows(), []);
  it.wire.mend();
  assert.notEqual(await it.process().refund(), null);
  assert.equal(await holds(it.payee), AMOUNT);
  await it.close();
});

test('a key without funds sends nothing, until it has some', async (t) => {
  const it = await setting(t, 0n);
  assert.equal(await it.process().refund(), null);
  assert.deepEqual(await it.rows(), []);
  await fundTempo(chain.url, it.address, 1_000_000n);
  assert.notEqual(await it.process().refund(), null);
  assert.equal(await holds(it.payee), AMOUNT);
  await it.close();
});

// The last test, because it advances the chain's clock.
test('a refund that was lost until its end: another one is sent, and the first can no longer be mined', async (t) => {
  const it = await setting(t);
  it.wire.next(SEND, 'request lost', 100);
  assert.equal(await it.process().refund(), null);
  it.wire.mend();
  const node = connect(chain.url);
  await node.increaseTime({ seconds: 200 });
  await node.mine({ blocks: 1 });
  const hash = await it.process().refund();
  assert.notEqual(hash, null);
  assert.deepEqual(await it.rows(), [3, 1]);
  const [first] = await database.sql<{ raw: Hex }[]>`
    select raw from ending_transactions where network = ${t.name} and state = 3`;
  await assert.rejects(
    node.request({ method: 'eth_sendRawTransaction', params: [first?.raw ?? '0x'] } as never),
  );
  assert.equal(await holds(it.payee), AMOUNT);
  await it.close();
});
