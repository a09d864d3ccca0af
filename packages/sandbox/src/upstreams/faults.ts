/** How tests make an upstream of the sandbox fail. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { fieldsOf, openFaults } from '../faults.ts';
import { type Query, textOf } from './query.ts';

const MAX_DELAY_MS = 600_000;
const FAULTS = ['status', 'latency', 'hang', 'malformed', 'html', 'empty', 'reset'] as const;
type FaultKind = (typeof FAULTS)[number];

interface Fault {
  upstream: string;
  fault: FaultKind;
  status: number;
  delayMs: number;
  retryAfterSeconds: number | null;
  /** How many more requests it strikes. */
  remaining: number;
  pathIncludes: string;
}

export interface Faults {
  /** Serves `/__control/...`. */
  control(app: FastifyInstance): void;
  /** Counts a request and, if a fault is set for it, answers in its stead. */
  strike(upstream: string, request: FastifyRequest, reply: FastifyReply): Promise<void>;
}

/** Opens the fault control for these upstreams; it starts without any fault. */
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
          // Never answered: the connection ends when the other side or the server closes it.
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
  if (delayMs === null || remaining === null || typeof pathIncludes !== 'string')
    return 'delayMs, remaining or pathIncludes is not valid';
  return { upstream, fault, status, delayMs, retryAfterSeconds, remaining, pathIncludes };
}

/** Waits, but not for longer than the other side does. */
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

/** What the real upstream would say with such a status. */
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
