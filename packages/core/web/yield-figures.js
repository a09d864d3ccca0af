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

/** @param {number | null} value null: nobody knows */
export function percent(value, places = 2) {
  return value === null ? 'unknown' : `${value.toFixed(places)}%`;
}

/** The risk, before whoever deposits. @param {number | null} days after which its fees are earned back; null: nobody knows */
export function riskOf(days) {
  const sooner =
    days === null
      ? 'Leaving early'
      : `At the current rate, leaving earlier than ${days} days after a deposit`;
  return `Not audited by others: you can lose what you deposit. ${sooner} returns less than you brought.`;
}
