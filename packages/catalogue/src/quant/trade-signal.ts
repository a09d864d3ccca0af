import {
  atrTrail,
  type Bars,
  type Bollinger,
  bollingerTrail,
  emaTrail,
  type Macd,
  macdTrail,
  rsiTrail,
} from './indicators.ts';

/** The slowest average needs this many bars before it says anything. */
export const MIN_BARS = 200;

/** How much each indicator's vote counts. They sum to 1. */
export const WEIGHTS = { trend: 0.35, macd: 0.25, rsi: 0.2, bollinger: 0.2 } as const;
export type Voter = keyof typeof WEIGHTS;

/** A sum of weighted votes at least this far from zero is a signal. */
export const SIGNAL_THRESHOLD = 0.5;

/** Distance of the stop from the entry, in average true ranges. */
export const STOP_ATR = { low: 1.5, medium: 2, high: 3 } as const;
export type RiskLevel = keyof typeof STOP_ATR;

/** Distance of the target from the entry, in distances of the stop. */
export const REWARD_TO_RISK = 2;

export interface Indicators {
  rsi14: number | null;
  macd: Macd | null;
  ema20: number | null;
  ema50: number | null;
  ema200: number | null;
  atr14: number | null;
  bollinger: Bollinger | null;
}

export interface Vote {
  indicator: Voter;
  /** 1 for up, -1 for down, 0 for neither; null when the indicator has no value. */
  vote: -1 | 0 | 1 | null;
  weight: number;
  because: string;
}

export interface Ballot {
  signal: 'BUY' | 'SELL' | 'HOLD';
  /** Weighted sum of the votes, -1 to 1. */
  score: number;
  votes: Vote[];
}

/** All indicators at each bar, each from that bar and those before it alone. */
export function indicatorTrail(bars: Bars): Indicators[] {
  const { close } = bars;
  const trails = {
    rsi14: rsiTrail(close, 14),
    macd: macdTrail(close),
    ema20: emaTrail(close, 20),
    ema50: emaTrail(close, 50),
    ema200: emaTrail(close, 200),
    atr14: atrTrail(bars, 14),
    bollinger: bollingerTrail(close, 20),
  };
  return close.map((_, at) => ({
    rsi14: trails.rsi14[at] ?? null,
    macd: trails.macd[at] ?? null,
    ema20: trails.ema20[at] ?? null,
    ema50: trails.ema50[at] ?? null,
    ema200: trails.ema200[at] ?? null,
    atr14: trails.atr14[at] ?? null,
    bollinger: trails.bollinger[at] ?? null,
  }));
}

/**
 * Lets four indicators vote: two follow the trend (EMA 50 against EMA 200, MACD histogram), two expect a return to
 * the mean (RSI beyond 30/70, a close outside the Bollinger bands). An indicator without a value abstains.
 */
export function vote(indicators: Indicators): Ballot {
  const votes: Vote[] = [
    trendVote(indicators),
    macdVote(indicators),
    rsiVote(indicators),
    bollingerVote(indicators),
  ];
  const score = votes.reduce((sum, { vote, weight }) => sum + (vote ?? 0) * weight, 0);
  // The weights are decimal fractions; their binary sums must not miss the threshold by a rounding.
  const rounded = Math.round(score * 1e9) / 1e9;
  const signal = rounded >= SIGNAL_THRESHOLD ? 'BUY' : rounded <= -SIGNAL_THRESHOLD ? 'SELL' : 'HOLD';
  return { signal, score: rounded, votes };
}

/**
 * Where to leave a position: the stop `STOP_ATR` true ranges against it, the target twice as far in its favour.
 *
 * @returns prices; a target or stop may be at or below zero for a very volatile asset, which callers must refuse
 */
export function exits(
  direction: 'BUY' | 'SELL',
  entry: number,
  atr14: number,
  riskLevel: RiskLevel,
): { stopLoss: number; target: number } {
  const side = direction === 'BUY' ? 1 : -1;
  const risk = STOP_ATR[riskLevel] * atr14;
  return { stopLoss: entry - side * risk, target: entry + side * REWARD_TO_RISK * risk };
}

export interface Position {
  signal: Ballot['signal'];
  /** At or below zero for a very volatile asset; null for HOLD. */
  stopLoss: number | null;
  target: number | null;
  /** Why there is no position; null where there is one. */
  holdReason: string | null;
}

/**
 * The position of a signal, or HOLD where the signal is none or its target lies nearer than the fees of a round trip.
 *
 * @param takerFeePercent of one trade, in percent of its value
 */
export function positionOf(
  { signal, threshold }: { signal: Ballot['signal']; threshold: number },
  entry: number,
  atr14: number,
  riskLevel: RiskLevel,
  takerFeePercent: number,
): Position {
  const none = { signal: 'HOLD', stopLoss: null, target: null } as const;
  if (signal === 'HOLD') {
    return { ...none, holdReason: `The votes stay within ±${threshold}.` };
  }
  const { stopLoss, target } = exits(signal, entry, atr14, riskLevel);
  // Both trades are charged on their own value.
  const feesOfBoth = (takerFeePercent / 100) * (entry + Math.max(0, target));
  const gain = Math.abs(target - entry);
  if (gain > feesOfBoth) return { signal, stopLoss, target, holdReason: null };
  const percent = (value: number) => `${Number(((100 * value) / entry).toPrecision(2))} %`;
  return {
    ...none,
    holdReason: `The votes say ${signal}, but the target would be ${percent(gain)} away, and a round trip costs ${percent(feesOfBoth)} in fees.`,
  };
}

function trendVote({ ema50, ema200 }: Indicators): Vote {
  const known = ema50 !== null && ema200 !== null;
  return {
    indicator: 'trend',
    vote: known ? direction(ema50 - ema200) : null,
    weight: WEIGHTS.trend,
    because: known ? `EMA 50 is ${compared(ema50, ema200)} EMA 200` : 'too few bars',
  };
}

function macdVote({ macd }: Indicators): Vote {
  return {
    indicator: 'macd',
    vote: macd === null ? null : direction(macd.histogram),
    weight: WEIGHTS.macd,
    because: macd === null ? 'too few bars' : `MACD is ${compared(macd.histogram, 0)} its signal line`,
  };
}

function rsiVote({ rsi14 }: Indicators): Vote {
  const value = rsi14 === null ? null : rsi14 < 30 ? 1 : rsi14 > 70 ? -1 : 0;
  const words =
    value === 1 ? 'below 30: oversold' : value === -1 ? 'above 70: overbought' : 'between 30 and 70';
  return {
    indicator: 'rsi',
    vote: value,
    weight: WEIGHTS.rsi,
    because: rsi14 === null ? 'the price did not move' : `RSI 14 is ${words}`,
  };
}

function bollingerVote({ bollinger }: Indicators): Vote {
  const percentB = bollinger?.percentB ?? null;
  const value = percentB === null ? null : percentB < 0 ? 1 : percentB > 1 ? -1 : 0;
  const words = value === 1 ? 'below the lower' : value === -1 ? 'above the upper' : 'between the';
  return {
    indicator: 'bollinger',
    vote: value,
    weight: WEIGHTS.bollinger,
    because:
      percentB === null
        ? 'the price did not move'
        : `the close is ${words} Bollinger ${value === 0 ? 'bands' : 'band'}`,
  };
}

function direction(value: number): -1 | 0 | 1 {
  return value > 0 ? 1 : value < 0 ? -1 : 0;
}

function compared(a: number, b: number): string {
  return a > b ? 'above' : a < b ? 'below' : 'level with';
}
