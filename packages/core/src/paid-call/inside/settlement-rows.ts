/** What all that reads and writes the rows of settlements shares. */
import type { Database } from '../../db/connection.ts';
import { type HouseAccount, houseAccountName } from '../../ledger/accounts.ts';

export interface SettlementRows {
  sql: Database;
  /** The time so many milliseconds from now, for a statement. */
  at(inMs?: number): string;
  /** The condition that a row of the house's bucket is of this call. */
  named(call: { accountId: bigint; callId: string }): ReturnType<Database>;
}

/** The house's account that a call was paid to. */
export function revenueOf(row: { revenue: bigint; call_id: string }): HouseAccount {
  const revenue = houseAccountName(row.revenue);
  if (revenue === null) throw new Error(`call ${row.call_id} is paid to account ${row.revenue}`);
  return revenue;
}
