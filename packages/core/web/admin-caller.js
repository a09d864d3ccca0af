import { code, figures, recordsTable } from './admin-tables.js';
import { el } from './dom.js';

const BY = {
  socket: 'the socket: whoever is at its other end is no trusted proxy',
  header: 'the header of a trusted proxy',
  peer: 'the proxy itself: its header names nobody, so all who come through it share one address',
};

/** How the server derived the address of whoever looks at this page: what limits and trials go by, for everybody. */
export function callerSection({ address, by, peer, header, hops, ignored, internal, countedAs }) {
  return el(
    'div',
    {},
    figures(
      ['address', address, by === 'peer' ? 'bad' : null],
      ['counted as', countedAs.join(', ')],
      ['of the', internal ? 'internal network' : 'open internet'],
    ),
    el('p', { class: 'soft' }, 'Derived from ', BY[by], '. The other end of the socket is ', code(peer), '.'),
    recordsTable({
      caption: `What ${header} said, the nearest first`,
      rows: hops,
      none: by === 'socket' ? 'It was not looked at.' : 'Nothing.',
      columns: [
        { label: 'Hop', of: ({ written }) => code(written) },
        {
          label: 'Is',
          of: ({ trusted }) => (trusted === null ? 'no address' : trusted ? 'a trusted proxy' : 'the caller'),
        },
      ],
    }),
    ignored.length === 0
      ? null
      : el('p', { class: 'soft' }, `Sent and not looked at: ${ignored.join(', ')}.`),
  );
}
