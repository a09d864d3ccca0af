/** Payment intents and set-up intents: an attempt with a card, what its issuer says, and authentication. */
import { type ApiError, cardError, invalid, noSuch, refused } from './api-error.ts';
import type { Params } from './form.ts';
import { recordCharge } from './money.ts';
import type {
  AutomaticPaymentMethods,
  CardFailure,
  NextAction,
  PaymentIntent,
  PaymentMethod,
  SetupIntent,
} from './objects.ts';
import { attach, customerOf, failureOf, instrumentOf, usableMethod, usedUp } from './payment-methods.ts';
import { nowS, type Records } from './records.ts';
import { AUTHENTICATION_REQUIRED } from './test-cards.ts';

const MIN_AMOUNT = { usd: 50, eur: 50, gbp: 30 } as const;
const MAX_AMOUNT = 99_999_999;
const CURRENCIES = ['usd', 'eur', 'gbp'] as const;
const SECRET = '_secret_';

/** How an attempt is made: with the customer there or not, and what becomes of a wish to see them. */
interface Manner {
  offSession: boolean;
  errorOnRequiresAction: boolean;
  returnUrl: string | null;
  /** The checkout session that the attempt belongs to. */
  session: string | null;
}

/** What `openIntent` is given. */
export type NewIntent = Pick<
  PaymentIntent,
  | 'allowed_payment_method_types'
  | 'amount'
  | 'automatic_payment_methods'
  | 'currency'
  | 'customer'
  | 'description'
  | 'metadata'
  | 'receipt_email'
  | 'setup_future_usage'
>;

/** @throws ApiError 400 below 0.50 or above 999,999.99, and for a currency that the sandbox does not have */
export function readAmount(amount: number, currency: string, param: string): { currency: string } {
  const known = CURRENCIES.find((one) => one === currency.toLowerCase());
  if (known === undefined) throw invalid(`Invalid currency: ${currency.slice(0, 10)}`, 'currency');
  if (amount < 1)
    throw invalid('This value must be greater than or equal to 1.', param, 'parameter_invalid_integer');
  if (amount < MIN_AMOUNT[known]) {
    throw invalid(`Amount must be at least ${MIN_AMOUNT[known]} cents`, param, 'amount_too_small');
  }
  if (amount > MAX_AMOUNT) throw invalid('Amount must be no more than 999,999.99', param, 'amount_too_large');
  return { currency: known };
}

export function openIntent(records: Records, wanted: NewIntent): PaymentIntent {
  const id = records.newId('pi_');
  const intent: PaymentIntent = {
    id,
    object: 'payment_intent',
    amount_capturable: 0,
    amount_received: 0,
    canceled_at: null,
    cancellation_reason: null,
    capture_method: 'automatic_async',
    client_secret: records.newId(`${id}${SECRET}`),
    confirmation_method: 'automatic',
    created: nowS(),
    last_payment_error: null,
    latest_charge: null,
    livemode: false,
    next_action: null,
    payment_method: null,
    payment_method_types: ['card'],
    processing: null,
    statement_descriptor: null,
    status: 'requires_payment_method',
    ...wanted,
  };
  records.insert('paymentIntents', intent);
  records.emit('payment_intent.created', intent);
  return intent;
}

export function createIntent(records: Records, params: Params): PaymentIntent {
  const amount = params.neededInteger('amount');
  const { currency } = readAmount(amount, params.needed('currency', 10), 'amount');
  const customer = params.text('customer', 100) ?? null;
  const method = params.text('payment_method', 100);
  const confirm = params.boolean('confirm') ?? false;
  const wanted: NewIntent = {
    allowed_payment_method_types: readAllowed(params),
    amount,
    automatic_payment_methods: readAutomatic(params),
    currency,
    customer,
    description: params.text('description', 1_000) ?? null,
    metadata: params.metadata(),
    receipt_email: params.text('receipt_email', 512) ?? null,
    setup_future_usage: params.choice('setup_future_usage', ['off_session', 'on_session']) ?? null,
  };
  const manner = readManner(params);
  params.choice('capture_method', ['automatic', 'automatic_async']);
  params.choice('confirmation_method', ['automatic']);
  params.end();
  if (customer !== null) customerOf(records, customer, 'customer');
  if (!confirm) {
    for (const [name, given] of [
      ['off_session', manner.offSession],
      ['error_on_requires_action', manner.errorOnRequiresAction],
      ['return_url', manner.returnUrl !== null],
    ] as const) {
      if (given) throw invalid(`\`${name}\` can only be set when \`confirm\` is \`true\`.`, name);
    }
    const chosen = method === undefined ? null : checkedMethod(records, method, customer);
    const intent = openIntent(records, wanted);
    if (chosen !== null) {
      intent.payment_method = chosen.id;
      intent.status = 'requires_confirmation';
    }
    return intent;
  }
  if (method === undefined) {
    throw invalid(
      'You cannot confirm this PaymentIntent because it is missing a payment method.',
      'payment_method',
      'parameter_missing',
    );
  }
  checkReturn(wanted.automatic_payment_methods, manner);
  const chosen = checkedMethod(records, method, customer);
  return attempt(records, openIntent(records, wanted), chosen, manner);
}

export function confirmIntent(records: Records, intent: PaymentIntent, params: Params): PaymentIntent {
  const method = params.text('payment_method', 100) ?? intent.payment_method;
  const futureUsage = params.choice('setup_future_usage', ['off_session', 'on_session']);
  const email = params.text('receipt_email', 512);
  const manner = readManner(params);
  params.end();
  if (intent.status === 'succeeded' || intent.status === 'canceled') {
    throw refused(
      `You cannot confirm this PaymentIntent because it has a status of ${intent.status}.`,
      'payment_intent_unexpected_state',
      { payment_intent: intent },
    );
  }
  if (method === null) {
    throw refused(
      'You cannot confirm this PaymentIntent because it is missing a payment method.',
      'payment_intent_unexpected_state',
      { payment_intent: intent },
    );
  }
  checkReturn(intent.automatic_payment_methods, manner);
  const chosen = checkedMethod(records, method, intent.customer);
  if (futureUsage !== undefined) intent.setup_future_usage = futureUsage;
  if (email !== undefined) intent.receipt_email = email;
  return attempt(records, intent, chosen, manner);
}

/** Changes what may still change: amount, description, receipt address and metadata. */
export function updateIntent(intent: PaymentIntent, params: Params): PaymentIntent {
  const amount = params.integer('amount');
  const description = params.clearable('description', 1_000);
  const email = params.clearable('receipt_email', 512);
  const metadata = params.metadata(intent.metadata);
  params.end();
  if (amount !== undefined) {
    readAmount(amount, intent.currency, 'amount');
    if (intent.status === 'succeeded' || intent.status === 'canceled') {
      throw refused(
        `This PaymentIntent's amount could not be updated because it has a status of ${intent.status}.`,
        'payment_intent_unexpected_state',
        { payment_intent: intent },
      );
    }
    intent.amount = amount;
  }
  if (description !== undefined) intent.description = description;
  if (email !== undefined) intent.receipt_email = email;
  intent.metadata = metadata;
  return intent;
}

/** @throws ApiError 400 for one that succeeded or was canceled before */
export function cancelIntent(records: Records, intent: PaymentIntent, reason: string | null): PaymentIntent {
  if (intent.status === 'succeeded' || intent.status === 'canceled') {
    throw refused(
      `You cannot cancel this PaymentIntent because it has a status of ${intent.status}.`,
      'payment_intent_unexpected_state',
      { payment_intent: intent },
    );
  }
  intent.status = 'canceled';
  intent.canceled_at = nowS();
  intent.cancellation_reason = reason;
  intent.next_action = null;
  records.challenges.delete(intent.id);
  records.emit('payment_intent.canceled', intent);
  return intent;
}

export function intentOf(records: Records, id: string, param = 'id'): PaymentIntent {
  const found = records.paymentIntents.get(id);
  if (found === undefined) throw noSuch('payment_intent', id, param);
  return found;
}

/**
 * Charges a card for an intent.
 *
 * @returns the intent, `succeeded` or `requires_action`
 * @throws ApiError 402 when it is declined; the intent is then `requires_payment_method` and says why
 */
export function attempt(
  records: Records,
  intent: PaymentIntent,
  method: PaymentMethod,
  manner: Manner,
): PaymentIntent {
  const { instrument, card } = instrumentOf(records, method.id);
  records.challenges.delete(intent.id);
  intent.payment_method = method.id;
  intent.next_action = null;
  intent.last_payment_error = null;
  const asks =
    card.asks === 'always' || (card.asks === 'unless-set-up' && !(manner.offSession && instrument.setUp));
  if (!asks) return charge(records, intent, method, false);
  if (manner.offSession) {
    throw declined(records, intent, method, failureOf(AUTHENTICATION_REQUIRED), true);
  }
  if (manner.errorOnRequiresAction) {
    const failure = {
      ...failureOf(AUTHENTICATION_REQUIRED),
      message:
        'This payment required an authentication action to complete, but `error_on_requires_action` was set.',
    };
    throw declined(records, intent, method, failure, false);
  }
  intent.status = 'requires_action';
  intent.next_action = ask(records, intent.id, manner);
  records.emit('payment_intent.requires_action', intent);
  return intent;
}

function charge(
  records: Records,
  intent: PaymentIntent,
  method: PaymentMethod,
  authenticated: boolean,
): PaymentIntent {
  const { instrument, card } = instrumentOf(records, method.id);
  if (card.decline !== null) throw declined(records, intent, method, failureOf(card.decline), true);
  if (intent.customer !== null && intent.setup_future_usage !== null) {
    if (method.customer === null) attach(records, method, intent.customer);
    if (intent.setup_future_usage === 'off_session' && authenticated) instrument.setUp = true;
  }
  if (method.customer === null) instrument.used = true;
  intent.latest_charge = recordCharge(records, intent, method, null, authenticated).id;
  intent.status = 'succeeded';
  intent.amount_received = intent.amount;
  records.emit('payment_intent.succeeded', intent);
  return intent;
}

/** Writes a decline down and returns the error to answer with. */
function declined(
  records: Records,
  intent: PaymentIntent,
  method: PaymentMethod,
  failure: CardFailure,
  issuerWasAsked: boolean,
): ApiError {
  const error: CardFailure = { ...failure, payment_method: structuredClone(method) };
  if (issuerWasAsked) {
    intent.latest_charge = recordCharge(records, intent, method, failure, false).id;
    error.charge = intent.latest_charge;
  }
  intent.status = 'requires_payment_method';
  intent.payment_method = null;
  intent.next_action = null;
  intent.last_payment_error = error;
  records.emit('payment_intent.payment_failed', intent);
  return cardError(error, { payment_intent: structuredClone(intent) });
}

function ask(records: Records, id: string, manner: Manner): NextAction {
  const nonce = records.newId('');
  records.challenges.set(id, { nonce, returnUrl: manner.returnUrl, session: manner.session });
  const url = `${records.baseUrl}/authenticate/${id}/${nonce}`;
  return manner.returnUrl === null
    ? { type: 'use_stripe_sdk', use_stripe_sdk: { type: 'three_d_secure_redirect', stripe_js: url } }
    : { type: 'redirect_to_url', redirect_to_url: { url, return_url: manner.returnUrl } };
}

/**
 * The customer approves or refuses at their bank.
 *
 * @param nonce that of the challenge; null: whichever waits
 * @returns whether it ended well; false as well when nothing waits, or another attempt has taken its place
 */
export function authenticate(records: Records, id: string, nonce: string | null, approve: boolean): boolean {
  const challenge = records.challenges.get(id);
  if (challenge === undefined || (nonce !== null && nonce !== challenge.nonce)) return false;
  records.challenges.delete(id);
  const payment = records.paymentIntents.get(id);
  const setup = records.setupIntents.get(id);
  const method = records.paymentMethods.get(payment?.payment_method ?? setup?.payment_method ?? '');
  if (method === undefined) return false;
  const failure: CardFailure = {
    type: 'card_error',
    code:
      payment === undefined ? 'setup_intent_authentication_failure' : 'payment_intent_authentication_failure',
    message:
      'We are unable to authenticate your payment method. Please choose a different payment method and try again.',
    doc_url: 'https://stripe.com/docs/error-codes/payment-intent-authentication-failure',
  };
  try {
    if (payment !== undefined) {
      if (!approve) throw declined(records, payment, method, failure, false);
      payment.next_action = null;
      charge(records, payment, method, true);
    } else if (setup !== undefined) {
      if (!approve) throw notSetUp(records, setup, failure);
      finishSetup(records, setup, method, true);
    }
    return true;
  } catch (error) {
    if (payment?.status === 'requires_payment_method' || setup?.status === 'requires_payment_method')
      return false;
    throw error;
  }
}

export function createSetup(records: Records, params: Params): SetupIntent {
  const customer = params.text('customer', 100) ?? null;
  const method = params.text('payment_method', 100);
  const confirm = params.boolean('confirm') ?? false;
  const returnUrl = readUrl(params, 'return_url');
  const id = records.newId('seti_');
  const setup: SetupIntent = {
    id,
    object: 'setup_intent',
    allowed_payment_method_types: readAllowed(params),
    automatic_payment_methods: readAutomatic(params),
    cancellation_reason: null,
    client_secret: records.newId(`${id}${SECRET}`),
    created: nowS(),
    customer,
    description: params.text('description', 1_000) ?? null,
    last_setup_error: null,
    latest_attempt: null,
    livemode: false,
    metadata: params.metadata(),
    next_action: null,
    payment_method: null,
    payment_method_types: ['card'],
    status: 'requires_payment_method',
    usage: params.choice('usage', ['off_session', 'on_session']) ?? 'off_session',
  };
  params.end();
  if (customer !== null) customerOf(records, customer, 'customer');
  const manner: Manner = { offSession: false, errorOnRequiresAction: false, returnUrl, session: null };
  if (confirm) checkReturn(setup.automatic_payment_methods, manner);
  if (confirm && method === undefined) {
    throw invalid(
      'You cannot confirm this SetupIntent because it is missing a payment method.',
      'payment_method',
    );
  }
  const chosen = method === undefined ? null : checkedMethod(records, method, customer);
  records.insert('setupIntents', setup);
  records.emit('setup_intent.created', setup);
  if (chosen === null) return setup;
  setup.payment_method = chosen.id;
  setup.status = 'requires_confirmation';
  return confirm ? attemptSetup(records, setup, chosen, manner) : setup;
}

export function confirmSetup(records: Records, setup: SetupIntent, params: Params): SetupIntent {
  const method = params.text('payment_method', 100) ?? setup.payment_method;
  const returnUrl = readUrl(params, 'return_url');
  params.end();
  if (setup.status === 'succeeded' || setup.status === 'canceled') {
    throw refused(
      `You cannot confirm this SetupIntent because it has a status of ${setup.status}.`,
      'setup_intent_unexpected_state',
      { setup_intent: setup },
    );
  }
  if (method === null) {
    throw refused('You cannot confirm this SetupIntent because it is missing a payment method.');
  }
  const manner: Manner = { offSession: false, errorOnRequiresAction: false, returnUrl, session: null };
  checkReturn(setup.automatic_payment_methods, manner);
  return attemptSetup(records, setup, checkedMethod(records, method, setup.customer), manner);
}

export function setupOf(records: Records, id: string): SetupIntent {
  const found = records.setupIntents.get(id);
  if (found === undefined) throw noSuch('setupintent', id, 'id');
  return found;
}

function attemptSetup(
  records: Records,
  setup: SetupIntent,
  method: PaymentMethod,
  manner: Manner,
): SetupIntent {
  const { card } = instrumentOf(records, method.id);
  records.challenges.delete(setup.id);
  setup.payment_method = method.id;
  setup.last_setup_error = null;
  if (card.asks === 'never') return finishSetup(records, setup, method, false);
  setup.status = 'requires_action';
  setup.next_action = ask(records, setup.id, manner);
  records.emit('setup_intent.requires_action', setup);
  return setup;
}

function finishSetup(
  records: Records,
  setup: SetupIntent,
  method: PaymentMethod,
  authenticated: boolean,
): SetupIntent {
  const { instrument, card } = instrumentOf(records, method.id);
  if (card.decline !== null && !card.declinesOnlyCharges) {
    throw notSetUp(records, setup, failureOf(card.decline));
  }
  if (setup.customer !== null) attach(records, method, setup.customer);
  if (authenticated && setup.usage === 'off_session') instrument.setUp = true;
  setup.status = 'succeeded';
  setup.next_action = null;
  records.emit('setup_intent.succeeded', setup);
  return setup;
}

function notSetUp(records: Records, setup: SetupIntent, failure: CardFailure): ApiError {
  setup.status = 'requires_payment_method';
  setup.payment_method = null;
  setup.next_action = null;
  setup.last_setup_error = failure;
  records.emit('setup_intent.setup_failed', setup);
  return cardError(failure, { setup_intent: structuredClone(setup) });
}

/** A payment method that this customer may pay with. */
function checkedMethod(records: Records, id: string, customer: string | null): PaymentMethod {
  const method = usableMethod(records, id, 'payment_method');
  if (method.customer !== null && method.customer !== customer) {
    throw refused(
      customer === null
        ? `The PaymentMethod ${method.id} belongs to a customer, so you must give that customer as well.`
        : `The PaymentMethod ${method.id} does not belong to the customer ${customer}.`,
      undefined,
      { param: 'payment_method' },
    );
  }
  if (method.customer === null && instrumentOf(records, method.id).instrument.used) throw usedUp();
  return method;
}

function readManner(params: Params): Manner {
  return {
    offSession: params.boolean('off_session') ?? false,
    errorOnRequiresAction: params.boolean('error_on_requires_action') ?? false,
    returnUrl: readUrl(params, 'return_url'),
    session: null,
  };
}

/** @throws ApiError 400 for what is not an http or https address */
export function readUrl(params: Params, name: string): string | null {
  const text = params.text(name);
  if (text === undefined) return null;
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) {
    throw invalid('Not a valid URL', params.nameOf(name), 'url_invalid');
  }
  return text;
}

/** This version of the API computes the types itself, unless told otherwise with methods that may redirect. */
function readAutomatic(params: Params): AutomaticPaymentMethods {
  const group = params.group('automatic_payment_methods');
  if (group?.boolean('enabled') === false) {
    throw invalid('The sandbox knows automatic payment methods only.', 'automatic_payment_methods[enabled]');
  }
  return {
    enabled: true,
    allow_redirects: group?.choice('allow_redirects', ['always', 'never']) ?? 'always',
  };
}

/**
 * `allowed_payment_method_types`, which took the place of `payment_method_types` in this version of the API.
 * @throws ApiError 400 when cards are not among them
 */
export function readAllowed(params: Params): string[] | null {
  const types = params.texts('allowed_payment_method_types', 50);
  if (types.length > 0 && !types.includes('card')) {
    throw invalid('The sandbox takes cards only.', 'allowed_payment_method_types');
  }
  return types.length === 0 ? null : types;
}

/** Methods that may redirect need somewhere to come back to, whatever the method in hand does. */
function checkReturn(automatic: AutomaticPaymentMethods, manner: Manner): void {
  if (automatic.allow_redirects !== 'always' || manner.returnUrl !== null) return;
  throw invalid(
    'This intent accepts payment methods that might redirect your customer off of your page, so you must provide a ' +
      '`return_url`. If you do not want to accept these, set `automatic_payment_methods[enabled]` to `true` and ' +
      '`automatic_payment_methods[allow_redirects]` to `never` when creating it.',
    'return_url',
  );
}
