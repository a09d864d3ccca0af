import { microsToUsd, priceInUsd } from '../ledger/money.ts';
import { type Challenge, lastErrorReason } from '../paid-call/challenge.ts';
import type { Door } from '../paid-call/door.ts';
import { PaymentRefused, type Quote, type Rail } from '../paid-call/rail.ts';
import { CREDIT_PACKAGES, creditsOf, shownPackage } from './credits.ts';
import type { OpenEndpoint } from './endpoints.ts';

export interface LegacyDoorParts {
  endpoints(): readonly OpenEndpoint[];
  baseUrl: string;
  trial: { creditsUsd: string; lifetimeDays: number };
  /** Whether a package can be bought by card now. */
  cardCheckout: boolean;
  /** Whether a wallet can pay at `/x402/…` now. */
  walletsPay(): boolean;
}

/**
 * `/api/gpt/…`: paid with a key alone. Its 402 says how to get a key, and where a wallet can pay for the same service.
 */
export function legacyDoor(parts: LegacyDoorParts): Door {
  return {
    // The paths of what is sold here begin with `gpt/`.
    prefix: '/api',
    challenge: (quote) => legacyChallenge(quote, parts),
    headers: { 'x-recharge-url': `${parts.baseUrl}/api/gpt/credits/packages` },
    fields: () => ({}),
    dress: (problem, requestId) => ({
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: { success: false, ...problem.body(requestId) },
    }),
  };
}

function legacyChallenge({ service, priceMicros, resourceUrl }: Quote, parts: LegacyDoorParts): Challenge {
  const { baseUrl, trial, endpoints } = parts;
  const priceUsd = Number(microsToUsd(priceMicros));
  const twin = endpoints().find(({ sold }) => sold?.path === service.path)?.twin ?? null;
  const trialUrl = `${baseUrl}/api/m2m/credits/trial`;
  const terms = {
    price_usd: priceUsd,
    currency: 'USD',
    credits: creditsOf(priceMicros),
    credit_usd: 0.1,
    usage: { header: 'X-API-KEY', alternativeHeader: 'Authorization: Bearer <key>' },
    pricing: Object.fromEntries(CREDIT_PACKAGES.map((each) => [each.id, shownPackage(each)])),
  };
  const ways = () => [
    {
      way: 'trial',
      available: true,
      method: 'GET',
      endpoint: trialUrl,
      description: `A key with ${trial.creditsUsd} USD for ${trial.lifetimeDays} days, free.`,
    },
    {
      way: 'checkout',
      available: parts.cardCheckout,
      method: 'POST',
      endpoint: `${baseUrl}/api/gpt/credits/create-session`,
      body: { package: 'starter' },
      description: 'A person pays a package by card; then the status of the session has the key.',
    },
    ...(twin === null
      ? []
      : [
          {
            way: 'x402',
            available: parts.walletsPay(),
            method: 'POST',
            endpoint: `${baseUrl}/x402/${twin.path}`,
            price_usd: Number(twin.priceUsd),
            body: twin.example,
            description: 'The same service, in its own words, paid by a wallet or by the same key.',
          },
        ]),
  ];
  // Every x402 client looks here first: it says what the call costs, and that no wallet pays here.
  const prepaid = {
    scheme: 'prepaid',
    network: 'farebox:credits',
    amount: String(priceMicros),
    maxAmountRequired: String(priceMicros),
    maxAmountRequiredUSD: priceUsd,
    asset: 'USD',
    payTo: 'farebox',
    resource: resourceUrl,
    description: service.summary,
    mimeType: service.mediaType,
    maxTimeoutSeconds: 60,
    extra: { header: 'X-API-KEY', obtain: trialUrl },
  };
  const price = `${priceInUsd(priceMicros)} USD`;
  return {
    answer: ({ requestId }, refused) => ({
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        'x-payment-price': `$${price}`,
        'x-trial-access': trialUrl,
      },
      body: JSON.stringify({
        success: false,
        error: refused?.code ?? 'PAYMENT_REQUIRED',
        code: refused?.code ?? 'PAYMENT_REQUIRED',
        message:
          refused?.message ??
          `${service.name} costs ${price} (${terms.credits} credits) a call. Send an API key in X-API-KEY. Nothing is charged unless the call succeeds.`,
        ...terms,
        ways_to_buy: ways(),
        accepts: [prepaid],
        requestId,
        ...lastErrorReason(refused, requestId),
      }),
    }),
  };
}

/**
 * Refuses a wallet's payment at these addresses. Whoever sends one beside a key means the payment, and it can buy
 * nothing here.
 */
export function walletAtTheLegacyDoor(): Rail {
  return {
    name: 'x402',
    offer: () => ({ headers: {}, accepts: [], body: {} }),
    recognizes: (headers) =>
      headers['x-payment'] !== undefined ||
      headers['payment-signature'] !== undefined ||
      (typeof headers.authorization === 'string' && /(^|,\s*)payment\s/i.test(headers.authorization)),
    async read() {
      throw new PaymentRefused(
        'WALLET_NOT_TAKEN_HERE',
        'This address is paid by an API key alone. The payment was not used.',
        'Sign a new payment for the x402 address in ways_to_buy, or send this request with a key and no payment.',
      );
    },
  };
}
