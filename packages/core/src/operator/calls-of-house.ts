/** Calls that chains paid, which lie in the house's bucket with their settlements. */
import type { PendingQuery, Row } from 'postgres';
import type { Transaction } from '../db/connection.ts';
import { HOUSE_BUCKET } from '../ledger/buckets.ts';

/** Joins the calls `c` of settlements `s`. Each is looked up by its key: planned as a join, all weeks would be read for a few. */
export function callsOfHouse(on: Transaction): PendingQuery<Row[]> {
  return on`cross join lateral (
    select * from calls where bucket = ${HOUSE_BUCKET} and account_id = s.account_id and id = s.call_id offset 0
  ) c`;
}
