/**
 * `npm run sandbox:build-chain`: compiles Aave v3.6, Morpho Blue, its interest rate model, MetaMorpho, the double of Comet
 * and our vault from their sources. Deploys them on a temporary chain, each protocol at the address that it has on Base,
 * and has one account lend and another borrow. Writes what the chain then holds to files beside this one. Only a developer
 * who changed a contract runs this: the sandbox reads the written files and needs no compiler.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  type Abi,
  type Address,
  concatHex,
  encodeAbiParameters,
  encodeDeployData,
  encodeFunctionData,
  getAddress,
  getContractAddress,
  type Hex,
  hexToBigInt,
  keccak256,
  maxUint256,
  parseAbi,
  parseEther,
  parseEventLogs,
  toHex,
} from 'viem';
import { ROOT, runForge } from '../../../../../contracts/forge.ts';
import { BUILDERS } from '../accounts.ts';
import { BASE, USDC, WETH } from '../addresses.ts';
import { startAnvil } from '../anvil.ts';
import { connect, type Node, transact } from '../node.ts';
import { placeOwnContracts } from '../own-contracts.ts';
import { placeAt } from '../placement.ts';
import { buildUsdc, mintUsdc } from '../usdc.ts';
import {
  AAVE_ACCESS,
  AAVE_CONFIGURATOR,
  AAVE_DATA,
  AAVE_ORACLE,
  AAVE_POOL,
  AAVE_PROVIDER,
  AAVE_TREASURY,
  AAVE_USDC,
  COMET,
  META_MORPHO,
  MORPHO,
  MORPHO_LLTV,
  MORPHO_RATES,
} from './addresses.ts';
import {
  MANIFEST_FILE,
  type Manifest,
  SNAPSHOT_FILE,
  type Snapshot,
  type SnapshotAccount,
  type StoredTime,
  type TokenPart,
} from './snapshot.ts';
import { timeIn } from './stored-times.ts';

const lender = BUILDERS.lender.address;
const borrower = BUILDERS.borrower.address;
const NOBODY: Address = '0x0000000000000000000000000000000000000000';
/** The time between two blocks while building. It is fixed, so that each build gives the same result. */
const BLOCK_SECONDS = 1;
/** The stored times are shifted as if the build had ended at this time: 2026-01-01, in seconds since 1970. */
const TAKEN_AT = 1_767_225_600;
/** MetaMorpho's timelock: the shortest time that it takes between the proposal of a market and lending to it. */
const MARKET_DELAY_SECONDS = 86_400n;
const USD = 1_000_000n;
const MILLION = 1_000_000n * USD;
/** What the vault's seed takes. */
const SEED = USD;
/** How much each protocol is lent, and how much of it is borrowed at first, in USDC micros. */
const LENT = { aave: 10n * MILLION, comet: 5n * MILLION, morpho: 5n * MILLION };
const BORROWED = { aave: 8n * MILLION, comet: 4_100_000n * USD, morpho: 4_500_000n * USD };
/** The borrower's collateral in WETH: more than twice as much as the debt requires. */
const COLLATERAL_WEI = { aave: parseEther('12000'), morpho: parseEther('6000') };
const ETH_USD = 3_000n;
/**
 * Aave's interest rate curve, in hundredths of a percent: the utilization at its kink, the rate at no utilization, and by
 * how much the rate rises up to the kink and after it.
 */
const AAVE_RATES = { optimal: 9_000, base: 0, slope: 550, steepSlope: 4_000 };
/**
 * The rate curves with which the market of USDC on Base began (https://github.com/compound-finance/comet,
 * deployments/base/usdc).
 */
const COMET_CURVES = {
  supply: [850_000_000_000_000_000n, 0n, 48_000_000_000_000_000n, 1_600_000_000_000_000_000n],
  borrow: [
    ...[850_000_000_000_000_000n, 15_000_000_000_000_000n],
    ...[53_000_000_000_000_000n, 1_800_000_000_000_000_000n],
  ],
} as const;
const VAULT = {
  name: 'Farebox USDC',
  symbol: 'fbUSDC',
  fees: { entryBps: 50, performanceBps: 1_500 },
  limits: { maxShareBps: 10_000, maxOfLiquidityBps: 5_000, cooldownSeconds: 21_600 },
};
/** The numbers by which the vault names its protocols. */
const AAVE = 0;
const COMPOUND = 1;
/** The contracts whose code is not the code on Base, with what stands there instead. */
const DOUBLES = {
  SandboxComet:
    'Compound v3 publishes no package: a double with its arithmetic, whose owner borrows without collateral',
  PriceOfUsdc: 'always 1 USD',
  PriceOfWeth: 'always 3,000 USD',
  MorphoOracle: 'always 3,000 USD',
};

interface Artifact {
  abi: Abi;
  bytecode: {
    object: Hex;
    linkReferences: Record<string, Record<string, { start: number; length: number }[]>>;
  };
}

const ERC20 = parseAbi([
  'function approve(address spender, uint256 amount) returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
  'function deposit() payable',
  'function transfer(address to, uint256 amount) returns (bool)',
  'event Approval(address indexed owner, address indexed spender, uint256 value)',
]);

/** The artifact that forge wrote for a contract. */
function artifact(name: string): Artifact {
  return JSON.parse(readFileSync(join(ROOT, `contracts/out/${name}.sol/${name}.json`), 'utf8'));
}

/** A contract's creation code with its arguments. @param libraries addresses of the libraries that it calls, by name */
function creationCode(name: string, args: readonly unknown[], libraries: Record<string, Address> = {}): Hex {
  const { abi, bytecode } = artifact(name);
  let code: string = bytecode.object;
  for (const [library, places] of Object.values(bytecode.linkReferences).flatMap((file) =>
    Object.entries(file),
  )) {
    for (const { start, length } of places) {
      const from = 2 + 2 * start;
      code = code.slice(0, from) + (libraries[library] ?? '').slice(2) + code.slice(from + 2 * length);
    }
  }
  return encodeDeployData({ abi, bytecode: code as Hex, args });
}

/** The steps that change the chain of which the snapshot is taken. */
function builderOf(node: Node) {
  /** Names of what is on the chain, for the manifest. */
  const named = new Map<string, Address>();
  return {
    named,
    async deploy(
      name: string,
      args: readonly unknown[],
      { libraries, as = name }: { libraries?: Record<string, Address>; as?: string } = {},
    ) {
      const data = creationCode(name, args, libraries);
      const { contractAddress } = await transact(node, { from: lender, data });
      if (!contractAddress) throw new Error(`${name} got no address`);
      const address = getAddress(contractAddress);
      named.set(as, address);
      return address;
    },
    async place(name: string, address: Address, args: readonly unknown[]) {
      await placeAt(node, address, creationCode(name, args));
      named.set(name, address);
    },
    /** Calls a function of a contract. @param name of the artifact whose ABI has the function */
    async send(to: Address, name: string, functionName: string, args: readonly unknown[], from = lender) {
      const { abi } = artifact(name);
      return transact(node, { from, to, data: encodeFunctionData({ abi, functionName, args }) });
    },
    async approve(token: Address, spender: Address, from: Address) {
      const args = [spender, maxUint256] as const;
      const data = encodeFunctionData({ abi: ERC20, functionName: 'approve', args });
      return transact(node, { from, to: token, data });
    },
    read: (address: Address, name: string, functionName: string, args: readonly unknown[]) =>
      node.readContract({ address, abi: artifact(name).abi, functionName, args }),
  };
}
type Builder = ReturnType<typeof builderOf>;

async function buildAave({ deploy, place, send, approve, named }: Builder, node: Node): Promise<void> {
  await place('PoolAddressesProvider', AAVE_PROVIDER, ['Aave Base Market', lender]);
  const strategy = await deploy('DefaultReserveInterestRateStrategyV2', [AAVE_PROVIDER]);
  const SupplyLogic = await deploy('SupplyLogic', []);
  const BorrowLogic = await deploy('BorrowLogic', []);
  const LiquidationLogic = await deploy('LiquidationLogic', []);
  const PoolLogic = await deploy('PoolLogic', []);
  const FlashLoanLogic = await deploy('FlashLoanLogic', [], { libraries: { BorrowLogic } });
  const ConfiguratorLogic = await deploy('ConfiguratorLogic', []);
  const libraries = { SupplyLogic, BorrowLogic, LiquidationLogic, PoolLogic, FlashLoanLogic };
  const pool = await deploy('PoolInstance', [AAVE_PROVIDER, strategy], { libraries });
  const configurator = await deploy('PoolConfiguratorInstance', [], { libraries: { ConfiguratorLogic } });

  const provider = (functionName: string, value: Address) =>
    send(AAVE_PROVIDER, 'PoolAddressesProvider', functionName, [value]);
  await provider('setACLAdmin', lender);
  await place('ACLManager', AAVE_ACCESS, [AAVE_PROVIDER]);
  await provider('setACLManager', AAVE_ACCESS);
  await send(AAVE_ACCESS, 'ACLManager', 'addPoolAdmin', [lender]);
  const usdcFeed = await deploy('SandboxPriceFeed', [10n ** 8n], { as: 'PriceOfUsdc' });
  const wethFeed = await deploy('SandboxPriceFeed', [ETH_USD * 10n ** 8n], { as: 'PriceOfWeth' });
  const feeds = [AAVE_PROVIDER, [USDC, WETH], [usdcFeed, wethFeed], NOBODY, NOBODY, 10n ** 8n];
  await place('AaveOracle', AAVE_ORACLE, feeds);
  await provider('setPriceOracle', AAVE_ORACLE);
  // The provider creates these proxies with its first and its second nonce, so they get their addresses on Base.
  await provider('setPoolImpl', pool);
  await provider('setPoolConfiguratorImpl', configurator);
  await place('AaveProtocolDataProvider', AAVE_DATA, [AAVE_PROVIDER]);
  await provider('setPoolDataProvider', AAVE_DATA);
  named.set('Pool', AAVE_POOL).set('PoolConfigurator', AAVE_CONFIGURATOR);

  const aTokenImpl = await deploy('ATokenInstance', [AAVE_POOL, NOBODY, AAVE_TREASURY]);
  const variableDebtTokenImpl = await deploy('VariableDebtTokenInstance', [AAVE_POOL, NOBODY]);
  const { optimal, base, slope, steepSlope } = AAVE_RATES;
  const interestRateData = encodeAbiParameters(
    [{ type: 'uint16' }, { type: 'uint32' }, { type: 'uint32' }, { type: 'uint32' }],
    [optimal, base, slope, steepSlope],
  );
  const configure = (functionName: string, args: readonly unknown[]) =>
    send(AAVE_CONFIGURATOR, 'PoolConfiguratorInstance', functionName, args);
  const reserve = (underlyingAsset: Address, symbol: string) => ({
    aTokenImpl,
    variableDebtTokenImpl,
    underlyingAsset,
    params: '0x',
    interestRateData,
    aTokenName: `Aave Base ${symbol}`,
    aTokenSymbol: `aBas${symbol}`,
    variableDebtTokenName: `Aave Base Variable Debt ${symbol}`,
    variableDebtTokenSymbol: `variableDebtBas${symbol}`,
  });
  await configure('initReserves', [[reserve(WETH, 'WETH')]]);
  // The nonce skips the reserves that were created between these two on Base, so that USDC's tokens get their addresses.
  await node.setNonce({ address: AAVE_CONFIGURATOR, nonce: 13 });
  await configure('initReserves', [[reserve(USDC, 'USDC')]]);
  named.set('aBasUSDC', AAVE_USDC);
  named.set('variableDebtBasUSDC', getContractAddress({ from: AAVE_CONFIGURATOR, nonce: 14n }));
  await configure('setReserveBorrowing', [USDC, true]);
  await configure('setReserveFactor', [USDC, 1_000]);
  await configure('configureReserveAsCollateral', [WETH, 8_000, 8_300, 10_500]);

  await approve(USDC, AAVE_POOL, lender);
  await approve(USDC, AAVE_POOL, borrower);
  await approve(WETH, AAVE_POOL, borrower);
  const use = (functionName: string, args: readonly unknown[], from: Address) =>
    send(AAVE_POOL, 'PoolInstance', functionName, args, from);
  await use('supply', [USDC, LENT.aave, lender, 0], lender);
  await use('supply', [WETH, COLLATERAL_WEI.aave, borrower, 0], borrower);
  await use('borrow', [USDC, BORROWED.aave, 2, 0, borrower], borrower);
}

async function buildComet({ place, send, approve }: Builder): Promise<void> {
  const curve = ([kink, baseYearly, slopeLowYearly, slopeHighYearly]: readonly bigint[]) => ({
    kink,
    baseYearly,
    slopeLowYearly,
    slopeHighYearly,
  });
  // The double's `market`, which may borrow without collateral, is the borrower's account.
  const args = [USDC, borrower, curve(COMET_CURVES.supply), curve(COMET_CURVES.borrow)];
  await place('SandboxComet', COMET, args);
  await approve(USDC, COMET, lender);
  await approve(USDC, COMET, borrower);
  await send(COMET, 'SandboxComet', 'supply', [USDC, LENT.comet]);
  await send(COMET, 'SandboxComet', 'sandboxBorrow', [BORROWED.comet], borrower);
}

async function buildMorpho(
  { deploy, place, send, approve }: Builder,
  node: Node,
): Promise<Manifest['morphoMarket']> {
  await place('Morpho', MORPHO, [lender]);
  await place('AdaptiveCurveIrm', MORPHO_RATES, [MORPHO]);
  const oracle = await deploy('SandboxPriceFeed', [ETH_USD * 10n ** 24n], { as: 'MorphoOracle' });
  const market = { loanToken: USDC, collateralToken: WETH, oracle, irm: MORPHO_RATES, lltv: MORPHO_LLTV };
  await send(MORPHO, 'Morpho', 'enableIrm', [MORPHO_RATES]);
  await send(MORPHO, 'Morpho', 'enableLltv', [MORPHO_LLTV]);
  await send(MORPHO, 'Morpho', 'createMarket', [market]);
  const { loanToken, collateralToken, irm, lltv } = market;
  const id = keccak256(
    encodeAbiParameters(
      ['address', 'address', 'address', 'address', 'uint256'].map((type) => ({ type })),
      [loanToken, collateralToken, oracle, irm, lltv],
    ),
  );
  const made = [lender, MORPHO, MARKET_DELAY_SECONDS, USDC, 'Steakhouse USDC', 'steakUSDC'];
  await place('MetaMorpho', META_MORPHO, made);
  const manage = (functionName: string, args: readonly unknown[]) =>
    send(META_MORPHO, 'MetaMorpho', functionName, args);
  await manage('setFeeRecipient', [AAVE_TREASURY]);
  await manage('setFee', [100_000_000_000_000_000n]);
  await manage('submitCap', [market, (1n << 184n) - 1n]);
  const { timestamp } = await node.getBlock();
  await node.setNextBlockTimestamp({ timestamp: timestamp + MARKET_DELAY_SECONDS });
  await node.mine({ blocks: 1 });
  await manage('acceptCap', [market]);
  await manage('setSupplyQueue', [[id]]);
  await approve(USDC, META_MORPHO, lender);
  await approve(USDC, MORPHO, borrower);
  await approve(WETH, MORPHO, borrower);
  await manage('deposit', [LENT.morpho, lender]);
  const use = (functionName: string, args: readonly unknown[]) =>
    send(MORPHO, 'Morpho', functionName, args, borrower);
  await use('supplyCollateral', [market, COLLATERAL_WEI.morpho, borrower, '0x']);
  await use('borrow', [market, BORROWED.morpho, 0n, borrower, borrower]);
  return { id, ...market, lltv: String(lltv) };
}

async function buildVault({
  deploy,
  send,
  approve,
}: Builder): Promise<{ vault: Address; permitDeposit: Address }> {
  const setup = {
    usdc: USDC,
    aavePool: AAVE_POOL,
    comet: COMET,
    metaMorpho: META_MORPHO,
    active: AAVE,
    ...VAULT,
    // The chain on which the snapshot is placed appoints its own keeper and fee recipient.
    roles: { owner: lender, keeper: lender, guardian: lender, feeRecipient: lender },
  };
  const vault = await deploy('FareboxVault', [setup]);
  const permitDeposit = await deploy('PermitDeposit', [vault]);
  await approve(USDC, vault, lender);
  await send(vault, 'FareboxVault', 'seed', []);
  return { vault, permitDeposit };
}

/** What `anvil_dumpState` tells of an account. */
interface DumpedAccount {
  nonce: number | string;
  code: Hex;
  storage: Record<Hex, Hex>;
}

async function dump(node: Node): Promise<Record<Address, DumpedAccount>> {
  const packed = await node.request({ method: 'anvil_dumpState' } as never);
  const state: { accounts: Record<Address, DumpedAccount> } = JSON.parse(
    gunzipSync(Buffer.from(String(packed).slice(2), 'hex')).toString(),
  );
  return Object.fromEntries(
    Object.entries(state.accounts).map(([address, account]) => [getAddress(address), account]),
  );
}

/** The balances of these holders in a token, and the allowances that they have given. */
async function tokenPart(
  node: Node,
  token: Address,
  holders: readonly Address[],
  storage: Readonly<Record<Hex, Hex>>,
): Promise<TokenPart> {
  const balances: Record<Address, string> = {};
  for (const holder of holders) {
    const held = await node.readContract({
      address: token,
      abi: ERC20,
      functionName: 'balanceOf',
      args: [holder],
    });
    if (held > 0n) balances[holder] = String(held);
  }
  const logs = await node.getLogs({ address: token, fromBlock: 0n });
  const allowances: Record<Hex, Hex> = {};
  for (const { args } of parseEventLogs({ abi: ERC20, logs, eventName: 'Approval' })) {
    if (!holders.includes(args.owner)) continue;
    const slot = allowanceSlot(args, storage);
    const value = storage[slot];
    if (value !== undefined) allowances[slot] = toHex(hexToBigInt(value), { size: 32 });
  }
  return { balances, allowances };
}

/** The storage slot of an allowance. Tries the token's first 32 slots to find the mapping of allowances. */
function allowanceSlot(
  { owner, spender }: { owner: Address; spender: Address },
  storage: Readonly<Record<Hex, Hex>>,
): Hex {
  const inMapping = (key: Address, at: Hex) =>
    keccak256(concatHex([toHex(hexToBigInt(key), { size: 32 }), at]));
  for (let place = 0; place < 32; place += 1) {
    const slot = inMapping(spender, inMapping(owner, toHex(place, { size: 32 })));
    if (storage[slot] !== undefined) return slot;
  }
  throw new Error(`no allowance of ${owner} for ${spender} is stored`);
}

/** Finds the times in the contracts' storage: every five bytes whose value is between `from` and `to`. */
function timesStored(
  accounts: Readonly<Record<Address, Pick<DumpedAccount, 'storage'>>>,
  among: readonly Address[],
  from: number,
  to: number,
): StoredTime[] {
  return among.flatMap((contract) =>
    Object.entries(accounts[contract]?.storage ?? {}).flatMap(([slot, value]) =>
      Array.from({ length: 27 }, (_, offsetBytes) => ({ contract, slot: slot as Hex, offsetBytes })).filter(
        (time) => {
          const found = timeIn(hexToBigInt(value), time);
          return found >= from && found <= to;
        },
      ),
    ),
  );
}

/** The times that a move by the keeper and its leaving of a protocol store in the vault. Both are undone. */
async function timesOfKeeper({ send }: Builder, node: Node, vault: Address): Promise<StoredTime[]> {
  const before = await node.snapshot();
  await send(vault, 'FareboxVault', 'leave', [AAVE, SEED / 2n]);
  const left = await latest(node);
  await send(vault, 'FareboxVault', 'move', [AAVE, COMPOUND, 0n, 0n]);
  const times = timesStored(await dump(node), [vault], left, await latest(node));
  await node.revert({ id: before });
  return times;
}

async function latest(node: Node): Promise<number> {
  return Number((await node.getBlock()).timestamp);
}

/** Builds everything on a temporary chain from what forge has compiled. Takes some seconds. */
export async function buildLending(): Promise<{ snapshot: Snapshot; manifest: Manifest }> {
  const anvil = await startAnvil({ stateDir: null, port: 0, chainId: BASE.chainId });
  try {
    const node = connect(anvil.url);
    await node.setBlockTimestampInterval({ interval: BLOCK_SECONDS });
    await placeOwnContracts(node);
    await buildUsdc(node);
    await mintUsdc(node, lender, LENT.aave + LENT.comet + LENT.morpho + SEED);
    await node.setBalance({ address: lender, value: parseEther('1000000') });
    await node.setBalance({ address: borrower, value: parseEther('1000000') });
    const deposit = encodeFunctionData({ abi: ERC20, functionName: 'deposit' });
    const value = COLLATERAL_WEI.aave + COLLATERAL_WEI.morpho;
    await transact(node, { from: borrower, to: WETH, data: deposit, value });
    const before = await dump(node);
    const { timestamp: startedAt } = await node.getBlock();

    const builder = builderOf(node);
    await buildAave(builder, node);
    await buildComet(builder);
    const morphoMarket = await buildMorpho(builder, node);
    const { vault, permitDeposit } = await buildVault(builder);
    const { timestamp: endedAt } = await node.getBlock();

    const after = await dump(node);
    const created = (Object.keys(after) as Address[])
      .filter((address) => after[address]?.code !== '0x' && before[address]?.code === undefined)
      .toSorted();
    const storedTimes = [
      ...timesStored(after, created, Number(startedAt), Number(endedAt)),
      ...(await timesOfKeeper(builder, node, vault)),
    ];
    const accounts: Record<Address, SnapshotAccount> = {};
    for (const address of created) accounts[address] = asOfThen(after, address, storedTimes, endedAt);
    const holders = [...created, lender, borrower];
    const snapshot: Snapshot = {
      takenAt: TAKEN_AT,
      accounts,
      usdc: await tokenPart(node, USDC, holders, after[USDC]?.storage ?? {}),
      weth: await tokenPart(node, WETH, holders, after[WETH]?.storage ?? {}),
      builderNonce: Number(after[lender]?.nonce),
    };
    return {
      snapshot,
      manifest: {
        chainId: BASE.chainId,
        snapshotSha256: sha256(snapshot),
        doubles: DOUBLES,
        contracts: Object.fromEntries(
          [...builder.named].map(([name, address]) => [
            name,
            { address, codeHash: keccak256(accounts[address]?.code ?? '0x') },
          ]),
        ),
        vault,
        permitDeposit,
        accounts: { owner: lender, borrower },
        storedTimes,
        morphoMarket,
      },
    };
  } finally {
    await anvil.stop();
  }
}

/** An account of the snapshot: its storage in order, and the times in it as of `TAKEN_AT`. */
function asOfThen(
  accounts: Readonly<Record<Address, DumpedAccount>>,
  address: Address,
  times: readonly StoredTime[],
  endedAt: bigint,
): SnapshotAccount {
  const account = accounts[address];
  if (account === undefined) throw new Error(`nothing is at ${address}`);
  const storage: Record<Hex, Hex> = {};
  for (const [slot, value] of Object.entries(account.storage).toSorted() as [Hex, Hex][]) {
    let word = hexToBigInt(value);
    for (const time of times) {
      if (time.contract !== address || time.slot !== slot || timeIn(word, time) === 0) continue;
      word += (BigInt(TAKEN_AT) - endedAt) << BigInt(8 * time.offsetBytes);
    }
    if (word > 0n) storage[slot] = toHex(word, { size: 32 });
  }
  return { nonce: Number(account.nonce), code: account.code, storage };
}

function sha256(snapshot: Snapshot): string {
  return createHash('sha256').update(JSON.stringify(snapshot)).digest('hex');
}

if (process.argv[1] === import.meta.filename) {
  const { exitCode } = await runForge(['build', 'contracts/src', 'contracts/sandbox'], { shows: 'output' });
  if (exitCode !== 0) process.exit(exitCode);
  const { snapshot, manifest } = await buildLending();
  const packed = gzipSync(JSON.stringify(snapshot), { level: 9 });
  writeFileSync(SNAPSHOT_FILE, packed);
  writeFileSync(MANIFEST_FILE, `${JSON.stringify(manifest, null, 2)}\n`);
  process.stdout.write(
    `${Object.keys(snapshot.accounts).length} contracts in ${Math.ceil(packed.length / 1_024)} kB, ${manifest.storedTimes.length} stored times; the vault is at ${manifest.vault}.\n`,
  );
}
