import type { Database, Transaction } from '../db/connection.ts';

/** The condition that an event `e` is one that a webhook `w` wants and that no message was written for. */
export function missedBy(on: Database | Transaction) {
  return on`e.account_id = w.account_id and (e.webhook_id is null or e.webhook_id = w.id) and e.type = any (w.events)
    and not exists (select 1 from webhook_deliveries d where d.webhook_id = w.id and d.event_id = e.id)`;
}
