/** What a wallet pays the chain for landing soon: the choice of it, and what it comes to. */
import { el, notice } from './dom.js';

const LEVELS = [
  ['low', 'Low'],
  ['medium', 'Medium'],
  ['high', 'High'],
];
const OWN = 'own';
const HINT =
  'Paid to the chain in SOL, to land while others compete. Half of those who pay for it pay less than low, three in four less than medium, nine in ten less than high.';
const LAMPORTS_IN_SOL = 1_000_000_000n;

/** The choice, and `asked()`: what the portal is asked for. */
export function priorityChoice() {
  const level = el(
    'select',
    { id: 'solana-priority' },
    ...LEVELS.map(([value, text]) => el('option', { value, selected: value === 'medium' }, text)),
    el('option', { value: OWN }, 'A price of my own'),
  );
  const price = el('input', { id: 'solana-price', inputmode: 'numeric', maxlength: '8', value: '50000' });
  const own = el(
    'div',
    { class: 'field', hidden: true },
    el('label', { for: 'solana-price' }, 'Micro-lamports for a unit of work'),
    price,
  );
  level.addEventListener('change', () => {
    own.hidden = level.value !== OWN;
  });
  return {
    parts: el(
      'div',
      { class: 'field' },
      el(
        'div',
        { class: 'caps' },
        el('div', { class: 'field' }, el('label', { for: 'solana-priority' }, 'Priority fee'), level),
        own,
      ),
      el('p', { class: 'hint' }, HINT),
    ),
    asked: () => (level.value === OWN ? price.value.trim() : level.value),
  };
}

/** What transactions pay for landing soon. `priority_fee` as the portal answers it. */
export function priorityNotice({ priority, micro_lamports_per_unit: price, at_most_lamports: most }) {
  const chosen = priority === 'asked' ? 'as you asked' : `the level ${priority}`;
  return notice(
    'plain',
    `At most ${solText(most)} SOL goes to the chain for landing soon: ${price} micro-lamports for a unit of work, ${chosen}.`,
  );
}

function solText(lamports) {
  const digits = String(lamports).padStart(10, '0');
  const places = digits.slice(-9).replace(/0+$/, '');
  return `${BigInt(lamports) / LAMPORTS_IN_SOL}${places === '' ? '' : `.${places}`}`;
}
