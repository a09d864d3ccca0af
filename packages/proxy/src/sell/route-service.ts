/** A route of the configuration as a service: read, priced, sent to its upstream, and judged. */
import { createHash } from 'node:crypto';
import { priceInUsd } from '@farebox/core/ledger/money';
import {
  type AnyRunContext,
  type ByteStream,
  defineContentService,
  type Service,
  type StreamedContent,
} from '@farebox/core/service/define';
import type { ReadCall, ShownRoute } from '@farebox/core/service/route';
import { type ContentAnswer, content, type Source } from '@farebox/core/words/answer';
import { invalidInput, ServiceFailure } from '@farebox/core/words/failure';
import { priceOfRequest } from '../config/price-of-request.ts';
import type { PriceSource, Route } from '../config/proxy-config.ts';
import { MOST_KEPT_BYTES } from '../config/schema.ts';
import {
  type FlatHeaders,
  headersForCaller,
  headersForUpstream,
  type ReceivedHeaders,
  singleValue,
} from '../wire/headers.ts';
import {
  type AnswerRule,
  FAILURES,
  type FailureReason,
  mediaTypeOf,
  type UpstreamAnswer,
  type UpstreamFailure,
  type UpstreamRefusal,
} from '../wire/outcome.ts';
import { readAddress, upstreamTarget } from '../wire/path.ts';
import type { Upstream, UpstreamRequest } from '../wire/upstream.ts';
import { piecesOf } from './paid-pieces.ts';
import { exampleOf, fieldsOf, type RouteFields, requestOf, type WrittenCall } from './route-input.ts';

/** The longest that a caller over HTTP waits for a whole answer. */
const LONGEST_GATHERED_MS = 25_000;
const BUSY_RETRY_MS = 1_000;
/** Beside the time of a stream and that of its reader, which the paid call keeps. */
const GRACE_MS = 30_000;
const MOST_PASSED_ON_CHARACTERS = 20_000;
/** Statuses of a refusal that reach the caller as they are. */
const PASSED_ON: readonly number[] = [400, 404, 405, 406, 409, 410, 412, 413, 415, 416, 422, 428];
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

/** The means by which a route is sold. */
export interface RouteParts extends SentBy {
  /** Unique among all services: lower-case words and dashes. */
  readonly id: string;
  readonly tag: string;
}

/** The service that sells a route. */
export function routeService(parts: RouteParts): Service {
  const { route, id, tag, upstream } = parts;
  const fields = fieldsOf(route);
  const stream = route.answer === 'streamed' ? routeStream(parts) : null;
  return defineContentService({
    path: id,
    name: route.name,
    tag,
    priceUsd: priceInUsd(highestMicrosOf(route)),
    summary: route.summary ?? `${route.key}, answered by ${route.upstream.name}.`,
    input: fields.schema,
    example: exampleOf(route, fields),
    contentType: route.success.contentType?.find((type) => !type.endsWith('*')) ?? 'application/json',
    mpp: true,
    effect: route.effect,
    timeoutMs: wholeBoundsOf(route).timeoutMs,
    ...(stream === null ? {} : { stream }),
    route: {
      method: route.method,
      address: route.path.text,
      shown: shownOf(route),
      read: ({ http, rawBody }) =>
        http === null
          ? readRequest(parts, written(route, fields, rawBody))
          : readRequest(parts, { ...http, rawBody }),
    },
    async beforeSettling() {
      const { retryAfterMs, isOpen } = upstream.state;
      if (isOpen) throw unanswered('down', retryAfterMs, 'it has been failing');
      stream?.assertOpen();
    },
    run: (input, context) => {
      const { call, signal, nowMs } = context;
      return askUpstream(parts, input as unknown as RouteCall, { orderId: call.orderId, signal, nowMs });
    },
  });
}

/** A route as documents show it. */
function shownOf(route: Route): ShownRoute {
  const { request, response, sale, example } = route;
  const { params = {}, query = {}, headers = {}, body } = example ?? {};
  const path = route.path.segments
    .map((each) => (each.kind === 'literal' ? each.text : encodeURIComponent(params[each.name] ?? each.name)))
    .join('/');
  const search = new URLSearchParams(query);
  const rule = sale.kind === 'by' ? sale.rule : null;
  return {
    path: request.path,
    query: request.query,
    body: request.body,
    answer: response,
    example: { url: `/${path}${search.size === 0 ? '' : `?${search}`}`, headers, body },
    prices:
      rule === null
        ? null
        : {
            lowestUsd: priceInUsd(rule.lowestMicros),
            highestUsd: priceInUsd(rule.highestMicros),
            decidedBy: sourceWords(rule.source),
          },
  };
}

function sourceWords(source: PriceSource): string {
  if (source.kind === 'field') return `the field ${source.names.join('.')} of the body`;
  const place = { header: 'the header', query: 'the query parameter', path: 'the path parameter' }[
    source.kind
  ];
  return `${place} ${source.name}`;
}

/** The most that one call costs. */
function highestMicrosOf({ sale }: Route): bigint {
  if (sale.kind === 'fixed') return sale.priceMicros;
  return sale.kind === 'by' ? sale.rule.highestMicros : 0n;
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
  const priceMicros = priceOfRequest(route.sale, { parameters, query, rawHeaders, body: bytes });
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
  return { input, priceMicros, address: url, fingerprint };
}

/** The request that a JSON object stands for. @throws ServiceFailure 400 when it does not fit */
function written(route: Route, fields: RouteFields, rawBody: Buffer | undefined) {
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

function readsAnswer({ success }: Route): boolean {
  return success.has.length + success.hasNot.length + success.equals.length > 0 || success.lastEvent !== null;
}

/**
 * Asks the upstream.
 *
 * @param about.orderId names the call to the upstream, the same however often it is sent
 * @throws ServiceFailure for everything that is no answer; nothing is charged
 */
export async function askUpstream(
  { route, upstream }: SentBy,
  call: RouteCall,
  { orderId, signal, nowMs }: { orderId: string; signal: AbortSignal; nowMs(): number },
): Promise<ContentAnswer> {
  const { timeoutMs, mostBytes } = wholeBoundsOf(route);
  const request = requestFor(route, call, orderId);
  const bounds = { mostAnswerBytes: mostBytes, wholeTimeoutMs: timeoutMs, signal };
  const answered = await upstream.ask(Object.assign(request, bounds));
  if (answered.kind === 'failure') throw failed(route, answered);
  if (answered.kind === 'refusal') throw refused(route, answered);
  assertIsItsType(answered);
  const headers = headersOf(route, answered);
  if (holdsCredential(route, answered.body, ...Object.values(headers))) throw toldCredential();
  return Object.assign(content(answered.body, provenanceOf(route, nowMs)), {
    status: answered.status,
    headers,
  });
}

/** The bounds of a whole answer: a route that streams is gathered at doors that cannot. */
function wholeBoundsOf({ answer, timeoutMs, maxAnswerBytes, upstream }: Route) {
  if (answer === 'kept') return { timeoutMs, mostBytes: maxAnswerBytes };
  return {
    timeoutMs: Math.min(upstream.timeouts.wholeMs, LONGEST_GATHERED_MS),
    mostBytes: Math.min(maxAnswerBytes, MOST_KEPT_BYTES),
  };
}

/** How a route's answers leave as they come. */
export interface RouteStream extends Omit<ByteStream, 'form' | 'run'> {
  /** @throws ServiceFailure 503 while no other one may begin */
  assertOpen(): void;
  run(
    input: unknown,
    context: Pick<AnyRunContext, 'signal' | 'nowMs'> & { call: { orderId: string } },
  ): Promise<StreamedContent>;
}

/** The streams of one route, all of which count against its bound. */
export function routeStream({ route, upstream }: SentBy): RouteStream {
  const { maxMs, maxOpen } = route.stream;
  let open = 0;
  const assertOpen = () => {
    if (open >= maxOpen) throw unanswered('busy', BUSY_RETRY_MS, `${maxOpen} streams are open`);
  };
  const leave = () => {
    open -= 1;
  };
  return {
    timeoutMs: maxMs,
    // What its reader is waited for is not the upstream's time: whoever reads slowly could else have it for nothing.
    readerMs: maxMs,
    mostBytes: route.maxAnswerBytes,
    assertOpen,
    async run(input, { call: { orderId }, signal, nowMs }) {
      assertOpen();
      open += 1;
      const call = input as RouteCall;
      const request = requestFor(route, call, orderId);
      const bounds = { mostAnswerBytes: route.maxAnswerBytes, wholeTimeoutMs: 2 * maxMs + GRACE_MS, signal };
      const begun = await upstream.stream(Object.assign(request, bounds));
      if (begun.kind !== 'stream') {
        leave();
        throw begun.kind === 'refusal' ? refused(route, begun) : failed(route, begun);
      }
      void begun.ended.then(leave);
      const headers = headersOf(route, begun);
      if (holdsCredential(route, ...Object.values(headers))) {
        begun.stop();
        throw toldCredential();
      }
      return {
        fields: {},
        notes: [],
        ...provenanceOf(route, nowMs),
        status: begun.status,
        headers: { ...headers, ...lengthOf(begun.headers) },
        pieces: piecesOf(begun, {
          lastEvent: route.success.lastEvent,
          failed: (failure) => failed(route, failure),
        }),
      };
    },
  };
}

/** The length of a body whose upstream tells it, which is what leaves then. */
function lengthOf(headers: ReceivedHeaders): Record<string, string> {
  const length = singleValue(headers['content-length']);
  return length === null || headers['transfer-encoding'] !== undefined ? {} : { 'content-length': length };
}

/** The request of a call, without the bounds of its answer. */
function requestFor(
  route: Route,
  call: RouteCall,
  orderId: string,
): Omit<UpstreamRequest, 'mostAnswerBytes' | 'wholeTimeoutMs' | 'signal'> {
  return {
    method: route.method,
    target: call.target,
    headers: call.headers,
    body: call.body,
    rule: ruleOf(route, call),
    repeat: repeatOf(route),
    idempotencyKey: idempotencyKeyOf(orderId, call.fingerprint),
  };
}

function provenanceOf(route: Route, nowMs: () => number): { method: string; sources: Source[] } {
  const retrievedAt = new Date(nowMs()).toISOString();
  const { name } = route.upstream;
  const source = { name, url: `urn:source:${name}`, asOf: null, retrievedAt, cached: false, sandbox: false };
  return { method: 'As its API answered.', sources: [source] };
}

function headersOf(
  { answerHeaders }: Route,
  { status, headers }: { status: number; headers: ReceivedHeaders },
): Record<string, string> {
  return headersForCaller(headers, { named: new Set(answerHeaders), status });
}

/** @throws ServiceFailure for what says that it is JSON and is none: no agent could read what it would pay for */
function assertIsItsType({ headers, body, status }: UpstreamAnswer): void {
  if (mediaTypeOf(headers) !== 'application/json' || body.length === 0) return;
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw unanswered('no_answer', null, `what is called JSON is none (status ${status})`);
  }
}

/** A shorter secret may stand in any answer by chance. */
const LEAST_SECRET_CHARACTERS = 8;

/**
 * Tells whether an upstream repeats what only it may know, as servers do that show a request to its sender. Buyers would read how
 * to ask it unpaid.
 */
function holdsCredential({ upstream }: Route, ...told: readonly (Buffer | string)[]): boolean {
  const secrets = upstream.credentials.flatMap(({ reveal }) => [
    reveal(),
    reveal().replace(/^[A-Za-z][A-Za-z0-9-]* /, ''),
  ]);
  return secrets
    .filter(({ length }) => length >= LEAST_SECRET_CHARACTERS)
    .some((secret) =>
      [secret, encodeURIComponent(secret)].some((text) => told.some((each) => each.includes(text))),
    );
}

const toldCredential = () =>
  unanswered('no_answer', null, 'it repeated a credential of its own in what it sent');

function repeatOf({ effect, upstreamKnowsIdempotencyKey }: Route): 'read' | 'keyed' | 'never' {
  if (effect === 'read') return 'read';
  return upstreamKnowsIdempotencyKey ? 'keyed' : 'never';
}

/**
 * Names an order to its upstream, which then does it once: the same for the same payment and the same request, however often that
 * comes. It does not tell the id by which the receipt is found, nor the caller's own key.
 */
function idempotencyKeyOf(orderId: string, fingerprint: Buffer): string {
  return createHash('sha256')
    .update(`upstream\n${orderId}\n`)
    .update(fingerprint)
    .digest('base64url')
    .slice(0, 32);
}

function ruleOf({ success }: Route, call: RouteCall): AnswerRule {
  return {
    statuses: success.status,
    contentTypes: success.contentType,
    has: success.has,
    hasNot: success.hasNot,
    equals: success.equals,
    leastBytes: success.minBytes,
    lastEvent: success.lastEvent,
    mayBePartial: call.mayBePartial,
    mayBeEncoded: call.mayBeEncoded,
    mayEndByClose: success.mayEndByClose,
  };
}

/** The refusal of an upstream as ours: its status where that is the caller's matter, and what it said. */
function refused(route: Route, { status, contentType, body }: UpstreamRefusal): ServiceFailure {
  const said = body === null ? null : saidBy(contentType, body);
  if (holdsCredential(route, body ?? '', contentType ?? '')) return toldCredential();
  return new ServiceFailure({
    status: (PASSED_ON.find((each) => each === status) ?? 422) as 422,
    code: 'UPSTREAM_REFUSED',
    message: `${route.upstream.name} refused the request with status ${status}.`,
    details: { upstream: { status, contentType, body: said } },
  });
}

/** Reads what a refusal says: JSON as JSON, text as text, anything else not at all. */
function saidBy(contentType: string | null, body: Buffer): unknown {
  if (body.length > MOST_PASSED_ON_CHARACTERS) return null;
  const type = mediaTypeOf({ 'content-type': contentType ?? undefined }) ?? '';
  const isJson = type === 'application/json' || type.endsWith('+json');
  if (!isJson && !type.startsWith('text/')) return null;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    return isJson ? JSON.parse(text) : text;
  } catch {
    return null;
  }
}

function failed(route: Route, failure: UpstreamFailure): ServiceFailure {
  const { reason, retryAfterMs, detail, upstreamStatus, said } = failure;
  const seen = upstreamStatus === null ? detail : `${detail} (status ${upstreamStatus})`;
  return unanswered(reason, retryAfterMs, seen, holdsCredential(route, said ?? '') ? null : said);
}

/**
 * @param detail for the operator's log alone
 * @param said JSON in which the upstream told its caller what is wrong
 */
function unanswered(
  reason: FailureReason,
  retryAfterMs: number | null,
  detail: string,
  said: string | null = null,
): ServiceFailure {
  const { status, message } = FAILURES[reason];
  const upstream = said === null ? {} : { upstream: { said: JSON.parse(said) } };
  return new ServiceFailure({
    status: status ?? 503,
    code: codeOf(reason, status),
    message,
    details: { reason, ...upstream },
    cause: new Error(detail),
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
  });
}

function codeOf(reason: FailureReason, status: number | null): string {
  if (reason === 'busy') return 'BUSY';
  if (status === 504) return 'UPSTREAM_TIMEOUT';
  return status === 502 ? 'UPSTREAM_FAILED' : 'UPSTREAM_UNAVAILABLE';
}
