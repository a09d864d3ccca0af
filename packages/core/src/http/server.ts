/** The HTTP edge: what holds for every request, and where errors become answers. */
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { wantsPage } from './accept.ts';
import type { DocUrlOf, PayPage, ReceiptPage } from './asked-form.ts';
import { refuseUnkeepableAddress } from './json-text.ts';
import { type KnownAddresses, noteRoutes } from './no-route.ts';
import { databaseAway, Problem, unavailable } from './problem.ts';
import { instanceOf, PROBLEM_TYPE, problemDetails, wantsProblemDetails } from './problem-details.ts';
import { withRate } from './rate-limit.ts';

export type { PayPage, ReceiptPage } from './asked-form.ts';

declare module 'fastify' {
  interface FastifyInstance {
    knownAddresses: KnownAddresses;
    /** Whether this process is about to stop: then every answer tells its connection to end. */
    ending: { isNear: boolean };
    /** Where a code of errors is told of; null: nowhere. */
    docUrlOf: DocUrlOf;
    payPage: PayPage | null;
    receiptPage: ReceiptPage | null;
  }
  interface FastifyContextConfig {
    /**
     * Whether the route is told to those who ask for its address by another method, or in other letters; asked for each of
     * them. Left out: it is. What is private or not offered now says no, and so does a route that only refuses.
     */
    isTold?: () => boolean;
    /** How OpenAPI describes the route; asked when the document is rendered. Left out: it is not described here. */
    operation?: (method: string) => Readonly<Record<string, unknown>> | null;
  }
}

const BODY_LIMIT_BYTES = 256 * 1024;
/** Room for an x402 payment that echoes its challenge. */
const MAX_HEADER_BYTES = 32 * 1024;

/** A name between two slashes of an address. */
const MAX_PART_CHARACTERS = 256;
/** From a request's first byte to its last. */
const REQUEST_TIMEOUT_MS = 30_000;
/** How much later at most it is noticed. */
const LATE_REQUESTS_LOOKED_FOR_MS = 1_000;

/** The headers that a browser on another origin may send and read. */
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE, OPTIONS',
  'access-control-max-age': '86400',
};
/** Headers that caches and tracing put on a page's requests: a browser stops a request that may not have them. */
const ADDED_BY_OTHERS = ['If-None-Match', 'Traceparent', 'Tracestate', 'Access-Control-Expose-Headers'];
/** On every answer. No request of ours is made with cookies, so a browser takes the wildcard for every header. */
const ALWAYS = { 'access-control-allow-origin': '*', 'access-control-expose-headers': '*' };
const ALWAYS_IN_HEAD = Object.entries(ALWAYS).flat();

/** Unique to this process and this start; what follows it is a counter, which costs nothing. */
const REQUEST_ID_PREFIX = `req_${randomBytes(8).toString('base64url')}_`;
let requestCount = 0;

/**
 * Sends an answer past Fastify's own reply, in one write. For the paid routes, where an answer is finished text or bytes:
 * half of what a small answer costs is its headers' way through the framework.
 */
export function sendFinished(
  reply: FastifyReply,
  answer: { status: number; headers: Readonly<Record<string, string>>; body: string | Buffer },
): void {
  reply.hijack();
  const { body } = answer;
  const bytes = Buffer.byteLength(body);
  const head = headOf(reply, answer.headers);
  head.push('content-length', String(bytes));
  reply.raw.writeHead(answer.status, head);
  // What has a byte for each character is ASCII. It needs no encoding, and most answers are; Node then writes head and body as one block.
  reply.raw.end(reply.request.method === 'HEAD' ? '' : body, bytes === body.length ? 'latin1' : 'utf8');
}

/** Names and values in one flat array: the form that Node writes without looking at each twice. */
export function headOf(reply: FastifyReply, own: Readonly<Record<string, string>>): string[] {
  const head: string[] = ['x-request-id', reply.request.id, ...ALWAYS_IN_HEAD];
  for (const name of Object.keys(own)) head.push(name, own[name] ?? '');
  if (reply.server.ending.isNear) head.push('connection', 'close');
  return head;
}

/**
 * Sends the page for somebody whose address leads nowhere; the status is set. `meant` is the address that was probably
 * meant, or null.
 */
export type LostPage = (request: FastifyRequest, reply: FastifyReply, meant: string | null) => FastifyReply;

interface HttpServerOptions {
  requestTimeoutMs?: number;
  /** For browsers; without it they get the same JSON as everybody. */
  lost?: LostPage | undefined;
  /** The same for a 402. */
  payPage?: PayPage | undefined;
  /** The same for a receipt. */
  receiptPage?: ReceiptPage | undefined;
  /** Where each code of errors is told of; without it errors do not say. */
  docUrlOf?: DocUrlOf | undefined;
}

/**
 * A Fastify that reads bodies as bytes, names every request, and answers errors in the house's shape.
 */
export function createHttpServer(
  logger: FastifyBaseLogger,
  options: HttpServerOptions = {},
): FastifyInstance {
  const { requestTimeoutMs = REQUEST_TIMEOUT_MS, lost, docUrlOf = () => null } = options;
  const app = Fastify({
    loggerInstance: logger,
    // Our own lines name their request; a logger for each request would cost more than most requests.
    childLoggerFactory: (parent) => parent,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT_BYTES,
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      // Its default is a minute, whatever a whole request may take.
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: LATE_REQUESTS_LOOKED_FOR_MS,
    },
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: 30_000,
    genReqId: () => {
      requestCount += 1;
      return REQUEST_ID_PREFIX + requestCount.toString(36);
    },
    routerOptions: { maxParamLength: MAX_PART_CHARACTERS, ignoreTrailingSlash: true },
    // Refused by a hook, in our own form.
    return503OnClosing: false,
    clientErrorHandler: refuseUnreadable,
    // No hook runs for what has no route.
    frameworkErrors: (error, request, reply) =>
      answerError(logger, error, request, reply.headers(ALWAYS).header('x-request-id', request.id)),
  });
  app.decorate('ending', { isNear: false });
  refuseWhileClosing(app);

  // Whether a body is needed, and what it must be, is for the route to say: a payment probe may come with any type.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(['application/json', '*'], { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );

  app.addHook('onRequest', (request, _reply, done) => {
    refuseUnkeepableAddress(request.url);
    done();
  });

  // When an answer leaves, and not when its request comes: finished ones bring these headers by themselves.
  app.addHook('onSend', (request, reply, payload, done) => {
    reply.headers(ALWAYS).header('x-request-id', request.id);
    if (app.ending.isNear) reply.header('connection', 'close');
    done(null, payload);
  });

  app.setErrorHandler((error: FrameworkError, request, reply) => answerError(logger, error, request, reply));
  app.decorate('knownAddresses', noteRoutes(app));
  app.decorate('docUrlOf', docUrlOf);
  app.decorate('payPage', options.payPage ?? null);
  app.decorate('receiptPage', options.receiptPage ?? null);
  app.setNotFoundHandler((request, reply) => {
    const { method, headers } = request;
    const { problem, meant } = app.knownAddresses.noRoute(method, pathOf(request));
    const isPage = problem.status === 404 && (method === 'GET' || method === 'HEAD');
    if (lost === undefined || !isPage || !wantsPage(headers.accept))
      return answerError(logger, problem, request, reply);
    return lost(request, reply.code(404).headers({ ...problem.headers, vary: 'Accept' }), meant);
  });
  return app;
}

/** Tells browsers what they may send. @param ofParts headers of requests beside those that any request may have */
export function allowBrowsers(app: FastifyInstance, ofParts: () => readonly string[]): void {
  app.options('/*', (request, reply) => {
    const allow = app.knownAddresses.allow(pathOf(request));
    if (allow !== null) reply.header('allow', `${allow}, OPTIONS`);
    const allowed = ['Content-Type', 'Authorization', ...ofParts(), ...ADDED_BY_OTHERS];
    const headers = { ...CORS, 'access-control-allow-headers': [...new Set(allowed)].join(', ') };
    return reply.code(204).headers(headers).send();
  });
}

/** The address that a request names, without its query. */
export function pathOf({ url }: FastifyRequest): string {
  return url.split('?')[0] ?? '';
}

/** Turns what was thrown into the answer. */
function answerError(
  logger: FastifyBaseLogger,
  error: FrameworkError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const problem = error instanceof Problem ? error : asProblem(error);
  if (problem.status >= 500 && !(error instanceof Problem))
    logger.error({ err: error, requestId: request.id }, 'request failed');
  const rate = Object.entries(reply.getHeaders()).filter(([name]) => /^ratelimit(-|$)/.test(name));
  for (const [name] of rate) reply.removeHeader(name);
  const headers = withRate(
    problem.headers,
    Object.fromEntries(rate.map(([name, value]) => [name, String(value)])),
  );
  return sendProblem(problem, request, reply.headers(headers));
}

/** In the house's form, or as problem details where those are asked for. */
export function sendProblem(problem: Problem, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status } = problem;
  const vary = reply.getHeader('vary');
  reply.code(status).header('vary', vary === undefined ? 'Accept' : `${vary}, Accept`);
  const docUrl = request.server.docUrlOf(problem.code);
  const body = { ...problem.body(request.id), ...(docUrl === null ? {} : { docUrl }) };
  if (!wantsProblemDetails(request.headers.accept)) return reply.send(body);
  const details = problemDetails(body, status, instanceOf(request.url, request.id));
  return reply.header('content-type', `${PROBLEM_TYPE}; charset=utf-8`).send(JSON.stringify(details));
}

/** A route that is asked on a connection from before the end began is not served any more. */
function refuseWhileClosing(app: FastifyInstance): void {
  let closing = false;
  app.addHook('preClose', (done) => {
    closing = true;
    app.ending.isNear = true;
    done();
  });
  app.addHook('onRequest', (_request, _reply, done) => {
    if (!closing) return done();
    throw unavailable('SHUTTING_DOWN', 'This process is ending. Send the request again.', 1_000);
  });
}

type FrameworkError = Error & { statusCode?: number; code?: string };

/** Refuses a request that the parser cannot read. It has no route and no reply: the answer is written on the bare connection. */
function refuseUnreadable(error: FrameworkError, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const [status, title, problem] = UNREADABLE[error.code ?? ''] ?? MALFORMED;
  requestCount += 1;
  const requestId = REQUEST_ID_PREFIX + requestCount.toString(36);
  const body = JSON.stringify(problem.body(requestId));
  const headers = { ...ALWAYS, 'content-type': 'application/json; charset=utf-8', 'x-request-id': requestId };
  const head = Object.entries({
    ...headers,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  });
  if (socket.writable)
    socket.write(
      `HTTP/1.1 ${status} ${title}\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
    );
  socket.destroy(error);
}

type Unreadable = readonly [status: number, title: string, problem: Problem];
const unreadable = (status: number, title: string, code: string, message: string): Unreadable => [
  ...([status, title] as const),
  new Problem(status, code, message, { details: { charged: false } }),
];
const MALFORMED = unreadable(400, 'Bad Request', 'INVALID_REQUEST', 'This is not a request of HTTP/1.1.');
/** The refusals by the parser's code. */
const UNREADABLE: Readonly<Record<string, Unreadable>> = {
  ERR_HTTP_REQUEST_TIMEOUT: unreadable(
    ...([408, 'Request Timeout', 'REQUEST_TIMEOUT'] as const),
    `A request must be sent within ${REQUEST_TIMEOUT_MS / 1_000} s.`,
  ),
  HPE_HEADER_OVERFLOW: unreadable(
    ...([431, 'Request Header Fields Too Large', 'HEADERS_TOO_LARGE'] as const),
    `Address and headers may have at most ${MAX_HEADER_BYTES} bytes together.`,
  ),
};

/** Fastify's own refusals, such as a body that is too large, in our words. */
function asProblem(error: FrameworkError): Problem {
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new Problem(413, 'BODY_TOO_LARGE', `The body may have at most ${BODY_LIMIT_BYTES} bytes.`, {
      details: { limitBytes: BODY_LIMIT_BYTES, charged: false },
    });
  }
  if (error.code === 'FST_ERR_MAX_PARAM_LENGTH') {
    return new Problem(
      414,
      'ADDRESS_TOO_LONG',
      `A part of an address may have at most ${MAX_PART_CHARACTERS} characters.`,
      {
        details: { charged: false },
      },
    );
  }
  const lost = databaseAway(error);
  if (lost !== null) return lost;
  const status = error.statusCode ?? 500;
  if (status >= 400 && status < 500)
    return new Problem(status, 'INVALID_REQUEST', error.message, { details: { charged: false } });
  return new Problem(500, 'INTERNAL_ERROR', 'Something failed inside.');
}
