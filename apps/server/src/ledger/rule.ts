/** What must hold of the books, as a query that finds what breaks it: no row, no finding. */
export interface Rule {
  name: string;
  sql: string;
  say(row: Record<string, unknown>): string;
}

/** What a part answers for in the books. */
export interface Audited {
  rules: readonly Rule[];
  /**
   * Sums for the report: a query of one row each, whose columns have the report's names. Each part that keeps one kind of
   * money says it, and no other does.
   */
  totals?: Partial<Record<'calls' | 'onChain' | 'cards', string>>;
}
