import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '@farebox/process/start-error';
import { type Database, isLockTimeout, isNotAllowed, type Transaction } from './connection.ts';

const LOCK_TIMEOUT_MS = 3_000;
const LOCK_PAUSE_MS = 2_000;
const LOCK_ATTEMPTS = 60;

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
      if (isNotAllowed(error))
        throw new StartError(
          `the database's user may not bring the schema up to date: ${error.message}. Let the user that made the tables start this version once, or grant what is missing.`,
        );
      if (!isLockTimeout(error) || attempt === LOCK_ATTEMPTS) throw error;
      await sleep(LOCK_PAUSE_MS);
    }
  }
}
