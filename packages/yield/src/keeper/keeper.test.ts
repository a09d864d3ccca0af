/** The keeper against the real protocols of the sandbox's chain and a real database. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { type Address, decodeFunctionData, encodeFunctionData, type Hex, parseAbi } from 'viem';
import { generatePrivateKey } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../apps/shop/test/chain.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { connectRpc, type Rpc, RpcUnreachable } from '../../../core/src/chain-rpc/json-rpc.ts';
import { relayerOn } from '../../../core/src/relayer/relayer.fixture.ts';
import { AAVE_USDC } from '../../../sandbox/src/chain/lending/addresses.ts';
import { readManifest } from '../../../sandbox/src/chain/lending/snapshot.ts';
import { moveStoredTimes } from '../../../sandbox/src/chain/lending/stored-times.ts';
import { connect, transact } from '../../../sandbox/src/chain/node.ts';
import { mintUsdc } from '../../../sandbox/src/chain/usdc.ts';
import { createKeeper } from './keeper.ts';
import { type Past, writePast } from './past.fixture.ts';
import { createLooks, type MoveReason, readKeeperReport } from './report.ts';

const ABI = parseAbi([
  'function approve(address spender, uint256 amount) returns (bool)',
  'function move(uint8 from, uint8 to, uint256 assets, uint256 minReceived)',
  'function deposit(uint256 assets, address receiver) returns (uint256)',
  'function repay(address asset, uint256 amount, uint256 interestRateMode, address onBehalfOf) returns (uint256)',
  'function borrow(address asset, uint256 amount, uint256 interestRateMode, uint16 referralCode, address onBehalfOf)',
  'function sandboxBorrow(uint256 amount)',
  'function supply(address asset, uint256 amount)',
  'function active() view returns (uint8)',
  'function leftProtocols() view returns (uint8)',
  'function totalSupply() view returns (uint256)',
  'function totalBorrow() view returns (uint256)',
  'function getVirtualUnderlyingBalance(address asset) view returns (uint128)',
  'function holdings() view returns (uint256 idle, uint256[3] inProtocol, uint256 liquidity, bool complete)',
  'event Moved(uint8 indexed from, uint8 indexed to, uint256 assets, uint256 received)',
]);
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const AAVE_POOL = '0xA238Dd80C259a72e81d7e4664a9801593F98d1c5';
const COMET = '0xb125E6687d4313864e53df431d5425969c15Eb2F';
const USD = 1_000_000n;
const SEVEN_HOURS_S = 25_200;
const HOUR_S = 3_600;
const { vault, storedTimes, accounts } = readManifest();
const { owner, borrower } = accounts;

let chain: TestChain;
let database: TestDatabase;
let rpc: Rpc;
let node: ReturnType<typeof connect>;
before(async () => {
  [chain, database] = await Promise.all([startTestChain(), openTestDatabase()]);
  rpc = connectRpc(chain.url, { timeoutMs: 10_000 });
  node = connect(chain.url);
  assert.equal((await replica()())?.outcome, 'EMPTY');
  // A million in the vault, in Aave; each test has it so, and a keeper that nothing is known of.
  const deposit = 1_000_000n * USD;
  await mintUsdc(node, owner, deposit);
  await call(owner, USDC, 'approve', [vault, deposit]);
  await call(owner, vault, 'deposit', [deposit, owner]);
});
after(async () => {
  await rpc.close();
  await Promise.all([chain.stop(), database.close()]);
});

const call = (from: Address, to: Address, functionName: string, args: readonly unknown[]) =>
  transact(node, { from, to, data: encodeFunctionData({ abi: ABI, functionName, args } as never) });
const read = <Result>(address: Address, functionName: string, args: readonly unknown[] = []) =>
  node.readContract({ address, abi: ABI, functionName, args } as never) as Promise<Result>;
const held = async () => {
  const [, inProtocol] = await read<[bigint, readonly [bigint, bigint, bigint]]>(vault, 'holdings');
  return inProtocol;
};
const moves = () => node.getContractEvents({ address: vault, abi: ABI, eventName: 'Moved', fromBlock: 0n });

/** A replica of the keeper. */
function replica({ minGainBps = 50, on = rpc, key = chain.accounts.keeper.privateKey as Hex } = {}) {
  const { sql } = database;
  const relayer = relayerOn({ sql, rpc: on, network: 'eip155:8453', keys: [key], nowMs: Date.now });
  return createKeeper({ sql, rpc: on, relayer, vault, minGainBps, nowMs: Date.now });
}

let beginning: Hex;
beforeEach(async () => {
  beginning = await node.snapshot();
  await database.sql`delete from yield_keeper`;
  await database.sql`delete from yield_keeper_reasons`;
  await database.sql`delete from yield_index_samples`;
  await database.sql`delete from relayer_transactions`;
  await database.sql`delete from relayers`;
});
afterEach(() => node.revert({ id: beginning }));

/** Aave's borrowers repay 5 of some 8 million: it pays much less than the others. */
async function makeAavePoor(): Promise<void> {
  await mintUsdc(node, borrower, 5_000_000n * USD);
  await call(borrower, AAVE_POOL, 'repay', [USDC, 5_000_000n * USD, 2n, borrower]);
}

/** Writes down 26 hours in which the three have paid and lent what they pay and lend now, or what is told. */
async function haveLived(past: Past = {}) {
  const look = async () => {
    const report = await replica()();
    assert.equal(report?.outcome, 'NO_HISTORY', JSON.stringify(report));
    return report;
  };
  await writePast(database.sql, { vault, look, past });
}

/** Compound's borrower borrows or repays until this part of it is lent. */
async function lendOfCompound(part: number): Promise<void> {
  const [supplied, borrowed] = [
    await read<bigint>(COMET, 'totalSupply'),
    await read<bigint>(COMET, 'totalBorrow'),
  ];
  const more = (supplied * BigInt(Math.round(part * 1e6))) / 1_000_000n - borrowed;
  if (more > 0n) return void (await call(borrower, COMET, 'sandboxBorrow', [more]));
  await mintUsdc(node, borrower, -more);
  await call(borrower, COMET, 'supply', [USDC, -more]);
}

async function hoursPass(count: number, look: () => Promise<void>): Promise<void> {
  for (let hour = 0; hour < count; hour += 1) {
    await node.increaseTime({ seconds: HOUR_S });
    await node.mine({ blocks: 1 });
    await look();
  }
}

test('nothing is moved before the samples reach a day back, and by samples of its own then', async () => {
  await makeAavePoor();
  let outcome: string | undefined;
  const look = async () => {
    const report = await replica()();
    outcome = report?.outcome;
  };
  await look();
  assert.equal(outcome, 'NO_HISTORY');
  await hoursPass(23, async () => {
    await look();
    assert.equal(outcome, 'NO_HISTORY');
  });
  await hoursPass(1, look);
  assert.equal(outcome, 'MOVED');
  const [{ count } = assert.fail()] = await database.sql<{ count: number }[]>`
    select count(*)::int as count from yield_index_samples`;
  assert.equal(count, 25);
});

test('two looks within five minutes note one sample', async () => {
  await Promise.all([replica()(), replica()()]);
  await database.sql`update yield_keeper set looked_until = to_timestamp(0)`;
  await node.mine({ blocks: 1, interval: 1 });
  await replica()();
  assert.equal((await database.sql`select 1 from yield_index_samples`).length, 1);
});

test('a market that is borrowed dry attracts nothing, however long it pays 28 %, nor for a day after', async () => {
  await haveLived();
  await lendOfCompound(1);
  let report = await replica()();
  const look = async () => {
    report = await replica()();
    const where = `${report?.outcome} ${JSON.stringify(report?.conduct?.compound)}`;
    assert.notEqual(report?.proposal?.to, 'compound', where);
    assert.equal((await held())[1], 0n, where);
  };
  await look();
  assert((report?.yearlyPercent.compound ?? 0) > 20, 'it pays more than all others');
  await hoursPass(26, look);
  assert((report?.conduct?.compound?.averagePercent ?? 0) > 20);
  assert.equal(report?.conduct?.compound?.unrest, 'DRY');
  await lendOfCompound(0.9);
  await hoursPass(20, look);
  assert.equal(report?.conduct?.compound?.unrest, 'DRY');
});

test('what somebody arranges for one block moves nothing', async () => {
  await haveLived({ aave: { percent: 3.9 }, compound: { percent: 3.9 }, morpho: { percent: 3.9 } });
  const before = await held();
  const spells: Record<string, () => Promise<unknown>> = {
    'Compound pays more than ever': () => lendOfCompound(0.915),
    'Aave pays next to nothing': makeAavePoor,
    'Aave is nearly dry': async () => {
      const cash = await read<bigint>(AAVE_POOL, 'getVirtualUnderlyingBalance', [USDC]);
      await call(borrower, AAVE_POOL, 'borrow', [USDC, cash - 1_500_000n * USD, 2n, 0, borrower]);
    },
  };
  for (const [what, cast] of Object.entries(spells)) {
    const id = await node.snapshot();
    await cast();
    const report = await replica()();
    assert(
      report !== null && /^(BEST|TOO_SMALL_A_GAIN|UNREST|STUCK)$/.test(report.outcome),
      `${what}: ${JSON.stringify(report)}`,
    );
    assert.deepEqual([(await held())[1], (await held())[2]], [before[1], before[2]], what);
    await node.revert({ id });
  }
});

test('funds are moved to what pays more after they came, by one of all replicas, and again after the pause', async () => {
  await makeAavePoor();
  await haveLived();
  const reports = await Promise.all([replica()(), replica()(), replica()()]);
  const [report, ...others] = reports.filter((each) => each !== null);
  assert.equal(others.length, 0, 'one looks at a time');
  assert.equal(report?.outcome, 'MOVED', JSON.stringify(report));
  assert.equal((await moves()).length, 1);
  const { proposal, yearlyPercent } = report;
  assert(proposal !== null);
  for (const rate of Object.values(yearlyPercent)) assert(rate !== null && rate > 0.3 && rate < 10);
  assert.equal(proposal.from, 'aave');
  const to = proposal.to === 'compound' ? 1 : 2;
  const inProtocol = await held();
  assert(inProtocol[to] >= BigInt(proposal.amountMicros) - 10n);
  // The contract is told to undo a move that brings less than what went, but for the rounding of two protocols.
  const { input } = await node.getTransaction({ hash: report.transaction as Hex });
  const { args } = decodeFunctionData({ abi: ABI, data: input }) as { args?: readonly unknown[] };
  const amount = BigInt(proposal.amountMicros);
  assert.deepEqual(args, [0, to, amount, amount - 10n]);
  assert.equal(await read(vault, 'active'), to);
  // The curves were asked for what they would pay after the move: less than they paid before.
  assert(proposal.yearlyPercentAfter < (yearlyPercent[proposal.to] ?? 0));
  assert(proposal.yearlyPercentAfter > (yearlyPercent.aave ?? 9));
  assert.deepEqual((await readKeeperReport(database.sql, vault))?.report, report);

  // Why it was made is found by what the contract says of it.
  const [event] = await moves();
  const reasons = await database.sql<{ assets: string; reason: MoveReason }[]>`
    select assets::text, reason from yield_keeper_reasons where vault = ${vault.toLowerCase()}`;
  const reason = reasons.find(({ assets }) => assets === String(event?.args.assets))?.reason;
  const averages = report.conduct;
  assert.deepEqual(reason?.yearlyPercentBefore, {
    from: averages?.aave?.averagePercent,
    to: averages?.[proposal.to]?.averagePercent,
  });
  assert.equal(reason?.gainMicrosPerYear, proposal.gainMicrosPerYear);

  assert.equal((await replica()())?.outcome, 'COOLING');
  assert.equal((await moves()).length, 1);
  await moveStoredTimes(node, storedTimes, -SEVEN_HOURS_S);
  const later = await replica()();
  assert(later !== null && later.outcome !== 'COOLING', later?.outcome);
});

test('the rate after a move is the one that the protocol then pays', async () => {
  await makeAavePoor();
  await haveLived();
  const report = await replica()();
  const { proposal } = report ?? {};
  assert(report?.outcome === 'MOVED' && proposal);
  await moveStoredTimes(node, storedTimes, -SEVEN_HOURS_S);
  const now = (await replica()())?.yearlyPercent[proposal.to];
  // Seven hours of interest lie between.
  assert(
    now && Math.abs(now / proposal.yearlyPercentAfter - 1) < 0.01,
    `${now}, not ${proposal.yearlyPercentAfter}`,
  );
});

test('two that look at the same moment send one transaction', async () => {
  await makeAavePoor();
  await haveLived();
  const waits = Promise.withResolvers<void>();
  let second: ReturnType<ReturnType<typeof replica>> = Promise.resolve(null);
  const seenBySecond: Rpc = {
    ...rpc,
    call(method, params, options) {
      // Only who waits for a transaction asks for its receipt.
      if (method === 'eth_getTransactionReceipt') waits.resolve();
      return rpc.call(method, params, options);
    },
  };
  const slow: Rpc = {
    ...rpc,
    async call(method, params, options) {
      if (method === 'eth_sendRawTransactionSync') {
        // So slow that its look is over: another replica sees the same, and comes as far.
        await database.sql`update yield_keeper set looked_until = to_timestamp(0)`;
        second = replica({ on: seenBySecond })();
        await waits.promise;
      }
      return rpc.call(method, params, options);
    },
  };
  const first = await replica({ on: slow })();
  assert.equal(first?.outcome, 'MOVED');
  assert.equal((await second)?.outcome, 'MOVED');
  assert.equal((await second)?.transaction, first?.transaction);
  assert.equal((await database.sql`select 1 from relayer_transactions`).length, 1);
  assert.equal((await moves()).length, 1);
});

test('a move that is mined and fails changes nothing, and the next look makes it', async () => {
  await makeAavePoor();
  await haveLived();
  const spoilt: Rpc = {
    ...rpc,
    async call(method, params, options) {
      // It was tried, and would have succeeded: by the time that it is mined there is nothing to be had.
      if (method === 'eth_sendRawTransactionSync') {
        const cash = await read<bigint>(AAVE_POOL, 'getVirtualUnderlyingBalance', [USDC]);
        await call(borrower, AAVE_POOL, 'borrow', [USDC, cash, 2n, 0, borrower]);
      }
      return rpc.call(method, params, options);
    },
  };
  const before = await held();
  const report = await replica({ on: spoilt })();
  assert.equal(report?.outcome, 'REVERTED', JSON.stringify(report));
  assert.match(report.transaction ?? '', /^0x\w{64}$/);
  assert.deepEqual([await moves(), (await held())[0] >= before[0]], [[], true]);
  await makeAavePoor();
  assert.equal((await replica()())?.outcome, 'MOVED');
  assert.equal((await moves()).length, 1);
});

test('a move that lands after its process was killed is made once, and seen by the next', async () => {
  await makeAavePoor();
  await haveLived();
  const sent = Promise.withResolvers<void>();
  const killed: Rpc = {
    ...rpc,
    async call(method, params, options) {
      if (method !== 'eth_sendRawTransactionSync') return rpc.call(method, params, options);
      await rpc.call(method, params, options);
      sent.resolve();
      return new Promise<never>(() => {});
    },
  };
  void replica({ on: killed })();
  await sent.promise;
  assert.equal(await replica()(), null, 'for as long as it may live nobody looks');
  await database.sql`update yield_keeper set looked_until = to_timestamp(0)`;
  assert.equal((await replica()())?.outcome, 'COOLING');
  const { sql } = database;
  const key = chain.accounts.keeper.privateKey as Hex;
  // Somewhat later: what has just been sent is let alone.
  const nowMs = () => Date.now() + 60_000;
  const relayer = relayerOn({ sql, rpc, network: 'eip155:8453', keys: [key], nowMs });
  assert.equal(await relayer.resume(), 0, 'what it sent is noted');
  assert.equal((await moves()).length, 1);
});

test('a source with little liquidity is left in part', async () => {
  const cash = await read<bigint>(AAVE_POOL, 'getVirtualUnderlyingBalance', [USDC]);
  const left = 1_200_000n * USD;
  await call(borrower, AAVE_POOL, 'borrow', [USDC, cash - left, 2n, 0, borrower]);
  // Compound is up its steep slope, and has been for a day.
  await lendOfCompound(0.915);
  await haveLived();
  const report = await replica()();
  assert.equal(report?.outcome, 'MOVED', JSON.stringify(report));
  assert.equal(report?.proposal?.to, 'compound');
  assert.notEqual(report?.proposal?.partial, null);
  const [event] = await moves();
  const { assets } = event?.args ?? {};
  assert(assets !== undefined && assets <= left / 2n, 'at most half of what can be had');
  assert((await held())[0] > 0n);
});

test('a market that stays short of cash is left before the next move is allowed, for as long as it pays anything', async () => {
  await makeAavePoor();
  await haveLived({ morpho: { percent: 0.1 } });
  const moved = await replica()();
  assert.deepEqual([moved?.outcome, moved?.proposal?.to], ['MOVED', 'compound'], JSON.stringify(moved));
  const inCompound = (await held())[1];
  await lendOfCompound(0.98);
  const outcomes: (string | undefined)[] = [];
  const look = async () => {
    const report = await replica()();
    outcomes.push(report?.outcome);
  };
  const later = async (seconds: number) => {
    await node.increaseTime({ seconds });
    await node.mine({ blocks: 1 });
    await look();
  };
  // What one block shows could be arranged; what three samples show lasts.
  for (let sample = 0; sample < 4; sample += 1) await later(300);
  assert.deepEqual(outcomes, ['COOLING', 'COOLING', 'COOLING', 'LEFT']);
  const [idle, after] = await read<[bigint, readonly bigint[]]>(vault, 'holdings');
  assert(idle > 50_000n * USD, `${idle} was taken out`);
  assert(idle + (after[1] ?? 0n) >= inCompound - 10n);
  assert.equal(await read(vault, 'leftProtocols'), 0b010);
  await look();
  assert.equal(outcomes.at(-1), 'COOLING', 'there is nothing more to be had');

  // Some is repaid, and it is left with that too. What comes meanwhile goes elsewhere.
  await lendOfCompound(0.975);
  await later(300);
  assert.equal(outcomes.at(-1), 'LEFT');
  await mintUsdc(node, owner, 1_000n * USD);
  await call(owner, USDC, 'approve', [vault, 1_000n * USD]);
  const before = (await held())[1];
  await call(owner, vault, 'deposit', [1_000n * USD, owner]);
  assert((await held())[1] <= before + 100n * USD);

  // After the pause what lies idle is supplied, to those that were calm.
  await hoursPass(7, look);
  assert(outcomes.includes('SUPPLIED'), outcomes.join(' '));
  const [left] = await read<[bigint]>(vault, 'holdings');
  assert(left < 1_000n * USD, `${left} lies idle`);
  assert.equal(await read(vault, 'leftProtocols'), 0b010);
});

test('a look that another has followed by now writes nothing', async () => {
  const report = (await replica()()) ?? assert.fail();
  const looks = createLooks(database.sql, vault, Date.now);
  const late = (await looks.begin(0)) ?? assert.fail();
  const next = (await looks.begin(60_000)) ?? assert.fail();
  assert.equal(await looks.begin(60_000), null);
  await looks.end(next, { ...report, outcome: 'BEST' });
  await looks.end(late, { ...report, outcome: 'MOVED' });
  assert.equal((await readKeeperReport(database.sql, vault))?.report.outcome, 'BEST');
});

test('what lies idle waits until those that would get it were calm for a day', async () => {
  const idle = async () => (await read<[bigint]>(vault, 'holdings'))[0];
  await mintUsdc(node, vault, 1_000n * USD);
  assert((await idle()) >= 1_000n * USD);
  const nearlyDry = { utilization: 0.95 };
  await haveLived({ aave: nearlyDry, compound: nearlyDry, morpho: nearlyDry });
  const waiting = await replica()();
  assert.notEqual(waiting?.outcome, 'SUPPLIED');
  assert((await idle()) >= 1_000n * USD);
  await haveLived();
  assert.equal((await replica()())?.outcome, 'SUPPLIED');
  assert((await idle()) < 1_000n * USD);
});

test('who does not move says why', async () => {
  const outcome = async (given?: Parameters<typeof replica>[0]) => {
    await database.sql`update yield_keeper set looked_until = to_timestamp(0)`;
    return (await replica(given)())?.outcome;
  };
  await haveLived({ aave: { percent: 2 } });
  assert.equal(await outcome({ minGainBps: 2_000 }), 'TOO_SMALL_A_GAIN');
  await makeAavePoor();
  await haveLived();
  const { baseFeePerGas } = await node.getBlock();
  await node.setNextBlockBaseFeePerGas({ baseFeePerGas: 10n ** 15n });
  await node.mine({ blocks: 1 });
  assert.equal(await outcome(), 'COSTS_MORE');
  await node.setNextBlockBaseFeePerGas({ baseFeePerGas: baseFeePerGas ?? 1n });
  await node.mine({ blocks: 1 });

  const silent: Rpc = { ...rpc, call: (method) => Promise.reject(new RpcUnreachable(method, null)) };
  assert.equal(await outcome({ on: silent }), 'UNREADABLE');
  assert.equal(await outcome({ key: generatePrivateKey() }), 'NOT_KEEPER');
  const poor = chain.accounts.keeper.address;
  await node.setBalance({ address: poor, value: 1_000n });
  assert.equal(await outcome(), 'OUT_OF_GAS');
  await node.setBalance({ address: poor, value: 10n ** 18n });
  const receipts = await node.getCode({ address: AAVE_USDC });
  await node.setCode({ address: AAVE_USDC, bytecode: '0xfe' });
  assert.equal(await outcome(), 'INCOMPLETE');
  await node.setCode({ address: AAVE_USDC, bytecode: receipts ?? '0x' });
  assert.deepEqual(await moves(), []);

  // What cannot be read takes no part, and stops nobody.
  const code = await node.getCode({ address: COMET });
  await node.setCode({ address: COMET, bytecode: '0x00' });
  await outcome();
  const report = (await readKeeperReport(database.sql, vault))?.report;
  assert.equal(report?.yearlyPercent.compound, null);
  assert.deepEqual([report?.outcome, report?.proposal?.to], ['MOVED', 'morpho']);
  await node.setCode({ address: COMET, bytecode: code ?? '0x' });
});
