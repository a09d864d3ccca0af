/** The order books of the sandbox's exchanges: each about the market's price, with a spread and a mood of its own. */
import type { Coin } from './assets.ts';
import type { Market } from './market.ts';
import { keyOf, smooth, uniform } from './noise.ts';

/** By how much of the price a venue's middle may stand off the market's, and for how long. */
const DRIFT = 0.0006;
const DRIFT_MS = 45_000;
const SPREAD = 0.0002;
const STEP = 0.00015;
const LEVELS = 120;

export interface Book {
  bids: { price: number; size: number }[];
  asks: { price: number; size: number }[];
}

/** The best first on either side. */
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
  // What is offered near the middle is a small part of what is traded in a day.
  const typicalUsd = Math.max(200, coin.turnoverUsd * turnoverShare * 0.00002);
  const side = (sign: 1 | -1) =>
    Array.from({ length: LEVELS }, (_, at) => {
      const draw = uniform(key ^ (sign + 2), Math.floor(nowMs / 5_000) * LEVELS + at);
      const price = Number((middle * (1 + sign * (SPREAD / 2 + at * STEP))).toFixed(places));
      return { price, size: Number(((typicalUsd * (0.3 + draw) * (1 + at / 10)) / middle).toFixed(8)) };
    });
  return { bids: side(-1), asks: side(1) };
}
