/**
 * Days of the ledger that are closed. A day is closed once, in turn, when nothing made on it or before is pending: what each
 * account moved on it is written down and chained to the day before it, and proofs begin where the last closed day ends.
 */
import { type Database, isSerializationFailure, type Transaction } from '../db/connection.ts';
import { isDistributed } from '../db/distribution.ts';
import { sqlFunction } from '../db/functions.ts';
import { BY_TIME } from './spread-books.ts';
import { preparedEnded, writersEnded } from './writers-ended.ts';

/** The days that no proof may take as given. */
export interface OpenDays {
  /** The beginning of the first of them, as a literal of SQL. */
  since: string;
  /** The day before it, which is closed: YYYY-MM-DD in UTC. */
  closedTo: string;
}

/** Reads where the closed days end. @returns null when no day is closed */
export async function openDays(on: Database | Transaction): Promise<OpenDays | null> {
  const [head] = await on<{ open_day: string | null; closed_to: string | null }[]>`
    select to_char(open_day, 'YYYY-MM-DD') as open_day, to_char(open_day - 1, 'YYYY-MM-DD') as closed_to
    from ledger_days_head`;
  if (head === undefined || head.open_day === null || head.closed_to === null) return null;
  return { since: `'${head.open_day}T00:00:00Z'::timestamptz`, closedTo: head.closed_to };
}

/**
 * Finds the last day that could be closed now. On one PostgreSQL a day that became complete is found by the second call after that: the
 * first one notes who is still writing. On a database that is spread each call waits for who is.
 *
 * @returns YYYY-MM-DD in UTC; null when there is none
 * @throws StillWriting where the database is spread, and something that was begun before may still be written on one of its servers
 */
export async function closableDay(sql: Database): Promise<string | null> {
  if (await isDistributed(sql)) return completeDay(sql);
  const [row] = await sql<{ day: string | null }[]>`
    select to_char(${sql(sqlFunction('ledger_closable_day'))}(), 'YYYY-MM-DD') as day`;
  return row?.day ?? null;
}

async function completeDay(sql: Database): Promise<string | null> {
  const [before] = await sql<{ at: string }[]>`select clock_timestamp()::text as at`;
  await writersEnded(sql);
  const [row] = await sql.begin(async (transaction) => {
    await transaction.unsafe(BY_TIME);
    return transaction<{ day: string | null }[]>`
      select to_char(${transaction(sqlFunction('ledger_complete_day'))}(${before?.at ?? null}::timestamptz), 'YYYY-MM-DD') as day`;
  });
  return row?.day ?? null;
}

/**
 * Closes days in their order, each in a commit of its own.
 *
 * @param last the last day to close, as `closableDay` found it before the books were proved
 * @param wanted asked before each day whether to go on
 * @returns the days that were closed here
 */
export async function closeDays(sql: Database, last: string, wanted: () => boolean): Promise<string[]> {
  const closed: string[] = [];
  const isSpread = await isDistributed(sql);
  while (wanted()) {
    const day = await closeDay(sql, last, isSpread);
    if (day === null) break;
    closed.push(day);
  }
  return closed;
}

async function closeDay(sql: Database, last: string, isSpread: boolean): Promise<string | null> {
  try {
    // One snapshot: what the day moved and its digest are of the same transfers. Of several servers each has its own, and all that the day
    // will ever have is in it. What is written lies on the coordinator, so the commit is one.
    const [row] = await sql.begin('isolation level repeatable read', async (transaction) => {
      if (isSpread) {
        // First, and so before the snapshot: no account is moved meanwhile, which would be seen on two servers or on none.
        await transaction.unsafe('lock table ledger_days_head in row exclusive mode');
        await transaction.unsafe(BY_TIME);
        await preparedEnded(transaction);
      }
      return transaction<{ day: string | null }[]>`
        select to_char(${transaction(sqlFunction('ledger_close_day'))}(${last}::date, ${isSpread}), 'YYYY-MM-DD') as day`;
    });
    return row?.day ?? null;
  } catch (error) {
    // Another process has just closed it.
    if (isSerializationFailure(error)) return null;
    throw error;
  }
}
