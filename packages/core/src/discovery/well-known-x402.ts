import { sandboxMark } from '../http/sandbox-notice.ts';
import { countedOf } from '../service/counted.ts';
import {
  type DiscoveryContext,
  priceRange,
  SOLANA_YIELD_MANIFEST,
  serves,
  shopOf,
  YIELD_MANIFEST,
} from './context.ts';
import { firstServiceByWallet, networksFor, walletProgramOf, walletRules } from './pay-by-wallet.ts';
import { paymentInformation } from './payment-manifest.ts';

/**
 * `/.well-known/x402`, for indexers of the first generation: version 1 and the addresses, as strings. Null while no
 * chain takes payments.
 */
export function x402ResourcesDocument(context: DiscoveryContext) {
  return context.rails.x402 === null ? null : { version: 1, resources: resourcesOf(context) };
}

/**
 * `/.well-known/x402.json`: the same with further information. It keeps `version` and `resources`, so that readers of
 * the other document find what they look for. Null while no chain takes payments.
 */
export function x402Document(context: DiscoveryContext) {
  const { x402 } = context.rails;
  if (x402 === null) return null;
  const { baseUrl } = context;
  const first = firstServiceByWallet(context);
  return {
    ...paymentInformation(x402),
    version: 1,
    ...shopOf(context),
    homepage: `${baseUrl}/`,
    description:
      'Single HTTP calls for software agents, paid one by one, from a wallet and without an account.',
    specVersion: context.version,
    resources: resourcesOf(context),
    payTo: x402.networks[0].payTo,
    facilitatorUrl: x402.facilitatorUrl,
    facilitators: x402.facilitatorUrl === null ? [] : [x402.facilitatorUrl],
    payableNetworks: x402.networks.map(({ network }) => network),
    price: priceRange(context.services),
    service_count: countedOf(context.services).length,
    categories: [...new Set(context.services.map(({ tag }) => tag))],
    quickstart: [
      'Send a POST to any of `resources`: the answer is 402 with the terms in PAYMENT-REQUIRED.',
      'Sign the terms with an x402 client, and send the same request with PAYMENT-SIGNATURE.',
      'Read the answer, and its receipt in PAYMENT-RESPONSE.',
    ],
    firstCall: first === null ? null : { service: first.path, priceUsd: first.priceUsd },
    example: first === null ? null : walletProgramOf(first, context),
    rules: walletRules(context),
    payment_manifest: `${baseUrl}/x402/payment-manifest.json`,
    agent_instructions: `${baseUrl}/.well-known/agent-instructions.json`,
    ...(serves(context, 'GET', YIELD_MANIFEST)
      ? { yieldVault: { network: 'eip155:8453', manifest: context.baseUrl + YIELD_MANIFEST } }
      : {}),
    ...(serves(context, 'GET', SOLANA_YIELD_MANIFEST)
      ? {
          yieldOnSolana: {
            network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
            manifest: context.baseUrl + SOLANA_YIELD_MANIFEST,
          },
        }
      : {}),
    services: context.services.map((service) => ({
      ...sandboxMark(context.sandbox),
      path: `/x402/${service.path}`,
      method: 'POST',
      name: service.name,
      tag: service.tag,
      priceUsd: service.priceUsd,
      featured: service.featured,
      available: context.availability(service).available,
    })),
  };
}

/** The full address of everything that a wallet can buy. */
function resourcesOf(context: DiscoveryContext): string[] {
  return context.services
    .filter((service) => networksFor(service, context).length > 0)
    .map((service) => `${context.baseUrl}/x402/${service.path}`);
}
