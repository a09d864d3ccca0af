/** The webhooks of a key's account: what is told where, and what became of it. */
import { recordsTable } from './admin-tables.js';
import { formatUsd } from './amount.js';
import { byId, codeBlock, el, notice } from './dom.js';
import { forgetProblems, tellAtFields, tellRefusal } from './field-problems.js';
import { momentWords } from './moments.js';

/** What each event is called on the page. */
const EVENTS = {
  'balance.low': 'the balance is low',
  'recharge.succeeded': 'the kept card was charged',
  'recharge.failed': 'the kept card was not charged',
  'refund.made': 'money was given back',
  'dispute.changed': 'a card payment is disputed',
  'key.new_address': 'a key is used from a new address',
  'answer.ready': 'an answer that took long is ready',
};
const OFF_BECAUSE = {
  owner: 'You switched it off.',
  gone: 'Its receiver answered that it wants no more.',
  failing: 'Its receiver took nothing for three days.',
  secret_lost: 'Its secret cannot be read any more. Replace it.',
};
/** Where the fields of a webhook are typed. */
const CONTROLS = {
  url: 'webhook-url',
  lowBalanceUsd: ['webhook-low', 'Enter an amount above $0, such as 5.'],
  email: 'webhook-email',
};
const STATUS = { delivered: 'good', waiting: 'warn', given_up: 'bad' };

/**
 * Shows the section of the key's page.
 *
 * @param {((method: string, path: string, body?: object) => Promise<object>) | null} ask one request with the key; null:
 *   the key can have none
 */
export async function showWebhooks(ask) {
  const section = byId('webhooks');
  const say = (tone, ...what) => byId('webhook-message').replaceChildren(notice(tone, ...what));
  if (ask === null) {
    section.hidden = true;
    return;
  }
  const show = async () => {
    const { webhooks } = await ask('GET', '/api/webhooks');
    const none = el('li', { class: 'soft' }, 'There is none yet.');
    byId('webhooks-line').textContent = lineOf(webhooks);
    byId('webhook-add').open = webhooks.length === 0;
    byId('webhook-list').replaceChildren(
      ...(webhooks.length === 0 ? [none] : webhooks.map((each) => entryOf(each, attempt))),
    );
  };
  /** Does something, says what went wrong, and shows what there is now. */
  async function attempt(act, changes = true) {
    try {
      byId('webhook-message').replaceChildren();
      forgetProblems(byId('webhook-form'));
      await act(ask, say);
      if (changes) await show();
    } catch (error) {
      if (!tellRefusal(error, CONTROLS)) say('bad', error.message);
    }
  }
  try {
    await show();
  } catch {
    // A server without them has no section.
    section.hidden = true;
    return;
  }
  showForm(attempt);
  section.hidden = false;
}

function showForm(attempt) {
  const boxes = Object.entries(EVENTS).map(([type, label], index) =>
    el(
      'label',
      { class: 'check' },
      el('input', { type: 'checkbox', value: type, id: `webhook-event-${index}` }),
      label,
    ),
  );
  byId('webhook-events').replaceChildren(...boxes);
  const chosen = () =>
    [...byId('webhook-events').querySelectorAll('input:checked')].map(({ value }) => value);
  const showLow = () => {
    byId('webhook-low-field').hidden = !chosen().includes('balance.low');
  };
  showLow();
  byId('webhook-events').onchange = showLow;
  byId('webhook-form').onsubmit = (event) => {
    event.preventDefault();
    const low = byId('webhook-low').value.trim().replace(/^\$/, '');
    const email = byId('webhook-email').value.trim();
    if (chosen().length === 0) {
      forgetProblems(event.currentTarget);
      tellAtFields({ 'webhook-event-0': 'Choose what it is told.' });
      return;
    }
    void attempt(async (ask, say) => {
      const made = await ask('POST', '/api/webhooks', {
        url: byId('webhook-url').value.trim(),
        events: chosen(),
        ...(chosen().includes('balance.low') ? { lowBalanceUsd: low } : {}),
        ...(email === '' ? {} : { email }),
      });
      byId('webhook-form').reset();
      showLow();
      say('good', ...secretOf(made));
    });
  };
}

function secretOf({ secret }) {
  return [
    el('p', {}, 'Its secret. Save it now: it is shown this once.'),
    codeBlock(secret, 'the secret of the webhook'),
  ];
}

function entryOf(webhook, attempt) {
  const { webhookId, url, events, lowBalanceUsd, enabled, failingSince, missedEvents } = webhook;
  const at = `/api/webhooks/${webhookId}`;
  const deliveries = el('div', { class: 'deliveries' });
  const switchIt = (label) => button(label, (ask) => ask('PATCH', at, { enabled: !enabled }));
  const button = (label, act, changes = true) =>
    el('button', { type: 'button', class: 'secondary', onclick: () => void attempt(act, changes) }, label);
  const told = events.map((type) =>
    type === 'balance.low' ? `the balance is below ${formatUsd(lowBalanceUsd)}` : (EVENTS[type] ?? type),
  );
  const [tone, badge] = enabled
    ? failingSince === null
      ? ['good', 'on']
      : ['warn', 'failing']
    : ['bad', 'off'];
  return el(
    'li',
    { class: 'webhook' },
    el('p', {}, el('span', { class: `badge ${tone}` }, badge), ' ', el('code', {}, url)),
    el('p', { class: 'soft' }, `When ${told.join(', ')}.`),
    standingOf(webhook),
    missedEvents === 0
      ? null
      : el(
          'p',
          {},
          `It has missed ${missedEvents === 1 ? 'one event' : `${missedEvents} events`} of the last 30 days.`,
        ),
    el(
      'div',
      { class: 'actions' },
      enabled ? button('Send a test', (ask) => ask('POST', `${at}/test`)) : null,
      enabled ? null : switchIt('Switch on'),
      missedEvents > 0 && enabled ? button('Send what it missed', (ask, say) => recover(ask, say, at)) : null,
    ),
    moreOf(
      webhookId,
      button('Messages', (ask) => showDeliveries(deliveries, at, ask), false),
      button('Change address', () => showAddressForm(deliveries, webhook, attempt), false),
      button('New secret', async (ask, say) => {
        say('good', ...secretOf(await ask('POST', `${at}/rotate`, {})), 'The old one signs too for a day.');
      }),
      enabled ? switchIt('Switch off') : null,
      el(
        'button',
        {
          type: 'button',
          class: 'danger',
          onclick: () => confirmDelete(url, () => void attempt((ask) => ask('DELETE', at))),
        },
        'Delete',
      ),
    ),
    deliveries,
  );
}

/** Which webhooks show all that can be done with them: an act draws the list again. */
const unfolded = new Set();

/** What is rarely done with a webhook, behind one word. */
function moreOf(webhookId, ...buttons) {
  const fold = el(
    'details',
    { open: unfolded.has(webhookId) },
    el('summary', {}, 'More'),
    el('div', { class: 'actions' }, ...buttons),
  );
  fold.addEventListener('toggle', () => {
    if (fold.open) unfolded.add(webhookId);
    else unfolded.delete(webhookId);
  });
  return fold;
}

/** Asks before a webhook is gone for good. */
function confirmDelete(url, act) {
  const dialog = byId('webhook-dialog');
  byId('webhook-dialog-url').textContent = url;
  dialog.returnValue = '';
  dialog.showModal();
  const decided = () => {
    if (dialog.returnValue === 'yes') act();
  };
  dialog.addEventListener('close', decided, { once: true });
}

/** Puts into the queue what the webhook has not got in the last thirty days. */
async function recover(ask, say, at) {
  const since = new Date(Date.now() - 30 * 86_400_000).toISOString();
  const { missed, givenUp, more } = await ask('POST', `${at}/recover`, { since });
  const left = more ? ' Others wait until there is room: ask again when these have arrived.' : '';
  const count = missed + givenUp;
  say('good', `${count === 1 ? 'One message' : `${count} messages`} will be sent.${left}`);
}

/** A form for where the webhook leads. */
function showAddressForm(place, { webhookId, url }, attempt) {
  const field = el('input', { type: 'url', required: true, value: url, 'aria-label': 'Its address' });
  const form = el('form', { class: 'actions' }, field, el('button', { type: 'submit' }, 'Save'));
  form.onsubmit = (event) => {
    event.preventDefault();
    void attempt((ask) => ask('PATCH', `/api/webhooks/${webhookId}`, { url: field.value.trim() }));
  };
  place.replaceChildren(form);
  field.focus();
}

/** Why nothing more is sent there, or why that may come. */
function standingOf({ enabled, disabledReason, disabledAt, failingSince }) {
  if (!enabled)
    return el(
      'p',
      {},
      `${OFF_BECAUSE[disabledReason] ?? ''} Nothing was sent since ${momentWords(disabledAt)}.`,
    );
  if (failingSince === null) return null;
  const since = momentWords(failingSince);
  return el(
    'p',
    {},
    `Its receiver took nothing since ${since}. After three days of that it is switched off.`,
  );
}

/** The latest messages, with a button that sends one again. */
async function showDeliveries(place, at, ask) {
  const { deliveries } = await ask('GET', `${at}/deliveries`);
  const again = ({ deliveryId, status }) =>
    status === 'waiting'
      ? null
      : el(
          'button',
          {
            type: 'button',
            class: 'secondary',
            'aria-label': `Send again ${deliveryId}`,
            onclick: ({ target }) =>
              void ask('POST', `${at}/deliveries/${deliveryId}/resend`).then(
                () => showDeliveries(place, at, ask),
                (error) => target.replaceWith(error.message),
              ),
          },
          'Send again',
        );
  place.replaceChildren(
    recordsTable({
      caption: 'Latest messages',
      none: 'There is none yet.',
      rows: deliveries,
      columns: [
        { label: 'Event', of: ({ type }) => type },
        { label: 'When', of: ({ createdAt }) => momentWords(createdAt) },
        {
          label: 'State',
          of: ({ status }) => el('span', { class: `badge ${STATUS[status]}` }, status.replace('_', ' ')),
        },
        { label: 'Attempts', number: true, of: ({ attempts }) => String(attempts) },
        { label: 'Last answer', of: ({ lastResult }) => lastResult },
        { label: 'Again', of: again },
      ],
    }),
  );
}

/** How many there are, in the line of the setting. */
function lineOf(webhooks) {
  const on = webhooks.filter(({ enabled }) => enabled).length;
  if (webhooks.length === 0) return 'none';
  return on === webhooks.length ? `${on} on` : `${on} on, ${webhooks.length - on} off`;
}
