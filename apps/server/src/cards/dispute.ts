import type Stripe from 'stripe';

/** Where a payment's money is that its payer disputes. */
export interface DisputeStanding {
  /** Whether the provider has taken it from us. */
  isGone: boolean;
  /** Whether it is, and may still be given back. */
  mayComeBack: boolean;
}

/**
 * Reads a dispute (docs.stripe.com/api/disputes/object). The list of its statuses has grown before, by appeals and by
 * disputes that are prevented: what is not known to have left the money with us has taken it.
 */
export function readDispute({
  status,
  balance_transactions: moves,
}: Pick<Stripe.Dispute, 'status'> & {
  balance_transactions: readonly Pick<Stripe.BalanceTransaction, 'amount'>[];
}): DisputeStanding {
  // An inquiry of the bank moves no money.
  if (status === 'won' || status.startsWith('warning_')) return { isGone: false, mayComeBack: false };
  // Some are prevented by paying, and some by explaining.
  if (status === 'prevented')
    return { isGone: moves.reduce((net, { amount }) => net + amount, 0) < 0, mayComeBack: false };
  return { isGone: true, mayComeBack: status !== 'lost' };
}
