/** Money that moves: charges, refunds, disputes, and the merchant's balance that all of them add up to. */
import { invalid, noSuch, refused } from './api-error.ts';
import type { Params } from './form.ts';
import type {
  BalanceTransaction,
  CardFailure,
  Charge,
  Dispute,
  DisputeStatus,
  EarlyFraudWarning,
  PaymentIntent,
  PaymentMethod,
  Refund,
} from './objects.ts';
import { instrumentOf } from './payment-methods.ts';
import { nowS, type Records } from './records.ts';
import type { TestCard } from './test-cards.ts';

const FEE_SHARE = 0.029;
const FEE_FIXED_CENTS = 30;
const DISPUTE_FEE_CENTS = 1_500;
const DAY_S = 86_400;
const DISPUTE_DUE_DAYS = 9;
const PAYOUT_DAYS = 2;
/** The delay after which the issuer of a test card disputes, warns, or ends a refund. The answer leaves first. */
const SOON_MS = 300;

export const DISPUTE_REASONS = [
  'fraudulent',
  'product_not_received',
  'duplicate',
  'subscription_canceled',
  'product_unacceptable',
  'unrecognized',
  'credit_not_processed',
  'general',
] as const;

function move(
  records: Records,
  movement: Pick<
    BalanceTransaction,
    'amount' | 'currency' | 'fee' | 'reporting_category' | 'source' | 'type'
  >,
): BalanceTransaction {
  const { amount, currency, fee } = movement;
  const transaction: BalanceTransaction = {
    id: records.newId('txn_'),
    object: 'balance_transaction',
    available_on: nowS() + PAYOUT_DAYS * DAY_S,
    created: nowS(),
    description: null,
    exchange_rate: null,
    fee_details:
      fee === 0
        ? []
        : [{ amount: fee, application: null, currency, description: 'Processing fees', type: 'stripe_fee' }],
    net: amount - fee,
    status: 'pending',
    ...movement,
  };
  records.insert('balanceTransactions', transaction);
  return transaction;
}

/** Writes down what an attempt to charge came to, and sets off what its card does afterwards. */
export function recordCharge(
  records: Records,
  intent: PaymentIntent,
  method: PaymentMethod,
  failure: CardFailure | null,
  authenticated: boolean,
): Charge {
  const { card } = instrumentOf(records, method.id);
  const id = records.newId('ch_');
  const paid = failure === null;
  const charge: Charge = {
    id,
    object: 'charge',
    amount: intent.amount,
    amount_captured: paid ? intent.amount : 0,
    amount_refunded: 0,
    balance_transaction: null,
    billing_details: { ...method.billing_details },
    captured: paid,
    created: nowS(),
    currency: intent.currency,
    customer: intent.customer,
    description: intent.description,
    disputed: false,
    failure_balance_transaction: null,
    failure_code: failure?.code ?? null,
    failure_message: failure?.message ?? null,
    fraud_details: card.blocked ? { stripe_report: 'fraudulent' } : {},
    livemode: false,
    metadata: { ...intent.metadata },
    outcome: outcomeOf(card, failure),
    paid,
    payment_intent: intent.id,
    payment_method: method.id,
    payment_method_details: {
      type: 'card',
      card: chargedCard(method, { authorized: paid ? intent.amount : null, authenticated }),
    },
    receipt_email: intent.receipt_email,
    receipt_number: null,
    receipt_url: paid ? `${records.baseUrl}/receipts/${id}` : null,
    refunded: false,
    statement_descriptor: null,
    status: paid ? 'succeeded' : 'failed',
  };
  records.insert('charges', charge);
  if (paid) {
    const fee = Math.round(intent.amount * FEE_SHARE) + FEE_FIXED_CENTS;
    charge.balance_transaction = move(records, {
      amount: intent.amount,
      currency: intent.currency,
      fee,
      source: id,
      reporting_category: 'charge',
      type: 'charge',
    }).id;
    arrangeAftermath(records, card, id);
  }
  records.emit(paid ? 'charge.succeeded' : 'charge.failed', charge);
  return charge;
}

/** A card as it stood when it was charged. */
function chargedCard(
  { card }: PaymentMethod,
  { authorized, authenticated }: { authorized: number | null; authenticated: boolean },
): Charge['payment_method_details']['card'] {
  const { brand, checks, country, exp_month, exp_year, fingerprint, funding, last4 } = card;
  return {
    amount_authorized: authorized,
    brand,
    checks,
    country,
    exp_month,
    exp_year,
    fingerprint,
    funding,
    last4,
    network: brand,
    three_d_secure: authenticated
      ? { authentication_flow: 'challenge', result: 'authenticated', version: '2.2.0' }
      : null,
  };
}

function outcomeOf(card: TestCard, failure: CardFailure | null): Charge['outcome'] {
  const base = { network_advice_code: null, risk_level: 'normal', risk_score: 20 } as const;
  if (failure === null) {
    return {
      ...base,
      advice_code: null,
      network_decline_code: null,
      network_status: 'approved_by_network',
      reason: null,
      seller_message: 'Payment complete.',
      type: 'authorized',
    };
  }
  if (card.blocked) {
    return {
      ...base,
      advice_code: failure.advice_code ?? null,
      network_decline_code: null,
      network_status: 'not_sent_to_network',
      reason: 'highest_risk_level',
      risk_level: 'highest',
      risk_score: 92,
      seller_message: 'The payment was blocked as too risky.',
      type: 'blocked',
    };
  }
  return {
    ...base,
    advice_code: failure.advice_code ?? null,
    network_decline_code: failure.network_decline_code ?? null,
    network_status: 'declined_by_network',
    reason: failure.decline_code ?? failure.code,
    seller_message: 'The bank did not approve the payment.',
    type: 'issuer_declined',
  };
}

function arrangeAftermath(records: Records, card: TestCard, charge: string): void {
  const { afterCharge } = card;
  if (afterCharge === 'nothing') return;
  if (afterCharge === 'early-warning') {
    records.later(SOON_MS, { kind: 'early-warning', charge });
    return;
  }
  const reason = afterCharge === 'dispute-not-received' ? 'product_not_received' : 'fraudulent';
  records.later(SOON_MS, { kind: 'dispute', charge, reason, inquiry: afterCharge === 'inquiry' });
}

export function chargeOf(records: Records, id: string, param = 'id'): Charge {
  const found = records.charges.get(id);
  if (found === undefined) throw noSuch('charge', id, param);
  return found;
}

/** `payment_intent` or `charge`, with `amount` (the rest if absent), `reason` and `metadata`. */
export function createRefund(records: Records, params: Params): Refund {
  const intentId = params.text('payment_intent', 100);
  const chargeId = params.text('charge', 100);
  const amount = params.integer('amount');
  const reason = params.choice('reason', ['duplicate', 'fraudulent', 'requested_by_customer']) ?? null;
  const metadata = params.metadata();
  params.end();
  if ((intentId === undefined) === (chargeId === undefined)) {
    throw invalid('You must provide either a charge or a payment_intent.', undefined, 'parameter_missing');
  }
  if (amount !== undefined && amount < 1) throw invalid('Invalid positive integer', 'amount');
  let id = chargeId;
  if (intentId !== undefined) {
    const intent = records.paymentIntents.get(intentId);
    if (intent === undefined) throw noSuch('payment_intent', intentId, 'payment_intent');
    if (intent.status !== 'succeeded' || intent.latest_charge === null) {
      throw refused(`This PaymentIntent (${intentId}) does not have a successful charge to refund.`);
    }
    id = intent.latest_charge;
  }
  return refund(records, chargeOf(records, id ?? '', 'charge'), amount ?? null, reason, metadata);
}

/**
 * Gives money back.
 * @param amountCents null: what is left of the charge
 */
export function refund(
  records: Records,
  charge: Charge,
  amountCents: number | null,
  reason: string | null,
  metadata: Record<string, string>,
): Refund {
  const left = charge.amount_captured - charge.amount_refunded;
  if (!charge.paid) throw refused(`Charge ${charge.id} did not succeed; it cannot be refunded.`);
  if (left === 0) {
    throw refused(`Charge ${charge.id} has already been refunded.`, 'charge_already_refunded');
  }
  const dispute = [...records.disputes.values()].find((one) => one.charge === charge.id);
  if (dispute !== undefined && !dispute.is_charge_refundable) {
    throw refused(`Charge ${charge.id} has been charged back; cannot issue a refund.`, 'charge_disputed');
  }
  if (amountCents !== null && amountCents > left) {
    throw refused(
      `Refund amount (${dollars(amountCents)}) is greater than unrefunded amount on charge (${dollars(left)})`,
      undefined,
      { param: 'amount' },
    );
  }
  const { card } = instrumentOf(records, charge.payment_method);
  const amount = amountCents ?? left;
  const id = records.newId('re_');
  const { currency } = charge;
  const given: Refund = {
    id,
    object: 'refund',
    amount,
    balance_transaction: move(records, {
      amount: -amount,
      currency,
      fee: 0,
      source: id,
      reporting_category: 'refund',
      type: 'refund',
    }).id,
    charge: charge.id,
    created: nowS(),
    currency,
    metadata,
    payment_intent: charge.payment_intent,
    reason,
    receipt_number: null,
    status: card.refunds === 'succeed-later' ? 'pending' : 'succeeded',
  };
  records.insert('refunds', given);
  const before = { amount_refunded: charge.amount_refunded, refunded: charge.refunded };
  charge.amount_refunded += amount;
  charge.refunded = charge.amount_refunded === charge.amount_captured;
  records.emit('refund.created', given);
  records.emit('charge.refunded', charge, before);
  if (card.refunds === 'fail-later') records.later(SOON_MS, { kind: 'fail-refund', refund: id });
  if (card.refunds === 'succeed-later') records.later(SOON_MS, { kind: 'settle-refund', refund: id });
  return given;
}

/** The bank sends the money back: the refund has failed and the charge is owed no longer. */
export function failRefund(records: Records, id: string): Refund {
  const failing = refundOf(records, id);
  if (failing.status === 'failed') throw refused(`Refund ${id} has failed already.`);
  const previous = { status: failing.status };
  const charge = chargeOf(records, failing.charge);
  failing.status = 'failed';
  failing.failure_reason = 'expired_or_canceled_card';
  failing.failure_balance_transaction = move(records, {
    amount: failing.amount,
    currency: failing.currency,
    fee: 0,
    source: id,
    reporting_category: 'refund_failure',
    type: 'refund_failure',
  }).id;
  charge.amount_refunded -= failing.amount;
  charge.refunded = false;
  for (const type of ['refund.updated', 'charge.refund.updated', 'refund.failed']) {
    records.emit(type, failing, previous);
  }
  return failing;
}

export function settleRefund(records: Records, id: string): void {
  const settling = refundOf(records, id);
  if (settling.status !== 'pending') return;
  settling.status = 'succeeded';
  for (const type of ['refund.updated', 'charge.refund.updated']) {
    records.emit(type, settling, { status: 'pending' });
  }
}

export function refundOf(records: Records, id: string): Refund {
  const found = records.refunds.get(id);
  if (found === undefined) throw noSuch('refund', id, 'id');
  return found;
}

/** A card's owner complains. An inquiry moves no money yet. */
export function openDispute(records: Records, charge: Charge, reason: string, inquiry: boolean): Dispute {
  const amount = charge.amount_captured - charge.amount_refunded;
  if (!charge.paid || amount === 0) throw refused(`There is nothing left of charge ${charge.id} to dispute.`);
  if (charge.disputed) throw refused(`Charge ${charge.id} has been disputed already.`);
  const dispute: Dispute = {
    id: records.newId('du_'),
    object: 'dispute',
    amount,
    balance_transactions: [],
    charge: charge.id,
    created: nowS(),
    currency: charge.currency,
    evidence: { uncategorized_text: null },
    evidence_details: {
      due_by: nowS() + DISPUTE_DUE_DAYS * DAY_S,
      has_evidence: false,
      past_due: false,
      submission_count: 0,
    },
    is_charge_refundable: inquiry,
    livemode: false,
    metadata: {},
    payment_intent: charge.payment_intent,
    reason,
    status: inquiry ? 'warning_needs_response' : 'needs_response',
  };
  records.insert('disputes', dispute);
  charge.disputed = true;
  if (!inquiry) withdraw(records, dispute);
  records.emit('charge.dispute.created', dispute);
  if (!inquiry) records.emit('charge.dispute.funds_withdrawn', dispute);
  return dispute;
}

function withdraw(records: Records, dispute: Dispute): void {
  dispute.is_charge_refundable = false;
  dispute.balance_transactions.push(
    move(records, {
      amount: -dispute.amount,
      currency: dispute.currency,
      fee: DISPUTE_FEE_CENTS,
      source: dispute.id,
      reporting_category: 'dispute',
      type: 'adjustment',
    }),
  );
}

const OPEN: readonly DisputeStatus[] = [
  'needs_response',
  'under_review',
  'warning_needs_response',
  'warning_under_review',
];
/** What each state of a dispute can become. An inquiry that is escalated becomes a dispute like any other. */
const NEXT: Record<DisputeStatus, readonly DisputeStatus[]> = {
  warning_needs_response: ['warning_under_review', 'warning_closed', 'needs_response'],
  warning_under_review: ['warning_closed', 'needs_response'],
  warning_closed: [],
  needs_response: ['under_review', 'won', 'lost'],
  under_review: ['won', 'lost'],
  won: [],
  lost: [],
};
export const DISPUTE_STATUSES: readonly string[] = Object.keys(NEXT);

/** @throws ApiError 400 when a dispute in its state cannot become that */
export function turnDispute(records: Records, dispute: Dispute, status: string): Dispute {
  const next = NEXT[dispute.status].find((one) => one === status);
  if (next === undefined) throw refused(`A dispute that is ${dispute.status} cannot become ${status}.`);
  const previous = { status: dispute.status };
  const escalated = next === 'needs_response';
  dispute.status = next;
  if (escalated) withdraw(records, dispute);
  if (next === 'won') {
    dispute.balance_transactions.push(
      move(records, {
        amount: dispute.amount,
        currency: dispute.currency,
        fee: 0,
        source: dispute.id,
        reporting_category: 'dispute_reversal',
        type: 'adjustment',
      }),
    );
  }
  records.emit(OPEN.includes(next) ? 'charge.dispute.updated' : 'charge.dispute.closed', dispute, previous);
  if (escalated) records.emit('charge.dispute.funds_withdrawn', dispute);
  if (next === 'won') records.emit('charge.dispute.funds_reinstated', dispute);
  return dispute;
}

/** `evidence[uncategorized_text]` of `winning_evidence` or `losing_evidence` decides a dispute once it is submitted. */
export function updateDispute(records: Records, dispute: Dispute, params: Params): Dispute {
  const text = params.group('evidence')?.text('uncategorized_text', 20_000);
  const submit = params.boolean('submit') ?? true;
  const metadata = params.metadata(dispute.metadata);
  params.end();
  if (!OPEN.includes(dispute.status)) throw refused('This dispute is already closed.');
  dispute.metadata = metadata;
  if (text !== undefined) {
    dispute.evidence.uncategorized_text = text;
    dispute.evidence_details.has_evidence = true;
  }
  if (text === undefined || !submit) {
    records.emit('charge.dispute.updated', dispute);
    return dispute;
  }
  dispute.evidence_details.submission_count += 1;
  const inquiry = dispute.status.startsWith('warning_');
  if (text === 'winning_evidence') return turnDispute(records, dispute, inquiry ? 'warning_closed' : 'won');
  if (text === 'losing_evidence') return turnDispute(records, dispute, inquiry ? 'needs_response' : 'lost');
  return turnDispute(records, dispute, inquiry ? 'warning_under_review' : 'under_review');
}

/** The merchant gives in. */
export function closeDispute(records: Records, dispute: Dispute): Dispute {
  if (!OPEN.includes(dispute.status)) throw refused('This dispute is already closed.');
  return turnDispute(records, dispute, dispute.status.startsWith('warning_') ? 'warning_closed' : 'lost');
}

export function disputeOf(records: Records, id: string): Dispute {
  const found = records.disputes.get(id);
  if (found === undefined) throw noSuch('dispute', id, 'id');
  return found;
}

/** The card's network reports fraud before its owner disputes. */
export function warn(records: Records, charge: Charge): EarlyFraudWarning {
  const warning: EarlyFraudWarning = {
    id: records.newId('issfr_'),
    object: 'radar.early_fraud_warning',
    actionable: !charge.refunded && !charge.disputed,
    charge: charge.id,
    created: nowS(),
    fraud_type: 'made_with_stolen_card',
    livemode: false,
    payment_intent: charge.payment_intent,
  };
  records.insert('warnings', warning);
  records.emit('radar.early_fraud_warning.created', warning);
  return warning;
}

/** 1234 as $12.34. */
export function dollars(cents: number): string {
  return `$${(cents / 100).toFixed(2)}`;
}
