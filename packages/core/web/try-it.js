import { el, notice } from './dom.js';
import { tellRefusal } from './field-problems.js';
import { rememberedKey, rememberKey } from './key-session.js';
import { fitsPath, routeEntries, routeRequest } from './route-form.js';
import { trialKeyOffer } from './trial-key.js';

/** The headers of an answer that say what it cost and how it came about. */
const SHOWN_HEADERS = [
  'X-Credits-Used',
  'X-Credits-Remaining',
  'X-Payment-Method',
  'X-Call-Id',
  'Retry-After',
  'X-Request-Id',
];

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
  const outcome = el('div', { class: 'outcome', 'aria-live': 'polite' });

  const form = el(
    'form',
    { class: 'try', 'aria-label': `Try ${recipe.name}` },
    el(
      'div',
      { class: 'field' },
      el('label', { for: 'try-key' }, 'Key'),
      key,
      el(
        'p',
        { class: 'hint' },
        'This tab keeps the key until you close it, and sends it to this server only.',
      ),
    ),
    recipe.payment.apiKey.freeKey === null
      ? null
      : trialKeyOffer((fresh) => {
          key.value = fresh;
        }),
    ...fields.map(({ element }) => element),
    el('div', { class: 'actions' }, send),
    recipe.available ? null : notice('warn', recipe.unavailableMessage ?? 'Not for sale at the moment.'),
    outcome,
  );

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    // What is below belongs to the call before.
    outcome.replaceChildren();
    const typed = typedIn(fields);
    if (typed === null) return;
    send.disabled = true;
    outcome.replaceChildren(el('p', { class: 'soft' }, 'Waiting for the answer …'));
    outcome.replaceChildren(await call(recipe, key.value.trim(), typed, fields));
    send.disabled = false;
  });
  return form;
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

async function call(recipe, key, typed, fields) {
  const startedAtMs = performance.now();
  try {
    const { url, headers, ...request } = requestOf(recipe, typed);
    const response = await fetch(url, {
      ...request,
      headers: { ...headers, ...(key === '' ? {} : { 'x-api-key': key }) },
    });
    const text = await readable(response);
    if (response.status === 400) tellMistakes(text, fields);
    return answerView(response, text, Math.round(performance.now() - startedAtMs), key);
  } catch {
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

function answerView(response, text, tookMs, key) {
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
      el('span', { class: 'faint' }, `${tookMs} ms`),
    ),
    headers.length === 0 ? null : el('dl', { class: 'headers' }, ...headers),
    pictureOf(text),
    el('pre', { tabindex: '0', 'aria-label': 'Body of the answer' }, el('code', {}, indented(text))),
  );
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
  return entries.map(({ id, place, name, schema, required, example }) => {
    const control = controlOf(id, schema, example, required);
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

function controlOf(id, schema, example, required) {
  const choices = schema.type === 'boolean' ? [true, false] : schema.enum;
  if (choices !== undefined) {
    const select = el('select', { id });
    if (!required) select.append(el('option', { value: '' }, '—'));
    for (const choice of choices) select.append(el('option', { value: String(choice) }, String(choice)));
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
