/** The chain of a lane: what a test file leaves behind on it, or does to it, is nothing that the next one meets. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { type Address, type Hex, parseEther, toHex } from 'viem';
import { SANDBOX_ACCOUNTS, SEED } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { type EvmChain, startEvmChain } from '../../../../packages/sandbox/src/chain/chain.ts';
import { connect, type Node } from '../../../../packages/sandbox/src/chain/node.ts';
import { usdcBalanceMicros } from '../../../../packages/sandbox/src/chain/usdc.ts';
import { type LaneChain, openLaneChain } from '../lane-chain.fixture.ts';

const LEFT: Address = '0x00000000000000000000000000000000000a0009';
const CODE: Hex = '0x600160005260206000f3';
const DAY_SECONDS = 86_400;

let lane: LaneChain;
before(() => {
  lane = openLaneChain();
});
after(() => lane.stop());

async function renewed(): Promise<string> {
  const { TEST_CHAIN_URL: url } = await lane.renew();
  assert(url !== undefined);
  return url;
}

function order(node: Node, method: string, ...params: readonly unknown[]): Promise<unknown> {
  return node.request({ method, params } as never);
}

/** What anybody can tell of a chain without its time and its number of blocks, of which renewing takes one more. */
async function toldOf(node: Node) {
  const { gasLimit, miner } = await node.getBlock();
  const { baseFeePerGas } = await node.getFeeHistory({ blockCount: 1, rewardPercentiles: [] });
  const accounts = Object.values(SANDBOX_ACCOUNTS).map(({ address }) => address);
  return {
    gasLimit,
    miner,
    feeFalls: Number(baseFeePerGas[0]) > Number(baseFeePerGas[1]) && Number(baseFeePerGas[0]) < 20_000_000,
    automine: await node.getAutomine(),
    blockEvery: await order(node, 'anvil_getIntervalMining'),
    pool: await node.getTxpoolStatus(),
    left: [await node.getCode({ address: LEFT }), await node.getBalance({ address: LEFT })],
    nonces: await Promise.all(accounts.map((address) => node.getTransactionCount({ address }))),
    wei: await Promise.all(accounts.map((address) => node.getBalance({ address }))),
    micros: await Promise.all(accounts.map((address) => usdcBalanceMicros(node, address))),
  };
}

/** Does to a chain whatever tests do, and leaves it at that. */
async function litter(node: Node): Promise<void> {
  const { faucet } = SANDBOX_ACCOUNTS;
  await node.setCode({ address: LEFT, bytecode: CODE });
  await node.setBalance({ address: LEFT, value: parseEther('1') });
  await node.setNonce({ address: faucet.address, nonce: 1_000 });
  await node.increaseTime({ seconds: DAY_SECONDS });
  await node.setNextBlockBaseFeePerGas({ baseFeePerGas: 3_000_000_000n });
  await node.setCoinbase({ address: LEFT });
  await node.mine({ blocks: 20 });
  await order(node, 'evm_setBlockGasLimit', toHex(20_000_000));
  await order(node, 'anvil_setBlockTimestampInterval', 100);
  await order(node, 'anvil_autoImpersonateAccount', true);
  await order(node, 'evm_setIntervalMining', DAY_SECONDS);
  await node.sendTransaction({ account: LEFT, to: faucet.address, value: 1n, chain: null });
  await order(node, 'evm_setNextBlockTimestamp', Math.floor(Date.now() / 1_000) + 3 * DAY_SECONDS);
  assert.equal((await node.getTxpoolStatus()).pending, 1);
}

test('a file finds nothing of what the one before it left: state, pool, clock, fees, settings', async () => {
  const url = await renewed();
  const node = connect(url);
  const fresh = await toldOf(node);
  const { number } = await node.getBlock();
  // Twice: what is returned to must not wear out.
  for (const time of [1n, 2n]) {
    await litter(node);
    assert.equal(await renewed(), url, 'another chain was started');
    assert.deepEqual(await toldOf(node), fresh);
    const newest = await node.getBlock();
    assert.equal(newest.number, number + time);
    assert(Number(newest.timestamp) <= Date.now() / 1_000, 'the newest block is of the future');
    await node.mine({ blocks: 2 });
    const later = await node.getBlock();
    assert(later.timestamp - newest.timestamp < 100n, 'blocks come at an interval that was left');
    await node.setBalance({ address: LEFT, value: parseEther('1') });
    await assert.rejects(node.sendTransaction({ account: LEFT, to: LEFT, value: 0n, chain: null }));
  }
});

test('a chain that was built a while ago has the present time', async () => {
  const old = openLaneChain(async () => {
    const chain = await startEvmChain({ seed: SEED, stateDir: null });
    const node = connect(chain.url);
    await order(node, 'evm_setTime', Math.floor(Date.now() / 1_000) - DAY_SECONDS);
    await node.mine({ blocks: 1 });
    return chain;
  });
  try {
    await old.renew();
    const { TEST_CHAIN_URL: url = '' } = await old.renew();
    const ageSeconds = Date.now() / 1_000 - Number((await connect(url).getBlock()).timestamp);
    assert(ageSeconds < DAY_SECONDS / 2, `the newest block is ${ageSeconds} s old`);
  } finally {
    await old.stop();
  }
});

test('a file can ask for the state at each block, however many blocks the one before it made', async () => {
  await connect(await renewed()).mine({ blocks: 1_200 });
  const node = connect(await renewed());
  const { number } = await node.getBlock();
  for (let blockNumber = 0n; blockNumber <= number; blockNumber += 1n)
    await node.getBalance({ address: LEFT, blockNumber });
});

test('of a process, the first chain is the lane’s, and stopping it ends nothing; any other is its own', async () => {
  const url = await renewed();
  const fixture = pathToFileURL(`${import.meta.dirname}/../chain.fixture.ts`).href;
  const program = `
    const { startTestChain } = await import('${fixture}');
    const first = await startTestChain();
    await first.client.setCode({ address: '${LEFT}', bytecode: '${CODE}' });
    const second = await startTestChain();
    const code = await second.client.getCode({ address: '${LEFT}' });
    await Promise.all([first.stop(), second.stop()]);
    console.log(JSON.stringify({ first: first.url, second: second.url, isLeft: code !== undefined }));`;
  const run = async () => {
    const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program];
    const env = { ...process.env, ...(await lane.renew()) };
    return JSON.parse((await promisify(execFile)(process.execPath, args, { env })).stdout);
  };
  const told = await run();
  assert.equal(told.first, url);
  assert.notEqual(told.second, url);
  assert.equal(told.isLeft, false);
  assert.equal(await connect(url).getCode({ address: LEFT }), CODE);
  assert.equal(await connect(await renewed()).getCode({ address: LEFT }), undefined);
});

test('a chain that has ended gives way to another; so does one that has lost what it returns to', async () => {
  const started: EvmChain[] = [];
  const other = openLaneChain(async () => {
    const chain = await startEvmChain({ seed: SEED, stateDir: null });
    started.push(chain);
    return chain;
  });
  try {
    const first = await other.renew();
    await started[0]?.stop();
    const second = await other.renew();
    assert.notEqual(second.TEST_CHAIN_URL, first.TEST_CHAIN_URL);
    await connect(second.TEST_CHAIN_URL ?? '').request({ method: 'anvil_reset', params: [] } as never);
    const { TEST_CHAIN_URL: third = '' } = await other.renew();
    assert.deepEqual([started.length, started[2]?.url], [3, third]);
    assert((await usdcBalanceMicros(connect(third), SANDBOX_ACCOUNTS.faucet.address)) > 0n);
    // The one that was of no use any more does not run on.
    await assert.rejects(connect(second.TEST_CHAIN_URL ?? '').getBlockNumber());
  } finally {
    await other.stop();
  }
  await assert.rejects(connect(started[2]?.url ?? '').getBlockNumber());
});

test('where no chain can be started, a file is told of none and starts its own', async () => {
  const none = openLaneChain(() => Promise.reject(new Error('no node here')));
  assert.deepEqual(await none.renew(), {});
  await none.stop();
});
