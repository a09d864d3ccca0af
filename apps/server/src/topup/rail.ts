import { PaymentRefused, type Rail } from '../paid-call/rail.ts';
import { readPresented } from '../rails/x402/wire.ts';
import { withClaim } from './claim.ts';

/**
 * x402 as credit is sold for it: signed payments alone. A hash stands on a public chain for whoever sees it first, and
 * credit is money; nor does a wallet fetch a key by signing in, which is for whoever holds the payment and its secret.
 * A key beside the payment says whose credit it is and is not charged.
 */
export function topupRail(x402: Rail): Rail {
  const claimed = (headers: Record<string, string>): Record<string, string> => {
    const terms = headers['payment-required'];
    return terms === undefined ? headers : { ...headers, 'payment-required': withClaim(terms) };
  };
  const { chains, recall, refusedHeaders } = x402;
  return {
    name: x402.name,
    ...(chains === undefined ? {} : { chains }),
    get revision() {
      return x402.revision ?? 0;
    },
    recognizes: x402.recognizes,
    ...(recall === undefined ? {} : { recall }),

    offer(quote) {
      const offer = x402.offer(quote);
      const { freshHeaders } = offer;
      return freshHeaders === undefined ? offer : { ...offer, freshHeaders: () => claimed(freshHeaders()) };
    },

    async read(headers, quote, beside) {
      if (readPresented(headers).scheme === 'transfer') {
        throw new PaymentRefused(
          'PAYMENT_HASH_NOT_TAKEN_HERE',
          'Credit is not sold for the hash of a transfer: whoever saw it first could take it. The transfer was not used.',
          'Sign the terms of this 402 with an x402 client. The hash still buys a call at /x402/….',
        );
      }
      return x402.read(headers, quote, beside);
    },

    ...(refusedHeaders === undefined
      ? {}
      : { refusedHeaders: (refused, quote) => claimed(refusedHeaders(refused, quote)) }),
  };
}
