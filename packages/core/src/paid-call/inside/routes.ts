import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { notSoldHere, Problem } from '../../http/problem.ts';
import { pathOf } from '../../http/server.ts';
import type { Service } from '../../service/define.ts';
import { nearest } from '../../words/nearest.ts';
import { answerOverHttp, assertFitsHttp } from '../http-door.ts';
import type { PaidCall } from '../paid-call.ts';

const MAX_SUGGESTIONS = 5;

/** A route for each service, and a 404 that suggests similar names. */
export function paidCallRoutes(
  app: FastifyInstance,
  parts: {
    /** The address prefixes that all lead to this door. */
    prefixes: readonly string[];
    services: readonly Service[];
    /** Paths of services that exist but are not sold here. */
    leftOut: readonly string[];
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
      const asked = pathOf(request).slice(prefix.length + 1);
      if (parts.services.some(({ path }) => path === asked)) {
        throw new Problem(405, 'METHOD_NOT_ALLOWED', 'A paid call is a POST.', {
          details: { method: 'POST', charged: false },
          headers: { allow: 'GET, HEAD, POST' },
        });
      }
      // A document below the same prefix, such as the catalog.
      const otherMethod = app.knownAddresses.otherMethod(request.method, pathOf(request));
      if (otherMethod !== null) throw otherMethod;
      const paths = parts.services.map(({ path }) => path);
      const knownPaths = nearest(asked, paths, MAX_SUGGESTIONS).map((path) => `${canonical}/${path}`);
      if (parts.leftOut.includes(asked)) throw notSoldHere(asked, { catalog: `${canonical}/catalog` });
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
