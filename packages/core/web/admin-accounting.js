import { save } from './admin-session.js';
import { byId, el, notice } from './dom.js';

/** The books by day, to be saved for an accountant. */
export async function accountingView() {
  const today = new Date().toISOString().slice(0, 10);
  const told = el('div', { 'aria-live': 'polite' });
  const form = el(
    'form',
    { class: 'key-form' },
    dayField('from', 'From', `${today.slice(0, 8)}01`, today),
    dayField('to', 'To, this day included', today, today),
    el(
      'div',
      { class: 'actions' },
      el('button', { type: 'submit', value: 'csv' }, 'Save as CSV'),
      el('button', { type: 'submit', value: 'jsonl', class: 'secondary' }, 'Save as JSON'),
    ),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const [from, to] = [byId('from').value, byId('to').value];
    const format = event.submitter?.value ?? 'csv';
    told.replaceChildren();
    try {
      await save(`accounting.${format}?from=${from}&to=${to}`, `accounting-${from}-${to}.${format}`);
    } catch (error) {
      told.replaceChildren(notice('bad', error.message));
    }
  });
  return el(
    'div',
    {},
    el('h1', { tabindex: '-1' }, 'Accounting'),
    el(
      'p',
      {},
      'Each line is a day (UTC) and what moved on it: revenue by rail and service, credit sold, refunds, disputes, gas, and what the sources of a service cost. The amounts of the books add up to the balances of npm run books.',
    ),
    form,
    told,
  );
}

function dayField(id, label, value, max) {
  return el(
    'div',
    { class: 'field' },
    el('label', { for: id }, label),
    el('input', { id, type: 'date', required: true, max, value }),
  );
}
