/** The HTTP edge: what holds for every request, and where errors become answers. */
import { randomBytes } from 'node:crypto';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  LogController,
} from 'fastify';
import { refuseUnkeepableAddress } from './json-text.ts';
import { databaseLost, Problem } from './problem.ts';

const BODY_LIMIT_BYTES = 256 * 1024;
/** Room for an x402 payment that echoes its challenge. */
const MAX_HEADER_BYTES = 32 * 1024;

/** What a browser on another origin may send and read. */
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE, OPTIONS',
  'access-control-allow-headers':
    'Content-Type, Authorization, X-API-KEY, Idempotency-Key, PAYMENT-SIGNATURE, X-PAYMENT, SIGN-IN-WITH-X, X-Wallet-Secret, X-Retrieval-Token, Accept-Payment, Access-Control-Expose-Headers',
  'access-control-max-age': '86400',
};
/** On every answer. No request of ours is made with cookies, so a browser takes the wildcard for every header. */
const ALWAYS = { 'access-control-allow-origin': '*', 'access-control-expose-headers': '*' };

/** Unique to this process and this start; what follows it is a counter, which costs nothing. */
const REQUEST_ID_PREFIX = `req_${randomBytes(8).toString('base64url')}_`;
let requestCount = 0;

/**
 * Sends an answer past Fastify's own reply, in one write. For the paid routes, where an answer is a finished text:
 * half of what a small answer costs is its headers' way through the framework.
 */
export function sendFinished(
  reply: FastifyReply,
  answer: { status: number; headers: Readonly<Record<string, string>>; body: string },
): void {
  reply.hijack();
  // ASCII needs no encoding, and most answers are; Node then writes head and body as one block.
  const encoding = /^[ -~]*$/.test(answer.body) ? 'latin1' : 'utf8';
  // Names and values in one flat array: the form that Node writes without looking at each twice.
  const head: string[] = ['x-request-id', reply.request.id];
  for (const headers of [ALWAYS, answer.headers]) {
    for (const [name, value] of Object.entries(headers)) head.push(name, value);
  }
  head.push('content-length', String(Buffer.byteLength(answer.body, encoding)));
  reply.raw.writeHead(answer.status, head);
  reply.raw.end(reply.request.method === 'HEAD' ? '' : answer.body, encoding);
}

/** A Fastify that reads bodies as bytes, names every request, and answers errors in the house's shape. */
export function createHttpServer(logger: FastifyBaseLogger): FastifyInstance {
  const app = Fastify({
    loggerInstance: logger,
    // Our own lines name their request; a logger for each request would cost more than most requests.
    childLoggerFactory: (parent) => parent,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT_BYTES,
    http: { maxHeaderSize: MAX_HEADER_BYTES },
    requestTimeout: 30_000,
    keepAliveTimeout: 30_000,
    genReqId: () => {
      requestCount += 1;
      return REQUEST_ID_PREFIX + requestCount.toString(36);
    },
    routerOptions: { maxParamLength: 256, ignoreTrailingSlash: true },
    return503OnClosing: true,
  });

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
    done(null, payload);
  });

  app.options('/*', (_request, reply) => reply.code(204).headers(CORS).send());

  app.setErrorHandler((error: Error & { statusCode?: number; code?: string }, request, reply) => {
    const problem = error instanceof Problem ? error : asProblem(error);
    if (problem.status >= 500 && !(error instanceof Problem))
      logger.error({ err: error, requestId: request.id }, 'request failed');
    return reply.code(problem.status).headers(problem.headers).send(problem.body(request.id));
  });
  app.setNotFoundHandler((request, reply) => {
    const problem = new Problem(
      404,
      'NOT_FOUND',
      `There is nothing at ${request.method} ${request.url.split('?')[0]}.`,
      {
        details: { hint: 'GET / tells what there is.' },
      },
    );
    return reply.code(404).send(problem.body(request.id));
  });
  return app;
}

/** Fastify's own refusals, such as a body that is too large, in our words. */
function asProblem(error: Error & { statusCode?: number; code?: string }): Problem {
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new Problem(413, 'BODY_TOO_LARGE', `The body may have at most ${BODY_LIMIT_BYTES} bytes.`, {
      details: { limitBytes: BODY_LIMIT_BYTES, charged: false },
    });
  }
  const lost = databaseLost(error);
  if (lost !== null) return lost;
  const status = error.statusCode ?? 500;
  if (status >= 400 && status < 500) return new Problem(status, 'INVALID_REQUEST', error.message);
  return new Problem(500, 'INTERNAL_ERROR', 'Something failed inside.');
}
