/** A2A as a door of the paid call: the price of a skill as x402 writes it, errors as they are everywhere. */
import type { Door } from '../paid-call/door.ts';
import type { Rail } from '../paid-call/rail.ts';
import { type TermsAbout, termsInMessage } from '../paid-call/terms-in-message.ts';

const WORDS = {
  error: 'Payment is required to use this skill.',
  howToPay:
    'Send a message with the taskId and an x402 payment in metadata["x402.payment.payload"], or the same message with an API key in the header X-API-KEY.',
  trial: {},
};

/** Messages of A2A: every service, by key and by x402. What is bought is the address that HTTP has: A2A names none. */
export function a2aDoor(x402: Rail, about: TermsAbout): Door {
  return {
    prefix: '/x402',
    challenge(quote) {
      const terms = termsInMessage(quote, x402, about, WORDS);
      return {
        answer: (request, refused) => ({ headers: {}, body: JSON.stringify(terms(request, refused)) }),
      };
    },
    headers: {},
    fields: () => ({}),
    dress: (problem, requestId) => ({ headers: {}, body: problem.body(requestId) }),
  };
}
