/** The routes of a configuration at their own addresses: what is priced is bought there, what is free is passed on. */

import { type Readable, Transform } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStream } from '@farebox/core/http/event-stream';
import { Problem } from '@farebox/core/http/problem';
import { rateExceeded } from '@farebox/core/http/rate-limit';
import { sendFinished } from '@farebox/core/http/server';
import { answerOverHttp } from '@farebox/core/paid-call/http-door';
import type { PaidCall } from '@farebox/core/paid-call/paid-call';
import type { Sales } from '@farebox/core/paid-call/part';
import type { Rail } from '@farebox/core/paid-call/rail';
import type { House, Part } from '@farebox/core/part';
import type { MppRail } from '@farebox/core/rails/mpp/rail';
import type { Shelf } from '@farebox/core/service/shelf';
import { StartError } from '@farebox/process/start-error';
import type { FastifyReply, FastifyRequest, RequestPayload } from 'fastify';
import { MOST_REQUEST_BYTES } from './config/schema.ts';
import { PROXY } from './declared.ts';
import { openGates } from './gate/open-gates.ts';
import { routeDoor } from './route-door.ts';
import { answerFree, streamFree } from './sell/free-route.ts';
import type { LiveRoutes } from './sell/live-routes.ts';
import type { OpenRoute, OpenRoutes } from './sell/open-routes.ts';
import { isReserved, type OwnAddresses, readOwnAddresses, takenOfRoute } from './sell/own-addresses.ts';

export { LiveRoutes } from './sell/live-routes.ts';
export { type OpenRoutes, PROXY };

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export interface ProxyNeeds {
  /** Null or undefined: there is no configuration. */
  routes: LiveRoutes | null | undefined;
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
export function openProxy(house: House, { routes, sales, mpp, x402, credits }: ProxyNeeds): Part {
  if (routes === null || routes === undefined) return { name: 'proxy' };
  const { shelf } = house;
  const paidCall = sales.open(routeDoor(house, { sales, mpp, x402, credits }));
  const gates = openGates(house, { routes, sales, mpp, x402, credits });
  const addressLimit = house.limitByAddress();
  const at = { house, paidCall, addressLimit };
  let own: OwnAddresses = readOwnAddresses([]);
  routes.hold((next) => wholeTaken(next, own));
  return {
    name: 'proxy',
    get requestHeaders() {
      return [...new Set(routes.now.routes.flatMap(({ route }) => route.requestHeaders))];
    },
    operations: [
      { operations: [], untold: [{ path: '/*', because: 'A route is described by its configuration.' }] },
      ...gates.operations,
    ],
    jobs: gates.jobs,
    routes(http) {
      gates.routes(http);
      own = readOwnAddresses(http.knownAddresses.all());
      const refused = wholeTaken(routes.now, own);
      if (refused !== null) throw new StartError(`FAREBOX_CONFIG: ${refused}`);
      tellParts(routes.now, own, house);
      const found = new WeakMap<FastifyRequest, FoundRoute>();
      http.route({
        method: [...METHODS],
        url: '/*',
        bodyLimit: MOST_REQUEST_BYTES,
        // Before the body is read: what leads nowhere sends none, and a route's own bound is told before it is sent.
        onRequest: async (request, reply) => {
          const route = await findNewest(routes, request, shelf);
          if (route === null) await reply.callNotFound();
          else found.set(request, route);
        },
        // A body in chunks does not say how long it is.
        async preParsing(request, _reply, payload) {
          const route = found.get(request);
          if (route === undefined || request.headers['content-length'] !== undefined) return payload;
          return boundedBody(payload, route.open.route.maxRequestBytes);
        },
        async handler(request, reply) {
          const route = found.get(request);
          if (route !== undefined) await answerRoute(at, route, request, reply);
        },
      });
    },
    close: () => routes.close(),
  };
}

/** How many own addresses a line of the log names. */
const MOST_NAMED = 10;

/** Names a route of which this server's own addresses would leave nothing; null: there is none. */
function wholeTaken({ routes }: OpenRoutes, own: OwnAddresses): string | null {
  for (const { route } of routes) {
    const { whole } = takenOfRoute(route, own);
    if (whole !== null)
      return `${route.key} is an address of this server itself${whole === route.path.text ? '' : ` (${whole})`}. Give its upstream a prefix of its own.`;
  }
  return null;
}

/** Tells in the log which own addresses a route's pattern covers. */
function tellParts({ routes }: OpenRoutes, own: OwnAddresses, { logger }: House): void {
  for (const { route } of routes) {
    const { parts } = takenOfRoute(route, own);
    if (parts.length === 0) continue;
    const named = [...parts.slice(0, MOST_NAMED), ...(parts.length > MOST_NAMED ? ['…'] : [])].join(', ');
    logger.warn(
      `${route.key} covers addresses that this server answers itself: ${named}. Give its upstream a prefix of its own to sell those too.`,
    );
  }
}

/** A route as it was when its request came. What takes its place meanwhile does not change it. */
interface FoundRoute {
  readonly open: OpenRoute;
  readonly userAgent: string;
  /** `gone`: it is sold no more. `not here`: `SERVICES` leaves it out. */
  readonly sale: 'sold' | 'gone' | 'not here';
}

/** The time that a request for an address which is unknown here waits for a newer table of routes. */
const NEWER_TABLE_WAIT_MS = 1_000;

/**
 * Finds a route, also one that another replica has put in force a moment ago: an address or a method that is unknown here has this
 * process look for a newer table before it is refused.
 *
 * @returns null for what leads nowhere
 * @throws Problem 405, 400 or 413 for what no route takes
 */
async function findNewest(
  routes: LiveRoutes,
  request: FastifyRequest,
  shelf: Shelf,
): Promise<FoundRoute | null> {
  const { now: table } = routes;
  if (!isReserved(request.url) && !isSoldAt(table, request)) {
    const late = new AbortController();
    await Promise.race([
      shelf.look(),
      sleep(NEWER_TABLE_WAIT_MS, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
  }
  return findRoute(routes, request, shelf);
}

const isSoldAt = ({ table }: OpenRoutes, { method, url }: FastifyRequest): boolean =>
  table.match(method === 'HEAD' ? 'GET' : method, url) !== null;

/** @returns null for what leads nowhere @throws Problem 405, 400 or 413 for what no route takes */
function findRoute(routes: LiveRoutes, request: FastifyRequest, shelf: Shelf): FoundRoute | null {
  const { table, userAgent } = routes.now;
  const { method, url, headers } = request;
  if (isReserved(url)) return null;
  const asked = method === 'HEAD' ? 'GET' : method;
  const found = table.match(asked, url);
  if (found === null) {
    const gone = routes.gone(request);
    if (gone !== null) return { open: gone, userAgent, sale: 'gone' };
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
  if (length > maxRequestBytes) throw tooLarge(maxRequestBytes);
  const { service } = found.route;
  const isSold = service === null || shelf.find(service.path) === service;
  return { open: found.route, userAgent, sale: isSold ? 'sold' : 'not here' };
}

/** A body that fails beyond its bound. */
function boundedBody(body: RequestPayload, mostBytes: number): Readable {
  let bytes = 0;
  const bounded = new Transform({
    transform(piece: Buffer, _encoding, done) {
      bytes += piece.length;
      if (bytes > mostBytes) done(tooLarge(mostBytes));
      else done(null, piece);
    },
  });
  body.once('error', (error: Error) => bounded.destroy(error));
  return body.pipe(bounded);
}

function tooLarge(mostBytes: number): Problem {
  return new Problem(413, 'BODY_TOO_LARGE', `The body of this route has at most ${mostBytes} bytes.`, {
    details: { charged: false },
  });
}

interface At {
  house: House;
  paidCall: PaidCall;
  addressLimit: ReturnType<House['limitByAddress']>;
}

async function answerRoute(
  { house, paidCall, addressLimit }: At,
  { open: { route, upstream, service, freeStream: stream }, userAgent, sale }: FoundRoute,
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
  if (sale === 'not here')
    throw new Problem(404, 'NOT_SOLD_HERE', `This shop does not sell ${route.key}.`, {
      details: { charged: false },
    });
  const isGone = sale === 'gone';
  if (request.method !== 'HEAD')
    return answerOverHttp(paidCall, request, reply, { service, address, sent, isGone });
  // The terms of a GET, whatever credential came: nothing is bought by a HEAD.
  const terms = await paidCall.handle({
    service,
    headers: {},
    rawBody: undefined,
    sent,
    isGone,
    address,
    requestId: request.id,
    gone: () => false,
    assertMayBuy() {},
  });
  sendFinished(reply, terms);
}
