/** `fare('POST /v1/forecast')` for routes of Express 4 and 5. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { Calls, type Fare, type FareAnswer, headersToSet, type OpenCall } from './calls.ts';
import type { GateOptions } from './farebox.ts';
import { stripHeaders } from './node-request.ts';

interface Request extends IncomingMessage {
  readonly originalUrl: string;
  readonly ip?: string | undefined;
  body?: unknown;
  /** Set by whoever keeps the bytes of a body that is parsed before. */
  readonly rawBody?: unknown;
  /** Tells parsers of bodies that there is nothing left to read. */
  _body?: boolean;
}

/** A middleware: `app.post('/v1/forecast', fare('POST /v1/forecast'), handler)`. It stands before parsers of bodies. */
export type ExpressFare = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => Promise<void>;

export interface ExpressGate {
  (route: string): ExpressFare;
  /** The paid call of a request, for its handler. */
  of(request: IncomingMessage): Fare | null;
}

/** Opens the gate of an Express server. @throws Error for options that cannot work */
export function openGate(options: GateOptions): ExpressGate {
  const calls = new Calls(options);
  const open = new WeakMap<IncomingMessage, OpenCall>();
  const fare =
    (route: string): ExpressFare =>
    async (request, response, next) => {
      try {
        const body = await bodyOf(calls, request);
        if ('status' in body) return send(response, body);
        const parsed = parsedBody(request, body);
        if (parsed === undefined) return send(response, NO_JSON);
        const begun = await calls.begin(route, {
          method: request.method ?? '',
          url: request.originalUrl,
          rawHeaders: request.rawHeaders,
          body,
          address: request.ip ?? null,
        });
        if (begun.do === 'answer') return send(response, begun.answer);
        open.set(request, begun.call);
        stripHeaders(request, begun.call);
        if (body.length > 0) Object.assign(request, { body: parsed.value, _body: true });
        holdAnswer(calls, begun.call, response);
        next();
      } catch (error) {
        next(error);
      }
    };
  return Object.assign(fare, { of: (request: IncomingMessage) => open.get(request)?.fare ?? null });
}

const NO_JSON: FareAnswer = {
  status: 400,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: Buffer.from(
    JSON.stringify({
      error: 'INVALID_JSON',
      message: 'The body is no JSON.',
      code: 'INVALID_JSON',
      charged: false,
    }),
  ),
};

/** @throws Error when somebody has read the body before and kept no bytes: what is priced must be what came */
async function bodyOf(calls: Calls, request: Request): Promise<Buffer | FareAnswer> {
  if (request.rawBody instanceof Buffer) return request.rawBody;
  if (request.body instanceof Buffer) return request.body;
  if (request._body === true)
    throw new Error('fare(): put it before express.json(), which leaves nothing of the bytes that were sent');
  return calls.bodyOf(request);
}

/** The body as its handler gets it: the value of JSON, or the bytes. @returns undefined for JSON that is none */
function parsedBody({ headers }: Request, body: Buffer): { value: unknown } | undefined {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (body.length === 0 || !/^application\/(?:[\w.+-]+\+)?json$/.test(type)) return { value: body };
  try {
    return { value: JSON.parse(body.toString('utf8')) };
  } catch {
    return undefined;
  }
}

/** Keeps what a handler writes until it is whole, and then has it paid. Nothing leaves before. */
function holdAnswer(calls: Calls, call: OpenCall, response: ServerResponse): void {
  const own = { writeHead: response.writeHead, write: response.write, end: response.end };
  const flushHeaders = response.flushHeaders;
  const pieces: Buffer[] = [];
  let length = 0;
  let isEnded = false;
  const take = (piece: unknown, encoding: unknown) => {
    if (piece === null || piece === undefined || typeof piece === 'function') return;
    const bytes =
      typeof piece === 'string'
        ? Buffer.from(piece, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
        : Buffer.from(piece as Uint8Array);
    length += bytes.length;
    // One piece more than may be kept shows that it is too long.
    if (length - bytes.length <= calls.mostAnswerBytes) pieces.push(bytes);
  };
  const callback = (args: readonly unknown[]) =>
    args.find((each) => typeof each === 'function') as (() => void) | undefined;
  const leave = async () => {
    const made = await calls.finishWith(call, Readable.from(pieces), (body) => ({
      status: response.statusCode,
      rawHeaders: Object.entries(response.getHeaders()).flatMap(([name, value]) =>
        value === undefined ? [] : [name, String(value)],
      ),
      body,
      callerLeft: response.closed,
    }));
    Object.assign(response, own, { flushHeaders });
    send(response, made.answer, made.body);
  };
  const held = {
    writeHead(status: number, ...rest: unknown[]) {
      response.statusCode = status;
      const headers = rest.find((each) => typeof each === 'object' && each !== null);
      for (const [name, value] of pairsOf(headers)) response.setHeader(name, value);
      return response;
    },
    write(piece: unknown, encoding?: unknown, ...rest: unknown[]) {
      if (!isEnded) take(piece, encoding);
      const done = callback([encoding, ...rest]);
      if (done !== undefined) process.nextTick(done);
      return true;
    },
    end(piece?: unknown, encoding?: unknown, ...rest: unknown[]) {
      if (isEnded) return response;
      isEnded = true;
      take(piece, encoding);
      const done = callback([piece, encoding, ...rest]);
      if (done !== undefined) response.once('finish', done);
      void leave();
      return response;
    },
    flushHeaders() {},
  };
  Object.assign(response, held);
}

/** Headers as `writeHead` takes them: an object, or names and values in turn. */
function pairsOf(headers: unknown): [name: string, value: string | string[]][] {
  if (!Array.isArray(headers)) return Object.entries((headers ?? {}) as Record<string, string | string[]>);
  const flat: readonly (string | string[])[] = headers;
  return flat.flatMap((name, index): [string, string | string[]][] =>
    index % 2 === 0 && typeof name === 'string' ? [[name, flat[index + 1] ?? '']] : [],
  );
}

/** @param own the body that the handler made, which leaves unless the answer has one */
function send(response: ServerResponse, answer: FareAnswer, own: Buffer = Buffer.alloc(0)): void {
  for (const name of response.getHeaderNames())
    if (answer.body !== null || name === 'content-length' || name === 'transfer-encoding')
      response.removeHeader(name);
  const body = answer.body ?? own;
  response.statusCode = answer.status;
  for (const [name, value] of headersToSet(answer)) response.setHeader(name, value);
  if (answer.status !== 204) response.setHeader('content-length', body.length);
  response.end(body);
}
