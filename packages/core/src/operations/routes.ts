import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Derivation, isInternal } from '../http/caller-address.ts';
import { Problem } from '../http/problem.ts';
import type { Metrics } from './metrics.ts';

/** Routes that a load balancer and a Prometheus ask. */
export function operationsRoutes(
  app: FastifyInstance,
  parts: {
    metrics: Metrics;
    metricsToken(): string | null;
    /** Whether the server has an address for everybody: then some proxy of it may look like a caller from within. */
    isPublic: boolean;
    version: string;
    /** Null when ready; else why not. */
    notReady(): Promise<string | null>;
    /** The further fields that the parts say. */
    readiness(isFromWithin: boolean): Readonly<Record<string, unknown>>;
    explainAddress(request: FastifyRequest): Derivation;
  },
): void {
  app.get('/health/live', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    return { status: 'live', version: parts.version };
  });

  app.get('/health/ready', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    const reason = await parts.notReady();
    if (reason !== null) throw new Problem(503, 'NOT_READY', reason, { headers: { 'retry-after': '1' } });
    return { status: 'ready', version: parts.version, ...parts.readiness(isFromWithin(request)) };
  });

  app.get('/metrics', async (request, reply) => {
    if (!mayRead(request))
      throw new Problem(
        403,
        'FORBIDDEN',
        'Metrics are for the operator: send METRICS_TOKEN as Authorization: Bearer. Without that variable they are closed behind a proxy.',
      );
    return reply.header('content-type', parts.metrics.contentType).send(await parts.metrics.render());
  });

  function mayRead(request: FastifyRequest): boolean {
    const token = parts.metricsToken();
    if (token === null) return isFromWithin(request);
    const presented = /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const digest = (value: string) => createHash('sha256').update(value).digest();
    return timingSafeEqual(digest(presented), digest(token));
  }

  /** Tells whether a caller may ask without a token: one on an internal address who came over no proxy, as far as can be told. */
  function isFromWithin(request: FastifyRequest): boolean {
    const { by, peer, ignored } = parts.explainAddress(request);
    const cameByProxy = by !== 'socket' || ignored.length > 0 || request.headers.via !== undefined;
    return !parts.isPublic && !cameByProxy && isInternal(peer);
  }
}
