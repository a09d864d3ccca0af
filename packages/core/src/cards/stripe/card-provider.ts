/** The card provider, asked by its official library. */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type Stripe from 'stripe';
import {
  type CardFacts,
  type CardProvider,
  type ChargeOutcome,
  EVENT_TYPES,
  type EventRef,
  type KeptOrder,
  type PaymentFacts,
  type SessionFacts,
} from '../provider.ts';
import { asked, orNull } from './asking.ts';
import { isStripeError, stripeLibrary } from './library.ts';
import { cardFacts, centsOf, chargeOf, failureOf, paymentFacts, refOf, sessionFacts } from './replies.ts';
import { readSigned } from './webhook.ts';

const TIMEOUT_MS = 8_000;
/** The library repeats what failed on the way, with the same idempotency key. */
const NETWORK_RETRIES = 1;
const MAX_SOCKETS = 32;
const PAGE = 100;
/** More than the busiest hours have. */
const MAX_EVENTS = 100_000;

interface ProviderSettings {
  url: string;
  /** The key now, and the webhook's secrets. */
  secrets(): { secretKey: string; webhookSecrets: readonly string[] };
  nowMs(): number;
}

export function createCardProvider(settings: ProviderSettings): CardProvider {
  return new StripeCards(settings);
}

type Order<Method extends 'openSession' | 'charge'> = Parameters<CardProvider[Method]>[0];

class StripeCards implements CardProvider {
  readonly #settings: ProviderSettings;
  readonly #agent: HttpAgent;
  /** The client with the key that was in force when it was asked last; null: nobody has asked. */
  #known: { key: string; stripe: Stripe } | null = null;

  constructor(settings: ProviderSettings) {
    const Agent = settings.url.startsWith('https:') ? HttpsAgent : HttpAgent;
    this.#settings = settings;
    this.#agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  }

  get #stripe(): Stripe {
    const { secretKey } = this.#settings.secrets();
    if (secretKey !== this.#known?.key) this.#known = { key: secretKey, stripe: this.#clientWith(secretKey) };
    return this.#known.stripe;
  }

  #clientWith(key: string): Stripe {
    const { protocol, hostname, port } = new URL(this.#settings.url);
    const Client = stripeLibrary();
    return new Client(key, {
      host: hostname,
      ...(port === '' ? {} : { port }),
      protocol: protocol === 'https:' ? 'https' : 'http',
      telemetry: false,
      maxNetworkRetries: NETWORK_RETRIES,
      timeout: TIMEOUT_MS,
      httpAgent: this.#agent,
    });
  }

  openSession(order: Order<'openSession'>): Promise<{ sessionId: string; url: string; expiresAtMs: number }> {
    return asked(async () => {
      const idempotencyKey = `session:${order.orderId}`;
      const session = await this.#stripe.checkout.sessions.create(sessionFor(order), { idempotencyKey });
      if (session.url === null) throw new Error('the provider opened a session without a page');
      return { sessionId: session.id, url: session.url, expiresAtMs: session.expires_at * 1_000 };
    });
  }

  session(sessionId: string): Promise<SessionFacts> {
    return asked(async () => {
      const session = await this.#stripe.checkout.sessions.retrieve(sessionId, {
        expand: ['payment_intent.latest_charge'],
      });
      const intent = typeof session.payment_intent === 'object' ? session.payment_intent : null;
      return sessionFacts(session, intent === null ? null : await this.#factsOf(intent));
    });
  }

  openCustomer({ orderId, attempt }: { orderId: string; attempt: number }): Promise<string> {
    return asked(async () => {
      // Without an address: one that the provider does not take is refused when it is charged, and told as a refusal.
      const customer = await this.#stripe.customers.create(
        { metadata: { order: orderId } },
        { idempotencyKey: `customer:${orderId}:${attempt}` },
      );
      return customer.id;
    });
  }

  async forgetCustomer(customerId: string): Promise<void> {
    await orNull(() => this.#stripe.customers.del(customerId));
  }

  charge(order: Order<'charge'>): Promise<ChargeOutcome> {
    return asked(async () => {
      let intent: Stripe.PaymentIntent;
      try {
        const idempotencyKey = `charge:${order.orderId}`;
        intent = await this.#stripe.paymentIntents.create(chargeFor(order), { idempotencyKey });
      } catch (error) {
        return await this.#refusalIn(error);
      }
      // What goes wrong from here on says nothing of the charge.
      return { status: 'known', payment: await this.#factsOf(intent) };
    });
  }

  payment(paymentIntentId: string): Promise<PaymentFacts | null> {
    return orNull(() => this.#retrieve(paymentIntentId));
  }

  async kept({
    sessionId,
    paymentIntentId,
  }: {
    sessionId: string | null;
    paymentIntentId: string | null;
  }): Promise<KeptOrder | null> {
    if (sessionId !== null)
      return orNull(async () => {
        const session = await this.#stripe.checkout.sessions.retrieve(sessionId, {
          expand: ['payment_intent.latest_charge'],
        });
        const intent = typeof session.payment_intent === 'object' ? session.payment_intent : null;
        const payment = intent === null ? null : await this.#factsOf(intent);
        const { email } = sessionFacts(session, payment);
        return { sessionId, note: session.metadata ?? {}, email, payment };
      });
    if (paymentIntentId === null) return null;
    return orNull(async () => {
      const intent = await this.#stripe.paymentIntents.retrieve(paymentIntentId, {
        expand: ['latest_charge'],
      });
      const payment = await this.#factsOf(intent);
      return { sessionId: null, note: intent.metadata, email: intent.receipt_email, payment };
    });
  }

  cancel(paymentIntentId: string): Promise<PaymentFacts> {
    return asked(async () => {
      try {
        await this.#stripe.paymentIntents.cancel(paymentIntentId);
      } catch (error) {
        // It is paid, or over, or on its way: the answer says which.
        if (!isStripeError(error, 'StripeInvalidRequestError')) throw error;
      }
      return this.#retrieve(paymentIntentId);
    });
  }

  findPayment({
    orderId,
    customerId,
  }: {
    orderId: string;
    customerId: string;
  }): Promise<PaymentFacts | null> {
    return asked(async () => {
      const { data } = await this.#stripe.paymentIntents.list({
        customer: customerId,
        limit: PAGE,
        expand: ['data.latest_charge'],
      });
      const own = data.filter(({ metadata }) => metadata.order === orderId);
      const found = own.find(({ status }) => status === 'succeeded') ?? own[0];
      return found === undefined ? null : this.#factsOf(found);
    });
  }

  card(paymentMethodId: string): Promise<CardFacts | null> {
    return orNull(async () => cardFacts(await this.#stripe.paymentMethods.retrieve(paymentMethodId)));
  }

  refund(
    paymentIntentId: string,
    amountMicros: bigint | null,
    key: string,
    isFraud: boolean,
  ): Promise<string | null> {
    return asked(async () => {
      // The provider knows a repeated request for a day; an operator may go on with a refund after a week.
      const earlier = this.#stripe.refunds.list({ payment_intent: paymentIntentId, limit: PAGE });
      for await (const made of earlier) if (made.metadata?.refund === key) return made.id;
      try {
        const refund = await this.#stripe.refunds.create(
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
        if (isStripeError(error, 'StripeInvalidRequestError')) return null;
        throw error;
      }
    });
  }

  isWarnedOf(paymentIntentId: string): Promise<boolean> {
    return asked(async () => {
      const { data } = await this.#stripe.radar.earlyFraudWarnings.list({
        payment_intent: paymentIntentId,
        limit: PAGE,
      });
      return data.some(({ actionable }) => actionable);
    });
  }

  events(sinceMs: number, untilMs: number | null): Promise<readonly EventRef[]> {
    return asked(async () => {
      const found: EventRef[] = [];
      const listed = this.#stripe.events.list({
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
    });
  }

  readWebhook(rawBody: Buffer, signature: string | undefined): EventRef {
    const { webhookSecrets } = this.#settings.secrets();
    const parts = { stripe: this.#stripe, secrets: webhookSecrets, nowMs: this.#settings.nowMs() };
    return readSigned({ rawBody, signature: signature ?? '' }, parts);
  }

  close(): void {
    this.#agent.destroy();
  }

  async #retrieve(paymentIntentId: string): Promise<PaymentFacts> {
    const intent = await this.#stripe.paymentIntents.retrieve(paymentIntentId, { expand: ['latest_charge'] });
    return this.#factsOf(intent);
  }

  /** Gathers what is known of a payment, with all its refunds and disputes. */
  async #factsOf(intent: Stripe.PaymentIntent): Promise<PaymentFacts> {
    const charge = chargeOf(intent);
    if (intent.status !== 'succeeded' || charge === null)
      return paymentFacts(intent, { refundedCents: 0, disputes: [] });
    const hasRefunds = charge.amount_refunded > 0 || charge.refunded;
    return paymentFacts(intent, {
      refundedCents: hasRefunds ? await this.#refundedCents(intent.id) : 0,
      disputes: charge.disputed ? await this.#disputesOf(intent.id) : [],
    });
  }

  /** Sums the refunds on all pages of the list: there may be as many refunds as there are cents. */
  async #refundedCents(paymentIntentId: string): Promise<number> {
    let cents = 0;
    const listed = this.#stripe.refunds.list({ payment_intent: paymentIntentId, limit: PAGE });
    for await (const { amount, status } of listed)
      if (status !== 'failed' && status !== 'canceled') cents += amount;
    return cents;
  }

  async #disputesOf(paymentIntentId: string): Promise<readonly Stripe.Dispute[]> {
    const { data } = await this.#stripe.disputes.list({ payment_intent: paymentIntentId, limit: PAGE });
    return data;
  }

  /** Reads what a failed charge says of the card. @throws the failure again when it says nothing of it */
  async #refusalIn(error: unknown): Promise<ChargeOutcome> {
    if (isStripeError(error, 'StripeCardError')) {
      const failure = failureOf(error);
      const id = error.payment_intent?.id;
      if (id === undefined) return { status: 'refused', failure };
      const declined = await this.#retrieve(id);
      return { status: 'known', payment: { ...declined, failure: declined.failure ?? failure } };
    }
    // A customer of ours that it does not know says nothing of the card: our key is of another account.
    if (isStripeError(error, 'StripeInvalidRequestError') && error.param !== 'customer')
      return { status: 'refused', failure: failureOf(error) };
    throw error;
  }
}

/** The page on which a person pays an order. */
function sessionFor(order: Order<'openSession'>): Stripe.Checkout.SessionCreateParams {
  const { orderId, note, email, keepCard } = order;
  const price = {
    currency: 'usd',
    unit_amount: centsOf(order.amountMicros),
    product_data: { name: order.title },
  };
  return {
    mode: 'payment',
    submit_type: 'pay',
    allowed_payment_method_types: ['card'],
    line_items: [{ quantity: 1, price_data: price }],
    success_url: order.successUrl,
    cancel_url: order.cancelUrl,
    client_reference_id: orderId,
    customer_creation: keepCard === null ? 'if_required' : 'always',
    ...(keepCard === null ? {} : { custom_text: { submit: { message: keepCard } } }),
    ...(email === null ? {} : { customer_email: email }),
    expires_at: Math.floor(order.expiresAtMs / 1_000),
    metadata: { order: orderId, ...note },
    payment_intent_data: {
      // Events of a payment do not carry its session.
      metadata: { order: orderId },
      ...(keepCard === null ? {} : { setup_future_usage: 'off_session' as const }),
      ...(email === null ? {} : { receipt_email: email }),
    },
  };
}

/** The charge of a card whose owner is away. */
function chargeFor(order: Order<'charge'>): Stripe.PaymentIntentCreateParams {
  return {
    amount: centsOf(order.amountMicros),
    currency: 'usd',
    customer: order.customerId,
    payment_method: order.paymentMethodId,
    confirm: true,
    off_session: true,
    error_on_requires_action: true,
    automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
    description: order.title,
    metadata: { order: order.orderId, ...order.note },
    ...(order.email === null ? {} : { receipt_email: order.email }),
    expand: ['latest_charge'],
  };
}
