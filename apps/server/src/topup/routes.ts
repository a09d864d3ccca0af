import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../http/json-body.ts';
import { Problem } from '../http/problem.ts';
import { type RateLimit, rateExceeded, rateHeaders } from '../http/rate-limit.ts';
import { sendFinished } from '../http/server.ts';
import { presentedApiKey } from '../keys/api-key.ts';
import type { Keys } from '../keys/keys.ts';
import type { PaidCall } from '../paid-call/paid-call.ts';
import type { Service } from '../services/define.ts';
import { shownTiers, TOPUP_PATH } from './door.ts';
import { type CreditTo, NEW_KEY } from './services.ts';
import type { TopupTier } from './tiers.ts';

export interface TopupRouteParts {
  sold: readonly { tier: TopupTier; service: Service }[];
  paidCall: PaidCall;
  keys: Keys;
  /** How often one address may ask; before any key is looked up. */
  addressLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
}

const topupRequest = z.object({
  amountUsd: z.unknown().optional(),
  amount: z.unknown().optional(),
  claimSecret: z.unknown().optional(),
});

/**
 * Buying credit with USDC: `POST /api/m2m/credits/topup {"amountUsd": 10}`, or the address of one amount, such as
 * `/api/m2m/credits/topup/10`. Whose credit it is, and how much, is settled here; all else is a paid call.
 */
export function topupRoutes(app: FastifyInstance, parts: TopupRouteParts): void {
  const [lowest] = parts.sold;
  if (lowest === undefined) throw new Error('no amount of credit is on sale');

  const serve = (atAddress: TopupTier | null) => async (request: FastifyRequest, reply: FastifyReply) => {
    const address = parts.addressOf(request);
    const verdict = parts.addressLimit.take(address);
    reply.headers(rateHeaders(verdict)).header('cache-control', 'no-store');
    if (!verdict.allowed) throw rateExceeded(verdict);

    const asked = readJsonBody(request, topupRequest);
    const { tier, service } = chosen(asked.amountUsd ?? asked.amount, atAddress);
    const { claimSecret } = asked;
    const presentedKey = presentedApiKey(request.headers);
    const creditTo: CreditTo = presentedKey === null ? NEW_KEY : `account:${await accountOf(presentedKey)}`;
    const answer = await parts.paidCall.handle({
      service,
      method: request.method,
      headers: request.headers,
      // What the payment is bound to: how much, whose, and for a new key the claim on it.
      rawBody: Buffer.from(JSON.stringify({ amountUsd: tier.amountUsd, creditTo, claimSecret })),
      address,
      requestId: request.id,
      gone: () => request.raw.socket.destroyed,
    });
    sendFinished(reply, answer);
  };

  function chosen(amount: unknown, atAddress: TopupTier | null): { tier: TopupTier; service: Service } {
    const wanted = amount ?? atAddress?.amountUsd ?? lowest?.tier.amountUsd;
    const number = typeof wanted === 'string' && wanted.trim() !== '' ? Number(wanted) : wanted;
    const found = parts.sold.find(({ tier }) => tier.amountUsd === number);
    if (found !== undefined && (atAddress === null || found.tier === atAddress)) return found;
    throw new Problem(
      400,
      'INVALID_AMOUNT',
      atAddress === null
        ? 'amountUsd must be one of the tiers.'
        : `This address sells ${atAddress.amountUsd} USD of credit; ${TOPUP_PATH} sells every tier.`,
      { details: { success: false, tiers: shownTiers(), charged: false } },
    );
  }

  /** The account behind a key that credit may be bought for. All is checked before any money is looked at. */
  async function accountOf(apiKey: string): Promise<bigint> {
    const known = await parts.keys.find(apiKey);
    const key = known === null ? null : await parts.keys.record(known.id);
    const orNone = 'Send the key to be credited, or none for a new one.';
    if (key === null) throw refused(401, 'API_KEY_INVALID', 'This API key is not known here.', orNone);
    if (key.status === 'revoked')
      throw refused(401, 'API_KEY_REVOKED', 'This API key was revoked or rotated.', orNone);
    if (key.expiresAt !== null && key.expiresAt.getTime() <= parts.nowMs())
      throw refused(401, 'API_KEY_EXPIRED', 'This API key has expired.', orNone);
    // Credit is how a debt is paid; what the operator froze stays frozen however much is paid.
    if (key.status === 'frozen' && (await parts.keys.freezes(key.accountId)).includes('operator'))
      throw refused(
        403,
        'API_KEY_FROZEN',
        'This API key is frozen by the operator.',
        'Ask the operator why.',
      );
    return key.accountId;
  }

  const methods = ['GET', 'HEAD', 'POST'];
  app.route({ method: methods, url: TOPUP_PATH, handler: serve(null) });
  for (const { tier } of parts.sold)
    app.route({ method: methods, url: `${TOPUP_PATH}/${tier.amountUsd}`, handler: serve(tier) });
}

/** Before any money was looked at. */
function refused(status: number, code: string, message: string, hint: string): Problem {
  return new Problem(status, code, message, { details: { hint, charged: false } });
}
