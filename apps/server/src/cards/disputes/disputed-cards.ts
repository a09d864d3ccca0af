/** Cards whose owner disputes a payment here: nobody charges them again, for whatever account. */
import type { Database, Transaction } from '../../db/connection.ts';

/** @param fingerprint the provider's name for the card; null: it gave none */
export async function isCardDisputed(
  on: Database | Transaction,
  fingerprint: string | null,
): Promise<boolean> {
  if (fingerprint === null) return false;
  // A bank's inquiry is no dispute, and one that was won is over.
  const rows = await on`
    select 1 from card_orders where card_fingerprint = ${fingerprint}
      and dispute <> 'won' and dispute not like 'warning%' limit 1`;
  return rows.length > 0;
}
