import { Problem } from '../../http/problem.ts';
import type { Rail } from '../../paid-call/rail.ts';
import { hasCredential } from './wire.ts';

/**
 * Refuses an MPP credential at `/x402/…`. It answers a challenge of another address, so it can buy nothing here. The
 * refusal names the address at which the service is sold by MPP, if it is.
 */
export function mppAtTheWrongDoor(parts: { baseUrl: string; soldByMpp(path: string): boolean }): Rail {
  return {
    name: 'mpp',
    offer: () => ({ headers: {}, accepts: [], body: {} }),
    recognizes: hasCredential,
    async read(_headers, quote) {
      const { path } = quote.service;
      const sold = parts.soldByMpp(path);
      throw new Problem(
        402,
        'PROTOCOL_MISMATCH',
        'This is an MPP credential, and this address is paid by x402 or by an API key.',
        {
          details: {
            charged: false,
            resolution: {
              option_a: sold
                ? {
                    description: 'Pay the same service by MPP.',
                    endpoint: `${parts.baseUrl}/mpp/${path}`,
                    method: 'POST',
                    headers: { Authorization: 'Payment <credential for the challenge of that address>' },
                  }
                : {
                    description: 'This service is not sold by MPP.',
                    endpoint: `${parts.baseUrl}/mpp/catalog`,
                    method: 'GET',
                  },
              option_b: {
                description: 'Pay here by x402.',
                endpoint: quote.resourceUrl,
                method: 'POST',
                headers: { 'PAYMENT-SIGNATURE': '<payment for the PAYMENT-REQUIRED of this address>' },
              },
            },
            docs: `${parts.baseUrl}/docs`,
            x402Version: 2,
          },
        },
      );
    },
  };
}
