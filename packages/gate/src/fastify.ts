/** `fare('POST /v1/forecast')` for routes of Fastify. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { Calls, type Fare, type FareAnswer, headersToSet, type OpenCall } from './calls.ts';
import type { GateOptions } from './farebox.ts';
import { stripHeaders } from './node-request.ts';

interface Request {
  readonly raw: IncomingMessage;
  readonly ip: string;
  readonly originalUrl: string;
}

interface Reply {
  readonly raw: ServerResponse;
  readonly statusCode: number;
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  removeHeader(name: string): unknown;
  getHeaders(): Record<string, number | string | string[] | undefined>;
  send(body: Buffer): unknown;
}

/** The options of a route that is sold: `app.post('/v1/forecast', fare('POST /v1/forecast'), handler)`. */
export interface FastifyFare {
  preParsing(request: Request, reply: Reply, payload: Readable): Promise<Readable>;
  onSend(request: Request, reply: Reply, payload: unknown): Promise<unknown>;
}

export interface FastifyGate {
  (route: string): FastifyFare;
  /** The paid call of a request, for its handler. */
  of(request: { readonly raw: IncomingMessage }): Fare | null;
}

/** Opens the gate of a Fastify server. @throws Error for options that cannot work */
export function openGate(options: GateOptions): FastifyGate {
  const calls = new Calls(options);
  const open = new WeakMap<IncomingMessage, OpenCall>();
  const fare = (route: string): FastifyFare => ({
    async preParsing(request, reply, payload) {
      const { raw } = request;
      const body = await calls.bodyOf(payload);
      if ('status' in body) return send(reply, body);
      const begun = await calls.begin(route, {
        method: raw.method ?? '',
        url: request.originalUrl,
        rawHeaders: raw.rawHeaders,
        body,
        address: request.ip,
      });
      if (begun.do === 'answer') return send(reply, begun.answer);
      open.set(raw, begun.call);
      stripHeaders(raw, begun.call);
      return Object.assign(Readable.from(body.length === 0 ? [] : [body], { objectMode: false }), {
        receivedEncodedLength: body.length,
      });
    },
    async onSend({ raw }, reply, payload) {
      const call = open.get(raw);
      if (call === undefined) return payload;
      open.delete(raw);
      const made = await calls.finishWith(call, piecesOf(payload), (body) => ({
        status: reply.statusCode,
        rawHeaders: Object.entries(reply.getHeaders()).flatMap(([name, value]) =>
          value === undefined ? [] : [name, String(value)],
        ),
        body,
        callerLeft: reply.raw.closed,
      }));
      return put(reply, made.answer) ?? made.body;
    },
  });
  return Object.assign(fare, { of: ({ raw }: { raw: IncomingMessage }) => open.get(raw)?.fare ?? null });
}

function piecesOf(payload: unknown): AsyncIterable<unknown> | null {
  if (payload === null || payload === undefined) return null;
  if (typeof payload === 'string' || payload instanceof Uint8Array) return Readable.from([payload]);
  if (payload instanceof Response) return payload.body;
  return payload as AsyncIterable<unknown>;
}

/** Puts status and headers on a reply. @returns the body, unless it is the one that the handler made */
function put(reply: Reply, answer: FareAnswer): Buffer | null {
  for (const name of Object.keys(reply.getHeaders()))
    if (answer.body !== null || name === 'content-length') reply.removeHeader(name);
  reply.code(answer.status);
  for (const [name, value] of headersToSet(answer)) reply.header(name, value);
  return answer.body;
}

/** @returns the reply, by which Fastify knows that the request is answered */
function send(reply: Reply, answer: FareAnswer): never {
  const body = put(reply, answer);
  reply.send(body ?? Buffer.alloc(0));
  return reply as never;
}
