import type { Rail } from '../paid-call/rail.ts';

/**
 * The x402 rail as credit is sold for it. Nobody can fetch a key by signing in: it goes to whoever holds the payment
 * and its claim. A key beside the payment names the account to credit, and is not charged.
 */
export function topupRail(x402: Rail): Rail {
  const { chains, recall, refusedHeaders } = x402;
  return {
    name: x402.name,
    ...(chains === undefined ? {} : { chains }),
    get revision() {
      return x402.revision ?? 0;
    },
    recognizes: x402.recognizes,
    read: x402.read,
    ...(recall === undefined ? {} : { recall }),

    offer(quote) {
      const offer = x402.offer(quote);
      const { freshHeaders } = offer;
      return freshHeaders === undefined
        ? offer
        : { ...offer, freshHeaders: () => withoutSignIn(freshHeaders()) };
    },

    ...(refusedHeaders === undefined
      ? {}
      : { refusedHeaders: (refused, quote) => withoutSignIn(refusedHeaders(refused, quote)) }),
  };
}

function withoutSignIn(headers: Record<string, string>): Record<string, string> {
  const terms = headers['payment-required'];
  if (terms === undefined) return headers;
  const document = JSON.parse(Buffer.from(terms, 'base64').toString('utf8'));
  delete document.extensions['sign-in-with-x'];
  return { ...headers, 'payment-required': Buffer.from(JSON.stringify(document)).toString('base64') };
}
