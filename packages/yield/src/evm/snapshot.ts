/** The vault and the three protocols at one block. */
import { type Address, type Hex, zeroAddress } from 'viem';
import { AAVE_POOL_ABI, COMET_ABI, META_MORPHO_ABI, MORPHO_ABI, VAULT_ABI } from '../contracts/abi.ts';
import { PROTOCOLS, type ProtocolName } from '../contracts/protocols.ts';
import { CHAIN_ID, type Fixed } from './fixed.ts';
import { type Chain, chainUnavailable, fromChain, isOutage, type Node } from './node.ts';
import { aaveApyPercent, cometApyPercent, type MorphoMarket, metaMorphoApyPercent } from './rates.ts';

/** More markets than a MetaMorpho vault can have in its queue are read as none at all (its own limit is 30). */
const MAX_MARKETS = 30;
const AAVE_ACTIVE = 1n << 56n;
const AAVE_FROZEN = 1n << 57n;
const AAVE_PAUSED = 1n << 60n;
/** Many shares, so that the price of one is read to many places. */
export const PRICED_SHARES = 10n ** 30n;
const VIRTUAL_SHARES = 1_000_000n;

/** A block that everything of an answer was read at. */
export interface Block {
  number: bigint;
  timestampMs: number;
}

export interface ProtocolState {
  protocol: ProtocolName;
  /** Null: it could not be read, and `reason` says why. */
  grossApyPercent: number | null;
  reason: string | null;
  /** Whether it takes supplies and pays out; null: not known. */
  paused: boolean | null;
  /** The USDC units that the vault has there. */
  vaultAssets: bigint;
}

export interface VaultState {
  totalAssets: bigint;
  totalSupply: bigint;
  /** The worth of `PRICED_SHARES`, with the performance fee that is due taken off. */
  pricedAssets: bigint;
  entryBps: number;
  performanceBps: number;
  queued: { entryBps: number; performanceBps: number; readyAtS: number } | null;
  active: ProtocolName;
  nextMoveAtS: number;
  cooldownSeconds: number;
  maxShareBps: number;
  maxOfLiquidityBps: number;
  depositsPaused: boolean;
  /** Whether the first USDC is in: no deposit is taken before. */
  seeded: boolean;
  /** Protocols that were left, and get nothing until the keeper names one as its target. */
  left: readonly ProtocolName[];
  /** From when on anybody may supply what lies idle, in seconds since 1970; 0: at any time. */
  nextSupplyAtS: number;
  idle: bigint;
  /** The USDC units that could be paid out now. */
  liquidity: bigint;
  /** Whether every position could be read. */
  complete: boolean;
  owner: Address;
  keeper: Address;
  guardian: Address;
  feeRecipient: Address;
}

export interface Snapshot {
  /** When it was read, by our clock: the newest block may be older. */
  readAtMs: number;
  block: Block;
  vault: VaultState;
  protocols: Readonly<Record<ProtocolName, ProtocolState>>;
}

/** Converts so many shares to USDC units, rounded down. */
export function worthOf(shares: bigint, { pricedAssets }: Pick<VaultState, 'pricedAssets'>): bigint {
  return (shares * pricedAssets) / PRICED_SHARES;
}

/** The performance fee that is due and not minted yet, in USDC units. */
export function pendingFeeOf({ totalAssets, totalSupply, pricedAssets }: VaultState): bigint {
  const due = totalAssets + 1n - ((totalSupply + VIRTUAL_SHARES) * pricedAssets) / PRICED_SHARES;
  // The price is rounded down, by less than a unit.
  return due > 1n ? due - 1n : 0n;
}

const MULTICALL_ABI = [
  {
    type: 'function',
    name: 'getBlockNumber',
    inputs: [],
    outputs: [{ type: 'uint256' }],
    stateMutability: 'view',
  },
  {
    type: 'function',
    name: 'getCurrentBlockTimestamp',
    inputs: [],
    outputs: [{ type: 'uint256' }],
    stateMutability: 'view',
  },
  {
    type: 'function',
    name: 'getChainId',
    inputs: [],
    outputs: [{ type: 'uint256' }],
    stateMutability: 'view',
  },
] as const;

/** Which block of which chain a multicall is answered at: three calls to be put into it. */
export function blockCallsOf(chain: Chain) {
  const multicall3 = { address: chain.chain.contracts.multicall3.address, abi: MULTICALL_ABI } as const;
  return [
    { ...multicall3, functionName: 'getBlockNumber' },
    { ...multicall3, functionName: 'getCurrentBlockTimestamp' },
    { ...multicall3, functionName: 'getChainId' },
  ] as const;
}

/** After the year 30000: no block's time. */
const NO_TIME_S = 1n << 40n;

/**
 * The block that a multicall with `blockCallsOf` was answered at.
 *
 * @throws Problem 503 when the node is silent, serves another chain by now, or is far behind
 */
export function blockIn(
  { newest }: Node,
  [number, timestamp, chainId]: readonly [Answered<bigint>, Answered<bigint>, Answered<bigint>],
): Block {
  const block = { number: sureOf(number), timestampS: sureOf(timestamp), chainId: sureOf(chainId) };
  if (block.chainId !== BigInt(CHAIN_ID))
    throw chainUnavailable(new Error(`the node serves chain ${block.chainId} by now`));
  if (block.timestampS >= NO_TIME_S) throw chainUnavailable(new Error('the node’s newest block has no time'));
  try {
    newest.note(block.number);
  } catch (error) {
    throw chainUnavailable(error);
  }
  return { number: block.number, timestampMs: Number(block.timestampS) * 1_000 };
}

type Answered<Value> = { status: 'success'; result: Value } | { status: 'failure'; error: Error };

/** The value, where a call of a multicall was answered; else null. */
function toldBy<Value>(answered: Answered<Value>): Value | null {
  return answered.status === 'success' ? answered.result : null;
}

/** The value of a call that never fails while the chain can be read. @throws Problem 503 */
export function sureOf<Value>(answered: Answered<Value>): Value {
  if (answered.status === 'success') return answered.result;
  throw chainUnavailable(answered.error);
}

/** The calls that read a vault's state, in the order of their answers. */
export function vaultCallsOf({ vault }: Pick<Fixed, 'vault'>) {
  const ask = { address: vault, abi: VAULT_ABI } as const;
  return [
    { ...ask, functionName: 'totalAssets' },
    { ...ask, functionName: 'totalSupply' },
    { ...ask, functionName: 'convertToAssets', args: [PRICED_SHARES] },
    { ...ask, functionName: 'fees' },
    { ...ask, functionName: 'queuedFees' },
    { ...ask, functionName: 'active' },
    { ...ask, functionName: 'nextMoveAt' },
    { ...ask, functionName: 'moveLimits' },
    { ...ask, functionName: 'depositsPaused' },
    { ...ask, functionName: 'holdings' },
    { ...ask, functionName: 'owner' },
    { ...ask, functionName: 'keeper' },
    { ...ask, functionName: 'guardian' },
    { ...ask, functionName: 'feeRecipient' },
    { ...ask, functionName: 'seeded' },
    { ...ask, functionName: 'leftProtocols' },
    { ...ask, functionName: 'nextSupplyAt' },
  ] as const;
}

function protocolCallsOf({ aavePool, comet, metaMorpho, usdc }: Fixed) {
  const aave = { address: aavePool, abi: AAVE_POOL_ABI } as const;
  const market = { address: comet, abi: COMET_ABI } as const;
  const meta = { address: metaMorpho, abi: META_MORPHO_ABI } as const;
  return [
    { ...aave, functionName: 'getReserveData', args: [usdc] },
    { ...market, functionName: 'getUtilization' },
    { ...market, functionName: 'isSupplyPaused' },
    { ...market, functionName: 'isWithdrawPaused' },
    { ...meta, functionName: 'MORPHO' },
    { ...meta, functionName: 'fee' },
    { ...meta, functionName: 'totalAssets' },
    { ...meta, functionName: 'withdrawQueueLength' },
  ] as const;
}

/**
 * Reads all of it at one block: the vault and what the protocols say without being asked for anything in one multicall, and
 * at the same block what can be asked only with that: Compound's rate, which takes the utilization, and Morpho's markets.
 *
 * @throws Problem 503 while the chain is silent
 */
export async function readSnapshot(node: Node, fixed: Fixed, nowMs: () => number): Promise<Snapshot> {
  const { chain } = node;
  const contracts = [...blockCallsOf(chain), ...vaultCallsOf(fixed), ...protocolCallsOf(fixed)] as const;
  let answers = await chain.multicall({ contracts, batchSize: 0 });
  if (answers[0].status === 'failure') {
    if (isOutage(answers[0].error)) throw chainUnavailable(answers[0].error);
    // One of them has burnt the gas of all: each is asked alone.
    const blockNumber = await fromChain(chain.getBlockNumber());
    answers = await chain.multicall({ contracts, batchSize: 1, blockNumber });
  }
  const [number, timestamp, chainId, ...rest] = answers;
  const block = blockIn(node, [number, timestamp, chainId]);
  const [totalAssets, totalSupply, price, fees, queued, active, nextMoveAt, ...others] = rest;
  const [limits, paused, holdings, owner, keeper, guardian, feeRecipient, ...more] = others;
  const [seeded, left, nextSupplyAt, ...ofProtocols] = more;
  const [reserve, utilization, supplyPaused, withdrawPaused, morpho, fee, metaAssets, queueLength] =
    ofProtocols;
  const [{ entryBps, performanceBps }, [next, readyAt], move] = [
    sureOf(fees),
    sureOf(queued),
    sureOf(limits),
  ];
  const [idle, inProtocol, liquidity, complete] = sureOf(holdings);
  const vault: VaultState = {
    totalAssets: sureOf(totalAssets),
    totalSupply: sureOf(totalSupply),
    pricedAssets: sureOf(price),
    entryBps,
    performanceBps,
    queued: readyAt === 0n ? null : { ...next, readyAtS: Number(readyAt) },
    active: PROTOCOLS[sureOf(active)] ?? 'aave',
    nextMoveAtS: Number(sureOf(nextMoveAt)),
    ...move,
    depositsPaused: sureOf(paused),
    seeded: sureOf(seeded),
    left: PROTOCOLS.filter((_, index) => (sureOf(left) & (1 << index)) !== 0),
    nextSupplyAtS: Number(sureOf(nextSupplyAt)),
    idle,
    liquidity,
    complete,
    owner: sureOf(owner),
    keeper: sureOf(keeper),
    guardian: sureOf(guardian),
    feeRecipient: sureOf(feeRecipient),
  };
  const [compound, metaMorpho] = await Promise.all([
    readComet(chain, fixed, block, { utilization, supplyPaused, withdrawPaused }),
    readMetaMorpho(chain, fixed, block, { morpho, fee, metaAssets, queueLength }),
  ]);
  const [ofAave = 0n, ofCompound = 0n, ofMorpho = 0n] = inProtocol;
  return {
    readAtMs: nowMs(),
    block,
    vault,
    protocols: {
      aave: { protocol: 'aave', ...aaveRate(reserve), vaultAssets: ofAave },
      compound: { protocol: 'compound', ...compound, vaultAssets: ofCompound },
      morpho: { protocol: 'morpho', ...metaMorpho, vaultAssets: ofMorpho },
    },
  };
}

type Rate = Pick<ProtocolState, 'grossApyPercent' | 'reason' | 'paused'>;

/** The rate of a protocol that did not answer. The node's own words stay here: they may hold an address with a key. */
function unread(what: string, paused: boolean | null = null): Rate {
  return { grossApyPercent: null, reason: `${what} could not be read`, paused };
}

function aaveRate(reserve: Answered<{ configuration: bigint; currentLiquidityRate: bigint }>): Rate {
  const read = toldBy(reserve);
  if (read === null) return unread('the reserve of USDC in Aave’s pool');
  const { configuration, currentLiquidityRate } = read;
  const active = (configuration & AAVE_ACTIVE) !== 0n;
  const paused = !active || (configuration & (AAVE_FROZEN | AAVE_PAUSED)) !== 0n;
  return { grossApyPercent: aaveApyPercent(currentLiquidityRate), reason: null, paused };
}

async function readComet(
  chain: Chain,
  { comet }: Fixed,
  { number: blockNumber }: Block,
  told: {
    utilization: Answered<bigint>;
    supplyPaused: Answered<boolean>;
    withdrawPaused: Answered<boolean>;
  },
): Promise<Rate> {
  const utilization = toldBy(told.utilization);
  const pauses = [toldBy(told.supplyPaused), toldBy(told.withdrawPaused)];
  const paused = pauses.includes(null) ? null : pauses.includes(true);
  if (utilization === null) return unread('Compound’s utilization', paused);
  const [rate] = await chain.multicall({
    contracts: [{ address: comet, abi: COMET_ABI, functionName: 'getSupplyRate', args: [utilization] }],
    batchSize: 0,
    blockNumber,
  });
  const perSecond = toldBy(rate);
  if (perSecond === null) return unread('Compound’s supply rate', paused);
  return { grossApyPercent: cometApyPercent(perSecond), reason: null, paused };
}

async function readMetaMorpho(
  chain: Chain,
  { metaMorpho }: Fixed,
  { number: blockNumber }: Block,
  told: {
    morpho: Answered<Address>;
    fee: Answered<bigint>;
    metaAssets: Answered<bigint>;
    queueLength: Answered<bigint>;
  },
): Promise<Rate> {
  const { morpho, fee, metaAssets, queueLength } = told;
  const facts = { morpho: toldBy(morpho), fee: toldBy(fee), assets: toldBy(metaAssets) };
  const markets = Number(toldBy(queueLength) ?? -1n);
  if (facts.morpho === null || facts.fee === null || facts.assets === null || markets < 0)
    return unread('the MetaMorpho vault');
  if (markets > MAX_MARKETS) return unread(`a MetaMorpho vault of ${markets} markets`);
  const at = { batchSize: 0, blockNumber };
  const queue = await chain.multicall({
    contracts: Array.from({ length: markets }, (_, index) => ({
      address: metaMorpho,
      abi: META_MORPHO_ABI,
      functionName: 'withdrawQueue' as const,
      args: [BigInt(index)] as const,
    })),
    ...at,
  });
  const ids = queue.map(toldBy);
  if (ids.includes(null)) return unread('the markets of the MetaMorpho vault');
  const read = await readMarkets(chain, metaMorpho, facts.morpho, ids as Hex[], at);
  if (read === null) return unread('a market of Morpho');
  const apy = metaMorphoApyPercent(read, facts.fee, Number(facts.assets));
  return { grossApyPercent: apy, reason: null, paused: null };
}

/** Null: one of them cannot be read, so nobody can say what the vault earns. */
async function readMarkets(
  chain: Chain,
  vault: Address,
  morpho: Address,
  ids: readonly Hex[],
  at: { batchSize: number; blockNumber: bigint },
): Promise<MorphoMarket[] | null> {
  const ask = { address: morpho, abi: MORPHO_ABI } as const;
  const [params, markets, positions] = await Promise.all([
    chain.multicall({
      contracts: ids.map((id) => ({
        ...ask,
        functionName: 'idToMarketParams' as const,
        args: [id] as const,
      })),
      ...at,
    }),
    chain.multicall({
      contracts: ids.map((id) => ({ ...ask, functionName: 'market' as const, args: [id] as const })),
      ...at,
    }),
    chain.multicall({
      contracts: ids.map((id) => ({ ...ask, functionName: 'position' as const, args: [id, vault] as const })),
      ...at,
    }),
  ]);
  const found = ids.map((_, index) => {
    const [its, market, position] = [params[index], markets[index], positions[index]];
    if (its?.status !== 'success' || market?.status !== 'success' || position?.status !== 'success')
      return null;
    return { params: its.result, market: market.result, shares: position.result[0] };
  });
  // A market without a model of interest is where a vault keeps what lies idle.
  const lending = found.filter((each) => each !== null && each.params.irm !== zeroAddress);
  const rates = await chain.multicall({
    contracts: lending.flatMap((each) =>
      each === null
        ? []
        : [
            {
              address: each.params.irm,
              abi: MORPHO_ABI,
              functionName: 'borrowRateView' as const,
              args: [each.params, each.market] as const,
            },
          ],
    ),
    ...at,
  });
  const all = found.map((each): MorphoMarket | null => {
    if (each === null) return null;
    const { market, shares } = each;
    const rate = each.params.irm === zeroAddress ? 0n : toldBy(rates[lending.indexOf(each)] ?? NO_RATE);
    if (rate === null) return null;
    const supplied = Number(market.totalSupplyAssets);
    const supplyShares = Number(market.totalSupplyShares);
    return {
      vaultAssets: supplyShares === 0 ? 0 : (supplied * Number(shares)) / supplyShares,
      totalSupplyAssets: supplied,
      totalBorrowAssets: Number(market.totalBorrowAssets),
      borrowPerSecond: rate,
      fee: market.fee,
    };
  });
  return all.includes(null) ? null : (all as MorphoMarket[]);
}

const NO_RATE: Answered<bigint> = { status: 'failure', error: new Error('there is no rate') };
