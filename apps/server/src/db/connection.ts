import postgres from 'postgres';

export type Database = postgres.Sql<{ bigint: bigint }>;
/** A transaction that somebody else commits. */
export type Transaction = postgres.TransactionSql<{ bigint: bigint }>;

/**
 * Group commits have a connection of their own: a warm one, which nobody else keeps busy. One, because the next batch
 * grows while the last is away: a second flight halves the batches, and measured slower (see docs/performance.md).
 */
export const COMMIT_CONNECTIONS = 1;

/** The two ways to the database. */
export interface Pools {
  /** For everything but group commits. */
  sql: Database;
  /** For group commits alone. */
  commits: Database;
}

/** Opens both pools. @param maxConnections of the two together */
export function connectPools(url: string, maxConnections: number): Pools {
  return {
    sql: connectDatabase(url, Math.max(1, maxConnections - COMMIT_CONNECTIONS)),
    commits: connectDatabase(url, COMMIT_CONNECTIONS),
  };
}

/** Whether PostgreSQL answered and would not do it: not that it was gone, going (57P), cut off (08) or full (53). */
export function isRefusal(error: unknown): boolean {
  return error instanceof postgres.PostgresError && !/^(57P|08|53)/.test(error.code);
}

/** Whether a row with the same key was there already. */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '23505';
}

/** Whether a lock was not to be had within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '55P03';
}

/**
 * Opens a pool on PostgreSQL. `bigint` columns come as JavaScript `bigint`.
 *
 * @param url `postgres://…`
 * @param maxConnections the size of the pool
 */
export function connectDatabase(url: string, maxConnections: number): Database {
  return postgres(url, {
    max: maxConnections,
    types: { bigint: postgres.BigInt },
    onnotice: () => {},
    connect_timeout: 10,
    // Whoever waits has a deadline of its own: half a second is the longest pause before the next try (in seconds).
    backoff: (attempt) => Math.min(0.05 * 2 ** attempt, 0.5),
    // A request that waits longer than this has long been answered with 503.
    connection: { application_name: 'farebox', statement_timeout: 15_000, TimeZone: 'UTC' },
  });
}
