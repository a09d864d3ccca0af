import { el, prose } from './dom.js';

/** A table of an object schema's fields, with those of nested objects indented below. */
export function fieldTable(schema, caption) {
  const rows = rowsOf(schema, 0);
  if (rows.length === 0) return el('p', { class: 'soft' }, 'None. Send an empty object.');
  return tableOf(['Field', 'Type', 'Meaning'], rows, caption);
}

function tableOf(titles, rows, caption) {
  return el(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    el(
      'table',
      { class: 'fields' },
      el('caption', { class: 'hidden' }, caption),
      el('thead', {}, el('tr', {}, ...titles.map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, ...rows),
    ),
  );
}

const PLACES = { path: 'path', query: 'query', header: 'header', body: 'JSON body' };

/** What a call at a service's own address takes, and its other address. */
export function valueTable({ form, service }) {
  const rows = form.fields.map(({ in: place, name, schema, required }) =>
    el(
      'tr',
      {},
      el(
        'th',
        { scope: 'row' },
        el('code', {}, name),
        required ? null : el('span', { class: 'faint' }, ' optional'),
      ),
      el('td', {}, PLACES[place]),
      el('td', {}, el('code', { class: 'type' }, typeInWords(schema))),
      el('td', {}, ...prose(meaningOf(schema))),
    ),
  );
  const also = `Programs that send every call as a JSON object find it at \`POST /x402/${service}\` too.`;
  return [
    rows.length === 0 ? null : tableOf(['Value', 'In', 'Type', 'Meaning'], rows, 'Values of the request'),
    form.body === 'whole' ? el('p', { class: 'soft' }, 'A body, as its API takes it.') : null,
    rows.length === 0 && form.body !== 'whole'
      ? el('p', { class: 'soft' }, 'Nothing but the address.')
      : null,
    el('p', { class: 'soft' }, ...prose(also)),
  ];
}

/** "string", "number or null", "array of string": the type in words. */
function typeInWords(schema) {
  if (schema.enum !== undefined) return `one of ${schema.enum.length}`;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeInWords).join(' or ');
  if (schema.type === 'array') return `array of ${typeInWords(schema.items ?? {})}`;
  if (Array.isArray(schema.type)) return schema.type.join(' or ');
  return schema.type ?? 'any';
}

const DEEPEST = 4;

function rowsOf(schema, depth) {
  if (depth > DEEPEST) return [];
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const nested = objectIn(field);
    return [
      el(
        'tr',
        {},
        el(
          'th',
          { scope: 'row', class: `depth-${depth}` },
          el('code', {}, name),
          required.has(name) ? null : el('span', { class: 'faint' }, ' optional'),
        ),
        el('td', {}, el('code', { class: 'type' }, typeInWords(field))),
        el('td', {}, ...prose(meaningOf(field)), ...choicesOf(field)),
      ),
      ...(nested === null ? [] : rowsOf(nested, depth + 1)),
    ];
  });
}

/** The object whose fields are worth rows of their own: the field itself, its items, or the one that may be null. */
function objectIn(field) {
  if (field.properties !== undefined) return field;
  if (field.items !== undefined) return objectIn(field.items);
  for (const choice of field.anyOf ?? []) {
    const found = objectIn(choice);
    if (found !== null) return found;
  }
  return null;
}

/** The values that a field may have, where they are listed. */
function choicesOf(field) {
  const choices = [field, field.items, ...(field.anyOf ?? [])].find((each) => each?.enum !== undefined)?.enum;
  if (choices === undefined) return [];
  return [el('span', { class: 'chips' }, ...choices.map((value) => el('code', {}, JSON.stringify(value))))];
}

function meaningOf(field) {
  const parts = [field.description ?? field.items?.description ?? ''];
  if (field.default !== undefined) parts.push(`Default ${JSON.stringify(field.default)}`);
  if (field.maxItems !== undefined) parts.push(`At most ${field.maxItems} items`);
  return parts
    .filter((part) => part !== '')
    .map((part) => part.replace(/\.$/, ''))
    .join('. ');
}
