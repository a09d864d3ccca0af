import { presentedApiKey } from '../keys/api-key.ts';
import { shownTiers } from '../keys/credit-tiers.ts';
import { priceInUsd } from '../ledger/money.ts';
import { type Challenge, lastErrorReason } from '../paid-call/challenge.ts';
import type { Door } from '../paid-call/door.ts';
import type { Quote, Rail } from '../paid-call/rail.ts';
import { inputSchemaOf } from '../service/json-schema.ts';

/** The address for buying credit, for any amount. */
export const TOPUP_PATH = '/api/m2m/credits/topup';

/** `/api/m2m/credits/topup`: paid from a wallet alone. */
export function topupDoor(rail: Rail, baseUrl: string): Door {
  return {
    prefix: '/api/m2m',
    challenge: (quote) => topupChallenge(quote, rail, baseUrl),
    headers: {},
    fields: () => ({}),
    dress: (problem, requestId) => ({
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: { success: false, ...problem.body(requestId) },
    }),
  };
}

function topupChallenge(quote: Quote, rail: Rail, baseUrl: string): Challenge {
  const { service, priceMicros, resourceUrl } = quote;
  const price = priceInUsd(priceMicros);
  const offer = rail.offer(quote);
  const instructionsUrl = `${baseUrl}/.well-known/agent-instructions.json`;
  const fixed = {
    x402Version: 2,
    error: 'X-PAYMENT header is required',
    code: 'PAYMENT_REQUIRED',
    price_usd: Number(price),
    currency: 'USD',
    accepts: offer.accepts,
    resource: { url: resourceUrl, description: service.summary, mimeType: 'application/json' },
    tiers: shownTiers(),
    inputSchema: { httpMethod: 'POST', contentType: 'application/json', ...inputSchemaOf(service) },
    example: service.example,
    topupUrl: `${baseUrl}${TOPUP_PATH}`,
    ...offer.body,
  };
  return {
    answer({ requestId, headers }, refused) {
      const buys =
        presentedApiKey(headers) === null
          ? 'for a new API key, which is in the answer; send X-API-KEY to credit yours instead'
          : 'for the account of the API key that was presented, which is not charged';
      return {
        headers: {
          'content-type': 'application/json; charset=utf-8',
          'cache-control': 'no-store',
          'x-payment-price': `$${price} USD`,
          'x-agent-instructions': instructionsUrl,
          link: `<${instructionsUrl}>; rel="agent-instructions"`,
          ...offer.headers,
          ...offer.freshHeaders?.(),
        },
        body: JSON.stringify({
          ...fixed,
          message: `Pay ${price} USDC by x402 for as much credit ${buys}.`,
          requestId,
          ...lastErrorReason(refused, requestId),
        }),
      };
    },
  };
}
