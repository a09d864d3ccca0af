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

/** All disputes of one payment, together. */
export interface DisputesStanding {
  /** How much of the payment they have taken, and how much of that may still come back. */
  goneCents: number;
  disputedCents: number;
  /** The worst of them: the last that has taken money, else the first. Evidence is taken until `dueAtMs`, if any still is. */
  worst: { status: string; dueAtMs: number | null } | null;
}

/** Reads all disputes of one payment. */
export function readDisputes(disputes: readonly Stripe.Dispute[]): DisputesStanding {
  const standing: DisputesStanding = { goneCents: 0, disputedCents: 0, worst: null };
  for (const dispute of disputes) {
    const { isGone, mayComeBack } = readDispute(dispute);
    if (isGone) standing.goneCents += dispute.amount;
    if (mayComeBack) standing.disputedCents += dispute.amount;
    if (standing.worst !== null && !isGone) continue;
    const dueBy = dispute.evidence_details?.due_by ?? null;
    standing.worst = { status: dispute.status, dueAtMs: dueBy === null ? null : dueBy * 1_000 };
  }
  return standing;
}
