/** How the reserve stands, and what it earns: all of it read together, and of one slot. */
import type { House } from '@farebox/core/part';
import { SLOTS_PER_YEAR, supplyAprAndApy, type YearlyRates } from './model/interest.ts';
import { chainUnavailable, type Node } from './node.ts';
import type { Portal, ReserveNow } from './portal.ts';
import { DEPOSIT_FEE_BPS, PERFORMANCE_FEE_BPS, WITHDRAWAL_FEE_BPS } from './terms.ts';

/** The chain's own clock: the slot and the time of the bank that accounts are read from. */
export const CLOCK_SYSVAR = 'SysvarC1ock11111111111111111111111111111111';
const CLOCK_BYTES = 40;
const CLOCK_TIME_AT = 32;
/** The longest that a reading may take, with all that it asks one after the other. */
const READ_MS = 12_000;
/** The other vault is a comparison, and keeps nobody waiting. */
const OTHER_MS = 3_000;
const DAYS_PER_YEAR = 365;

/** Tells what the vault on Base earns now, in percent a year after its fee; null: why it is not known. */
export type OtherRate = () => Promise<{ netApyPercent: number } | { netApyPercent: null; reason: string }>;

export type Compared = Awaited<ReturnType<OtherRate>>;

/** A rate, or why there is none. */
export type ToldRates = { rates: YearlyRates; slotMs: number } | { rates: null; reason: string };

export interface Standing extends ReserveNow {
  readAtMs: number;
  /** The chain's time in that slot; null: it does not say. */
  chainAtMs: number | null;
  earns: ToldRates;
  base: Compared;
}

/**
 * Reads how the reserve stands.
 *
 * @throws Problem 503 while the chain is silent, behind, or not what the portal was made for
 */
export async function readStanding(
  { portal, node }: { portal: Pick<Portal, 'look'>; node: Pick<Node, 'slotMs'> },
  baseRate: OtherRate | null,
  nowMs: House['nowMs'],
): Promise<Standing> {
  const [{ accounts, ...now }, slotMs, base] = await inTime(
    READ_MS,
    Promise.all([portal.look([CLOCK_SYSVAR]), node.slotMs().catch(() => null), compared(baseRate)]),
    () => chainUnavailable(new Error(`nothing was read within ${READ_MS} ms`)),
  );
  const [clock = null] = accounts;
  return {
    ...now,
    base,
    readAtMs: nowMs(),
    chainAtMs: chainTimeMs(clock?.data),
    earns: earningsOf(now, slotMs),
  };
}

/** @param clock what the sysvar's account holds */
export function chainTimeMs(clock: Uint8Array | undefined): number | null {
  if (clock?.length !== CLOCK_BYTES) return null;
  return Number(Buffer.from(clock).readBigInt64LE(CLOCK_TIME_AT)) * 1_000;
}

/**
 * After how many days at a rate the yield has made up for both fees; null: never.
 *
 * @param apy a fraction a year
 */
export function daysToEarnBackFees(apy: number): number | null {
  const [comes, leaves] = [1 - fraction(DEPOSIT_FEE_BPS), 1 - fraction(WITHDRAWAL_FEE_BPS)];
  if (!(apy > 0)) return null;
  const needed = (1 - comes * leaves) / (comes * (leaves - fraction(PERFORMANCE_FEE_BPS)));
  return Math.ceil((DAYS_PER_YEAR * Math.log1p(needed)) / Math.log1p(apy));
}

function fraction(bps: bigint): number {
  return Number(bps) / 10_000;
}

function earningsOf({ reserve }: ReserveNow, slotMs: number | null): ToldRates {
  if (slotMs === null)
    return {
      rates: null,
      reason: `The node does not tell how long slots last, and interest is paid by slots: ${SLOTS_PER_YEAR} are the protocol's year.`,
    };
  return { rates: supplyAprAndApy(reserve, slotMs), slotMs };
}

async function compared(baseRate: OtherRate | null): Promise<Compared> {
  if (baseRate === null) return { netApyPercent: null, reason: 'This server offers no vault on Base.' };
  const silent = { netApyPercent: null, reason: 'The vault on Base cannot be read at the moment.' } as const;
  return inTime(OTHER_MS, baseRate(), () => new Error('the vault is silent')).catch(() => silent);
}

/** @param late what is thrown once it took too long */
async function inTime<Value>(ms: number, work: Promise<Value>, late: () => Error): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}
