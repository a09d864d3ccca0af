/** How much rests in an order book close to its best prices. */
import { z } from 'zod';

/** How far from the best price a level may be to count, in USD a contract. */
const WITHIN_USD = 0.02;

interface Level {
  /** USD a contract, 0 to 1. */
  price: number;
  /** Contracts. */
  size: number;
}

export const bookDepth = z
  .object({
    withinUsd: z.number().describe('Levels this close to the best price of their side are counted'),
    bidContracts: z.number().describe('Contracts bid for'),
    askContracts: z.number().describe('Contracts on offer'),
    bidUsd: z.number().describe('What the bids would pay'),
    askUsd: z.number().describe('What the asks would cost'),
  })
  .describe('What rests close to the best prices for yes, or for the first outcome');
export type BookDepth = z.output<typeof bookDepth>;

/** Adds up both sides of a book. Either may be empty; the best level comes first. */
export function depthOf(bids: readonly Level[], asks: readonly Level[]): BookDepth {
  const [bid, ask] = [near(bids), near(asks)];
  return {
    withinUsd: WITHIN_USD,
    bidContracts: bid.contracts,
    askContracts: ask.contracts,
    bidUsd: bid.usd,
    askUsd: ask.usd,
  };
}

function near(side: readonly Level[]): { contracts: number; usd: number } {
  const best = side[0]?.price ?? 0;
  // Prices are decimal fractions: the difference of two may miss the bound by a rounding error.
  const counted = side.filter(({ price }) => Math.abs(price - best) <= WITHIN_USD + 1e-9);
  return {
    contracts: cents(counted.reduce((sum, { size }) => sum + size, 0)),
    usd: cents(counted.reduce((sum, { size, price }) => sum + size * price, 0)),
  };
}

function cents(value: number): number {
  return Math.round(value * 100) / 100;
}
