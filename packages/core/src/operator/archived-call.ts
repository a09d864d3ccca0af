import type { Database, Transaction } from '../db/connection.ts';
import { Problem } from '../http/problem.ts';

/**
 * Refuses what is asked about a call whose week is archived, or is being archived now.
 *
 * @throws Problem 410
 */
export async function refuseArchived(on: Database | Transaction, callId: string): Promise<void> {
  const [archive] = await on<{ week: string }[]>`
    select week from call_archives where ${callId}::uuid >= from_id and ${callId}::uuid < to_id`;
  if (archive !== undefined)
    throw new Problem(
      410,
      'HISTORY_ARCHIVED',
      `The calls of the week ${archive.week} are archived: they are read in the files of HISTORY_FOLDER, and no price goes back for them. Grant the account what it is owed.`,
    );
}
