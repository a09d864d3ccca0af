/** Checkout sessions: made over the API, paid by a person on the hosted page, or expired. */
import { ApiError, invalid, noSuch, refused } from './api-error.ts';
import type { Params } from './form.ts';
import {
  attempt,
  authenticate,
  cancelIntent,
  intentOf,
  openIntent,
  readAllowed,
  readAmount,
  readUrl,
} from './intents.ts';
import type { CheckoutSession, Customer, LineItem } from './objects.ts';
import { type CardDetails, customerOf, methodFromDetails, newCustomer } from './payment-methods.ts';
import { nowS, type Order, type Records } from './records.ts';

const MAX_LINES = 100;
const MAX_QUANTITY = 999_999;
const MIN_LIFE_S = 30 * 60;
const MAX_LIFE_S = 24 * 3_600;
/** A clock that runs a little behind must not make thirty minutes too few. */
const CLOCK_SLACK_S = 60;
const PLACEHOLDER = '{CHECKOUT_SESSION_ID}';

function readOrder(params: Params, lines: LineItem[]): Order {
  const payment = params.group('payment_intent_data');
  return {
    lines,
    futureUsage: payment?.choice('setup_future_usage', ['off_session', 'on_session']) ?? null,
    paymentMetadata: payment?.metadata() ?? {},
    description: payment?.text('description', 1_000) ?? null,
    receiptEmail: payment?.text('receipt_email', 512) ?? null,
    submitText: params.group('custom_text')?.group('submit')?.text('message', 1_200) ?? null,
  };
}

export function createSession(records: Records, params: Params): CheckoutSession {
  if (params.choice('mode', ['payment']) === undefined) {
    throw invalid('Missing required param: mode.', 'mode', 'parameter_missing');
  }
  const lines = params.groups('line_items', MAX_LINES).map((line) => readLine(records, line));
  const [first] = lines;
  if (first === undefined) {
    throw invalid('Missing required param: line_items.', 'line_items', 'parameter_missing');
  }
  const { currency } = first;
  if (lines.some((line) => line.currency !== currency)) {
    throw invalid('All line items must have the same currency.', 'line_items');
  }
  const total = lines.reduce((sum, line) => sum + line.amount_total, 0);
  readAmount(total, currency, 'line_items');
  const successUrl = readUrl(params, 'success_url');
  if (successUrl === null) {
    throw invalid('Missing required param: success_url.', 'success_url', 'parameter_missing');
  }
  const cancelUrl = readUrl(params, 'cancel_url');
  const customer = params.text('customer', 100) ?? null;
  const customerEmail = params.text('customer_email', 800) ?? null;
  const creation = params.choice('customer_creation', ['always', 'if_required']);
  const expiresAt = params.integer('expires_at');
  const order = readOrder(params, lines);
  const now = Math.floor(records.nowMs() / 1_000);
  const id = records.newId('cs_test_');
  const session: CheckoutSession = {
    id,
    object: 'checkout.session',
    allowed_payment_method_types: readAllowed(params),
    amount_subtotal: total,
    amount_total: total,
    automatic_tax: { enabled: false, status: null },
    cancel_url: cancelUrl,
    client_reference_id: params.text('client_reference_id', 200) ?? null,
    client_secret: null,
    created: nowS(),
    currency,
    customer,
    customer_creation: customer === null ? (creation ?? 'if_required') : null,
    customer_details: null,
    customer_email: customerEmail,
    expires_at: expiresAt ?? now + MAX_LIFE_S,
    livemode: false,
    locale: params.text('locale', 20) ?? null,
    metadata: params.metadata(),
    mode: 'payment',
    payment_intent: null,
    payment_method_types: ['card'],
    payment_status: 'unpaid',
    setup_intent: null,
    status: 'open',
    submit_type: params.choice('submit_type', ['auto', 'book', 'donate', 'pay']) ?? null,
    success_url: successUrl,
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    ui_mode: 'hosted_page',
    url: pageUrl(records, id),
  };
  params.choice('ui_mode', ['hosted_page']);
  params.end();
  if (customer !== null) {
    customerOf(records, customer, 'customer');
    if (customerEmail !== null) {
      throw invalid('You may only specify one of these parameters: customer, customer_email.', 'customer');
    }
    if (creation !== undefined) {
      throw invalid(
        'You may only specify one of these parameters: customer, customer_creation.',
        'customer_creation',
      );
    }
  }
  if (customerEmail !== null && !isEmail(customerEmail)) {
    throw invalid(`Invalid email address: ${customerEmail.slice(0, 100)}`, 'customer_email', 'email_invalid');
  }
  if (session.expires_at < now + MIN_LIFE_S - CLOCK_SLACK_S) {
    throw invalid(
      'The `expires_at` timestamp must be at least 30 minutes from Checkout Session creation.',
      'expires_at',
    );
  }
  if (session.expires_at > now + MAX_LIFE_S + CLOCK_SLACK_S) {
    throw invalid(
      'The `expires_at` timestamp must be less than 24 hours from Checkout Session creation.',
      'expires_at',
    );
  }
  records.insert('sessions', session);
  records.orders.set(id, order);
  records.later((session.expires_at - now) * 1_000, { kind: 'expire-session', session: id });
  return session;
}

function readLine(records: Records, line: Params): LineItem {
  const price = line.group('price_data');
  if (price === undefined) {
    throw invalid('The sandbox needs price_data with each line item.', line.nameOf('price_data'));
  }
  const product = price.group('product_data');
  if (product === undefined) {
    throw invalid('The sandbox needs product_data with each price.', price.nameOf('product_data'));
  }
  const name = product.needed('name', 250);
  product.text('description', 500);
  const currency = price.needed('currency', 10).toLowerCase();
  const unit = price.neededInteger('unit_amount');
  const quantity = line.neededInteger('quantity');
  if (unit < 0) throw invalid('Invalid non-negative integer', price.nameOf('unit_amount'));
  if (quantity < 1 || quantity > MAX_QUANTITY) {
    throw invalid('Invalid positive integer', line.nameOf('quantity'));
  }
  const amount = unit * quantity;
  return {
    id: records.newId('li_'),
    object: 'item',
    amount_discount: 0,
    amount_subtotal: amount,
    amount_tax: 0,
    amount_total: amount,
    currency,
    description: name,
    price: {
      id: records.newId('price_'),
      object: 'price',
      active: false,
      currency,
      livemode: false,
      product: records.newId('prod_'),
      type: 'one_time',
      unit_amount: unit,
    },
    quantity,
  };
}

export function sessionOf(records: Records, id: string): CheckoutSession {
  const found = records.sessions.get(id);
  if (found === undefined) throw noSuch('checkout.session', id, 'id');
  return found;
}

export function orderOf(records: Records, session: CheckoutSession): Order {
  const found = records.orders.get(session.id);
  if (found === undefined) throw new Error(`the session ${session.id} has no order`);
  return found;
}

/** @throws ApiError 400 for one that is not open */
export function expireSession(records: Records, session: CheckoutSession): CheckoutSession {
  if (session.status !== 'open') {
    throw refused(
      `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of ${session.status}.`,
    );
  }
  session.status = 'expired';
  session.url = null;
  if (session.payment_intent !== null) {
    cancelIntent(records, intentOf(records, session.payment_intent), 'automatic');
  }
  records.emit('checkout.session.expired', session);
  return session;
}

/** Where the page of a session is. */
export function pageUrl(records: Records, id: string): string {
  return `${records.baseUrl}/c/pay/${id}`;
}

/** Where a person goes who has paid. */
export function successUrl(session: CheckoutSession): string {
  return session.success_url.replaceAll(PLACEHOLDER, session.id);
}

export function isEmail(text: string): boolean {
  return text.length <= 254 && /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text);
}

/** What came of a press on the pay button. */
export type PayResult =
  | { kind: 'paid' }
  | { kind: 'closed' }
  | { kind: 'authenticate'; url: string }
  | { kind: 'declined'; message: string };

/**
 * Pays an open session with a card that a person typed in. All of it happens in one turn of the event loop, so of two
 * tabs that press at the same time the second finds the session paid.
 */
export function pay(
  records: Records,
  session: CheckoutSession,
  given: { email: string; card: CardDetails },
): PayResult {
  if (session.status !== 'open') return { kind: session.status === 'complete' ? 'paid' : 'closed' };
  try {
    const method = methodFromDetails(records, given.card);
    method.billing_details.email = given.email;
    const intent = intentFor(records, session, given.email);
    session.customer_details = { address: null, email: given.email, name: null, phone: null };
    attempt(records, intent, method, {
      offSession: false,
      errorOnRequiresAction: false,
      returnUrl: pageUrl(records, session.id),
      session: session.id,
    });
    if (intent.next_action?.type === 'redirect_to_url') {
      return { kind: 'authenticate', url: intent.next_action.redirect_to_url.url };
    }
    complete(records, session);
    return { kind: 'paid' };
  } catch (error) {
    if (!(error instanceof ApiError) || error.body.type !== 'card_error') throw error;
    return { kind: 'declined', message: error.body.message };
  }
}

/** The person comes back from their bank: a session whose intent is paid is complete. */
export function authenticateFor(
  records: Records,
  intent: string,
  nonce: string | null,
  approve: boolean,
): boolean {
  const sessionId = records.challenges.get(intent)?.session ?? null;
  const ended = authenticate(records, intent, nonce, approve);
  const session = sessionId === null ? undefined : records.sessions.get(sessionId);
  if (ended && session?.status === 'open') complete(records, session);
  return ended;
}

/** The one intent of a session, made with the first attempt and kept over declines, as is the customer. */
function intentFor(records: Records, session: CheckoutSession, email: string) {
  if (session.payment_intent !== null) {
    const made = session.customer_creation === null ? null : session.customer;
    const customer = records.customers.get(made ?? '');
    if (customer !== undefined) customer.email = email;
    return intentOf(records, session.payment_intent);
  }
  const order = orderOf(records, session);
  if (session.customer === null && (session.customer_creation === 'always' || order.futureUsage !== null)) {
    const customer: Customer = newCustomer(records, { email, name: null });
    records.insert('customers', customer);
    records.emit('customer.created', customer);
    session.customer = customer.id;
  }
  const intent = openIntent(records, {
    allowed_payment_method_types: session.allowed_payment_method_types,
    amount: session.amount_total,
    automatic_payment_methods: { enabled: true, allow_redirects: 'always' },
    currency: session.currency,
    customer: session.customer,
    description: order.description,
    metadata: { ...order.paymentMetadata },
    receipt_email: order.receiptEmail,
    setup_future_usage: order.futureUsage,
  });
  session.payment_intent = intent.id;
  return intent;
}

function complete(records: Records, session: CheckoutSession): void {
  session.status = 'complete';
  session.payment_status = 'paid';
  session.url = null;
  records.emit('checkout.session.completed', session);
}
