/** Reads what an account's keys have spent, by day and service. */
import type { Database } from '../db/connection.ts';

export interface KeySpending {
  day: string;
  service: string;
  calls: bigint;
  spentMicros: bigint;
}

export interface Spending {
  /** Spending of an account by day, newest first. `sinceDay`: YYYY-MM-DD in UTC. */
  spending(accountId: bigint, sinceDay: string): Promise<KeySpending[]>;
  /** Sums of captured calls in micro-USD: today's (UTC), and all there were. */
  spent(accountId: bigint): Promise<{ todayMicros: bigint; totalMicros: bigint }>;
}

/** @param now in ISO 8601 */
export function createSpending(sql: Database, now: () => string): Spending {
  const today = () => now().slice(0, 10);

  return {
    async spending(accountId, sinceDay) {
      const rows = await sql<{ day: string; service: string; calls: bigint; spent_micros: bigint }[]>`
        select to_char(day, 'YYYY-MM-DD') as day, service, calls, spent_micros from call_spending
        where account_id = ${String(accountId)} and day >= ${sinceDay}::date
        order by day desc, spent_micros desc limit 2000`;
      return rows.map((row) => ({
        day: row.day,
        service: row.service,
        calls: row.calls,
        spentMicros: row.spent_micros,
      }));
    },

    async spent(accountId) {
      const [row] = await sql<{ today: bigint; total: bigint }[]>`
        select coalesce(sum(spent_micros) filter (where day = ${today()}::date), 0)::bigint as today,
               coalesce(sum(spent_micros), 0)::bigint as total
        from call_spending where account_id = ${String(accountId)}`;
      return { todayMicros: row?.today ?? 0n, totalMicros: row?.total ?? 0n };
    },
  };
}
