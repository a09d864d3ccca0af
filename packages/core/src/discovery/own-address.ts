/** Services that have an address of their own, as documents show them beside the address that every service has. */
import type { Service } from '../service/define.ts';
import { propertiesOf } from '../service/json-schema.ts';
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

/** What an operation of OpenAPI says of a call at a service's own address (3.1, section 4.8.10). */
export function calledAt({ address, shown, method }: ServiceRoute, mediaType: string) {
  const { path, query, body, answer, example } = shown;
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
  const hasBody = method !== 'GET' && (body !== null || example.body !== undefined);
  const shownBody = { schema: body ?? {}, ...(example.body === undefined ? {} : { example: example.body }) };
  return {
    path: address.replace(/:([A-Za-z_]\w*)/g, '{$1}'),
    parameters: [...inPath, ...inQuery],
    ...(hasBody ? { requestBody: { content: { 'application/json': shownBody } } } : {}),
    answered: { description: 'OK', content: { [mediaType]: answer === null ? {} : { schema: answer } } },
  };
}
