/**
 * The card provider, by its official library: what this house asks it, and what it makes of the replies. Nothing of the
 * provider's own words passes through here but codes for machines.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import Stripe from 'stripe';
import { readDisputes } from './disputes/dispute.ts';

const MICROS_PER_CENT = 10_000n;
const TIMEOUT_MS = 8_000;
/** The library repeats what failed on the way, with the same idempotency key. */
const NETWORK_RETRIES = 1;
const MAX_SOCKETS = 32;
/** A signed message is refused when its time is further from ours than this, to either side. */
const WEBHOOK_TOLERANCE_S = 300;
const PAGE = 100;
/** More than the busiest hours have. */
const MAX_EVENTS = 100_000;

/** What the provider says of a payment, as it stands now. */
export interface PaymentFacts {
  paymentIntentId: string;
  orderId: string | null;
  /** `open`: it may still be paid. `dead`: it never will be. */
  status: 'open' | 'paid' | 'dead';
  /** What was paid; 0 unless it is paid. */
  paidMicros: bigint;
  currency: string;
  /** How much of it went back or is in dispute. */
  reversedMicros: bigint;
  /** How much was taken beyond what was paid. */
  lostMicros: bigint;
  /** How much of that is in dispute, and may still come back. */
  disputedMicros: bigint;
  /** The worst of its disputes, in the provider's word; null: none. */
  dispute: string | null;
  /** Until when that dispute can be answered with evidence; null: no more, or there is none. */
  disputeDueAtMs: number | null;
  customerId: string | null;
  paymentMethodId: string | null;
  card: { fingerprint: string | null; label: string } | null;
  failure: Failure | null;
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
  /** Whom its receipt goes to: what the payer wrote there, or it was opened with. */
  email: string | null;
  /** Null until somebody has tried to pay. */
  payment: PaymentFacts | null;
}

/** What came of an attempt to charge. When nobody knows, `charge` throws `ProviderUnavailable`. */
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

/**
 * Whether waiting is all there is to do about an error. It is not when the provider did answer, and will say the same
 * until an operator has mended something: the key is none, may not do this, or is of another account.
 */
export function passesByItself(error: unknown): boolean {
  return error instanceof ProviderUnavailable && !REFUSALS.some((kind) => error.cause instanceof kind);
}

const REFUSALS = [
  Stripe.errors.StripeAuthenticationError,
  Stripe.errors.StripePermissionError,
  Stripe.errors.StripeInvalidRequestError,
];

/** The provider takes no such e-mail address. */
export class EmailRefused extends Error {}

/** A message that the provider did not sign, or not lately. */
export class NotSigned extends Error {}

export interface CardProvider {
  openSession(order: {
    orderId: string;
    amountMicros: bigint;
    /** What the person reads beside the amount. */
    title: string;
    email: string | null;
    keepCard: boolean;
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
    amountMicros: bigint;
    customerId: string;
    paymentMethodId: string;
    title: string;
    email: string | null;
  }): Promise<ChargeOutcome>;
  payment(paymentIntentId: string): Promise<PaymentFacts | null>;
  /** Ends a payment that nobody will see through, if that is still possible. @returns how it stands then */
  cancel(paymentIntentId: string): Promise<PaymentFacts>;
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
  /** What happened since then, and before `untilMs` unless it is null; oldest first. */
  events(sinceMs: number, untilMs: number | null): Promise<readonly EventRef[]>;
  /** @throws NotSigned */
  readWebhook(rawBody: Buffer, signature: string | undefined): EventRef;
  close(): void;
}

/** What may have changed what an order has to show. */
const EVENT_TYPES = [
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

export function createCardProvider(settings: {
  url: string;
  secretKey: string;
  /** The newest first; while one is replaced the provider signs with both. */
  webhookSecrets: readonly string[];
  nowMs(): number;
}): CardProvider {
  const { protocol, hostname, port } = new URL(settings.url);
  const secure = protocol === 'https:';
  const Agent = secure ? HttpsAgent : HttpAgent;
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  const stripe = new Stripe(settings.secretKey, {
    host: hostname,
    ...(port === '' ? {} : { port }),
    protocol: secure ? 'https' : 'http',
    telemetry: false,
    maxNetworkRetries: NETWORK_RETRIES,
    timeout: TIMEOUT_MS,
    httpAgent: agent,
  });

  async function factsOf(intent: Stripe.PaymentIntent): Promise<PaymentFacts> {
    const charge = typeof intent.latest_charge === 'object' ? intent.latest_charge : null;
    const isPaid = intent.status === 'succeeded';
    let reversedCents = 0;
    let disputes: readonly Stripe.Dispute[] = [];
    if (isPaid && charge !== null && (charge.amount_refunded > 0 || charge.refunded)) {
      // All pages of them: there may be as many as there are cents.
      for await (const { amount, status } of stripe.refunds.list({ payment_intent: intent.id, limit: PAGE }))
        if (status !== 'failed' && status !== 'canceled') reversedCents += amount;
    }
    if (isPaid && charge?.disputed === true)
      disputes = (await stripe.disputes.list({ payment_intent: intent.id, limit: PAGE })).data;
    const { goneCents, disputedCents, worst } = readDisputes(disputes);
    reversedCents += goneCents;
    const card = charge?.payment_method_details?.card ?? null;
    const error = intent.last_payment_error;
    return {
      paymentIntentId: intent.id,
      orderId: isUuid(intent.metadata.order) ? intent.metadata.order : null,
      status: isPaid
        ? 'paid'
        : intent.status === 'canceled' || intent.status === 'requires_payment_method'
          ? 'dead'
          : 'open',
      paidMicros: isPaid ? BigInt(intent.amount_received) * MICROS_PER_CENT : 0n,
      currency: intent.currency,
      reversedMicros: BigInt(Math.min(reversedCents, intent.amount_received)) * MICROS_PER_CENT,
      lostMicros: BigInt(Math.max(0, reversedCents - intent.amount_received)) * MICROS_PER_CENT,
      disputedMicros:
        BigInt(Math.min(disputedCents, reversedCents, intent.amount_received)) * MICROS_PER_CENT,
      dispute: worst?.status ?? null,
      disputeDueAtMs: worst?.dueAtMs ?? null,
      customerId: idOf(intent.customer),
      paymentMethodId: idOf(intent.payment_method) ?? idOf(charge?.payment_method ?? null),
      card:
        card === null
          ? null
          : { fingerprint: card.fingerprint ?? null, label: `${card.brand} ${card.last4}` },
      failure: error === null ? null : failureOf(error),
    };
  }

  return {
    openSession: (order) =>
      asked(async () => {
        const expiresAtS = Math.floor(order.expiresAtMs / 1_000);
        const session = await stripe.checkout.sessions.create(
          {
            mode: 'payment',
            submit_type: 'pay',
            allowed_payment_method_types: ['card'],
            line_items: [
              {
                quantity: 1,
                price_data: {
                  currency: 'usd',
                  unit_amount: centsOf(order.amountMicros),
                  product_data: { name: order.title },
                },
              },
            ],
            success_url: order.successUrl,
            cancel_url: order.cancelUrl,
            client_reference_id: order.orderId,
            customer_creation: order.keepCard ? 'always' : 'if_required',
            ...(order.email === null ? {} : { customer_email: order.email }),
            expires_at: expiresAtS,
            metadata: { order: order.orderId },
            payment_intent_data: {
              // Events of a payment do not carry its session.
              metadata: { order: order.orderId },
              ...(order.keepCard ? { setup_future_usage: 'off_session' as const } : {}),
              ...(order.email === null ? {} : { receipt_email: order.email }),
            },
          },
          { idempotencyKey: `session:${order.orderId}` },
        );
        if (session.url === null) throw new Error('the provider opened a session without a page');
        return { sessionId: session.id, url: session.url, expiresAtMs: session.expires_at * 1_000 };
      }),

    session: (sessionId) =>
      asked(async () => {
        const session = await stripe.checkout.sessions.retrieve(sessionId, {
          expand: ['payment_intent.latest_charge'],
        });
        const intent = typeof session.payment_intent === 'object' ? session.payment_intent : null;
        const { status } = session;
        return {
          sessionId: session.id,
          orderId: session.metadata?.order ?? null,
          status: status === 'complete' ? 'complete' : status === 'expired' ? 'expired' : 'open',
          totalMicros: BigInt(session.amount_total ?? 0) * MICROS_PER_CENT,
          ...{ currency: session.currency ?? '', email: payerOf(session) },
          payment: intent === null ? null : await factsOf(intent),
        };
      }),

    openCustomer: ({ orderId, attempt }) =>
      asked(async () => {
        // Without an address: one that the provider does not take is refused when it is charged, and told as a refusal.
        const customer = await stripe.customers.create(
          { metadata: { order: orderId } },
          { idempotencyKey: `customer:${orderId}:${attempt}` },
        );
        return customer.id;
      }),

    charge: (order) =>
      asked(async () => {
        let intent: Stripe.PaymentIntent;
        try {
          intent = await stripe.paymentIntents.create(
            {
              amount: centsOf(order.amountMicros),
              currency: 'usd',
              customer: order.customerId,
              payment_method: order.paymentMethodId,
              confirm: true,
              off_session: true,
              error_on_requires_action: true,
              automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
              description: order.title,
              metadata: { order: order.orderId },
              ...(order.email === null ? {} : { receipt_email: order.email }),
              expand: ['latest_charge'],
            },
            { idempotencyKey: `charge:${order.orderId}` },
          );
        } catch (error) {
          if (error instanceof Stripe.errors.StripeCardError) {
            const failure = failureOf(error);
            const id = error.payment_intent?.id;
            if (id === undefined) return { status: 'refused', failure };
            const declined = await stripe.paymentIntents.retrieve(id, { expand: ['latest_charge'] });
            const facts = await factsOf(declined);
            return { status: 'known', payment: { ...facts, failure: facts.failure ?? failure } };
          }
          // A customer of ours that it does not know says nothing of the card: our key is of another account.
          if (error instanceof Stripe.errors.StripeInvalidRequestError && error.param !== 'customer')
            return { status: 'refused', failure: failureOf(error) };
          throw error;
        }
        // What goes wrong from here on says nothing of the charge.
        return { status: 'known', payment: await factsOf(intent) };
      }),

    payment: (paymentIntentId) =>
      orNull(async () =>
        factsOf(await stripe.paymentIntents.retrieve(paymentIntentId, { expand: ['latest_charge'] })),
      ),

    cancel: (paymentIntentId) =>
      asked(async () => {
        try {
          await stripe.paymentIntents.cancel(paymentIntentId);
        } catch (error) {
          // It is paid, or over, or on its way: the answer says which.
          if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) throw error;
        }
        return factsOf(await stripe.paymentIntents.retrieve(paymentIntentId, { expand: ['latest_charge'] }));
      }),

    findPayment: ({ orderId, customerId }) =>
      asked(async () => {
        const { data } = await stripe.paymentIntents.list({
          customer: customerId,
          limit: PAGE,
          expand: ['data.latest_charge'],
        });
        const own = data.filter(({ metadata }) => metadata.order === orderId);
        const found = own.find(({ status }) => status === 'succeeded') ?? own[0];
        return found === undefined ? null : factsOf(found);
      }),

    card: (paymentMethodId) =>
      orNull(async () => {
        const { id, card, customer } = await stripe.paymentMethods.retrieve(paymentMethodId);
        if (card === undefined) return null;
        return {
          paymentMethodId: id,
          fingerprint: card.fingerprint ?? null,
          label: `${card.brand} ${card.last4}`,
          customerId: idOf(customer),
        };
      }),

    refund: (paymentIntentId, amountMicros, key, isFraud) =>
      asked(async () => {
        // The provider knows a repeated request for a day; an operator may go on with a refund after a week.
        for await (const made of stripe.refunds.list({ payment_intent: paymentIntentId, limit: PAGE }))
          if (made.metadata?.refund === key) return made.id;
        try {
          const refund = await stripe.refunds.create(
            {
              payment_intent: paymentIntentId,
              ...(amountMicros === null ? {} : { amount: centsOf(amountMicros) }),
              reason: isFraud ? 'fraudulent' : 'requested_by_customer',
              metadata: { refund: key },
            },
            { idempotencyKey: `refund:${key}` },
          );
          return refund.id;
        } catch (error) {
          if (error instanceof Stripe.errors.StripeInvalidRequestError) return null;
          throw error;
        }
      }),

    isWarnedOf: (paymentIntentId) =>
      asked(async () => {
        const { data } = await stripe.radar.earlyFraudWarnings.list({
          payment_intent: paymentIntentId,
          limit: PAGE,
        });
        return data.some(({ actionable }) => actionable);
      }),

    events: (sinceMs, untilMs) =>
      asked(async () => {
        const found: EventRef[] = [];
        const listed = stripe.events.list({
          created: {
            gte: Math.floor(sinceMs / 1_000),
            ...(untilMs === null ? {} : { lte: Math.floor(untilMs / 1_000) }),
          },
          types: EVENT_TYPES,
          limit: PAGE,
        });
        for await (const event of listed) {
          // The list begins with the newest: what stands at its end must not be missed in silence.
          if (found.length >= MAX_EVENTS) throw new Error(`more than ${MAX_EVENTS} events at once`);
          found.push(refOf(event));
        }
        return found.reverse();
      }),

    readWebhook(rawBody, signature) {
      const nowMs = settings.nowMs();
      for (const secret of settings.webhookSecrets) {
        try {
          const event = stripe.webhooks.constructEvent(
            rawBody,
            signature ?? '',
            secret,
            WEBHOOK_TOLERANCE_S,
            undefined,
            nowMs,
          );
          // The library refuses what is too old, and nothing that comes from the future.
          const times = [...(signature ?? '').matchAll(/(?:^|,)\s*t=(\d{1,12})/g)].map(([, time]) =>
            Number(time),
          );
          if (times.some((atS) => atS - nowMs / 1_000 > WEBHOOK_TOLERANCE_S)) break;
          return refOf(event);
        } catch {
          // Perhaps it was signed with the next one.
        }
      }
      throw new NotSigned();
    },

    close: () => agent.destroy(),
  };
}

function centsOf(micros: bigint): number {
  if (micros % MICROS_PER_CENT !== 0n) throw new RangeError('a card is charged in whole cents');
  return Number(micros / MICROS_PER_CENT);
}

function idOf(value: string | { id: string } | null | undefined): string | null {
  return typeof value === 'string' ? value : (value?.id ?? null);
}

/** Codes alone: the provider's sentences are for people at the provider. */
function failureOf(error: object): Failure {
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

/** Runs a question; whatever is not an answer is `ProviderUnavailable`. */
async function asked<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'email_invalid')
      throw new EmailRefused();
    throw new ProviderUnavailable(error);
  }
}

/** As `asked`, for things that may not exist. */
function orNull<T>(ask: () => Promise<T | null>): Promise<T | null> {
  return asked(async () => {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing')
        return null;
      throw error;
    }
  });
}

const isId = (value: unknown): value is string => typeof value === 'string' && /^\w{1,255}$/.test(value);
const isUuid = (value: unknown): value is string =>
  typeof value === 'string' && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value);
/** In seconds since 1970; the database knows years up to five digits. */
const isTime = (value: unknown) => Number.isInteger(value) && Number(value) >= 0 && Number(value) < 1e11;

/**
 * Where an event points. Its object may be of any type; what is not there, or cannot be a name, is null.
 *
 * @throws TypeError when it is no event at all
 */
function refOf(event: Stripe.Event): EventRef {
  const object: object = event.data.object;
  if (!isId(event.id) || typeof event.type !== 'string' || !isTime(event.created))
    throw new TypeError('this is no event');
  const read = (name: string) => {
    const value: unknown = Reflect.get(object, name);
    const id = typeof value === 'object' && value !== null ? Reflect.get(value, 'id') : value;
    return isId(id) ? id : null;
  };
  const kind = read('object');
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

/** The address that the payer wrote on the page, or that it was opened with. */
function payerOf({ customer_details, customer_email }: Stripe.Checkout.Session): string | null {
  return customer_details?.email ?? customer_email ?? null;
}
