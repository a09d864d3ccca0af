import { sandboxMark } from '../http/sandbox-notice.ts';
import type { DiscoveryContext } from './context.ts';
import {
  firstServiceByMpp,
  mppCommandOf,
  mppEndpointOf,
  mppMethodsOf,
  mppOffersOf,
  mppProgramOf,
  mppRules,
  soldByMpp,
} from './pay-by-mpp.ts';

/**
 * `/mpp/catalog`: what is sold by the Machine Payments Protocol, with amounts and endpoints, and how to pay. Null while
 * it is off.
 */
export function mppCatalogDocument(context: DiscoveryContext) {
  if (context.rails.mpp === null) return null;
  const { baseUrl } = context;
  const first = firstServiceByMpp(context);
  return {
    protocol: 'mpp',
    protocolVersion: '1',
    provider: context.shop.name,
    providerUrl: `${baseUrl}/`,
    description: 'Single HTTP calls, paid one by one by the HTTP "Payment" authentication scheme.',
    manifestUrl: `${baseUrl}/.well-known/mpp.json`,
    methods: mppMethodsOf(context),
    currency: 'USD',
    services: soldByMpp(context).map((service) => {
      const { available, reason, message } = context.availability(service);
      return {
        ...sandboxMark(context.sandbox),
        id: service.path,
        name: service.name,
        path: `/mpp/${service.path}`,
        endpoint: mppEndpointOf(service, context),
        method: 'POST',
        /** In `currency`; what each method asks for is in `offers`, in the token's smallest unit. */
        amount: service.priceUsd,
        currency: 'USD',
        offers: mppOffersOf(service, context),
        description: service.summary,
        tag: service.tag,
        available,
        unavailableReason: reason,
        unavailableMessage: message,
        recipe: `${baseUrl}/x402/recipes/${service.path}`,
      };
    }),
    quickStart:
      first === null
        ? null
        : {
            service: first.path,
            command: mppCommandOf(first, context),
            program: mppProgramOf(first, context),
            note: 'The command is that of the reference client and reads a private key from MPPX_PRIVATE_KEY; the program reads it from WALLET_KEY.',
          },
    rules: mppRules(context),
    alternativeProtocols: otherWaysOf(context),
  };
}

/** The other ways to pay for the same services, at the same addresses and below `/x402/`. */
export function otherWaysOf(context: DiscoveryContext) {
  return {
    x402:
      context.rails.x402 === null
        ? null
        : { header: 'PAYMENT-SIGNATURE', catalog: `${context.baseUrl}/x402/catalog` },
    apiKey: {
      header: 'X-API-KEY',
      freeKey: context.trial === null ? null : `${context.baseUrl}/api/m2m/credits/trial`,
    },
  };
}
