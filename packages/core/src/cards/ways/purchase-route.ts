import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../../http/json-body.ts';
import { Problem } from '../../http/problem.ts';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import { tierOf } from '../../keys/credit-tiers.ts';
import { readKeyToCredit } from '../../keys/key-to-credit.ts';
import { type FirstCall, keyUsage } from '../../keys/key-usage.ts';
import type { KeyRecord, Keys } from '../../keys/keys.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { microsToUsd, usdToMicros } from '../../ledger/money.ts';
import type { Debts } from '../disputes/debts.ts';
import type { PurchaseOutcome, Purchases } from './purchase.ts';
import { invalidAmount, keyLabel } from './purchase-fields.ts';
import {
  type HostedCheckout,
  invalidMethod,
  refusalOf,
  refused,
  unknownOutcome,
} from './purchase-refusals.ts';

/** Requests that one address may make in a minute; how many purchases they may be is counted elsewhere. */
export const PURCHASE_REQUESTS_PER_MINUTE = 30;
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const PAYMENT_METHOD = /^pm_\w{3,200}$/;

export interface PurchaseRouteParts {
  purchases: Purchases;
  keys: Keys;
  ledger: Ledger;
  debts: Pick<Debts, 'standing'>;
  baseUrl: string;
  firstCall: FirstCall;
  addressLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
  /** Told what went wrong with a purchase that nobody knows the outcome of. */
  onError(error: unknown): void;
}

const purchaseRequest = z.object({
  paymentMethodId: z.unknown().optional(),
  amountUsd: z.unknown().optional(),
  idempotencyKey: z.unknown().optional(),
  email: z.email().max(254).nullish(),
  keyName: keyLabel.nullish(),
});

/**
 * `POST /api/m2m/credits/purchase`: an agent with a card buys a key, or credit for the key that it presents. The same
 * request again is the same purchase, and the way to ask what became of it.
 */
export function purchaseRoute(app: FastifyInstance, parts: PurchaseRouteParts): void {
  const { purchases } = parts;
  const checkout: HostedCheckout = {
    method: 'POST',
    url: `${parts.baseUrl}/api/m2m/credits/checkout/session`,
    note: 'A person pays on a page, where the card’s bank can ask them.',
  };

  app.post('/api/m2m/credits/purchase', async (request, reply) => {
    admit(parts.addressLimit, parts.addressOf(request), reply);
    const asked = readJsonBody(request, purchaseRequest);
    const idempotencyKey = readIdempotencyKey(asked.idempotencyKey);
    const { paymentMethodId } = asked;
    if (typeof paymentMethodId !== 'string' || !PAYMENT_METHOD.test(paymentMethodId))
      throw invalidMethod('paymentMethodId must be the name of a card at the card provider: pm_…');
    const tier = tierOf(asked.amountUsd);
    if (tier === undefined) throw invalidAmount();
    const key = await readKeyToCredit(request.headers, parts);
    // From here on only an answer of the purchase itself may say that nothing was charged.
    try {
      const outcome = await purchases.buy({
        paymentMethodId,
        amountMicros: usdToMicros(String(tier.amountUsd)),
        idempotencyKey,
        accountId: key?.accountId ?? null,
        email: asked.email ?? null,
        keyName: asked.keyName || null,
        address: parts.addressOf(request),
      });
      if (outcome.status === 'paid') return await bought(parts, outcome, tier.label, key);
      throw refusalOf(outcome, checkout, parts.nowMs());
    } catch (error) {
      if (error instanceof Problem) throw error;
      parts.onError(error);
      throw unknownOutcome(error);
    }
  });
}

/** Answers a purchase that was paid for. */
async function bought(
  parts: PurchaseRouteParts,
  { order, apiKey, repeated, debtPaidMicros }: Extract<PurchaseOutcome, { status: 'paid' }>,
  tier: string,
  key: KeyRecord | null,
): Promise<Record<string, unknown>> {
  const { keys, ledger, debts, baseUrl, nowMs } = parts;
  if (order.accountId === null) throw new Error(`order ${order.id} is paid and has no account`);
  const keyId = order.keyId ?? key?.id;
  const [{ balanceMicros }, { owedMicros, frozenFor }, credited] = await Promise.all([
    ledger.balance(order.accountId),
    debts.standing(order.accountId),
    keyId === undefined ? null : keys.record(keyId),
  ]);
  const usd = (micros: bigint) => Number(microsToUsd(micros));
  const fixedUntil = credited?.capFixedUntil ?? null;
  const isHeld = fixedUntil !== null && fixedUntil.getTime() > nowMs();
  const isNew = order.key !== null;
  return {
    success: true,
    ...(repeated ? { alreadyProvisioned: true } : {}),
    paymentIntentId: order.paymentIntentId,
    transactionId: order.id,
    ...(apiKey === null ? {} : { apiKey }),
    keyPrefix: credited?.prefix ?? null,
    creditsAdded: usd(order.creditMicros),
    newBalance: usd(balanceMicros),
    currency: 'USD',
    tier,
    charged: true,
    chargedUsd: usd(order.amountMicros),
    ...(order.reversedMicros > 0n ? { takenBackUsd: usd(order.reversedMicros) } : {}),
    ...(debtPaidMicros > 0n || owedMicros > 0n
      ? { debt: { paidUsd: usd(debtPaidMicros), owedUsd: usd(owedMicros), frozenFor } }
      : {}),
    ...(isHeld && credited?.capPerDayMicros != null
      ? {
          capPerDay: {
            usd: usd(credited.capPerDayMicros),
            until: fixedUntil.toISOString(),
            why: 'A card that is new here paid for it.',
          },
        }
      : {}),
    ...(isNew && apiKey !== null
      ? {
          warning: 'Save this key now: it is delivered once and cannot be retrieved again.',
          usage: { ...keyUsage(parts, apiKey), catalogUrl: `${baseUrl}/x402/catalog` },
        }
      : {}),
    ...(repeated
      ? {
          message: 'This purchase was made before.',
          note: isNew
            ? 'Its key was delivered then and cannot be retrieved again. Nothing was charged this time.'
            : 'Nothing was charged this time.',
        }
      : {}),
  };
}

/** @throws Problem 400 */
function readIdempotencyKey(value: unknown): string {
  if (value === undefined || value === null || value === '') {
    throw refused(
      400,
      'MISSING_IDEMPOTENCY_KEY',
      'idempotencyKey must name this purchase: a UUID (version 4) of your own making.',
      'Keep it: the same key again is the same purchase, and what its API key is delivered against.',
    );
  }
  const key = typeof value === 'string' ? value.trim().toLowerCase() : '';
  if (UUID_V4.test(key)) return key;
  throw refused(
    400,
    'INVALID_IDEMPOTENCY_KEY',
    'idempotencyKey must be a random UUID (version 4).',
    'Such as the output of uuidgen; nobody else may be able to guess it.',
  );
}
