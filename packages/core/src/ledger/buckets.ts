/**
 * Buckets: the numbers by which customers' accounts can be spread over the servers of a database. An account has the bucket that
 * was written down when it was opened; its keys, calls and transfers lie in it too.
 */
import { LRUCache } from 'lru-cache';
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import { isHouseAccount } from './accounts.ts';
import { NotBegun } from './group-commit.ts';

/** The house's bucket: its accounts lie in it, and the payments on chains. */
export const HOUSE_BUCKET = 0;
const MOST_KNOWN = 50_000;

/** The bucket of an account, as its row says; null: there is no such account. */
export async function bucketOfAccount(on: Database | Transaction, accountId: bigint): Promise<number | null> {
  const [row] = await on<{ bucket: number }[]>`
    select bucket from ledger_accounts where id = ${String(accountId)}`;
  return row?.bucket ?? null;
}

/** The advisory lock of moves: whoever moves an account has it alone, and whoever must not see half of a move shares it. */
const MOVES = 8_406;
/** How often an account is looked for that was moved meanwhile. */
const MOST_LOOKS = 5;

/**
 * Waits until no account is being moved, and keeps each where it is until the transaction ends. Servers of a spread database commit a move
 * one after the other, so for a moment an account can be seen on two of them or on none. Does nothing on one PostgreSQL.
 */
export async function keepPlaces(
  transaction: Transaction,
  { isDistributed }: DistributionNote,
): Promise<void> {
  if (isDistributed) await transaction`select pg_advisory_xact_lock_shared(${MOVES})`;
}

/** Begins to move accounts, which no other transaction does until this one ends. @returns false while somebody keeps them in their places */
export async function beginMove(
  transaction: Transaction,
  { isDistributed }: DistributionNote,
): Promise<boolean> {
  if (!isDistributed) return true;
  const [row] = await transaction<{ ours: boolean }[]>`select pg_try_advisory_xact_lock(${MOVES}) as ours`;
  return row?.ours === true;
}

/** The bucket of an account that was not found in the one that it was remembered in; null: there is no such account. */
export async function bucketNow(
  sql: Database,
  accountId: bigint,
  distribution: DistributionNote,
): Promise<number | null> {
  if (!distribution.isDistributed) return bucketOfAccount(sql, accountId);
  const [bucket] = await sql.begin(async (transaction) => {
    await keepPlaces(transaction, distribution);
    return [await bucketOfAccount(transaction, accountId)] as const;
  });
  return bucket;
}

/**
 * Acts on an account in its bucket, and again where it was moved to meanwhile. Where it is not, nothing is done.
 *
 * @param how.remembered the bucket that it was in
 * @param how.act says `elsewhere` when the account is not in the bucket
 * @param how.bucketNow looks for the account; null: there is none
 * @throws NotBegun when the account is found nowhere, or was moved again each time
 */
export async function whereItIs<T extends { status: string }>(
  accountId: bigint,
  how: { remembered: number; act(bucket: number): Promise<T>; bucketNow(): Promise<number | null> },
): Promise<T> {
  let bucket: number | null = how.remembered;
  for (let looks = 0; looks < MOST_LOOKS && bucket !== null; looks++) {
    const result = await how.act(bucket);
    if (result.status !== 'elsewhere') return result;
    bucket = await how.bucketNow();
  }
  throw new NotBegun('locked', new Error(`there is no account ${accountId} where it was looked for`));
}

/**
 * Keeps an account in its bucket until the transaction ends, for rows that name the bucket.
 *
 * @returns the bucket; null: there is no such account
 */
export async function holdBucket(transaction: Transaction, accountId: bigint): Promise<number | null> {
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const bucket = await bucketOfAccount(transaction, accountId);
    if (bucket !== null) {
      const held = await transaction`
        select 1 from ledger_accounts where bucket = ${bucket} and id = ${String(accountId)} for key share`;
      if (held.length > 0) return bucket;
    }
    // It is being moved, or is not there.
    await keepPlaces(transaction, { isDistributed: true });
  }
  return null;
}

/** The buckets of accounts, as their rows said. Few accounts ever move, so a bucket is read once. */
export interface AccountBuckets {
  /** @returns the bucket of each account that there is */
  of(on: Database | Transaction, accountIds: readonly bigint[]): Promise<ReadonlyMap<bigint, number>>;
  /** Forgets the bucket of an account that is not there any more: the next question reads it. */
  forget(accountId: bigint): void;
}

export function createAccountBuckets(): AccountBuckets {
  const known = new LRUCache<bigint, number>({ maxSize: MOST_KNOWN, sizeCalculation: () => 1 });
  return {
    forget: (accountId) => void known.delete(accountId),

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
