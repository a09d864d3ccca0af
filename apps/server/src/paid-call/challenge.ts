import { microsToUsd, priceInUsd } from '../ledger/money.ts';
import { inputSchemaOf, withoutProse } from '../services/json-schema.ts';
import type { Headers, PaymentRefused, Quote, Rail } from './rail.ts';

/** How the interface's clients know that this is about money. */
const ERROR = 'X-PAYMENT header is required';
const MAX_EXAMPLE_HEADER = 1_000;
/** With an id and a reason put in, the body stays below 6 kB. */
const MAX_FIXED_BYTES = 5_400;

/** What a 402 answers. */
export interface ChallengeAnswer {
  headers: Record<string, string>;
  body: string;
}

/** The 402 of one service. */
export interface Challenge {
  /** @param refused why the credential that came does not pay, if one came */
  answer(request: ChallengedRequest, refused?: PaymentRefused): ChallengeAnswer | Promise<ChallengeAnswer>;
}

export interface ChallengedRequest {
  headers: Headers;
  rawBody: Buffer | undefined;
  requestId: string;
}

/**
 * Makes the 402 of a service once: every rail's offer, and how to get money to pay with. A request then costs no more
 * than putting its id in.
 */
export function makeChallenge(
  quote: Quote,
  rails: readonly Rail[],
  about: { baseUrl: string; seller: string; servicesAvailable: () => number },
): Challenge {
  const { service, priceMicros, resourceUrl } = quote;
  const { baseUrl, seller } = about;
  const priceUsd = Number(microsToUsd(priceMicros));
  const offers = rails.map((rail) => rail.offer(quote));
  const onChain = offers.flatMap((offer) => offer.accepts);
  const trialUrl = `${baseUrl}/api/m2m/credits/trial`;
  const recipeUrl = `${baseUrl}/x402/recipes/${service.path}`;
  const instructionsUrl = `${baseUrl}/.well-known/agent-instructions.json`;

  // Clients of the first generation read accepts[0].maxAmountRequiredUSD, so there is always a first entry.
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
  const schema = inputSchemaOf(service);
  const bodyWith = (inputSchema: unknown) => ({
    x402Version: 2,
    error: ERROR,
    code: 'PAYMENT_REQUIRED',
    message: `${service.name} costs ${priceInUsd(priceMicros)} USD a call. ${onChain.length > 0 ? 'Pay with an x402 wallet, send' : 'Send'} an API key in X-API-KEY, or take a trial key first. Nothing is charged unless the call succeeds.`,
    ...{ seller, price_usd: priceUsd, currency: 'USD' },
    accepts: onChain.length > 0 ? onChain : [prepaid],
    resource: { url: resourceUrl, description: service.summary, mimeType: service.mediaType },
    trial_access: {
      available: true,
      endpoint: trialUrl,
      method: 'GET',
      returns: { apiKey: 'string', credits: 5, expiresIn: '7 days' },
      usage: 'Repeat this request with the header X-API-KEY: <apiKey>.',
    },
    recommended_next_step_agent: {
      action: 'get_free_trial_key',
      method: 'GET',
      endpoint: trialUrl,
      usage: 'X-API-KEY: <apiKey>',
    },
    agent_instructions: { recommended_action: 'GET /api/m2m/credits/trial', docs: instructionsUrl },
    expected_output: { description: service.summary, format: service.mediaType },
    inputSchema: { httpMethod: 'POST', contentType: 'application/json', ...Object(inputSchema) },
    example: service.example,
    firstCallFree: { eligible: false },
    recipeUrl,
    catalogUrl: `${baseUrl}/x402/catalog`,
    ...Object.assign({ streaming: quote.streaming }, ...offers.map((offer) => offer.body)),
  });
  const full = JSON.stringify(bodyWith(schema));
  // The recipe has the whole of it.
  const fits = Buffer.byteLength(full) <= MAX_FIXED_BYTES;
  const start = (fits ? full : JSON.stringify(bodyWith(withoutProse(schema)))).slice(0, -1);
  const example = JSON.stringify(service.example);

  const headers: Record<string, string> = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-payment-price': `$${priceInUsd(priceMicros)} USD`,
    'x-payment-recipe-url': recipeUrl,
    'x-agent-instructions': instructionsUrl,
    link: `<${instructionsUrl}>; rel="agent-instructions"`,
    ...(isHeaderSafe(example) ? { 'x-request-example': example } : {}),
    ...Object.assign({}, ...offers.map((offer) => offer.headers)),
  };
  const fresh = offers.flatMap(({ freshHeaders }) => (freshHeaders === undefined ? [] : [freshHeaders]));

  return {
    answer({ requestId }, refused) {
      const end = lastErrorReason(refused, requestId);
      const own = JSON.stringify({ totalServicesAvailable: about.servicesAvailable(), requestId, ...end });
      return {
        headers: Object.assign({ ...headers }, ...fresh.map((make) => make())),
        body: `${start},${own.slice(1)}`,
      };
    },
  };
}

/** The field of a 402's body that tells why the credential that came does not pay; none when none came. */
export function lastErrorReason(refused: PaymentRefused | undefined, requestId: string) {
  if (refused === undefined) return {};
  const { code, message, hint, details } = refused;
  return {
    last_error_reason: { code, message, hint, recoverable: true, telemetryId: requestId, ...details },
  };
}

function isHeaderSafe(value: string): boolean {
  return value.length <= MAX_EXAMPLE_HEADER && /^[\x20-\x7e]*$/.test(value);
}
