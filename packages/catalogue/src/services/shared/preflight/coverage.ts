/** The checks that there are, and the form in which one that was not made is told. */

export const CHECKS = [
  'decoding',
  'simulation',
  'balances',
  'lookup-tables',
  'counterparties',
  'sanctions-oracle',
  'sanctions-lists',
  'published-source',
  'tokens',
  'price-of-order',
] as const;

export interface Check {
  check: (typeof CHECKS)[number];
  done: boolean;
  /** The reason, in a sentence of ours; null where it was made in full. */
  why: string | null;
}
