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
