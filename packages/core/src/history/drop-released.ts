/** Calls that were released leave the database after thirty days: nothing was taken for them, and their two transfers move nothing. */
import type { Database } from '../db/connection.ts';
import { sqlFunction } from '../db/functions.ts';

const DAY_MS = 86_400_000;
const KEPT_DAYS = 30;
const DROPPED_AT_ONCE = 1_000;

/**
 * Deletes them, a closed day after the other and so many at once. A day that was closed with their transfers in its digest keeps
 * them, and so does whatever else names such a call.
 *
 * @returns how many it were
 */
export async function dropReleased(
  patient: Database,
  nowMs: () => number,
  stopping?: AbortSignal,
  atOnce: number = DROPPED_AT_ONCE,
): Promise<number> {
  const before = new Date(nowMs() - KEPT_DAYS * DAY_MS).toISOString().slice(0, 10);
  let all = 0;
  while (stopping?.aborted !== true) {
    const [due] = await patient<{ day: string }[]>`
      select to_char(day, 'YYYY-MM-DD') as day from ledger_days
      where released_apart and released_gone_at is null and day < ${before}::date order by day limit 1`;
    if (due === undefined) break;
    const [dropped] = await patient<{ count: number }[]>`
      select ${patient(sqlFunction('released_calls_drop'))}(${due.day}::date, ${atOnce}) as count`;
    const count = dropped?.count ?? 0;
    all += count;
    if (count === 0) {
      const [done] = await patient<{ done: boolean | null }[]>`
        select ${patient(sqlFunction('released_day_done'))}(${due.day}::date) as done`;
      // Another replica is at it, or the count of sales has not come so far.
      if (done?.done !== true) break;
    }
  }
  return all;
}
