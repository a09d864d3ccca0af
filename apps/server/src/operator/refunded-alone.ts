import type { Database, Transaction } from '../db/connection.ts';

/**
 * What one operator alone sent back of an order, in micro-USD, without what the provider refused. A refund in parts needs a
 * second operator as soon as the whole would.
 */
export async function refundedAlone(
  on: Database | Transaction,
  accountId: bigint,
  orderId: string,
): Promise<bigint> {
  const [row] = await on<{ alone: bigint }[]>`
    select coalesce(sum(a.amount_micros), 0)::bigint as alone from operator_acts a
    where a.account_id = ${String(accountId)} and a.order_id = ${orderId} and a.act = 'refund_order'
      and not exists (select 1 from operator_act_outcomes o where o.act_id = a.id and o.status <> 'refunded')
      and not exists (select 1 from operator_proposals p where p.order_id = a.order_id and ${isActOf(on)})`;
  return row?.alone ?? 0n;
}

/** The condition that an act `a` follows from a proposal `p`: it is known by the digest of its Idempotency-Key. */
export function isActOf(on: Database | Transaction) {
  return on`a.idempotency_digest = sha256(convert_to('["proposal:' || p.id || '"]', 'UTF8'))`;
}
