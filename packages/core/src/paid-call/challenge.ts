import { sandboxFields } from '../http/sandbox-notice.ts';
import { microsToUsd, priceInUsd } from '../ledger/money.ts';
import { boundsWords } from '../service/bounds-words.ts';
import { inputOutlineOf, inputSchemaOf, withoutProse } from '../service/json-schema.ts';
import { costsWords } from '../service/metered.ts';
import type { Headers, Offer, PaymentRefused, Quote, Rail } from './rail.ts';

/** Existing clients recognize a 402 by this text. */
const ERROR = 'X-PAYMENT header is required';
/**
 * The size of a whole 402, status line included. Agents read it into their context, and the server sends it to anybody
 * who asks.
 */
const MOST_BYTES = 5_000;
/** The bytes that the HTTP server adds: status line, request id, rate limit headers, `date`, lengths, CORS. */
const BYTES_OF_THE_EDGE = 460;

/** The headers and body of a 402. */
export interface ChallengeAnswer {
  headers: Record<string, string>;
  body: string;
}

/** The 402 of one service. */
export interface Challenge {
  /** @param refused why the presented credential does not pay; absent when none was presented */
  answer(request: ChallengedRequest, refused?: PaymentRefused): ChallengeAnswer | Promise<ChallengeAnswer>;
}

export interface ChallengedRequest {
  headers: Headers;
  rawBody: Buffer | undefined;
  requestId: string;
}

/**
 * Builds the 402 of a service once, with every rail's offer and how to get money to pay with. A request then only adds
 * its id.
 *
 * The 402 states what wallets and clients need to pay, the price in words, where to get a trial key, and how to call
 * the service, as far as that fits. The recipe that it links to states all of it.
 */
export function makeChallenge(
  quote: Quote,
  rails: readonly Rail[],
  about: {
    baseUrl: string;
    seller: string;
    sandbox: boolean;
    trialsOpen(): boolean;
    /** False: the service stands in no document of this server. */
    hasRecipes?: boolean;
  },
): Challenge {
  const { service } = quote;
  const { baseUrl, seller, sandbox } = about;
  const offers = rails.map((rail) => rail.offer(quote));
  const fresh = offers.flatMap(({ freshHeaders }) => (freshHeaders === undefined ? [] : [freshHeaders]));
  const recipeUrl = about.hasRecipes === false ? undefined : `${baseUrl}/x402/recipes/${service.path}`;
  const fixed: Record<string, string> = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-payment-price': `$${priceInUsd(quote.priceMicros)} USD`,
    link: `<${baseUrl}/.well-known/agent-instructions.json>; rel="agent-instructions"`,
    ...Object.assign({}, ...offers.map((offer) => offer.headers)),
  };
  const headersNow = () => Object.assign({ ...fixed }, ...fresh.map((make) => make()));

  const schema = inputSchemaOf(service);
  const { example } = service;
  const room =
    MOST_BYTES -
    BYTES_OF_THE_EDGE -
    bytesOf(sandboxFields(sandbox)) -
    bytesOf({ docUrl: `${baseUrl}/docs/errors/PAYMENT_REQUIRED` }) -
    bytesOfHeaders(headersNow());
  const startOf = (trialsOpen: boolean) => {
    const body = bodyOf(quote, { baseUrl, seller, recipeUrl, offers, trialsOpen });
    return fitting(room, [
      { ...body, inputSchema: schema, example },
      { ...body, inputSchema: withoutProse(schema), example },
      { ...body, inputSchema: inputOutlineOf(schema), example },
      { ...body, example },
      body,
    ]).slice(0, -1);
  };
  const start = startOf(true);
  let withoutTrials: string | null = null;
  const known = () => {
    if (about.trialsOpen()) return start;
    withoutTrials ??= startOf(false);
    return withoutTrials;
  };

  return {
    answer({ requestId }, refused) {
      const own = JSON.stringify({ requestId, ...lastErrorReason(refused, requestId) });
      return { headers: headersNow(), body: `${known()},${own.slice(1)}` };
    },
  };
}

function waysToPay(byWallet: boolean, byTrial: boolean): string {
  const ways = [
    ...(byWallet ? ['pay with an x402 wallet'] : []),
    'send an API key in X-API-KEY',
    ...(byTrial ? ['take a trial key first'] : []),
  ];
  const last = ways.pop();
  const all = ways.length === 0 ? `${last}` : `${ways.join(', ')}, or ${last}`;
  return all.charAt(0).toUpperCase() + all.slice(1);
}

/** The fields of the body, except how the service is called. */
function bodyOf(
  { service, priceMicros, resourceUrl, streaming }: Quote,
  {
    baseUrl,
    seller,
    recipeUrl,
    offers,
    trialsOpen,
  }: {
    baseUrl: string;
    seller: string;
    recipeUrl: string | undefined;
    offers: readonly Offer[];
    trialsOpen: boolean;
  },
): Record<string, unknown> {
  const priceUsd = Number(microsToUsd(priceMicros));
  const onChain = offers.flatMap((offer) => offer.accepts);
  const trialUrl = `${baseUrl}/api/m2m/credits/trial`;
  // Clients of the first generation read accepts[0].maxAmountRequiredUSD, so `accepts` always has a first entry.
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
  return {
    x402Version: 2,
    error: ERROR,
    code: 'PAYMENT_REQUIRED',
    message: `${service.name} ${costsWords(service.metered, priceInUsd(priceMicros))}${boundsWords(service)} ${waysToPay(onChain.length > 0, trialsOpen)}. Nothing is charged unless the call succeeds.`,
    seller,
    price_usd: priceUsd,
    currency: 'USD',
    ...(service.metered === null ? {} : { metered: service.metered }),
    accepts: onChain.length > 0 ? onChain : [prepaid],
    trial_access: {
      available: trialsOpen,
      endpoint: trialUrl,
      method: 'GET',
      returns: { credits: 5, expiresIn: '7 days' },
    },
    recipeUrl,
    catalogUrl: `${baseUrl}/x402/catalog`,
    ...Object.assign({ streaming }, ...offers.map((offer) => offer.body)),
  };
}

/** The first of these bodies that fits, as text; the last one when none does. */
function fitting(roomBytes: number, bodies: readonly Record<string, unknown>[]): string {
  const texts = bodies.map((each) => JSON.stringify(each));
  return texts.find((text) => Buffer.byteLength(text) <= roomBytes) ?? texts.at(-1) ?? '{}';
}

const bytesOf = (document: object) => Buffer.byteLength(JSON.stringify(document));

function bytesOfHeaders(headers: Readonly<Record<string, string>>): number {
  return Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 4,
    0,
  );
}

/** The field of a 402's body that tells why the presented credential does not pay; empty when none was presented. */
export function lastErrorReason(refused: PaymentRefused | undefined, requestId: string) {
  if (refused === undefined) return {};
  const { code, message, hint, details } = refused;
  return {
    last_error_reason: { code, message, hint, recoverable: true, telemetryId: requestId, ...details },
  };
}
