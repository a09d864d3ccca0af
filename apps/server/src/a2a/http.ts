/** `/a2a`: A2A over JSON-RPC, both versions at one address; streams as server-sent events. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { openEventStream } from '../http/event-stream.ts';
import { readJson } from '../http/json-text.ts';
import { ownHosts, refuseForeign } from '../http/own-hosts.ts';
import { databaseAway, Problem } from '../http/problem.ts';
import { type RateLimit, rateExceeded, rateHeaders } from '../http/rate-limit.ts';
import { presentedApiKey } from '../keys/api-key.ts';
import { tellFate } from '../paid-call/fate.ts';
import { errorObject, RpcError } from './errors.ts';
import { X402_EXTENSIONS } from './extensions.ts';
import { mentionsPayment } from './messages.ts';
import { type Caller, isSending, type Reply, type Rpc } from './rpc.ts';

/** The longest that the reader of a stream may keep it waiting, in all. */
const READER_PATIENCE_MS = 30_000;
const JSON_TYPE = 'application/json; charset=utf-8';

type RpcId = string | number | null;

export interface A2aRoutesParts {
  rpc: Rpc;
  /** Host names that `Host` and `Origin` may have beside those of this machine. */
  hosts: readonly string[];
  addressOf(request: FastifyRequest): string;
  addressLimit: RateLimit;
  /** Of the key that a request presents; null for one without a key that is good here. */
  accountOf(headers: FastifyRequest['headers']): Promise<bigint | null>;
  failed(error: unknown): void;
}

export function a2aRoutes(http: FastifyInstance, parts: A2aRoutesParts): void {
  const hosts = ownHosts(parts.hosts);

  http.post('/a2a', async (request, reply) => {
    refuseForeign(request, hosts, 'A2A_ALLOWED_HOSTS');
    let id: RpcId = null;
    let isPaying = false;
    try {
      const asked = readRequest(request);
      id = asked.id;
      isPaying = carriesPayment(asked, request);
      const caller = await callerOf(request, reply);
      const made = await parts.rpc.answer(asked, textOf(request.headers['a2a-version']), caller);
      activate(request, reply);
      if ('stream' in made) return await sendStream(reply, request, made, { id, isPaying });
      return await reply.type(JSON_TYPE).send(JSON.stringify({ jsonrpc: '2.0', id, result: made.result }));
    } catch (error) {
      const { status, headers, body } = failureOf(
        error,
        { id, requestId: request.id, isPaying },
        parts.failed,
      );
      return reply.code(status).headers(headers).type(JSON_TYPE).send(body);
    }
  });

  http.route({
    method: ['GET', 'DELETE'],
    url: '/a2a',
    exposeHeadRoute: false,
    handler() {
      throw new Problem(405, 'METHOD_NOT_ALLOWED', 'A2A is spoken here by POST, in JSON-RPC.', {
        details: { method: 'POST', charged: false },
        headers: { allow: 'POST' },
      });
    },
  });

  async function callerOf(request: FastifyRequest, reply: FastifyReply): Promise<Caller> {
    const address = parts.addressOf(request);
    const verdict = parts.addressLimit.take(address);
    reply.headers(rateHeaders(verdict));
    if (!verdict.allowed) throw rateExceeded(verdict);
    return {
      ...{ address, requestId: request.id, headers: request.headers },
      accountId: await parts.accountOf(request.headers),
      gone: () => request.raw.socket.destroyed,
    };
  }

  async function sendStream(
    reply: FastifyReply,
    request: FastifyRequest,
    { stream }: Extract<Reply, { stream: unknown }>,
    asked: { id: RpcId; isPaying: boolean },
  ): Promise<FastifyReply> {
    const out = openEventStream(reply, plainHeaders(reply), READER_PATIENCE_MS);
    const event = (message: object) =>
      Buffer.from(`data: ${JSON.stringify({ jsonrpc: '2.0', id: asked.id, ...message })}\n\n`);
    try {
      await stream({ closed: out.closed, write: (result) => out.write(event({ result })) });
      await out.end(Buffer.alloc(0));
    } catch (error) {
      const { body } = failureOf(error, { ...asked, requestId: request.id }, parts.failed);
      await out.end(Buffer.from(`data: ${body}\n\n`));
    }
    return reply;
  }
}

/**
 * An error as a response of JSON-RPC. What is wrong with us is logged. A message with a payment that comes at the wrong time may be
 * one that comes again, and nobody has looked yet whether it bought something before.
 */
function failureOf(
  error: unknown,
  { id, requestId, isPaying }: { id: RpcId; requestId: string; isPaying: boolean },
  failed: (error: unknown) => void,
) {
  const known = error instanceof RpcError || error instanceof Problem ? error : ours(error);
  if (known !== error) failed(error);
  const told = isPaying && known instanceof Problem && isOurs(known) ? tellFate(known, 'not looked') : known;
  const isProblem = told instanceof Problem;
  return {
    // JSON-RPC has its errors in the body; what a proxy or a client should wait for stands in the status too.
    status: isProblem && isOurs(told) ? told.status : 200,
    headers: isProblem ? { ...told.headers } : {},
    body: JSON.stringify({ jsonrpc: '2.0', id, error: errorObject(told, requestId) }),
  };
}

const isOurs = ({ status }: Problem) => status === 429 || status >= 500;

/** Whether a request is a message that brings a key or an x402 payment. */
function carriesPayment(
  { method, params }: { method: string; params: unknown },
  request: FastifyRequest,
): boolean {
  if (!isSending(method)) return false;
  return presentedApiKey(request.headers) !== null || mentionsPayment(params);
}

function ours(error: unknown): Problem {
  const details = { charged: null };
  return databaseAway(error) ?? new Problem(500, 'INTERNAL_ERROR', 'The server failed.', { details });
}

/** @throws RpcError for what is no request of JSON-RPC */
function readRequest(request: FastifyRequest): { id: RpcId; method: string; params: unknown } {
  let body: unknown;
  try {
    body = readJson(request.body instanceof Buffer ? request.body : undefined);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new RpcError('PARSE_ERROR', error.message, { ...error.details });
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new RpcError('INVALID_REQUEST', 'The body must be one request of JSON-RPC.');
  const { jsonrpc, id = null, method, params } = body as Record<string, unknown>;
  const isId = id === null || typeof id === 'number' || (typeof id === 'string' && id.length <= 255);
  if (jsonrpc !== '2.0' || typeof method !== 'string' || !isId)
    throw new RpcError(
      'INVALID_REQUEST',
      'A request of JSON-RPC has jsonrpc "2.0", a method, and an id that is a number or a text of at most 255 characters.',
    );
  return { id: id as RpcId, method, params };
}

/** Names, in the answer, the extensions that the caller asked for and that there are. */
function activate({ headers }: FastifyRequest, reply: FastifyReply): void {
  for (const name of ['a2a-extensions', 'x-a2a-extensions']) {
    const asked = (textOf(headers[name]) ?? '').split(',').map((uri) => uri.trim());
    const active = X402_EXTENSIONS.filter((uri) => asked.includes(uri));
    if (active.length > 0) reply.header(name, active.join(', '));
  }
}

function plainHeaders(reply: FastifyReply): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(reply.getHeaders())) headers[name] = String(value);
  return headers;
}

const textOf = (header: string | string[] | undefined) => (Array.isArray(header) ? header.join(',') : header);
