/** A rule of the books, as a query that returns its violations: no row, no violation. */
export interface Rule {
  name: string;
  sql: string;
  say(row: Record<string, unknown>): string;
}

/** The rules and sums that a part contributes to the books. */
export interface Audited {
  rules: readonly Rule[];
  /**
   * Sums for the report: a query of one row each, whose columns have the report's names. Each part that keeps one kind of
   * money says it, and no other does.
   */
  totals?: Partial<Record<'calls' | 'onChain' | 'cards', string>>;
}
