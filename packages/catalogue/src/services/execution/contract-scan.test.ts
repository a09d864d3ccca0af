import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Address, concatHex, encodeFunctionData, type Hex, maxUint256, padHex, parseAbi } from 'viem';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { BASE, UNISWAP_POSITIONS, USDC, WETH } from '../../../../sandbox/src/chain/addresses.ts';
import { connect, type Node, transact } from '../../../../sandbox/src/chain/node.ts';
import { deploy } from '../../../../sandbox/src/chain/placement.ts';
import {
  compiled,
  type ScannedContracts,
  scannedContracts,
} from '../../code-analysis/bytecode/scanned-contracts.fixture.ts';
import { evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import type { VerifiedSource } from '../../upstreams/adapters/sourcify.ts';
import { down, notConfigured, reply, runContext } from '../run-context.fixture.ts';
import contractScan from './contract-scan.ts';

const ABI = parseAbi([
  'function approve(address spender, uint256 amount) returns (bool)',
  'function setMarket(address at)',
  'function renounceOwnership()',
  'function getPool(address a, address b, uint24 fee) view returns (address)',
  'function createAndInitializePoolIfNecessary(address token0, address token1, uint24 fee, uint160 sqrtPriceX96) returns (address)',
  'struct Position { address token0; address token1; uint24 fee; int24 tickLower; int24 tickUpper; uint256 amount0Desired; uint256 amount1Desired; uint256 amount0Min; uint256 amount1Min; address recipient; uint256 deadline; }',
  'function mint(Position position) returns (uint256, uint128, uint256, uint256)',
  'function createPair(address a, address b) returns (address)',
  'function getPair(address a, address b) view returns (address)',
  'function transfer(address to, uint256 amount) returns (bool)',
  'function mint(address to) returns (uint256)',
]);
const SHELL: Address = '0x00000000000000000000000000000000000C0001';
/** Where `Honest` and what is made from it keep their owner. */
const OWNER_SLOT = padHex('0x4', { size: 32 });
const SLOTS = {
  implementation: '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc',
  admin: '0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103',
  beacon: '0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50',
  proxiable: '0xc5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7',
  zeppelinOs: '0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3',
} as const;

let chain: TestChain;
let node: Node;
let contracts: ScannedContracts;
let owner: Address;
before(async () => {
  contracts = scannedContracts();
  chain = await startTestChain();
  node = connect(chain.url);
  owner = chain.accounts.deployer.address;
});
after(() => chain.stop());

const VERIFIED: VerifiedSource = {
  match: 'exact_match',
  verifiedAt: '2026-01-05T10:00:00Z',
  language: 'Solidity',
  compilerVersion: '0.8.37',
  contractName: 'Honest',
  remappings: [],
  sources: {},
};
async function scan(contractAddress: Address, contract = async () => reply('sourcify', VERIFIED)) {
  const input = contractScan.input.parse({ contractAddress, chain: 'base' });
  const made = await contractScan.run(input, runContext({ ...chain.upstreams, sourcify: { contract } }));
  assert.equal(contractScan.output.safeParse(made.fields).error, undefined);
  // biome-ignore lint/suspicious/noExplicitAny: fields of the answer, which the schema above has checked
  return { ...made, fields: made.fields as any };
}
const found = (fields: { vulnerabilities: { id: string; severity: string }[] }) =>
  Object.fromEntries(fields.vulnerabilities.map(({ id, severity }) => [id, severity]));
const send = (to: Address, data: Hex) => transact(node, { from: owner, to, data });

/** A token with a pool of its own, as many units of it as of the quote at a price of 1. */
async function listed(name: string, quote: Address = WETH, units = 10n ** 18n): Promise<Address> {
  const token = await deploy(node, contracts.creation(name, owner));
  await send(
    token,
    encodeFunctionData({ abi: ABI, functionName: 'approve', args: [UNISWAP_POSITIONS, maxUint256] }),
  );
  const [token0, token1] = token.toLowerCase() < quote.toLowerCase() ? [token, quote] : [quote, token];
  const pool = [token0, token1, 3_000] as const;
  await send(
    UNISWAP_POSITIONS,
    encodeFunctionData({
      abi: ABI,
      functionName: 'createAndInitializePoolIfNecessary',
      args: [...pool, 2n ** 96n],
    }),
  );
  const position = {
    token0,
    token1,
    fee: 3_000,
    tickLower: -887_220,
    tickUpper: 887_220,
    amount0Desired: units,
    amount1Desired: units,
    amount0Min: 0n,
    amount1Min: 0n,
    recipient: owner,
    deadline: maxUint256,
  };
  await send(UNISWAP_POSITIONS, encodeFunctionData({ abi: ABI, functionName: 'mint', args: [position] }));
  if (name === 'Honeypot') {
    const at = await node.readContract({
      address: BASE.uniswapFactory,
      abi: ABI,
      functionName: 'getPool',
      args: pool,
    });
    await send(token, encodeFunctionData({ abi: ABI, functionName: 'setMarket', args: [at] }));
  }
  return token;
}

const PAIR_FACTORY = evmChainFacts('base').uniswapV2Factory;
/** Uniswap's own factory, where it is on Base. */
async function placePairFactory(): Promise<void> {
  // Published beside what Uniswap v3's periphery knows of it.
  const periphery = createRequire(import.meta.url).resolve('@uniswap/v3-periphery/package.json');
  const artifact = createRequire(periphery).resolve('@uniswap/v2-core/build/UniswapV2Factory.json');
  const { evm } = JSON.parse(readFileSync(artifact, 'utf8'));
  await node.setCode({ address: PAIR_FACTORY, bytecode: `0x${evm.deployedBytecode.object}` });
  await node.setNonce({ address: PAIR_FACTORY, nonce: 1 });
}

/** A token with a Uniswap v2 pair of its own, as many units of it as of the quote. */
async function paired(name: string, quote: Address = WETH, units = 10n ** 18n): Promise<Address> {
  const token = await deploy(node, contracts.creation(name, owner));
  const both = [token, quote] as const;
  await send(PAIR_FACTORY, encodeFunctionData({ abi: ABI, functionName: 'createPair', args: both }));
  const asked = { address: PAIR_FACTORY, abi: ABI, functionName: 'getPair', args: both } as const;
  const pair = await node.readContract(asked);
  for (const each of both)
    await send(each, encodeFunctionData({ abi: ABI, functionName: 'transfer', args: [pair, units] }));
  await send(pair, encodeFunctionData({ abi: ABI, functionName: 'mint', args: [owner] }));
  if (name === 'Honeypot')
    await send(token, encodeFunctionData({ abi: ABI, functionName: 'setMarket', args: [pair] }));
  return token;
}

describe('a simulated purchase and sale in a Uniswap v2 pair', () => {
  before(placePairFactory);

  const cases = [
    ['Honest', 'sold', null, 0, 0, false],
    ['Taxed', 'sold', null, 10, 10, false],
    ['Honeypot', 'sale_failed', 'not for sale', 0, null, true],
    [
      'Closed',
      'purchase_failed',
      'TRANSFER_FAILED: the token refused the transfer from the pool',
      null,
      null,
      null,
    ],
  ] as const;
  for (const [name, outcome, reason, buyTax, sellTax, honeypot] of cases) {
    it(`tells what comes of it for the contract ${name}`, async () => {
      const { fields } = await scan(await paired(name));
      const { trade } = fields;
      assert.deepEqual([trade.poolKind, trade.poolFeePercent, trade.quoteToken], ['uniswap-v2', 0.3, WETH]);
      assert.deepEqual(
        [trade.outcome, trade.reason, trade.buyTaxPercent, trade.sellTaxPercent],
        [outcome, reason, buyTax, sellTax],
      );
      assert.equal(fields.checks.honeypot.found, honeypot);
    });
  }

  it('is made for USDC too, and in the deepest of both kinds', async () => {
    const { fields } = await scan(await paired('Honest', USDC, 10n ** 9n));
    assert.deepEqual([fields.trade.outcome, fields.trade.quoteToken], ['sold', USDC]);
    const token = await listed('Honest');
    const both = [token, WETH] as const;
    await send(PAIR_FACTORY, encodeFunctionData({ abi: ABI, functionName: 'createPair', args: both }));
    const asked = { address: PAIR_FACTORY, abi: ABI, functionName: 'getPair', args: both } as const;
    const pair = await node.readContract(asked);
    const fill = async (units: bigint) => {
      for (const each of both)
        await send(each, encodeFunctionData({ abi: ABI, functionName: 'transfer', args: [pair, units] }));
      await send(pair, encodeFunctionData({ abi: ABI, functionName: 'mint', args: [owner] }));
    };
    await fill(10n ** 16n);
    assert.equal((await scan(token)).fields.trade.poolKind, 'uniswap-v3');
    await fill(2n * 10n ** 18n);
    assert.equal((await scan(token)).fields.trade.poolKind, 'uniswap-v2');
  });
});

describe('a simulated purchase and sale', () => {
  it('goes through with an honest token, for the wrapped coin and for USDC', async () => {
    for (const [quote, units] of [
      [WETH, 10n ** 18n],
      [USDC, 10n ** 9n],
    ] as const) {
      const { fields } = await scan(await listed('Honest', quote, units));
      assert.deepEqual(
        [
          fields.trade.outcome,
          fields.trade.buyTaxPercent,
          fields.trade.sellTaxPercent,
          fields.trade.quoteToken,
        ],
        ['sold', 0, 0, quote],
      );
      assert.equal(fields.checks.honeypot.found, false);
      assert.deepEqual([fields.safetyScore, fields.vulnerabilities], [100, []]);
      assert.deepEqual([fields.owner, fields.ownership, fields.paused], [owner, 'owned', null]);
    }
  });

  it('tells a token that cannot be sold, with what it says', async () => {
    const { fields } = await scan(await listed('Honeypot'));
    assert.equal(fields.trade.outcome, 'sale_failed');
    assert.equal(fields.trade.reason, 'not for sale');
    assert.equal(fields.checks.honeypot.found, true);
    assert.deepEqual(found(fields), { honeypot: 'CRITICAL' });
    assert.equal(fields.safetyScore, 60);
  });

  it('measures a tax by what arrives, both ways', async () => {
    const { fields } = await scan(await listed('Taxed'));
    assert.deepEqual(
      [fields.trade.outcome, fields.trade.buyTaxPercent, fields.trade.sellTaxPercent],
      ['sold', 10, 10],
    );
    assert.deepEqual(found(fields), { 'buy-tax': 'HIGH', 'sell-tax': 'HIGH' });
  });

  it('tells closed trading from a honeypot', async () => {
    const { fields } = await scan(await listed('Closed'));
    assert.deepEqual(
      [fields.trade.outcome, fields.trade.reason, fields.checks.honeypot.found],
      ['purchase_failed', 'TF: the token refused the transfer from the pool', null],
    );
    assert.deepEqual(found(fields), { 'purchase-failed': 'HIGH' });
  });

  it('is null with a reason without a pool, and for what is no token', async () => {
    const poolless = await scan(await deploy(node, contracts.creation('Honest', owner)));
    assert.equal(poolless.fields.trade, null);
    assert.equal(poolless.fields.checks.honeypot.found, null);
    assert.match(poolless.fields.checks.honeypot.detail, /no Uniswap v2 or v3 pool/);
    const none = await scan(await deploy(node, contracts.creation('Beacon', owner)));
    assert.match(none.fields.checks.honeypot.detail, /no ERC-20 token/);
    assert.match(none.notes.join(' '), /owner is null/);
  });

  it('is made by the code that its source compiles to', () => {
    const folder = join(import.meta.dirname, '..', 'shared', 'chain', 'trade-probe');
    const { TradeProbe } = compiled(readFileSync(join(folder, 'TradeProbe.sol'), 'utf8'), {
      evmVersion: 'london',
      optimizer: { enabled: true, runs: 200 },
      metadata: { bytecodeHash: 'none', appendCBOR: false },
    });
    const { runtimeCode } = JSON.parse(readFileSync(join(folder, 'TradeProbe.json'), 'utf8'));
    assert.equal(`0x${TradeProbe?.evm.deployedBytecode.object}`, runtimeCode);
  });
});

describe('what a contract lets somebody do', () => {
  it('is read from its dispatcher, and counts less once nobody owns it', async () => {
    const token = await deploy(node, contracts.creation('Powers', owner));
    const { fields } = await scan(token);
    assert.deepEqual(found(fields), {
      'power-mint': 'MEDIUM',
      'power-blacklist': 'MEDIUM',
      'power-fees': 'MEDIUM',
      'power-pause': 'MEDIUM',
      paused: 'HIGH',
    });
    assert.equal(fields.paused, true);
    assert.equal(fields.safetyScore, 100 - 4 * 8 - 20);
    assert.equal(
      fields.vulnerabilities.reduce((sum: number, each: { pointsOff: number }) => sum + each.pointsOff, 0),
      100 - fields.safetyScore,
    );
    assert.match(fields.checks.mint.detail, /mint\(address,uint256\)/);
    assert.equal(fields.checks.limits.found, false);
    await send(token, encodeFunctionData({ abi: ABI, functionName: 'renounceOwnership' }));
    const later = await scan(token);
    assert.equal(later.fields.ownership, 'renounced');
    assert.equal(found(later.fields)['power-mint'], 'LOW');
    // Nobody may use it as far as is known: low confidence, and half of the point for LOW.
    const mint = later.fields.vulnerabilities.find(({ id }: { id: string }) => id === 'power-mint');
    assert.deepEqual([mint.confidence, mint.pointsOff], ['low', 0.5]);
  });

  it('includes destroying it, and running code in its place', async () => {
    const { fields } = await scan(
      await deploy(node, contracts.creation('Dangers', owner).slice(0, -64) as Hex),
    );
    const { delegatecall, selfdestruct, ...rest } = found(fields);
    assert.deepEqual([delegatecall, selfdestruct], ['CRITICAL', 'CRITICAL']);
    assert.deepEqual(rest, { create2: 'LOW', 'tx-origin': 'LOW' });
    assert.equal(fields.checks.callcode.found, false);
    assert.equal(fields.safetyScore, 100 - 80 - 2);
  });
});

describe('a proxy', () => {
  const kinds = [
    ['ERC-1967', { implementation: 'Dangers', admin: 'owner' }],
    ['ERC-1967 beacon', { beacon: 'Beacon' }],
    ['ERC-1822', { proxiable: 'Dangers' }],
    ['zeppelinos', { zeppelinOs: 'Dangers' }],
  ] as const;
  for (const [kind, slots] of kinds) {
    it(`of the kind ${kind} is scanned by what it leads to`, async () => {
      const logic = await deploy(node, contracts.creation('Powers', owner));
      const beacon = await deploy(node, contracts.creation('Beacon', logic));
      await node.setCode({ address: SHELL, bytecode: contracts.runtime('Shell') });
      await node.setStorageAt({ address: SHELL, index: OWNER_SLOT, value: padHex(owner, { size: 32 }) });
      for (const index of Object.values(SLOTS))
        await node.setStorageAt({ address: SHELL, index, value: padHex('0x', { size: 32 }) });
      for (const [slot, what] of Object.entries(slots)) {
        const value = what === 'Beacon' ? beacon : what === 'owner' ? owner : logic;
        await node.setStorageAt({
          address: SHELL,
          index: SLOTS[slot as keyof typeof SLOTS],
          value: padHex(value, { size: 32 }),
        });
      }
      const { fields, notes } = await scan(SHELL);
      assert.deepEqual(fields.proxy, {
        kind,
        implementation: logic,
        admin: 'admin' in slots ? owner : null,
        beacon: 'beacon' in slots ? beacon : null,
      });
      assert.deepEqual([fields.isProxy, fields.implementation], [true, logic]);
      assert.deepEqual(
        [found(fields)['upgradeable-proxy'], found(fields)['power-mint']],
        ['MEDIUM', 'MEDIUM'],
      );
      assert(fields.scannedBytes > fields.bytecodeSize);
      assert.match(notes.join(' '), /It is a proxy/);
    });
  }

  it('of the kind ERC-1167 leads to one address for ever, and says what it says', async () => {
    const logic = await deploy(node, contracts.creation('Powers', owner));
    const bytecode = concatHex(['0x363d3d373d3d3d363d73', logic, '0x5af43d82803e903d91602b57fd5bf3']);
    await node.setCode({ address: SHELL, bytecode });
    await node.setStorageAt({ address: SHELL, index: OWNER_SLOT, value: padHex(owner, { size: 32 }) });
    const { fields } = await scan(SHELL);
    assert.equal(fields.owner, owner);
    assert.equal(fields.proxy.kind, 'ERC-1167');
    assert.equal(fields.implementation, logic);
    assert.equal(found(fields)['upgradeable-proxy'], undefined);
    assert.equal(found(fields)['power-mint'], 'MEDIUM');
    assert.equal(fields.bytecodeSize, 45);
  });
});

describe('a scan', () => {
  it('says whether the source is verified, and null where nobody could be asked', async () => {
    const yes = await scan(WETH);
    assert.deepEqual([yes.fields.verified, yes.fields.verifiedAs.match], [true, 'exact_match']);
    const no = await scan(WETH, async () => reply('sourcify', null) as never);
    assert.equal(no.fields.verified, false);
    assert.equal(found(no.fields)['source-not-verified'], 'MEDIUM');
    const unasked = await scan(WETH, notConfigured('sourcify'));
    assert.equal(unasked.fields.verified, null);
    assert.equal(found(unasked.fields)['source-not-verified'], undefined);
    assert.match(unasked.notes.join(' '), /verified is null/);
    await assert.rejects(scan(WETH, down('sourcify')), { status: 503 });
  });

  it('is refused where there is no code', async () => {
    const empty: Address = '0x00000000000000000000000000000000000C0009';
    await assert.rejects(scan(empty), { status: 422, code: 'NO_CODE', field: 'contractAddress' });
    await node.setCode({ address: SHELL, bytecode: concatHex(['0xef0100', WETH]) });
    await assert.rejects(scan(SHELL), { status: 422, code: 'NOT_A_CONTRACT' });
    await node.setCode({ address: SHELL, bytecode: '0x00' });
    await node.setStorageAt({
      address: SHELL,
      index: SLOTS.implementation,
      value: padHex(empty, { size: 32 }),
    });
    await assert.rejects(scan(SHELL), {
      status: 422,
      code: 'PROXY_WITHOUT_CODE',
      field: 'contractAddress',
    });
    const most = 131_072;
    await node.setCode({ address: empty, bytecode: `0x${'00'.repeat(most + 1)}` });
    await assert.rejects(scan(empty), { status: 422, code: 'CODE_TOO_LARGE', field: 'contractAddress' });
    await assert.rejects(scan(SHELL), { status: 422, code: 'CODE_TOO_LARGE' });
    await node.setCode({ address: empty, bytecode: `0x${'00'.repeat(most)}` });
    assert.equal((await scan(empty)).fields.bytecodeSize, most);
    await node.setCode({ address: empty, bytecode: '0x' });
    for (const body of [{}, { contractAddress: WETH }, { contractAddress: 'x', chain: 'base' }])
      assert.equal(contractScan.input.safeParse(body).success, false);
  });
});
