/**
 * `/a2a/v1`: A2A over HTTP and JSON, both versions at one address: a request that names none by `A2A-Version` is one of 0.3, as the
 * protocol says. The operations are those of JSON-RPC. https://a2a-protocol.org
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ownHosts, refuseForeign } from '../http/own-hosts.ts';
import { Problem } from '../http/problem.ts';
import { httpError, RpcError } from './errors.ts';
import { isObject } from './messages.ts';
import {
  type A2aRoutesParts,
  activate,
  callerOf,
  carriesPayment,
  readBody,
  sendStream,
  textOf,
  toldOf,
} from './requests.ts';
import { type Operation, spokenBy } from './rpc.ts';
import { HTTP_WIRES, type Version } from './wire.ts';

const TYPES: Readonly<Record<Version, string>> = {
  '0.3': 'application/json; charset=utf-8',
  '1.0': 'application/a2a+json; charset=utf-8',
};

type Method = 'GET' | 'POST' | 'DELETE';
interface Way {
  path: RegExp;
  operations: Partial<Record<Method, Operation>>;
  /** The one version that has it; absent: both. */
  only?: Version;
}
const WAYS: readonly Way[] = [
  { path: /^message:send$/, operations: { POST: 'send' } },
  { path: /^message:stream$/, operations: { POST: 'stream' } },
  { path: /^tasks$/, operations: { GET: 'list' }, only: '1.0' },
  { path: /^tasks\/([^/:]+)$/, operations: { GET: 'get' } },
  { path: /^tasks\/([^/:]+):cancel$/, operations: { POST: 'cancel' } },
  { path: /^tasks\/([^/:]+):subscribe$/, operations: { GET: 'subscribe', POST: 'subscribe' } },
  {
    path: /^tasks\/([^/:]+)\/pushNotificationConfigs(?:\/[^/]+)?$/,
    operations: { GET: 'push', POST: 'push', DELETE: 'push' },
  },
  { path: /^card$/, operations: { GET: 'extended card' }, only: '0.3' },
  { path: /^extendedAgentCard$/, operations: { GET: 'extended card' }, only: '1.0' },
];

export function a2aRestRoutes(http: FastifyInstance, parts: A2aRoutesParts): void {
  const hosts = ownHosts(parts.publicUrl, parts.hosts);
  for (const url of ['/a2a/v1', '/a2a/v1/*'])
    http.route({
      method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      url,
      exposeHeadRoute: false,
      // Which methods an address takes is known to `WAYS` alone.
      config: { isTold: () => false },
      handler: (request, reply) => {
        refuseForeign(request, hosts, 'A2A_ALLOWED_HOSTS');
        return answer(parts, request, reply);
      },
    });
}

async function answer(parts: A2aRoutesParts, request: FastifyRequest, reply: FastifyReply) {
  let version = likelyVersion(request);
  let isPaying = false;
  const failureOf = (error: unknown) =>
    httpError(toldOf(error, isPaying, parts.failed), { requestId: request.id, version });
  try {
    version = spokenBy(textOf(request.headers['a2a-version']));
    const { operation, id } = wayOf(request, version);
    const isSending = operation === 'send' || operation === 'stream';
    const params = isSending
      ? messageParams(readBody(request), version)
      : operation === 'list'
        ? queryParams(request.query)
        : operation === 'get'
          ? { ...queryParams(request.query), id }
          : { id };
    isPaying = isSending && carriesPayment(params, request);
    const caller = await callerOf(parts, request, reply);
    const made = await parts.rpc.perform(operation, params, HTTP_WIRES[version], caller);
    activate(request, reply);
    if ('stream' in made)
      return await sendStream(reply, made, {
        event: (result) => `data: ${JSON.stringify(result)}\n\n`,
        failure: (error) => `event: error\ndata: ${JSON.stringify(failureOf(error).body)}\n\n`,
      });
    return await reply.type(TYPES[version]).send(JSON.stringify(made.result));
  } catch (error) {
    const { status, headers, body } = failureOf(error);
    return reply.code(status).headers(headers).type(TYPES[version]).send(JSON.stringify(body));
  }
}

/** In whose words a caller is told that its version is not spoken. */
function likelyVersion({ headers }: FastifyRequest): Version {
  const named = textOf(headers['a2a-version'])?.trim() ?? '';
  return named === '' || named.startsWith('0.') ? '0.3' : '1.0';
}

/**
 * @returns what is asked for, and of which task
 * @throws RpcError for a path that there is not; Problem 405 for another method than it takes
 */
function wayOf(request: FastifyRequest, version: Version): { operation: Operation; id: string } {
  const path = (request.params as { '*'?: string })['*'] ?? '';
  for (const { path: shape, operations, only } of WAYS) {
    const found = shape.exec(path);
    if (found === null || (only !== undefined && only !== version)) continue;
    const operation = operations[request.method as Method];
    if (operation !== undefined) return { operation, id: found[1] ?? '' };
    throw otherMethod(Object.keys(operations), 'This address');
  }
  if (path === '') throw otherMethod(['POST'], 'A2A over HTTP is spoken below this address: /message:send');
  throw new RpcError('METHOD_NOT_FOUND', `A2A ${version} has no /${path.slice(0, 80)}.`);
}

function otherMethod(methods: readonly string[], what: string): Problem {
  const allow = methods.join(', ');
  return new Problem(405, 'METHOD_NOT_ALLOWED', `${what} takes ${allow}.`, {
    details: { method: allow, charged: false },
    headers: { allow },
  });
}

/** Reads a body as the parameters of JSON-RPC. 0.3 writes the JSON of its protocol buffers here, where what is absent is false. */
function messageParams(body: unknown, version: Version): unknown {
  if (version === '1.0' || !isObject(body) || !isObject(body.message)) return body;
  const { content, ...message } = body.message;
  const parts = content ?? message.parts;
  const { configuration } = body;
  return {
    ...body,
    message: { ...message, parts: Array.isArray(parts) ? parts.map(partOf03) : parts },
    ...(isObject(configuration) ? { configuration: { blocking: false, ...configuration } } : {}),
  };
}

/** A data part of 0.3 has its data one level deeper. One that was written as for JSON-RPC is taken too. */
function partOf03(part: unknown): unknown {
  if (!isObject(part) || part.kind !== undefined || !isObject(part.data)) return part;
  return Object.keys(part.data).join() === 'data' ? part.data : part;
}

/** An address has texts alone. What is no number or truth value stays one, and is refused by its name. */
function queryParams(query: unknown): Record<string, unknown> {
  const { includeArtifacts, ...asked } = query as Record<string, unknown>;
  const params: Record<string, unknown> = { ...asked };
  for (const name of ['pageSize', 'historyLength']) {
    const given = asked[name];
    if (typeof given === 'string' && /^-?\d{1,9}$/.test(given)) params[name] = Number(given);
  }
  const isTruth = includeArtifacts === 'true' || includeArtifacts === 'false';
  if (includeArtifacts !== undefined)
    params.includeArtifacts = isTruth ? includeArtifacts === 'true' : includeArtifacts;
  return params;
}
