/** Best prices of one side of a question, in USD a contract; null where nobody quotes. */
export interface BestPrices {
  bid: number | null;
  ask: number | null;
}

/** Ticks are 0.0001 at the finest, and a midpoint may lie at half a tick. */
export function toTick(price: number): number {
  return Math.round(price * 1e5) / 1e5;
}

/** The middle of best bid and ask; null when one side is empty. */
export function middle({ bid, ask }: BestPrices): number | null {
  return bid === null || ask === null ? null : toTick((bid + ask) / 2);
}

/** The difference of best ask and bid in USD a contract; null when one side is empty. */
export function gap({ bid, ask }: BestPrices): number | null {
  return bid === null || ask === null ? null : toTick(ask - bid);
}
