import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TakenAddress } from '../../http/no-route.ts';
import { notSoldHere, Problem } from '../../http/problem.ts';
import { pathOf } from '../../http/server.ts';
import type { Service } from '../../service/define.ts';
import type { Shelf } from '../../service/shelf.ts';
import { nearest } from '../../words/nearest.ts';
import { answerOverHttp, assertFitsHttp } from '../http-door.ts';
import type { PaidCall } from '../paid-call.ts';

const MAX_SUGGESTIONS = 5;
const METHODS: readonly string[] = ['GET', 'HEAD', 'POST'];

/** An address for each service that is or was sold here, and a 404 that suggests similar names. */
export function paidCallRoutes(
  app: FastifyInstance,
  parts: {
    /** The address prefixes that all lead to this door. */
    prefixes: readonly string[];
    shelf: Shelf;
    /** Whether this door sells such a service. */
    isSold(service: Service): boolean;
    paidCall: PaidCall;
    addressOf(request: FastifyRequest): string;
  },
): void {
  const { shelf, isSold } = parts;
  assertFitsHttp(shelf.services);
  const [canonical = ''] = parts.prefixes;
  const isHere = (service: Service | undefined): service is Service =>
    service !== undefined && isSold(service);
  const nameBelow = (prefix: string, path: string) => path.slice(prefix.length + 1).replace(/\/$/, '');
  // One route for all of them: thousands of addresses would make the start slow, and what is sold later needs none.
  app.knownAddresses.addList((path): TakenAddress | null => {
    const asked = path.toLowerCase();
    const prefix = parts.prefixes.find((each) => asked.startsWith(`${each}/`));
    if (prefix === undefined) return null;
    const service = shelf.find(nameBelow(prefix, path)) ?? shelf.find(nameBelow(prefix, asked));
    return isHere(service) ? { path: `${prefix}/${service.path}`, methods: METHODS } : null;
  });
  for (const prefix of parts.prefixes) {
    const unknown = (request: FastifyRequest, asked: string) => {
      // A document below the same prefix, such as the catalog.
      const otherMethod = app.knownAddresses.otherMethod(request.method, pathOf(request));
      if (otherMethod !== null) throw otherMethod;
      const paths = shelf.services.filter(isSold).map(({ path }) => path);
      const knownPaths = nearest(asked, paths, MAX_SUGGESTIONS).map((path) => `${canonical}/${path}`);
      if (shelf.leftOut.includes(asked)) throw notSoldHere(asked, { catalog: `${canonical}/catalog` });
      throw new Problem(404, 'UNKNOWN_SERVICE', `There is no service ${asked.slice(0, 80)}.`, {
        details: { knownPaths, catalog: `${canonical}/catalog`, charged: false },
      });
    };
    const handler = async (request: FastifyRequest, reply: FastifyReply) => {
      const asked = nameBelow(prefix, pathOf(request));
      const sold = shelf.find(asked);
      const gone = sold === undefined ? shelf.gone(asked) : undefined;
      const service = sold ?? gone;
      if (!isHere(service)) return unknown(request, asked);
      if (!METHODS.includes(request.method))
        throw new Problem(405, 'METHOD_NOT_ALLOWED', 'A paid call is a POST.', {
          details: { method: 'POST', charged: false },
          headers: { allow: METHODS.join(', ') },
        });
      const address = parts.addressOf(request);
      await answerOverHttp(parts.paidCall, request, reply, { service, address, isGone: sold === undefined });
    };
    app.route({ method: [...METHODS, 'PUT', 'PATCH', 'DELETE'], url: `${prefix}/*`, handler });
  }
}
