import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isInternal } from '../http/caller-address.ts';
import { Problem } from '../http/problem.ts';
import type { Metrics } from './metrics.ts';

/** What a load balancer and a Prometheus ask. */
export function operationsRoutes(
  app: FastifyInstance,
  parts: {
    metrics: Metrics;
    metricsToken: string | null;
    version: string;
    /** Null when ready; else why not. */
    notReady(): Promise<string | null>;
    addressOf(request: FastifyRequest): string;
  },
): void {
  app.get('/health/live', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    return { status: 'live', version: parts.version };
  });

  app.get('/health/ready', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    const reason = await parts.notReady();
    if (reason !== null) throw new Problem(503, 'NOT_READY', reason, { headers: { 'retry-after': '1' } });
    return { status: 'ready', version: parts.version };
  });

  app.get('/metrics', async (request, reply) => {
    if (!mayRead(request)) throw new Problem(403, 'FORBIDDEN', 'Metrics are for the operator.');
    return reply.header('content-type', parts.metrics.contentType).send(await parts.metrics.render());
  });

  function mayRead(request: FastifyRequest): boolean {
    if (parts.metricsToken === null) return isInternal(parts.addressOf(request));
    const presented = /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const digest = (value: string) => createHash('sha256').update(value).digest();
    return timingSafeEqual(digest(presented), digest(parts.metricsToken));
  }
}
