/** Services that have an address of their own, as documents show them beside the address that every service has. */
import type { Service } from '../service/define.ts';
import { type JsonSchema, propertiesOf } from '../service/json-schema.ts';
import type { ServiceRoute } from '../service/route.ts';
import type { DiscoveryContext } from './context.ts';

/** The own address of a service, with a call that works and what its price depends on; nothing for other services. */
export function atItsRoute({ route, metered, effect, stream }: Service, { baseUrl }: DiscoveryContext) {
  if (route === null) return {};
  const { method, address, shown } = route;
  return {
    route: {
      method,
      path: address,
      url: `${baseUrl}${address}`,
      example: { ...shown.example, url: `${baseUrl}${shown.example.url}` },
      prices: shown.prices,
      ...(metered === null ? {} : { metered }),
      // A stream cannot be taken back once it has begun.
      paidFirst: effect === 'write' || stream?.form === 'bytes',
      ...(shown.bounds === undefined ? {} : { byKey: shown.bounds }),
    },
  };
}

/** A price in words: one amount, or the lowest and the highest. */
export function priceWords({ priceUsd, route }: Service): string {
  const prices = route?.shown.prices ?? null;
  return prices === null ? priceUsd : `${prices.lowestUsd} to ${prices.highestUsd}`;
}

/** A sentence that tells the own address of a service; empty for other services. */
export function addressWords({ route }: Service, { baseUrl }: DiscoveryContext): string {
  return route === null ? '' : ` Also ${route.method} ${baseUrl}${route.address}.`;
}

/** A value of a call at a service's own address, as a form asks for it. */
export interface RouteField {
  in: 'path' | 'query' | 'header' | 'body';
  name: string;
  schema: JsonSchema;
  required: boolean;
  /** Absent where the example has none. */
  example?: unknown;
}

/**
 * The form of a call at a service's own address; nothing for other services.
 *
 * `query`: whatever else stands in the address after its question mark, in the example, where no schema lists it; null: one does.
 * `body`: `fields`: an object of the fields above; `whole`: no schema says what it is; `none`: there is none.
 */
export function formAtRoute({ route }: Pick<Service, 'route'>) {
  if (route === null) return {};
  const { path, query, body, example } = route.shown;
  const { pathname, search, searchParams } = new URL(example.url, 'http://example');
  const shownSegments = pathname.split('/');
  const inPath = route.address.split('/').flatMap((segment, index): RouteField[] => {
    if (!segment.startsWith(':')) return [];
    const shown = decodeURIComponent(shownSegments[index] ?? '');
    const name = segment.slice(1);
    const told = shown === name ? {} : { example: shown };
    return [{ in: 'path', name, schema: propertiesOf(path ?? {})[name] ?? TEXT, required: true, ...told }];
  });
  const inQuery = fieldsIn(query, 'query', (name) => searchParams.get(name) ?? undefined);
  const inHeaders = [...new Set([...route.shown.headers, ...Object.keys(example.headers)])].map(
    (name): RouteField => {
      const shown = example.headers[name];
      const told = shown === undefined ? {} : { example: shown };
      return { in: 'header', name, schema: TEXT, required: false, ...told };
    },
  );
  const takesBody = hasBodyOf(route);
  const shownBody = Object(example.body) as Record<string, unknown>;
  const inBody = takesBody ? fieldsIn(body, 'body', (name) => shownBody[name]) : [];
  return {
    form: {
      fields: [...inPath, ...inQuery, ...inHeaders, ...inBody],
      query: inQuery.length > 0 ? null : search.slice(1),
      body: !takesBody ? 'none' : inBody.length > 0 ? 'fields' : 'whole',
    },
  };
}

const TEXT: JsonSchema = { type: 'string' };

/** The fields that an object's schema lists. */
function fieldsIn(
  schema: JsonSchema | null,
  place: RouteField['in'],
  exampleOf: (name: string) => unknown,
): RouteField[] {
  const required: unknown = schema?.required;
  return Object.entries(propertiesOf(schema ?? {})).map(([name, field]) => {
    const example = exampleOf(name);
    return {
      in: place,
      name,
      schema: field,
      required: Array.isArray(required) && required.includes(name),
      ...(example === undefined ? {} : { example }),
    };
  });
}

function hasBodyOf({ method, shown }: ServiceRoute): boolean {
  return method !== 'GET' && (method !== 'DELETE' || shown.body !== null || shown.example.body !== undefined);
}

/** What an operation of OpenAPI says of a call at a service's own address (3.1, section 4.8.10). */
export function calledAt({ address, shown, method }: ServiceRoute, mediaType: string) {
  const { path, query, headers, body, answer, example } = shown;
  const names = [...address.matchAll(/:([A-Za-z_]\w*)/g)].map(([, name = '']) => name);
  const inPath = names.map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: propertiesOf(path ?? {})[name] ?? { type: 'string' },
  }));
  const required: unknown = query?.required;
  const inQuery = Object.entries(propertiesOf(query ?? {})).map(([name, schema]) => ({
    name,
    in: 'query',
    required: Array.isArray(required) && required.includes(name),
    schema,
  }));
  // Three headers are not told as parameters (3.1, section 4.8.12.2).
  const inHeader = headers
    .filter((name) => !['accept', 'content-type', 'authorization'].includes(name.toLowerCase()))
    .map((name) => ({ name, in: 'header', required: false, schema: { type: 'string' } }));
  const hasBody = method !== 'GET' && (body !== null || example.body !== undefined);
  const shownBody = { schema: body ?? {}, ...(example.body === undefined ? {} : { example: example.body }) };
  return {
    path: address.replace(/:([A-Za-z_]\w*)/g, '{$1}'),
    parameters: [...inPath, ...inQuery, ...inHeader],
    ...(hasBody ? { requestBody: { content: { 'application/json': shownBody } } } : {}),
    answered: { description: 'OK', content: { [mediaType]: answer === null ? {} : { schema: answer } } },
  };
}
