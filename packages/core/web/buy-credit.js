/** Buying credit by card, for a person: choose, pay on the card provider's page, come back to the key. */
import { formatUsd } from './amount.js';
import { byId, el, notice } from './dom.js';
import { rememberedKey, rememberKey } from './key-session.js';
import { lookAgain, retryAfterMsOf } from './look-again.js';
import { forgetCheckout, isWebAddress, keepCheckout, MAX_OPEN, openCheckouts } from './open-checkouts.js';
import { freshKey } from './trial-key.js';

const CHECKOUT = '/api/m2m/credits/checkout';
/** About an hour, which is how long a checkout is open: often at first, for who comes back from paying. */
const PAUSES_MS = [...Array(10).fill(2_000), ...Array(20).fill(5_000), ...Array(120).fill(30_000)];
const CHOSEN_FIRST_USD = 10;

/**
 * Says in the form which key credit could be bought for.
 *
 * @param {string|null} prefix of the key that is open on this page; null: none is
 */
export function offerCreditFor(prefix) {
  byId('buy-for-key').textContent = `${prefix}…`;
  byId('buy-for').hidden = prefix === null;
  showNameField();
}

function isForNewKey() {
  return byId('buy-for').hidden || byId('buy-form').elements.namedItem('for').value === 'new';
}

/** Only a new key can be given a name here. */
function showNameField() {
  byId('buy-name-field').hidden = !isForNewKey();
}

/**
 * Brings the form and the open checkouts of this tab to life.
 *
 * @param {{ amountUsd: number, label: string, description: string }[]} tiers what a card can buy
 * @param {(key: string) => void} onKey told of each key that was bought, or got credit; this tab remembers a new one
 *   by then
 */
export function offerCredit(tiers, onKey) {
  const form = byId('buy-form');
  const outcome = byId('buy-message');
  const submit = form.querySelector('button[type=submit]');
  const recharge = byId('buy-recharge');
  byId('tiers').replaceChildren(...tiers.map(tierChoice));
  showRechargeFields();

  byId('buy-for').addEventListener('change', showNameField);
  recharge.addEventListener('change', showRechargeFields);
  function showRechargeFields() {
    byId('buy-recharge-fields').hidden = !recharge.checked;
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = true;
    outcome.replaceChildren();
    try {
      const { checkoutUrl } = await openCheckout(chosen(form), isForNewKey() ? null : rememberedKey());
      // In this tab: it holds what the key is handed over against, and the way back leads here.
      location.assign(checkoutUrl);
    } catch (error) {
      outcome.replaceChildren(notice('bad', error.message));
      submit.disabled = false;
    }
  });
  // Who comes back by the browser's own button finds the page as it was left.
  addEventListener('pageshow', ({ persisted }) => {
    submit.disabled = false;
    if (persisted) showOpenCheckouts(onKey);
  });
  showOpenCheckouts(onKey);
}

function tierChoice({ amountUsd, label, description }) {
  const input = el('input', { type: 'radio', name: 'amount', value: amountUsd, required: true });
  input.checked = amountUsd === CHOSEN_FIRST_USD;
  return el(
    'label',
    { class: 'tier' },
    input,
    el('span', { class: 'price' }, `$${amountUsd}`),
    el('span', { class: 'name' }, label),
    el('span', { class: 'hint' }, callsOf(description)),
  );
}

/** "10 USD of credits: 40 calls at $0.25, …": the amount stands beside it already. */
function callsOf(description) {
  return description.split(': ').at(-1) ?? description;
}

/** The request that the form spells. */
function chosen(form) {
  const text = (name) => form.elements.namedItem(name).value.trim();
  return {
    amountUsd: Number(form.elements.namedItem('amount').value),
    ...(text('email') === '' ? {} : { email: text('email') }),
    ...(text('keyName') === '' || !isForNewKey() ? {} : { keyName: text('keyName') }),
    ...(byId('buy-recharge').checked
      ? {
          autoRecharge: {
            enabled: true,
            ...(text('threshold') === '' ? {} : { thresholdUsd: text('threshold') }),
            ...(text('topUp') === '' ? {} : { topUpUsd: text('topUp') }),
          },
        }
      : {}),
  };
}

/**
 * @param {string|null} apiKey whose credit it is to be; null: a new key's
 * @throws Error that may be shown
 */
async function openCheckout(request, apiKey) {
  if (openCheckouts().length >= MAX_OPEN)
    throw new Error(
      'This tab has enough open checkouts. Pay one of them, or come back when they have ended.',
    );
  let response;
  let opened;
  try {
    response = await fetch(`${CHECKOUT}/session`, {
      method: 'POST',
      cache: 'no-store',
      headers: {
        'content-type': 'application/json',
        ...(apiKey === null ? {} : { 'x-api-key': apiKey }),
      },
      body: JSON.stringify(request),
    });
    opened = await response.json();
  } catch {
    throw new Error('The server could not be reached. Nothing was charged.');
  }
  if (!response.ok) throw new Error(opened.message ?? `The server answered ${response.status}.`);
  const { sessionId, retrievalToken, checkoutUrl, amountUsd, expiresAt } = opened;
  if (!isWebAddress(checkoutUrl)) throw new Error('The server gave no page to pay on.');
  const isNewKey = apiKey === null;
  const checkout = { sessionId, retrievalToken, checkoutUrl, amountUsd, expiresAt, isNewKey };
  keepCheckout(checkout);
  return checkout;
}

let endWatching = [];

function showOpenCheckouts(onKey) {
  for (const end of endWatching) end();
  endWatching = [];
  byId('checkouts').replaceChildren(
    ...openCheckouts().map((checkout) => {
      const { element, end } = openCheckoutView(checkout, onKey);
      endWatching.push(end);
      return element;
    }),
  );
}

/** One checkout that waits: its payment page, how it stands, and in the end its key. */
function openCheckoutView(checkout, onKey) {
  const { sessionId, retrievalToken, checkoutUrl, amountUsd } = checkout;
  const price = formatUsd(amountUsd);
  const words = el('p', { role: 'status' }, 'Looking whether it was paid …');
  const again = el('button', { type: 'button', class: 'secondary', hidden: true }, 'Look again');
  const pay = el('a', { class: 'button', href: checkoutUrl, hidden: true }, `Pay ${price}`);
  const element = el(
    'section',
    { class: 'notice plain', 'aria-label': `Checkout of ${price}` },
    el('strong', {}, `Your checkout of ${price}`),
    words,
    el('div', { class: 'actions' }, pay, again),
  );
  const say = (text) => {
    if (words.textContent !== text) words.textContent = text;
  };

  async function look() {
    let response;
    let status;
    try {
      response = await fetch(`${CHECKOUT}/status/${sessionId}`, {
        cache: 'no-store',
        headers: { 'x-retrieval-token': retrievalToken },
      });
      status = await response.json();
    } catch {
      say('The server cannot be reached. This page looks again by itself; a payment is not lost.');
      return { done: false };
    }
    if (response.status === 403 || response.status === 400) {
      forgetCheckout(sessionId);
      element.replaceChildren(
        el('p', { role: 'status' }, 'The server does not know this checkout any more.'),
      );
      return { done: true };
    }
    if (!response.ok) {
      say('The server is busy. This page looks again by itself; a payment is not lost.');
      return { done: false, retryAfterMs: retryAfterMsOf(response) };
    }
    if (status.keyReady === true) {
      // Remembered first: it is not told for ever.
      rememberKey(status.apiKey);
      forgetCheckout(sessionId);
      const fresh = freshKey(status.apiKey, `Paid. Your new key, with ${price} of credit.`);
      element.replaceWith(fresh);
      fresh.scrollIntoView({ block: 'nearest' });
      onKey(status.apiKey);
      return { done: true };
    }
    if (status.status === 'pending') {
      pay.hidden = false;
      const appears = checkout.isNewKey ? ' The key appears here.' : '';
      say(`No payment is confirmed yet. Its page is open until ${clockOf(checkout.expiresAt)}.${appears}`);
      return { done: false };
    }
    forgetCheckout(sessionId);
    if (status.status === 'paid') {
      element.replaceWith(notice('good', `Paid. ${price} of credit went to the key that you chose.`));
      onKey(rememberedKey());
      return { done: true };
    }
    element.replaceChildren(
      el('strong', {}, `Your checkout of ${price}`),
      el(
        'p',
        { role: 'status' },
        status.status === 'expired'
          ? 'Nobody paid in time, and nothing was charged.'
          : 'It is paid, and its key was handed over before. It cannot be shown again.',
      ),
    );
    return { done: true };
  }

  const watch = () =>
    lookAgain(look, {
      pausesMs: PAUSES_MS,
      onGivenUp() {
        say('Nothing has been heard of a payment, so this page has stopped looking.');
        again.hidden = false;
      },
    });
  let endLooking = watch();
  again.addEventListener('click', () => {
    again.hidden = true;
    endLooking = watch();
  });
  return { element, end: () => endLooking() };
}

function clockOf(iso) {
  return new Date(iso).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
}
