/**
 * What a person sees who comes back from the card provider's page. A session's id shows what was bought, and leads to no
 * key. What stands behind the # of the link does: it is taken out of the address at once, and sent only in a body.
 */
import { formatUsd } from './amount.js';
import { cardWords } from './card-words.js';
import { byId, el, SHOP } from './dom.js';
import { lookAgain, retryAfterMsOf } from './look-again.js';
import { offerKey } from './lost-key.js';
import { momentWords } from './moments.js';
import { openCheckouts } from './open-checkouts.js';

/** A payment is mostly known at once; after these two minutes nobody wants to watch any longer. */
const PAUSES_MS = [
  1_000, 1_000, 2_000, 2_000, 3_000, 3_000, 5_000, 5_000, 10_000, 10_000, 15_000, 20_000, 20_000, 20_000,
];

const title = byId('title');
const status = byId('status');

/** The session that the address named. The history's entry keeps it for a reload; the address does not. */
function takeSession() {
  const named = new URLSearchParams(location.search).get('session');
  const session = named ?? history.state?.session ?? '';
  const proof = /^#[\w-]{22}$/.test(location.hash) ? location.hash.slice(1) : (history.state?.proof ?? null);
  history.replaceState({ session, proof }, '', location.pathname);
  return /^cs_\w{8,200}$/.test(session) ? { session, proof } : null;
}

function say(heading, text) {
  if (title.textContent !== heading) {
    title.textContent = heading;
    document.title = `${heading} · ${SHOP}`;
  }
  // The same words again would be read aloud again.
  if (status.textContent !== text) status.textContent = text;
}

function decided(heading, text, { canStart = true } = {}) {
  say(heading, text);
  byId('start').hidden = !canStart;
  return { done: true };
}

async function look({ session, proof }) {
  let response;
  let summary;
  try {
    response = await fetch(`/api/m2m/credits/checkout/summary/${session}`, { cache: 'no-store' });
    summary = await response.json();
  } catch {
    say('Your payment', 'The server cannot be reached. That changes nothing about your payment.');
    return { done: false };
  }
  if (response.status === 404 || response.status === 400) {
    return decided(
      'Unknown payment',
      'There is no such payment here. If you paid, ask your agent how it went.',
    );
  }
  if (!response.ok) {
    say(
      'Your payment',
      'The server is busy. That changes nothing about your payment; this page looks again.',
    );
    return { done: false, retryAfterMs: retryAfterMsOf(response) };
  }
  switch (summary.paymentStatus) {
    case 'paid':
      showReceipt(summary, session);
      void offerKey({ sessionId: session, proof, isOwnTab: !byId('for-tab').hidden });
      return decided('Paid. Thank you.', `${formatUsd(summary.creditUsd)} of credit is ready.`, {
        canStart: false,
      });
    case 'expired':
      return decided(
        'Nothing was charged',
        'This checkout was not paid in time, and it cannot be paid any more. Ask your agent for a new link, or start again here.',
      );
    default:
      say('Your payment', 'The card provider has not confirmed it yet. This page looks again by itself.');
      return { done: false };
  }
}

function showReceipt(summary, session) {
  const amount = formatUsd(summary.amountUsd);
  const credit = formatUsd(summary.creditUsd);
  const line = (name, ...value) => el('div', {}, el('dt', {}, name), el('dd', {}, ...value));
  const tier = summary.tier === null ? '' : `, ${summary.tier}`;
  byId('lines').replaceChildren(
    line('Bought', `Prepaid credit${tier}`),
    line('Credit', credit),
    ...(summary.paidAt === null ? [] : [line('Date', momentWords(summary.paidAt))]),
    line('Seller', `${SHOP}, ${location.host}`, ...imprint()),
    ...(summary.email === null ? [] : [line('To', summary.email)]),
    ...(summary.card === null ? [] : [line('Card', cardWords(summary.card))]),
    line('Reference', el('code', {}, summary.reference)),
    el('div', { class: 'total' }, el('dt', {}, 'Paid by card'), el('dd', {}, `${amount} USD`)),
  );
  byId('by-mail').textContent = summary.receiptSentByEmail
    ? 'The card provider sends a receipt to the e-mail address that was given.'
    : 'No e-mail address was given with this order. Print this page if you need a receipt.';
  const own = openCheckouts().find(({ sessionId }) => sessionId === session);
  byId('for-tab').hidden = own === undefined;
  byId('for-agent').hidden = own !== undefined;
  const isOldKey = own?.isNewKey === false;
  byId('for-new-key').hidden = isOldKey;
  byId('for-old-key').hidden = !isOldKey;
  byId('to-key').textContent = isOldKey ? 'Look at the key' : 'Collect the key';
  byId('receipt').hidden = false;
  byId('next').hidden = false;
}

/** A link to who sells here, where the shop says so. */
function imprint() {
  const link = [...document.querySelectorAll('footer a')].find(
    ({ textContent }) => textContent === 'Imprint',
  );
  return link === undefined ? [] : [', ', el('a', { href: link.href }, 'imprint')];
}

function watch(session) {
  byId('again').hidden = true;
  lookAgain(() => look(session), {
    pausesMs: PAUSES_MS,
    onGivenUp() {
      say(
        'Not confirmed yet',
        'Nothing has been heard of this payment, so this page has stopped looking. If you paid, nothing is lost: your agent gets its key as soon as the card provider confirms. If you did not, nothing was charged.',
      );
      byId('again').hidden = false;
    },
  });
}

byId('print').addEventListener('click', () => print());
const session = takeSession();
if (session === null)
  decided('No payment named', 'This page shows a payment when the card provider leads to it.');
else {
  say('Your payment', 'Looking for your payment …');
  byId('again').firstElementChild.addEventListener('click', () => {
    title.focus();
    watch(session);
  });
  watch(session);
}
