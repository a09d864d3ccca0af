/** MCP as a door of the paid call: the price of a tool for every kind of wallet in one answer, errors as they are everywhere. */
import { microsToUsd, priceInUsd } from '../ledger/money.ts';
import { lastErrorReason } from '../paid-call/challenge.ts';
import type { Door } from '../paid-call/door.ts';
import type { Quote, Rail } from '../paid-call/rail.ts';
import type { MppRail } from '../rails/mpp/rail.ts';
import { toolNameOf } from '../services/tool-name.ts';

const ERROR = 'Payment is required to call this tool.';

/**
 * `tools/call`: every service, by every rail. The body of its 402 is the `PaymentRequired` of x402's MCP transport with
 * the house's own fields beside it; what MPP says stands in the header that HTTP has it in.
 *
 * @param mpp null where it is off
 */
export function mcpDoor(mpp: MppRail | null, x402: Rail, baseUrl: string): Door {
  const trialUrl = `${baseUrl}/api/m2m/credits/trial`;
  return {
    prefix: '/mcp',
    tool: toolNameOf,
    challenge(quote: Quote) {
      const { service, priceMicros, resourceUrl } = quote;
      const offer = x402.offer(quote);
      const own = {
        code: 'PAYMENT_REQUIRED',
        message: `${service.name} costs ${priceInUsd(priceMicros)} USD a call. Pay by x402 or MPP in _meta, or send an API key in the header X-API-KEY of the connection: the tool get_trial_key gives a free one. Nothing is charged unless the call succeeds.`,
        price_usd: Number(microsToUsd(priceMicros)),
        currency: 'USD',
        trial_access: { available: true, tool: 'get_trial_key', endpoint: trialUrl, method: 'GET' },
        recipeUrl: `${baseUrl}/x402/recipes/${service.path}`,
      };
      const resource = { url: resourceUrl, description: service.summary, mimeType: service.mediaType };
      return {
        async answer(request, refused) {
          const byMpp = mpp !== null && service.mpp ? await mpp.challenge(quote, request) : null;
          const body = {
            x402Version: 2,
            error: refused?.code ?? ERROR,
            resource,
            ...termsIn(offer.freshHeaders?.()['payment-required']),
            ...own,
            ...(refused === undefined
              ? {}
              : { code: refused.code, message: `${refused.message} ${refused.hint}` }),
            requestId: request.requestId,
            ...lastErrorReason(refused, request.requestId),
          };
          const challenges = byMpp?.headers['www-authenticate'];
          return {
            headers: challenges === undefined ? {} : { 'www-authenticate': challenges },
            body: JSON.stringify(body),
          };
        },
      };
    },
    headers: {},
    fields: () => ({}),
    dress: (problem, requestId) => ({ headers: {}, body: problem.body(requestId) }),
  };
}

/** What the x402 rail offers, as its header says it; signing in needs a header, which a tool call has not. */
function termsIn(header: string | undefined): { accepts: unknown[]; extensions: Record<string, unknown> } {
  if (header === undefined) return { accepts: [], extensions: {} };
  const { accepts, extensions } = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  const { 'sign-in-with-x': _signIn, ...kept } = extensions;
  return { accepts, extensions: kept };
}
