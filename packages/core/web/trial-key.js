import { codeBlock, el, notice } from './dom.js';
import { rememberKey } from './key-session.js';

/**
 * A button that asks for a trial key and shows it, once.
 *
 * @param {(key: string) => void} onKey told of the key, which this tab then remembers
 */
export function trialKeyOffer(onKey) {
  const button = el('button', { type: 'button', class: 'secondary' }, 'Get a trial key');
  const outcome = el('div', { 'aria-live': 'polite' });
  button.addEventListener('click', () => void getTrialKey(button, outcome, onKey));
  return el('div', { class: 'trial' }, button, outcome);
}

/**
 * Asks for a trial key and shows it, once. The button rests while it is asked for, and after it was got.
 *
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} outcome
 * @param {(key: string) => void} onKey told of the key, which this tab then remembers
 */
export async function getTrialKey(button, outcome, onKey) {
  button.disabled = true;
  try {
    const response = await fetch('/api/m2m/credits/trial', { cache: 'no-store' });
    const body = await response.json();
    if (response.ok && typeof body.apiKey === 'string') {
      rememberKey(body.apiKey);
      outcome.replaceChildren(freshKey(body.apiKey, `Your trial key, good for ${body.expiresIn}.`));
      onKey(body.apiKey);
      return;
    }
    outcome.replaceChildren(notice('warn', body.message ?? `The server answered ${response.status}.`));
  } catch {
    outcome.replaceChildren(notice('bad', 'The server could not be reached. This page got no key.'));
  }
  button.disabled = false;
}

const SHOWN_ONCE =
  'Copy it now: it is shown once and cannot be retrieved. This tab forgets it when you close it.';

/**
 * Shows a whole key, until its owner says that they have it.
 *
 * @param {string} [rule] how long it can be had, where that is not this once
 */
export function freshKey(key, heading, rule = SHOWN_ONCE) {
  const shown = el(
    'div',
    { class: 'notice good fresh-key', role: 'status' },
    el('strong', {}, heading),
    el('p', {}, rule),
    codeBlock(key, 'the key'),
    el(
      'button',
      { type: 'button', class: 'secondary', onclick: () => shown.replaceWith(notice('good', heading)) },
      'I have it',
    ),
  );
  return shown;
}
