/**
 * The lending program's arithmetic, bit for bit: what a reserve is worth in a slot, what a deposit mints and what a
 * redemption pays. Whole numbers throughout: `…Raw` are units of a token (10⁻⁶), `…Sf` the same times 2⁶⁰, and every
 * division rounds down unless it says otherwise. Only rates for people are floating-point numbers.
 */
import type { CurvePoint, Reserve } from './reserve.ts';

const FRACTION_BITS = 60n;
export const ONE_SF = 1n << FRACTION_BITS;
/** Slots in the program's year, in which two pass in a second. */
export const SLOTS_PER_YEAR = 63_072_000;
const BPS = 10_000n;
const SLOT_MS_OF_PROGRAM = 500;
/** The shortest and the longest slots of a cluster: a sample beyond says more of its node than of time. */
const SLOT_MS_BOUNDS = { least: 350, most: 600 } as const;

/** The result of a deposit of an amount. */
export interface Minted {
  cTokensRaw: bigint;
  /** The units that the program takes: up to a unit or two less than was offered, since a cToken is worth more than a unit. */
  paidRaw: bigint;
}

/** Fractions of 1 a year. */
export interface YearlyRates {
  /** The rate without compounding. */
  supplyApr: number;
  /** With compounding in every slot. */
  supplyApy: number;
  borrowApr: number;
}

/**
 * The reserve with interest up to a slot, as the program reckons it before it does anything.
 *
 * @param referralFeeBps the market's
 * @throws RangeError if the slot lies before the reserve's last update
 */
export function accrue(reserve: Reserve, slot: bigint, referralFeeBps: number): Reserve {
  const slots = slot - reserve.lastUpdateSlot;
  if (slots < 0n) throw new RangeError(`slot ${slot} lies before the reserve's last update`);
  if (slots === 0n) return reserve;
  const host = fromBps(reserve.hostFixedRateBps);
  const take = (BigInt(reserve.protocolTakePercent) << FRACTION_BITS) / 100n;
  const growth = compounded(borrowRateSf(reserve) + host, slots);
  const debt = multiply(reserve.borrowedSf, growth);
  const hostFee = multiply(reserve.borrowedSf, compounded(host, slots)) - reserve.borrowedSf;
  const interest = debt - reserve.borrowedSf - hostFee;
  const referrers = multiply(interest, multiply(take, fromBps(referralFeeBps)));
  return {
    ...reserve,
    lastUpdateSlot: slot,
    isStale: false,
    borrowedSf: debt,
    cumulativeBorrowRateSf: multiply(reserve.cumulativeBorrowRateSf, growth),
    protocolFeesSf: reserve.protocolFeesSf + hostFee + multiply(interest, take) - referrers,
    pendingReferrerFeesSf: reserve.pendingReferrerFeesSf + referrers,
  };
}

/** All that belongs to those who lent, whether it lies in the vault or is owed. */
export function supplySf(reserve: Reserve): bigint {
  const { availableRaw, borrowedSf, protocolFeesSf, referrerFeesSf, pendingReferrerFeesSf } = reserve;
  return (
    (availableRaw << FRACTION_BITS) + borrowedSf - protocolFeesSf - referrerFeesSf - pendingReferrerFeesSf
  );
}

/** The part of the supply that is lent out; above `ONE_SF` where fees are owed that nobody has paid yet. */
export function utilizationSf(reserve: Reserve): bigint {
  const supply = supplySf(reserve);
  return supply === 0n ? 0n : (reserve.borrowedSf << FRACTION_BITS) / supply;
}

/** The rate that borrowers pay in a program's year, without the host's fixed rate: the curve at this utilization. */
export function borrowRateSf(reserve: Reserve): bigint {
  const use = smaller(utilizationSf(reserve), ONE_SF);
  // The program looks the segment up by whole bps, rounded to the nearest, and takes a point's rate as it stands.
  const useBps = Number((use * BPS + ONE_SF / 2n) >> FRACTION_BITS);
  const [from, to] = segmentOf(reserve.curve, useBps);
  if (useBps === from.utilizationBps) return fromBps(from.rateBps);
  if (useBps === to.utilizationBps) return fromBps(to.rateBps);
  const rise = (use - fromBps(from.utilizationBps)) * BigInt(to.rateBps - from.rateBps);
  return rise / BigInt(to.utilizationBps - from.utilizationBps) + fromBps(from.rateBps);
}

/** Works out what a deposit of up to this much mints. The reserve must be accrued to the deposit's slot. */
export function cTokensFor(reserve: Reserve, amountRaw: bigint): Minted {
  const { collateral, liquiditySf } = exchangeRate(reserve);
  const cTokensRaw = ((amountRaw * collateral) << FRACTION_BITS) / liquiditySf;
  return { cTokensRaw, paidRaw: dividedUp(cTokensRaw * liquiditySf, collateral << FRACTION_BITS) };
}

/** Works out what a redemption of cTokens pays. The reserve must be accrued to the redemption's slot. */
export function usdcFor(reserve: Reserve, cTokensRaw: bigint): bigint {
  const { collateral, liquiditySf } = exchangeRate(reserve);
  return (cTokensRaw * liquiditySf) / (collateral << FRACTION_BITS);
}

/** The fewest cTokens that pay at least this much; the caller caps them at what the wallet holds. */
export function cTokensToBurn(reserve: Reserve, usdcRaw: bigint): bigint {
  const { collateral, liquiditySf } = exchangeRate(reserve);
  return dividedUp((usdcRaw * collateral) << FRACTION_BITS, liquiditySf);
}

/** The units that the vault can pay out now to those who do not wait in the queue. */
export function freeLiquidityRaw(reserve: Reserve): bigint {
  const free = reserve.availableRaw - usdcFor(reserve, reserve.queuedCollateralRaw);
  return free < 0n ? 0n : free;
}

/** How much more can be deposited before the reserve's limit. */
export function depositRoomRaw(reserve: Reserve): bigint {
  const room = ((reserve.depositLimitRaw << FRACTION_BITS) - supplySf(reserve)) >> FRACTION_BITS;
  return room < 0n ? 0n : room;
}

/** How much the withdrawal cap still lets out; null: there is no cap. @param nowS the chain's time, seconds since 1970 */
export function withdrawalRoomRaw({ withdrawalCap: cap }: Reserve, nowS: bigint): bigint | null {
  if (cap.intervalSeconds === 0n) return null;
  const isOver = nowS - cap.intervalStartS >= cap.intervalSeconds;
  const room = cap.capacityRaw - (isOver ? 0n : cap.totalRaw);
  return room < 0n || cap.capacityRaw < 0n ? 0n : room;
}

/**
 * Works out the rates of lending and borrowing in a year of real time. The program counts two slots for a second; real slots are
 * shorter, so that more of its years fit into one.
 *
 * @param slotMs what a slot lasts, as the node measured it; taken within 350 and 600 ms
 */
export function supplyAprAndApy(reserve: Reserve, slotMs: number): YearlyRates {
  const rate = toNumber(borrowRateSf(reserve));
  const pace = SLOT_MS_OF_PROGRAM / Math.min(Math.max(slotMs, SLOT_MS_BOUNDS.least), SLOT_MS_BOUNDS.most);
  const kept = 1 - reserve.protocolTakePercent / 100;
  const supplyApr = toNumber(utilizationSf(reserve)) * rate * kept * pace;
  return {
    supplyApr,
    // As (1 + apr / n) ** n, which loses six digits when it is written so.
    supplyApy: Math.expm1(SLOTS_PER_YEAR * Math.log1p(supplyApr / SLOTS_PER_YEAR)),
    borrowApr: (rate + reserve.hostFixedRateBps / Number(BPS)) * pace,
  };
}

/** A fraction for people: exact to about 15 digits. */
export function toNumber(valueSf: bigint): number {
  return Number(valueSf) / Number(ONE_SF);
}

/** Compounds one unit over so many slots: exactly up to 4, then by the first terms of the binomial series. */
function compounded(rateSf: bigint, slots: bigint): bigint {
  const base = rateSf / BigInt(SLOTS_PER_YEAR);
  const once = ONE_SF + base;
  const twice = multiply(once, once);
  if (slots === 0n) return ONE_SF;
  if (slots === 1n) return once;
  if (slots === 2n) return twice;
  if (slots === 3n) return multiply(twice, once);
  if (slots === 4n) return multiply(twice, twice);
  const square = multiply(base, base);
  const cube = multiply(square, base);
  const pairs = slots * (slots - 1n);
  return ONE_SF + base * slots + (square * pairs) / 2n + (cube * pairs * (slots - 2n)) / 6n;
}

/** cTokens, and what all of them are worth; one for one before the first deposit. */
function exchangeRate(reserve: Reserve): { collateral: bigint; liquiditySf: bigint } {
  const liquiditySf = supplySf(reserve);
  return reserve.collateralSupplyRaw === 0n || liquiditySf === 0n
    ? { collateral: 1n, liquiditySf: ONE_SF }
    : { collateral: reserve.collateralSupplyRaw, liquiditySf };
}

function segmentOf(curve: readonly CurvePoint[], useBps: number): [from: CurvePoint, to: CurvePoint] {
  for (const [index, to] of curve.entries()) {
    const from = curve[index - 1];
    if (from !== undefined && useBps >= from.utilizationBps && useBps <= to.utilizationBps) return [from, to];
  }
  throw new RangeError(`the curve has no rate for ${useBps} bps`);
}

function multiply(one: bigint, other: bigint): bigint {
  return (one * other) >> FRACTION_BITS;
}

function fromBps(bps: number): bigint {
  return (BigInt(bps) << FRACTION_BITS) / BPS;
}

function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
