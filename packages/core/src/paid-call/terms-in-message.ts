/** The terms of a quote, for doors such as MCP and A2A that carry payments in messages instead of headers. */
import { microsToUsd, priceInUsd } from '../ledger/money.ts';
import { costsWords } from '../service/metered.ts';
import { type ChallengedRequest, lastErrorReason } from './challenge.ts';
import type { PaymentRefused, Quote, Rail } from './rail.ts';

/** The texts that differ from door to door. */
export interface WordsOfTerms {
  /** What is wrong, in one line. */
  error: string;
  /** How to pay at this door. It follows the price. */
  howToPay: string;
  /** Further fields about the free trial key, beside its address. */
  trial: Readonly<Record<string, unknown>>;
}

export interface TermsAbout {
  baseUrl: string;
  /** Whether somebody new would get a trial now, as far as is known. */
  trialsOpen(): boolean;
}

/**
 * The `PaymentRequired` of x402 for a quote, with the house's own fields beside it.
 *
 * @returns a function that makes it for a request
 */
export function termsInMessage(
  quote: Quote,
  x402: Rail,
  { baseUrl, trialsOpen }: TermsAbout,
  { error, howToPay, trial }: WordsOfTerms,
): (request: ChallengedRequest, refused?: PaymentRefused) => Record<string, unknown> {
  const { service, priceMicros, resourceUrl } = quote;
  const offer = x402.offer(quote);
  const own = {
    code: 'PAYMENT_REQUIRED',
    message: `${service.name} ${costsWords(service.metered, priceInUsd(priceMicros))} ${howToPay} Nothing is charged unless the call succeeds.`,
    price_usd: Number(microsToUsd(priceMicros)),
    currency: 'USD',
    ...(service.metered === null ? {} : { metered: service.metered }),
    recipeUrl: `${baseUrl}/x402/recipes/${service.path}`,
  };
  const resource = { url: resourceUrl, description: service.summary, mimeType: service.mediaType };
  const trialAccess = { ...trial, endpoint: `${baseUrl}/api/m2m/credits/trial`, method: 'GET' };
  return ({ requestId }, refused) => ({
    x402Version: 2,
    error: refused?.code ?? error,
    resource,
    ...termsIn(offer.freshHeaders?.()['payment-required']),
    ...own,
    trial_access: { available: trialsOpen(), ...trialAccess },
    ...(refused === undefined ? {} : { code: refused.code, message: `${refused.message} ${refused.hint}` }),
    requestId,
    ...lastErrorReason(refused, requestId),
  });
}

/**
 * The x402 offer, read from its header. Signing in is left out, because it needs a header, which a message does not
 * have.
 */
function termsIn(header: string | undefined): { accepts: unknown[]; extensions: Record<string, unknown> } {
  if (header === undefined) return { accepts: [], extensions: {} };
  const { accepts, extensions } = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  const { 'sign-in-with-x': _signIn, ...kept } = extensions;
  return { accepts, extensions: kept };
}
