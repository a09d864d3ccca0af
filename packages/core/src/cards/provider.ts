/**
 * The questions of this house to a card provider, and the answers: `stripe/` does the asking. Nothing of the provider's own
 * words passes through here but codes for machines.
 */

/** The state of a payment, as the provider tells it now. */
export interface PaymentFacts {
  paymentIntentId: string;
  orderId: string | null;
  /** `open`: it may still be paid. `dead`: it never will be. */
  status: 'open' | 'paid' | 'dead';
  /** The micro-USD that were paid; 0 unless it is paid. */
  paidMicros: bigint;
  currency: string;
  /** How much of the payment went back or is in dispute. */
  reversedMicros: bigint;
  /** How much was taken beyond what was paid. */
  lostMicros: bigint;
  /** How much of what went is in dispute, and may still come back. */
  disputedMicros: bigint;
  /** The worst of its disputes, in the provider's word; null: none. */
  dispute: string | null;
  /** The time until which that dispute can be answered with evidence; null: no more, or there is none. */
  disputeDueAtMs: number | null;
  customerId: string | null;
  paymentMethodId: string | null;
  card: { fingerprint: string | null; label: string; shown: ShownCard | null } | null;
  failure: Failure | null;
}

/** The card that paid, as its owner knows it: the part that a receipt may show. */
export interface ShownCard {
  /** The network's name in the provider's word, such as `visa`. */
  brand: string;
  /** The last four digits of its number. */
  last4: string;
}

/** Why a card was not charged, in codes. */
export interface Failure {
  code: string;
  declineCode: string | null;
  adviceCode: string | null;
}

export interface SessionFacts {
  sessionId: string;
  orderId: string | null;
  status: 'open' | 'complete' | 'expired';
  totalMicros: bigint;
  currency: string;
  /** The address that its receipt goes to: what the payer wrote there, or it was opened with. */
  email: string | null;
  /** Null until somebody has tried to pay. */
  payment: PaymentFacts | null;
}

/** The outcome of an attempt to charge. When nobody knows, `charge` throws `ProviderUnavailable`. */
export type ChargeOutcome =
  | { status: 'known'; payment: PaymentFacts }
  /** The provider says that it would not even try. Only a look says that nothing exists there. */
  | { status: 'refused'; failure: Failure };

/** Where the provider says that something has happened. */
export interface EventRef {
  id: string;
  type: string;
  createdAtMs: number;
  orderId: string | null;
  sessionId: string | null;
  paymentIntentId: string | null;
}

export interface CardFacts {
  paymentMethodId: string;
  fingerprint: string | null;
  label: string;
  customerId: string | null;
}

/** The provider did not answer, or not so that anybody could know: what was asked may have been done. */
export class ProviderUnavailable extends Error {
  constructor(cause: unknown) {
    super('the card provider does not answer', { cause });
    this.name = 'ProviderUnavailable';
  }
}

/** The provider takes no such e-mail address. */
export class EmailRefused extends Error {}

/** A message that the provider did not sign, or not lately. */
export class NotSigned extends Error {}

/** What the provider kept of an order, and its payment. */
export interface KeptOrder {
  /** The page on which it was paid; null: it was charged, or only its payment was asked for. */
  sessionId: string | null;
  /** The texts that were given to be kept with it. */
  note: Readonly<Record<string, string>>;
  email: string | null;
  /** Null until somebody has tried to pay. */
  payment: PaymentFacts | null;
}

export interface CardProvider {
  openSession(order: {
    orderId: string;
    /** Kept with the order, for whoever asks for it later. */
    note: Readonly<Record<string, string>>;
    amountMicros: bigint;
    /** The title that the person reads beside the amount. */
    title: string;
    email: string | null;
    /** The agreement that the person makes by paying, if the card is to be kept; null: it is not. */
    keepCard: string | null;
    /** Holds the provider's placeholder for the session's id. */
    successUrl: string;
    cancelUrl: string;
    expiresAtMs: number;
  }): Promise<{ sessionId: string; url: string; expiresAtMs: number }>;
  /** A session of ours. One that the provider does not know is no answer: it was opened with another key. */
  session(sessionId: string): Promise<SessionFacts>;
  /**
   * Makes the name under which an order's payment is found again. Each attempt is one of its own: a failure is repeated
   * to whoever repeats the question.
   */
  openCustomer(order: { orderId: string; attempt: number }): Promise<string>;
  /** Charges a card while its owner is away; the same order is charged once, however often it is asked. */
  charge(order: {
    orderId: string;
    note: Readonly<Record<string, string>>;
    amountMicros: bigint;
    customerId: string;
    paymentMethodId: string;
    title: string;
    email: string | null;
  }): Promise<ChargeOutcome>;
  payment(paymentIntentId: string): Promise<PaymentFacts | null>;
  /** What was kept of an order, found by its page or else by its payment; null: there is none. */
  kept(of: { sessionId: string | null; paymentIntentId: string | null }): Promise<KeptOrder | null>;
  /** Ends a payment that nobody will see through, if that is still possible. @returns how it stands then */
  cancel(paymentIntentId: string): Promise<PaymentFacts>;
  /** Deletes a customer, with the cards and the address that are kept of it. One that is gone already is no failure. */
  forgetCustomer(customerId: string): Promise<void>;
  /** The payment of an order, found by its customer; null: there is none. */
  findPayment(order: { orderId: string; customerId: string }): Promise<PaymentFacts | null>;
  /** A card that somebody names; null: there is none. */
  card(paymentMethodId: string): Promise<CardFacts | null>;
  /** Sends money back, once for each key. `amountMicros` null: all that is left. @returns null when nothing is left */
  refund(
    paymentIntentId: string,
    amountMicros: bigint | null,
    key: string,
    isFraud: boolean,
  ): Promise<string | null>;
  /** Whether card networks warned of this payment, and sending it back would still avert a dispute. */
  isWarnedOf(paymentIntentId: string): Promise<boolean>;
  /** Lists what happened since then, and before `untilMs` unless it is null; oldest first. */
  events(sinceMs: number, untilMs: number | null): Promise<readonly EventRef[]>;
  /** @throws NotSigned */
  readWebhook(rawBody: Buffer, signature: string | undefined): EventRef;
  close(): void;
}

/** Events that may have changed what an order has to show. */
export const EVENT_TYPES = [
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
  'checkout.session.async_payment_failed',
  'checkout.session.expired',
  'payment_intent.succeeded',
  'payment_intent.payment_failed',
  'payment_intent.canceled',
  'charge.refunded',
  'charge.refund.updated',
  'refund.created',
  'refund.updated',
  'refund.failed',
  'charge.dispute.created',
  'charge.dispute.updated',
  'charge.dispute.closed',
  'charge.dispute.funds_withdrawn',
  'charge.dispute.funds_reinstated',
  'radar.early_fraud_warning.created',
];

/** Whether an event is a reason to look at an order. */
export function concernsOrders(type: string): boolean {
  return EVENT_TYPES.includes(type);
}
