import { formatUsd } from './amount.js';
import { el, notice } from './dom.js';
import { tellRefusal } from './field-problems.js';
import { jsonBlock } from './json-block.js';
import { rememberedKey, rememberKey } from './key-session.js';
import { fitsPath, routeEntries, routeRequest } from './route-form.js';
import { trialKeyOffer } from './trial-key.js';

/** The headers of an answer that say what it cost and how it came about. */
const SHOWN_HEADERS = ['X-Payment-Method', 'X-Call-Id', 'X-Request-Id'];
/** From then on somebody who waits may stop waiting. */
const CANCEL_AFTER_S = 5;
/** As much of a key as its owner may see: its prefix. */
const KEY_SHOWN_CHARACTERS = 13;

/**
 * A form that sends one call of a service, paid with the key that the person pastes.
 *
 * @param {object} recipe `/x402/recipes/{service}`
 * @param {string} price as shown on the button
 */
export function tryItForm(recipe, price) {
  const key = el('input', {
    id: 'try-key',
    type: 'password',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'Paste a key',
  });
  key.value = rememberedKey();
  key.addEventListener('input', () => rememberKey(key.value.trim()));
  const fields = fieldsOf(recipe);
  const send = el('button', { type: 'submit', disabled: !recipe.available }, `Send this call for ${price}`);
  const cancel = el('button', { type: 'button', class: 'secondary', hidden: true }, 'Cancel');
  const outcome = el('div', { class: 'outcome', 'aria-live': 'polite' });

  const form = el(
    'form',
    { class: 'try', 'aria-label': `Try ${recipe.name}` },
    keyField(key),
    recipe.payment.apiKey.freeKey === null || key.value !== ''
      ? null
      : trialKeyOffer((fresh) => {
          key.value = fresh;
        }),
    ...fieldsShown(fields),
    el('div', { class: 'actions send' }, send, cancel),
    recipe.available ? null : notice('warn', recipe.unavailableMessage ?? 'Not for sale at the moment.'),
    outcome,
  );

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    // What is below belongs to the call before.
    outcome.replaceChildren();
    const typed = typedIn(fields);
    if (typed === null) return;
    const waiting = showWaiting(send, cancel);
    const answered = await call(recipe, key.value.trim(), typed, { fields, signal: waiting.signal });
    waiting.end();
    outcome.replaceChildren(answered);
  });
  return form;
}

/** The box for a key; where this tab has one, a line that opens it. */
function keyField(key) {
  const field = el(
    'div',
    { class: 'field' },
    el('label', { for: 'try-key' }, 'Key'),
    key,
    el(
      'p',
      { class: 'hint' },
      'This tab keeps the key until you close it, and sends it to this server only.',
    ),
  );
  if (key.value === '') return field;
  const shown = el('code', {}, `${key.value.slice(0, KEY_SHOWN_CHARACTERS)}…`);
  return el('details', { class: 'spare' }, el('summary', {}, 'Paying with ', shown, ' · change'), field);
}

/** The fields; those that need nothing behind a fold, where there are several. */
function fieldsShown(fields) {
  // A body that no schema describes is no option: it is all that is sent.
  const isOption = ({ control }) => !control.required && control.value === '' && control.id !== 'try-whole';
  const spare = fields.filter(isOption);
  if (spare.length < 2) return fields.map(({ element }) => element);
  return [
    ...fields.filter((each) => !spare.includes(each)).map(({ element }) => element),
    el(
      'details',
      { class: 'spare' },
      el('summary', {}, `${spare.length} more options`),
      el('div', { class: 'try-fields' }, ...spare.map(({ element }) => element)),
    ),
  ];
}

/** Counts the seconds on the button, whose width stays; after some of them the call can be given up. */
function showWaiting(send, cancel) {
  const controller = new AbortController();
  const { textContent: text } = send;
  let seconds = 0;
  const tell = () => {
    send.textContent = seconds === 0 ? 'Sending …' : `Sending … ${seconds} s`;
    cancel.hidden = seconds < CANCEL_AFTER_S;
    seconds += 1;
  };
  send.style.minWidth = `${send.offsetWidth}px`;
  send.disabled = true;
  send.setAttribute('aria-busy', 'true');
  cancel.onclick = () => controller.abort();
  const timer = setInterval(tell, 1_000);
  tell();
  return {
    signal: controller.signal,
    end() {
      clearInterval(timer);
      send.textContent = text;
      send.disabled = false;
      send.removeAttribute('aria-busy');
      cancel.hidden = true;
    },
  };
}

/** Says what the server found wrong at the fields that it names. */
function tellMistakes(text, fields) {
  const known = fields.map(({ name, control }) => [name, control.id]);
  tellRefusal({ fields: mistakesIn(text) }, Object.fromEntries(known));
}

function mistakesIn(text) {
  try {
    const { fields } = JSON.parse(text);
    // A field within a field is typed in the box of the outer one.
    return fields.map(({ field, message }) => {
      const [name, ...inner] = field.split('.');
      return { field: name, message: inner.length === 0 ? message : `${inner.join('.')}: ${message}` };
    });
  } catch {
    return [];
  }
}

/** The request of a call: at its own address, where the service has one. */
function requestOf(recipe, typed) {
  if (recipe.form !== undefined) return routeRequest(recipe, typed);
  const body = JSON.stringify(Object.fromEntries(typed.map(({ name, value }) => [name, value])));
  const headers = { 'content-type': 'application/json' };
  return { url: `/x402/${recipe.service}`, method: 'POST', headers, body };
}

async function call(recipe, key, typed, { fields, signal }) {
  const startedAtMs = performance.now();
  try {
    const { url, headers, ...request } = requestOf(recipe, typed);
    const response = await fetch(url, {
      ...request,
      headers: { ...headers, ...(key === '' ? {} : { 'x-api-key': key }) },
      signal,
    });
    const text = await readable(response);
    if (response.status === 400) tellMistakes(text, fields);
    const tookMs = Math.round(performance.now() - startedAtMs);
    return answerView(response, text, { tookMs, key, recipe });
  } catch {
    if (signal.aborted)
      return notice('plain', 'You gave it up. The key page shows whether the call was charged.');
    return notice(
      'bad',
      'The connection broke before the answer came. The key page shows whether the call was charged.',
    );
  }
}

/** The body as text; of bytes that are none, how many there are. */
async function readable(response) {
  const type = response.headers.get('content-type') ?? '';
  if (/^text\/|[/+]json\b/.test(type)) return response.text();
  return `${(await response.arrayBuffer()).byteLength} bytes of ${type}`;
}

function answerView(response, text, { tookMs, key, recipe }) {
  const tone = response.ok ? 'good' : response.status === 402 || response.status === 503 ? 'warn' : 'bad';
  const headers = SHOWN_HEADERS.flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [el('div', {}, el('dt', {}, name), el('dd', {}, value))];
  });
  return el(
    'div',
    { class: 'answer' },
    el(
      'p',
      { class: 'status' },
      el('span', { class: `badge ${tone}` }, String(response.status)),
      ` ${verdict(response, text, key)} `,
      el('span', { class: 'faint' }, costLine(response, tookMs)),
    ),
    response.status === 402 ? waysToPay(recipe) : null,
    pictureOf(text),
    bodyView(response, text),
    headers.length === 0
      ? null
      : el('details', {}, el('summary', {}, 'Ids of this call'), el('dl', { class: 'headers' }, ...headers)),
  );
}

/** "$0.15 · $158.80 left · 27 ms", as far as it is known. */
function costLine({ headers }, tookMs) {
  const [used, left, retry] = ['X-Credits-Used', 'X-Credits-Remaining', 'Retry-After'].map((name) =>
    headers.get(name),
  );
  return [
    used === null ? null : formatUsd(used),
    left === null ? null : `${formatUsd(left)} left`,
    retry === null ? null : `try again in ${retry} s`,
    `${tookMs} ms`,
  ]
    .filter(Boolean)
    .join(' · ');
}

/** What a person can do about a price. */
function waysToPay({ payment }) {
  const links = [
    ...(payment.x402 === null && payment.mpp === null ? [] : [['#code', 'Pay with a wallet']]),
    ['/keys', 'Your key'],
    ['/pricing', 'Ways to pay'],
  ];
  return el(
    'p',
    { class: 'actions' },
    ...links.map(([href, label]) => el('a', { class: 'button secondary', href }, label)),
  );
}

/** The body; that of a price is folded, since it is for programs. */
function bodyView({ status }, text) {
  const block = jsonBlock(indented(text), 'Body of the answer');
  return status === 402 ? el('details', {}, el('summary', {}, 'Show the 402'), block) : block;
}

/** The map of an answer about a place; null where it has none. */
function pictureOf(text) {
  const image = imageIn(text);
  if (image === null) return null;
  const { url, widthPx, heightPx, shows, observedAt, layer, attribution } = image;
  // From where this page is from, whatever the server calls itself.
  const { pathname, search } = new URL(url);
  const caption = `${shows}. ${observedAt}, ${layer}. ${attribution}`;
  const picture = el('img', { src: pathname + search, width: widthPx, height: heightPx, alt: caption });
  const figure = el('figure', { class: 'map' }, picture, el('figcaption', { class: 'faint' }, caption));
  picture.addEventListener('error', () => {
    picture.replaceWith(
      notice('warn', 'The source of the map does not give this picture now. The answer is not affected.'),
    );
  });
  return figure;
}

function imageIn(text) {
  try {
    return JSON.parse(text).data?.image ?? null;
  } catch {
    return null;
  }
}

function verdict({ status, headers }, text, key) {
  // A stream that fails has begun with a 200.
  if (/^text\/event-stream/.test(headers.get('content-type') ?? '') && /^event: error$/m.test(text))
    return 'It broke off. Its last event says whether it was charged.';
  if (status >= 200 && status < 300) return 'Answered and charged.';
  if (status === 402)
    return key === '' ? 'No key, so this is the price.' : 'The key did not pay. Not charged.';
  return 'Not charged.';
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** What is asked for in the body of a call at `/x402/`. */
function bodyEntries({ inputSchema, example }) {
  const required = new Set(inputSchema.required ?? []);
  return Object.entries(inputSchema.properties ?? {}).map(([name, schema]) => ({
    id: `try-${name}`,
    place: 'body',
    name,
    schema,
    required: required.has(name),
    example: example[name],
  }));
}

/** One control for each value that is asked for, filled from the example. */
function fieldsOf(recipe) {
  const entries = recipe.form === undefined ? bodyEntries(recipe) : routeEntries(recipe);
  const resting = new Set(recipe.chains?.notReadable ?? []);
  return entries.map(({ id, place, name, schema, required, example }) => {
    const control = controlOf(id, schema, { example, required, resting });
    const problem = el('p', { class: 'problem', id: `${id}-problem` });
    control.setAttribute('aria-describedby', `${id}-hint ${id}-problem`);
    control.required = required;
    const element = el(
      'div',
      { class: 'field' },
      el('label', { for: id }, name, required ? null : el('span', { class: 'faint' }, ' optional')),
      control,
      el('p', { class: 'hint', id: `${id}-hint` }, schema.description ?? schema.items?.description ?? ''),
      problem,
    );
    return { place, name, schema, control, problem, element };
  });
}

function controlOf(id, schema, { example, required, resting }) {
  const choices = schema.type === 'boolean' ? [true, false] : schema.enum;
  if (choices !== undefined) {
    const select = el('select', { id });
    if (!required) select.append(el('option', { value: '' }, '—'));
    for (const choice of choices) {
      const rests = resting.has(choice);
      const label = `${choice}${rests ? ' (not here now)' : ''}`;
      select.append(el('option', { value: String(choice), disabled: rests }, label));
    }
    if (example !== undefined) select.value = String(example);
    return select;
  }
  if (isJson(schema)) {
    const area = el('textarea', { id, rows: '4', spellcheck: 'false', class: 'mono' });
    if (example !== undefined) {
      area.value = JSON.stringify(example, null, 2);
      area.rows = Math.min(14, area.value.split('\n').length + 1);
    }
    return area;
  }
  const numeric = schema.type === 'number' || schema.type === 'integer';
  const input = el('input', {
    id,
    type: 'text',
    inputmode: numeric ? 'decimal' : null,
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: schema.default === undefined ? null : String(schema.default),
  });
  if (example !== undefined) input.value = String(example);
  return input;
}

/** Whether the field is neither text, number, flag nor a choice, and so is typed as JSON. */
function isJson(schema) {
  return !['string', 'number', 'integer', 'boolean'].includes(schema.type) && schema.enum === undefined;
}

/** What the controls hold, without the empty ones, or null when one of them is wrong; then it says so and has the focus. */
function typedIn(fields) {
  const typed = [];
  for (const { place, name, schema, control, problem } of fields) {
    const text = control.value.trim();
    problem.textContent = '';
    control.removeAttribute('aria-invalid');
    if (text === '') continue;
    const value = place === 'whole' ? text : readValue(text, schema);
    const wrong = wrongIn(value, place, schema);
    if (wrong !== null) {
      problem.textContent = wrong;
      control.setAttribute('aria-invalid', 'true');
      control.focus();
      return null;
    }
    typed.push({ place, name, value });
  }
  return typed;
}

function wrongIn(value, place, schema) {
  if (value === undefined) return isJson(schema) ? 'This is not JSON.' : 'This is not a number.';
  return place === 'path' && !fitsPath(String(value)) ? 'This cannot be a part of an address.' : null;
}

function readValue(text, schema) {
  if (schema.type === 'boolean') return text === 'true';
  if (schema.type === 'number' || schema.type === 'integer') {
    const number = Number(text);
    return Number.isFinite(number) ? number : undefined;
  }
  if (!isJson(schema)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
