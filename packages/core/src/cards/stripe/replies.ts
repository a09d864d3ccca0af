/** Translates the provider's replies into the words of this house. */
import type Stripe from 'stripe';
import { type DisputesStanding, readDisputes } from '../disputes/dispute.ts';
import type { CardFacts, EventRef, Failure, PaymentFacts, SessionFacts, ShownCard } from '../provider.ts';

const MICROS_PER_CENT = 10_000n;

/** The part of a payment that went back, as far as its refunds and disputes say. */
export interface WentBack {
  refundedCents: number;
  disputes: readonly Stripe.Dispute[];
}

export function paymentFacts(intent: Stripe.PaymentIntent, wentBack: WentBack): PaymentFacts {
  const charge = chargeOf(intent);
  const card = charge?.payment_method_details?.card ?? null;
  const error = intent.last_payment_error;
  return {
    paymentIntentId: intent.id,
    orderId: isUuid(intent.metadata.order) ? intent.metadata.order : null,
    status: statusOf(intent),
    paidMicros: intent.status === 'succeeded' ? microsOf(intent.amount_received) : 0n,
    currency: intent.currency,
    ...reversalOf(intent.amount_received, wentBack.refundedCents, readDisputes(wentBack.disputes)),
    customerId: idOf(intent.customer),
    paymentMethodId: idOf(intent.payment_method) ?? idOf(charge?.payment_method ?? null),
    card:
      card === null
        ? null
        : { fingerprint: card.fingerprint ?? null, label: labelOf(card), shown: shownOf(card) },
    failure: error === null ? null : failureOf(error),
  };
}

/** The last charge of a payment, where it was asked for with it. */
export function chargeOf(intent: Stripe.PaymentIntent): Stripe.Charge | null {
  return typeof intent.latest_charge === 'object' ? intent.latest_charge : null;
}

function statusOf({ status }: Stripe.PaymentIntent): PaymentFacts['status'] {
  if (status === 'succeeded') return 'paid';
  return status === 'canceled' || status === 'requires_payment_method' ? 'dead' : 'open';
}

/** A bank may take money that was refunded already: what went beyond the payment is lost. */
function reversalOf(
  receivedCents: number,
  refundedCents: number,
  { goneCents, disputedCents, worst }: DisputesStanding,
) {
  const reversedCents = refundedCents + goneCents;
  return {
    reversedMicros: microsOf(Math.min(reversedCents, receivedCents)),
    lostMicros: microsOf(Math.max(0, reversedCents - receivedCents)),
    disputedMicros: microsOf(Math.min(disputedCents, reversedCents, receivedCents)),
    dispute: worst?.status ?? null,
    disputeDueAtMs: worst?.dueAtMs ?? null,
  };
}

/** A session of the provider's page. @param payment of that session; null until somebody has tried to pay */
export function sessionFacts(session: Stripe.Checkout.Session, payment: PaymentFacts | null): SessionFacts {
  const { status } = session;
  return {
    sessionId: session.id,
    orderId: session.metadata?.order ?? null,
    status: status === 'complete' ? 'complete' : status === 'expired' ? 'expired' : 'open',
    totalMicros: microsOf(session.amount_total ?? 0),
    currency: session.currency ?? '',
    // The address that the payer wrote on the page, or that it was opened with.
    email: session.customer_details?.email ?? session.customer_email ?? null,
    payment,
  };
}

/** @returns null when the way to pay is no card */
export function cardFacts({ id, card, customer }: Stripe.PaymentMethod): CardFacts | null {
  if (card === undefined) return null;
  return {
    paymentMethodId: id,
    fingerprint: card.fingerprint ?? null,
    label: labelOf(card),
    customerId: idOf(customer),
  };
}

function labelOf({ brand, last4 }: { brand: string | null; last4: string | null }): string {
  return `${brand} ${last4}`;
}

/** The part of a card that a receipt may show; null when the provider does not say both, or not as a network's name and four digits. */
export function shownOf({ brand, last4 }: { brand: string | null; last4: string | null }): ShownCard | null {
  if (brand === null || last4 === null) return null;
  return /^[a-z_]{1,32}$/.test(brand) && /^\d{4}$/.test(last4) ? { brand, last4 } : null;
}

/** Codes alone: the provider's sentences are for people at the provider. */
export function failureOf(error: object): Failure {
  const read = (name: string) => {
    const value: unknown = Reflect.get(error, name);
    return typeof value === 'string' && /^\w{1,64}$/.test(value) ? value : null;
  };
  return {
    code: read('code') ?? 'refused',
    declineCode: read('decline_code'),
    adviceCode: read('advice_code'),
  };
}

/**
 * Where an event points. Its object may be of any type; what is not there, or cannot be a name, is null.
 *
 * @throws TypeError when it is no event at all
 */
export function refOf(event: Stripe.Event): EventRef {
  const object: object = event.data.object;
  if (!isId(event.id) || typeof event.type !== 'string' || !isTime(event.created))
    throw new TypeError('this is no event');
  const read = (name: string) => {
    const value: unknown = Reflect.get(object, name);
    const id = typeof value === 'object' && value !== null ? Reflect.get(value, 'id') : value;
    return isId(id) ? id : null;
  };
  // A kind may have a dot, as no name of a thing has.
  const kind: unknown = Reflect.get(object, 'object');
  const metadata: unknown = Reflect.get(object, 'metadata');
  const order: unknown =
    typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, 'order') : null;
  return {
    id: event.id,
    type: event.type,
    createdAtMs: event.created * 1_000,
    orderId: isUuid(order) ? order : null,
    sessionId: kind === 'checkout.session' ? read('id') : null,
    paymentIntentId: kind === 'payment_intent' ? read('id') : read('payment_intent'),
  };
}

/** @throws RangeError for what is not whole cents */
export function centsOf(micros: bigint): number {
  if (micros % MICROS_PER_CENT !== 0n) throw new RangeError('a card is charged in whole cents');
  return Number(micros / MICROS_PER_CENT);
}

function microsOf(cents: number): bigint {
  return BigInt(cents) * MICROS_PER_CENT;
}

function idOf(value: string | { id: string } | null | undefined): string | null {
  return typeof value === 'string' ? value : (value?.id ?? null);
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && /^\w{1,255}$/.test(value);
}

function isUuid(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value);
}

/** In seconds since 1970; the database knows years up to five digits. */
function isTime(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 1e11;
}
