/** What is wrong with a form stands at its fields. */
import { el } from './dom.js';

/**
 * Says at each field what is wrong with it, and puts the focus into the first one.
 *
 * @param {Record<string, string>} problems what to say, by the id of the control
 */
export function tellAtFields(problems) {
  const [first] = Object.entries(problems).map(([id, text]) => {
    const control = document.getElementById(id);
    const place = placeFor(control);
    place.textContent = text;
    control.setAttribute('aria-invalid', 'true');
    return control;
  });
  first?.focus();
}

/** Takes back all that was said of the fields of a form. */
export function forgetProblems(form) {
  for (const control of form.querySelectorAll('[aria-invalid]')) {
    control.removeAttribute('aria-invalid');
    placeFor(control).textContent = '';
  }
}

/**
 * Says a refusal of the server at the fields that it names.
 *
 * @param {Error & { status?: number, fields?: { field: string, message: string }[] }} error
 * @param {Record<string, string | [id: string, words: string]>} controls by the last part of a field's name: the id of
 *   its control, and what to say in place of the server's words
 * @returns {boolean} false: it names none of them, and is to be said elsewhere
 */
export function tellRefusal(error, controls) {
  // Any other refusal is about more than what is written in a box.
  if (error.status !== undefined && error.status !== 400) return false;
  const told = {};
  for (const { field, message } of error.fields ?? []) {
    const known = controls[field.split('.').at(-1)];
    if (known === undefined) continue;
    const [id, words = asSentence(message)] = [known].flat();
    // What is not on the page cannot be mended there.
    if (document.getElementById(id)?.checkVisibility()) told[id] = words;
  }
  tellAtFields(told);
  return Object.keys(told).length > 0;
}

/** "must be one address" as a sentence; what a schema says of bounds, in the words of people. */
function asSentence(message) {
  const worded = message
    .replace(/Too big: expected \w+ to be <=(\S+)/, 'must be at most $1')
    .replace(/Too small: expected \w+ to be >=(\S+)/, 'must be at least $1')
    .replace('topUpUsd', 'the charge');
  const text = worded.charAt(0).toUpperCase() + worded.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** The line below a control, which is read aloud with it. */
function placeFor(control) {
  const id = `${control.id}-problem`;
  const found = document.getElementById(id);
  if (found !== null) return found;
  const place = el('p', { class: 'problem', id });
  (control.closest('.row, label') ?? control).after(place);
  const described = control.getAttribute('aria-describedby');
  control.setAttribute('aria-describedby', described === null ? id : `${described} ${id}`);
  return place;
}
