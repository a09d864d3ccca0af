import { type CardProvider, ProviderUnavailable } from '../provider.ts';
import type { CardOrder, OrderStore } from './orders.ts';

/** The outcome of a refund that an operator ordered. */
export type RefundOutcome =
  | { status: 'refunded'; refundId: string }
  | { status: 'unknown_order' | 'not_paid' | 'nothing_left' | 'too_much' | 'unknown_outcome' };

export interface OrderRefund {
  orderId: string;
  /** Whole cents; null: all that is left. */
  amountMicros: bigint | null;
  /** The same key is the same refund. */
  actKey: string;
}

/** Sends money back that a paid order brought, once for each key. */
export async function refundOrder(
  parts: {
    orders: Pick<OrderStore, 'find'>;
    provider: Pick<CardProvider, 'refund'>;
    reconcile(orderId: string): Promise<CardOrder | null>;
  },
  { orderId, amountMicros, actKey }: OrderRefund,
): Promise<RefundOutcome> {
  const order = await parts.orders.find(orderId);
  if (order === null) return { status: 'unknown_order' };
  if (order.state !== 'paid' || order.paymentIntentId === null) return { status: 'not_paid' };
  try {
    const refundId = await parts.provider.refund(order.paymentIntentId, amountMicros, actKey, false);
    const after = await parts.reconcile(orderId);
    if (refundId !== null) return { status: 'refunded', refundId };
    const left = after === null ? 0n : after.amountMicros - after.reversedMicros;
    return { status: left > 0n ? 'too_much' : 'nothing_left' };
  } catch (error) {
    if (error instanceof ProviderUnavailable) return { status: 'unknown_outcome' };
    throw error;
  }
}
