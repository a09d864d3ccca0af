/** What a person sees: the checkout page, the bank's question, and the receipt. */
import type { Params } from './form.ts';
import { dollars } from './money.ts';
import type { Charge, CheckoutSession, PaymentIntent, SetupIntent } from './objects.ts';
import { escapeHtml, type Page, page } from './page.ts';
import type { Order } from './records.ts';
import { isEmail } from './sessions.ts';
import { TEST_CARDS } from './test-cards.ts';

const FIELDS = ['email', 'number', 'expiry', 'cvc'] as const;
type Field = (typeof FIELDS)[number];

/** What a person typed in, and what is wrong with it. Only the e-mail address is ever shown again. */
export interface Typed {
  email: string;
  number: string;
  expMonth: number;
  expYear: number;
  cvc: string;
  wrong: Partial<Record<Field, string>>;
}

/** Reads the form of the checkout page. `expiry` is MM/YY or MM/YYYY. */
export function readTyped(params: Params, knownEmail: string | null): Typed {
  const email = knownEmail ?? params.text('email', 300)?.trim() ?? '';
  const number = (params.text('number', 40) ?? '').replaceAll(/[ -]/g, '');
  const expiry = /^\s*(\d{1,2})\s*\/\s*(\d{2}|\d{4})\s*$/.exec(params.text('expiry', 20) ?? '');
  const cvc = (params.text('cvc', 10) ?? '').trim();
  const wrong: Typed['wrong'] = {};
  if (!isEmail(email)) wrong.email = 'Enter an e-mail address such as name@example.com.';
  if (!/^\d{12,19}$/.test(number)) wrong.number = 'Enter the 12 to 19 digits of the card number.';
  if (expiry === null) wrong.expiry = 'Enter month and year as MM/YY.';
  if (!/^\d{3,4}$/.test(cvc)) wrong.cvc = 'Enter the 3 or 4 digits of the security code.';
  return { email, number, expMonth: Number(expiry?.[1] ?? 0), expYear: Number(expiry?.[2] ?? 0), cvc, wrong };
}

interface Trouble {
  email: string;
  message: string | null;
  wrong: Typed['wrong'];
}

/** The page of an open session. */
export function checkoutPage(
  session: CheckoutSession,
  order: Order,
  knownEmail: string | null,
  trouble: Trouble | null,
): Page {
  const price = amountOf(session.amount_total, session.currency);
  const lines = order.lines.map(
    ({ description, quantity, amount_total, currency }) =>
      `<li><span>${escapeHtml(description)}${quantity > 1 ? ` × ${quantity}` : ''}</span><span>${amountOf(amount_total, currency)}</span></li>`,
  );
  const message =
    trouble?.message ??
    (Object.keys(trouble?.wrong ?? {}).length > 0 ? 'Please look at the marked fields.' : null);
  const field = (name: Field, label: string, attributes: string, value = '') => {
    const wrong = trouble?.wrong[name];
    const invalid = wrong === undefined ? '' : ` aria-invalid="true" aria-describedby="${name}-wrong"`;
    return (
      `<div><label for="${name}">${label}</label>` +
      `<input id="${name}" name="${name}" ${attributes} value="${escapeHtml(value)}" required${invalid}>` +
      `${wrong === undefined ? '' : `<p class="soft" id="${name}-wrong">${escapeHtml(wrong)}</p>`}</div>`
    );
  };
  const email =
    knownEmail === null
      ? field('email', 'E-mail', 'type="email" autocomplete="email" maxlength="254"', trouble?.email ?? '')
      : `<p class="soft">Receipt to ${escapeHtml(knownEmail)}</p>`;
  const body =
    `<h1>Pay with a test card</h1><p class="amount">${price}</p><ul class="lines">${lines.join('')}</ul>` +
    `${message === null ? '' : `<p class="error" role="alert">${escapeHtml(message)}</p>`}` +
    `<form method="post" action="/c/pay/${session.id}" autocomplete="on">${email}` +
    field(
      'number',
      'Card number',
      'inputmode="numeric" autocomplete="cc-number" maxlength="30" placeholder="4242 4242 4242 4242"',
    ) +
    `<div class="pair">${field('expiry', 'Expiry (MM/YY)', 'inputmode="text" autocomplete="cc-exp" maxlength="9" placeholder="12/34"')}` +
    `${field('cvc', 'Security code (CVC)', 'inputmode="numeric" autocomplete="cc-csc" maxlength="4" placeholder="123"')}</div>` +
    `${order.futureUsage === null ? '' : '<p class="soft">This card is saved, so that later payments that you have agreed to can be made without you.</p>'}` +
    `${order.submitText == null ? '' : `<p>${escapeHtml(order.submitText)}</p>`}` +
    `<button type="submit">Pay ${price}</button></form>` +
    `${session.cancel_url === null ? '' : `<p><a href="${escapeHtml(session.cancel_url)}">Cancel and go back</a></p>`}` +
    testCards();
  return page({
    title: `Pay ${price}`,
    body,
    formTargets: [session.success_url, ...(session.cancel_url === null ? [] : [session.cancel_url])],
  });
}

/** The cards that show a person each way it can go. */
function testCards(): string {
  const shown: [name: string, effect: string][] = [
    ['visa', 'pays'],
    ['declined', 'is declined'],
    ['insufficient-funds', 'has insufficient funds'],
    ['asks-unless-set-up', 'asks for authentication'],
    ['disputed', 'pays, then its owner disputes'],
  ];
  const rows = shown.map(([name, effect]) => {
    const digits = TEST_CARDS.find((card) => card.name === name)?.number ?? '';
    return `<li><code>${digits.replaceAll(/(\d{4})(?=\d)/g, '$1 ')}</code> ${effect}</li>`;
  });
  return `<details><summary>Test cards</summary><ul>${rows.join('')}</ul><p class="soft">Any expiry in the future, any security code.</p></details>`;
}

/** The page of a session that nothing can be paid with any more. */
export function closedPage(session: CheckoutSession | null): Page {
  const back = session?.cancel_url ?? null;
  const body =
    `<h1>${session === null ? 'There is no such payment' : 'This payment has expired'}</h1>` +
    '<p>Nothing was charged here. Ask for a new link where you came from.</p>' +
    `${back === null ? '' : `<p><a class="button full" href="${escapeHtml(back)}">Go back</a></p>`}`;
  return page({ title: 'Not open', body });
}

/** The bank's question, as a second page. */
export function authenticationPage(
  intent: PaymentIntent | SetupIntent,
  path: string,
  returnUrls: readonly string[],
): Page {
  const what =
    intent.object === 'payment_intent'
      ? `a payment of ${amountOf(intent.amount, intent.currency)}`
      : 'saving your card for later payments';
  const body =
    '<h1>Your bank asks: is it you?</h1>' +
    `<p>The sandbox stands in for the bank of this card. Approve or refuse ${what}.</p>` +
    `<form method="post" action="${path}">` +
    '<button type="submit" name="decision" value="approve">Approve</button>' +
    '<button class="plain" type="submit" name="decision" value="fail">Fail authentication</button></form>';
  return page({ title: 'Authentication', body, formTargets: returnUrls });
}

/** What is said when the answer to the bank has nowhere to go back to, or comes too late. */
export function authenticatedPage(text: string): Page {
  return page({
    title: 'Authentication',
    body: `<h1>${escapeHtml(text)}</h1><p>You can close this page.</p>`,
  });
}

/** A receipt for a charge that succeeded. */
export function receiptPage(charge: Charge): Page {
  const refunded =
    charge.amount_refunded === 0
      ? ''
      : `<li><span>Refunded</span><span>−${amountOf(charge.amount_refunded, charge.currency)}</span></li>`;
  const body =
    `<h1>Receipt</h1><p class="amount">${amountOf(charge.amount, charge.currency)}</p><ul class="lines">` +
    `<li><span>Paid</span><span>${new Date(charge.created * 1_000).toISOString().slice(0, 10)}</span></li>` +
    `<li><span>Card ending in</span><span>${charge.payment_method_details.card.last4}</span></li>` +
    `${refunded}</ul><p class="soft">${escapeHtml(charge.id)}</p>`;
  return page({ title: 'Receipt', body });
}

/** 1234 usd as $12.34, other currencies with their code. */
export function amountOf(cents: number, currency: string): string {
  return currency === 'usd' ? dollars(cents) : `${(cents / 100).toFixed(2)} ${currency.toUpperCase()}`;
}
