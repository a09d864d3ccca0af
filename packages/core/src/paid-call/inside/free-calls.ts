/** The free calls of a day and the quotas of keys, as far as they are not counted by the begin of a call itself. */
import type { Database } from '../../db/connection.ts';

const DAY_MS = 86_400_000;

export interface FreeCalls {
  /** Gives a free call back whose answer nobody got, though it was kept as answered. */
  giveBack(call: { id: string; accountId: bigint }): Promise<void>;
  /** Deletes what was counted on days that have passed everywhere, at most `limit` rows of each. @returns how many were deleted */
  forget(limit: number): Promise<number>;
}

export function createFreeCalls(sql: Database, nowMs: () => number): FreeCalls {
  // Another replica may still count for the day before.
  const yesterday = () => new Date(nowMs() - DAY_MS).toISOString().slice(0, 10);
  return {
    async giveBack({ accountId, id }) {
      await sql`delete from free_calls where account_id = ${String(accountId)} and call_id = ${id}`;
    },

    async forget(limit) {
      const free = await sql`
        delete from free_calls where (account_id, call_id) in (
          select account_id, call_id from free_calls where day < ${yesterday()} limit ${limit} for update skip locked)`;
      const counted = await sql`
        delete from call_quotas where (root_buyer, service) in (
          select root_buyer, service from call_quotas where day < ${yesterday()} limit ${limit} for update skip locked)`;
      return Math.max(free.count, counted.count);
    },
  };
}
