/** The pages in a real Chromium, on a phone's screen: paying, being declined, being asked by the bank, two tabs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type Stripe from 'stripe';
import { launchBrowser } from '../browser.fixture.ts';
import type { CardProvider } from './card-provider.ts';
import { libraryFor, type Receiver, startBoth } from './cards.fixture.ts';

const PHONE = { width: 390, height: 844 };

let provider: CardProvider;
let receiver: Receiver;
let stripe: Stripe;
let browser: Browser;
before(async () => {
  ({ provider, receiver } = await startBoth());
  stripe = libraryFor(provider.url);
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await provider.stop();
  await receiver.stop();
});

/** A session that comes back to a page of another origin, as Farebox's is. */
function session(more: Partial<Stripe.Checkout.SessionCreateParams> = {}) {
  const merchant = receiver.url.replace('/hooks', '');
  return stripe.checkout.sessions.create({
    mode: 'payment',
    line_items: [
      {
        quantity: 1,
        price_data: { currency: 'usd', unit_amount: 1_000, product_data: { name: 'Credits <10 USD>' } },
      },
    ],
    success_url: `${merchant}/paid?session={CHECKOUT_SESSION_ID}`,
    cancel_url: `${merchant}/canceled`,
    customer_creation: 'always',
    ...more,
  });
}

async function open(url: string | null): Promise<{ page: Page; troubles: string[] }> {
  const page = await browser.newPage({ viewport: PHONE });
  const troubles: string[] = [];
  page.on('pageerror', (error) => troubles.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') troubles.push(message.text());
  });
  await page.goto(url ?? '');
  return { page, troubles };
}

async function fill(page: Page, number: string): Promise<void> {
  const email = page.getByLabel('E-mail');
  if ((await email.count()) > 0) await email.fill('person@example.com');
  await page.getByLabel('Card number').fill(number);
  await page.getByLabel('Expiry (MM/YY)').fill('12/34');
  await page.getByLabel('Security code (CVC)').fill('123');
}

async function pressPay(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Pay $10.00' }).click();
}

test('a declined card is said, the next one pays, and the person is back at the merchant', async () => {
  const made = await session();
  const { page, troubles } = await open(made.url);
  assert.match((await page.getByRole('note').textContent()) ?? '', /Sandbox card provider/);
  assert.match((await page.textContent('main')) ?? '', /Credits <10 USD>/);
  const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
  assert(Number(overflow) <= 0, `${overflow} px too wide on a phone`);
  assert(!/stripe/i.test((await page.textContent('body')) ?? ''));

  await page.getByLabel('E-mail').fill('person@example.com');
  await page.getByLabel('Card number').fill('12');
  await page.getByLabel('Expiry (MM/YY)').fill('13');
  await page.getByLabel('Security code (CVC)').fill('1');
  await pressPay(page);
  await page.getByRole('alert').waitFor();
  assert.equal(await page.locator('[aria-invalid=true]').count(), 3);
  assert.equal(await page.getByLabel('E-mail').inputValue(), 'person@example.com');

  await fill(page, '4000 0000 0000 9995');
  await pressPay(page);
  await page.getByText('Your card has insufficient funds.').waitFor();
  assert.equal(await page.getByLabel('Card number').inputValue(), '', 'a card number never comes back');
  await fill(page, '4242 4242 4242 4242');
  await pressPay(page);
  await page.waitForURL(/\/paid\?session=cs_test_/);
  const paid = await stripe.checkout.sessions.retrieve(made.id);
  assert.deepEqual([paid.payment_status, paid.customer_details?.email], ['paid', 'person@example.com']);
  assert.deepEqual(troubles, []);
  await page.goBack();
  await page.waitForURL(/\/paid\?session=/);
  await page.close();
});

test('the bank asks on a second page: refused, then approved; the card is then good without its owner', async () => {
  const made = await session({ payment_intent_data: { setup_future_usage: 'off_session' } });
  const { page, troubles } = await open(made.url);
  await fill(page, '4000002500003155');
  await pressPay(page);
  await page.getByRole('button', { name: 'Fail authentication' }).click();
  await page.getByText('We are unable to authenticate your payment method.').waitFor();
  await fill(page, '4000002500003155');
  await pressPay(page);
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.waitForURL(/\/paid\?session=/);
  const paid = await stripe.checkout.sessions.retrieve(made.id, { expand: ['payment_intent'] });
  assert(typeof paid.payment_intent === 'object' && paid.payment_intent !== null);
  const later = await stripe.paymentIntents.create({
    amount: 500,
    currency: 'usd',
    confirm: true,
    off_session: true,
    customer: String(paid.customer),
    payment_method: String(paid.payment_intent.payment_method),
    automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
  });
  assert.equal(later.status, 'succeeded');
  assert.deepEqual(troubles, []);
  await page.close();
});

test('two tabs pay once, and an expired session says so', async () => {
  const made = await session();
  const tabs = await Promise.all([open(made.url), open(made.url)]);
  for (const { page } of tabs) await fill(page, '4242424242424242');
  await Promise.all(tabs.map(({ page }) => pressPay(page)));
  for (const { page } of tabs) {
    await page.waitForURL(/\/paid\?session=/);
    await page.close();
  }
  const { payment_intent: intent } = await stripe.checkout.sessions.retrieve(made.id);
  assert.equal((await stripe.charges.list({ payment_intent: String(intent) })).data.length, 1);

  const gone = await session();
  const { page } = await open(gone.url);
  await fill(page, '4242424242424242');
  await stripe.checkout.sessions.expire(gone.id);
  await pressPay(page);
  await page.getByRole('heading', { name: 'This payment has expired' }).waitFor();
  await page.getByRole('link', { name: 'Go back' }).click();
  await page.waitForURL(/\/canceled/);
  await page.close();
});

test('the control page disputes a charge and orders a fault', async () => {
  const { page, troubles } = await open(provider.url);
  await page.getByRole('button', { name: 'Dispute' }).first().click();
  await page.getByText('fraudulent, needs_response').waitFor();
  await page.getByRole('button', { name: 'Drop' }).click();
  await page.getByText('webhook drop × 1').waitFor();
  await page.getByRole('button', { name: 'Forget them' }).click();
  await page.getByText('Faults on order: none').waitFor();
  assert.deepEqual(troubles, []);
  await page.close();
});
