import { ask } from './admin-session.js';
import { code, recordsTable } from './admin-tables.js';
import { el, notice } from './dom.js';
import { moment } from './moments.js';

/**
 * What the operator has to send by hand, a page at a time; nothing is shown while there is nothing.
 *
 * @param {object[]} owed the first page
 * @param {number} total how much there is
 */
export function owedSection(owed, total) {
  if (owed.length === 0) return null;
  return el(
    'section',
    {},
    el('h2', {}, 'To be sent back'),
    owedTable(owed, `Due to others: ${total}`),
    further(owed.length, total),
  );
}

/** The next page, under what is there. */
function further(shown, total) {
  if (shown >= total) return '';
  const button = el('button', { type: 'button', class: 'secondary' }, 'More that is due');
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      const page = await ask(`owed?skip=${shown}`);
      const now = shown + page.owed.length;
      const rest = page.owed.length === 0 ? '' : further(now, page.total);
      button.replaceWith(owedTable(page.owed, `Due to others, from ${shown + 1}`), rest);
    } catch (error) {
      button.replaceWith(notice('bad', error.message));
    }
  });
  return button;
}

function owedTable(owed, caption) {
  return recordsTable({
    caption,
    rows: owed,
    none: 'Nothing is due.',
    columns: [
      { label: 'What', of: ({ what }) => what },
      { label: 'Amount', number: true, of: ({ amount }) => amount },
      { label: 'To', of: ({ to }) => code(to) },
      { label: 'Since', of: ({ since }) => moment(since) },
      { label: 'Why', of: ({ reason }) => reason },
      { label: 'How', of: ({ how }) => how },
    ],
  });
}
