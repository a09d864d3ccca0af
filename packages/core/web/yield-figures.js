import { formatCents, formatUsd } from './amount.js';
import { el } from './dom.js';

/** A line of a list of figures. */
export function figure(label, value, kind) {
  return el('div', { class: kind }, el('dt', {}, label), el('dd', {}, value));
}

/** An amount in cents, with all its places where the pointer rests on it. @param {string | null} usd null: nobody knows */
export function amountFigure(label, usd) {
  if (usd === null) return figure(label, 'unknown');
  return figure(label, el('span', { title: formatUsd(usd) }, formatCents(usd)));
}
