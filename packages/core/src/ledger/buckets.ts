/**
 * Buckets: the numbers by which customers' accounts can be spread over the servers of a database. An account has the bucket that
 * was written down when it was opened; its keys, calls and transfers lie in it too.
 */
import { LRUCache } from 'lru-cache';
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import { isHouseAccount } from './accounts.ts';

/** The house's bucket: its accounts lie in it, and the payments on chains. */
export const HOUSE_BUCKET = 0;
const MOST_KNOWN = 50_000;

/** The bucket of an account, as its row says; null: there is no such account. */
export async function bucketOfAccount(on: Database | Transaction, accountId: bigint): Promise<number | null> {
  const [row] = await on<{ bucket: number }[]>`
    select bucket from ledger_accounts where id = ${String(accountId)}`;
  return row?.bucket ?? null;
}

/** The buckets of accounts, as their rows say. An account's bucket does not change, so it is read once. */
export interface AccountBuckets {
  /** @returns the bucket of each account that there is */
  of(on: Database | Transaction, accountIds: readonly bigint[]): Promise<ReadonlyMap<bigint, number>>;
}

export function createAccountBuckets(): AccountBuckets {
  const known = new LRUCache<bigint, number>({ maxSize: MOST_KNOWN, sizeCalculation: () => 1 });
  return {
    async of(on, accountIds) {
      const buckets = new Map<bigint, number>();
      const asked: bigint[] = [];
      for (const id of new Set(accountIds)) {
        const bucket = isHouseAccount(id) ? HOUSE_BUCKET : known.get(id);
        if (bucket === undefined) asked.push(id);
        else buckets.set(id, bucket);
      }
      if (asked.length === 0) return buckets;
      const rows = await on<{ id: bigint; bucket: number }[]>`
        select id, bucket from ledger_accounts where id = any(${arrayLiteral(asked)}::text::bigint[])`;
      for (const { id, bucket } of rows) {
        known.set(id, bucket);
        buckets.set(id, bucket);
      }
      return buckets;
    },
  };
}
