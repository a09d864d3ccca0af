import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../http/json-body.ts';
import { Problem } from '../http/problem.ts';
import { admit, type RateLimit } from '../http/rate-limit.ts';
import { type CreditTier, shownTiers } from '../keys/credit-tiers.ts';
import { readKeyToCredit } from '../keys/key-to-credit.ts';
import type { Keys } from '../keys/keys.ts';
import { answerOverHttp, assertFitsHttp } from '../paid-call/http-door.ts';
import type { PaidCall } from '../paid-call/paid-call.ts';
import type { Service } from '../service/define.ts';
import { TOPUP_PATH } from './door.ts';
import { type CreditTo, claimSecret, NEW_KEY } from './services.ts';

export interface TopupRouteParts {
  sold: readonly { tier: CreditTier; service: Service }[];
  paidCall: PaidCall;
  keys: Keys;
  /** The limit of requests of one address, applied before any key is looked up. */
  addressLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
}

const topupRequest = z.object({
  amountUsd: z.unknown().optional(),
  amount: z.unknown().optional(),
  claimSecret: claimSecret.optional(),
});

/**
 * Buying credit with USDC: `POST /api/m2m/credits/topup {"amountUsd": 10}`, or the address of one amount, such as
 * `/api/m2m/credits/topup/10`. This route decides the account and the amount; the rest is a paid call.
 */
export function topupRoutes(app: FastifyInstance, parts: TopupRouteParts): void {
  const [lowest] = parts.sold;
  if (lowest === undefined) throw new Error('no amount of credit is on sale');
  assertFitsHttp(parts.sold.map(({ service }) => service));

  const serve = (atAddress: CreditTier | null) => async (request: FastifyRequest, reply: FastifyReply) => {
    const address = parts.addressOf(request);
    admit(parts.addressLimit, address, reply);
    const asked = readJsonBody(request, topupRequest);
    const { tier, service } = chosen(asked.amountUsd ?? asked.amount, atAddress);
    const { claimSecret } = asked;
    // Checked before any payment is looked at.
    const key = await readKeyToCredit(request.headers, parts);
    const creditTo: CreditTo = key === null ? NEW_KEY : `account:${key.accountId}`;
    // The payment is bound to this: the amount, the account, and for a new key the claim on it.
    const rawBody = Buffer.from(JSON.stringify({ amountUsd: tier.amountUsd, creditTo, claimSecret }));
    await answerOverHttp(parts.paidCall, request, reply, { service, address, rawBody });
  };

  function chosen(amount: unknown, atAddress: CreditTier | null): { tier: CreditTier; service: Service } {
    const wanted = amount ?? atAddress?.amountUsd ?? lowest?.tier.amountUsd;
    const found = parts.sold.find(({ tier }) => tier.amountUsd === wanted);
    if (found !== undefined && (atAddress === null || found.tier === atAddress)) return found;
    throw new Problem(
      400,
      'INVALID_AMOUNT',
      atAddress === null
        ? `amountUsd must be one of the numbers ${shownTiers()
            .map(({ amountUsd }) => amountUsd)
            .join(', ')}.`
        : `This address sells ${atAddress.amountUsd} USD of credit; ${TOPUP_PATH} sells every tier.`,
      {
        details: {
          success: false,
          fields: [{ field: 'amountUsd', message: 'must be the amount of a tier, a number' }],
          tiers: shownTiers(),
          charged: false,
        },
      },
    );
  }

  const methods = ['GET', 'HEAD', 'POST'];
  app.route({ method: methods, url: TOPUP_PATH, handler: serve(null) });
  for (const { tier } of parts.sold)
    app.route({ method: methods, url: `${TOPUP_PATH}/${tier.amountUsd}`, handler: serve(tier) });
}
