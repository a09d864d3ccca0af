import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../../http/json-body.ts';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import { DAILY_LIMITS, tierOf } from '../../keys/credit-tiers.ts';
import { readKeyToCredit } from '../../keys/key-to-credit.ts';
import type { Keys } from '../../keys/keys.ts';
import { microsToUsd, usdToMicros } from '../../ledger/money.ts';
import { asCheckoutProblem } from '../closed.ts';
import type { Checkout } from './checkout.ts';
import { POLL_AGAIN_SECONDS } from './checkout-status-route.ts';
import { invalidAmount, keyLabel } from './purchase-fields.ts';

/** Checkouts that one address may open in a minute. */
export const CHECKOUTS_PER_MINUTE = 10;

const checkoutRequest = z.object({
  amountUsd: z.unknown().optional(),
  /** The amount under the name that one published guide has for it. */
  amount: z.unknown().optional(),
  email: z.email().max(254).optional(),
  keyName: keyLabel.optional(),
  autoRecharge: z.unknown().optional(),
});

/** `POST /api/m2m/credits/checkout/session`: opens a page for a person to pay on. */
export function checkoutSessionRoute(
  app: FastifyInstance,
  parts: {
    checkout: Checkout;
    keys: Keys;
    /** Reads `autoRecharge` of a request. @throws Problem 400 */
    readRecharge(
      value: unknown,
      defaults: { topUpMicros: bigint },
    ): { thresholdMicros: bigint; topUpMicros: bigint } | null;
    baseUrl: string;
    checkoutLimit: RateLimit;
    addressOf(request: FastifyRequest): string;
    nowMs(): number;
  },
): void {
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
        address: parts.addressOf(request),
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
}
