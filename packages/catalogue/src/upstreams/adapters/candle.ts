import { z } from 'zod';
import type { Reply } from '../define.ts';
import { wireNumber } from '../wire-number.ts';

/** A market's prices in one interval, in units of the quote currency, with the volume in the base asset. */
export interface Candle {
  openMs: number;
  /** The first instant after the interval. */
  closeMs: number;
  open: number;
  high: number;
  low: number;
  close: number;
  volume: number;
}

/** The length of each interval that all exchanges offer, in milliseconds. */
export const BAR_MS = {
  '1m': 60_000,
  '5m': 300_000,
  '15m': 900_000,
  '1h': 3_600_000,
  '4h': 14_400_000,
  '1d': 86_400_000,
} as const;
export type BarInterval = keyof typeof BAR_MS;

/** Two tickers in upper case, such as BTC and USDT. */
export interface Pair {
  base: string;
  quote: string;
}

/** What every exchange adapter offers. */
export interface CandleSource {
  /** Finished candles, oldest first; null when the exchange does not list the pair. */
  candles(pair: Pair, interval: BarInterval): Promise<Reply<Candle[] | null>>;
}

export const wirePrice = wireNumber.pipe(z.number().positive());
export const wireVolume = wireNumber.pipe(z.number().nonnegative());

/**
 * How long candles are cached: a tenth of a bar, but between 10 s and 10 min, so that a new bar is seen soon after it
 * closes.
 */
export function candleFreshness(interval: BarInterval): { freshMs: number; staleMs: number } {
  const freshMs = Math.min(600_000, Math.max(10_000, BAR_MS[interval] / 10));
  return { freshMs, staleMs: freshMs };
}

/**
 * Sorts candles and drops the one that was unfinished when the reply arrived. The time of the reply decides, not the
 * present: a cached bar does not become finished by waiting.
 */
export function finishedCandles(reply: Reply<Candle[]>): Reply<Candle[]> {
  const receivedMs = Date.parse(reply.source.retrievedAt);
  const value = reply.value
    .filter(({ closeMs }) => closeMs <= receivedMs)
    .sort((a, b) => a.openMs - b.openMs);
  const last = value.at(-1);
  const asOf = last === undefined ? null : new Date(last.closeMs).toISOString();
  return { value, source: { ...reply.source, asOf } };
}
