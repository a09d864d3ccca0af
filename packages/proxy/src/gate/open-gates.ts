/** The gates of a configuration: servers that answer routes of their own, and sell them here. */
import { whenSent } from '@farebox/core/http/caller-presence';
import { sendFinished } from '@farebox/core/http/server';
import { untilNoneIsDue } from '@farebox/core/jobs/schedule';
import type { PaidCall } from '@farebox/core/paid-call/paid-call';
import type { House, Part } from '@farebox/core/part';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Gate } from '../config/proxy-config.ts';
import { MOST_REQUEST_BYTES } from '../config/schema.ts';
import { type RouteRails, routeDoor } from '../route-door.ts';
import type { LiveRoutes } from '../sell/live-routes.ts';
import { type Arrival, begin, conclude, type DeskAnswer, type DeskParts, type Ended } from './desk.ts';
import { createGateMessages, createGateStore } from './gate-store.ts';
import { contentOf, readMessage, type SignedMessage, type Verb } from './read-message.ts';
import { WaitingCalls } from './waiting-calls.ts';

const VERBS: readonly Verb[] = ['begin', 'finish', 'release'];
/** The longest message: the largest body of a request or an answer in base64, and what stands around it. */
const MOST_BYTES = Math.ceil((MOST_REQUEST_BYTES * 4) / 3) + 131_072;
const ROWS_DROPPED_AT_ONCE = 1_000;

export interface GateNeeds extends RouteRails {
  routes: LiveRoutes;
}

/** The part's share that gates have in it. */
export type OpenedGates = Required<Pick<Part, 'operations' | 'jobs' | 'routes'>>;

/** Sells the routes of servers behind gates. Their questions and answers go through the paid call, as those of every route. */
export function openGates(house: House, { routes, ...rails }: GateNeeds): OpenedGates {
  const { pools, nowMs } = house;
  const messages = createGateMessages(pools.sql, nowMs);
  const store = createGateStore(pools.sql, nowMs);
  const waiting = new WaitingCalls<Ended>(store);
  const answer = answering({ store, waiting, nowMs }, doorsOf(house, rails));
  return {
    operations: [
      {
        operations: [],
        untold: [{ path: '/gate/*', because: 'Guests speak it with a package of their own.' }],
      },
    ],
    jobs: [
      {
        name: 'drop-gate-calls',
        intervalMs: 60_000,
        async run(stopping) {
          for (const { dropExpired } of [store, messages])
            await untilNoneIsDue(ROWS_DROPPED_AT_ONCE, () => dropExpired(ROWS_DROPPED_AT_ONCE), stopping);
        },
      },
    ],
    routes(http) {
      // Nobody could bring an answer to a server that has ended: what waits is given back while the database is there.
      http.addHook('preClose', () => waiting.close());
      for (const verb of VERBS)
        http.route({
          method: 'POST',
          url: `/gate/${verb}`,
          bodyLimit: MOST_BYTES,
          async handler(request, reply) {
            const body = request.body instanceof Buffer ? request.body : Buffer.alloc(0);
            const { headers } = request;
            const { gates } = routes.now;
            const message = await readMessage(verb, { headers, body }, { gates, messages, nowMs });
            sendSigned(reply, message, await answer(verb, message, body, arrivalOf(house, request, reply)));
          },
        });
    },
  };
}

/** The paid call of each gate, opened with its first call: the resource that is paid for stands at the gate's own address. */
function doorsOf(house: House, rails: RouteRails): (gate: Gate) => PaidCall {
  const sold = routeDoor(house, rails, { hasRecipes: false });
  const opened = new Map<string, PaidCall>();
  return ({ name, url }) => {
    const at = `${name} ${url}`;
    const known = opened.get(at);
    if (known !== undefined) return known;
    // Addresses are the guest's word, which counts for its own callers alone.
    const door = rails.sales.open({ ...sold, baseUrl: url, addressLimit: house.limitByAddress() });
    opened.set(at, door);
    return door;
  };
}

/** Answers messages whose senders are known. */
function answering(desk: DeskParts, doorOf: (gate: Gate) => PaidCall) {
  return async (verb: Verb, { open }: SignedMessage, body: Buffer, arrival: Arrival): Promise<DeskAnswer> => {
    const { gate } = open;
    if (verb === 'begin')
      return begin(desk, { open, paidCall: doorOf(gate) }, contentOf(verb, body), arrival);
    if (verb === 'release') {
      const { call, why } = contentOf(verb, body);
      return conclude(desk, gate.name, { call, said: { kind: 'release', why }, body: Buffer.alloc(0) });
    }
    const { call, status, headers, body: made, callerLeft } = contentOf(verb, body);
    const said = { kind: 'answer', status, headers, callerLeft } as const;
    return conclude(desk, gate.name, { call, said, body: made ?? Buffer.alloc(0) });
  };
}

function sendSigned(
  reply: FastifyReply,
  message: SignedMessage,
  { message: told, arrived }: DeskAnswer,
): void {
  const body = Buffer.from(JSON.stringify(told));
  const headers = Object.assign(message.sign(body), {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  });
  if (arrived !== undefined) whenSent(reply.raw, arrived);
  sendFinished(reply, { status: 200, headers, body });
}

function arrivalOf(house: House, request: FastifyRequest, { raw }: FastifyReply): Arrival {
  const gone = () => raw.closed && !raw.writableFinished;
  return {
    requestId: request.id,
    address: house.addressOf(request),
    gone,
    onGone(left) {
      if (gone()) left();
      else
        raw.once('close', () => {
          if (gone()) left();
        });
    },
  };
}
