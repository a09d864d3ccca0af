/**
 * The count of what was sold by day, made from calls and transfers in the order in which they came, a batch and a commit at a time. No
 * page adds up calls. How a batch is counted is told in `functions/sales_fold_calls.sql`.
 */
import type { Database } from '../../db/connection.ts';
import { sqlFunction } from '../../db/functions.ts';
import { type Job, untilNoneIsDue } from '../../jobs/schedule.ts';
import type { BucketTurns } from '../../ledger/bucket-turns.ts';
import { foldSpreadSales } from './fold-spread-sales.ts';

const FOLDED_EVERY_MS = 10_000;
/** Calls or transfers of one statement, which has seconds. */
const FOLDED_AT_ONCE = 2_000;
const FOLDS = ['sales_fold_calls', 'sales_fold_transfers'] as const;

/**
 * The job that counts what was sold. Several replicas may run it at once, and any of them may die at any point: what is
 * counted and how far it goes are one commit.
 *
 * @param atOnce the calls or transfers of one statement
 * @param turns says whether the buckets lie on several servers; not given: they do not
 */
export function foldSales(sql: Database, atOnce: number = FOLDED_AT_ONCE, turns?: BucketTurns): Job {
  const fold = async (name: (typeof FOLDS)[number]): Promise<number> => {
    const [row] = await sql<{ looked: number | null }[]>`
      select ${sql(sqlFunction(name))}(${atOnce}) as looked`;
    // Null: another replica is at it.
    return row?.looked ?? 0;
  };
  return {
    name: 'fold-sales',
    intervalMs: FOLDED_EVERY_MS,
    async run(stopping) {
      if (turns?.isSpread === true) return foldSpreadSales(sql, { turns, atOnce, stopping });
      for (const name of FOLDS) await untilNoneIsDue(atOnce, () => fold(name), stopping);
    },
  };
}
