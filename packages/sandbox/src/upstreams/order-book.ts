/** The order books of the sandbox's exchanges. Each lies around the market's price, off by a small drift of its own. */
import type { Coin } from './assets.ts';
import type { Market } from './market.ts';
import { keyOf, smooth, uniform } from './noise.ts';

/**
 * The standard deviation of a venue's middle price from the market's price, as a fraction, and the time in which it moves from
 * one deviation to the next.
 */
const DRIFT = 0.0006;
const DRIFT_MS = 45_000;
const SPREAD = 0.0002;
const STEP = 0.00015;
const LEVELS = 120;

export interface Book {
  bids: { price: number; size: number }[];
  asks: { price: number; size: number }[];
}

/** A venue's order book for a coin. Both sides begin with the best price. */
export function bookOf(
  market: Market,
  coin: Coin,
  venue: string,
  turnoverShare: number,
  nowMs: number,
): Book {
  const key = keyOf(market.seed, `book:${venue}:${coin.id}`);
  const stable = coin.motion.kind === 'stable';
  const drift = stable ? 0 : DRIFT * smooth(key, nowMs / DRIFT_MS);
  const middle = market.priceUsd(coin, nowMs) * (1 + drift);
  const places = market.priceDecimals(coin);
  // The size of an offer near the middle is a small part of a day's turnover.
  const typicalUsd = Math.max(200, coin.turnoverUsd * turnoverShare * 0.00002);
  const side = (sign: 1 | -1) =>
    Array.from({ length: LEVELS }, (_, at) => {
      const draw = uniform(key ^ (sign + 2), Math.floor(nowMs / 5_000) * LEVELS + at);
      const price = Number((middle * (1 + sign * (SPREAD / 2 + at * STEP))).toFixed(places));
      return { price, size: Number(((typicalUsd * (0.3 + draw) * (1 + at / 10)) / middle).toFixed(8)) };
    });
  return { bids: side(-1), asks: side(1) };
}
