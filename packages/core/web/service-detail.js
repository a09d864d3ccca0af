import { recipePriceOf } from './catalog.js';
import { codeBlock, el, prose } from './dom.js';
import { jsonBlock } from './json-block.js';
import { addressOf } from './route-form.js';
import { fieldTable, valueTable } from './schema-fields.js';
import { tryItForm } from './try-it.js';

/** One service, from its recipe: what it does, takes, answers and costs, and a form to try it. */
export function serviceDetail(recipe) {
  const price = recipePriceOf(recipe);
  const isRoute = recipe.form !== undefined;
  return [
    el('a', { class: 'back', href: '/docs', 'data-link': true }, '← All services'),
    el('p', { class: 'eyebrow' }, recipe.tag),
    el('h1', { tabindex: '-1' }, ...breakable(recipe.name)),
    el('p', { class: 'lead' }, recipe.description),
    el(
      'p',
      { class: 'facts' },
      el('span', { class: 'price' }, price),
      recipe.available
        ? el('span', { class: 'badge good' }, 'for sale')
        : el('span', { class: 'badge warn' }, 'not for sale now'),
      el('code', {}, ...breakable(addressOf(recipe))),
    ),
    isRoute && recipe.route.prices !== null
      ? el('p', { class: 'soft' }, `The price is decided by ${recipe.route.prices.decidedBy}.`)
      : null,
    recipe.available ? null : el('p', { class: 'soft' }, recipe.unavailableMessage),
    recipe.chains === null ? null : chainsLine(recipe.chains),
    el(
      'div',
      { class: 'halves' },
      section('Try it', tryItForm(recipe, price)),
      el(
        'div',
        { class: 'beside' },
        section('From code', examples(recipe)),
        section('Answer', exampleAnswer(recipe)),
      ),
      el(
        'div',
        { class: 'below' },
        section(
          'What you send',
          ...(isRoute ? valueTable(recipe) : [fieldTable(recipe.inputSchema, 'Fields of the request')]),
        ),
        section(
          'What you get',
          el('p', { class: 'soft' }, ...prose(recipe.answer.description)),
          answerFields(recipe),
        ),
        recipe.streaming === null
          ? null
          : section('In pieces', el('p', { class: 'soft' }, ...prose(recipe.streaming.description))),
        section(
          'When it fails',
          el('p', { class: 'soft' }, recipe.charged),
          el(
            'details',
            {},
            el(
              'summary',
              {},
              `${recipe.errors.map(({ status }) => status).join(', ')}: as for every service`,
            ),
            errorTable(recipe.errors),
          ),
        ),
      ),
    ),
  ].filter((part) => part !== null);
}

/** A name that may be an address: a line may end after each of its slashes. */
function breakable(name) {
  return name.split(/(?<=\/)/).flatMap((part, index) => (index === 0 ? [part] : [el('wbr', {}), part]));
}

/** Which chains' nodes this server can ask now, for a service that asks any. */
function chainsLine({ readable, notReadable }) {
  const names = (chains) => chains.join(', ');
  return el(
    'p',
    { class: 'soft' },
    readable.length === 0
      ? 'No chain can be read here now.'
      : `Reads these chains here now: ${names(readable)}.`,
    readable.length === 0 || notReadable.length === 0
      ? null
      : ` Not configured or down: ${names(notReadable)}.`,
  );
}

function section(title, ...children) {
  return el('section', { id: IDS[title] }, el('h2', {}, title), ...children);
}

/** By which other pages link to a section. */
const IDS = { 'Try it': 'try', 'From code': 'code', Answer: 'answer' };

/** What an answer looks like; what it is where it is no JSON. */
function exampleAnswer({ answer }) {
  if (answer.example === undefined)
    return el('p', { class: 'soft' }, 'Bytes of ', el('code', {}, answer.mediaType), '.');
  const block = jsonBlock(JSON.stringify(answer.example, null, 2), 'the example of an answer');
  return el('div', {}, el('p', { class: 'faint' }, 'An example, with placeholders for values.'), block);
}

/** Its fields where it is JSON; else what it is. */
function answerFields({ answer }) {
  if (answer.outputSchema === undefined) return el('p', {}, 'Media type ', el('code', {}, answer.mediaType));
  return fieldTable(answer.outputSchema, 'Fields of the answer');
}

/** The same call in several languages, and from a wallet where one can pay; one at a time. */
function examples(recipe) {
  const languages = [
    ['curl', recipe.curl],
    ['JavaScript', recipe.fetch],
    ['Python', recipe.python],
    ...(recipe.streaming?.curl ? [['Stream', recipe.streaming.curl]] : []),
    ...(recipe.payment.x402?.program ? [['Wallet', recipe.payment.x402.program]] : []),
    ...(recipe.payment.mpp?.program ? [['MPP', recipe.payment.mpp.program]] : []),
  ];
  const shown = el('div', {});
  const buttons = languages.map(([language, text]) =>
    el(
      'button',
      { type: 'button', class: 'tab', 'aria-pressed': 'false', onclick: () => show(language, text) },
      language,
    ),
  );
  function show(language, text) {
    shown.replaceChildren(codeBlock(text, `the ${language} example`));
    for (const button of buttons)
      button.setAttribute('aria-pressed', String(button.textContent === language));
  }
  show(...languages[0]);
  return el(
    'div',
    {},
    el('div', { class: 'tabs', role: 'group', 'aria-label': 'Language' }, ...buttons),
    shown,
  );
}

/** The pages about codes. */
function codeLinks(codes) {
  // A server without guides has no such pages.
  if (document.querySelector('footer a[href="/docs/errors"]') === null) return [];
  return codes.flatMap((code) => [' ', el('a', { href: `/docs/errors/${code}` }, el('code', {}, code))]);
}

function errorTable(errors) {
  return el(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Errors' },
    el(
      'table',
      { class: 'fields' },
      el(
        'thead',
        {},
        el('tr', {}, ...['Status', 'Meaning', 'What to do'].map((t) => el('th', { scope: 'col' }, t))),
      ),
      el(
        'tbody',
        {},
        ...errors.map(({ status, meaning, remedy, codes }) =>
          el(
            'tr',
            {},
            el('th', { scope: 'row' }, el('code', {}, String(status))),
            el('td', {}, ...prose(meaning)),
            el('td', {}, ...prose(remedy), ...codeLinks(codes)),
          ),
        ),
      ),
    ),
  );
}
