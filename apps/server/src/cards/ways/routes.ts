import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../../http/json-body.ts';
import { Problem } from '../../http/problem.ts';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import { DAILY_LIMITS, shownTiers, tierOf } from '../../keys/credit-tiers.ts';
import { readKeyToCredit } from '../../keys/key-to-credit.ts';
import { type FirstCall, keyUsage } from '../../keys/key-usage.ts';
import type { Keys } from '../../keys/keys.ts';
import { microsToUsd, usdToMicros } from '../../ledger/money.ts';
import { isNameable, NOT_NAMEABLE } from '../../words/name.ts';
import { asCheckoutProblem } from '../closed.ts';
import type { Inbox } from '../orders/inbox.ts';
import { type CardProvider, NotSigned } from '../provider.ts';
import type { Checkout, CheckoutStatus } from './checkout.ts';

/** Checkouts that one address may open in a minute. */
export const CHECKOUTS_PER_MINUTE = 10;
/** Where a retrieval token stands that is to appear in no address and no log of a proxy. */
const TOKEN_HEADER = 'x-retrieval-token';
const POLL_AGAIN_SECONDS = 5;
/** Where the provider sends its messages. */
const CARD_WEBHOOK_PATH = '/api/m2m/credits/webhook';

export interface CardRouteParts {
  checkout: Checkout;
  inbox: Inbox;
  provider: CardProvider;
  keys: Keys;
  /** Reads `autoRecharge` of a request. @throws Problem 400 */
  readRecharge(
    value: unknown,
    defaults: { topUpMicros: bigint },
  ): { thresholdMicros: bigint; topUpMicros: bigint } | null;
  baseUrl: string;
  firstCall: FirstCall;
  checkoutLimit: RateLimit;
  accountLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
}

/** What a key is called by its owner. */
export const keyLabel = z.string().trim().max(100).refine(isNameable, NOT_NAMEABLE);

const checkoutRequest = z.object({
  amountUsd: z.unknown().optional(),
  /** What one published guide calls it. */
  amount: z.unknown().optional(),
  email: z.email().max(254).optional(),
  keyName: keyLabel.optional(),
  autoRecharge: z.unknown().optional(),
});

/** The 400 for an amount that is no tier. */
export function invalidAmount(): Problem {
  const tiers = shownTiers();
  return new Problem(
    400,
    'INVALID_AMOUNT',
    `amountUsd must be one of the numbers ${tiers.map(({ amountUsd }) => amountUsd).join(', ')}.`,
    {
      details: {
        fields: [{ field: 'amountUsd', message: 'must be the amount of a tier' }],
        tiers,
        dailyLimits: DAILY_LIMITS,
        charged: false,
      },
    },
  );
}

/** Buying credit by card: a page for a person to pay on, its status for the agent that waits, and the provider's messages. */
export function cardRoutes(app: FastifyInstance, parts: CardRouteParts): void {
  const { checkout, baseUrl } = parts;

  app.post('/api/m2m/credits/checkout/session', async (request, reply) => {
    admit(parts.checkoutLimit, parts.addressOf(request), reply);
    const asked = readJsonBody(request, checkoutRequest);
    const tier = tierOf(asked.amountUsd ?? asked.amount);
    if (tier === undefined) throw invalidAmount();
    const amountMicros = usdToMicros(String(tier.amountUsd));
    const key = await readKeyToCredit(request.headers, parts);
    const recharge = parts.readRecharge(asked.autoRecharge, { topUpMicros: amountMicros });
    const opened = await checkout
      .open({
        amountMicros,
        creditMicros: amountMicros,
        email: asked.email ?? null,
        keyName: asked.keyName || null,
        recharge,
        accountId: key?.accountId ?? null,
      })
      .catch((error: unknown) => {
        throw asCheckoutProblem(error);
      });
    const statusEndpoint = `${baseUrl}/api/m2m/credits/checkout/status/${opened.sessionId}?token=<retrievalToken>`;
    return {
      success: true,
      sessionId: opened.sessionId,
      checkoutUrl: opened.checkoutUrl,
      amountUsd: tier.amountUsd,
      tier: tier.label,
      dailyLimit: DAILY_LIMITS.hosted_checkout,
      creditTo: key === null ? 'a new key' : key.prefix,
      expiresAt: new Date(opened.expiresAtMs).toISOString(),
      retrievalToken: opened.retrievalToken,
      autoRecharge:
        recharge === null
          ? { enabled: false, note: 'The card is not kept.' }
          : {
              enabled: true,
              thresholdUsd: Number(microsToUsd(recharge.thresholdMicros)),
              topUpUsd: Number(microsToUsd(recharge.topUpMicros)),
              note: 'The card is kept by the card provider, and charged when the balance falls below thresholdUsd.',
            },
      nextStep: {
        description: `Let a person open checkoutUrl and pay, then poll statusEndpoint every ${POLL_AGAIN_SECONDS} s.`,
        statusEndpoint,
        note:
          key === null
            ? 'Keep retrievalToken: the key is delivered against it, once.'
            : 'The credit goes to the key that you sent; there is no new one to fetch.',
      },
    };
  });

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
          ? await checkout.status({ sessionId, retrievalToken: token })
          : { status: 'unknown' };
      return describe(sessionId, status);
    },
  );

  app.get<{ Params: { sessionId: string } }>(
    '/api/m2m/credits/checkout/summary/:sessionId',
    { exposeHeadRoute: false },
    async (request, reply) => {
      admit(parts.accountLimit, parts.addressOf(request), reply);
      const sessionId = sessionIdOf(request.params.sessionId);
      const summary = await checkout.summary(sessionId);
      if (summary === null) throw new Problem(404, 'UNKNOWN_SESSION', 'There is no such session.');
      return {
        success: true,
        sessionId,
        paymentStatus: summary.status,
        reference: summary.orderId,
        amountUsd: Number(microsToUsd(summary.amountMicros)),
        creditUsd: Number(microsToUsd(summary.creditMicros)),
        tier: tierOf(Number(microsToUsd(summary.amountMicros)))?.label ?? null,
        paidAt: summary.paidAtMs === null ? null : new Date(summary.paidAtMs).toISOString(),
        receiptSentByEmail: summary.email !== null,
      };
    },
  );

  app.post(CARD_WEBHOOK_PATH, async (request, reply) => {
    const { body } = request;
    const signature = request.headers['stripe-signature'];
    reply.header('cache-control', 'no-store');
    try {
      const event = parts.provider.readWebhook(
        body instanceof Buffer ? body : Buffer.alloc(0),
        typeof signature === 'string' ? signature : undefined,
      );
      const isNew = await parts.inbox.receive(event);
      return { received: true, new: isNew };
    } catch (error) {
      if (!(error instanceof NotSigned)) throw error;
      throw new Problem(400, 'NOT_SIGNED', 'This message is not signed by the card provider, or is too old.');
    }
  });

  function describe(sessionId: string, checkout: CheckoutStatus): Record<string, unknown> {
    switch (checkout.status) {
      case 'unknown':
        throw new Problem(403, 'INVALID_TOKEN', 'There is no such session with this token.');
      case 'unpaid':
        return {
          success: false,
          sessionId,
          status: 'pending',
          paymentStatus: 'unpaid',
          keyReady: false,
          ready: false,
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
          keyReady: false,
          ready: false,
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
          creditsAdded: Number(microsToUsd(checkout.creditMicros)),
          currency: 'USD',
          tier: tierOf(Number(microsToUsd(checkout.amountMicros)))?.label ?? null,
          message: 'The credit is on the key that this checkout was opened with.',
        };
      case 'delivered':
        return {
          success: true,
          sessionId,
          status: 'delivered',
          paymentStatus: 'paid',
          keyReady: false,
          ready: false,
          alreadyDelivered: true,
          message: 'The key was delivered before and cannot be retrieved again.',
        };
      case 'ready': {
        const creditsAdded = Number(microsToUsd(checkout.creditMicros));
        return {
          success: true,
          sessionId,
          status: 'paid',
          paymentStatus: 'paid',
          keyReady: true,
          ready: true,
          apiKey: checkout.apiKey,
          keyPrefix: checkout.keyPrefix,
          creditsAdded,
          currency: 'USD',
          tier: tierOf(Number(microsToUsd(checkout.amountMicros)))?.label ?? null,
          warning: 'Save this key now: it is delivered once and cannot be retrieved again.',
          usage: {
            ...keyUsage(parts, checkout.apiKey),
            catalogUrl: `${baseUrl}/x402/catalog`,
          },
        };
      }
    }
  }
}

/** @throws Problem when it cannot be the name of a session */
function sessionIdOf(value: string): string {
  if (/^cs_\w{8,200}$/.test(value)) return value;
  throw new Problem(400, 'INVALID_SESSION_ID', 'The session id begins with cs_: take it from the answer.');
}
