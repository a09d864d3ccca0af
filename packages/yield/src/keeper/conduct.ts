/**
 * Judges a protocol's conduct over hours, from the samples of its index: what it paid on average, and whether it was calm. A rate of one
 * block says nothing here, since an index grows by time: whoever borrows everything for a block changes it by two seconds' interest.
 */
import type { ProtocolName } from '../contracts/protocols.ts';
import type { Reading, Sample } from './samples.ts';

/** Why a protocol is not gone to: nearly all of it was lent, its rate jumped, or what was lent to it lost value. */
export type Unrest = 'DRY' | 'JUMPED' | 'LOST';

export interface Conduct {
  /** Its yearly rate over the last hours, as a part of one; null: the samples do not reach back far enough. */
  averageRate: number | null;
  /** Null: it was calm for a day. */
  unrest: Unrest | null;
  /** Whether what is there should be taken out: it stays short of cash, or it lost value. */
  turnedBad: boolean;
}

const HOUR_S = 3_600;
const SECONDS_PER_YEAR = 31_536_000;
/** The average is over the least stretch of at least so long, and a stretch that began too long ago is none. */
const AVERAGE_S = 6 * HOUR_S;
const AVERAGE_AT_MOST_S = 12 * HOUR_S;
/** The span that a rate is compared over, and for which a protocol must have been calm. */
const DAY_S = 24 * HOUR_S;
/** A move into a protocol is refused where more than this is lent: the money may not come out again. */
const CEILING_UTILIZATION = 0.92;
/** A position leaves a protocol that has lent so much for as many samples as `LASTING`. */
const LEAVING_UTILIZATION = 0.97;
/** One block can be arranged by somebody: five minutes apart it takes as much money for as long. */
const LASTING = 3;
/** A rate above twice that of the lowest hour of a day, and a hundredth, has jumped. */
const JUMP_FACTOR = 2;
const JUMP_MARGIN = 0.01;
/** An index falls by the rounding of its protocol. What is more than this is a loss: a two-thousandth. */
const LOSS_PARTS = 2_000n;

/**
 * @param samples the earlier ones, the oldest first
 * @param now what is read now, and the rate that the protocol's curve gives at this block
 */
export function conductOf(
  name: ProtocolName,
  samples: readonly Sample[],
  now: Reading & { atS: number; spotRate: number },
): Conduct {
  const known = samples.flatMap(({ atS, protocols }) => {
    const reading = protocols[name];
    return reading === null ? [] : [{ atS, ...reading }];
  });
  const since = (ageS: number) => known.findLast(({ atS }) => now.atS - atS >= ageS);
  const [hours, day] = [since(AVERAGE_S), since(DAY_S)];
  const lately = known.filter(({ atS }) => now.atS - atS <= DAY_S);
  const last = [...known.filter(({ atS }) => now.atS - atS <= HOUR_S).slice(-LASTING), now];
  const highest = lately.reduce((most, { index }) => (index > most ? index : most), 0n);
  const hasLost = ({ index }: Reading) => index < highest - highest / LOSS_PARTS;
  const isLasting = last.length > LASTING;
  const turnedBad =
    isLasting && (last.every(({ utilization }) => utilization >= LEAVING_UTILIZATION) || last.every(hasLost));
  const isDry =
    now.utilization > CEILING_UTILIZATION ||
    lately.filter(({ utilization }) => utilization > CEILING_UTILIZATION).length >= LASTING;
  if (hours === undefined || day === undefined || now.atS - hours.atS > AVERAGE_AT_MOST_S)
    return { averageRate: null, unrest: isDry ? 'DRY' : hasLost(now) ? 'LOST' : null, turnedBad };
  const averageRate = growthRate(hours, now);
  const calm = JUMP_FACTOR * lowestHour([...lately, now]) + JUMP_MARGIN;
  const hasJumped = averageRate > calm || now.spotRate > calm;
  const unrest = isDry ? 'DRY' : hasLost(now) ? 'LOST' : hasJumped ? 'JUMPED' : null;
  return { averageRate, unrest, turnedBad };
}

/** The least that was paid in any stretch of an hour. */
function lowestHour(readings: readonly { atS: number; index: bigint }[]): number {
  let [lowest, from] = [Number.POSITIVE_INFINITY, 0];
  for (const reading of readings) {
    const then = readings[from];
    if (then === undefined || reading.atS - then.atS < HOUR_S) continue;
    lowest = Math.min(lowest, growthRate(then, reading));
    from += 1;
  }
  return lowest;
}

/** Yearly growth of an index, as a part of one and not compounded. */
function growthRate(then: { atS: number; index: bigint }, now: { atS: number; index: bigint }): number {
  if (then.index === 0n) return 0;
  const grown = Number(((now.index - then.index) * 10n ** 18n) / then.index) / 1e18;
  return (grown * SECONDS_PER_YEAR) / (now.atS - then.atS);
}
