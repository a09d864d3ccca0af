import type { PendingQuery, Row } from 'postgres';
import type { Database } from '../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { HOUSE_BUCKET } from '../ledger/buckets.ts';

/**
 * The condition that the call of a payment was kept, by which its money may be moved: without it a crash of the database could
 * forget the call between its keep and the commit that moves the money.
 */
export function isKept(sql: Database, identity: string): PendingQuery<Row[]> {
  return sql`exists (
    select 1 from call_identities i join settlements s on s.bucket = i.bucket and s.account_id = i.account_id and s.call_id = i.call_id
    where i.bucket = ${HOUSE_BUCKET} and i.account_id = ${String(HOUSE_ACCOUNTS.chain_clearing)} and i.kind = 1 and i.identity = ${identity})`;
}
