/** The answers to a purchase by card that was not made, or may not have been. */
import { Problem, unavailable } from '../../http/problem.ts';
import { providerAway } from '../closed.ts';
import type { CardOrder } from '../orders/orders.ts';
import type { PurchaseOutcome } from './purchase.ts';
import type { LimitName, LimitReached } from './purchase-limits.ts';

const UNKNOWN_RETRY_MS = 5_000;

/** Where a person can pay what an agent cannot. */
export interface HostedCheckout {
  method: string;
  url: string;
  note: string;
}

/** Why a purchase brought nothing, or why nobody knows yet. */
export function refusalOf(
  outcome: Exclude<PurchaseOutcome, { status: 'paid' }>,
  checkout: HostedCheckout,
  nowMs: number,
): Problem {
  switch (outcome.status) {
    case 'failed':
      return notPaid(outcome.order, checkout);
    case 'unknown':
      return unknownOutcome();
    case 'in_progress':
      return new Problem(
        409,
        'PURCHASE_IN_PROGRESS',
        'Another request is at work on this purchase. Ask again with the same idempotencyKey.',
        { details: { charged: null, retryAfter: 1 }, headers: { 'retry-after': '1' } },
      );
    case 'reused':
      return refused(
        409,
        'IDEMPOTENCY_KEY_REUSED',
        'This idempotencyKey names another purchase: another card, amount, key, e-mail or name.',
        'Repeat the first request as it was, or take a new idempotencyKey for a new purchase.',
      );
    case 'no_such_card':
      return invalidMethod(
        'The card provider has no such card, or it belongs to a customer. Nothing was begun: create a new payment method.',
      );
    case 'provider_away':
      return providerAway(outcome.cause);
    case 'limited':
      return limitReached(outcome.reached, checkout);
    case 'paused':
      return unavailable(
        'PURCHASES_PAUSED',
        'Too many cards were declined lately, so buying with a card in this way is paused for some minutes.',
        outcome.untilMs - nowMs,
        { hostedCheckout: checkout },
      );
  }
}

const LIMIT_MESSAGES: Record<LimitName, string> = {
  attempts_per_network: 'Too many purchases from this network. Nothing was charged.',
  checkouts_per_network:
    'Too many checkouts of this network are open and unpaid. Pay one of them, or wait until one ends. Nothing was charged.',
  declines_per_network: 'Too many cards from this network were declined. Nothing was charged.',
  new_accounts_per_card: 'This card has paid for enough new keys. Present a key to add credit to it instead.',
  amount_per_card: 'This card has paid what a card may pay here in a day. Nothing was charged.',
  declines_per_card: 'This card was declined too often today. Nothing was charged.',
  card_disputed: 'This card cannot pay here. Nothing was charged.',
};

const GENERIC_DECLINE = 'generic_decline';
const ASK_THE_BANK = 'Use another card, or let its owner ask the bank.';
/** The decline codes that are not passed on: the holder of a stolen card must not learn that it is known as one. */
const SECRET_DECLINES = new Set([
  'fraudulent',
  'lost_card',
  'stolen_card',
  'pickup_card',
  'merchant_blacklist',
]);
const LATER = 'The bank could not be reached. Try again later with a new idempotencyKey.';
/** Suggestions of what may help, by decline code. */
const SUGGESTIONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    insufficient_funds: 'Use another card, or buy a smaller tier.',
    card_velocity_exceeded:
      'The card has reached a limit of its bank. Use another one, or try again tomorrow.',
    expired_card: 'Use another card: this one has expired.',
    incorrect_cvc: 'Create a new payment method with the right security code.',
    incorrect_number: 'Create a new payment method with the right number.',
    invalid_cvc: 'Create a new payment method with the right security code.',
    invalid_expiry_month: 'Create a new payment method with the right date.',
    invalid_expiry_year: 'Create a new payment method with the right date.',
    currency_not_supported: 'Use a card that can pay in USD.',
    processing_error: LATER,
    issuer_not_available: LATER,
    try_again_later: LATER,
  }),
);
/** The provider's codes for a payment method that it will not charge whatever the bank thinks; `refused`: without a code. */
const UNUSABLE = new Set([
  'refused',
  'resource_missing',
  'payment_method_invalid_parameter',
  'payment_method_unactivated',
  'payment_method_customer_decline',
  'payment_method_not_available',
]);

/** The answer to a purchase that was not paid for: the same each time. */
function notPaid(order: CardOrder, checkout: HostedCheckout): Problem {
  const { declineCode } = order;
  const code = order.failure ?? 'unknown';
  const again = 'Nothing was charged. A new attempt needs a new idempotencyKey.';
  const details = { charged: false, transactionId: order.id, retry: again };
  if (code === 'authentication_required' || declineCode === 'authentication_required') {
    return new Problem(
      402,
      'AUTHENTICATION_REQUIRED',
      'The card’s bank asks its owner to confirm, which an agent cannot do. Use the hosted checkout.',
      { details: { ...details, hostedCheckout: checkout } },
    );
  }
  if (declineCode !== null || code === 'card_declined' || SUGGESTIONS.has(code)) {
    const shown = SECRET_DECLINES.has(declineCode ?? code) ? GENERIC_DECLINE : (declineCode ?? code);
    return new Problem(402, 'CARD_DECLINED', 'The card was declined.', {
      details: { ...details, declineCode: shown, suggestion: SUGGESTIONS.get(shown) ?? ASK_THE_BANK },
    });
  }
  if (UNUSABLE.has(code)) {
    return invalidMethod(
      'The card provider does not take this payment method: it was used before, or belongs to a customer. Create a new one.',
      details,
    );
  }
  return new Problem(402, 'PAYMENT_FAILED', 'The payment was not made.', {
    details: { ...details, reason: code, hostedCheckout: checkout },
  });
}

/** The answer when a limit on purchases or checkouts is reached. @param checkout another way to pay, where there is one */
export function limitReached({ limit, retryAfterMs }: LimitReached, checkout?: HostedCheckout): Problem {
  if (retryAfterMs === null) {
    return refused(402, 'PAYMENT_FAILED', LIMIT_MESSAGES[limit], 'Use another card.');
  }
  const retryAfter = Math.max(1, Math.ceil(retryAfterMs / 1_000));
  return new Problem(429, 'RATE_LIMITED', LIMIT_MESSAGES[limit], {
    details: {
      limit,
      retryAfter,
      charged: false,
      ...(checkout === undefined ? {} : { hostedCheckout: checkout }),
    },
    headers: { 'retry-after': String(retryAfter) },
  });
}

/** The 400 for a card that cannot pay. */
export function invalidMethod(message: string, details: Record<string, unknown> = {}): Problem {
  return new Problem(400, 'INVALID_PAYMENT_METHOD', message, {
    details: {
      fields: [{ field: 'paymentMethodId', message: 'must be usable' }],
      charged: false,
      ...details,
    },
  });
}

/** The 503 for a purchase that may have been charged. It says so, and what to do. */
export function unknownOutcome(cause?: unknown): Problem {
  return unavailable(
    'OUTCOME_UNKNOWN',
    'The card provider, or our database, has not told what became of this purchase. Ask again with the same idempotencyKey: you cannot be charged twice.',
    UNKNOWN_RETRY_MS,
    { charged: null },
    cause,
  );
}

/** Before anything was charged. */
export function refused(status: number, code: string, message: string, hint: string): Problem {
  return new Problem(status, code, message, { details: { hint, charged: false } });
}
