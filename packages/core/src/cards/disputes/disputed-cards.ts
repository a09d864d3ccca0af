/**
 * Cards whose owner disputes a payment here. Nobody charges them again, for whatever account, and they are forgotten wherever
 * they are kept. The commit of the dispute marks its order, since it holds one account and may not wait for others; a job
 * goes through the accounts one by one.
 */
import type { Database, Transaction } from '../../db/connection.ts';

const ORDERS_AT_ONCE = 20;
const ACCOUNTS_AT_ONCE = 100;

/** Whether a dispute takes money: a bank's inquiry does not, and one that was won is over. */
export function isDisputed(dispute: string | null): boolean {
  return dispute !== null && dispute !== 'won' && !dispute.startsWith('warning');
}

/** @param fingerprint the provider's name for the card; null: it gave none */
export async function isCardDisputed(
  on: Database | Transaction,
  fingerprint: string | null,
): Promise<boolean> {
  if (fingerprint === null) return false;
  const rows = await on`
    select 1 from card_orders where card_fingerprint = ${fingerprint}
      and dispute <> 'won' and dispute not like 'warning%' limit 1`;
  return rows.length > 0;
}

/**
 * Forgets cards that were disputed, wherever they are kept. What a crash leaves undone the next round does.
 *
 * @param stop switches an account's recharges off, in a transaction that holds nothing yet
 */
export async function forgetDisputedCards(
  sql: Database,
  stop: (transaction: Transaction, accountId: bigint, reason: string) => Promise<void>,
  stopping?: AbortSignal,
): Promise<void> {
  const orders = await sql<{ id: string; card_fingerprint: string | null }[]>`
    select id, card_fingerprint from card_orders where forget_card_since is not null
    order by forget_card_since limit ${ORDERS_AT_ONCE}`;
  for (const { id, card_fingerprint: fingerprint } of orders) {
    for (let more = true; more; ) {
      const kept = await sql<{ account_id: bigint }[]>`
        select account_id from auto_recharges
        where card_fingerprint = ${fingerprint} and payment_method_id is not null
        order by account_id limit ${ACCOUNTS_AT_ONCE}`;
      for (const { account_id: accountId } of kept) {
        if (stopping?.aborted === true) return;
        await sql.begin((transaction) => stop(transaction, accountId, 'dispute'));
      }
      more = kept.length === ACCOUNTS_AT_ONCE;
    }
    await sql`update card_orders set forget_card_since = null where id = ${id}`;
  }
}
