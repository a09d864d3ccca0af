/** A route that a server behind a gate answers by itself, as a service: its run waits for what that server says. */
import { randomUUID } from 'node:crypto';
import type { AnyRunContext, Service } from '@farebox/core/service/define';
import type { SentRequest } from '@farebox/core/service/route';
import { invalidInput } from '@farebox/core/words/failure';
import type { Route } from '../config/proxy-config.ts';
import { type ReceivedHeaders, singleValue } from '../wire/headers.ts';
import { type AnswerRule, failure, judgeBody, judgeHead, type UpstreamOutcome } from '../wire/outcome.ts';
import type { Upstream, UpstreamRequest } from '../wire/upstream.ts';
import { askUpstream } from './ask-upstream.ts';
import { type RouteCall, readRequest } from './route-call.ts';
import { routeService } from './route-service.ts';

/** The largest body of a refusal that is passed on. */
const MOST_REFUSAL_BYTES = 65_536;

/** A call as the server behind a gate is told to answer it. */
export interface AskedGuest {
  /** Names this run of the call to its guest. A call whose payment has moved may run again. */
  readonly runId: string;
  readonly callId: string;
  readonly payer: string;
  readonly rail: string;
  readonly priceMicros: bigint;
  readonly idempotencyKey: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The word of the server behind a gate about a call. */
export type GuestWord =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: ReceivedHeaders;
      readonly body: Buffer;
      /** Whether the caller had left when the answer was there. */
      readonly callerLeft: boolean;
    }
  | { readonly kind: 'release'; readonly why: string };

/** A request that somebody behind a gate has been asked, and answers if it is paid. */
export interface GuestRequest extends SentRequest {
  /** Told when the call is paid for and may be answered. Resolves with what the guest says. */
  ask(call: AskedGuest): Promise<GuestWord>;
}

type GuestCall = RouteCall & Pick<GuestRequest, 'ask'>;

/** The service of a route behind a gate. It is bought at that gate alone. */
export function gateService(
  route: Route,
  { id, tag, userAgent }: { id: string; tag: string; userAgent: string },
): Service {
  const nobody = { route, upstream: NOBODY, userAgent };
  const service = routeService({ ...nobody, id, tag });
  if (service.route === null) throw new Error(`${id} has no route`);
  return {
    ...service,
    route: {
      ...service.route,
      read({ http, rawBody }) {
        if (http === null || !('ask' in http))
          throw invalidInput('address', 'It is bought at its own server.');
        const read = readRequest(nobody, { ...http, rawBody });
        return {
          ...read,
          input: Object.assign(read.input as RouteCall, { ask: (http as GuestRequest).ask }),
        };
      },
    },
    run: (input, { call, signal, nowMs }) => {
      const asked = input as GuestCall;
      const upstream = guestAsUpstream(asked, { call, timeoutMs: service.timeoutMs, nowMs });
      return askUpstream({ ...nobody, upstream }, asked, {
        orderId: call.orderId,
        caller: call.caller,
        signal,
        nowMs,
      });
    },
  };
}

/** The guest of one call in the place of an upstream: what it says is judged by the same rules. */
function guestAsUpstream(
  { ask }: GuestCall,
  { call, timeoutMs, nowMs }: { call: AnyRunContext['call']; timeoutMs: number; nowMs(): number },
): Upstream {
  return {
    ...NOBODY,
    async ask({ rule, mostAnswerBytes, idempotencyKey, signal }: UpstreamRequest) {
      const { callId, payer, rail, priceMicros } = call;
      if (idempotencyKey === null || signal === undefined) throw new Error('a call has a name and an end');
      const said = await ask({
        runId: randomUUID(),
        callId,
        payer,
        rail,
        priceMicros,
        idempotencyKey,
        timeoutMs,
        signal,
      });
      if (said.kind === 'release') return failure('failed', `its server gave the call up: ${said.why}`);
      return judged(said, rule, { mostAnswerBytes, nowMs: nowMs() });
    },
  };
}

function judged(
  { status, headers, body }: Extract<GuestWord, { kind: 'answer' }>,
  rule: AnswerRule,
  { mostAnswerBytes, nowMs }: { mostAnswerBytes: number; nowMs: number },
): UpstreamOutcome {
  const head = { status, headers, framing: 'length' } as const;
  const kind = judgeHead(head, rule, nowMs);
  if (typeof kind !== 'string') return kind;
  if (kind === 'refusal') {
    const contentType = singleValue(headers['content-type']);
    return { kind, status, contentType, body: body.length > MOST_REFUSAL_BYTES ? null : body };
  }
  if (body.length > mostAnswerBytes)
    return failure('too_large', `more than ${mostAnswerBytes} bytes`, { upstreamStatus: status });
  const wrong = judgeBody(head, body, { bytes: body.length, sawLastEvent: false }, rule);
  return wrong ?? { kind: 'answer', status, headers, body };
}

/** Nothing is ever sent to a server behind a gate. */
const NOBODY: Upstream = {
  ask: async () => failure('unreachable', 'nothing is sent to a gate', { wasSent: false }),
  stream: async () => failure('unreachable', 'nothing is sent to a gate', { wasSent: false }),
  state: { isOpen: false, retryAfterMs: null, calls: 0, waiting: 0 },
  close: async () => {},
  retire: async () => {},
  destroy: async () => {},
};
