/** The faults by which tests make an upstream of the sandbox fail. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fieldsOf, openFaults } from '../faults.ts';
import { type Query, textOf } from './query.ts';

const MAX_DELAY_MS = 600_000;
/** Faults that break a stream after as many events as `afterEvents` says. */
const STREAM_FAULTS = [
  'stream-reset',
  'stream-hang',
  'stream-malformed',
  'stream-error',
  'stream-unfinished',
] as const;
const FAULTS = [
  ...(['status', 'latency', 'hang', 'malformed', 'html', 'empty', 'reset'] as const),
  ...STREAM_FAULTS,
] as const;
type FaultKind = (typeof FAULTS)[number];
const MAX_EVENTS = 100_000;

interface Fault {
  upstream: string;
  fault: FaultKind;
  status: number;
  delayMs: number;
  retryAfterSeconds: number | null;
  /** How many more requests the fault strikes. */
  remaining: number;
  pathIncludes: string;
  /** How many events of a stream are sent before it breaks. */
  afterEvents: number;
}

/** How the stream that answers a request breaks. */
export interface StreamFault {
  fault: (typeof STREAM_FAULTS)[number];
  afterEvents: number;
}
const streamFaults = new WeakMap<FastifyRequest, StreamFault>();

/** The events of a stream, up to the fault that is set for this request. Without a fault, all of them. */
export async function* withStreamFault(
  request: FastifyRequest,
  events: Iterable<string>,
): AsyncGenerator<string> {
  const fault = streamFaults.get(request);
  let count = 0;
  for (const event of events) {
    if (count === fault?.afterEvents) break;
    count += 1;
    yield event;
    // The pause sends each event by itself, as a model does that is still writing.
    await new Promise((resolve) => setImmediate(resolve));
  }
  switch (fault?.fault) {
    case undefined:
    case 'stream-unfinished':
      return;
    case 'stream-reset':
      request.raw.socket.resetAndDestroy();
      return;
    case 'stream-hang':
      await new Promise<void>((resolve) => request.raw.socket.once('close', () => resolve()));
      return;
    case 'stream-malformed':
      yield 'data: {"id":"chatcmpl-1","object":"chat.compl\n\n';
      return;
    case 'stream-error':
      yield `data: ${JSON.stringify({ error: { message: 'Sandbox fault', type: 'server_error', param: null, code: null } })}\n\n`;
      return;
  }
}

export interface Faults {
  /** Serves `/__control/...`. */
  control(app: FastifyInstance): void;
  /**
   * Counts a request and, if a fault is set for it, lets the fault strike: it delays the request, answers it in the upstream's
   * place, breaks its connection, or marks its stream to break.
   */
  strike(upstream: string, request: FastifyRequest, reply: FastifyReply): Promise<void>;
}

/** Opens the control of faults for these upstreams. At first no fault is set. */
export function openUpstreamFaults(upstreams: readonly string[]): Faults {
  const faults = openFaults('remaining', (body) => read(body, upstreams));
  const counts = new Map(upstreams.map((name) => [name, 0]));

  return {
    control(app) {
      app.get('/__control/health', () => ({ status: 'ok' }));
      app.get('/__control/faults', () => ({ faults: faults.list() }));
      app.post<{ Body: unknown }>('/__control/faults', ({ body }, reply) => {
        const ordered = faults.order(body);
        return typeof ordered === 'string'
          ? reply.code(400).send({ error: ordered })
          : reply.code(201).send({ faults: faults.list() });
      });
      app.delete('/__control/faults', () => {
        faults.clear();
        return { faults: [] };
      });
      app.get<{ Querystring: Query }>('/__control/requests', ({ query }, reply) => {
        const upstream = textOf(query, 'upstream');
        if (upstream === undefined) return { requests: Object.fromEntries(counts) };
        const count = counts.get(upstream);
        return count === undefined
          ? reply.code(404).send({ error: `no upstream ${upstream}` })
          : { upstream, count };
      });
      app.delete('/__control/requests', () => {
        for (const name of upstreams) counts.set(name, 0);
        return { requests: Object.fromEntries(counts) };
      });
    },

    async strike(upstream, request, reply) {
      counts.set(upstream, (counts.get(upstream) ?? 0) + 1);
      const fault = faults.take((one) => one.upstream === upstream && request.url.includes(one.pathIncludes));
      if (fault === null) return;
      if (fault.delayMs > 0) await passed(fault.delayMs, request);
      if (fault.retryAfterSeconds !== null) reply.header('retry-after', String(fault.retryAfterSeconds));
      const inStream = STREAM_FAULTS.find((kind) => kind === fault.fault);
      if (inStream !== undefined) streamFaults.set(request, { ...fault, fault: inStream });
      switch (fault.fault) {
        case 'latency':
          return;
        case 'status':
          return reply.code(fault.status).send(errorBody(upstream, fault.status));
        case 'malformed':
          return reply.type('application/json').send('{"data":[{"id":1,"price":"12.');
        case 'html':
          return reply
            .type('text/html')
            .send(
              '<!doctype html><html><head><title>Just a moment</title></head><body>Checking</body></html>',
            );
        case 'empty':
          return reply.type('application/json').send('');
        case 'reset':
          reply.hijack();
          request.raw.socket.resetAndDestroy();
          return;
        case 'hang':
          // The request is never answered. The connection ends when the client or the server closes it.
          reply.hijack();
          return;
      }
    },
  };
}

function read(body: unknown, upstreams: readonly string[]): Fault | string {
  if (typeof body !== 'object' || body === null) return 'a JSON object is needed';
  const fields = fieldsOf(body);
  const number = (name: string, fallback: number, maximum: number): number | null => {
    const value = fields[name] ?? fallback;
    return typeof value === 'number' && value >= 0 && value <= maximum ? value : null;
  };
  const { upstream, pathIncludes = '' } = fields;
  const fault = FAULTS.find((name) => name === fields.fault);
  const status = number('status', 500, 599);
  const delayMs = number('delayMs', fault === 'latency' ? 1_000 : 0, MAX_DELAY_MS);
  const retryAfterSeconds =
    fields.retryAfterSeconds === undefined ? null : number('retryAfterSeconds', 0, 86_400);
  const remaining = fields.remaining === undefined ? Number.POSITIVE_INFINITY : number('remaining', 1, 1e9);
  if (typeof upstream !== 'string' || !upstreams.includes(upstream))
    return `upstream must be one of ${upstreams.join(', ')}`;
  if (fault === undefined) return `fault must be one of ${FAULTS.join(', ')}`;
  if (status === null || status < 200) return 'status must be 200 to 599';
  const afterEvents = number('afterEvents', 3, MAX_EVENTS);
  if (delayMs === null || remaining === null || afterEvents === null || typeof pathIncludes !== 'string')
    return 'delayMs, remaining, afterEvents or pathIncludes is not valid';
  return { upstream, fault, status, delayMs, retryAfterSeconds, remaining, pathIncludes, afterEvents };
}

/** Waits for a time, or until the client closes the connection. */
function passed(delayMs: number, { raw }: FastifyRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      raw.socket.off('close', done);
      resolve();
    };
    const timer = setTimeout(done, delayMs);
    raw.socket.once('close', done);
  });
}

/** The body of an answer with this status, in the form in which the real upstream reports errors. */
function errorBody(upstream: string, status: number): unknown {
  const message = status === 429 ? 'Rate limit exceeded' : 'Sandbox fault';
  switch (upstream) {
    case 'coingecko':
    case 'geckoterminal':
      return { status: { error_code: status, error_message: message } };
    case 'kalshi':
      return { error: { code: status === 429 ? 'too_many_requests' : 'internal_error', message } };
    case 'binance':
      return { code: status === 429 ? -1003 : -1000, msg: message };
    case 'kraken':
      return { error: [status === 429 ? 'EAPI:Rate limit exceeded' : 'EService:Unavailable'] };
    case 'ai':
      return {
        error: {
          message,
          type: status === 429 ? 'rate_limit_exceeded' : 'server_error',
          param: null,
          code: null,
        },
      };
    case 'erddap':
      return `Error {\n    code=${status};\n    message="${message}";\n}\n`;
    default:
      return { message };
  }
}
