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
  /**
   * Says that rows of several buckets answer to each other, or to a table whose rows are of no account: on a database that is spread, the
   * rule is then asked of all buckets at once, by the coordinator. It reads of these tables what each condition says, and of others what the
   * query does. Absent: the rule holds in each bucket by itself, and is asked where its rows lie.
   */
  together?: Readonly<Record<string, string>>;
  /** Reads the transfers of closed days, one day after the other: on a database that is spread, each server finds them by their time. */
  dayByDay?: true;
  say(row: Record<string, unknown>): string;
}

/**
 * The two queries of a rule about rows of a time: over all of them, and over those of the open days. Whatever else a row needs is joined
 * in a LATERAL query that ends in `oneByOne`: for open days each row then looks it up by its key, however many there are of it, and for all
 * days the planner joins the tables as a whole.
 *
 * @param column the time, such as `c.created_at`
 * @param query the query, given the condition on that column, and the end of its LATERAL queries
 */
export function overRowsSince(
  column: string,
  query: (which: string, oneByOne: string) => string,
): Pick<Rule, 'sql'> & { ofOpenDays(since: string): string } {
  return { sql: query('true', ''), ofOpenDays: (since) => query(`${column} >= ${since}`, 'offset 0') };
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
  /** The columns that name an account. Where the database is spread, a rule stands in for their foreign keys. */
  namesAccounts?: readonly { table: string; column: string }[];
}
