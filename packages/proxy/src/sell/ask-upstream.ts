/** A call on its way to its upstream, and what came back: a whole answer, or one that leaves as it comes. */
import { createHash } from 'node:crypto';
import type { AnyRunContext, ByteStream, CallFacts, StreamedContent } from '@farebox/core/service/define';
import { type ContentAnswer, content, type Source } from '@farebox/core/words/answer';
import type { Route } from '../config/proxy-config.ts';
import { MOST_KEPT_BYTES } from '../config/schema.ts';
import { headersForCaller, type ReceivedHeaders, singleValue } from '../wire/headers.ts';
import { type AnswerRule, mediaTypeOf } from '../wire/outcome.ts';
import type { UpstreamRequest } from '../wire/upstream.ts';
import { type Meter, openMeter } from './meter.ts';
import { failed, holdsCredential, refused, repeatedCredential, unanswered } from './no-answer.ts';
import { piecesOf } from './paid-pieces.ts';
import type { RouteCall, SentBy } from './route-call.ts';

/** The longest that a caller over HTTP waits for a whole answer. */
const LONGEST_GATHERED_MS = 25_000;
const BUSY_RETRY_MS = 1_000;
/** Beside the time of a stream and that of its reader, which the paid call keeps. */
const GRACE_MS = 30_000;

/** The order that a call belongs to, and by whom it is counted at the upstream. */
type Asking = Pick<CallFacts, 'orderId' | 'caller'>;

/**
 * Asks the upstream.
 *
 * @param about.orderId names the call to the upstream, the same however often it is sent
 * @throws ServiceFailure for everything that is no answer; nothing is charged
 */
export async function askUpstream(
  { route, upstream }: SentBy,
  call: RouteCall,
  { signal, nowMs, ...asking }: Asking & { signal: AbortSignal; nowMs(): number },
): Promise<ContentAnswer> {
  const { timeoutMs, mostBytes } = wholeBoundsOf(route);
  const request = requestFor(route, call, asking);
  const bounds = { mostAnswerBytes: mostBytes, wholeTimeoutMs: timeoutMs, signal };
  const answered = await upstream.ask(Object.assign(request, bounds));
  if (answered.kind === 'failure') throw failed(route, answered);
  if (answered.kind === 'refusal') throw refused(route, answered);
  const headers = headersOf(route, answered);
  if (holdsCredential(route, answered.body, ...Object.values(headers))) throw repeatedCredential();
  const meter = meterFor(route, answered.headers);
  meter?.see(answered.body);
  return Object.assign(content(answered.body, provenanceOf(route, nowMs)), {
    status: answered.status,
    headers,
    ...(meter === null ? {} : { costMicros: meter.costMicros() }),
  });
}

/** Null where the price does not follow from the answer. */
function meterFor({ sale }: Route, headers: ReceivedHeaders): Meter | null {
  return sale.kind === 'metered' ? openMeter(sale.meter, mediaTypeOf(headers)) : null;
}

/** The bounds of a whole answer: a route that streams is gathered at doors that cannot. */
export function wholeBoundsOf({ answer, timeoutMs, maxAnswerBytes, upstream }: Route) {
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
    context: Pick<AnyRunContext, 'signal' | 'nowMs'> & { call: Asking },
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
    async run(input, { call: asking, signal, nowMs }) {
      assertOpen();
      const call = input as RouteCall;
      const request = requestFor(route, call, asking);
      const bounds = { mostAnswerBytes: route.maxAnswerBytes, wholeTimeoutMs: 2 * maxMs + GRACE_MS, signal };
      open += 1;
      const begun = await upstream.stream(Object.assign(request, bounds)).catch((error: unknown) => {
        leave();
        throw error;
      });
      if (begun.kind !== 'stream') {
        leave();
        throw begun.kind === 'refusal' ? refused(route, begun) : failed(route, begun);
      }
      void begun.ended.then(leave);
      const headers = headersOf(route, begun);
      if (holdsCredential(route, ...Object.values(headers))) {
        begun.stop();
        throw repeatedCredential();
      }
      const meter = meterFor(route, begun.headers);
      const pieces = piecesOf(begun, {
        lastEvent: route.success.lastEvent,
        failed: (failure) => failed(route, failure),
      });
      return {
        fields: {},
        notes: [],
        ...provenanceOf(route, nowMs),
        status: begun.status,
        headers: { ...headers, ...lengthOf(begun.headers) },
        pieces: meter === null ? pieces : measuredPieces(pieces, meter),
        ...(meter === null ? {} : { costMicros: () => meter.costMicros() }),
      };
    },
  };
}

/** Counts pieces as they leave, so that a reader who leaves pays for no more. */
async function* measuredPieces(
  pieces: StreamedContent['pieces'],
  meter: Meter,
): AsyncGenerator<Buffer, Buffer> {
  try {
    for (;;) {
      const next = await pieces.next();
      meter.see(next.value);
      if (next.done === true) return next.value;
      yield next.value;
    }
  } finally {
    await pieces.return(Buffer.alloc(0));
  }
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
  { orderId, caller }: Asking,
): Omit<UpstreamRequest, 'mostAnswerBytes' | 'wholeTimeoutMs' | 'signal'> {
  return {
    method: route.method,
    target: call.target,
    headers: call.headers,
    body: call.body,
    rule: ruleOf(route, call),
    repeat: repeatOf(route),
    idempotencyKey: idempotencyKeyOf(orderId, call.fingerprint),
    visitor: { caller, callId: orderId },
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
