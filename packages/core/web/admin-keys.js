import { ask } from './admin-session.js';
import { accountLink, badge, code, recordsTable, usd } from './admin-tables.js';
import { el, notice } from './dom.js';
import { moment } from './moments.js';

/** What is shown of a key. */
const PREFIX_CHARACTERS = 12;

let query = '';

/** What was typed into a search. More of a key that was pasted must not become part of an address. */
export function withoutSecret(text) {
  return /^\s*fbx_/.test(text) ? text.trim().slice(0, PREFIX_CHARACTERS) : text;
}

/** Finding keys, and with them the accounts behind them. */
export async function keysView() {
  const found = el('div', { 'aria-live': 'polite' });
  const input = el('input', {
    id: 'query',
    type: 'search',
    autocomplete: 'off',
    spellcheck: 'false',
    maxlength: 200,
    value: query,
  });
  const form = el(
    'form',
    { role: 'search', class: 'key-form' },
    el('label', { for: 'query' }, 'Find keys'),
    el('div', { class: 'row' }, input, el('button', { type: 'submit' }, 'Find')),
    el(
      'p',
      { class: 'hint' },
      'By the beginning of a key, a part of its label or of a buyer’s e-mail address, or the account’s number.',
    ),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    input.value = withoutSecret(input.value);
    query = input.value;
    void find();
  });

  async function find() {
    try {
      const page = await ask(`keys?q=${encodeURIComponent(query)}`);
      found.replaceChildren(keysTable(page.keys), more(page.after));
    } catch (error) {
      found.replaceChildren(notice('bad', error.message));
    }
  }

  /** The next page, under what is there. */
  function more(after) {
    if (after === null) return '';
    const button = el('button', { type: 'button', class: 'secondary' }, 'Older keys');
    button.addEventListener('click', async () => {
      button.disabled = true;
      try {
        const page = await ask(`keys?q=${encodeURIComponent(query)}&after=${after}`);
        button.replaceWith(keysTable(page.keys, 'Older keys'), more(page.after));
      } catch (error) {
        button.replaceWith(notice('bad', error.message));
      }
    });
    return button;
  }

  await find();
  return el('div', {}, el('h1', { tabindex: '-1' }, 'Keys'), form, found);
}

function keysTable(keys, caption = 'Newest first') {
  return recordsTable({
    caption,
    rows: keys,
    none: 'No key fits.',
    columns: [
      { label: 'Key', of: ({ keyPrefix }) => code(`${keyPrefix}…`) },
      { label: 'Account', of: ({ accountId }) => accountLink(accountId) },
      { label: 'Label', of: ({ label }) => label },
      { label: 'Kind', of: ({ kind }) => kind },
      {
        label: 'Status',
        of: ({ status, freezes }) =>
          el('span', {}, badge(status), ...freezes.map(({ note, cause }) => ` ${note ?? cause}`)),
      },
      { label: 'Balance', number: true, of: ({ balanceUsd }) => usd(balanceUsd) },
      { label: 'Spent', number: true, of: ({ spentUsd }) => usd(spentUsd) },
      { label: 'Card orders', number: true, of: ({ cardOrders }) => String(cardOrders) },
      { label: 'Last used', of: ({ lastUsedDay }) => lastUsedDay },
      { label: 'Made', of: ({ createdAt }) => moment(createdAt) },
    ],
  });
}
