/** `/mcp`: the streamable HTTP transport of MCP, of the lines of 2025 and of 2026 at one address. */
import { createMcpHandler, type Server } from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { CallerPresence, connectionOf, whenSent } from '../http/caller-presence.ts';
import { readJson } from '../http/json-text.ts';
import { ownHosts, refuseForeign } from '../http/own-hosts.ts';
import { invalidRequest, Problem } from '../http/problem.ts';
import { type RateLimit, rateExceeded, rateHeaders } from '../http/rate-limit.ts';
import { type Cancelling, clientOf, nameFor, SESSION_HEADER } from './cancelling.ts';
import { IDEMPOTENCY_HEADER } from './payment.ts';
import type { Caller } from './server.ts';
import { readToolset } from './toolsets.ts';

/** The most messages in one POST: the line of 2025-03-26 knew them, and later ones do not. */
const MAX_BATCH = 20;

export interface McpRoutesParts {
  /** The categories of what is sold, in the order of the catalog. */
  tags(): readonly string[];
  /** Makes the server of one request. */
  serve(caller: Caller): Server;
  /** Host names that `Host` and `Origin` may have beside those of this machine. */
  hosts: readonly string[];
  /** The address of this server. */
  publicUrl: string;
  addressOf(request: FastifyRequest): string;
  addressLimit: RateLimit;
  cancelling: Cancelling;
  failed(error: Error): void;
}

export function mcpRoutes(http: FastifyInstance, parts: McpRoutesParts): void {
  const hosts = ownHosts(parts.publicUrl, parts.hosts);
  /** The callers, by the request that the library asks a server for: it hands its own request on, and that is all it knows of ours. */
  const callers = new WeakMap<Request, Caller>();
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const caller = requestInfo === undefined ? undefined : callers.get(requestInfo);
      if (caller === undefined) throw new Error('a request of MCP came from nowhere');
      return parts.serve(caller);
    },
    { legacy: 'stateless', onerror: parts.failed },
  );

  http.post('/mcp', async (request, reply) => {
    refuseForeign(request, hosts, 'MCP_ALLOWED_HOSTS');
    const address = parts.addressOf(request);
    const verdict = parts.addressLimit.take(address);
    reply.headers(rateHeaders(verdict));
    if (!verdict.allowed) throw rateExceeded(verdict);
    const { toolset: asksFor } = request.query as { toolset?: unknown };
    const toolset = readToolset(asksFor, parts.tags());
    const parsedBody = readJson(request.body instanceof Buffer ? request.body : undefined);
    if (parsedBody === undefined) throw invalidRequest('The body must be a JSON-RPC message of MCP.');
    if (Array.isArray(parsedBody) && parsedBody.length > MAX_BATCH)
      throw invalidRequest(`One request may carry at most ${MAX_BATCH} messages.`);
    if (request.headers[IDEMPOTENCY_HEADER] !== undefined) assertOneCall(parsedBody);
    const messages: readonly unknown[] = Array.isArray(parsedBody) ? parsedBody : [parsedBody];
    await parts.cancelling.cancel(messages, request.headers);
    const client = nameFor(messages);
    if (client !== null) reply.header(SESSION_HEADER, client);
    const gone = new AbortController();
    const asked = new Request('http://farebox.invalid/mcp', {
      method: 'POST',
      headers: plain(request.headers),
      signal: gone.signal,
    });
    const isAlone = messages.length === 1;
    callers.set(asked, { ...callerOf(request, reply, gone, isAlone), address, toolset });
    return reply.send(await handler.fetch(asked, { parsedBody }));
  });

  http.route({
    method: ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE'],
    url: '/mcp',
    exposeHeadRoute: false,
    config: { isTold: () => false },
    handler() {
      throw new Problem(
        405,
        'METHOD_NOT_ALLOWED',
        'MCP is spoken here by POST; there are no sessions to open or end.',
        {
          details: { method: 'POST', charged: false },
          headers: { allow: 'POST' },
        },
      );
    },
  });
}

/** @throws Problem for several calls under the one name that a header gives to a purchase */
function assertOneCall(body: unknown): void {
  if (!Array.isArray(body) || body.filter((message) => message?.method === 'tools/call').length < 2) return;
  throw invalidRequest(
    'One Idempotency-Key names one call, and this request carries several. Send each alone, or name each in params._meta["farebox/idempotencyKey"] and leave the header out.',
    [{ field: 'Idempotency-Key', message: 'at most one tools/call with this header' }],
  );
}

/**
 * The caller, as long as the connection stands and the response is not over.
 *
 * @param ended aborted when the caller has gone, and to end the response without an answer
 * @param isAlone whether the request carries a single message, so that its response can end without an answer to it
 */
function callerOf(
  request: FastifyRequest,
  reply: FastifyReply,
  ended: AbortController,
  isAlone: boolean,
): Omit<Caller, 'address' | 'toolset'> {
  const presence = new CallerPresence(connectionOf(request.raw.socket));
  const waiting: ((isSent: boolean) => void)[] = [];
  let isOver = false;
  whenSent(reply.raw, (isSent) => {
    isOver = true;
    for (const told of waiting) told(isSent);
    if (!isSent) {
      ended.abort();
      presence.leave();
    }
    presence.end();
  });
  return {
    headers: request.headers,
    remoteAddress: request.raw.socket.remoteAddress,
    requestId: request.id,
    gone: presence.gone,
    onGone: presence.onGone,
    client: clientOf(request.headers),
    withdraw() {
      if (isAlone) ended.abort();
    },
    // An answer that comes after the end of the response was not in it.
    whenSent: (told) => void (isOver ? told(false) : waiting.push(told)),
  };
}

function plain(headers: FastifyRequest['headers']): Headers {
  const kept = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) kept.set(name, [value].flat().join(', '));
  }
  return kept;
}
