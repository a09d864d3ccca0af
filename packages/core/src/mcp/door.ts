/** MCP as a door of the paid call: the price of a tool for every kind of wallet in one answer, errors as they are everywhere. */
import type { Door } from '../paid-call/door.ts';
import type { Quote, Rail } from '../paid-call/rail.ts';
import { type TermsAbout, termsInMessage } from '../paid-call/terms-in-message.ts';
import { askedByMpp } from '../rails/mpp/asked.ts';
import type { MppRail } from '../rails/mpp/rail.ts';
import { toolNameOf } from '../service/tool-name.ts';

const WORDS = {
  error: 'Payment is required to call this tool.',
  howToPay:
    'Pay by x402 or MPP in _meta, or send an API key in the header X-API-KEY of the connection: the tool get_trial_key gives a free one.',
  trial: { tool: 'get_trial_key' },
};

/**
 * `tools/call`: every service, by every rail. The body of its 402 is the `PaymentRequired` of x402's MCP transport with
 * the house's own fields beside it; what MPP says stands in the header that HTTP has it in.
 *
 * @param mpp null where it is off
 */
export function mcpDoor(mpp: MppRail | null, x402: Rail, about: TermsAbout): Door {
  return {
    prefix: '/mcp',
    tool: toolNameOf,
    challenge(quote: Quote) {
      const terms = termsInMessage(quote, x402, about, WORDS);
      return {
        async answer(request, refused) {
          return {
            headers: await askedByMpp(mpp, quote, request),
            body: JSON.stringify(terms(request, refused)),
          };
        },
      };
    },
    headers: {},
    fields: () => ({}),
    dress: (problem, requestId) => ({ headers: {}, body: problem.body(requestId) }),
  };
}
