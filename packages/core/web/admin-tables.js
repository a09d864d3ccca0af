import { formatUsd } from './amount.js';
import { copyButton, el } from './dom.js';

/**
 * Rows of records. On a phone each becomes a block, with the columns' names beside the values; the roles keep it a table
 * for those who listen to it.
 *
 * @param {{ caption: string, columns: { label: string, number?: boolean, of: (row: object) => Node|string|null }[],
 *   rows: object[], none: string }} table the first column names the row
 */
export function recordsTable({ caption, columns, rows, none }) {
  if (rows.length === 0)
    return el('div', { class: 'records' }, el('h3', {}, caption), el('p', { class: 'soft' }, none));
  return el(
    'table',
    { class: 'records', role: 'table' },
    el('caption', {}, caption),
    el(
      'thead',
      { role: 'rowgroup' },
      el(
        'tr',
        { role: 'row' },
        ...columns.map(({ label, number }) =>
          el('th', { scope: 'col', role: 'columnheader', class: number ? 'number' : null }, label),
        ),
      ),
    ),
    el(
      'tbody',
      { role: 'rowgroup' },
      ...rows.map((row) =>
        el(
          'tr',
          { role: 'row' },
          ...columns.map(({ label, number, of }, index) => {
            const value = of(row);
            const kinds = [number && 'number', (value ?? '—') === '—' && 'none'].filter(Boolean);
            return el(
              index === 0 ? 'th' : 'td',
              {
                ...(index === 0 ? { scope: 'row', role: 'rowheader' } : { role: 'cell' }),
                class: kinds.length === 0 ? null : kinds.join(' '),
                'data-label': label,
              },
              value ?? '—',
            );
          }),
        ),
      ),
    ),
  );
}

/** Figures with their names, as on the key page. `tone` is one of `main`, `bad`, or nothing. */
export function figures(...shown) {
  return el(
    'dl',
    { class: 'figures' },
    ...shown.map(([label, value, tone]) =>
      el('div', { class: tone }, el('dt', {}, label), el('dd', {}, value)),
    ),
  );
}

export function usd(amount) {
  return amount === null ? '—' : formatUsd(amount);
}

/** A long name that may break, and that is easily told from text. */
export function code(text) {
  return text === null ? '—' : el('code', {}, text);
}

/** The two ends of a long name, with the whole in its title. */
export function shortened(text) {
  if (text === null) return '—';
  return el('code', { title: text }, text.length <= 14 ? text : `${text.slice(0, 6)}…${text.slice(-4)}`);
}

/**
 * The last signs of a long id, with the whole in its title; a click copies it, where the browser lets a page do that. Ids of
 * one hour begin alike.
 */
export function copiedId(id) {
  const shown = `…${id.slice(-8)}`;
  if (navigator.clipboard === undefined) return el('code', { title: id }, shown);
  const attributes = { class: 'copied-id', title: id, 'aria-label': `Copy ${id}` };
  return copyButton(id, { shown, refused: id, attributes });
}

const TONES = {
  active: 'good',
  done: 'good',
  up: 'good',
  paid: 'good',
  captured: 'good',
  able: 'good',
  frozen: 'bad',
  down: 'bad',
  refused: 'bad',
  unable: 'bad',
  asked: 'warn',
  expired: 'warn',
  open: 'warn',
  settling: 'warn',
  failing: 'warn',
  changed: 'warn',
  unsteady: 'warn',
  same: 'good',
};

export function badge(text) {
  return el('span', { class: `badge ${TONES[text] ?? ''}` }, text.replaceAll('_', ' '));
}

/** A link to an order of an account. */
export function orderLink(orderId, accountId) {
  if (accountId === null) return code(orderId);
  return el('a', { href: `#account-${accountId}-order-${orderId}` }, code(orderId));
}

export function accountLink(accountId) {
  return accountId === null ? '—' : el('a', { href: `#account-${accountId}` }, accountId);
}
