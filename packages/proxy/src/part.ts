/** The routes of a configuration at their own addresses: what is priced is bought there, what is free is passed on. */

import { openStream } from '@farebox/core/http/event-stream';
import { Problem } from '@farebox/core/http/problem';
import { rateExceeded } from '@farebox/core/http/rate-limit';
import { sendFinished } from '@farebox/core/http/server';
import { makeChallenge } from '@farebox/core/paid-call/challenge';
import { type Door, x402Door } from '@farebox/core/paid-call/door';
import { answerOverHttp } from '@farebox/core/paid-call/http-door';
import type { PaidCall } from '@farebox/core/paid-call/paid-call';
import type { Sales } from '@farebox/core/paid-call/part';
import type { Rail } from '@farebox/core/paid-call/rail';
import type { House, Part } from '@farebox/core/part';
import { askedByMpp } from '@farebox/core/rails/mpp/asked';
import type { MppRail } from '@farebox/core/rails/mpp/rail';
import type { Service } from '@farebox/core/service/define';
import { StartError } from '@farebox/process/start-error';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PROXY } from './declared.ts';
import { answerFree, streamFree } from './sell/free-route.ts';
import type { OpenRoute, OpenRoutes } from './sell/open-routes.ts';
import { isReserved, takenOfRoute } from './sell/own-addresses.ts';

export { type OpenRoutes, PROXY };

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export interface ProxyNeeds {
  /** Null or undefined: there is no configuration. */
  routes: OpenRoutes | null | undefined;
  /** Everything on sale: a route's service that is not among it is not sold. */
  services: readonly Service[];
  sales: Sales;
  /** Null where MPP is off. */
  mpp: MppRail | null;
  x402: Rail;
  credits: Rail;
}

/**
 * Sells routes of other servers at their own addresses. The paths of this server's own routes win; what no route names is a
 * 404, and reaches no upstream.
 */
export function openProxy(house: House, { routes, services, sales, mpp, x402, credits }: ProxyNeeds): Part {
  if (routes === null || routes === undefined) return { name: 'proxy' };
  const { baseUrl, shop, sandbox } = house;
  const about = { baseUrl, seller: shop.name, sandbox, trialsOpen: sales.promisesTrials };
  const sold = routes.services.filter((service) => services.includes(service));
  const inTheHouse = x402Door((quote) => makeChallenge(quote, [x402, credits], about));
  const door = withMpp({ ...inTheHouse, prefix: '' }, mpp);
  const rails = [...(mpp === null ? [] : [mpp.rail]), x402, credits];
  const paidCall = sales.open({ services: sold, rails, door });
  const addressLimit = house.limitByAddress();
  const at = { house, routes, paidCall, isSold: (service: Service) => sold.includes(service), addressLimit };
  return {
    name: 'proxy',
    requestHeaders: [...new Set(routes.routes.flatMap(({ route }) => route.requestHeaders))],
    operations: [
      { operations: [], untold: [{ path: '/*', because: 'A route is described by its configuration.' }] },
    ],
    routes(http) {
      holdAgainstOwn(http, routes, house);
      const found = new WeakMap<FastifyRequest, OpenRoute>();
      const bodyLimit = Math.max(1, ...routes.routes.map(({ route }) => route.maxRequestBytes));
      http.route({
        method: [...METHODS],
        url: '/*',
        bodyLimit,
        // Before the body is read: what leads nowhere sends none, and a route's own bound is told before it is sent.
        onRequest: async (request, reply) => {
          const route = findRoute(routes, request);
          if (route === null) await reply.callNotFound();
          else found.set(request, route);
        },
        async handler(request, reply) {
          const route = found.get(request);
          if (route !== undefined) await answerRoute(at, route, request, reply);
        },
      });
    },
    close: routes.close,
  };
}

/** A door whose 402 also asks for an MPP credential, where MPP is on. */
function withMpp(door: Door, mpp: MppRail | null): Door {
  if (mpp === null) return door;
  return {
    ...door,
    challenge(quote) {
      const usual = door.challenge(quote);
      return {
        async answer(request, refused) {
          const { headers, body } = await usual.answer(request, refused);
          return { headers: { ...headers, ...(await askedByMpp(mpp, quote, request)) }, body };
        },
      };
    },
  };
}

/** How many own addresses a line of the log names. */
const MOST_NAMED = 10;

/**
 * Tells in the log which own addresses a route's pattern covers.
 *
 * @throws StartError for a route of which this server's own addresses would leave nothing
 */
function holdAgainstOwn(http: FastifyInstance, { routes }: OpenRoutes, { logger }: House): void {
  const own = http.knownAddresses.all();
  for (const { route } of routes) {
    const { whole, parts } = takenOfRoute(route, own);
    if (whole !== null)
      throw new StartError(
        `FAREBOX_CONFIG: ${route.key} is an address of this server itself${whole === route.path.text ? '' : ` (${whole})`}. Give its upstream a prefix of its own.`,
      );
    if (parts.length === 0) continue;
    const named = [...parts.slice(0, MOST_NAMED), ...(parts.length > MOST_NAMED ? ['…'] : [])].join(', ');
    logger.warn(
      `${route.key} covers addresses that this server answers itself: ${named}. Give its upstream a prefix of its own to sell those too.`,
    );
  }
}

/** @returns null for what leads nowhere @throws Problem 405, 400 or 413 for what no route takes */
function findRoute({ table }: OpenRoutes, request: FastifyRequest): OpenRoute | null {
  const { method, url, headers } = request;
  if (isReserved(url)) return null;
  const asked = method === 'HEAD' ? 'GET' : method;
  const found = table.match(asked, url);
  if (found === null) {
    const others = table.methodsAt(url);
    if (others.length === 0) return null;
    throw new Problem(405, 'METHOD_NOT_ALLOWED', `This address takes ${others.join(', ')}, not ${method}.`, {
      details: { charged: false },
      headers: { allow: [...others, ...(others.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ') },
    });
  }
  if ('refused' in found)
    throw new Problem(found.status, 'INVALID_ADDRESS', found.refused, { details: { charged: false } });
  const { maxRequestBytes } = found.route.route;
  const length = Number(headers['content-length'] ?? 0);
  // It is not read for a GET, so that an API which reads it would answer another question than was asked.
  if (asked === 'GET' && (length > 0 || headers['transfer-encoding'] !== undefined))
    throw new Problem(400, 'INVALID_REQUEST', 'A GET has no body here.', { details: { charged: false } });
  if (length > maxRequestBytes)
    throw new Problem(413, 'BODY_TOO_LARGE', `The body of this route has at most ${maxRequestBytes} bytes.`, {
      details: { charged: false },
    });
  return found.route;
}

interface At {
  house: House;
  routes: OpenRoutes;
  paidCall: PaidCall;
  isSold(service: Service): boolean;
  addressLimit: ReturnType<House['limitByAddress']>;
}

async function answerRoute(
  { house, routes, paidCall, isSold, addressLimit }: At,
  { route, upstream, service, freeStream: stream }: OpenRoute,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const address = house.addressOf(request);
  const sent = { url: request.url, rawHeaders: request.raw.rawHeaders };
  const rawBody = request.body instanceof Buffer ? request.body : undefined;
  if (service === null) {
    const verdict = addressLimit.take(address);
    if (!verdict.allowed) throw rateExceeded(verdict);
    if (request.method === 'HEAD') return sendFinished(reply, { status: 204, headers: {}, body: '' });
    const left = new AbortController();
    reply.raw.once('close', () => left.abort());
    const { userAgent } = routes;
    const { nowMs } = house;
    const asked = { ...sent, rawBody, requestId: request.id, signal: left.signal, nowMs };
    const parts = { route, upstream, userAgent };
    try {
      if (stream === null) return sendFinished(reply, await answerFree(parts, asked));
      return await streamFree({ ...parts, stream }, asked, (head, bounds) => openStream(reply, head, bounds));
    } catch (error) {
      // Its caller is not told why; whoever runs the upstream is. What a paid call fails by, the paid call logs.
      if (error instanceof Problem && error.cause !== undefined)
        house.logger.warn({ err: error.cause, route: route.key }, 'a free route failed');
      throw error;
    }
  }
  if (!isSold(service))
    throw new Problem(404, 'NOT_SOLD_HERE', `This shop does not sell ${route.key}.`, {
      details: { charged: false },
    });
  if (request.method !== 'HEAD') return answerOverHttp(paidCall, request, reply, { service, address, sent });
  // The terms of a GET, whatever credential came: nothing is bought by a HEAD.
  const terms = await paidCall.handle({
    service,
    headers: {},
    rawBody: undefined,
    sent,
    address,
    requestId: request.id,
    gone: () => false,
    assertMayBuy() {},
  });
  sendFinished(reply, terms);
}
