/** The live quotes of a Polymarket market, if they are plausible. */

import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import type { PolymarketMarket } from '../../../upstreams/adapters/polymarket.ts';
import type { RunContext } from '../../define.ts';
import { type BestPrices, toTick } from './best-prices.ts';
import { type BookDepth, depthOf } from './book-depth.ts';

/** A book whose midpoint is further than this from the venue's own midpoint is not believed. */
const BELIEVED_TICKS = 2;

export interface LiveQuotes {
  quotes: BestPrices;
  depth: BookDepth;
  /** Why the book is not believed; null when it is. */
  doubt: string | null;
  sources: Source[];
}

/** What `unlessDown` returns when the books cannot be read now. */
export const DOWN = Symbol('the books cannot be read now');

/** The books add to an answer. Without them it has less, but is still an answer. */
export async function unlessDown<T>(reading: Promise<T>): Promise<T | typeof DOWN> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof UpstreamUnavailable) return DOWN;
    throw error;
  }
}

/**
 * The best quotes of the first outcome in its book, compared with the venue's own midpoint. Null when it has no book.
 *
 * @throws UpstreamUnavailable when the books cannot be read
 */
export async function liveQuotes(
  market: PolymarketMarket,
  { upstreams }: RunContext<'polymarketclob'>,
): Promise<LiveQuotes | null> {
  const tokenId = market.outcomes[0]?.tokenId;
  if (tokenId === undefined || tokenId === null) return null;
  const [book, midpoint] = await Promise.all([
    upstreams.polymarketclob.book(tokenId),
    upstreams.polymarketclob.midpoint(tokenId),
  ]);
  if (book.value === null) return null;
  const quotes = { bid: book.value.bids[0]?.price ?? null, ask: book.value.asks[0]?.price ?? null };
  const mid = quotes.bid === null || quotes.ask === null ? null : (quotes.bid + quotes.ask) / 2;
  const ticks = BELIEVED_TICKS * (book.value.tickSize ?? market.tickSize ?? 0.01) + 1e-9;
  const doubt =
    mid !== null && midpoint.value !== null && Math.abs(mid - midpoint.value) > ticks
      ? `The book of "${market.question}" (middle ${toTick(mid)}) disagrees with the venue’s midpoint ${midpoint.value}: the catalogue’s quotes are used.`
      : null;
  return {
    quotes,
    depth: depthOf(book.value.bids, book.value.asks),
    doubt,
    sources: [book.source, midpoint.source],
  };
}
