import type { Database, Transaction } from '../db/connection.ts';
import { Problem } from '../http/problem.ts';
import type { Order } from './act.ts';

const DAY_MS = 86_400_000;

/** A gift of an operator: a card payment or a part of it, the price of a key's call, a payment on a chain, or credit. */
export type Gift =
  | { act: 'refund_order'; orderId: string; amountMicros: bigint | null }
  | { act: 'refund_call' | 'refund_payment'; callId: string }
  | { act: 'grant'; amountMicros: bigint };

/** Sums the micro-USD that count together with a gift when it is decided whether one operator is enough. */
export function countedWith(
  on: Database | Transaction,
  { actor, accountId }: Order,
  gift: Gift,
  nowMs: number,
): Promise<bigint> {
  return gift.act === 'refund_order'
    ? refundedAlone(on, accountId, gift.orderId)
    : givenAlone(on, actor, nowMs);
}

/**
 * Refuses what one operator may not do alone, within the turn of the act: of two at once the second finds the first.
 *
 * @param aloneUpToMicros null: any sum
 * @throws Problem 409 SECOND_OPERATOR_NEEDED
 */
export async function refuseAlone(
  transaction: Transaction,
  { order, gift, amountMicros }: { order: Order & { agreed: boolean }; gift: Gift; amountMicros: bigint },
  { aloneUpToMicros: mostAlone, nowMs }: { aloneUpToMicros(): bigint | null; nowMs(): number },
): Promise<void> {
  const aloneUpToMicros = mostAlone();
  if (order.agreed || aloneUpToMicros === null) return;
  const counted = await countedWith(transaction, order, gift, nowMs());
  if (amountMicros + counted <= aloneUpToMicros) return;
  throw new Problem(
    409,
    'SECOND_OPERATOR_NEEDED',
    gift.act === 'refund_order'
      ? 'Together with the earlier refunds of this order, this refund needs a second operator. Ask for it again to put it before one.'
      : 'With what you gave alone in the last 24 hours, this needs a second operator. Ask for it again to put it before one.',
  );
}

/**
 * The prices of calls that one operator alone gave back in the last 24 hours, on any rail, and the credit that it granted,
 * in micro-USD: whose money it became does not matter, so that it cannot be spread over customers.
 */
async function givenAlone(on: Database | Transaction, actor: string, nowMs: number): Promise<bigint> {
  const [row] = await on<{ alone: bigint }[]>`
    select coalesce(sum(a.amount_micros), 0)::bigint as alone from operator_acts a
    where a.actor = ${actor} and a.at > ${new Date(nowMs - DAY_MS).toISOString()}
      and a.act in ('grant', 'refund_call', 'refund_payment')`;
  return row?.alone ?? 0n;
}

/**
 * Sums what one operator alone sent back of an order, in micro-USD, without what the provider refused. A refund in parts needs a
 * second operator as soon as the whole would.
 */
async function refundedAlone(
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
