/** A call at a service's own address: what a form asks for it, and the request that comes of it. */

/** Method and address of a call, such as `GET /v1/stations/:id`. */
export function addressOf({ service, route }) {
  return route === undefined ? `POST /x402/${service}` : `${route.method} ${route.path}`;
}

/**
 * What the form asks for.
 *
 * @returns {{ id: string, place: string, name: string, schema: object, required: boolean, example: unknown }[]}
 */
export function routeEntries({ form, route }) {
  const entries = form.fields.map(({ in: place, name, schema, required, example }) => ({
    id: `try-${place}-${name}`,
    place,
    name,
    // An address and a header hold text alone.
    schema: place === 'body' ? schema : asText(schema),
    required,
    example,
  }));
  if (form.query !== null)
    entries.push({
      id: 'try-search',
      place: 'search',
      name: 'query',
      schema: { type: 'string', description: 'Parameters of the address, such as unit=c&days=3' },
      required: false,
      example: form.query === '' ? undefined : form.query,
    });
  if (form.body === 'whole')
    entries.push({
      id: 'try-whole',
      place: 'whole',
      name: 'body',
      schema: { description: 'As its API takes it' },
      required: false,
      example: route.example.body,
    });
  return entries;
}

/** A schema of a value that is typed as text, or chosen. */
function asText(schema) {
  const isKnown = schema.enum !== undefined || ['integer', 'number', 'boolean'].includes(schema.type);
  return isKnown ? schema : { ...schema, type: 'string' };
}

/** Whether a text can be a part of a path: a browser takes these for steps. */
export function fitsPath(text) {
  return !/^\.{1,2}$/.test(text);
}

/**
 * The request of what was typed.
 *
 * @param {{ place: string, name: string, value: unknown }[]} typed without what was left empty
 */
export function routeRequest({ form, route }, typed) {
  const at = (place) => typed.filter((each) => each.place === place);
  const inPath = new Map(
    at('path').map(({ name, value }) => [`:${name}`, encodeURIComponent(String(value))]),
  );
  const path = route.path
    .split('/')
    .map((segment) => inPath.get(segment) ?? segment)
    .join('/');
  const query = new URLSearchParams(at('query').map(({ name, value }) => [name, String(value)]));
  const search = [...at('search').map(({ value }) => String(value).replace(/^\?/, '')), query.toString()]
    .filter((part) => part !== '')
    .join('&');
  const headers = Object.fromEntries(at('header').map(({ name, value }) => [name, String(value)]));
  const [whole] = at('whole');
  const body =
    form.body === 'fields'
      ? JSON.stringify(Object.fromEntries(at('body').map(({ name, value }) => [name, value])))
      : whole?.value;
  const type = body === undefined ? {} : { 'content-type': isJson(body) ? 'application/json' : 'text/plain' };
  return {
    url: `${location.origin}${path}${search === '' ? '' : `?${search}`}`,
    method: route.method,
    headers: { ...type, ...headers },
    body,
  };
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
