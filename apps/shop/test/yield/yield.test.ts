/** The vault's API against the real protocols on the sandbox's chain, by wallets that sign what it hands out and nothing else. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { type Address, encodeFunctionData, type Hex, pad, parseAbi, toHex } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { SANDBOX_ACCOUNTS } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import {
  AAVE_CONFIGURATOR,
  AAVE_POOL,
  AAVE_USDC,
  COMET,
  META_MORPHO,
} from '../../../../packages/sandbox/src/chain/lending/addresses.ts';
import { passTime } from '../../../../packages/sandbox/src/chain/lending/pass-time.ts';
import { transact } from '../../../../packages/sandbox/src/chain/node.ts';
import { createIndexer } from '../../../../packages/yield/src/evm/indexer.ts';
import { openNode } from '../../../../packages/yield/src/evm/node.ts';
import { noteReason } from '../../../../packages/yield/src/keeper/report.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer } from '../server.fixture.ts';
import { startYieldWorld, type Wallet, type YieldWorld } from '../yield.fixture.ts';

const EXAMPLE = join(import.meta.dirname, '../../../../examples/earn-on-base.mjs');
const USDC: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USD = 1_000_000n;
const DAY_SECONDS = 86_400;
const YEAR_SECONDS = 31_536_000;
/** The verdicts of a check that was made and warns of nothing grave. */
const CHECKED = ['safe', 'caution', 'unknown'];
const ABI = parseAbi([
  'struct Reserve { uint256 configuration; uint128 liquidityIndex; uint128 liquidityRate; uint128 borrowIndex; uint128 borrowRate; uint128 stableRate; uint40 updatedAt; uint16 id; address aToken; address stableDebt; address variableDebt; address strategy; uint128 treasury; uint128 unbacked; uint128 isolated; }',
  'function getReserveData(address asset) view returns (Reserve)',
  'function getVirtualUnderlyingBalance(address asset) view returns (uint128)',
  'function borrow(address asset, uint256 amount, uint256 interestRateMode, uint16 referralCode, address onBehalfOf)',
  'function setReservePause(address asset, bool paused)',
  'function sandboxPause(bool supply, bool withdraw, bool transfer)',
  'function setSupplyQueue(bytes32[] queue)',
  'function getUtilization() view returns (uint256)',
  'function getSupplyRate(uint256 utilization) view returns (uint64)',
  'function sandboxLose(uint256 part)',
  'function balanceOf(address account) view returns (uint256)',
  'function totalAssets() view returns (uint256)',
  'function convertToAssets(uint256 shares) view returns (uint256)',
  'function transfer(address to, uint256 amount) returns (bool)',
  'function blacklist(address account)',
  'function move(uint8 from, uint8 to, uint256 assets, uint256 minReceived)',
]);

let database: TestDatabase;
let world: YieldWorld;
before(async () => {
  database = await openTestDatabase();
  world = await startYieldWorld(database);
});
after(async () => {
  await world.stop();
  await database.close();
});

type Call = Parameters<typeof encodeFunctionData<typeof ABI>>[0];
const read = (address: Address, functionName: string, args: readonly unknown[] = []): Promise<unknown> =>
  world.client.readContract({ address, abi: ABI, functionName, args } as never);
const balance = async (token: Address, of: Address) => (await read(token, 'balanceOf', [of])) as bigint;
/** One of the node's own accounts does something. */
const act = (from: Address, to: Address, functionName: string, args: readonly unknown[]) =>
  transact(world.node, { from, to, data: encodeFunctionData({ abi: ABI, functionName, args } as Call) });
const deposit = async (wallet: Wallet, usd: number) => {
  const answer = await world.answer(`deposit-tx?recipient=${wallet.address}&amount=${usd}`);
  return wallet.send(answer.steps);
};
/** The example of the documentation, with a wallet's key. @returns what it wrote */
async function example(privateKey: Hex, ...args: readonly string[]): Promise<string> {
  const env = {
    ...process.env,
    WALLET_KEY: privateKey,
    BASE_RPC_URL: world.chain.url,
    FAREBOX_URL: world.server.url,
  };
  return (await promisify(execFile)(process.execPath, [EXAMPLE, ...args], { env })).stdout;
}
/** A deposit by permit, with the signature where the answer says that it goes. */
async function signedData(
  wallet: Wallet,
  { typedData, dataWithoutSignature }: { typedData: never; dataWithoutSignature: Hex },
): Promise<Hex> {
  const signature = await wallet.account.signTypedData(typedData);
  const [r, s, v] = [signature.slice(2, 66), signature.slice(66, 130), `0x${signature.slice(130)}` as Hex];
  return `${dataWithoutSignature}${pad(v).slice(2)}${r}${s}`;
}
/** Of amounts: interest of some seconds apart. */
const near = (told: string, wanted: number) =>
  assert(Math.abs(Number(told) - wanted) < 0.0001, `${told}, not ${wanted}`);
/** What happens in it has not happened afterwards: the chain takes another way, which is longer in the end, as with any fork. */
async function forgotten(work: () => Promise<void>): Promise<void> {
  const id = await world.client.snapshot();
  try {
    await work();
  } finally {
    const abandoned = await world.client.getBlockNumber();
    await world.client.revert({ id });
    const left = await world.client.getBlockNumber();
    await world.client.mine({ blocks: Number(abandoned - left) + 1 });
  }
}

test('rates are what the protocols say, at one block that is named', async () => {
  const response = await world.ask('rates');
  const body = await jsonOf(response);
  assert.equal(response.status, 200, JSON.stringify(body));
  assert.match(response.headers.get('link') ?? '', /\/api\/yield\/manifest>; rel="manifest"/);
  assert.match(response.headers.get('x-agent-tip') ?? '', /deposit-tx/);
  assert.equal(response.headers.get('cache-control'), 'public, max-age=60');

  const at = { blockNumber: BigInt(body.readAt.blockNumber) };
  const ask = (address: Address, functionName: string, args: readonly unknown[] = []) =>
    world.client.readContract({ address, abi: ABI, functionName, args, ...at } as never);
  const { liquidityRate } = (await ask(AAVE_POOL, 'getReserveData', [USDC])) as { liquidityRate: bigint };
  const perSecond = (await ask(COMET, 'getSupplyRate', [await ask(COMET, 'getUtilization')])) as bigint;
  // Compounded by the second, as a loop would; the closed form is the product's.
  const compounded = (rate: number) => ((1 + rate / YEAR_SECONDS) ** YEAR_SECONDS - 1) * 100;
  const same = (told: number, wanted: number) =>
    assert(Math.abs(told - wanted) < 0.001, `${told}, not ${wanted}`);
  same(body.rates.aave.grossApyPercent, compounded(Number(liquidityRate) / 1e27));
  same(body.rates.compound.grossApyPercent, compounded((Number(perSecond) / 1e18) * YEAR_SECONDS));
  const { morpho } = body.rates;
  assert(morpho.grossApyPercent > 0.5 && morpho.grossApyPercent < 8, JSON.stringify(morpho));
  for (const { grossApyPercent, netApyPercent, status } of Object.values(body.rates) as never[]) {
    same(netApyPercent, grossApyPercent * 0.85);
    assert.equal(status, 'live');
  }
  const best = Math.max(
    ...Object.values<{ grossApyPercent: number }>(body.rates).map((each) => each.grossApyPercent),
  );
  assert.equal(body.currentBest.apyPercent, best);

  await world.client.mine({ blocks: 1 });
  assert.equal(
    (await world.answer('rates')).readAt.blockNumber,
    body.readAt.blockNumber,
    'kept for a minute',
  );
});

test('every field that the interface names is told', async () => {
  const wallet = await world.wallet(20n * USD);
  await deposit(wallet, 10);
  const fees = 'entryFeePct performanceFeePct exitFeePct switchFeePct';
  const step = 'step action to data value gas note';
  const fields: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    rates: {
      '': 'success timestamp rates currentBest netAPY fees',
      'rates.aave': 'protocol network apyPercent grossApyPercent netApyPercent status',
      currentBest: 'protocol apyPercent',
      netAPY: 'aave compound morpho',
      fees,
    },
    stats: {
      vault: 'address network asset assetAddress standard shareToken',
      stats: 'tvlUsdc totalSharesUsdc pricePerShare pendingFeesUsdc nextRebalanceInSec',
      routing: 'strategy currentProtocol currentAPY rebalanceInterval minImprovementBps protocols',
      fees: `${fees} minHarvestUsd feeTimelockHours maxEntryFeePct maxPerformanceFeePct`,
      security: 'nonCustodial adminCanWithdrawPrincipal emergencyExitAlways feeChangeTimelock auditStatus',
    },
    manifest: {
      '': 'name description version type network chainId asset vault currentAPY currentBest fees endpoints agentQuickStart',
      asset: 'symbol address decimals',
      fees: 'entry performance exit switch',
      security: 'nonCustodial emergencyExitAlways adminCannotWithdrawPrincipal feeTimelock',
    },
    [`deposit-tx?recipient=${wallet.address}&preset=10`]: {
      '': 'success amountUsdc recipient chainId steps fees usefulLinks',
      'steps.0': step,
      'steps.1': step,
      fees: 'entryFee netDeposited gas',
    },
    [`redeem-tx?wallet=${wallet.address}`]: { 'steps.0': step },
    [`position/${wallet.address}`]: {
      '': 'success wallet position redeem_hint next_action',
      position:
        'sharesHeld currentValueUsdc estimatedYieldUsdc estimatedPerformanceFee netYieldUsdc shareToken vaultAddress',
      redeem_hint: 'to data value chainId',
    },
    contract: {
      '': 'vault howToDeposit howToWithdraw keyFunctions agentIntegrationExample fees auditStatus integrationGuide permitHelper',
      vault: 'address network chainId asset assetAddress standard shareToken abi',
    },
    presets: { 'presets.0': 'usd netDepositUsd depositTx' },
  };
  for (const [path, parts] of Object.entries(fields)) {
    const body = await world.answer(path);
    for (const [part, names] of Object.entries(parts)) {
      const within = part === '' ? body : part.split('.').reduce((of, name) => of[name], body);
      const missing = names.split(' ').filter((name) => within?.[name] === undefined);
      assert.deepEqual(missing, [], `${path}: ${part}`);
    }
  }
  const { position } = await world.answer(`position/${wallet.address}`);
  for (const name of [
    'sharesHeld',
    'currentValueUsdc',
    'estimatedYieldUsdc',
    'estimatedPerformanceFee',
    'netYieldUsdc',
  ])
    assert.match(position[name], /^-?\d+\.\d{6}$/, name);
  assert.equal(position.sharesHeld.replace('.', ''), position.sharesHeldRaw.slice(0, -6));
});

test('somebody deposits, is told what it is worth, and leaves with what was told', async () => {
  const wallet = await world.wallet(100n * USD);
  const { position: none, next_action } = await world.answer(`position/${wallet.address}`);
  assert.equal(none.currentValueUsdc, '0.000000');
  assert.match(next_action[0].url, new RegExp(`deposit-tx\\?recipient=${wallet.address}`));

  const answer = await world.answer(`deposit-tx?recipient=${wallet.address}&preset=100`);
  assert.deepEqual(
    answer.steps.map(({ action, chainId, value }: Record<string, unknown>) => [action, chainId, value]),
    [
      ['approve', 8453, '0x0'],
      ['deposit', 8453, '0x0'],
    ],
  );
  assert.deepEqual(
    [answer.amountRaw, answer.fees.entryFee, answer.fees.netDeposited, answer.warnings],
    ['100000000', '0.500000', '99.500000', []],
  );
  // A deposit before its approval could only be seen to fail, so that it is not checked.
  const [approval, deposit] = answer.steps;
  assert.deepEqual([CHECKED.includes(approval.preflight?.verdict), deposit.preflight], [true, null]);
  const receipts = await wallet.send(answer.steps);
  for (const [index, { gasUsed }] of receipts.entries()) {
    const told = Number(answer.steps[index].gasUsed);
    assert(Math.abs(told / Number(gasUsed) - 1) < 0.05, `${told} gas was measured, ${gasUsed} was used`);
  }
  const vault: Address = answer.steps[1].to;
  assert.equal(String(await balance(vault, wallet.address)), answer.expected.shares);

  const { position, redeem_hint } = await world.answer(`position/${wallet.address}`);
  near(position.currentValueUsdc, 99.5);
  near(position.netYieldUsdc, 0);
  near(position.entryFeePaidUsdc, 0.5);
  assert.equal(position.depositedUsdc, '100.000000');
  const leaving = await world.answer(`redeem-tx?wallet=${wallet.address}`);
  assert.deepEqual(redeem_hint.data, leaving.steps[0].data);
  await wallet.send([redeem_hint]);
  assert.equal(await balance(vault, wallet.address), 0n);
  assert.equal((await balance(USDC, wallet.address)) >= 99_499_999n, true);
  assert.deepEqual(
    await world.refusal(`redeem-tx?wallet=${wallet.address}`).then(({ status, body }) => [status, body.code]),
    [409, 'NO_SHARES'],
  );
});

test('with a permit one transaction deposits, signed as the answer says', async () => {
  const wallet = await world.wallet(50n * USD);
  const { steps, transactions } = await world.answer(
    `deposit-tx?recipient=${wallet.address}&preset=50&mode=permit`,
  );
  assert.equal(transactions, 1);
  const [{ to, gas, permit, data, gasUsed: told }] = steps;
  assert.equal(data, null, 'nothing that fails without a signature is handed out as if it were whole');
  const [receipt] = await wallet.send([{ to, data: await signedData(wallet, permit), gas }]);
  assert(Math.abs(Number(told) / Number(receipt?.gasUsed) - 1) < 0.05, `${told} against ${receipt?.gasUsed}`);
  const { position } = await world.answer(`position/${wallet.address}`);
  near(position.currentValueUsdc, 49.75);
  assert.equal(position.depositedUsdc, '50.000000');
});

test('the gas is enough minutes later, however little it took right after somebody else', async () => {
  await forgotten(async () => {
    const [wallet, other] = await Promise.all([world.wallet(100n * USD), world.wallet(100n * USD)]);
    for (const path of ['&amount=20', '&amount=20&mode=permit', null]) {
      // A protocol adds its interest up once a second: whoever comes later in that second needs less gas.
      await deposit(other, 20);
      const { steps } = await world.answer(
        path === null
          ? `redeem-tx?wallet=${wallet.address}`
          : `deposit-tx?recipient=${wallet.address}${path}`,
      );
      await passTime(world.node, 300);
      for (const { to, gas, data, permit, gasUsed } of steps) {
        const whole = permit === undefined ? data : await signedData(wallet, permit);
        const [receipt] = await wallet.send([{ to, data: whole, gas }]);
        const used = Number(receipt?.gasUsed);
        assert(Math.abs(Number(gasUsed) / used - 1) < 0.05, `${path}: ${gasUsed} told, ${used} used`);
      }
    }
  });
});

test('what a wallet lacks is a warning, and the transactions are there', async () => {
  const poor = '0x2222222222222222222222222222222222222222';
  const { warnings, steps } = await world.answer(`deposit-tx?recipient=${poor}&preset=1000`);
  assert.deepEqual(
    warnings.map(({ code }: { code: string }) => code),
    ['INSUFFICIENT_USDC', 'INSUFFICIENT_ETH'],
  );
  assert(Number(steps[1].gasUsed) > 100_000, 'measured as if it had the money');
  const { warnings: alsoByPermit } = await world.answer(
    `deposit-tx?recipient=${poor}&preset=1000&mode=permit`,
  );
  assert.equal(alsoByPermit[0].code, 'INSUFFICIENT_USDC');
  // Aave's configurator is a contract that nobody can redeem with.
  const { warnings: contract } = await world.answer(`deposit-tx?recipient=${AAVE_CONFIGURATOR}&preset=10`);
  assert(contract.some(({ code }: { code: string }) => code === 'RECIPIENT_IS_CONTRACT'));
  const byPermit = await world.refusal(`deposit-tx?recipient=${AAVE_CONFIGURATOR}&preset=10&mode=permit`);
  assert.deepEqual([byPermit.status, byPermit.body.code], [409, 'CONTRACT_CANNOT_PERMIT']);

  const wallet = await world.wallet(20n * USD);
  const first = await world.answer(`deposit-tx?recipient=${wallet.address}&preset=10`);
  await wallet.send([first.steps[0]]);
  const second = await world.answer(`deposit-tx?recipient=${wallet.address}&preset=10`);
  assert.deepEqual(
    second.warnings.map(({ code, costs }: { code: string; costs: boolean }) => [code, costs]),
    [['ALREADY_APPROVED', false]],
    'it is the one warning that costs nothing',
  );
  assert([...warnings, ...alsoByPermit, ...contract].every(({ costs }: { costs: boolean }) => costs));
});

test('what is asked for wrongly is refused with the field and an example', async () => {
  const wallet = '0x2222222222222222222222222222222222222222';
  const vault = (await world.answer('contract')).vault.address;
  const wrong: readonly [string, string][] = [
    ['deposit-tx?preset=100', 'recipient'],
    ['deposit-tx?recipient=0x12&preset=100', 'recipient'],
    [`deposit-tx?recipient=${wallet}&recipient=${wallet}&preset=100`, 'recipient'],
    ...['0'.repeat(40), `${'0'.repeat(39)}4`, `${'0'.repeat(37)}100`].map((digits): [string, string] => [
      `deposit-tx?recipient=0x${digits}&preset=100`,
      'recipient',
    ]),
    [`deposit-tx?recipient=0X${wallet.slice(2)}&preset=100`, 'recipient'],
    [`deposit-tx?recipient=${wallet}&amount=5&amount=5`, 'amount'],
    [`deposit-tx?recipient=${wallet}&preset=１００`, 'preset'],
    ['deposit-tx?recipient=0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02914&preset=100', 'recipient'],
    [`deposit-tx?recipient=${USDC}&preset=100`, 'recipient'],
    [`deposit-tx?recipient=${vault}&preset=100`, 'recipient'],
    [`deposit-tx?recipient=${wallet}`, 'amount'],
    [`deposit-tx?recipient=${wallet}&preset=100&amount=5`, 'amount'],
    [`deposit-tx?recipient=${wallet}&preset=99`, 'preset'],
    ...[
      '0',
      '0.0000001',
      '-5',
      '+5',
      ' 5',
      '5 ',
      '1e3',
      '1.0000001',
      '1,5',
      '1.',
      '１００',
      '٣',
      'NaN',
      '0x10',
      '',
    ]
      .concat(['1000000000.000001', '99999999999', String(2n ** 256n - 1n)])
      .map((amount): [string, string] => [
        `deposit-tx?recipient=${wallet}&amount=${encodeURIComponent(amount)}`,
        'amount',
      ]),
    [`deposit-tx?recipient=${wallet}&preset=10&mode=permit2`, 'mode'],
    ['redeem-tx', 'wallet'],
    [`redeem-tx?wallet=${wallet}&how=now`, 'how'],
    ['position/0x123', 'wallet'],
    ['history?days=0', 'days'],
    ['history?days=366', 'days'],
  ];
  for (const [path, field] of wrong) {
    const { status, body } = await world.refusal(path);
    assert.equal(status, 400, path);
    assert.equal(body.fields[0].field, field, path);
    assert.match(body.example, /\/api\/yield\//, path);
    assert.equal(body.success, false);
  }
  const lower = await world.refusal(`deposit-tx?recipient=${USDC.toLowerCase()}&preset=10`);
  assert.equal(lower.status, 400);
});

test('what would fail is not handed out, and the reason is told', async () => {
  const wallet = await world.wallet(10n * USD);
  const small = await world.refusal(`deposit-tx?recipient=${wallet.address}&amount=0.000001`);
  assert.deepEqual([small.status, small.body.code], [409, 'AMOUNT_TOO_SMALL']);
  await forgotten(async () => {
    await act(SANDBOX_ACCOUNTS.deployer.address, USDC, 'blacklist', [wallet.address]);
    for (const usd of ['5', '50']) {
      const barred = await world.refusal(`deposit-tx?recipient=${wallet.address}&amount=${usd}`);
      assert.deepEqual([barred.status, barred.body.code], [409, 'WOULD_FAIL'], usd);
      assert.match(barred.body.failure.message, /blacklisted/);
    }
  });
});

test('the yield is that of the wallet’s own entries, and shares that go take their part of the cost', async () => {
  await forgotten(async () => {
    const wallet = await world.wallet(3_000n * USD);
    const { vault } = await world.answer('stats');
    const price = async () => Number(await read(vault.address, 'convertToAssets', [10n ** 18n])) / 1e12;
    await deposit(wallet, 1_000);
    const first = { shares: await balance(vault.address, wallet.address), price: await price() };
    await passTime(world.node, 30 * DAY_SECONDS);
    await deposit(wallet, 2_000);
    const all = await balance(vault.address, wallet.address);
    const second = { shares: all - first.shares, price: await price() };
    assert(second.price > first.price * 1.001, 'the price has risen');
    await passTime(world.node, 10 * DAY_SECONDS);
    await wallet.send([
      {
        to: vault.address,
        data: encodeFunctionData({ abi: ABI, functionName: 'transfer', args: [POCKET, all / 4n] }),
        gas: toHex(200_000),
      },
    ]);
    const { position } = await world.answer(`position/${wallet.address}`);
    const now = await price();
    const kept = 3 / 4;
    const worthAtEntry = [first, second].reduce(
      (sum, each) => sum + (Number(each.shares) / 1e12) * each.price,
      0,
    );
    const net = kept * ((Number(all) / 1e12) * now - worthAtEntry);
    assert(net > 1, `${net} was earned`);
    assert(Math.abs(Number(position.netYieldUsdc) - net) < 0.001, `${position.netYieldUsdc}, by hand ${net}`);
    assert(Math.abs(Number(position.depositedUsdc) - 2_250) < 0.001);
    const gross = Number(position.estimatedYieldUsdc);
    assert(Math.abs(Number(position.estimatedPerformanceFee) - gross * 0.15) < 0.00001);
    // Whoever was given the shares got them at the price of their last trade.
    const given = await world.answer(`position/${POCKET}`);
    assert(Number(given.position.netYieldUsdc) > 0 && Number(given.position.netYieldUsdc) < net);
  });
});

/** Of a wallet that gets shares from another. */
const POCKET = '0x3333333333333333333333333333333333333333';

test('drill: a protocol is borrowed dry, and its holders get what there is or their part of it', async () => {
  await forgotten(async () => {
    const wallet = await world.wallet(1_000n * USD);
    await deposit(wallet, 1_000);
    const dry = (await read(AAVE_POOL, 'getVirtualUnderlyingBalance', [USDC])) as bigint;
    const { borrower } = SANDBOX_ACCOUNTS;
    await act(borrower.address, AAVE_POOL, 'borrow', [USDC, dry - 100n * USD, 2n, 0, borrower.address]);
    const { status, body } = await world.refusal(`redeem-tx?wallet=${wallet.address}`);
    assert.deepEqual(
      [status, body.code, body.failure.error],
      [409, 'NOT_ENOUGH_LIQUIDITY', 'NotEnoughLiquidity'],
    );
    assert.deepEqual(
      body.instead.map(({ how }: { how: string }) => how),
      ['available', 'in-kind'],
    );
    const { position, redeem_hint, next_action } = await world.answer(`position/${wallet.address}`);
    assert.equal(redeem_hint, null);
    near(position.withdrawableNowUsdc, 100);
    assert.deepEqual(
      next_action.map(({ action }: { action: string }) => action),
      ['redeem-available', 'redeem-in-kind'],
    );
    const some = await world.answer(`redeem-tx?wallet=${wallet.address}&how=available`);
    await passTime(world.node, 300);
    await wallet.send(some.steps);
    assert.equal((await balance(USDC, wallet.address)) >= 99_999_999n, true);
    const rest = await world.answer(`redeem-tx?wallet=${wallet.address}&how=in-kind`);
    await wallet.send(rest.steps);
    const got = await balance(AAVE_USDC, wallet.address);
    assert(got > 894_000_000n && got < 896_000_000n, `${got} aTokens`);
    const nothing = await world.refusal(`redeem-tx?wallet=${wallet.address}&how=available`);
    assert.equal(nothing.body.code, 'NO_SHARES');
  });
});

test('drill: the active protocol is paused; deposits go to the next one, and its holders can leave with what there is', async () => {
  await forgotten(async () => {
    const [holder, late] = [await world.wallet(100n * USD), await world.wallet(100n * USD)];
    await deposit(holder, 100);
    await act(SANDBOX_ACCOUNTS.lender.address, AAVE_CONFIGURATOR, 'setReservePause', [USDC, true]);
    const { expected, warnings } = await world.answer(`deposit-tx?recipient=${late.address}&amount=100`);
    assert.deepEqual(
      [expected.goesTo, expected.liesIdle, warnings],
      [{ aave: '0.000000', compound: '100.000000', morpho: '0.000000' }, '0.000000', []],
    );
    // The gas that was measured is enough for a protocol that fails within it.
    await deposit(late, 100);
    const { body } = await world.refusal(`redeem-tx?wallet=${holder.address}`);
    // The late deposit pays the first who leaves.
    await holder.send(body.steps);
    const inKind = await world.refusal(`redeem-tx?wallet=${late.address}&how=in-kind`);
    assert.deepEqual(
      [inKind.status, inKind.body.code],
      [409, 'NOT_HANDED_OVER'],
      'nothing is given up unasked',
    );
    const partly = await world.answer(`redeem-tx?wallet=${late.address}&how=in-kind-partly`);
    assert.deepEqual([partly.warnings[0].code, partly.warnings[0].costs], ['PART_IS_GIVEN_UP', true]);
    assert.match(partly.warnings[0].message, /your part in Aave v3, 9\d\.\d+ USDC/);
    assert.equal(partly.steps[0].call.parameters.leaveBehind, 1, 'no more is given up than what is refused');
    const all = await world.refusal(`redeem-tx?wallet=${late.address}`);
    assert.equal(all.body.code, 'NOT_ENOUGH_LIQUIDITY');
    await act(SANDBOX_ACCOUNTS.lender.address, AAVE_CONFIGURATOR, 'setReservePause', [USDC, false]);
    const { steps } = await world.answer(`redeem-tx?wallet=${late.address}`);
    await late.send(steps);
    assert((await balance(USDC, late.address)) >= 99_499_990n, 'who waits loses nothing');
  });
});

test('drill: no protocol takes anything; a deposit is told that it would lie idle, before it is signed', async () => {
  await forgotten(async () => {
    const wallet = await world.wallet(100n * USD);
    await act(SANDBOX_ACCOUNTS.lender.address, AAVE_CONFIGURATOR, 'setReservePause', [USDC, true]);
    await act(SANDBOX_ACCOUNTS.borrower.address, COMET, 'sandboxPause', [true, false, false]);
    await act(SANDBOX_ACCOUNTS.lender.address, META_MORPHO, 'setSupplyQueue', [[]]);
    for (const mode of ['standard', 'permit']) {
      const { warnings, expected } = await world.answer(
        `deposit-tx?recipient=${wallet.address}&amount=50&mode=${mode}`,
      );
      assert.deepEqual(
        warnings.map(({ code, costs }: { code: string; costs: boolean }) => [code, costs]),
        [['WILL_LIE_IDLE', true]],
        mode,
      );
      assert.match(warnings[0].message, /^All of it would lie idle.*Aave v3 and Compound v3 and Morpho/);
      assert.equal(expected.liesIdle, '50.000000');
    }
    await assert.rejects(
      example(wallet.privateKey, 'deposit', '50'),
      (error: Error & { stdout?: string }) =>
        /^warning: All of it would lie idle/.test(error.stdout ?? '') &&
        /nothing was sent/.test(error.message),
    );
    await deposit(wallet, 50);
    // An answer of a moment ago is given again for some seconds.
    await until('the deposit is told as idle', async () => {
      const { stats } = await world.answer('stats');
      return Number(stats.idleUsdc) >= 50;
    });
  });
});

test('drill: a position cannot be read; nothing is redeemed for less, and two exits are handed out with their parameters', async () => {
  await forgotten(async () => {
    const { vault } = await world.answer('contract');
    const [stays, leaves, inKind] = await Promise.all(
      [100n, 100n, 100n].map((usd) => world.wallet(usd * USD)),
    );
    assert(stays && leaves && inKind);
    for (const wallet of [stays, leaves, inKind]) await deposit(wallet, 100);
    // Half of it is in Compound.
    const { keeper } = SANDBOX_ACCOUNTS;
    await world.client.setBalance({ address: keeper.address, value: 10n ** 18n });
    await world.client.impersonateAccount({ address: keeper.address });
    await passTime(world.node, DAY_SECONDS);
    const half = ((await read(vault.address, 'totalAssets')) as bigint) / 2n;
    await act(keeper.address, vault.address, 'move', [0, 1, half, 0n]);
    const code = (await world.client.getCode({ address: AAVE_USDC })) ?? '0x';
    await world.client.setCode({ address: AAVE_USDC, bytecode: '0xfe' });

    for (const how of ['', '&how=available']) {
      const { status, body } = await world.refusal(`redeem-tx?wallet=${leaves.address}${how}`);
      assert.deepEqual([status, body.code, body.steps], [409, 'PROTOCOL_UNREAD', undefined], how);
      const [partly, kind] = body.instead;
      assert.deepEqual(
        [partly.how, partly.function, kind.how, kind.function],
        ['partly', 'redeemPartly', 'in-kind-partly', 'exitInKind'],
      );
      const minAssets = BigInt(partly.parameters.minAssets);
      assert(minAssets > 49n * USD && minAssets < 50n * USD, `${minAssets}`);
      assert.deepEqual([kind.parameters.leaveBehind, kind.givesUp], [1, ['your part in Aave v3']]);
      assert.equal(partly.parameters.owner, leaves.address);
    }
    const { position, redeem_hint, redeem_hint_reason, next_action } = await world.answer(
      `position/${leaves.address}`,
    );
    assert.equal(redeem_hint, null);
    assert.match(redeem_hint_reason, /cannot be read/);
    assert.equal(position.everythingReadable, false);
    assert.match(position.notes[0], /counts as nothing/);
    assert.deepEqual(
      next_action.map(({ action }: { action: string }) => action),
      ['wait', 'redeem-in-kind', 'redeem-partly'],
    );
    await assert.rejects(
      example(leaves.privateKey, 'redeem'),
      (error: Error) => /cannot be read/.test(error.message) && /how=partly/.test(error.message),
    );
    assert.equal(await balance(USDC, leaves.address), 0n);

    const partly = await world.answer(`redeem-tx?wallet=${leaves.address}&how=partly`);
    assert.deepEqual(
      partly.warnings.map(({ code: which, costs }: { code: string; costs: boolean }) => [which, costs]),
      [['PART_IS_FORFEITED', true]],
    );
    await leaves.send(partly.steps);
    const got = await balance(USDC, leaves.address);
    assert(got > 49n * USD && got < 50n * USD, `${got}`);
    const kind = await world.answer(`redeem-tx?wallet=${inKind.address}&how=in-kind-partly`);
    await inKind.send(kind.steps);
    assert((await balance(COMET, inKind.address)) > 49n * USD);

    await world.client.setCode({ address: AAVE_USDC, bytecode: code });
    const whole = await world.answer(`redeem-tx?wallet=${stays.address}`);
    await stays.send(whole.steps);
    assert((await balance(USDC, stays.address)) > 99n * USD, 'who waits loses nothing');
  });
});

test('drill: a protocol loses money; every share is worth less by the same part, and nobody is kept', async () => {
  await forgotten(async () => {
    const wallet = await world.wallet(1_000n * USD);
    const { vault } = await world.answer('contract');
    const { keeper } = SANDBOX_ACCOUNTS;
    await world.client.setBalance({ address: keeper.address, value: 10n ** 18n });
    await world.client.impersonateAccount({ address: keeper.address });
    await act(keeper.address, vault.address, 'move', [0, 1, 0n, 0n]);
    await deposit(wallet, 1_000);
    const inComet = Number(await balance(COMET, vault.address));
    const exposed = inComet / Number(await read(vault.address, 'totalAssets'));
    assert(exposed > 0.9, `${exposed} of it is in Compound`);
    const before = await world.answer(`position/${wallet.address}`);
    await act(SANDBOX_ACCOUNTS.borrower.address, COMET, 'sandboxLose', [10n ** 17n]);
    const { position, redeem_hint } = await world.answer(`position/${wallet.address}`);
    const left = Number(position.currentValueUsdc) / Number(before.position.currentValueUsdc);
    assert(Math.abs(left - (1 - 0.1 * exposed)) < 0.001, `${left} is left`);
    assert(Number(position.netYieldUsdc) < -90);
    assert.equal(position.estimatedPerformanceFee, '0.000000');
    await wallet.send([redeem_hint]);
    assert((await balance(USDC, wallet.address)) > 895n * USD);
  });
});

test('drill: a protocol burns all gas that it is called with; its rate is null, and the others are told', async () => {
  await forgotten(async () => {
    const wallet = await world.wallet(100n * USD);
    await deposit(wallet, 100);
    // JUMPDEST, PUSH1 0, JUMP: for ever.
    await world.client.setCode({ address: AAVE_POOL, bytecode: '0x5b600056' });
    await world.client.setCode({ address: AAVE_USDC, bytecode: '0x5b600056' });
    const server = await startTestServer({
      pools: database,
      environment: {
        UPSTREAM_BASE_BASE_URL: world.chain.url,
        YIELD_VAULT_ADDRESS: world.chain.vault,
      },
    });
    try {
      const asked = await fetch(`${server.url}/api/yield/rates`);
      const { rates, currentBest } = await jsonOf(asked);
      assert.equal(rates.aave.grossApyPercent, null);
      assert.equal(rates.aave.status, 'unreadable');
      assert.match(rates.aave.reason, /Aave/);
      assert(rates.compound.grossApyPercent > 1 && rates.morpho.grossApyPercent > 0.5);
      assert.notEqual(currentBest.protocol, 'aave');
      const permit = await fetch(
        `${server.url}/api/yield/deposit-tx?recipient=${wallet.address}&preset=10&mode=permit`,
      );
      assert.equal((await jsonOf(permit)).code, 'NO_PERMIT_DEPOSIT');
    } finally {
      await server.close();
    }
    const late = await world.refusal(`deposit-tx?recipient=${wallet.address}&amount=10`);
    assert.deepEqual([late.status, late.body.code], [409, 'DEPOSITS_CLOSED']);
    assert.match(late.body.message, /cannot be read/);
    const leaving = await world.refusal(`redeem-tx?wallet=${wallet.address}`);
    assert.deepEqual([leaving.status, leaving.body.code], [409, 'PROTOCOL_UNREAD']);
  });
});

test('the index follows the chain when it takes another way, and two replicas write it once', async () => {
  const [node, other] = [openNode(world.chain.url), openNode(world.chain.url)];
  const about = { vault: world.chain.vault, sinceBlock: 0 };
  const one = createIndexer(database.sql, node, about);
  const two = createIndexer(database.sql, other, about);
  const moves = async () =>
    (
      await database.sql<{ to_wallet: string | null }[]>`
        SELECT to_wallet FROM yield_moves WHERE kind = 'deposit' ORDER BY block_number, log_index`
    ).map(({ to_wallet }) => to_wallet);
  try {
    const [a, b] = [await world.wallet(10n * USD), await world.wallet(10n * USD)];
    await one.catchUp();
    const before = await moves();
    await forgotten(async () => {
      await deposit(a, 10);
      await Promise.all([one.catchUp(), two.catchUp()]);
      assert.deepEqual(await moves(), [...before, a.address.toLowerCase()]);
    });
    // The same heights, other blocks.
    await deposit(b, 10);
    await world.client.mine({ blocks: 3 });
    await Promise.all([two.catchUp(), one.catchUp()]);
    assert.deepEqual(await moves(), [...before, b.address.toLowerCase()]);
    // Everything anew gives the same: a restart from nothing.
    await database.sql`TRUNCATE yield_index, yield_marks, yield_moves`;
    await Promise.all([one.catchUp(), two.catchUp()]);
    assert.deepEqual(await moves(), [...before, b.address.toLowerCase()]);
  } finally {
    await node.close();
    await other.close();
  }
});

test('history has a point for each stretch, as it was noted', async () => {
  const job = world.server.app.jobs.find(({ name }) => name === 'yield-sample');
  await Promise.all([job?.run(), job?.run()]);
  const { points } = await world.answer('history?days=7');
  assert.equal(points.length, 1);
  assert.equal(points[0].currentProtocol, 'aave');
  assert(points[0].grossApyPercent.compound > 1);
  assert.match(points[0].pricePerShare, /^[1-9]\d*\.\d{6}$/);
});

test('history tells what the keeper moved and, where a keeper of this server said it, why; a fork takes it back', async () => {
  const index = world.server.app.jobs.find(({ name }) => name === 'yield-index');
  const { vault } = world.chain;
  const { keeper } = SANDBOX_ACCOUNTS;
  const told = async () => {
    await index?.run();
    return (await world.answer('history?days=7')).moves;
  };
  const before = await told();
  await forgotten(async () => {
    await deposit(await world.wallet(1_000n * USD), 1_000);
    await world.client.setBalance({ address: keeper.address, value: 10n ** 18n });
    await world.client.impersonateAccount({ address: keeper.address });
    await passTime(world.node, DAY_SECONDS);
    const proposal = {
      from: 'aave',
      to: 'compound',
      partial: 'liquidity',
      amountMicros: '400000000',
      gainMicrosPerYear: '2000000',
      costMicros: '30000',
      yearlyPercentAfter: 3.9,
    } as const;
    // Of two that were tried the one that was made is told.
    const rates = { aave: 3.4, compound: 4, morpho: null };
    const noted = { vault, allowedAt: 0n, proposal };
    await noteReason(database.sql, noted, rates, Date.now());
    const other = { ...proposal, amountMicros: '399000000', yearlyPercentAfter: 1 };
    await noteReason(database.sql, { ...noted, proposal: other }, rates, Date.now());
    await act(keeper.address, vault, 'move', [0, 1, 400n * USD, 0n]);
    await passTime(world.node, DAY_SECONDS);
    await act(keeper.address, vault, 'move', [1, 2, 10n * USD, 0n]);
    const moves = await told();
    assert.equal(moves.length, before.length + 2);
    const [first, second] = moves.slice(-2);
    assert.deepEqual([first.from, first.to, first.amountUsdc], ['aave', 'compound', '400.000000']);
    assert(Number(first.receivedUsdc) > 399.99);
    assert.deepEqual(first.reason, {
      yearlyPercentBefore: { from: 3.4, to: 4 },
      yearlyPercentAfter: 3.9,
      gainUsdcPerYear: '2.000000',
      costUsdc: '0.030000',
      partial: 'liquidity',
    });
    const receipt = await world.client.getTransactionReceipt({ hash: first.transaction });
    assert.equal(first.blockNumber, String(receipt.blockNumber));
    assert.deepEqual([second.from, second.to, second.reason], ['compound', 'morpho', null]);
  });
  await world.client.mine({ blocks: 1 });
  assert.deepEqual(await told(), before);
});

test('the example deposits 100 USDC, and after half a year it leaves with more, entry fee and all', async () => {
  const privateKey = generatePrivateKey();
  const { address } = privateKeyToAccount(privateKey);
  await fund(world.chain.url, address, { usdcMicros: 100n * USD, ethWei: 10n ** 17n });
  const run = (...args: readonly string[]) => example(privateKey, ...args);
  assert.match(await run('deposit', '100'), /^approve: 0x\w{64}\ndeposit: 0x\w{64}\ndeposited 99\.5\d* USDC/);
  assert.equal(await balance(USDC, address), 0n);
  await assert.rejects(
    run('deposit', '100'),
    (error: Error & { stdout?: string }) =>
      /^warning: /.test(error.stdout ?? '') && /earn-on-base: nothing was sent/.test(error.message),
  );
  await passTime(world.node, 180 * DAY_SECONDS);
  const { position } = await world.answer(`position/${address}`);
  assert(Number(position.gainUsdc) > 0.3, JSON.stringify(position));
  assert.match(await run('redeem'), /redeemed 10[01]\.\d+ USDC/);
  const got = await balance(USDC, address);
  assert(got > 100_300_000n, `${got} after 180 days`);
  const { daysToEarnBackEntryFee, currentAPY } = await world.answer('manifest');
  assert(Math.abs(99.5 * (1 + currentAPY / 100) ** (daysToEarnBackEntryFee / 365) - 100) < 0.02);
});

test('documents speak of the vault where there is one', async () => {
  const openapi = await jsonOf(fetch(`${world.server.url}/openapi.json`));
  assert(Object.keys(openapi.paths).includes('/api/yield/deposit-tx'));
  assert(openapi.tags.some(({ name }: { name: string }) => name === 'Yield'));
  assert.match(await (await fetch(`${world.server.url}/llms.txt`)).text(), /\/api\/yield\/manifest/);
});

test('without a vault its addresses say so, and no document mentions them', async () => {
  const server = await startTestServer({ pools: database });
  try {
    for (const path of ['rates', 'deposit-tx?recipient=0x1', 'position/0x1', 'whatever']) {
      const answer = await fetch(`${server.url}/api/yield/${path}`);
      assert.equal(answer.status, 503, path);
      assert.match((await jsonOf(answer)).message, /This server offers no vault/);
    }
    for (const path of ['openapi.json', 'llms.txt', '.well-known/agent-instructions.json'])
      assert.doesNotMatch(await (await fetch(`${server.url}/${path}`)).text(), /api\/yield/, path);
  } finally {
    await server.close();
  }
});
