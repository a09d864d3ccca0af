/**
 * Jobs over all buckets. On one PostgreSQL a job's statement is of all buckets; on a database that is spread it is of one bucket, because only
 * then it may lock rows, and runs on the one server that has them.
 */
import type { PendingQuery, Row } from 'postgres';
import type { Database, Pools, Transaction } from '../db/connection.ts';

export interface BucketTurns {
  /** Whether the buckets lie on several servers. */
  readonly isSpread: boolean;
  /**
   * Gives each bucket a batch in turn, and again those whose batch was full: a bucket with much to do keeps none from its turn, and neither
   * does one whose server is away.
   *
   * @param batch is given the bucket, or null for all of them; it says how much it did
   * @returns how much it was
   * @throws the first failure, after all buckets had their turn
   */
  each(
    batchSize: number,
    batch: (bucket: number | null) => Promise<number>,
    stopping?: AbortSignal,
  ): Promise<number>;
}

export function createBucketTurns({ sql, distribution }: Pick<Pools, 'sql' | 'distribution'>): BucketTurns {
  /** The highest bucket that an account was seen in. */
  let highest: number | null = null;

  async function buckets(): Promise<number[]> {
    try {
      const [row] = await sql<
        { highest: number | null }[]
      >`select max(bucket) as highest from ledger_accounts`;
      highest = Math.max(row?.highest ?? 0, highest ?? 0);
    } catch (error) {
      // A server is away: what was known before serves for the others.
      if (highest === null) throw error;
    }
    return Array.from({ length: highest + 1 }, (_, bucket) => bucket);
  }

  return {
    get isSpread() {
      return distribution.isDistributed;
    },

    async each(batchSize, batch, stopping) {
      let all = 0;
      const failures: unknown[] = [];
      let open: (number | null)[] = distribution.isDistributed ? await buckets() : [null];
      while (open.length > 0) {
        const full: typeof open = [];
        for (const bucket of open) {
          if (stopping?.aborted === true) break;
          try {
            const done = await batch(bucket);
            all += done;
            if (done >= batchSize) full.push(bucket);
          } catch (error) {
            failures.push(error);
          }
        }
        open = stopping?.aborted === true ? [] : full;
      }
      if (failures.length > 0) throw failures[0];
      return all;
    },
  };
}

/** The condition that a row is in a bucket, with `and` behind it; nothing when it is null. */
export function inBucket(on: Database | Transaction, bucket: number | null): PendingQuery<Row[]> {
  return bucket === null ? on`` : on`bucket = ${bucket} and`;
}
