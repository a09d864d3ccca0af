/** `/a2a`: A2A over JSON-RPC, both versions at one address; streams as server-sent events. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ownHosts, refuseForeign } from '../http/own-hosts.ts';
import { Problem } from '../http/problem.ts';
import { errorObject, RpcError } from './errors.ts';
import {
  type A2aRoutesParts,
  activate,
  callerOf,
  carriesPayment,
  isOurs,
  readBody,
  sendStream,
  textOf,
  toldOf,
} from './requests.ts';
import { isSending } from './rpc.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

type RpcId = string | number | null;

export function a2aRoutes(http: FastifyInstance, parts: A2aRoutesParts): void {
  const hosts = ownHosts(parts.publicUrl, parts.hosts);

  http.post('/a2a', async (request, reply) => {
    refuseForeign(request, hosts, 'A2A_ALLOWED_HOSTS');
    let id: RpcId = null;
    let isPaying = false;
    const failureOf = (error: unknown) => failure(toldOf(error, isPaying, parts.failed), id, request.id);
    try {
      const asked = readRequest(request);
      id = asked.id;
      isPaying = isSending(asked.method) && carriesPayment(asked.params, request);
      const caller = await callerOf(parts, request, reply);
      const made = await parts.rpc.answer(asked, textOf(request.headers['a2a-version']), caller);
      activate(request, reply);
      if ('stream' in made)
        return await sendStream(reply, made, {
          event: (result) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`,
          failure: (error) => `data: ${failureOf(error).body}\n\n`,
        });
      return await reply.type(JSON_TYPE).send(JSON.stringify({ jsonrpc: '2.0', id, result: made.result }));
    } catch (error) {
      const { status, headers, body } = failureOf(error);
      return reply.code(status).headers(headers).type(JSON_TYPE).send(body);
    }
  });

  http.route({
    method: ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE'],
    url: '/a2a',
    exposeHeadRoute: false,
    config: { isTold: () => false },
    handler() {
      throw new Problem(405, 'METHOD_NOT_ALLOWED', 'A2A is spoken here by POST, in JSON-RPC.', {
        details: { method: 'POST', charged: false },
        headers: { allow: 'POST' },
      });
    },
  });
}

/** An error as a response of JSON-RPC. */
function failure(told: RpcError | Problem, id: RpcId, requestId: string) {
  const isProblem = told instanceof Problem;
  return {
    // JSON-RPC has its errors in the body; what a proxy or a client should wait for stands in the status too.
    status: isProblem && isOurs(told) ? told.status : 200,
    headers: isProblem ? { ...told.headers } : {},
    body: JSON.stringify({ jsonrpc: '2.0', id, error: errorObject(told, requestId) }),
  };
}

/** @throws RpcError for what is no request of JSON-RPC */
function readRequest(request: FastifyRequest): { id: RpcId; method: string; params: unknown } {
  const body = readBody(request);
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
