import type { Challenge } from './challenge.ts';
import type { Door } from './paid-call.ts';
import type { Quote } from './rail.ts';

/** `/x402/…`: prepaid credits and x402, errors in the house's own form. */
export function x402Door(challenge: (quote: Quote) => Challenge): Door {
  return {
    prefix: '/x402',
    challenge,
    headers: {},
    fields: () => ({}),
    dress: (problem, requestId) => ({
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: problem.body(requestId),
    }),
  };
}
