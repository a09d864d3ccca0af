import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '../../http/problem.ts';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import { tierOf } from '../../keys/credit-tiers.ts';
import { type FirstCall, keyUsage } from '../../keys/key-usage.ts';
import { microsToUsd } from '../../ledger/money.ts';
import type { Checkout, CheckoutStatus } from './checkout.ts';

/** Where a retrieval token stands that is to appear in no address and no log of a proxy. */
const TOKEN_HEADER = 'x-retrieval-token';
/** How often the agent that waits asks. */
export const POLL_AGAIN_SECONDS = 5;

/** `GET /api/m2m/credits/checkout/status/:sessionId`: for the agent that waits. Delivers the key, once. */
export function checkoutStatusRoute(
  app: FastifyInstance,
  parts: {
    checkout: Checkout;
    baseUrl: string;
    firstCall: FirstCall;
    accountLimit: RateLimit;
    addressOf(request: FastifyRequest): string;
  },
): void {
  app.get<{ Params: { sessionId: string }; Querystring: Record<string, unknown> }>(
    '/api/m2m/credits/checkout/status/:sessionId',
    { exposeHeadRoute: false },
    async (request, reply) => {
      admit(parts.accountLimit, parts.addressOf(request), reply);
      const sessionId = sessionIdOf(request.params.sessionId);
      const token = request.headers[TOKEN_HEADER] ?? request.query.token;
      if (token === undefined || token === '') {
        throw new Problem(
          401,
          'TOKEN_REQUIRED',
          'Send the retrievalToken of this session in X-Retrieval-Token, or as ?token=.',
        );
      }
      const status: CheckoutStatus =
        typeof token === 'string' && token.length <= 255
          ? await parts.checkout.status({ sessionId, retrievalToken: token })
          : { status: 'unknown' };
      return describe(sessionId, status, parts);
    },
  );
}

const NOTHING_YET = { keyReady: false, ready: false };

/** Shows what was paid for. */
const bought = ({ creditMicros, amountMicros }: { creditMicros: bigint; amountMicros: bigint }) => ({
  creditsAdded: Number(microsToUsd(creditMicros)),
  currency: 'USD',
  tier: tierOf(Number(microsToUsd(amountMicros)))?.label ?? null,
});

function describe(
  sessionId: string,
  checkout: CheckoutStatus,
  parts: { baseUrl: string; firstCall: FirstCall },
): Record<string, unknown> {
  switch (checkout.status) {
    case 'unknown':
      throw new Problem(403, 'INVALID_TOKEN', 'There is no such session with this token.');
    case 'unpaid':
      return {
        success: false,
        sessionId,
        status: 'pending',
        paymentStatus: 'unpaid',
        ...NOTHING_YET,
        message: 'No payment is confirmed yet.',
        checkoutUrl: checkout.checkoutUrl,
        expiresAt: new Date(checkout.expiresAtMs).toISOString(),
        retryAfterSeconds: POLL_AGAIN_SECONDS,
      };
    case 'expired':
      return {
        success: false,
        sessionId,
        status: 'expired',
        paymentStatus: 'unpaid',
        ...NOTHING_YET,
        message: 'Nobody paid in time, and nothing was charged. Open a new checkout session.',
      };
    case 'credited':
      return {
        success: true,
        sessionId,
        status: 'paid',
        paymentStatus: 'paid',
        keyReady: false,
        ready: true,
        ...bought(checkout),
        message: 'The credit is on the key that this checkout was opened with.',
      };
    case 'delivered':
      return {
        success: true,
        sessionId,
        status: 'delivered',
        paymentStatus: 'paid',
        ...NOTHING_YET,
        alreadyDelivered: true,
        message: 'The key was delivered before and cannot be retrieved again.',
      };
    case 'ready':
      return {
        success: true,
        sessionId,
        status: 'paid',
        paymentStatus: 'paid',
        keyReady: true,
        ready: true,
        apiKey: checkout.apiKey,
        keyPrefix: checkout.keyPrefix,
        ...bought(checkout),
        warning: 'Save this key now: it is delivered once and cannot be retrieved again.',
        usage: { ...keyUsage(parts, checkout.apiKey), catalogUrl: `${parts.baseUrl}/x402/catalog` },
      };
  }
}

/** @throws Problem when it cannot be the name of a session */
export function sessionIdOf(value: string): string {
  if (/^cs_\w{8,200}$/.test(value)) return value;
  throw new Problem(400, 'INVALID_SESSION_ID', 'The session id begins with cs_: take it from the answer.');
}
