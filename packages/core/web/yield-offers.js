import { byId, el } from './dom.js';

/** The lines in which both offers are told, so that one can be held against the other. */
const LINES = [
  ['apy', 'APY now, after the performance fee'],
  ['fees', 'Other fees'],
  ['earnedBack', 'Fees earned back after'],
  ['paidOut', 'Can be paid out now'],
  ['keys', 'Keys'],
];

const OFFERS = {
  vault: { name: 'Vault on Base', depositAt: '#act-title', keys: 'Your wallet holds the shares.' },
  solana: {
    name: 'Reserve on Solana',
    depositAt: '#solana-act',
    keys: 'Your wallet holds the receipt tokens.',
  },
};

/** By its name: the figures of an offer; null once it is known that it is not offered here, or cannot be read. */
const read = new Map();

/**
 * Shows the offers side by side, once none of them is known to be missing. One that is still being read keeps its place.
 *
 * @param {'vault' | 'solana'} name
 * @param {{ apy: string, fees: string, earnedBack: string, paidOut: string } | null} figures as a person reads them
 */
export function showOffer(name, figures) {
  read.set(name, figures);
  const place = byId('offers');
  place.hidden = [...read.values()].includes(null);
  place.replaceChildren(
    ...Object.entries(OFFERS).map(([each, offer]) => card(offer, { keys: offer.keys, ...read.get(each) })),
  );
}

function card({ name, depositAt }, told) {
  return el(
    'article',
    {},
    el('h2', {}, name),
    el(
      'dl',
      {},
      ...LINES.map(([line, label]) =>
        el('div', { class: line }, el('dt', {}, label), el('dd', {}, told[line] ?? '…')),
      ),
    ),
    el('p', {}, el('a', { class: 'button secondary', href: depositAt }, 'Deposit')),
  );
}

/** "68 days", as far as it is known. */
export function daysInWords(days) {
  return days === null ? 'unknown' : `${days} days`;
}
