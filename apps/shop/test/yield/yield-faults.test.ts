/**
 * The vault's API and its index over a node that answers wrongly, late in another way, or not at all: nothing is made up, nothing
 * is handed out that nobody simulated, and what was read before stays.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type Hex, numberToHex } from 'viem';
import { createIndexer } from '../../../../packages/yield/src/evm/indexer.ts';
import { openNode } from '../../../../packages/yield/src/evm/node.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type NodeFault, type NodeWire, startNodeWire } from '../fire/x402-node.fixture.ts';
import { startYieldWorld, type Wallet, type YieldWorld } from '../yield.fixture.ts';

const USD = 1_000_000n;
const MINUTE_MS = 60_000;
const MANY = 1_000;
/** More than is read of one answer. */
const TOO_LONG = 'x'.repeat(6_000_000);

let database: TestDatabase;
let wire: NodeWire;
let world: YieldWorld;
let holder: Wallet;
/** How far the server's clock is ahead: what it kept is too old each time that this grows. */
let aheadMs = 0;
before(async () => {
  database = await openTestDatabase();
  world = await startYieldWorld(database, {
    nowMs: () => Date.now() + aheadMs,
    async through(nodeUrl) {
      wire = await startNodeWire(nodeUrl);
      return wire.url;
    },
  });
  holder = await world.wallet(200n * USD);
  await depositOf(holder);
});
after(async () => {
  await world?.stop();
  await wire?.close();
  await database?.close();
});
afterEach(() => wire.mend());

async function depositOf(wallet: Wallet): Promise<void> {
  const { steps } = await world.answer(`deposit-tx?recipient=${wallet.address}&amount=10`);
  await wallet.send(steps);
}

const index = async () => {
  const job = world.server.app.jobs.find(({ name }) => name === 'yield-index');
  assert(job !== undefined);
  await job.run();
};
const depositors = async () =>
  (
    await database.sql<{ to_wallet: string }[]>`
      SELECT to_wallet FROM yield_moves WHERE kind = 'deposit' ORDER BY block_number, log_index`
  ).map(({ to_wallet }) => to_wallet);

const says = (reply: { result: unknown } | { error: { code: number; message: string } }): NodeFault => ({
  did: false,
  says: reply,
});

const REFUSALS: Readonly<Record<string, NodeFault>> = {
  'is lost': 'request lost',
  'is over a limit': says({ error: { code: -32_005, message: 'limit exceeded' } }),
  'is about a block that the node lacks': says({ error: { code: -32_000, message: 'header not found' } }),
  'is no method of the node': says({ error: { code: -32_601, message: 'the method does not exist' } }),
  'is answered with null': says({ result: null }),
  'is answered with nothing': says({ result: '0x' }),
  'is answered with words': says({ result: 'whatever' }),
  'is answered with an object': says({ result: { calls: [] } }),
  'is answered with more than a word': says({ result: `0x${'f'.repeat(400)}` }),
  'is answered at length': says({ result: TOO_LONG }),
};

test('whatever a node says instead of an answer is a 503, and no figure and no transaction', async () => {
  const paths = [
    'rates',
    'stats',
    `position/${holder.address}`,
    `deposit-tx?recipient=${holder.address}&amount=10`,
    `deposit-tx?recipient=${holder.address}&amount=10&mode=permit`,
    `redeem-tx?wallet=${holder.address}`,
  ];
  let refused = 0;
  for (const path of paths) {
    aheadMs += MINUTE_MS;
    const before = new Map(wire.asked);
    await world.answer(path);
    const methods = [...wire.asked].flatMap(([method, times]) =>
      times > (before.get(method) ?? 0) ? [method] : [],
    );
    for (const method of methods)
      for (const [what, fault] of Object.entries(REFUSALS)) {
        aheadMs += MINUTE_MS;
        wire.next(method, fault, MANY);
        const { status, body } = await world.refusal(path);
        wire.mend();
        const where = `${path}, where ${method} ${what}: ${status} ${JSON.stringify(body).slice(0, 300)}`;
        // A wallet may have any code, and a position's yield is null with the reason where the events cannot be read.
        const canDoWithout = method === 'eth_getCode' || /^eth_(blockNumber|getLogs|getBlock)/.test(method);
        assert(status === 503 || (status < 500 && canDoWithout), where);
        if (status < 500) continue;
        refused += 1;
        const isUnknown = method === 'eth_simulateV1' && what === 'is no method of the node';
        assert.equal(body.code, isUnknown ? 'CANNOT_SIMULATE' : 'CHAIN_UNAVAILABLE', where);
        assert(body.retryAfterSeconds > 0, where);
        assert(!('steps' in body) && !('position' in body), where);
      }
    await world.answer(path);
  }
  assert(refused > 100, `${refused} refusals were seen`);
});

test('a simulation that says that all is well, and nothing else, is none', async () => {
  const call = (over: object) => ({ status: '0x1', gasUsed: '0x5208', returnData: '0x', logs: [], ...over });
  for (const over of [{}, { gasUsed: '0x' }, { status: '0x' }, { status: 1 }, { returnData: '0x01' }])
    for (const path of [
      `deposit-tx?recipient=${holder.address}&amount=10&mode=permit`,
      `redeem-tx?wallet=${holder.address}`,
      `redeem-tx?wallet=${holder.address}&how=in-kind`,
    ]) {
      wire.next('eth_simulateV1', says({ result: [{ calls: [call(over)] }] }), MANY);
      const { status, body } = await world.refusal(path);
      wire.mend();
      assert.deepEqual([status, body.code], [503, 'CHAIN_UNAVAILABLE'], `${path} ${JSON.stringify(over)}`);
    }
});

test('a node that serves another chain by now is not believed', async () => {
  const setChain = (id: number) =>
    world.client.request({ method: 'anvil_setChainId', params: [id] } as never);
  await setChain(1);
  try {
    for (const path of ['rates', `position/${holder.address}`, `redeem-tx?wallet=${holder.address}`]) {
      aheadMs += MINUTE_MS;
      const { status, body } = await world.refusal(path);
      assert.deepEqual([status, body.code], [503, 'CHAIN_UNAVAILABLE'], path);
    }
  } finally {
    await setChain(8453);
  }
});

test('a node that is far behind what was seen is not believed, and one that is a little behind is', async () => {
  const id = await world.client.snapshot();
  await world.client.mine({ blocks: 100 });
  const { readAt } = await world.answer(`position/${holder.address}`);
  await world.client.revert({ id });
  const paths = ['stats', `position/${holder.address}`, `redeem-tx?wallet=${holder.address}`];
  for (const path of paths) {
    aheadMs += MINUTE_MS;
    const { status, body } = await world.refusal(path);
    assert.deepEqual([status, body.code], [503, 'CHAIN_UNAVAILABLE'], path);
  }
  await world.client.mine({ blocks: 85 });
  for (const path of paths) {
    const told = await world.answer(path);
    const { blockNumber } = told.readAt ?? told.simulatedAt;
    assert(Number(blockNumber) < Number(readAt.blockNumber), path);
  }
  await world.client.mine({ blocks: 40 });
});

test('a node that is behind takes nothing back that was read of another one', async () => {
  const wallet = await world.wallet(20n * USD);
  await depositOf(wallet);
  await index();
  const before = await depositors();
  assert.equal(before.at(-1), wallet.address.toLowerCase());
  const newest = await world.client.getBlockNumber();
  const behind = newest - 3n;
  for (const knowsItsNewest of [true, false]) {
    // Behind one address there may be two nodes: the one that says how far the chain is need not be the one that is asked next.
    wire.answerWith((method, params) => {
      if (method === 'eth_blockNumber') return numberToHex(knowsItsNewest ? behind : newest);
      return method === 'eth_getBlockByNumber' && BigInt(params[0] as Hex) > behind ? null : undefined;
    });
    await index();
    assert.deepEqual(await depositors(), before);
  }
  wire.mend();
  const { position } = await world.answer(`position/${wallet.address}`);
  assert.equal(position.depositedUsdc, '10.000000');
});

test('events whose block the node does not know yet are read again, and never dated by a guess', async () => {
  const wallet = await world.wallet(20n * USD);
  await index();
  await depositOf(wallet);
  const { number } = await world.client.getBlock();
  await world.client.mine({ blocks: 3 });
  wire.answerWith((method, params) =>
    method === 'eth_getBlockByNumber' && BigInt(params[0] as Hex) === number ? null : undefined,
  );
  await index();
  wire.mend();
  await index();
  const [row] = await database.sql<{ at: Date }[]>`
    SELECT at FROM yield_moves WHERE kind = 'deposit' ORDER BY block_number DESC LIMIT 1`;
  const block = await world.client.getBlock({ blockNumber: number });
  assert.equal(row?.at.getTime(), Number(block.timestamp) * 1_000);
});

test('more events than fit in an answer are read all the same, one transaction after the other', async () => {
  await index();
  const sinceBlock = Number(await world.client.getBlockNumber()) + 1;
  const wallet = await world.wallet(20n * USD);
  await depositOf(wallet);
  await world.client.mine({ blocks: 5 });
  for (const how of ['at length', 'with a limit'] as const) {
    const reply =
      how === 'at length' ? { result: TOO_LONG } : { error: { code: -32_005, message: 'too many' } };
    wire.next('eth_getLogs', says(reply), MANY);
    const node = openNode(wire.url);
    try {
      await database.sql`DELETE FROM yield_index`;
      await database.sql`TRUNCATE yield_marks, yield_moves`;
      const its = createIndexer(database.sql, node, { vault: world.chain.vault, sinceBlock });
      // A round that met an answer that is too long asks for less in the next.
      for (let rounds = 0; rounds < 100 && (await depositors()).length === 0; rounds += 1)
        await its.catchUp().catch(() => null);
      assert.deepEqual(await depositors(), [wallet.address.toLowerCase()], how);
    } finally {
      wire.mend();
      await node.close();
    }
  }
  await database.sql`DELETE FROM yield_index`;
  await database.sql`TRUNCATE yield_marks, yield_moves`;
  await index();
  assert((await depositors()).length > 2);
});

test('a node that answers other events than it was asked for is not believed', async () => {
  await index();
  const before = await depositors();
  const params = [{ address: world.chain.vault, fromBlock: '0x0', toBlock: 'latest' }];
  const all = (await world.client.request({ method: 'eth_getLogs', params } as never)) as object[];
  await world.client.mine({ blocks: 1 });
  const { number, hash } = await world.client.getBlock();
  const placed = { blockNumber: numberToHex(number), blockHash: hash };
  for (const told of [all, all.map((log) => ({ ...log, ...placed, address: holder.address }))]) {
    wire.next('eth_getLogs', says({ result: told }), MANY);
    await index().catch(() => {});
    wire.mend();
    assert.deepEqual(await depositors(), before);
  }
  await index();
  assert.deepEqual(await depositors(), before);
});

test('a wallet for which a contract acts is offered no permit, which that contract may not take', async () => {
  const wallet = await world.wallet(20n * USD);
  await world.client.setCode({ address: wallet.address, bytecode: `0xef0100${world.chain.vault.slice(2)}` });
  const byPermit = await world.refusal(`deposit-tx?recipient=${wallet.address}&amount=10&mode=permit`);
  assert.deepEqual([byPermit.status, byPermit.body.code], [409, 'CONTRACT_CANNOT_PERMIT']);
  assert.match(byPermit.body.message, /EIP-7702/);
  const { warnings } = await world.answer(`deposit-tx?recipient=${wallet.address}&amount=10`);
  assert.deepEqual(warnings, []);
});

test('a permit holds for half an hour from now, however old the newest block is', async () => {
  aheadMs += 60 * MINUTE_MS;
  const { steps } = await world.answer(`deposit-tx?recipient=${holder.address}&amount=10&mode=permit`);
  const leftMs = Number(steps[0].permit.typedData.message.deadline) * 1_000 - (Date.now() + aheadMs);
  assert(leftMs > 20 * MINUTE_MS && leftMs <= 31 * MINUTE_MS, `${leftMs} ms are left`);
});
