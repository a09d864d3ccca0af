import { ask, Refusal } from './admin-session.js';
import { accountLink, badge, code, recordsTable, usd } from './admin-tables.js';
import { formatUsd } from './amount.js';
import { byId, el, notice } from './dom.js';
import { moment } from './moments.js';

const dialog = byId('act-dialog');
const form = byId('act-form');
const amount = byId('act-amount');
const reason = byId('act-reason');
const problem = byId('act-problem');
const confirm = byId('act-confirm');
const cancel = byId('act-cancel');

/** What the open dialog is about. */
let current = null;

/**
 * Asks for a reason, and does it.
 *
 * @param {{ title: string, text: string, confirm: string, danger?: boolean, path: string,
 *   amount?: { label: string, hint: string, value: string, optional?: boolean, field?: string }, body?: object }} act
 * @returns {Promise<object|null>} what the server answered; null when it was called off
 */
export function act(wanted) {
  byId('act-title').textContent = wanted.title;
  byId('act-text').textContent = wanted.text;
  confirm.textContent = wanted.confirm;
  confirm.className = wanted.danger ? 'danger' : '';
  byId('act-amount-field').hidden = wanted.amount === undefined;
  amount.required = wanted.amount !== undefined && !wanted.amount.optional;
  amount.value = wanted.amount?.value ?? '';
  byId('act-amount-label').textContent = wanted.amount?.label ?? '';
  byId('act-amount-hint').textContent = wanted.amount?.hint ?? '';
  reason.value = '';
  problem.replaceChildren();
  lock(false);
  confirm.disabled = false;
  return new Promise((resolve) => {
    current = { wanted, resolve, key: newKey() };
    dialog.showModal();
  });
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const { wanted, key } = current;
  let sent = false;
  confirm.disabled = true;
  problem.replaceChildren();
  try {
    const body = { ...wanted.body, reason: reason.value.trim() };
    if (wanted.amount !== undefined) body[wanted.amount.field ?? 'amountUsd'] = amountGiven(wanted.amount);
    sent = true;
    lock(true);
    close(await ask(wanted.path, { key, body }));
  } catch (error) {
    problem.replaceChildren(notice('bad', error.message));
    const refused = error instanceof Refusal && error.status < 500;
    // What was refused may be put differently, as another act. What nobody knows the end of may only be repeated.
    if (refused) current.key = newKey();
    if (refused || !sent) lock(false);
    confirm.disabled = false;
  }
});

cancel.addEventListener('click', () => close(null));
dialog.addEventListener('cancel', (event) => {
  event.preventDefault();
  close(null);
});

function close(answer) {
  dialog.close();
  current?.resolve(answer);
  current = null;
}

function lock(locked) {
  reason.disabled = locked;
  amount.disabled = locked;
}

function amountGiven({ optional }) {
  const text = amount.value.trim().replace(/^\$/, '');
  if (text === '' && optional) return null;
  try {
    formatUsd(text);
  } catch {
    throw new Error(`“${text}” is not an amount in USD.`);
  }
  return text;
}

/** Names an act, so that sending it twice does it once. */
function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}

const ACTS = {
  freeze: 'froze',
  unfreeze: 'unfroze',
  grant: 'granted',
  refund_order: 'sent a payment back',
  refund_call: 'gave a call back',
  lift_bounds: 'lifted the bounds',
  refund_payment: 'sent a wallet’s payment back',
  set_service: 'changed how a service is sold',
};

/**
 * Who did what, and why.
 *
 * @param {(act: object) => void} goOn asked for when an act's end is not known
 */
export function actsTable(caption, acts, goOn) {
  return recordsTable({
    caption,
    rows: acts,
    none: 'None.',
    columns: [
      { label: 'When', of: ({ at }) => moment(at) },
      { label: 'Who', of: ({ actor }) => actor },
      { label: 'Action', of: (each) => ACTS[each.act] ?? each.act },
      { label: 'Account', of: ({ accountId }) => accountLink(accountId) },
      { label: 'Amount', number: true, of: ({ amountUsd }) => usd(amountUsd) },
      { label: 'Reason', of: (each) => each.reason },
      {
        label: 'About',
        of: ({ orderId, callId, transferId }) => code(orderId ?? callId ?? transferId),
      },
      {
        label: 'State',
        of: (each) =>
          each.state !== 'asked'
            ? badge(each.state)
            : el(
                'span',
                { class: 'actions' },
                badge('asked'),
                el(
                  'button',
                  { type: 'button', class: 'secondary small', onclick: () => goOn(each) },
                  'Finish',
                ),
              ),
      },
    ],
  });
}
