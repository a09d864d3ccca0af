/** Statements that look up a few rows by their key in tables that keep all there has been. */
import type { Database, Transaction } from './connection.ts';

/**
 * Runs statements whose joins look each row up by its key. A lookup in a table of weeks counts as one of every week to the planner, so
 * from some hundred rows on it would rather read the whole table.
 *
 * @param run what is looked for comes from a CTE, which has no index: then each of its rows is looked up, and not each of the table in it
 */
export function byKey<T>(sql: Database, run: (on: Transaction) => Promise<T>): Promise<T> {
  return sql.begin(async (transaction) => {
    await transaction`
      select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`;
    return run(transaction);
  }) as Promise<T>;
}
