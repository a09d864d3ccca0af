import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../../http/json-body.ts';
import { Problem, unavailable } from '../../http/problem.ts';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import { tierOf } from '../../keys/credit-tiers.ts';
import { readKeyToCredit } from '../../keys/key-to-credit.ts';
import { type FirstCall, keyUsage } from '../../keys/key-usage.ts';
import type { KeyRecord, Keys } from '../../keys/keys.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { microsToUsd, usdToMicros } from '../../ledger/money.ts';
import { providerAway } from '../closed.ts';
import type { Debts } from '../disputes/debts.ts';
import type { CardOrder } from '../orders/orders.ts';
import type { PurchaseOutcome, Purchases } from './purchase.ts';
import type { LimitName, LimitReached } from './purchase-limits.ts';
import { invalidAmount, keyLabel } from './routes.ts';

/** Requests that one address may make in a minute; how many purchases they may be is counted elsewhere. */
export const PURCHASE_REQUESTS_PER_MINUTE = 30;
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const PAYMENT_METHOD = /^pm_\w{3,200}$/;
const UNKNOWN_RETRY_MS = 5_000;

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
export function purchaseRoutes(app: FastifyInstance, parts: PurchaseRouteParts): void {
  const { purchases, keys, ledger, baseUrl } = parts;
  const checkout = {
    method: 'POST',
    url: `${baseUrl}/api/m2m/credits/checkout/session`,
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
      return await answer(outcome, tier.label, key);
    } catch (error) {
      if (error instanceof Problem) throw error;
      parts.onError(error);
      throw unknownOutcome(error);
    }
  });

  async function answer(
    outcome: PurchaseOutcome,
    tier: string,
    key: KeyRecord | null,
  ): Promise<Record<string, unknown>> {
    switch (outcome.status) {
      case 'paid':
        return bought(outcome, tier, key);
      case 'failed':
        throw failed(outcome.order);
      case 'unknown':
        throw unknownOutcome();
      case 'in_progress':
        throw new Problem(
          409,
          'PURCHASE_IN_PROGRESS',
          'Another request is at work on this purchase. Ask again with the same idempotencyKey.',
          { details: { charged: null, retryAfter: 1 }, headers: { 'retry-after': '1' } },
        );
      case 'reused':
        throw refused(
          409,
          'IDEMPOTENCY_KEY_REUSED',
          'This idempotencyKey names another purchase: another card, amount, key, e-mail or name.',
          'Repeat the first request as it was, or take a new idempotencyKey for a new purchase.',
        );
      case 'no_such_card':
        throw invalidMethod(
          'The card provider has no such card, or it belongs to a customer. Nothing was begun: create a new payment method.',
        );
      case 'provider_away':
        throw providerAway(outcome.cause);
      case 'limited':
        throw limited(outcome.reached);
      case 'paused':
        throw unavailable(
          'PURCHASES_PAUSED',
          'Too many cards were declined lately, so buying with a card in this way is paused for some minutes.',
          outcome.untilMs - parts.nowMs(),
          { hostedCheckout: checkout },
        );
    }
  }

  async function bought(
    { order, apiKey, repeated, debtPaidMicros }: Extract<PurchaseOutcome, { status: 'paid' }>,
    tier: string,
    key: KeyRecord | null,
  ): Promise<Record<string, unknown>> {
    if (order.accountId === null) throw new Error(`order ${order.id} is paid and has no account`);
    const keyId = order.keyId ?? key?.id;
    const [{ balanceMicros }, { owedMicros, frozenFor }, credited] = await Promise.all([
      ledger.balance(order.accountId),
      parts.debts.standing(order.accountId),
      keyId === undefined ? null : keys.record(keyId),
    ]);
    const usd = (micros: bigint) => Number(microsToUsd(micros));
    const fixedUntil = credited?.capFixedUntil ?? null;
    const isHeld = fixedUntil !== null && fixedUntil.getTime() > parts.nowMs();
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
            usage: {
              ...keyUsage(parts, apiKey),
              catalogUrl: `${baseUrl}/x402/catalog`,
            },
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

  /** What is said of a purchase that was not paid for: the same each time. */
  function failed(order: CardOrder): Problem {
    const { declineCode } = order;
    const code = order.failure ?? 'unknown';
    const again = 'Nothing was charged. A new attempt needs a new idempotencyKey.';
    const details = { charged: false, transactionId: order.id, retry: again };
    if (code === 'authentication_required' || declineCode === 'authentication_required') {
      return new Problem(
        402,
        'AUTHENTICATION_REQUIRED',
        'The card’s bank wants to ask its owner, which an agent cannot answer. Use the hosted checkout.',
        { details: { ...details, hostedCheckout: checkout } },
      );
    }
    if (declineCode !== null || code === 'card_declined' || SUGGESTIONS.has(code)) {
      const shown = SECRET_DECLINES.has(declineCode ?? code) ? GENERIC_DECLINE : (declineCode ?? code);
      return new Problem(402, 'CARD_DECLINED', 'The card was declined.', {
        details: { ...details, declineCode: shown, suggestion: SUGGESTIONS.get(shown) ?? ASK_THE_BANK },
      });
    }
    if (UNUSABLE.has(code)) {
      return invalidMethod(
        'The card provider does not take this payment method: it was used before, or belongs to a customer. Create a new one.',
        details,
      );
    }
    return new Problem(402, 'PAYMENT_FAILED', 'The payment was not made.', {
      details: { ...details, reason: code, hostedCheckout: checkout },
    });
  }

  function limited({ limit, retryAfterMs }: LimitReached): Problem {
    if (retryAfterMs === null) {
      return refused(402, 'PAYMENT_FAILED', LIMIT_MESSAGES[limit], 'Use another card.');
    }
    const retryAfter = Math.max(1, Math.ceil(retryAfterMs / 1_000));
    return new Problem(429, 'RATE_LIMITED', LIMIT_MESSAGES[limit], {
      details: { limit, retryAfter, charged: false, hostedCheckout: checkout },
      headers: { 'retry-after': String(retryAfter) },
    });
  }
}

const LIMIT_MESSAGES: Record<LimitName, string> = {
  attempts_per_network: 'Too many purchases from this network. Nothing was charged.',
  declines_per_network: 'Too many cards from this network were declined. Nothing was charged.',
  new_accounts_per_card: 'This card has paid for enough new keys. Present a key to add credit to it instead.',
  amount_per_card: 'This card has paid what a card may pay here in a day. Nothing was charged.',
  declines_per_card: 'This card was declined too often today. Nothing was charged.',
  card_disputed: 'This card cannot pay here. Nothing was charged.',
};

const GENERIC_DECLINE = 'generic_decline';
const ASK_THE_BANK = 'Use another card, or let its owner ask the bank.';
/** Who holds a stolen card must not learn that it is known as one. */
const SECRET_DECLINES = new Set([
  'fraudulent',
  'lost_card',
  'stolen_card',
  'pickup_card',
  'merchant_blacklist',
]);
const LATER = 'The bank could not be reached. Try again later with a new idempotencyKey.';
/** What may help, by decline code. */
const SUGGESTIONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    insufficient_funds: 'Use another card, or buy a smaller tier.',
    card_velocity_exceeded:
      'The card has reached a limit of its bank. Use another one, or try again tomorrow.',
    expired_card: 'Use another card: this one has expired.',
    incorrect_cvc: 'Create a new payment method with the right security code.',
    incorrect_number: 'Create a new payment method with the right number.',
    invalid_cvc: 'Create a new payment method with the right security code.',
    invalid_expiry_month: 'Create a new payment method with the right date.',
    invalid_expiry_year: 'Create a new payment method with the right date.',
    currency_not_supported: 'Use a card that can pay in USD.',
    processing_error: LATER,
    issuer_not_available: LATER,
    try_again_later: LATER,
  }),
);
/** What the provider says of a payment method that it will not charge whatever the bank thinks; `refused`: without a code. */
const UNUSABLE = new Set([
  'refused',
  'resource_missing',
  'payment_method_invalid_parameter',
  'payment_method_unactivated',
  'payment_method_customer_decline',
  'payment_method_not_available',
]);

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

function invalidMethod(message: string, details: Record<string, unknown> = {}): Problem {
  return new Problem(400, 'INVALID_PAYMENT_METHOD', message, {
    details: {
      fields: [{ field: 'paymentMethodId', message: 'must be usable' }],
      charged: false,
      ...details,
    },
  });
}

/** The 503 for a purchase that may have been charged. It says so, and what to do. */
function unknownOutcome(cause?: unknown): Problem {
  return unavailable(
    'OUTCOME_UNKNOWN',
    'The card provider, or our database, has not told what became of this purchase. Ask again with the same idempotencyKey: you cannot be charged twice.',
    UNKNOWN_RETRY_MS,
    { charged: null },
    cause,
  );
}

/** Before anything was charged. */
function refused(status: number, code: string, message: string, hint: string): Problem {
  return new Problem(status, code, message, { details: { hint, charged: false } });
}
