/** Customers and their cards. */
import { createHash } from 'node:crypto';
import { cardError, invalid, noSuch, refused } from './api-error.ts';
import type { Params } from './form.ts';
import type { BillingDetails, CardFailure, Customer, PaymentMethod } from './objects.ts';
import { type Instrument, nowS, type Records } from './records.ts';
import {
  cardNamed,
  cardOfNumber,
  cardOfToken,
  type Decline,
  isCardNumber,
  NOT_A_TEST_CARD,
  type TestCard,
} from './test-cards.ts';

const TEMPLATE_YEARS_AHEAD = 3;
const NO_BILLING: BillingDetails = { address: null, email: null, name: null, phone: null };

/** What a person types into a form, or a caller sends; nothing of it is kept but month, year and last digits. */
export interface CardDetails {
  number: string;
  expMonth: number;
  expYear: number;
  cvc: string | null;
}

export function customerOf(records: Records, id: string, param = 'id'): Customer {
  const found = records.customers.get(id);
  if (found === undefined || found.deleted === true) throw noSuch('customer', id, param);
  return found;
}

/** What is shown of a customer that was deleted; null: it was not. */
export function deletedCustomer(records: Records, id: string): { id: string; deleted: true } | null {
  return records.customers.get(id)?.deleted === true ? gone(id) : null;
}

/** Deletes a customer for good, and takes its cards from it. */
export function deleteCustomer(records: Records, id: string): object {
  const customer = customerOf(records, id);
  for (const method of records.paymentMethods.values()) if (method.customer === id) detach(records, method);
  const empty = newCustomer(records, { email: null, name: null });
  Object.assign(customer, empty, { id, created: customer.created, deleted: true as const });
  records.emit('customer.deleted', customer);
  return gone(id);
}

const gone = (id: string) => ({ id, object: 'customer' as const, deleted: true as const });

export function createCustomer(records: Records, params: Params): Customer {
  const customer = newCustomer(records, {
    email: params.text('email', 512) ?? null,
    name: params.text('name', 256) ?? null,
  });
  customer.description = params.text('description') ?? null;
  customer.metadata = params.metadata();
  const paymentMethod = params.text('payment_method', 100);
  const asDefault = params.group('invoice_settings')?.text('default_payment_method', 100);
  params.end();
  if (paymentMethod !== undefined) {
    const attached = attach(records, usableMethod(records, paymentMethod, 'payment_method'), customer.id);
    if (asDefault === paymentMethod) customer.invoice_settings.default_payment_method = attached.id;
  }
  if (asDefault !== undefined && asDefault !== paymentMethod) setDefault(records, customer, asDefault);
  records.insert('customers', customer);
  records.emit('customer.created', customer);
  return customer;
}

export function newCustomer(records: Records, who: { email: string | null; name: string | null }): Customer {
  return {
    id: records.newId('cus_'),
    object: 'customer',
    balance: 0,
    created: nowS(),
    currency: null,
    default_source: null,
    delinquent: false,
    description: null,
    email: who.email,
    invoice_settings: { default_payment_method: null },
    livemode: false,
    metadata: {},
    name: who.name,
    phone: null,
    preferred_locales: [],
    shipping: null,
  };
}

export function updateCustomer(records: Records, customer: Customer, params: Params): Customer {
  const email = params.clearable('email', 512);
  const name = params.clearable('name', 256);
  const description = params.clearable('description');
  const metadata = params.metadata(customer.metadata);
  const asDefault = params.group('invoice_settings')?.clearable('default_payment_method', 100);
  params.end();
  if (typeof asDefault === 'string') setDefault(records, customer, asDefault);
  if (asDefault === null) customer.invoice_settings.default_payment_method = null;
  if (email !== undefined) customer.email = email;
  if (name !== undefined) customer.name = name;
  if (description !== undefined) customer.description = description;
  customer.metadata = metadata;
  records.emit('customer.updated', customer);
  return customer;
}

function setDefault(records: Records, customer: Customer, id: string): void {
  const param = 'invoice_settings[default_payment_method]';
  if (methodOf(records, id, param).customer !== customer.id) {
    throw refused('The customer does not have a payment method with this id.', 'resource_missing', { param });
  }
  customer.invoice_settings.default_payment_method = id;
}

/** `type=card` with `card[token]` or `card[number]`, `card[exp_month]`, `card[exp_year]` and `card[cvc]`. */
export function createMethod(records: Records, params: Params): PaymentMethod {
  if (params.choice('type', ['card']) === undefined)
    throw invalid('Missing required param: type.', 'type', 'parameter_missing');
  const metadata = params.metadata();
  const billing = params.group('billing_details');
  const details = { email: billing?.text('email', 512) ?? null, name: billing?.text('name', 256) ?? null };
  const card = params.group('card');
  const token = card?.text('token', 100);
  if (card === undefined) throw invalid('Missing required param: card.', 'card', 'parameter_missing');
  let method: PaymentMethod;
  if (token !== undefined) {
    params.end();
    const known = token.startsWith('tok_') ? cardOfToken(token) : null;
    if (known === null) throw noSuch('token', token, 'card[token]');
    method = methodFromTemplate(records, known);
  } else {
    const given: CardDetails = {
      number: card.needed('number', 30).replaceAll(/[ -]/g, ''),
      expMonth: card.neededInteger('exp_month'),
      expYear: card.neededInteger('exp_year'),
      cvc: card.text('cvc', 10) ?? null,
    };
    params.end();
    method = methodFromDetails(records, given);
  }
  method.metadata = metadata;
  method.billing_details = { ...NO_BILLING, ...details };
  return method;
}

/**
 * A payment method of a card that was typed in.
 * @throws ApiError 402 for a number, date or code that cannot be, and for a card that is no test card
 */
export function methodFromDetails(records: Records, given: CardDetails): PaymentMethod {
  const wrong = (code: string, message: string, param: string) =>
    cardError({ type: 'card_error', code, message, doc_url: docUrl(code), param });
  const year = given.expYear < 100 ? 2_000 + given.expYear : given.expYear;
  const today = new Date(records.nowMs());
  if (!isCardNumber(given.number))
    throw wrong('incorrect_number', 'Your card number is incorrect.', 'number');
  if (given.expMonth < 1 || given.expMonth > 12) {
    throw wrong('invalid_expiry_month', "Your card's expiration month is invalid.", 'exp_month');
  }
  const monthsLeft = (year - today.getUTCFullYear()) * 12 + given.expMonth - 1 - today.getUTCMonth();
  if (monthsLeft < 0 || monthsLeft > 50 * 12) {
    throw wrong('invalid_expiry_year', "Your card's expiration year is invalid.", 'exp_year');
  }
  if (given.cvc !== null && !/^\d{3,4}$/.test(given.cvc)) {
    throw wrong('invalid_cvc', "Your card's security code is invalid.", 'cvc');
  }
  const card = cardOfNumber(given.number);
  if (card === null) throw cardError(failureOf(NOT_A_TEST_CARD));
  return newMethod(records, card, given.expMonth, year, given.cvc !== null);
}

function methodFromTemplate(records: Records, card: TestCard): PaymentMethod {
  const today = new Date();
  return newMethod(
    records,
    card,
    today.getUTCMonth() + 1,
    today.getUTCFullYear() + TEMPLATE_YEARS_AHEAD,
    false,
  );
}

function newMethod(
  records: Records,
  card: TestCard,
  month: number,
  year: number,
  hasCvc: boolean,
): PaymentMethod {
  const cvc_check = !hasCvc ? null : card.decline?.code === 'incorrect_cvc' ? 'fail' : 'pass';
  const method: PaymentMethod = {
    id: records.newId('pm_'),
    object: 'payment_method',
    allow_redisplay: 'unspecified',
    billing_details: { ...NO_BILLING },
    card: {
      brand: card.brand,
      checks: { address_line1_check: null, address_postal_code_check: null, cvc_check },
      country: card.country,
      display_brand: card.brand,
      exp_month: month,
      exp_year: year,
      // Of the card's name, not its number: the same card has the same fingerprint, and it betrays nothing.
      fingerprint: createHash('sha256').update(`sandbox card ${card.name}`).digest('hex').slice(0, 16),
      funding: 'credit',
      last4: card.number.slice(-4),
      three_d_secure_usage: { supported: true },
    },
    created: nowS(),
    customer: null,
    livemode: false,
    metadata: {},
    type: 'card',
  };
  records.insert('paymentMethods', method);
  records.instruments.set(method.id, { card: card.name, setUp: false, used: false });
  return method;
}

export function methodOf(records: Records, id: string, param = 'id'): PaymentMethod {
  const found = records.paymentMethods.get(id);
  if (found === undefined) throw noSuch('PaymentMethod', id, param);
  return found;
}

/** A payment method by its id; `pm_card_…` names a template, of which each use makes a fresh one. */
export function usableMethod(records: Records, id: string, param = 'id'): PaymentMethod {
  const template = id.startsWith('pm_card_') ? cardOfToken(id) : null;
  return template === null ? methodOf(records, id, param) : methodFromTemplate(records, template);
}

/** What is behind a payment method. */
export function instrumentOf(records: Records, id: string): { instrument: Instrument; card: TestCard } {
  const instrument = records.instruments.get(id);
  if (instrument === undefined) throw new Error(`nothing is behind ${id}`);
  return { instrument, card: cardNamed(instrument.card) };
}

/**
 * Saves a card with a customer.
 * @throws ApiError 402 when its issuer declines, 400 when it has another customer or can no longer be used
 */
export function attach(records: Records, method: PaymentMethod, customer: string): PaymentMethod {
  const { instrument, card } = instrumentOf(records, method.id);
  if (method.customer === customer) return method;
  if (method.customer !== null) {
    throw refused('The payment method you provided has already been attached to a customer.');
  }
  if (instrument.used) throw usedUp();
  if (card.decline !== null && !card.declinesOnlyCharges) throw cardError(failureOf(card.decline));
  method.customer = customer;
  records.emit('payment_method.attached', method);
  return method;
}

export function detach(records: Records, method: PaymentMethod): PaymentMethod {
  const { customer } = method;
  if (customer === null) {
    throw refused(
      'The payment method you provided is not attached to a customer so detachment is impossible.',
    );
  }
  const owner = records.customers.get(customer);
  if (owner?.invoice_settings.default_payment_method === method.id) {
    owner.invoice_settings.default_payment_method = null;
  }
  method.customer = null;
  instrumentOf(records, method.id).instrument.used = true;
  records.emit('payment_method.detached', method, { customer });
  return method;
}

export function usedUp() {
  return refused(
    'The provided PaymentMethod was previously used with a PaymentIntent without Customer attachment, or was ' +
      'detached from a Customer. It may not be used again. To use a PaymentMethod multiple times, you must attach ' +
      'it to a Customer first.',
  );
}

/** A decline as errors say it. */
export function failureOf(decline: Decline): CardFailure {
  return {
    type: 'card_error',
    code: decline.code,
    message: decline.message,
    doc_url: docUrl(decline.code),
    decline_code: decline.declineCode,
    ...(decline.adviceCode !== null && { advice_code: decline.adviceCode }),
    ...(decline.networkDeclineCode !== null && { network_decline_code: decline.networkDeclineCode }),
    ...(decline.param !== null && { param: decline.param }),
  };
}

function docUrl(code: string): string {
  return `https://stripe.com/docs/error-codes/${code.replaceAll('_', '-')}`;
}
