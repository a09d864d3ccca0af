/**
 * Finds keys by what is stored of them: in the bucket that a key names, and else in all. The search over all is rare: it is for keys
 * from before there were buckets and for those that follow from a secret. Anybody can ask for it with a key that there is not, so
 * one is under way at a time, for all who wait.
 */
import { arrayLiteral } from '../db/array-literal.ts';
import { type Database, isRefusal, type Transaction } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import { unavailable } from '../http/problem.ts';
import { keepPlaces } from '../ledger/buckets.ts';
import { GroupCommit, NoAnswerInTime, NotBegun, QueueFull } from '../ledger/group-commit.ts';

/** What is stored of a key, as far as finding it needs. */
export interface StoredKeyRow {
  id: bigint;
  account_id: bigint;
  bucket: number;
  lookup: bigint;
  prefix: string;
  digest: Buffer;
}

/** @throws Problem 503 from `find`, when too many wait for the search over all, or the database does not answer */
export interface KeySearch {
  /** @param wanted.bucket where to look first; a wrong one only costs the search over all @returns null: there is none */
  find(wanted: { lookup: bigint; bucket: number }): Promise<StoredKeyRow | null>;
}

/** How many keys one search over all looks for, and how many may wait for the next one. */
const BOUNDS = { maxBatch: 256, maxFlights: 1, maxWaiting: 2_048, maxAttempts: 1 };
const DEADLINE_MS = 4_000;

export function createKeySearch(
  sql: Database,
  distribution: DistributionNote = { isDistributed: false },
): KeySearch {
  const search = (on: Database | Transaction, lookups: readonly bigint[]) => on<StoredKeyRow[]>`
    select id, account_id, bucket, lookup, prefix, digest from api_keys
    where lookup = any(${arrayLiteral(lookups)}::text::bigint[])`;
  const searches = new GroupCommit<bigint, StoredKeyRow | null>({
    ...BOUNDS,
    deadlineMs: DEADLINE_MS,
    firstBackoffMs: 50,
    isRefusal,
    keysOf: () => [],
    lockOf: String,
    isLocked: () => false,
    async flush(lookups) {
      const found = new Map((await search(sql, lookups)).map((row) => [row.lookup, row]));
      if (distribution.isDistributed && lookups.some((lookup) => !found.has(lookup))) {
        // Half of a move may have been seen.
        const settled = await sql.begin(async (transaction) => {
          await keepPlaces(transaction, distribution);
          return search(transaction, lookups);
        });
        for (const row of settled) found.set(row.lookup, row);
      }
      return lookups.map((lookup) => found.get(lookup) ?? null);
    },
  });

  return {
    async find({ lookup, bucket }) {
      const [row] = await sql<StoredKeyRow[]>`
        select id, account_id, bucket, lookup, prefix, digest from api_keys
        where bucket = ${bucket} and lookup = ${String(lookup)}`;
      if (row !== undefined) return row;
      return searches.submit(lookup).catch((error: unknown) => {
        if (error instanceof QueueFull)
          throw unavailable('BUSY', 'Too many keys are being looked for.', 1_000);
        // Whoever waited behind a search that got no answer.
        if (error instanceof NotBegun || error instanceof NoAnswerInTime)
          throw unavailable('DATABASE_UNAVAILABLE', 'The database does not answer.', 2_000, {}, error);
        throw error;
      });
    },
  };
}
