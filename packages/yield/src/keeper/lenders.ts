/**
 * The three protocols at one block: what each pays, how much it could take and give back, and what it would pay if so much
 * came or went. The last is asked of the protocol's own curve.
 */
import { type Address, type Hex, type PublicClient, type Transport, zeroAddress } from 'viem';
import { AAVE_POOL_ABI, COMET_ABI, META_MORPHO_ABI, MORPHO_ABI, TOKEN_ABI } from '../contracts/abi.ts';
import type { BASE } from '../contracts/base-chain.ts';
import type { Reading } from './samples.ts';

/** A protocol as it was read. Amounts are USDC micros. */
export interface Lender extends Reading {
  /** How much more it would take; 0: it is paused, frozen or full. */
  room: bigint;
  /** How much the vault could take out now, of what it has in it. */
  liquid: bigint;
  /** Its yearly rate when so much has come (or gone, negative), as a part of one, by the second and not compounded. */
  yearlyRate(changeMicros: bigint): Promise<number>;
  /** The gas that a move with it costs beyond one between two of the simplest protocols: where it comes, or is only read, and where it leaves. */
  moreGas: { coming: bigint; leaving: bigint };
}

export interface Addresses {
  vault: Address;
  usdc: Address;
  aavePool: Address;
  aToken: Address;
  comet: Address;
  metaMorpho: Address;
}

const SECONDS_PER_YEAR = 31_536_000;
const WAD = 10n ** 18n;
/** Bits of Aave's configuration of a reserve. */
const AAVE_ACTIVE = 1n << 56n;
const AAVE_FROZEN = 1n << 57n;
const AAVE_PAUSED = 1n << 60n;
const AAVE_FACTOR_BIT = 64n;
const AAVE_CAP_BIT = 116n;
const AAVE_CAP_MASK = (1n << 36n) - 1n;
const USDC_UNIT = 1_000_000n;
const BOUNDLESS = (1n << 128n) - 1n;
const COMET_INDEX_SCALE = 10n ** 24n;
/** A MetaMorpho's own limit is 30. */
const MAX_MARKETS = 30n;
/** Gas for each market of a MetaMorpho beyond the first, measured with 15 and with 30: docs/vault-contracts.md, Gas. */
const MARKET_GAS = { coming: 30_000n, leaving: 140_000n };
const NO_MORE_GAS = { coming: 0n, leaving: 0n };
/** So many shares of a MetaMorpho that their worth tells its price to many places. */
const PRICED_SHARES = 10n ** 30n;

/** Reads at a block. @throws what viem does when the node or a contract does not answer */
type Ask = Pick<PublicClient<Transport, typeof BASE>, 'readContract'>;
export interface At {
  client: Ask;
  blockNumber: bigint;
}

export async function readAave({ client, blockNumber }: At, to: Addresses): Promise<Lender> {
  const { usdc, aavePool, aToken, vault } = to;
  const pool = { address: aavePool, abi: AAVE_POOL_ABI, blockNumber } as const;
  const token = { abi: TOKEN_ABI, blockNumber } as const;
  const args = [usdc] as const;
  const [configuration, unbacked, virtualUnderlyingBalance, debtToken, strategy, index, supplied, own] =
    await Promise.all([
      client.readContract({ ...pool, functionName: 'getConfiguration', args }),
      client.readContract({ ...pool, functionName: 'getReserveDeficit', args }),
      client.readContract({ ...pool, functionName: 'getVirtualUnderlyingBalance', args }),
      client.readContract({ ...pool, functionName: 'getReserveVariableDebtToken', args }),
      client.readContract({ ...pool, functionName: 'RESERVE_INTEREST_RATE_STRATEGY' }),
      client.readContract({ ...pool, functionName: 'getReserveNormalizedIncome', args }),
      client.readContract({ ...token, address: aToken, functionName: 'totalSupply' }),
      client.readContract({ ...token, address: aToken, functionName: 'balanceOf', args: [vault] }),
    ]);
  const totalDebt = await client.readContract({ ...token, address: debtToken, functionName: 'totalSupply' });
  const isOpen = (configuration & AAVE_ACTIVE) !== 0n && (configuration & AAVE_PAUSED) === 0n;
  const takesMore = isOpen && (configuration & AAVE_FROZEN) === 0n;
  const cap = ((configuration >> AAVE_CAP_BIT) & AAVE_CAP_MASK) * USDC_UNIT;
  const left = cap === 0n ? BOUNDLESS : cap > supplied ? cap - supplied : 0n;
  const reserveFactor = (configuration >> AAVE_FACTOR_BIT) & 0xffffn;
  return {
    room: takesMore ? left : 0n,
    liquid: isOpen ? least(own, virtualUnderlyingBalance) : 0n,
    index,
    utilization: partOf(totalDebt, totalDebt + virtualUnderlyingBalance),
    moreGas: NO_MORE_GAS,
    async yearlyRate(change) {
      const [rate] = await client.readContract({
        address: strategy,
        abi: AAVE_POOL_ABI,
        blockNumber,
        functionName: 'calculateInterestRates',
        args: [
          {
            unbacked,
            totalDebt,
            reserveFactor,
            reserve: usdc,
            usingVirtualBalance: true,
            liquidityAdded: change > 0n ? change : 0n,
            liquidityTaken: change < 0n ? -change : 0n,
            virtualUnderlyingBalance,
          },
        ],
      });
      return Number(rate) / 1e27;
    },
  };
}

export async function readComet({ client, blockNumber }: At, to: Addresses): Promise<Lender> {
  const { comet, usdc, vault } = to;
  const market = { address: comet, abi: COMET_ABI, blockNumber } as const;
  const token = { abi: TOKEN_ABI, blockNumber, functionName: 'balanceOf' } as const;
  const [totals, supplied, borrowed, supplyPaused, withdrawPaused, cash, own] = await Promise.all([
    client.readContract({ ...market, functionName: 'totalsBasic' }),
    client.readContract({ ...market, functionName: 'totalSupply' }),
    client.readContract({ ...market, functionName: 'totalBorrow' }),
    client.readContract({ ...market, functionName: 'isSupplyPaused' }),
    client.readContract({ ...market, functionName: 'isWithdrawPaused' }),
    client.readContract({ ...token, address: usdc, args: [comet] }),
    client.readContract({ ...token, address: comet, args: [vault] }),
  ]);
  return {
    room: supplyPaused || withdrawPaused ? 0n : BOUNDLESS,
    liquid: withdrawPaused ? 0n : least(own, cash),
    // `totalSupply` is of now; the index that is stored is of the last time that somebody touched the market.
    index: totals.totalSupplyBase === 0n ? 0n : (supplied * COMET_INDEX_SCALE) / totals.totalSupplyBase,
    utilization: Math.max(partOf(borrowed, supplied), 1 - partOf(least(cash, supplied), supplied)),
    moreGas: NO_MORE_GAS,
    async yearlyRate(change) {
      const after = supplied + change;
      const utilization = after > 0n ? (borrowed * WAD) / after : 0n;
      const args = [utilization] as const;
      const rate = await client.readContract({ ...market, functionName: 'getSupplyRate', args });
      return (Number(rate) * SECONDS_PER_YEAR) / 1e18;
    },
  };
}

export async function readMetaMorpho(at: At, { metaMorpho, vault }: Addresses): Promise<Lender> {
  const { client, blockNumber } = at;
  const meta = { address: metaMorpho, abi: META_MORPHO_ABI, blockNumber } as const;
  const [morpho, fee, total, room, liquid, index, comingTo, goingFrom] = await Promise.all([
    client.readContract({ ...meta, functionName: 'MORPHO' }),
    client.readContract({ ...meta, functionName: 'fee' }),
    client.readContract({ ...meta, functionName: 'totalAssets' }),
    client.readContract({ ...meta, functionName: 'maxDeposit', args: [vault] }),
    client.readContract({ ...meta, functionName: 'maxWithdraw', args: [vault] }),
    client.readContract({ ...meta, functionName: 'convertToAssets', args: [PRICED_SHARES] }),
    queueOf(at, metaMorpho, 'supplyQueue'),
    queueOf(at, metaMorpho, 'withdrawQueue'),
  ]);
  const markets = new Map(
    await Promise.all(
      goingFrom.map(async (id) => [id, await readMarket(at, { morpho, metaMorpho, id })] as const),
    ),
  );
  const more = BigInt(Math.max(0, goingFrom.length - 1));
  return {
    room,
    liquid,
    index,
    utilization: utilizationOf([...markets.values()]),
    moreGas: { coming: more * MARKET_GAS.coming, leaving: more * MARKET_GAS.leaving },
    async yearlyRate(change) {
      const changes = spread(change, change > 0n ? comingTo : goingFrom, markets);
      const earned = await Promise.all(
        [...markets].map(async ([id, market]) => {
          const moved = changes.get(id) ?? 0n;
          return (await marketRate(at, market, moved)) * Number(market.own + moved);
        }),
      );
      const after = Number(total + change);
      const gross = after > 0 ? earned.reduce((sum, each) => sum + each, 0) / after : 0;
      return gross * (1 - Number(fee) / 1e18);
    },
  };
}

/** The part of the MetaMorpho's assets that is lent: of each market the part that its borrowers have, by what the MetaMorpho has there. */
function utilizationOf(markets: readonly Market[]): number {
  const total = markets.reduce((sum, { own }) => sum + own, 0n);
  const lent = markets.reduce(
    (sum, { own, state }) => sum + Number(own) * partOf(state.totalBorrowAssets, state.totalSupplyAssets),
    0,
  );
  return total === 0n ? 0 : lent / Number(total);
}

interface Market {
  params: { loanToken: Address; collateralToken: Address; oracle: Address; irm: Address; lltv: bigint };
  state: {
    totalSupplyAssets: bigint;
    totalSupplyShares: bigint;
    totalBorrowAssets: bigint;
    totalBorrowShares: bigint;
    lastUpdate: bigint;
    fee: bigint;
  };
  /** The amount that the MetaMorpho has in it, and the most that it may have. */
  own: bigint;
  cap: bigint;
}

async function readMarket(
  { client, blockNumber }: At,
  { morpho, metaMorpho, id }: { morpho: Address; metaMorpho: Address; id: Hex },
): Promise<Market> {
  const blue = { address: morpho, abi: MORPHO_ABI, blockNumber } as const;
  const [params, state, [shares], [cap]] = await Promise.all([
    client.readContract({ ...blue, functionName: 'idToMarketParams', args: [id] }),
    client.readContract({ ...blue, functionName: 'market', args: [id] }),
    client.readContract({ ...blue, functionName: 'position', args: [id, metaMorpho] }),
    client.readContract({
      address: metaMorpho,
      abi: META_MORPHO_ABI,
      blockNumber,
      functionName: 'config',
      args: [id],
    }),
  ]);
  const { totalSupplyAssets, totalSupplyShares } = state;
  const own = totalSupplyShares === 0n ? 0n : (shares * totalSupplyAssets) / totalSupplyShares;
  return { params, state, own, cap };
}

async function queueOf(
  { client, blockNumber }: At,
  address: Address,
  queue: 'supplyQueue' | 'withdrawQueue',
): Promise<Hex[]> {
  const meta = { address, abi: META_MORPHO_ABI, blockNumber } as const;
  const length = await client.readContract({ ...meta, functionName: `${queue}Length` });
  if (length > MAX_MARKETS) throw new Error(`a MetaMorpho of ${length} markets is none`);
  return Promise.all(
    Array.from({ length: Number(length) }, (_, index) =>
      client.readContract({ ...meta, functionName: queue, args: [BigInt(index)] }),
    ),
  );
}

/** How much of a deposit or a withdrawal goes to which market: in the order of the queue, as far as each one goes. */
function spread(
  change: bigint,
  queue: readonly Hex[],
  markets: ReadonlyMap<Hex, Market>,
): ReadonlyMap<Hex, bigint> {
  const changes = new Map<Hex, bigint>();
  let left = change < 0n ? -change : change;
  for (const id of queue) {
    const market = markets.get(id);
    if (market === undefined) continue;
    const { own, cap, state } = market;
    const cash = state.totalSupplyAssets - state.totalBorrowAssets;
    const most = change > 0n ? (cap > own ? cap - own : 0n) : least(own, cash);
    const part = least(left, most);
    left -= part;
    if (part > 0n) changes.set(id, change > 0n ? part : -part);
  }
  return changes;
}

async function marketRate({ client, blockNumber }: At, market: Market, change: bigint): Promise<number> {
  const { params, state } = market;
  const totalSupplyAssets = state.totalSupplyAssets + change;
  // Where a vault keeps what lies idle there is no curve.
  if (params.irm === zeroAddress || totalSupplyAssets <= 0n) return 0;
  const perSecond = await client.readContract({
    address: params.irm,
    abi: MORPHO_ABI,
    blockNumber,
    functionName: 'borrowRateView',
    args: [params, { ...state, totalSupplyAssets }],
  });
  const used = Number(state.totalBorrowAssets) / Number(totalSupplyAssets);
  return ((Number(perSecond) * SECONDS_PER_YEAR) / 1e18) * used * (1 - Number(state.fee) / 1e18);
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** Divides a part by its whole; a part of an empty whole is 0. */
function partOf(part: bigint, whole: bigint): number {
  return whole === 0n ? 0 : Number(part) / Number(whole);
}
