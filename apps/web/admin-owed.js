import { code, moment, recordsTable } from './admin-tables.js';
import { el } from './dom.js';

/** What the operator has to send by hand; nothing is shown while there is nothing. */
export function owedSection(owed) {
  if (owed.length === 0) return null;
  return el(
    'section',
    {},
    el('h2', {}, 'To be sent back'),
    recordsTable({
      caption: 'Due to others, the oldest first',
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
    }),
  );
}
