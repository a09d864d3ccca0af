/** A call of a service that works, as an HTTP request: at the service's own address, where it has one. */
import type { Service } from '../service/define.ts';
import type { DiscoveryContext } from './context.ts';

export interface ExampleCall {
  method: string;
  url: string;
  /** Those beside the payment, in the order in which they are shown. */
  headers: Readonly<Record<string, string>>;
  /** Sent as JSON; undefined: nothing is. */
  body: unknown;
}

const JSON_HEADER = { 'Content-Type': 'application/json' } as const;

/** @param family the addresses at which services without one of their own are called */
export function exampleCallOf(
  { path, example, route }: Pick<Service, 'path' | 'example' | 'route'>,
  { baseUrl }: DiscoveryContext,
  family: 'x402' | 'mpp' = 'x402',
): ExampleCall {
  if (route === null)
    return { method: 'POST', url: `${baseUrl}/${family}/${path}`, headers: JSON_HEADER, body: example };
  const { url, headers, body } = route.shown.example;
  const saysType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  return {
    method: route.method,
    url: baseUrl + url,
    headers: body === undefined || saysType ? headers : { ...JSON_HEADER, ...headers },
    body,
  };
}

/** The options of `fetch` for such a call, as lines of JavaScript within its braces. @param more headers, as source text */
export function fetchOptionsOf({ method, headers, body }: ExampleCall, more: readonly string[] = []): string {
  const named = Object.entries(headers).map(([name, value]) => `${quoted(name)}: ${quoted(value)}`);
  const sent = [...more, ...named];
  return [
    `  method: ${quoted(method)},`,
    ...(sent.length === 0 ? [] : [`  headers: { ${sent.join(', ')} },`]),
    ...(body === undefined ? [] : [`  body: JSON.stringify(${JSON.stringify(body)}),`]),
  ].join('\n');
}

/** A text as JavaScript writes it. */
export function quoted(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

/** A text as a shell writes it: bare where that is the same. */
export function shellQuoted(text: string): string {
  return /^[\w:/.,@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
