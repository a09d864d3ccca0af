/** The official library, unmodified, against the sandbox's card provider: every call, and every way to fail. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import Stripe from 'stripe';
import { type CardProvider, startCardProvider } from './card-provider.ts';
import {
  control,
  eventually,
  failureOf,
  libraryFor,
  type Receiver,
  SECRET_KEY,
  startBoth,
  startReceiver,
  WEBHOOK_SECRET,
} from './cards.fixture.ts';

const { errors } = Stripe;

let provider: CardProvider;
let receiver: Receiver;
let stripe: Stripe;
before(async () => {
  ({ provider, receiver } = await startBoth());
  stripe = libraryFor(provider.url);
});
after(async () => {
  await provider.stop();
  await receiver.stop();
});
beforeEach(async () => {
  await control(provider.url, 'DELETE', '/faults');
  await control(provider.url, 'DELETE', '/requests');
});

/** What Farebox sends to charge a card without its owner. */
function payment(paymentMethod: string, more: Partial<Stripe.PaymentIntentCreateParams> = {}) {
  return {
    amount: 1_000,
    currency: 'usd',
    payment_method: paymentMethod,
    confirm: true,
    automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
    ...more,
  } satisfies Stripe.PaymentIntentCreateParams;
}

function checkout(more: Partial<Stripe.Checkout.SessionCreateParams> = {}) {
  return {
    mode: 'payment',
    submit_type: 'pay',
    allowed_payment_method_types: ['card'],
    line_items: [
      {
        quantity: 1,
        price_data: { currency: 'usd', unit_amount: 2_500, product_data: { name: 'Credits, 25 USD' } },
      },
    ],
    success_url: 'http://127.0.0.1:9/paid?session={CHECKOUT_SESSION_ID}',
    cancel_url: 'http://127.0.0.1:9/canceled',
    client_reference_id: 'order-7',
    metadata: { order: 'order-7' },
    payment_intent_data: { metadata: { order: 'order-7' } },
    ...more,
  } satisfies Stripe.Checkout.SessionCreateParams;
}

const CARD = { email: 'a@example.com', number: '4242 4242 4242 4242', expiry: '12/34', cvc: '123' };

/** Posts the form of the checkout page, as a browser would. */
function press(url: string | null, card: Partial<typeof CARD> = {}): Promise<Response> {
  return fetch(url ?? '', {
    method: 'POST',
    body: new URLSearchParams({ ...CARD, ...card }),
    redirect: 'manual',
  });
}

async function seenPosts() {
  const { requests } = await control(provider.url, 'GET', '/requests');
  assert(Array.isArray(requests));
  return requests.filter(({ method }) => method === 'POST');
}

/** The first delivery of a type whose object has this id. */
function delivered(type: string, id: string) {
  return eventually(`${type} of ${id}`, () =>
    receiver.deliveries.find(
      ({ event }) => event.type === type && 'id' in event.data.object && event.data.object.id === id,
    ),
  );
}

function chargeIn(intent: Stripe.PaymentIntent): Stripe.Charge {
  assert(typeof intent.latest_charge === 'object' && intent.latest_charge !== null);
  return intent.latest_charge;
}

describe('customers and their cards', () => {
  test('a customer is deleted once: its cards are no more its own, and nothing of it is shown', async () => {
    const { id } = await stripe.customers.create({ email: 'gone@example.com', name: 'Anna' });
    const method = await stripe.paymentMethods.attach('pm_card_visa', { customer: id });
    const told = { id, object: 'customer', deleted: true };
    assert.partialDeepStrictEqual(await stripe.customers.del(id), told);
    const shown = await stripe.customers.retrieve(id);
    assert.partialDeepStrictEqual(shown, told);
    assert(!JSON.stringify(shown).includes('Anna'));
    assert.equal((await stripe.paymentMethods.retrieve(method.id)).customer, null);
    assert.deepEqual((await stripe.customers.list({ email: 'gone@example.com' })).data, []);
    const again = await failureOf(stripe.customers.del(id));
    assert(again instanceof errors.StripeInvalidRequestError && again.code === 'resource_missing');
    assert.equal(
      (await failureOf(stripe.paymentMethods.attach('pm_card_visa', { customer: id }))).code,
      'resource_missing',
    );
  });

  test('a customer is made, changed, found by e-mail, and keeps cards', async () => {
    const customer = await stripe.customers.create({
      email: 'anna+1@example.com',
      name: 'Anna & Söhne',
      metadata: { account: 'a[1]', gone: 'x' },
    });
    assert.match(customer.id, /^cus_\w{24}$/);
    assert.equal(customer.name, 'Anna & Söhne');
    assert.match(customer.lastResponse.requestId, /^req_/);
    const method = await stripe.paymentMethods.create({ type: 'card', card: { token: 'tok_visa' } });
    assert.deepEqual(
      [method.card?.brand, method.card?.last4, method.card?.funding, method.customer],
      ['visa', '4242', 'credit', null],
    );
    await stripe.paymentMethods.attach(method.id, { customer: customer.id });
    const changed = await stripe.customers.update(customer.id, {
      metadata: { gone: '' },
      invoice_settings: { default_payment_method: method.id },
    });
    assert.deepEqual(changed.metadata, { account: 'a[1]' });
    const read = await stripe.customers.retrieve(customer.id, {
      expand: ['invoice_settings.default_payment_method'],
    });
    assert(!read.deleted && typeof read.invoice_settings.default_payment_method === 'object');
    assert.equal(read.invoice_settings.default_payment_method?.id, method.id);
    const found = await stripe.customers.list({ email: 'anna+1@example.com' });
    assert.deepEqual(
      found.data.map(({ id }) => id),
      [customer.id],
    );
    const same = await stripe.paymentMethods.attach('pm_card_visa', { customer: customer.id });
    assert.equal(same.card?.fingerprint, method.card?.fingerprint, 'the same card has the same fingerprint');
    const listed = await stripe.customers.listPaymentMethods(customer.id, { type: 'card' });
    assert.deepEqual(
      listed.data.map(({ id }) => id),
      [same.id, method.id],
    );
    const other = await stripe.customers.create();
    const taken = await failureOf(stripe.paymentMethods.attach(method.id, { customer: other.id }));
    assert.deepEqual([taken.statusCode, taken.rawType], [400, 'invalid_request_error']);
    await stripe.paymentMethods.detach(method.id);
    const again = await failureOf(stripe.paymentMethods.attach(method.id, { customer: other.id }));
    assert.match(again.message, /may not be used again/);
    await delivered('payment_method.detached', method.id);
  });

  test('card numbers are checked, and none but a test card is taken', async () => {
    const card = (number: string, more = {}) =>
      stripe.paymentMethods.create({
        type: 'card',
        card: { number, exp_month: 12, exp_year: 2034, cvc: '123', ...more },
      });
    assert.equal((await card('4000000000000341')).card?.last4, '0341');
    assert.equal((await failureOf(card('4242424242424241'))).code, 'incorrect_number');
    assert.equal((await failureOf(card('4242424242424242', { exp_year: 2020 }))).code, 'invalid_expiry_year');
    assert.equal((await failureOf(card('4242424242424242', { cvc: '12' }))).code, 'invalid_cvc');
    const real = await failureOf(card('4111111111111111'));
    assert.deepEqual([real.code, real.decline_code], ['card_declined', 'test_mode_live_card']);
  });
});

describe('payment intents', () => {
  test('a saved card is charged without its owner, with the fields that the books need', async () => {
    const customer = await stripe.customers.create({ email: 'b@example.com' });
    const method = await stripe.paymentMethods.attach('pm_card_visa', { customer: customer.id });
    const intent = await stripe.paymentIntents.create({
      ...payment(method.id, { customer: customer.id, off_session: true, error_on_requires_action: true }),
      description: 'Credits',
      receipt_email: 'b@example.com',
      metadata: { order: 'o1' },
      expand: ['latest_charge.balance_transaction', 'customer'],
    });
    assert.deepEqual(
      [
        intent.status,
        intent.amount_received,
        intent.metadata,
        intent.payment_method,
        intent.last_payment_error,
      ],
      ['succeeded', 1_000, { order: 'o1' }, method.id, null],
    );
    assert(intent.client_secret?.startsWith(`${intent.id}_secret_`));
    assert(typeof intent.customer === 'object' && intent.customer?.id === customer.id);
    const charge = chargeIn(intent);
    assert.deepEqual(
      [charge.status, charge.paid, charge.captured, charge.amount_captured, charge.outcome?.type],
      ['succeeded', true, true, 1_000, 'authorized'],
    );
    const { balance_transaction: books } = charge;
    assert(typeof books === 'object' && books !== null);
    // 2.9 % of 10.00 and 0.30
    assert.deepEqual([books.amount, books.fee, books.net, books.source], [1_000, 59, 941, charge.id]);
    assert.equal((await fetch(charge.receipt_url ?? '')).status, 200);
    const { event } = await delivered('payment_intent.succeeded', intent.id);
    assert.equal(event.api_version, '2026-10-28.endive');
    await delivered('charge.succeeded', charge.id);
  });

  test('an intent is made, confirmed, read, listed by customer and time, and canceled', async () => {
    const customer = await stripe.customers.create();
    const made: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      const intent = await stripe.paymentIntents.create({
        amount: 500,
        currency: 'usd',
        customer: customer.id,
      });
      assert.equal(intent.status, 'requires_payment_method');
      made.unshift(intent.id);
    }
    const ids: string[] = [];
    for await (const one of stripe.paymentIntents.list({ customer: customer.id, limit: 2 })) ids.push(one.id);
    assert.deepEqual(ids, made, 'three pages, newest first');
    const [newest = '', second = ''] = made;
    const { created } = await stripe.paymentIntents.retrieve(newest);
    const later = await stripe.paymentIntents.list({ customer: customer.id, created: { gt: created } });
    assert.deepEqual([later.data, later.has_more], [[], false]);
    const from = await stripe.paymentIntents.list({
      customer: customer.id,
      created: { gte: created },
      limit: 1,
    });
    assert.equal(from.data[0]?.id, newest);
    const newer = await stripe.paymentIntents.list({ customer: customer.id, ending_before: made[2] ?? '' });
    assert.deepEqual(
      newer.data.map(({ id }) => id),
      [newest, second],
    );

    const confirmed = await stripe.paymentIntents.confirm(newest, {
      payment_method: 'pm_card_visa',
      return_url: 'http://127.0.0.1:9/back',
    });
    assert.equal(confirmed.status, 'succeeded');
    const canceled = await stripe.paymentIntents.cancel(second, { cancellation_reason: 'abandoned' });
    assert.deepEqual([canceled.status, canceled.cancellation_reason], ['canceled', 'abandoned']);
    const late = await failureOf(stripe.paymentIntents.cancel(newest));
    assert.equal(late.code, 'payment_intent_unexpected_state');
    assert.equal(late.payment_intent?.status, 'succeeded');
  });

  test('what is wrong with a request is said with its parameter, and nothing happens', async () => {
    const refusal = async (call: Promise<unknown>) => {
      const { statusCode, rawType, code, param } = await failureOf(call);
      return [statusCode, rawType, code, param];
    };
    const wrong = 'invalid_request_error';
    const create = (more: object) => stripe.paymentIntents.create({ ...payment('pm_card_visa'), ...more });
    assert.deepEqual(await refusal(create({ amount: 49 })), [400, wrong, 'amount_too_small', 'amount']);
    assert.deepEqual(await refusal(create({ amount: 'ten' })), [
      400,
      wrong,
      'parameter_invalid_integer',
      'amount',
    ]);
    assert.deepEqual(await refusal(create({ surprise: 1 })), [400, wrong, 'parameter_unknown', 'surprise']);
    assert.deepEqual(await refusal(create({ customer: 'cus_none' })), [
      400,
      wrong,
      'resource_missing',
      'customer',
    ]);
    assert.deepEqual(await refusal(create({ payment_method: 'pm_none' })), [
      ...[400, wrong, 'resource_missing', 'payment_method'],
    ]);
    assert.deepEqual(await refusal(create({ automatic_payment_methods: { enabled: true } })), [
      ...[400, wrong, undefined, 'return_url'],
    ]);
    assert.deepEqual(await refusal(stripe.paymentIntents.retrieve('pi_none')), [
      404,
      wrong,
      'resource_missing',
      'id',
    ]);
    assert.deepEqual(await refusal(stripe.charges.retrieve('ch_none', { expand: ['nothing'] })), [
      ...[404, wrong, 'resource_missing', 'id'],
    ]);
    const old = { payment_method_types: ['card'] };
    assert.deepEqual(await refusal(create(old)), [400, wrong, 'parameter_unknown', 'payment_method_types']);
    const unknownCall = await failureOf(stripe.products.list());
    assert.deepEqual([unknownCall.statusCode, unknownCall.rawType], [404, wrong]);
    const stranger = new Stripe('sk_test_other', {
      host: '127.0.0.1',
      port: new URL(provider.url).port,
      protocol: 'http',
    });
    const unauthorized = await failureOf(stranger.customers.list());
    assert(unauthorized instanceof errors.StripeAuthenticationError);
    const used = await stripe.paymentMethods.create({ type: 'card', card: { token: 'tok_visa' } });
    await stripe.paymentIntents.create(payment(used.id));
    assert.match(
      (await failureOf(stripe.paymentIntents.create(payment(used.id)))).message,
      /may not be used again/,
    );
  });
});

describe('test cards', () => {
  // Code, decline code and advice as the provider publishes them for its test cards.
  const declines: [string, string, string | undefined, string | undefined][] = [
    ['pm_card_chargeDeclined', 'card_declined', 'generic_decline', 'try_again_later'],
    ['pm_card_visa_chargeDeclined', 'card_declined', 'generic_decline', 'try_again_later'],
    [
      'pm_card_visa_chargeDeclinedInsufficientFunds',
      'card_declined',
      'insufficient_funds',
      'try_again_later',
    ],
    ['pm_card_chargeDeclinedLostCard', 'card_declined', 'lost_card', 'do_not_try_again'],
    ['pm_card_chargeDeclinedStolenCard', 'card_declined', 'stolen_card', 'do_not_try_again'],
    ['pm_card_chargeDeclinedExpiredCard', 'expired_card', 'expired_card', 'confirm_card_data'],
    ['pm_card_chargeDeclinedIncorrectCvc', 'incorrect_cvc', 'incorrect_cvc', 'confirm_card_data'],
    ['pm_card_chargeDeclinedProcessingError', 'processing_error', 'processing_error', 'try_again_later'],
    ['pm_card_radarBlock', 'card_declined', 'fraudulent', 'do_not_try_again'],
  ];
  for (const [method, code, declineCode, advice] of declines) {
    test(`${method} is declined once, and the intent says why`, async () => {
      const error = await failureOf(
        stripe.paymentIntents.create(payment(method, { metadata: { order: method } })),
      );
      assert(error instanceof errors.StripeCardError);
      assert.deepEqual([error.statusCode, error.code, error.decline_code], [402, code, declineCode]);
      assert.equal((await seenPosts()).length, 1, 'a decline is not tried again');
      const id = error.payment_intent?.id ?? '';
      const intent = await stripe.paymentIntents.retrieve(id, { expand: ['latest_charge'] });
      assert.equal(intent.status, 'requires_payment_method');
      assert.equal(intent.last_payment_error?.code, code);
      assert.equal(intent.last_payment_error?.advice_code, advice);
      const charge = chargeIn(intent);
      assert.deepEqual([charge.status, charge.paid, charge.failure_code], ['failed', false, code]);
      assert.equal(charge.outcome?.type, method === 'pm_card_radarBlock' ? 'blocked' : 'issuer_declined');
      await delivered('payment_intent.payment_failed', id);
    });
  }

  test('a card that declines cannot be saved, but one that declines charges only can', async () => {
    const customer = await stripe.customers.create();
    const refused = await failureOf(
      stripe.paymentMethods.attach('pm_card_chargeDeclined', { customer: customer.id }),
    );
    assert(refused instanceof errors.StripeCardError);
    const method = await stripe.paymentMethods.attach('pm_card_chargeCustomerFail', {
      customer: customer.id,
    });
    const failure = await failureOf(
      stripe.paymentIntents.create(payment(method.id, { customer: customer.id, off_session: true })),
    );
    assert.equal(failure.code, 'card_declined');
    const foreign = await failureOf(stripe.paymentIntents.create(payment(method.id)));
    assert.equal(foreign.statusCode, 400, 'a saved card is charged with its customer only');
  });

  test('a card that asks: off session it must have been set up, and one kind asks always', async () => {
    const customer = await stripe.customers.create();
    const offSession = { customer: customer.id, off_session: true, error_on_requires_action: true };
    const unprepared = await stripe.paymentMethods.attach('pm_card_authenticationRequiredOnSetup', {
      customer: customer.id,
    });
    const error = await failureOf(stripe.paymentIntents.create(payment(unprepared.id, offSession)));
    assert(error instanceof errors.StripeCardError);
    assert.deepEqual(
      [error.code, error.decline_code, error.payment_intent?.status],
      ['authentication_required', 'authentication_required', 'requires_payment_method'],
    );

    const setup = await stripe.setupIntents.create({
      customer: customer.id,
      payment_method: unprepared.id,
      confirm: true,
      automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
    });
    assert.equal(setup.status, 'requires_action');
    await control(provider.url, 'POST', `/intents/${setup.id}/authenticate`, { approve: true });
    assert.equal((await stripe.setupIntents.retrieve(setup.id)).status, 'succeeded');
    const prepared = await stripe.paymentIntents.create(payment(unprepared.id, offSession));
    assert.equal(prepared.status, 'succeeded');

    const always = await stripe.paymentMethods.attach('pm_card_authenticationRequired', {
      customer: customer.id,
    });
    const asked = await failureOf(stripe.paymentIntents.create(payment(always.id, offSession)));
    assert.equal(asked.code, 'authentication_required');
    const intent = await stripe.paymentIntents.create({
      amount: 700,
      currency: 'usd',
      customer: customer.id,
      payment_method: always.id,
      confirm: true,
      return_url: 'http://127.0.0.1:9/back',
    });
    assert.equal(intent.status, 'requires_action');
    assert.equal(intent.next_action?.type, 'redirect_to_url');
    await delivered('payment_intent.requires_action', intent.id);
    const question = intent.next_action?.redirect_to_url?.url ?? '';
    const refusedAt = await fetch(question, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ decision: 'fail' }),
    });
    assert.equal(refusedAt.headers.get('location'), 'http://127.0.0.1:9/back');
    const failed = await stripe.paymentIntents.retrieve(intent.id);
    assert.equal(failed.last_payment_error?.code, 'payment_intent_authentication_failure');
    const eager = await failureOf(
      stripe.paymentIntents.create(
        payment(always.id, { customer: customer.id, error_on_requires_action: true }),
      ),
    );
    assert.deepEqual([eager.statusCode, eager.code], [402, 'authentication_required']);
  });
});

describe('refunds', () => {
  test('money goes back in parts, never more than there was', async () => {
    const intent = await stripe.paymentIntents.create(payment('pm_card_visa'));
    const first = await stripe.refunds.create({
      payment_intent: intent.id,
      amount: 300,
      reason: 'requested_by_customer',
      metadata: { why: 'test' },
    });
    assert.deepEqual([first.status, first.amount, first.charge], ['succeeded', 300, intent.latest_charge]);
    const tooMuch = await failureOf(stripe.refunds.create({ payment_intent: intent.id, amount: 701 }));
    assert.match(tooMuch.message, /\$7\.01.*greater than unrefunded amount.*\$7\.00/);
    const rest = await stripe.refunds.create({ charge: String(intent.latest_charge) });
    assert.equal(rest.amount, 700);
    const again = await failureOf(stripe.refunds.create({ payment_intent: intent.id }));
    assert.equal(again.code, 'charge_already_refunded');
    const charge = await stripe.charges.retrieve(String(intent.latest_charge), { expand: ['refunds'] });
    assert.deepEqual(
      [charge.amount_refunded, charge.refunded, charge.refunds?.data.length],
      [1_000, true, 2],
    );
    const listed = await stripe.refunds.list({ payment_intent: intent.id });
    assert.deepEqual(
      listed.data.map(({ id }) => id),
      [rest.id, first.id],
    );
    await delivered('refund.created', first.id);
    await eventually('two cumulative charge.refunded', () => {
      const amounts = receiver.deliveries.flatMap(({ event }) =>
        event.type === 'charge.refunded' && event.data.object.id === charge.id
          ? event.data.object.amount_refunded
          : [],
      );
      return amounts.includes(300) && amounts.includes(1_000);
    });
  });

  test('a refund can fail later, and one can take its time', async () => {
    const fails = await stripe.paymentIntents.create(payment('pm_card_refundFail'));
    const failing = await stripe.refunds.create({ payment_intent: fails.id });
    assert.equal(failing.status, 'succeeded');
    await delivered('refund.failed', failing.id);
    assert.equal((await stripe.refunds.retrieve(failing.id)).status, 'failed');
    assert.equal((await stripe.charges.retrieve(String(fails.latest_charge))).amount_refunded, 0);

    const waits = await stripe.paymentIntents.create(payment('pm_card_pendingRefund'));
    const pending = await stripe.refunds.create({ payment_intent: waits.id });
    assert.equal(pending.status, 'pending');
    await delivered('refund.updated', pending.id);
    assert.equal((await stripe.refunds.retrieve(pending.id)).status, 'succeeded');
  });
});

describe('disputes', () => {
  test('a disputed charge: money goes at once, comes back when won, and cannot be refunded meanwhile', async () => {
    const intent = await stripe.paymentIntents.create(payment('pm_card_createDispute'));
    const charge = String(intent.latest_charge);
    const { event } = await eventually('the dispute', () =>
      receiver.deliveries.find(
        (one) => one.event.type === 'charge.dispute.created' && one.event.data.object.charge === charge,
      ),
    );
    assert(event.type === 'charge.dispute.created');
    const dispute = event.data.object;
    assert.deepEqual(
      [dispute.status, dispute.reason, dispute.amount, dispute.payment_intent, dispute.is_charge_refundable],
      ['needs_response', 'fraudulent', 1_000, intent.id, false],
    );
    assert(dispute.evidence_details.due_by !== null);
    await delivered('charge.dispute.funds_withdrawn', dispute.id);
    assert.equal((await stripe.charges.retrieve(charge)).disputed, true);
    assert.equal((await failureOf(stripe.refunds.create({ charge }))).code, 'charge_disputed');
    const lost = await stripe.disputes.retrieve(dispute.id);
    assert.deepEqual(
      lost.balance_transactions.map(({ amount, fee }) => [amount, fee]),
      [[-1_000, 1_500]],
    );
    const won = await stripe.disputes.update(dispute.id, {
      evidence: { uncategorized_text: 'winning_evidence' },
    });
    assert.equal(won.status, 'won');
    await delivered('charge.dispute.closed', dispute.id);
    await delivered('charge.dispute.funds_reinstated', dispute.id);
    assert.equal(
      won.balance_transactions.reduce((sum, { amount }) => sum + amount, 0),
      0,
    );
  });

  test('the control page disputes, inquires, warns; a merchant who gives in has lost', async () => {
    const paid = async () =>
      String((await stripe.paymentIntents.create(payment('pm_card_visa'))).latest_charge);
    const charge = await paid();
    const made = await control(provider.url, 'POST', '/disputes', { charge, reason: 'product_not_received' });
    const closed = await stripe.disputes.close(String(made.id));
    assert.deepEqual([closed.status, closed.reason], ['lost', 'product_not_received']);
    assert.equal((await failureOf(stripe.disputes.close(closed.id))).statusCode, 400);

    const asked = await paid();
    const inquiry = await control(provider.url, 'POST', '/disputes', { charge: asked, inquiry: true });
    assert.deepEqual([inquiry.status, inquiry.balance_transactions], ['warning_needs_response', []]);
    const escalated = await control(provider.url, 'POST', `/disputes/${inquiry.id}`, {
      status: 'needs_response',
    });
    assert.equal((escalated.balance_transactions as unknown[]).length, 1);
    await delivered('charge.dispute.funds_withdrawn', String(inquiry.id));

    const warned = await paid();
    await control(provider.url, 'POST', '/early-fraud-warnings', { charge: warned });
    const warnings = await stripe.radar.earlyFraudWarnings.list({ charge: warned });
    assert.equal(warnings.data.length, 1);
    await delivered('radar.early_fraud_warning.created', warnings.data[0]?.id ?? '');
    await control(provider.url, 'POST', '/refunds', { charge: warned, amountCents: 1_000 });
    assert.equal((await stripe.charges.retrieve(warned)).refunded, true);
  });

  test('the books: what the balance moved is what charges, refunds and disputes say', async () => {
    let moved = 0;
    for await (const one of stripe.balanceTransactions.list({ limit: 100 })) moved += one.amount;
    let expected = 0;
    for await (const one of stripe.charges.list({ limit: 100 })) {
      if (one.paid) expected += one.amount - one.amount_refunded;
    }
    for await (const one of stripe.disputes.list({ limit: 100 })) {
      if (['needs_response', 'under_review', 'lost'].includes(one.status)) expected -= one.amount;
    }
    const { totals } = await control(provider.url, 'GET', '');
    assert.equal(moved, expected);
    assert.equal((totals as { netCents: number }).netCents, expected);
  });
});

describe('how the library sees failures', () => {
  const quick = () => libraryFor(provider.url, { timeout: 300 });

  test('an error 500 is tried three times with one key; done or not, the outcome is found', async () => {
    await control(provider.url, 'POST', '/faults', {
      on: 'api',
      fault: 'error-before',
      method: 'POST',
      times: 3,
    });
    const before = await failureOf(stripe.customers.create({ email: 'never@example.com' }));
    assert(before instanceof errors.StripeAPIError);
    const posts = await seenPosts();
    assert.equal(posts.length, 3);
    assert.equal(new Set(posts.map(({ keyDigest }) => keyDigest)).size, 1);
    assert.deepEqual((await stripe.customers.list({ email: 'never@example.com' })).data, []);

    await control(provider.url, 'POST', '/faults', { on: 'api', fault: 'error-after', method: 'POST' });
    const key = { idempotencyKey: 'unknown-outcome' };
    const email = 'done@example.com';
    assert((await failureOf(stripe.customers.create({ email }, key))) instanceof errors.StripeAPIError);
    assert((await failureOf(stripe.customers.create({ email }, key))) instanceof errors.StripeAPIError);
    assert.equal((await stripe.customers.list({ email })).data.length, 1, 'done once, found by looking');
  });

  test('what was done and refused is refused to the repeat as well, and found by looking', async () => {
    await control(provider.url, 'POST', '/faults', { on: 'api', fault: 'refuse-after', method: 'POST' });
    const [key, email] = [{ idempotencyKey: 'done-and-refused' }, 'refused@example.com'];
    for (let ask = 0; ask < 2; ask++) {
      const refused = await failureOf(stripe.customers.create({ email }, key));
      assert(refused instanceof errors.StripeInvalidRequestError);
    }
    assert.equal((await stripe.customers.list({ email })).data.length, 1);
  });

  test('a lost reply or a time-out ends well: the repeat gets the first answer', async () => {
    for (const fault of ['drop-after', 'never-after'] as const) {
      await control(provider.url, 'POST', '/faults', { on: 'api', fault, method: 'POST' });
      const intent = await quick().paymentIntents.create(
        payment('pm_card_visa', { metadata: { order: fault } }),
      );
      assert.equal(intent.lastResponse.headers['idempotent-replayed'], 'true');
      const charges = await stripe.charges.list({ payment_intent: intent.id });
      assert.equal(charges.data.length, 1);
    }
    await control(provider.url, 'POST', '/faults', {
      on: 'api',
      fault: 'drop-before',
      method: 'POST',
      times: 3,
    });
    await control(provider.url, 'DELETE', '/requests');
    const dead = await failureOf(stripe.customers.create());
    assert(dead instanceof errors.StripeConnectionError);
    const posts = await seenPosts();
    assert.deepEqual([posts.length, new Set(posts.map(({ keyDigest }) => keyDigest)).size], [3, 1]);
  });

  test('429 is not tried again; an answer that is no JSON is an error', async () => {
    await control(provider.url, 'POST', '/faults', { on: 'api', fault: 'rate-limit', path: '/v1/customers' });
    const limited = await failureOf(stripe.customers.create());
    assert(limited instanceof errors.StripeRateLimitError);
    assert.equal((await seenPosts()).length, 1);
    await control(provider.url, 'POST', '/faults', { on: 'api', fault: 'garbage' });
    assert((await failureOf(stripe.customers.create())) instanceof errors.StripeAPIError);
  });
});

describe('idempotency', () => {
  test('the same key and parameters get the same answer, whatever their order; others are refused', async () => {
    const key = { idempotencyKey: 'idem-1' };
    const first = await stripe.paymentIntents.create(
      payment('pm_card_visa', { metadata: { a: '1', b: '2' } }),
      key,
    );
    const second = await stripe.paymentIntents.create(
      payment('pm_card_visa', { metadata: { b: '2', a: '1' } }),
      key,
    );
    assert.equal(second.id, first.id);
    assert.equal(first.lastResponse.headers['idempotent-replayed'], undefined);
    assert.equal(second.lastResponse.headers['idempotent-replayed'], 'true');
    assert.equal(second.lastResponse.headers['original-request'], first.lastResponse.requestId);
    assert.equal(second.lastResponse.idempotencyKey, 'idem-1');
    const other = await failureOf(
      stripe.paymentIntents.create(payment('pm_card_visa', { amount: 999 }), key),
    );
    assert(other instanceof errors.StripeIdempotencyError);
    assert.equal(other.statusCode, 400);
    const elsewhere = await failureOf(stripe.customers.create({}, key));
    assert(elsewhere instanceof errors.StripeIdempotencyError);
  });

  test('a decline is kept and given again; a request that was wrong is not', async () => {
    const key = { idempotencyKey: 'idem-2' };
    const first = await failureOf(stripe.paymentIntents.create(payment('pm_card_chargeDeclined'), key));
    const second = await failureOf(stripe.paymentIntents.create(payment('pm_card_chargeDeclined'), key));
    assert.equal(second.payment_intent?.id, first.payment_intent?.id);
    const wrong = { idempotencyKey: 'idem-3' };
    await failureOf(stripe.paymentIntents.create(payment('pm_card_visa', { amount: 1 }), wrong));
    assert.equal((await stripe.paymentIntents.create(payment('pm_card_visa'), wrong)).status, 'succeeded');
  });

  test('fifty at once with one key are one charge; a second comer is told to wait', async () => {
    const key = { idempotencyKey: 'idem-4' };
    await control(provider.url, 'POST', '/faults', {
      on: 'api',
      fault: 'late',
      method: 'POST',
      delayMs: 400,
    });
    const once = libraryFor(provider.url, { maxNetworkRetries: 0 });
    const all = await Promise.allSettled(
      Array.from({ length: 50 }, () =>
        once.paymentIntents.create(payment('pm_card_visa', { metadata: { order: 'race' } }), key),
      ),
    );
    const ids = all.flatMap((one) => (one.status === 'fulfilled' ? one.value.id : []));
    // Who came while it was at work is refused; who came later is told the same.
    assert.equal(new Set(ids).size, 1);
    const refused = all.flatMap((one) => (one.status === 'rejected' ? one.reason : []));
    assert(refused.length > 0, 'nobody came while it was at work');
    for (const error of refused) {
      assert.deepEqual([error.statusCode, error.code], [409, 'idempotency_key_in_use']);
      assert(error instanceof errors.StripeAPIError);
    }
    const replay = await stripe.paymentIntents.create(
      payment('pm_card_visa', { metadata: { order: 'race' } }),
      key,
    );
    assert.equal(replay.id, ids[0]);
  });

  test('after a day a key is new again', async () => {
    const key = { idempotencyKey: 'idem-5' };
    const first = await stripe.customers.create({}, key);
    await control(provider.url, 'POST', '/clock', { advanceSeconds: 24 * 3_600 + 1 });
    assert.notEqual((await stripe.customers.create({}, key)).id, first.id);
  });
});

describe('checkout', () => {
  test('a session has the fields that Farebox relies on, and its lists', async () => {
    const session = await stripe.checkout.sessions.create(
      checkout({
        customer_creation: 'always',
        customer_email: 'c@example.com',
        payment_intent_data: { setup_future_usage: 'off_session', metadata: { order: 'order-8' } },
      }),
    );
    assert.match(session.id, /^cs_test_\w{58}$/);
    assert.deepEqual(
      [
        session.status,
        session.payment_status,
        session.amount_total,
        session.currency,
        session.payment_intent,
      ],
      ['open', 'unpaid', 2_500, 'usd', null],
    );
    assert.deepEqual(
      [session.client_reference_id, session.metadata, session.customer, session.livemode, session.mode],
      ['order-7', { order: 'order-7' }, null, false, 'payment'],
    );
    const lines = await stripe.checkout.sessions.listLineItems(session.id);
    assert.deepEqual(
      lines.data.map(({ description, amount_total, quantity }) => [description, amount_total, quantity]),
      [['Credits, 25 USD', 2_500, 1]],
    );
    const reply = await press(session.url);
    assert.equal(reply.status, 303);
    assert.equal(reply.headers.get('location'), `http://127.0.0.1:9/paid?session=${session.id}`);
    const paid = await stripe.checkout.sessions.retrieve(session.id, {
      expand: ['payment_intent.latest_charge', 'line_items', 'customer'],
    });
    assert.deepEqual([paid.status, paid.payment_status, paid.url], ['complete', 'paid', null]);
    assert.equal(paid.customer_details?.email, 'c@example.com', 'the address it was made with');
    assert(typeof paid.customer === 'object' && paid.customer !== null && !paid.customer.deleted);
    assert.equal(paid.customer.email, 'c@example.com');
    const { payment_intent: intent } = paid;
    assert(typeof intent === 'object' && intent !== null);
    assert.deepEqual([intent.metadata, chargeIn(intent).paid], [{ order: 'order-8' }, true]);
    assert.equal(paid.line_items?.data.length, 1);
    const found = await stripe.checkout.sessions.list({ payment_intent: intent.id });
    assert.deepEqual(
      found.data.map(({ id }) => id),
      [session.id],
    );
    const saved = await stripe.customers.listPaymentMethods(paid.customer.id);
    assert.equal(saved.data[0]?.id, intent.payment_method, 'the card was saved');
    const later = await stripe.paymentIntents.create(
      payment(String(intent.payment_method), { customer: paid.customer.id, off_session: true }),
    );
    assert.equal(later.status, 'succeeded');
    const { event } = await delivered('checkout.session.completed', session.id);
    assert.equal(event.request?.id, null, 'no request of the merchant caused it');
    const twice = await press(session.url ?? '');
    assert.equal(twice.status, 303, 'who presses again is taken to the same place');
    assert.equal((await stripe.charges.list({ payment_intent: intent.id })).data.length, 1);
  });

  test('two tabs that press at the same time pay once', async () => {
    const session = await stripe.checkout.sessions.create(checkout());
    const replies = await Promise.all(Array.from({ length: 8 }, () => press(session.url)));
    for (const reply of replies) assert.equal(reply.status, 303);
    const { payment_intent: intent } = await stripe.checkout.sessions.retrieve(session.id);
    assert.equal((await stripe.charges.list({ payment_intent: String(intent) })).data.length, 1);
    await delivered('checkout.session.completed', session.id);
    const completed = receiver.deliveries.filter(
      ({ event }) => event.type === 'checkout.session.completed' && event.data.object.id === session.id,
    );
    assert.equal(completed.length, 1);
  });

  test('an older authentication cannot approve what another tab has paid', async () => {
    const session = await stripe.checkout.sessions.create(checkout());
    const asked = await press(session.url, { number: '4000002500003155' });
    const question = asked.headers.get('location') ?? '';
    assert.match(question, /\/authenticate\/pi_/);
    assert.equal((await press(session.url)).status, 303);
    const late = await fetch(question, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ decision: 'approve' }),
    });
    assert.equal(late.status, 404);
    const { payment_intent: intent } = await stripe.checkout.sessions.retrieve(session.id);
    assert.equal((await stripe.charges.list({ payment_intent: String(intent) })).data.length, 1);
  });

  test('an open session expires by call or by time, a paid one does not; the intent goes with it', async () => {
    const session = await stripe.checkout.sessions.create(checkout());
    await press(session.url, { number: '4000000000000002' });
    const declined = await stripe.checkout.sessions.retrieve(session.id);
    assert.deepEqual([declined.status, typeof declined.payment_intent], ['open', 'string']);
    const expired = await stripe.checkout.sessions.expire(session.id);
    assert.deepEqual([expired.status, expired.payment_status, expired.url], ['expired', 'unpaid', null]);
    const intent = await stripe.paymentIntents.retrieve(String(declined.payment_intent));
    assert.equal(intent.status, 'canceled');
    assert.equal((await press(session.url)).status, 200, 'the page says that it is over');
    assert.equal((await failureOf(stripe.checkout.sessions.expire(session.id))).statusCode, 400);

    const short = await failureOf(
      stripe.checkout.sessions.create(checkout({ expires_at: Math.floor(Date.now() / 1_000) + 60 })),
    );
    assert.equal(short.param, 'expires_at');
    const timed = await stripe.checkout.sessions.create(checkout());
    await control(provider.url, 'POST', '/clock', { advanceSeconds: 24 * 3_600 });
    await delivered('checkout.session.expired', timed.id);
    assert.equal((await stripe.checkout.sessions.retrieve(timed.id)).status, 'expired');
  });
});

describe('webhooks', () => {
  test('a delivery that fails comes again, signed anew; types are picked by endpoints', async () => {
    const other = await startReceiver();
    const endpoint = await stripe.webhookEndpoints.create({
      url: other.url,
      enabled_events: ['customer.updated'],
    });
    assert.match(endpoint.secret ?? '', /^whsec_/);
    other.secret = endpoint.secret ?? '';
    assert.equal((await stripe.webhookEndpoints.retrieve(endpoint.id)).secret, undefined);
    const { id } = await stripe.customers.create();
    await stripe.customers.update(id, { name: 'B' });
    await eventually('the type that was asked for', () => other.deliveries.length > 0);
    assert.deepEqual(
      other.deliveries.map(({ event }) => event.type),
      ['customer.updated'],
    );
    await delivered('customer.updated', id);
    await stripe.webhookEndpoints.del(endpoint.id);
    assert.deepEqual(
      (await stripe.webhookEndpoints.list()).data.filter(({ id: listed }) => listed === endpoint.id),
      [],
    );
    await other.stop();

    receiver.answers.push(500, 302);
    const customer = await stripe.customers.create({ email: 'again@example.com' });
    const tries = await eventually('three tries', () => {
      const all = receiver.deliveries.filter(
        ({ event }) => event.type === 'customer.created' && event.data.object.id === customer.id,
      );
      return all.length === 3 && all;
    });
    const [first, second, third] = tries;
    assert.equal(new Set(tries.map(({ event }) => event.id)).size, 1);
    assert.notEqual(first?.signature, third?.signature);
    assert.deepEqual(first?.body, second?.body);
    assert.throws(() => {
      stripe.webhooks.constructEvent(
        Buffer.concat([first?.body ?? Buffer.alloc(0), Buffer.from(' ')]),
        first?.signature ?? '',
        WEBHOOK_SECRET,
      );
    }, /No signatures found/);
    assert.equal(first?.event.pending_webhooks, 1);
    const read = await stripe.events.retrieve(first?.event.id ?? '');
    assert.equal(read.type, 'customer.created');
    assert.match(read.request?.idempotency_key ?? '', /^stripe-node-retry-/);
  });

  test('dropped, doubled, echoed and reversed on demand; what was dropped is in the list', async () => {
    const mine = (id: string) =>
      receiver.deliveries.filter(({ event }) => 'id' in event.data.object && event.data.object.id === id);
    const fault = (fields: object) => control(provider.url, 'POST', '/faults', { on: 'webhook', ...fields });
    await fault({ fault: 'drop', type: 'customer.created' });
    const lost = await stripe.customers.create({ email: 'lost@example.com' });
    await fault({ fault: 'duplicate' });
    const doubled = await stripe.customers.create();
    const twice = await eventually('a duplicate', () => mine(doubled.id).length === 2 && mine(doubled.id));
    assert.equal(new Set(twice.map(({ event }) => event.id)).size, 1);
    await fault({ fault: 'echo' });
    const echoed = await stripe.customers.create();
    const both = await eventually('an echo', () => mine(echoed.id).length === 2 && mine(echoed.id));
    assert.equal(new Set(both.map(({ event }) => event.id)).size, 2);
    await fault({ fault: 'reorder', times: 3 });
    const intent = await stripe.paymentIntents.create(payment('pm_card_visa'));
    await delivered('payment_intent.created', intent.id);
    const types = receiver.deliveries.flatMap(({ body, event }) =>
      body.includes(intent.id) ? event.type : [],
    );
    assert.deepEqual(types, ['payment_intent.succeeded', 'charge.succeeded', 'payment_intent.created']);

    assert.deepEqual(mine(lost.id), []);
    const missed: string[] = [];
    const since = { created: { gte: lost.created }, delivery_success: false, type: 'customer.created' };
    for await (const event of stripe.events.list(since)) {
      if ('id' in event.data.object && typeof event.data.object.id === 'string')
        missed.push(event.data.object.id);
    }
    assert.deepEqual(missed, [lost.id]);
    await fault({ fault: 'delay', delayMs: 600_000 });
    const delayed = await stripe.customers.create();
    const next = await stripe.customers.create();
    await delivered('customer.created', next.id);
    assert.deepEqual(mine(delayed.id), []);
    await control(provider.url, 'POST', '/webhooks/release');
    await delivered('customer.created', delayed.id);
  });
});

test('a restart forgets nothing: objects, keys, deliveries under way; and no card number is in the state', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'cards-'));
  const receiverLater = await startReceiver();
  const options = {
    stateDir,
    webhooks: [{ url: receiverLater.url, secret: WEBHOOK_SECRET, events: ['customer.created'] }],
    secretKey: SECRET_KEY,
  };
  try {
    const first = await startCardProvider(options);
    const library = libraryFor(first.url);
    await control(first.url, 'POST', '/faults', { on: 'webhook', fault: 'delay', delayMs: 600_000 });
    const customer = await library.customers.create();
    const key = { idempotencyKey: 'secret-of-a-caller' };
    const method = await library.paymentMethods.create({
      type: 'card',
      card: { number: '4242424242424242', exp_month: 12, exp_year: 2034, cvc: '987' },
    });
    const intent = await library.paymentIntents.create(payment(method.id), key);
    const session = await library.checkout.sessions.create(checkout());
    await press(session.url, { number: '4000000000000002', cvc: '986' });
    const answered = readFileSync(join(stateDir, 'cards.json'), 'utf8');
    assert(answered.includes(intent.id) && answered.includes(session.id), 'saved before it is answered');
    await first.stop();

    assert.deepEqual(readdirSync(stateDir), ['cards.json']);
    const state = readFileSync(join(stateDir, 'cards.json'), 'utf8');
    for (const secret of ['4242424242424242', '4000000000000002', '"987"', '"986"']) {
      assert(!state.includes(secret), secret);
    }

    const second = await startCardProvider(options);
    const again = libraryFor(second.url);
    assert.equal((await again.customers.retrieve(customer.id)).id, customer.id);
    const replay = await again.paymentIntents.create(payment(method.id), key);
    assert.equal(replay.id, intent.id);
    assert.equal(replay.lastResponse.headers['idempotent-replayed'], 'true');
    const open = await again.checkout.sessions.retrieve(session.id);
    assert(open.url?.startsWith(second.url));
    assert.equal((await press(open.url)).status, 303);
    assert.equal(receiverLater.deliveries.length, 0);
    await control(second.url, 'POST', '/clock', { advanceSeconds: 601 });
    await eventually('the delayed delivery', () => receiverLater.deliveries.length === 1);
    await second.stop();
  } finally {
    await receiverLater.stop();
    rmSync(stateDir, { recursive: true });
  }
});
