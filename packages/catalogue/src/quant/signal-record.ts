import type { Bars } from './indicators.ts';
import type { Position } from './trade-signal.ts';

/** What a rule would have earned on past bars. */
export interface SignalRecord {
  /** Finished trades. */
  trades: number;
  /** Trades that earned something after fees. */
  hits: number;
  /** Null without a trade. */
  hitRatePercent: number | null;
  /** Mean of what a trade earned after fees, in percent of its entry; null without a trade. */
  expectancyPercent: number | null;
  /** Standard error of that mean; null below two trades. */
  expectancyErrorPercent: number | null;
  /** Whether a trade was still open at the last bar, which counts for nothing. */
  unresolved: boolean;
  /** What holding earned meanwhile, from the first bar that could be traded on, without fees. */
  holdingPercent: number | null;
}

export interface TradedBars extends Bars {
  open: readonly number[];
}

/** 97.5 % of a normal distribution lie below this. */
const Z = 1.959964;

/**
 * The least that a rate is likely to be after so many tries: the lower end of Wilson's 95 % interval (Probable inference,
 * the law of succession, and statistical inference, JASA 22, 1927). 0 without a try.
 */
export function leastRate(hits: number, tries: number): number {
  if (tries === 0) return 0;
  const rate = hits / tries;
  const spread = Z * Math.sqrt((rate * (1 - rate)) / tries + Z ** 2 / (4 * tries ** 2));
  return Math.max(0, (rate + Z ** 2 / (2 * tries) - spread) / (1 + Z ** 2 / tries));
}

/**
 * Trades a rule on past bars, one position at a time: in at the close of the bar that gave it, out where a later bar first
 * reaches its stop or target. A bar that reaches both counts as stopped; one that opens beyond a level is left at its open.
 *
 * @param positions what the rule said at each bar, from that bar and those before it alone
 * @param first the first bar that may be traded on
 * @param takerFeePercent of one trade, in percent of its value
 */
export function recordOf(
  bars: TradedBars,
  positions: readonly (Position | null)[],
  first: number,
  takerFeePercent: number,
): SignalRecord {
  const earned: number[] = [];
  let unresolved = false;
  let at = first;
  while (at < bars.close.length) {
    const entry = bars.close[at];
    const position = positions[at];
    const levels = position === null || position === undefined ? null : levelsOf(position);
    if (entry === undefined || levels === null) {
      at += 1;
      continue;
    }
    const left = exitOf(bars, at + 1, levels);
    if (left === null) {
      unresolved = at + 1 < bars.close.length;
      break;
    }
    const fees = (takerFeePercent / 100) * (entry + left.price);
    earned.push((100 * (levels.side * (left.price - entry) - fees)) / entry);
    at = left.at;
  }
  const [from, to] = [bars.close[first], bars.close.at(-1)];
  return {
    ...recordOfReturns(earned),
    unresolved,
    holdingPercent: from === undefined || to === undefined ? null : (to / from - 1) * 100,
  };
}

/** Counts and means of what trades earned, in percent after fees. */
export function recordOfReturns(
  earned: readonly number[],
): Omit<SignalRecord, 'unresolved' | 'holdingPercent'> {
  const trades = earned.length;
  const hits = earned.filter((percent) => percent > 0).length;
  const mean = trades === 0 ? null : earned.reduce((sum, percent) => sum + percent, 0) / trades;
  const variance =
    mean === null || trades < 2
      ? null
      : earned.reduce((sum, percent) => sum + (percent - mean) ** 2, 0) / (trades - 1);
  return {
    trades,
    hits,
    hitRatePercent: trades === 0 ? null : (100 * hits) / trades,
    expectancyPercent: mean,
    expectancyErrorPercent: variance === null ? null : Math.sqrt(variance / trades),
  };
}

interface Levels {
  side: 1 | -1;
  stop: number;
  target: number;
}

/** Null for HOLD, and where a level lies at or below zero: such a position is not shown either. */
function levelsOf({ signal, stopLoss, target }: Position): Levels | null {
  if (signal === 'HOLD' || stopLoss === null || target === null) return null;
  if (stopLoss <= 0 || target <= 0) return null;
  return { side: signal === 'BUY' ? 1 : -1, stop: stopLoss, target };
}

/** Null where no bar from the given one on reaches a level. */
function exitOf(
  { open, high, low }: TradedBars,
  from: number,
  { side, stop, target }: Levels,
): { at: number; price: number } | null {
  for (let at = from; at < high.length; at++) {
    const [opened, highest, lowest] = [open[at], high[at], low[at]];
    if (opened === undefined || highest === undefined || lowest === undefined) return null;
    if (side * (opened - stop) <= 0 || side * (opened - target) >= 0) return { at, price: opened };
    const [worst, best] = side === 1 ? [lowest, highest] : [highest, lowest];
    if (side * (worst - stop) <= 0) return { at, price: stop };
    if (side * (best - target) >= 0) return { at, price: target };
  }
  return null;
}
