/** The recent move of a price, as a part of sentiment. */

/** A move of this many times its usual size gives three quarters of the maximum. */
const SCALE = 1;

export interface Momentum {
  /** tanh of the last move over what such a move usually is; -1 to 1. */
  value: number;
  /** Percent over the window. */
  changePercent: number;
  /** Daily, of the logarithms, without changes across missing days. */
  dailyVolatility: number;
  /** Returns that the volatility rests on. */
  sample: number;
  /** Changes that were left out because days between are missing. */
  leftOut: number;
}

/**
 * The move over the last days against the usual one.
 *
 * @param closes by the number of the day
 * @param longestGap the most days between two closes that count as neighbours: 1 for markets that never close
 * @returns null when there are too few closes, or when the price does not move
 */
export function momentumOf(
  closes: ReadonlyMap<number, number>,
  windowDays: number,
  longestGap: number,
): Momentum | null {
  const days = [...closes.keys()].sort((a, b) => a - b);
  const last = days.at(-1);
  if (last === undefined) return null;
  const start = days.findLast((day) => day <= last - windowDays);
  const [from, to] = [closes.get(start ?? Number.NaN), closes.get(last)];
  if (start === undefined || from === undefined || to === undefined) return null;
  const changes: number[] = [];
  let leftOut = 0;
  for (const [index, day] of days.entries()) {
    const before = days[index - 1];
    if (before === undefined) continue;
    if (day - before > longestGap) {
      leftOut += 1;
      continue;
    }
    changes.push(Math.log((closes.get(day) ?? 0) / (closes.get(before) ?? 0)));
  }
  if (changes.length < 10) return null;
  const mean = changes.reduce((sum, change) => sum + change, 0) / changes.length;
  const dailyVolatility = Math.sqrt(
    changes.reduce((sum, change) => sum + (change - mean) ** 2, 0) / (changes.length - 1),
  );
  if (!(dailyVolatility > 1e-9)) return null;
  const steps = days.filter((day) => day > start).length;
  const usual = dailyVolatility * Math.sqrt(steps);
  return {
    value: Math.tanh(Math.log(to / from) / usual / SCALE),
    changePercent: (to / from - 1) * 100,
    dailyVolatility,
    sample: changes.length,
    leftOut,
  };
}

export interface MomentumRule {
  windowDays: number;
  longestGap: number;
  /** How many days before a call it may know. */
  lookbackDays: number;
  outcomeDays: number;
  /** The least distance of `Momentum.value` from 0 that is a call. */
  threshold: number;
}

export interface MomentumReplay {
  /** What each call earned, in percent, before fees: the move in the direction that was called. */
  moves: number[];
  /** The days of the first call and of the last outcome; null without a call. */
  fromDay: number | null;
  toDay: number | null;
  /** What holding earned from the first day that could be called on. */
  holdingPercent: number | null;
}

/**
 * Calls the direction that past moves gave, at each day from the days before it alone, and says what came of it. A call
 * lasts for `outcomeDays`; the next one is made when it has ended.
 */
export function replayMomentum(
  closes: ReadonlyMap<number, number>,
  { windowDays, longestGap, lookbackDays, outcomeDays, threshold }: MomentumRule,
): MomentumReplay {
  const days = [...closes.keys()].sort((a, b) => a - b);
  const replay: MomentumReplay = { moves: [], fromDay: null, toDay: null, holdingPercent: null };
  let firstClose: number | undefined;
  let freeFrom = Number.NEGATIVE_INFINITY;
  for (const [index, day] of days.entries()) {
    const close = closes.get(day);
    if (close === undefined || day < freeFrom) continue;
    const known = new Map<number, number>();
    for (const before of days.slice(0, index + 1)) {
      if (before > day - lookbackDays) known.set(before, closes.get(before) ?? Number.NaN);
    }
    const momentum = momentumOf(known, windowDays, longestGap);
    if (momentum === null) continue;
    firstClose ??= close;
    if (Math.abs(momentum.value) < threshold) continue;
    const end = days.find((later) => later >= day + outcomeDays);
    const after = end === undefined ? undefined : closes.get(end);
    if (end === undefined || after === undefined) break;
    replay.moves.push(100 * Math.sign(momentum.value) * (after / close - 1));
    replay.fromDay ??= day;
    replay.toDay = end;
    freeFrom = end;
  }
  const last = closes.get(days.at(-1) ?? Number.NaN);
  if (firstClose !== undefined && last !== undefined) replay.holdingPercent = (last / firstClose - 1) * 100;
  return replay;
}
