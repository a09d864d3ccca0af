import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../http/problem.ts';
import type { Service } from '../services/define.ts';
import { answerOverHttp, assertFitsHttp } from './http-door.ts';
import type { PaidCall } from './paid-call.ts';

const MAX_SUGGESTIONS = 5;

/** A route for each service, and a 404 that names near ones. */
export function paidCallRoutes(
  app: FastifyInstance,
  parts: {
    /** The addresses that all lead to the same door. */
    prefixes: readonly string[];
    services: readonly Service[];
    paidCall: PaidCall;
    addressOf(request: FastifyRequest): string;
  },
): void {
  assertFitsHttp(parts.services);
  const [canonical = ''] = parts.prefixes;
  for (const prefix of parts.prefixes) {
    for (const service of parts.services) {
      const handler = async (request: FastifyRequest, reply: FastifyReply) => {
        await answerOverHttp(parts.paidCall, request, reply, { service, address: parts.addressOf(request) });
      };
      app.route({ method: ['GET', 'HEAD', 'POST'], url: `${prefix}/${service.path}`, handler });
    }
    const unknown = (request: FastifyRequest) => {
      const asked = request.url.split('?')[0]?.slice(prefix.length + 1) ?? '';
      if (parts.services.some(({ path }) => path === asked)) {
        throw new Problem(405, 'METHOD_NOT_ALLOWED', 'A paid call is a POST.', {
          details: { method: 'POST', charged: false },
          headers: { allow: 'GET, HEAD, POST' },
        });
      }
      const knownPaths = nearest(asked, parts.services).map((path) => `${canonical}/${path}`);
      throw new Problem(404, 'UNKNOWN_SERVICE', `There is no service ${asked.slice(0, 80)}.`, {
        details: { knownPaths, catalog: `${canonical}/catalog`, charged: false },
      });
    };
    app.route({
      method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      url: `${prefix}/*`,
      handler: unknown,
    });
  }
}

/** The service paths that are closest in spelling, best first. */
function nearest(asked: string, services: readonly Service[]): string[] {
  return services
    .map(({ path }) => ({
      path,
      distance: editDistance(asked.slice(0, 80), path) - (path.includes(asked) ? 5 : 0),
    }))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ path }) => path);
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitution, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
