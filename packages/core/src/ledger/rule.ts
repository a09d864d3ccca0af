/** A rule of the books, as a query that returns its violations: no row, no violation. */
export interface Rule {
  name: string;
  /** The query over all there is. */
  sql: string;
  /**
   * The same over the days that are not closed yet, for the proof that runs every few minutes. A rule that has none reads
   * tables of its own, which grow with purchases and not with calls, and is asked as a whole each time.
   *
   * @param since the beginning of the first open day, as a literal of SQL
   */
  ofOpenDays?: (since: string) => string;
  say(row: Record<string, unknown>): string;
}

/**
 * The two queries of a rule about rows of a time: over all of them, and over those of the open days.
 *
 * @param column the time, such as `c.created_at`
 * @param query the query, given the condition on that column
 */
export function overRowsSince(
  column: string,
  query: (which: string) => string,
): Pick<Rule, 'sql'> & { ofOpenDays(since: string): string } {
  return { sql: query('true'), ofOpenDays: (since) => query(`${column} >= ${since}`) };
}

/** The rules and sums that a part contributes to the books. */
export interface Audited {
  rules: readonly Rule[];
  /**
   * Sums for the report: a query of one row each, whose columns have the report's names. Each part that keeps one kind of
   * money says it, and no other does.
   */
  totals?: Partial<Record<'calls' | 'onChain' | 'cards', string>>;
  /** The totals that need another query where days are closed: the same sums, from what is counted by day. */
  totalsOfOpenDays?: Partial<Record<'calls' | 'onChain' | 'cards', string>>;
}
