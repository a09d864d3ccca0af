/** A call of a route: which of a request goes to its upstream, what that costs, and what a payment for it is bound to. */
import { createHash } from 'node:crypto';
import type { CallBounds, ReadCall } from '@farebox/core/service/route';
import { invalidInput, ServiceFailure } from '@farebox/core/words/failure';
import { type PricedRequest, priceOfRequest } from '../config/price-of-request.ts';
import type { Route } from '../config/proxy-config.ts';
import { type FlatHeaders, headersForUpstream } from '../wire/headers.ts';
import { readAddress, upstreamTarget } from '../wire/path.ts';
import type { Upstream } from '../wire/upstream.ts';
import { type RouteFields, requestOf, type WrittenCall } from './route-input.ts';

const RANGE_HEADERS: readonly string[] = ['range', 'if-range'];

/** A request to an upstream, whole and checked: what was priced is what is sent. */
export interface RouteCall {
  readonly target: string;
  readonly headers: FlatHeaders;
  readonly body: Buffer | null;
  readonly mayBePartial: boolean;
  readonly mayBeEncoded: boolean;
  /** The digest of what is asked. */
  readonly fingerprint: Buffer;
}

/** The means by which a call of a route is sent. */
export interface SentBy {
  readonly route: Route;
  readonly upstream: Upstream;
  readonly userAgent: string;
}

/**
 * Reads a request: which of it goes to the upstream, and what that costs.
 *
 * @throws ServiceFailure 400 or 413 with what to change
 */
export function readRequest(parts: SentBy, { url, rawHeaders, rawBody }: WrittenCall): ReadCall {
  const { route } = parts;
  const address = readAddress(url);
  if ('refused' in address) throw invalidInput('address', address.refused);
  const body = rawBody === undefined || rawBody.length === 0 ? null : rawBody;
  if (body !== null && route.method === 'GET') throw invalidInput('body', 'A GET has no body here.');
  if (body !== null && body.length > route.maxRequestBytes)
    throw new ServiceFailure({
      status: 413,
      code: 'BODY_TOO_LARGE',
      message: `The body of this route has at most ${route.maxRequestBytes} bytes.`,
    });
  const { credentials, fixedHeaders, prefix, basePath } = route.upstream;
  const credentialNames = credentials.flatMap(({ kind, name }) => (kind === 'query' ? [name] : []));
  const target = upstreamTarget(address, { prefix, basePath, credentialNames });
  if (typeof target !== 'string') throw invalidInput('query', target.refused);
  const own = new Set([
    ...credentials.flatMap(({ kind, name }) => (kind === 'header' ? [name] : [])),
    ...fixedHeaders.map(([name]) => name),
  ]);
  const headers = headersForUpstream({
    received: rawHeaders,
    named: new Set(route.requestHeaders),
    hasBody: body !== null,
    isAnswerRead: readsAnswer(route),
    own,
    userAgent: parts.userAgent,
  });
  if ('refused' in headers) throw invalidInput('headers', headers.refused);
  const parameters = parametersAt(route, address.segments);
  const { query } = address;
  const bytes = body ?? new Uint8Array();
  const priced = { parameters, query, rawHeaders, body: bytes };
  const priceMicros = priceOfRequest(route.sale, priced);
  const sent = (name: string) => headers.some((each, index) => index % 2 === 0 && each === name);
  const fingerprint = fingerprintOf(route, url, headers, body);
  const input: RouteCall = {
    target,
    headers,
    body,
    mayBePartial: RANGE_HEADERS.some((name) => route.requestHeaders.includes(name)) && sent('range'),
    mayBeEncoded: route.requestHeaders.includes('accept-encoding') && sent('accept-encoding'),
    fingerprint,
  };
  return { input, priceMicros, address: url, fingerprint, ...keyTermsOf(route, priced, priceMicros) };
}

/** How the terms of an account's keys are found; nothing where all have the list price and no bounds. */
function keyTermsOf(
  { sale, bounds, plans }: Route,
  priced: PricedRequest,
  listMicros: bigint,
): Pick<ReadCall, 'keyTerms'> {
  if (plans.size === 0 && !isBounding(bounds)) return {};
  return {
    keyTerms(accountId) {
      const plan = plans.get(String(accountId)) ?? { sale, bounds };
      const priceMicros = plan.sale === sale ? listMicros : priceOfRequest(plan.sale, priced);
      return Object.assign({ priceMicros }, plan.bounds);
    },
  };
}

/** Whether keys are given anything beside the price. */
export function isBounding({ freeCallsPerDay, callsPerMinute, callsPerDay }: CallBounds): boolean {
  return freeCallsPerDay > 0 || callsPerMinute !== null || callsPerDay !== null;
}

/** The request that a JSON object stands for. @throws ServiceFailure 400 when it does not fit */
export function written(route: Route, fields: RouteFields, rawBody: Buffer | undefined) {
  let value: unknown;
  try {
    value = rawBody === undefined || rawBody.length === 0 ? {} : JSON.parse(rawBody.toString('utf8'));
  } catch {
    throw invalidInput('body', 'The body must be JSON.');
  }
  const read = fields.schema.safeParse(value);
  if (read.success) return requestOf(route, fields, read.data);
  const [first] = read.error.issues;
  throw invalidInput(first?.path.join('.') ?? 'body', first?.message ?? 'The body does not fit.');
}

function parametersAt(
  { path }: Route,
  segments: readonly { readonly text: string }[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    path.segments.flatMap((segment, index) =>
      segment.kind === 'parameter' ? [[segment.name, segments[index]?.text ?? '']] : [],
    ),
  );
}

/** The digest of what is asked: method, path, query, the headers that the route names, and the body's bytes. */
function fingerprintOf(route: Route, url: string, headers: FlatHeaders, body: Buffer | null): Buffer {
  const named = new Set([...route.requestHeaders, ...(body === null ? [] : ['content-type'])]);
  const counted = headers
    .flatMap((name, index) =>
      index % 2 === 0 && named.has(name) ? [{ name, value: headers[index + 1] ?? '' }] : [],
    )
    // By name alone: values of one name that change places are another request.
    .sort((a, b) => (a.name === b.name ? 0 : a.name < b.name ? -1 : 1))
    .map(({ name, value }) => [name, value]);
  return createHash('sha256')
    .update(JSON.stringify([route.method, url, counted]))
    .update('\n')
    .update(body ?? '')
    .digest();
}

function readsAnswer({ success, sale }: Route): boolean {
  // A caller that asks for a compressed answer would else choose how much of it is counted.
  if (sale.kind === 'metered') return true;
  return success.has.length + success.hasNot.length + success.equals.length > 0 || success.lastEvent !== null;
}
