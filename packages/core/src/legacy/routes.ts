/**
 * `/api/gpt/…`, the older family of addresses: some services for free, some at prices in credits. GET with a query or POST
 * with JSON, which means the same. What is sold goes through the paid call like everything else.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { readJson } from '../http/json-text.ts';
import { Problem, unavailable } from '../http/problem.ts';
import { answerOverHttp, assertFitsHttp } from '../paid-call/http-door.ts';
import type { PaidCall } from '../paid-call/paid-call.ts';
import { type CreditRouteParts, creditRoutes } from './credit-routes.ts';
import type { OpenEndpoint } from './endpoints.ts';
import type { FreeCall } from './free-call.ts';
import { type Operation, operationsOf } from './operations.ts';

/** A service that is not sold here will hardly be within the hour. */
const NOT_THERE_RETRY_MS = 3_600_000;

type Query = Record<string, string | string[]>;

export interface LegacyRouteParts extends CreditRouteParts {
  endpoints(): readonly OpenEndpoint[];
  paidCall: PaidCall;
  freeCall: FreeCall;
}

/** A route for each endpoint, the credit helpers, and a 404 that names them all. */
export function legacyRoutes(app: FastifyInstance, parts: LegacyRouteParts): void {
  const methodsOf = new Map([
    ...parts.endpoints().map(({ endpoint }) => [`/api/gpt/${endpoint.path}`, 'GET, HEAD, POST'] as const),
    ['/api/gpt/credits/packages', 'GET, HEAD'],
    ['/api/gpt/credits/create-session', 'POST'],
    ['/api/gpt/credits/status', 'GET'],
  ]);
  assertFitsHttp(parts.endpoints().flatMap(({ sold }) => sold ?? []));
  for (const open of parts.endpoints()) {
    const { endpoint } = open;
    const call = endpoint.priceUsd === null ? parts.freeCall : parts.paidCall;
    const handler = async (request: FastifyRequest<{ Querystring: Query }>, reply: FastifyReply) => {
      const sold = parts.endpoints().find((each) => each.endpoint === endpoint)?.sold ?? null;
      if (sold === null) {
        throw unavailable(
          'SERVICE_UNAVAILABLE',
          `This server has no ${endpoint.service}, which /api/gpt/${endpoint.path} stands for. Nothing is sold.`,
          NOT_THERE_RETRY_MS,
          { reason: 'not_offered', success: false },
        );
      }
      await answerOverHttp(call, request, reply, {
        service: sold,
        address: parts.addressOf(request),
        // A paid call must be a POST. Here a GET with a query is the same request.
        method: request.method === 'GET' ? 'POST' : request.method,
        rawBody: bodyOf(request),
      });
    };
    let describe: (method: string) => Operation | null = () => null;
    app.addHook('onReady', async () => {
      describe = await operationsOf(open);
    });
    const config = { operation: (method: string) => describe(method) };
    app.route({ method: ['GET', 'HEAD', 'POST'], url: `/api/gpt/${endpoint.path}`, config, handler });
  }
  creditRoutes(app, parts);
  app.route({
    method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    url: '/api/gpt/*',
    handler(request) {
      const path = request.url.split('?')[0] ?? '';
      const allow = methodsOf.get(path);
      if (allow !== undefined) {
        throw new Problem(405, 'METHOD_NOT_ALLOWED', `This address takes ${allow}.`, {
          details: { charged: false },
          headers: { allow },
        });
      }
      throw new Problem(404, 'UNKNOWN_ENDPOINT', 'There is no such endpoint.', {
        details: { knownPaths: [...methodsOf.keys()], catalog: '/x402/catalog', charged: false },
      });
    },
  });
}

/** The request's parameters as one JSON body: those of the query, overridden by those of the body. */
function bodyOf(request: FastifyRequest<{ Querystring: Query }>): Buffer | undefined {
  const sent = request.body instanceof Buffer && request.body.length > 0 ? request.body : undefined;
  const query = Object.entries(request.query);
  if (query.length === 0) return sent;
  let body: unknown = {};
  try {
    body = readJson(sent) ?? {};
  } catch {
    return sent;
  }
  // A body that is not an object is passed on, and refused by its reader.
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return sent;
  return Buffer.from(JSON.stringify({ ...Object.fromEntries(query), ...body }));
}
