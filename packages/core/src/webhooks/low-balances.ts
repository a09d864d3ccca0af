import type { Database } from '../db/connection.ts';
import { microsToUsd } from '../ledger/money.ts';
import type { EventLog } from './event-log.ts';
import { hasRoom } from './outbox.ts';

/** In one call. */
export const LOW_AT_ONCE = 200;

/**
 * Tells of balances that have fallen below what their owners named, once each time. It is looked up here and not noticed
 * by the calls: a call is not made slower for those who want to be told. What fell and rose again between two looks is
 * not told.
 *
 * @returns how many were told
 */
export async function tellOfLowBalances(
  sql: Database,
  { log, nowMs }: { log: Pick<EventLog, 'addFor'>; nowMs(): number },
): Promise<number> {
  await sql`
    update webhooks w set low_told = false from ledger_accounts a
    where a.id = w.account_id and w.low_told and a.credits_posted - a.debits_posted >= w.low_below_micros`;
  return sql.begin(async (transaction) => {
    const low = await transaction<{ id: string; balance: bigint; low_below_micros: bigint }[]>`
      select w.id, a.credits_posted - a.debits_posted as balance, w.low_below_micros
      from webhooks w join ledger_accounts a on a.id = w.account_id
      where w.low_below_micros is not null and not w.low_told and w.disabled_at is null
        and 'balance.low' = any (w.events) and a.credits_posted - a.debits_posted < w.low_below_micros
        -- Those whose queue is full would keep others from being looked at.
        and ${hasRoom(transaction, new Date(nowMs()).toISOString())}
        and exists (select 1 from api_keys k where k.account_id = w.account_id and k.status <> 'revoked')
      order by w.id limit ${LOW_AT_ONCE} for no key update of w skip locked`;
    let told = 0;
    for (const { id, balance, low_below_micros: below } of low) {
      const written = await log.addFor(transaction, id, 'balance.low', {
        balanceUsd: microsToUsd(balance),
        lowBelowUsd: microsToUsd(below),
        asOf: new Date(nowMs()).toISOString(),
      });
      // A queue that filled up meanwhile: the next round tries again.
      if (!written) continue;
      told += 1;
      await transaction`update webhooks set low_told = true where id = ${id}`;
    }
    return told;
  });
}
