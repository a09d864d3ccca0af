import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { cardsNotConfigured } from '../cards/closed.ts';
import { readJsonBody } from '../http/json-body.ts';
import { answered, bodyOf, REFUSED } from '../http/operation.ts';
import { Problem } from '../http/problem.ts';
import { admit, type RateLimit } from '../http/rate-limit.ts';
import { DAILY_LIMITS } from '../keys/credit-tiers.ts';
import type { CheckoutStatus, CreditCheckout } from './credit-checkout.ts';
import { CREDIT_PACKAGES, creditsOf, shownPackage } from './credits.ts';
import { legacyOperation } from './operations.ts';

const POLL_EVERY_MS = 5_000;

/** The session id of this family: the checkout's own id, a dot, and the secret that unlocks the delivery of the key. */
const SESSION = /^([\w-]{1,255})\.([\w-]{16,255})$/;

const orderRequest = z.object({
  package: z.string().max(40).optional(),
  email: z.email().max(254).optional(),
});

const [EXAMPLE_PACKAGE] = CREDIT_PACKAGES.map(shownPackage);
const PACKAGES = legacyOperation('getGptCreditPackages', 'Packages of credits, and how to pay for them', {
  responses: {
    200: answered('The packages', { success: true, creditUSD: 0.1, packages: [EXAMPLE_PACKAGE] }),
  },
});
const CREATE = legacyOperation('createGptCreditSession', 'A page on which a person buys a package by card', {
  requestBody: bodyOf(
    {
      package: { enum: CREDIT_PACKAGES.map(({ id }) => id) },
      email: { type: 'string', format: 'email' },
    },
    ['package'],
    { package: EXAMPLE_PACKAGE?.id },
  ),
  responses: {
    200: answered('Where to pay', {
      success: true,
      sessionId: 'cs_….…',
      checkoutUrl: 'https://…',
      mode: 'checkout',
    }),
    400: REFUSED,
    503: REFUSED,
  },
});
const STATUS = legacyOperation('getGptCreditSession', 'Whether the session is paid; delivers the key, once', {
  parameters: [
    { name: 'session', in: 'query', required: true, schema: { type: 'string' }, description: 'sessionId' },
  ],
  responses: {
    200: answered('Its state', { success: true, status: 'completed', apiKey: 'fbx_live_…', credits: 100 }),
    400: REFUSED,
    404: REFUSED,
  },
});

const BY_CARD = {
  method: 'card',
  endpoint: '/api/gpt/credits/create-session',
  dailyLimit: DAILY_LIMITS.hosted_checkout,
};

export interface CreditRouteParts {
  /** Null while this server cannot charge cards. */
  checkout: CreditCheckout | null;
  baseUrl: string;
  checkoutLimit: RateLimit;
  accountLimit: RateLimit;
  /** Whether a wallet can pay at `/x402/…` now. */
  walletsPay(): boolean;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
}

/** The routes for packages of credits: list them, buy one, fetch its key. */
export function creditRoutes(app: FastifyInstance, parts: CreditRouteParts): void {
  const { baseUrl } = parts;
  const packages = CREDIT_PACKAGES.map(shownPackage);
  const statusUrl = `${baseUrl}/api/gpt/credits/status`;

  function openCheckout(): CreditCheckout {
    if (parts.checkout !== null) return parts.checkout;
    throw cardsNotConfigured();
  }

  app.get('/api/gpt/credits/packages', { config: { operation: PACKAGES } }, async (request, reply) => {
    admit(parts.accountLimit, parts.addressOf(request), reply);
    return {
      success: true,
      creditUSD: 0.1,
      packages,
      paymentMethods: [
        { ...BY_CARD, available: parts.checkout !== null },
        { method: 'usdc', available: parts.walletsPay(), endpoint: '/api/m2m/credits/topup' },
      ],
      instructions:
        'POST /api/gpt/credits/create-session {"package":"starter"}, let a person open checkoutUrl, then poll the status of the session for the key. A wallet buys credit at /api/m2m/credits/topup, or pays each call at its x402 address.',
    };
  });

  app.post('/api/gpt/credits/create-session', { config: { operation: CREATE } }, async (request, reply) => {
    admit(parts.checkoutLimit, parts.addressOf(request), reply);
    const checkout = openCheckout();
    const order = readJsonBody(request, orderRequest);
    const asked = order.package?.trim().toLowerCase();
    const chosen = CREDIT_PACKAGES.find(({ id }) => id === asked);
    if (chosen === undefined) {
      throw new Problem(
        400,
        'INVALID_PACKAGE',
        `package must be one of ${packages.map(({ id }) => id).join(', ')}.`,
        { details: { packages, charged: false } },
      );
    }
    const email = order.email ?? null;
    const opened = await checkout.open({ package: chosen, email, address: parts.addressOf(request) });
    const sessionId = `${opened.sessionId}.${opened.retrievalToken}`;
    const { name, price, credits } = shownPackage(chosen);
    return {
      success: true,
      sessionId,
      checkoutUrl: opened.checkoutUrl,
      mode: 'checkout',
      package: { name, price, credits },
      expiresAt: new Date(opened.expiresAtMs).toISOString(),
      statusEndpoint: `${statusUrl}?session=${sessionId}`,
      instructions:
        'Let a person open checkoutUrl and pay, then poll statusEndpoint. Keep sessionId secret: whoever has it gets the key.',
    };
  });

  app.get<{ Querystring: Record<string, string | string[]> }>(
    '/api/gpt/credits/status',
    { exposeHeadRoute: false, config: { operation: STATUS } },
    async (request, reply) => {
      admit(parts.accountLimit, parts.addressOf(request), reply);
      const checkout = openCheckout();
      const { session } = request.query;
      if (typeof session !== 'string' || session === '') {
        throw new Problem(400, 'SESSION_REQUIRED', 'session is missing: the sessionId of create-session.');
      }
      const [, sessionId, retrievalToken] = SESSION.exec(session) ?? [];
      const status: CheckoutStatus =
        sessionId === undefined || retrievalToken === undefined
          ? { status: 'unknown' }
          : await checkout.status({ sessionId, retrievalToken });
      return describe(status);
    },
  );

  function describe(checkout: CheckoutStatus): Record<string, unknown> {
    switch (checkout.status) {
      case 'unknown':
        throw new Problem(404, 'UNKNOWN_SESSION', 'There is no such session.');
      case 'unpaid': {
        const remainingTimeMs = Math.max(0, checkout.expiresAtMs - parts.nowMs());
        return {
          success: true,
          status: 'pending',
          checkoutUrl: checkout.checkoutUrl,
          remainingTimeMs,
          pollsRemaining: Math.floor(remainingTimeMs / POLL_EVERY_MS),
          nextPollAfterMs: POLL_EVERY_MS,
        };
      }
      case 'ready':
        return {
          success: true,
          status: 'completed',
          apiKey: checkout.apiKey,
          keyPrefix: checkout.keyPrefix,
          credits: creditsOf(checkout.creditMicros),
          message: 'Save this key now: it is delivered once and cannot be retrieved again.',
          usage: { header: 'X-API-KEY', alternativeHeader: 'Authorization: Bearer <key>' },
        };
      case 'delivered':
        return {
          success: true,
          status: 'completed',
          alreadyDelivered: true,
          message: 'The key was delivered before and cannot be retrieved again.',
        };
      case 'expired':
        return {
          success: false,
          status: 'expired',
          message: 'Nobody paid in time, and nothing was charged. Create a new session.',
        };
    }
  }
}
