/**
 * The lending program's two accounts that the portal reads: the USDC reserve and its market. Whoever reads a reserve
 * that is laid out in another way gets an error and no figures.
 */
import type { Address } from '@solana/kit';
import { addressAt } from '../address-bytes.ts';
import { LENDING_PROGRAM } from '../addresses.ts';

/** The marks of the account, and the places of its fields (bytes from its start; little-endian). */
const RESERVE = {
  bytes: 8_624,
  discriminator: '2bf2ccca1af73b7f',
  version: 8,
  lastUpdateSlot: 16,
  stale: 24,
  market: 32,
  collateralFarm: 64,
  liquidityMint: 128,
  liquidityVault: 160,
  feeVault: 192,
  available: 224,
  borrowedSf: 232,
  mintDecimals: 272,
  cumulativeBorrowRateSf: 296,
  protocolFeesSf: 344,
  referrerFeesSf: 360,
  pendingReferrerFeesSf: 376,
  liquidityTokenProgram: 408,
  collateralMint: 2_560,
  collateralSupply: 2_592,
  collateralVault: 2_600,
  status: 4_856,
  hostFixedRateBps: 4_858,
  collateralTokenBlocked: 4_862,
  emergencyMode: 4_864,
  protocolTakePercent: 4_870,
  curve: 4_920,
  depositLimit: 5_016,
  borrowLimit: 5_024,
  tokenName: 5_032,
  capCapacity: 5_416,
  capTotal: 5_424,
  capIntervalStart: 5_432,
  capIntervalSeconds: 5_440,
  rewardsPerSlot: 5_792,
  queuedCollateral: 6_968,
} as const;
const MARKET = {
  bytes: 4_664,
  discriminator: 'f6723262489d1c78',
  version: 8,
  bump: 16,
  owner: 24,
  referralFeeBps: 120,
  emergencyMode: 122,
  name: 3_248,
} as const;
const LAYOUT_VERSION = 1n;
const CURVE_POINTS = 11;
const CURVE_POINT_BYTES = 8;
const NAME_BYTES = 32;
const STATUSES = ['active', 'obsolete', 'hidden'] as const;

/** A point of the curve that the borrow rate follows: 10,000 bps are the whole. */
export interface CurvePoint {
  utilizationBps: number;
  rateBps: number;
}

/** How much may leave in an interval; deposits in it make room again. Units are raw USDC. */
export interface WithdrawalCap {
  capacityRaw: bigint;
  totalRaw: bigint;
  /** Seconds since 1970. */
  intervalStartS: bigint;
  /** 0: there is no cap. */
  intervalSeconds: bigint;
}

/**
 * A reserve as its account says, with interest up to `lastUpdateSlot`. `…Raw` are units of the token (10⁻⁶), `…Sf` the
 * same times 2⁶⁰.
 */
export interface Reserve {
  lastUpdateSlot: bigint;
  /** Whether it was changed since interest was last reckoned in that slot. */
  isStale: boolean;
  market: Address;
  collateralFarm: Address;
  liquidityMint: Address;
  liquidityVault: Address;
  feeVault: Address;
  availableRaw: bigint;
  borrowedSf: bigint;
  mintDecimals: number;
  /** The debt now of one unit that was borrowed at the beginning, times 2⁶⁰. */
  cumulativeBorrowRateSf: bigint;
  protocolFeesSf: bigint;
  referrerFeesSf: bigint;
  pendingReferrerFeesSf: bigint;
  liquidityTokenProgram: Address;
  collateralMint: Address;
  /** cTokens that there are. */
  collateralSupplyRaw: bigint;
  collateralVault: Address;
  status: (typeof STATUSES)[number];
  hostFixedRateBps: number;
  /** Whether deposits for cTokens are refused. */
  isCollateralTokenBlocked: boolean;
  isEmergency: boolean;
  protocolTakePercent: number;
  curve: readonly CurvePoint[];
  depositLimitRaw: bigint;
  borrowLimitRaw: bigint;
  tokenName: string;
  withdrawalCap: WithdrawalCap;
  /** Rewards that newer programs pay out by slot. They are not in the model's interest: what it says is the least. */
  rewardsPerSlot: bigint;
  /** cTokens whose owners wait for liquidity: as much of it is not for others. */
  queuedCollateralRaw: bigint;
}

export interface Market {
  bump: number;
  owner: Address;
  referralFeeBps: number;
  /** Whether the program refuses everything on this market. */
  isEmergency: boolean;
  name: string;
}

/** An account as a node gives it. */
export interface RawAccount {
  /** The program that it belongs to. */
  owner: string;
  data: Uint8Array;
}

/** The account is not what the portal was made for; nothing may be built on it. */
export class LayoutError extends Error {
  override name = 'LayoutError';
}

/**
 * Reads a reserve.
 *
 * @throws LayoutError if it belongs to another program, or is of another kind, size or version
 */
export function decodeReserve(account: RawAccount): Reserve {
  const read = readerOf('reserve', account, RESERVE);
  const status = STATUSES[read.u8(RESERVE.status)];
  if (status === undefined) throw new LayoutError('the reserve has a status that is not known');
  const curve = Array.from({ length: CURVE_POINTS }, (_, index) => {
    const at = RESERVE.curve + index * CURVE_POINT_BYTES;
    return { utilizationBps: read.u32(at), rateBps: read.u32(at + 4) };
  });
  if (!isCurve(curve))
    throw new LayoutError('the reserve has a curve that does not rise from 0 to 10000 bps');
  return {
    lastUpdateSlot: read.u64(RESERVE.lastUpdateSlot),
    isStale: read.u8(RESERVE.stale) !== 0,
    market: read.address(RESERVE.market),
    collateralFarm: read.address(RESERVE.collateralFarm),
    liquidityMint: read.address(RESERVE.liquidityMint),
    liquidityVault: read.address(RESERVE.liquidityVault),
    feeVault: read.address(RESERVE.feeVault),
    availableRaw: read.u64(RESERVE.available),
    borrowedSf: read.u128(RESERVE.borrowedSf),
    mintDecimals: Number(read.u64(RESERVE.mintDecimals)),
    cumulativeBorrowRateSf: read.u128(RESERVE.cumulativeBorrowRateSf),
    protocolFeesSf: read.u128(RESERVE.protocolFeesSf),
    referrerFeesSf: read.u128(RESERVE.referrerFeesSf),
    pendingReferrerFeesSf: read.u128(RESERVE.pendingReferrerFeesSf),
    liquidityTokenProgram: read.address(RESERVE.liquidityTokenProgram),
    collateralMint: read.address(RESERVE.collateralMint),
    collateralSupplyRaw: read.u64(RESERVE.collateralSupply),
    collateralVault: read.address(RESERVE.collateralVault),
    status,
    hostFixedRateBps: read.u16(RESERVE.hostFixedRateBps),
    isCollateralTokenBlocked: read.u8(RESERVE.collateralTokenBlocked) !== 0,
    isEmergency: read.u8(RESERVE.emergencyMode) !== 0,
    protocolTakePercent: read.u8(RESERVE.protocolTakePercent),
    curve,
    depositLimitRaw: read.u64(RESERVE.depositLimit),
    borrowLimitRaw: read.u64(RESERVE.borrowLimit),
    tokenName: read.text(RESERVE.tokenName),
    withdrawalCap: {
      capacityRaw: BigInt.asIntN(64, read.u64(RESERVE.capCapacity)),
      totalRaw: BigInt.asIntN(64, read.u64(RESERVE.capTotal)),
      intervalStartS: read.u64(RESERVE.capIntervalStart),
      intervalSeconds: read.u64(RESERVE.capIntervalSeconds),
    },
    rewardsPerSlot: read.u64(RESERVE.rewardsPerSlot),
    queuedCollateralRaw: read.u64(RESERVE.queuedCollateral),
  };
}

/**
 * Reads a market.
 *
 * @throws LayoutError as `decodeReserve` does
 */
export function decodeMarket(account: RawAccount): Market {
  const read = readerOf('market', account, MARKET);
  return {
    bump: Number(read.u64(MARKET.bump)),
    owner: read.address(MARKET.owner),
    referralFeeBps: read.u16(MARKET.referralFeeBps),
    isEmergency: read.u8(MARKET.emergencyMode) !== 0,
    name: read.text(MARKET.name),
  };
}

/** Points rise from no use to full use; the last may be repeated. */
function isCurve(points: readonly CurvePoint[]): boolean {
  const uses = points.map(({ utilizationBps }) => utilizationBps);
  return (
    uses[0] === 0 &&
    uses.at(-1) === 10_000 &&
    uses.every((use, index) => index === 0 || use > (uses[index - 1] ?? 0) || use === 10_000)
  );
}

function readerOf(
  what: string,
  { owner, data }: RawAccount,
  layout: { bytes: number; discriminator: string; version: number },
) {
  if (owner !== LENDING_PROGRAM) throw new LayoutError(`the ${what} belongs to ${owner}`);
  if (data.length !== layout.bytes)
    throw new LayoutError(`the ${what} has ${data.length} bytes, not ${layout.bytes}`);
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (bytes.toString('hex', 0, 8) !== layout.discriminator)
    throw new LayoutError(`the account is no ${what}: its first bytes say so`);
  if (bytes.readBigUInt64LE(layout.version) !== LAYOUT_VERSION)
    throw new LayoutError(`the ${what} is laid out in version ${bytes.readBigUInt64LE(layout.version)}`);
  return {
    u8: (at: number) => bytes.readUInt8(at),
    u16: (at: number) => bytes.readUInt16LE(at),
    u32: (at: number) => bytes.readUInt32LE(at),
    u64: (at: number) => bytes.readBigUInt64LE(at),
    u128: (at: number) => bytes.readBigUInt64LE(at) + (bytes.readBigUInt64LE(at + 8) << 64n),
    address: (at: number) => addressAt(bytes, at),
    text: (at: number) => bytes.toString('utf8', at, at + NAME_BYTES).replace(/\0+$/, ''),
  };
}
