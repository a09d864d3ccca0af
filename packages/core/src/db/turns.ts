import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '@farebox/process/start-error';
import postgres from 'postgres';
import { type Database, isLockTimeout, isNotAllowed, type Transaction } from './connection.ts';

/** The longest that a change waits for a lock of a table: whoever writes to the table waits behind it for as long. */
const LOCK_TIMEOUT_MS = 100;
const LOCK_PAUSE_MS = 500;
/** Ten minutes of attempts: longer than what holds a table for good reason, such as a rule of the books. */
const LOCK_ATTEMPTS = 1_000;
/** The number of the turns of those who change the schema in steps. */
const STEPS_TURN = 8403;

/**
 * Changes the schema in a transaction, while no other process does: replicas that start together take turns. A change that
 * waits for a lock holds up everybody who comes after it, so it steps aside and tries again.
 *
 * @throws StartError when the database's user may not make the change
 */
export async function inTurn<T>(sql: Database, change: (transaction: Transaction) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await sql.begin(async (transaction) => {
        // Three statements in one message, done one after the other.
        await transaction.unsafe(`
          select pg_advisory_xact_lock(8402);
          set local statement_timeout = 0;
          set local lock_timeout = '${LOCK_TIMEOUT_MS}ms'`);
        return change(transaction);
      })) as T;
    } catch (error) {
      if (isNotAllowed(error)) throw notAllowed(error);
      if (!isLockTimeout(error) || attempt === LOCK_ATTEMPTS) throw error;
      await sleep(LOCK_PAUSE_MS);
    }
  }
}

/**
 * Takes a connection of one's own. One is opened first: the driver never hands out a connection that it opens for this alone, unless
 * it then asks for the types of arrays, which ours does not.
 */
async function reserved(sql: Database) {
  await sql`select 1`;
  return sql.reserve();
}

/** Runs one statement in a commit of its own, and again while a lock is not to be had. */
export type RunStep = (statement: string) => Promise<postgres.RowList<postgres.Row[]>>;

/**
 * Changes the schema in steps, while no other process does: each statement is a commit of its own. Whoever waits for the turn
 * asks for it again and again, and holds no snapshot meanwhile: an index that is built beside writers waits for every snapshot
 * that is older, and would wait for a process that waits for it.
 *
 * @throws StartError when the database's user may not make the change
 */
export async function inTurnBySteps<T>(sql: Database, change: (run: RunStep) => Promise<T>): Promise<T> {
  const connection = await reserved(sql);
  let isGone = false;
  const run: RunStep = async (statement) => {
    // What is made beside writers waits for them to end, and holds up none: it may wait for as long as it takes.
    const waits = /\bconcurrently\b/i.test(statement) ? '0' : `${LOCK_TIMEOUT_MS}ms`;
    for (let attempt = 1; ; attempt++) {
      try {
        await connection.unsafe(`set lock_timeout = '${waits}'`);
        return await connection.unsafe(statement);
      } catch (error) {
        isGone = !(error instanceof postgres.PostgresError) || error.severity === 'FATAL';
        if (isNotAllowed(error)) throw notAllowed(error);
        if (!isLockTimeout(error) || attempt === LOCK_ATTEMPTS) throw error;
        await sleep(LOCK_PAUSE_MS);
      }
    }
  };
  try {
    for (;;) {
      const [turn] = await connection<
        { ours: boolean }[]
      >`select pg_try_advisory_lock(${STEPS_TURN}) as ours`;
      if (turn?.ours === true) break;
      await sleep(LOCK_PAUSE_MS);
    }
    await connection.unsafe('set statement_timeout = 0');
    return await change(run);
  } finally {
    // The session goes back to those who share it. If it is gone, so is its turn, and nobody answers on it.
    if (!isGone) {
      await connection.unsafe(`reset statement_timeout; reset lock_timeout; select pg_advisory_unlock_all()`);
      connection.release();
    }
  }
}

function notAllowed(error: postgres.PostgresError): StartError {
  return new StartError(
    `the database's user may not bring the schema up to date: ${error.message}. Let the user that made the tables start this version once, or grant what is missing.`,
  );
}
