import { z } from 'zod';
import type { Pair } from './candle.ts';
import type { Reply } from './define.ts';
import { wireNumber } from './wire-number.ts';

/** A price and how much is wanted or offered at it, in units of the base asset. */
export interface Level {
  price: number;
  size: number;
}

/** The best offers first on either side; a side may be empty. */
export interface OrderBook {
  bids: Level[];
  asks: Level[];
}

/** What an exchange with an order book offers. */
export interface OrderBookSource {
  /** The book as it stood a moment ago; null when the exchange does not list the pair. */
  orderBook(pair: Pair): Promise<Reply<OrderBook | null>>;
}

/** Levels that are read of a side. */
export const BOOK_DEPTH = 100;
/** A book is out of date at once; this only spares the exchange those who ask together. */
export const BOOK_FRESHNESS = { freshMs: 1_000, staleMs: 0 } as const;

const level = z
  .tuple([wireNumber.pipe(z.number().positive()), wireNumber.pipe(z.number().nonnegative())])
  .rest(z.unknown())
  .transform(([price, size]): Level => ({ price, size }));
const side = z
  .array(z.unknown())
  .transform((rows) => rows.slice(0, BOOK_DEPTH))
  .pipe(z.array(level));

/** Two sides of `[price, size, …]`, as all exchanges here write them. A side that is not in order is no book. */
export const wireBook = z
  .looseObject({ bids: side, asks: side })
  .transform(
    ({ bids, asks }): OrderBook => ({
      bids: bids.filter(({ size }) => size > 0),
      asks: asks.filter(({ size }) => size > 0),
    }),
  )
  .refine(({ bids, asks }) => falls(bids) && falls([...asks].reverse()), 'is not in order of price')
  .refine(({ bids: [bid], asks: [ask] }) => bid === undefined || ask === undefined || bid.price < ask.price, {
    message: 'is crossed',
  });

function falls(levels: readonly Level[]): boolean {
  return levels.every(({ price }, index) => index === 0 || price <= (levels[index - 1]?.price ?? 0));
}
