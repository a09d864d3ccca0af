import { formatUsd } from './amount.js';
import { el } from './dom.js';
import { labelOf } from './yield-chart.js';

const SHOWN = 10;

/** What the keeper moved, the newest first. `moves` as of `/api/yield/history`. */
export function movesView(moves) {
  if (moves.length === 0) return el('p', { class: 'soft' }, 'Nothing was moved in the last 30 days.');
  const column = (name, kind) => el('th', { scope: 'col', class: kind }, name);
  return el(
    'table',
    { class: 'by-service' },
    el('caption', {}, 'What was moved'),
    el(
      'thead',
      {},
      el('tr', {}, column('When (UTC)'), column('From, to'), column('USDC', 'number'), column('Why')),
    ),
    el(
      'tbody',
      {},
      ...moves
        .slice(-SHOWN)
        .reverse()
        .map((move) =>
          el(
            'tr',
            {},
            el('td', {}, `${move.at.slice(0, 16).replace('T', ' ')}, block ${move.blockNumber}`),
            el('td', {}, `${labelOf(move.from)} to ${labelOf(move.to)}`),
            el('td', { class: 'number' }, formatUsd(move.amountUsdc)),
            el('td', {}, reasonOf(move)),
          ),
        ),
    ),
  );
}

function reasonOf({ from, to, reason }) {
  if (reason === null) return 'The keeper said nothing to this server.';
  const { yearlyPercentBefore: before, yearlyPercentAfter: after, gainUsdcPerYear } = reason;
  const rate = (value) => (value === null ? 'an unknown rate' : `${value.toFixed(2)}%`);
  return `${labelOf(from)} paid ${rate(before.from)}, ${labelOf(to)} ${rate(before.to)} and ${rate(after)} after it: ${formatUsd(gainUsdcPerYear)} more a year.`;
}
