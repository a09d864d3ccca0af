import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';
import { wireNumber } from '../wire-number.ts';

export interface BookLevel {
  /** USD a contract, 0 to 1. */
  price: number;
  /** Contracts. */
  size: number;
}

/** An order book of one outcome, best level first on both sides. */
export interface ClobBook {
  bids: BookLevel[];
  asks: BookLevel[];
  tickSize: number | null;
  /** ISO 8601. */
  asOf: string | null;
}

const levels = z.array(z.looseObject({ price: wireNumber, size: wireNumber })).max(2_000);
const book = z
  .looseObject({
    bids: levels.nullish(),
    asks: levels.nullish(),
    tick_size: wireNumber.nullish(),
    /** Milliseconds since 1970, as a string. */
    timestamp: wireNumber.nullish(),
  })
  .transform(
    (raw): ClobBook => ({
      // The wire lists the best quote last. Sorting does not depend on that.
      bids: filled(raw.bids).sort((a, b) => b.price - a.price),
      asks: filled(raw.asks).sort((a, b) => a.price - b.price),
      tickSize: raw.tick_size ?? null,
      asOf: typeof raw.timestamp === 'number' ? new Date(raw.timestamp).toISOString() : null,
    }),
  );

function filled(side: z.output<typeof levels> | null | undefined): BookLevel[] {
  return (side ?? []).filter(({ size }) => size > 0).map(({ price, size }) => ({ price, size }));
}

/**
 * Polymarket's order books (CLOB). A book is asked for by the token of one outcome; the book of the other outcome
 * of a binary market is its mirror image. https://docs.polymarket.com/
 */
export const polymarketclob = defineUpstream({
  name: 'polymarketclob',
  title: 'Polymarket order book',
  baseUrl: 'https://clob.polymarket.com',
  licence: 'Polymarket public data; trading is limited by region',
  terms: {
    commercialUse: 'unknown',
    note: 'Anybody may read. Trading is limited by region.',
    attribution: null,
    url: 'https://docs.polymarket.com',
  },
  documentation: {
    at: 'https://docs.polymarket.com/api-reference/rate-limits',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 1_200,
  open: (http) => ({
    /** The live book of one outcome; null when the token has none. */
    async book(tokenId: string): Promise<Reply<ClobBook | null>> {
      const reply = await http.find({
        path: '/book',
        query: { token_id: tokenId },
        schema: book,
        freshMs: 5_000,
        staleMs: 0,
      });
      return { ...reply, source: { ...reply.source, asOf: reply.value?.asOf ?? null } };
    },
    /** The middle between best bid and ask as the venue itself computes it; null when the token has no book. */
    midpoint: (tokenId: string) =>
      http.find({
        path: '/midpoint',
        query: { token_id: tokenId },
        schema: z.looseObject({ mid: wireNumber }).transform(({ mid }) => mid),
        freshMs: 5_000,
        staleMs: 0,
      }),
    /** Prices of one outcome over the last day, hourly, oldest first. */
    dayOfPrices: (tokenId: string) =>
      http.get({
        path: '/prices-history',
        query: { market: tokenId, interval: '1d', fidelity: 60 },
        schema: z
          .looseObject({ history: z.array(z.looseObject({ t: wireNumber, p: wireNumber })).max(5_000) })
          .transform(({ history }) =>
            history
              .map(({ t, p }) => ({ time: new Date(t * 1_000).toISOString(), price: p }))
              .sort((a, b) => a.time.localeCompare(b.time)),
          ),
        freshMs: 60_000,
        staleMs: 300_000,
      }),
  }),
  // There is no list of tokens to take one from. The answer "no book" for token 0 shows that the API works.
  probe: (api) => api.book('0'),
});
