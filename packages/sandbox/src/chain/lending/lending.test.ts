/** The lending protocols and the vault on the sandbox chain, as a client sees them that knows only the addresses on Base. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  type Address,
  createPublicClient,
  createWalletClient,
  type Hex,
  http,
  keccak256,
  parseAbi,
  toHex,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { StartError } from '../../../../process/src/start-error.ts';
import { SANDBOX_ACCOUNTS, SEED } from '../../accounts.fixture.ts';
import { startAnvil } from '../anvil.ts';
import { type EvmChain, startEvmChain } from '../chain.ts';
import { fund } from '../faucet.ts';
import { connect } from '../node.ts';
import { borrowAndRepay } from './borrowers.ts';
import { passTime } from './pass-time.ts';
import { placeLending } from './place.ts';
import { readManifest, SNAPSHOT_FILE } from './snapshot.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const AAVE_POOL = '0xA238Dd80C259a72e81d7e4664a9801593F98d1c5';
const COMET = '0xb125E6687d4313864e53df431d5425969c15Eb2F';
const META_MORPHO = '0xbeeF010f9cb27031ad51e3333f9aF9C6B1228183';
const ABI = parseAbi([
  'struct Reserve { uint256 configuration; uint128 liquidityIndex; uint128 liquidityRate; uint128 borrowIndex; uint128 borrowRate; uint128 stableRate; uint40 updatedAt; uint16 id; address aToken; address stableDebt; address variableDebt; address strategy; uint128 treasury; uint128 unbacked; uint128 isolated; }',
  'function getReserveData(address asset) view returns (Reserve)',
  'function getUtilization() view returns (uint256)',
  'function getSupplyRate(uint256 utilization) view returns (uint64)',
  'function name() view returns (string)',
  'function asset() view returns (address)',
  'function baseToken() view returns (address)',
  'function keeper() view returns (address)',
  'function feeRecipient() view returns (address)',
  'function vault() view returns (address)',
  'function nextMoveAt() view returns (uint256)',
  'function seeded() view returns (bool)',
  'function totalSupply() view returns (uint256)',
  'function maxDeposit(address receiver) view returns (uint256)',
  'function balanceOf(address account) view returns (uint256)',
  'function convertToAssets(uint256 shares) view returns (uint256)',
  'function approve(address spender, uint256 amount) returns (bool)',
  'function deposit(uint256 assets, address receiver) returns (uint256)',
  'function redeem(uint256 shares, address receiver, address owner) returns (uint256)',
  'function move(uint8 from, uint8 to, uint256 assets, uint256 minReceived)',
]);
const manifest = readManifest();
const { vault } = manifest;
const YEAR_SECONDS = 31_536_000;
const DAY_SECONDS = 86_400;
const GAS = 2_000_000n;

let folder: string;
let chain: EvmChain;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-lending-'));
  chain = await startEvmChain({ seed: SEED, stateDir: folder });
});
after(async () => {
  await chain.stop();
  rmSync(folder, { recursive: true, force: true });
});

const reader = () => createPublicClient({ chain: base, transport: http(chain.url), pollingInterval: 10 });
const read = (address: Address, functionName: string, args: readonly unknown[] = []): Promise<unknown> =>
  reader().readContract({ address, abi: ABI, functionName, args } as never);

async function send(privateKey: Hex, address: Address, functionName: string, args: readonly unknown[]) {
  const account = privateKeyToAccount(privateKey);
  const wallet = createWalletClient({ chain: base, transport: http(chain.url), account });
  // More gas than an estimate would give: a protocol that was already used in this second needs less gas now than in the
  // next second.
  const hash = await wallet.writeContract({ address, abi: ABI, functionName, args, gas: GAS } as never);
  assert.equal((await reader().waitForTransactionReceipt({ hash })).status, 'success', functionName);
}

/** The yearly interest rate that each protocol pays to lenders, as a fraction, without compounding. */
async function rates() {
  const reserve = (await read(AAVE_POOL, 'getReserveData', [USDC])) as { liquidityRate: bigint };
  const used = await read(COMET, 'getUtilization');
  const comet = (await read(COMET, 'getSupplyRate', [used])) as bigint;
  return { aave: Number(reserve.liquidityRate) / 1e27, comet: (Number(comet) * YEAR_SECONDS) / 1e18 };
}

const steakPrice = async () => Number(await read(META_MORPHO, 'convertToAssets', [10n ** 18n]));

test('every contract of the manifest is where it says, with the code it says, and knows the others', async () => {
  assert(statSync(SNAPSHOT_FILE).size < 160_000);
  assert.equal(readFileSync(SNAPSHOT_FILE).readUInt16BE(0), 0x1f8b, 'gzip');
  for (const [name, { address, codeHash }] of Object.entries(manifest.contracts)) {
    const code = await reader().getCode({ address });
    assert.equal(keccak256(code ?? '0x'), codeHash, name);
  }
  assert.equal(await read('0x4e65fE4DbA92790696d040ac24Aa414708F5c0AB', 'name'), 'Aave Base USDC');
  assert.equal(await read(META_MORPHO, 'asset'), USDC);
  assert.equal(await read(COMET, 'baseToken'), USDC);
  assert.match(String(await read(COMET, 'name')), /a double, not Compound/);
  assert(Object.keys(manifest.doubles).includes('SandboxComet'));
  assert.equal(await read(manifest.permitDeposit, 'vault'), vault);
  // The accounts that move the vault's funds and receive its fees are this installation's own.
  assert.equal(await read(vault, 'keeper'), SANDBOX_ACCOUNTS.keeper.address);
  assert.equal(await read(vault, 'feeRecipient'), SANDBOX_ACCOUNTS.recipient.address);
});

test('the protocols pay interest, and not the same next week', async () => {
  const now = await rates();
  for (const rate of Object.values(now)) assert(rate > 0.02 && rate < 0.08, JSON.stringify(now));
  // About a quarter and a half of each protocol's wave: it cannot be as high at all three, whatever the hour is.
  const seen = [now];
  for (const days of [1.6, 2.2, 3.2, 4.4]) {
    await borrowAndRepay(connect(chain.url), Date.now() + days * DAY_SECONDS * 1_000);
    seen.push(await rates());
  }
  for (const protocol of ['aave', 'comet'] as const)
    assert(new Set(seen.map((each) => each[protocol])).size > 1, `${protocol}: ${JSON.stringify(seen)}`);
  await borrowAndRepay(connect(chain.url), Date.now());
});

test('180 days pass for a deposit, and not for the clock; after them it is worth what was earned', async () => {
  const privateKey = generatePrivateKey();
  const { address } = privateKeyToAccount(privateKey);
  await fund(chain.url, address, { usdcMicros: 100_000_000n, ethWei: 10n ** 17n });
  await send(privateKey, USDC, 'approve', [vault, 100_000_000n]);
  await send(privateKey, vault, 'deposit', [100_000_000n, address]);
  const shares = await read(vault, 'balanceOf', [address]);
  const worth = async () => Number(await read(vault, 'convertToAssets', [shares])) / 1e6;
  assert.equal((await worth()).toFixed(3), '99.500', 'less the entry fee');
  const { keeper } = SANDBOX_ACCOUNTS;
  await send(keeper.privateKey, vault, 'move', [0, 1, 0n, 0n]);
  const cooledAt = Number(await read(vault, 'nextMoveAt'));
  assert(cooledAt > Date.now() / 1_000, 'the next move has to wait');
  const before = { aave: await rates(), steak: await steakPrice() };

  await passTime(connect(chain.url), 180 * DAY_SECONDS);
  const { timestamp } = await reader().getBlock();
  assert(Math.abs(Number(timestamp) - Date.now() / 1_000) < 60, 'payments are signed for this time');
  assert.equal(Number(await read(vault, 'nextMoveAt')), cooledAt - 180 * DAY_SECONDS);
  // Half a year at some 3 to 4 % a year; the vault keeps 15 % of the interest.
  const earned = (await worth()) / 99.5 - 1;
  assert(earned > 0.85 * 0.029 * (180 / 365) && earned < 0.85 * 0.042 * (180 / 365), `earned ${earned}`);
  const steak = (await steakPrice()) / before.steak - 1;
  assert(steak > 0.01 * (180 / 365) && steak < 0.06 * (180 / 365), `MetaMorpho ${steak}`);

  await chain.stop();
  chain = await startEvmChain({ seed: SEED, stateDir: folder });
  const kept = await worth();
  assert(Math.abs(kept / 99.5 - 1 - earned) < 1e-4, `a restart keeps it: ${kept}`);
  await send(privateKey, vault, 'redeem', [shares, address, address]);
  assert(Number(await read(USDC, 'balanceOf', [address])) > 100_500_000);
});

test('what is lent for 30 days in one go brings what its rate says', async () => {
  // Nobody borrows or repays meanwhile, so the rate stays the same: the interest is 30/365 of the yearly rate.
  const privateKey = generatePrivateKey();
  const { address } = privateKeyToAccount(privateKey);
  await fund(chain.url, address, { usdcMicros: 1_000_000_000n, ethWei: 10n ** 17n });
  const supply = parseAbi(['function supply(address asset, uint256 amount)']);
  await send(privateKey, USDC, 'approve', [COMET, 1_000_000_000n]);
  const account = privateKeyToAccount(privateKey);
  const wallet = createWalletClient({ chain: base, transport: http(chain.url), account });
  const hash = await wallet.writeContract({
    address: COMET,
    abi: supply,
    functionName: 'supply',
    args: [USDC, 1_000_000_000n],
  });
  await reader().waitForTransactionReceipt({ hash });
  const { comet } = await rates();
  const { moveStoredTimes } = await import('./stored-times.ts');
  await moveStoredTimes(connect(chain.url), manifest.storedTimes, -30 * DAY_SECONDS);
  const grown = Number(await read(COMET, 'balanceOf', [address])) / 1e9 - 1;
  assert(Math.abs(grown / ((comet * 30) / 365) - 1) < 1e-3, `${grown} against ${comet}`);
});

test('a placing that was cut short is done again, and a folder without the protocols gets them', async () => {
  const node = connect(chain.url);
  await node.setCode({ address: vault, bytecode: '0x' });
  await node.setCode({ address: COMET, bytecode: '0x' });
  await node.mine({ blocks: 1 });
  await chain.stop();
  chain = await startEvmChain({ seed: SEED, stateDir: folder });
  assert.equal(await read(vault, 'keeper'), SANDBOX_ACCOUNTS.keeper.address);
  assert((await rates()).comet > 0.02);
});

test('a vault that took deposits before there was a seed is seeded by the next start, and the deposits stay', async () => {
  const seedHolder = '0x000000000000000000000000000000000000dEaD';
  assert.equal(await read(vault, 'seeded'), true, 'a new chain has its seed');
  assert(((await read(vault, 'balanceOf', [seedHolder])) as bigint) > 0n);
  const privateKey = generatePrivateKey();
  const { address } = privateKeyToAccount(privateKey);
  await fund(chain.url, address, { usdcMicros: 100_000_000n, ethWei: 10n ** 17n });
  await send(privateKey, USDC, 'approve', [vault, 100_000_000n]);
  await send(privateKey, vault, 'deposit', [100_000_000n, address]);
  const node = connect(chain.url);
  // As a vault of before stored it: nothing where the mark of the seed is now.
  await forgetSeed(node);
  assert.equal(await read(vault, 'maxDeposit', [address]), 0n, 'without a seed no deposit is taken');
  const [shares, seeds] = await Promise.all([
    read(vault, 'balanceOf', [address]),
    read(vault, 'balanceOf', [seedHolder]),
  ]);
  await node.mine({ blocks: 1 });
  for (const time of ['the next start', 'the one after it']) {
    await chain.stop();
    chain = await startEvmChain({ seed: SEED, stateDir: folder });
    assert.equal(await read(vault, 'seeded'), true, time);
    assert.equal(await read(vault, 'balanceOf', [address]), shares);
    const more = ((await read(vault, 'balanceOf', [seedHolder])) as bigint) - (seeds as bigint);
    // The shares of 1 USDC, whose price has risen in 180 days.
    assert(more > 9n * 10n ** 11n && more <= 10n ** 12n, `${more} after ${time}`);
  }
  assert(((await read(vault, 'maxDeposit', [address])) as bigint) > 0n);
  assert(Number(await read(vault, 'convertToAssets', [shares])) > 99_499_000);
});

/** Finds the byte that says that the seed is in, and clears it. */
async function forgetSeed(node: ReturnType<typeof connect>): Promise<void> {
  for (let slot = 0; slot < 32; slot += 1) {
    const index = toHex(slot, { size: 32 });
    const stored = (await node.getStorageAt({ address: vault, slot: index })) ?? '0x';
    for (let byte = 0; byte < 32; byte += 1) {
      const at = 2 + 2 * byte;
      if (stored.slice(at, at + 2) !== '01') continue;
      const cleared = `${stored.slice(0, at)}00${stored.slice(at + 2)}` as Hex;
      await node.setStorageAt({ address: vault, index, value: cleared });
      if ((await read(vault, 'seeded')) === false) return;
      await node.setStorageAt({ address: vault, index, value: stored });
    }
  }
  assert.fail('no byte says that the seed is in');
}

test('a chain with other contracts is refused and stays as it is; code that stores the same is brought up to date', async () => {
  const node = connect(chain.url);
  const codeOf = async () => (await node.getCode({ address: vault })) ?? '0x';
  const code = await codeOf();
  // One more byte, which is never run: different code that does the same.
  const earlier: Hex = `${code}00`;
  await node.setCode({ address: vault, bytecode: earlier });
  await node.mine({ blocks: 1 });
  const recipient = await read(vault, 'feeRecipient');
  await assert.rejects(
    placeLending(node, SANDBOX_ACCOUNTS),
    (error: Error) =>
      error instanceof StartError && /another FareboxVault\. .*: npm run sandbox:reset$/.test(error.message),
  );
  assert.equal(await codeOf(), earlier);
  await chain.stop();
  await assert.rejects(
    startEvmChain({ seed: SEED, stateDir: folder }),
    /^Error: the sandbox chain was built by another/,
  );

  const another = await startAnvil({ stateDir: folder, port: 0, chainId: 8453 });
  try {
    const kept = connect(another.url);
    assert.equal(await kept.getCode({ address: vault }), earlier, 'it is as it was left');
    await placeLending(kept, SANDBOX_ACCOUNTS, [keccak256(earlier)]);
    assert.equal(await kept.getCode({ address: vault }), code);
    another.keep();
  } finally {
    await another.stop();
  }
  chain = await startEvmChain({ seed: SEED, stateDir: folder });
  assert.equal(await read(vault, 'feeRecipient'), recipient);
});
