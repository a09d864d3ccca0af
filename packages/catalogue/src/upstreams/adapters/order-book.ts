import { z } from 'zod';
import type { Reply } from '../define.ts';
import { wireNumber } from '../wire-number.ts';
import type { Pair } from './candle.ts';

/** A price level: the price and the size at it, in units of the base asset. */
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
  /** The book as of a moment ago; null when the exchange does not list the pair. */
  orderBook(pair: Pair): Promise<Reply<OrderBook | null>>;
}

/** The number of levels read on each side. */
export const BOOK_DEPTH = 100;
/** A book is outdated at once. The cache only spares the exchange simultaneous requests. */
export const BOOK_FRESHNESS = { freshMs: 1_000, staleMs: 0 } as const;

const level = z
  .tuple([wireNumber.pipe(z.number().positive()), wireNumber.pipe(z.number().nonnegative())])
  .rest(z.unknown())
  .transform(([price, size]): Level => ({ price, size }));
const side = z
  .array(z.unknown())
  .transform((rows) => rows.slice(0, BOOK_DEPTH))
  .pipe(z.array(level));

/** Two sides of `[price, size, …]`, the format of all exchanges here. A side that is not in order is refused. */
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
