import type { Database, Transaction } from '../db/connection.ts';

/** The condition that an event `e` is one that a webhook `w` wants and that no message was written for. */
export function missedBy(on: Database | Transaction) {
  return on`e.account_id = w.account_id and (e.webhook_id is null or e.webhook_id = w.id) and e.type = any (w.events)
    and not exists (select 1 from webhook_deliveries d where d.webhook_id = w.id and d.event_id = e.id)`;
}

const DAY_MS = 86_400_000;
const MOST_COUNTED = 10_000;

/** How many events of the last 24 hours webhooks have missed, over all accounts, and counted no further than a bound. */
export async function missedToday(sql: Database, nowMs: number): Promise<number> {
  const since = new Date(nowMs - DAY_MS).toISOString();
  const [row] = await sql<{ missed: number }[]>`
    select count(*)::integer as missed from (
      select 1 from webhooks w join account_events e on ${missedBy(sql)}
      where e.created_at >= greatest(coalesce(w.hears_since, w.created_at), ${since}::timestamptz) limit ${MOST_COUNTED}
    ) missed`;
  return row?.missed ?? 0;
}
