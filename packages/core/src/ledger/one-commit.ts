/** Commits of a coordinator and of workers together, on a database that is spread. */
import type { Transaction } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';

/** Transactions whose commit is one already. */
const MADE_ONE = new WeakSet<Transaction>();

/**
 * Makes the commit of the coordinator and of the workers one, in a transaction that may write on both; does nothing on one PostgreSQL. A worker
 * then prepares its part, and commits it once the coordinator has. Citus does that of itself only where several of its servers have written
 * rows of tables that are spread; the coordinator's other tables do not count, and a worker would commit first. So this writes to the
 * house's part, which lies on the coordinator: nothing, by a statement that finds no row. When it is called in the transaction does not matter.
 */
export async function commitAsOne(
  transaction: Transaction,
  { isDistributed }: DistributionNote,
): Promise<void> {
  if (!isDistributed || MADE_ONE.has(transaction)) return;
  await transaction`delete from ledger_outbox where bucket = 0 and account_id = 0`;
  MADE_ONE.add(transaction);
}
