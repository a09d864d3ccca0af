import { sandboxMark } from '../http/sandbox-notice.ts';
import { usdToMicros } from '../ledger/money.ts';
import { countedOf } from '../service/counted.ts';
import type { Service } from '../service/define.ts';
import { type DiscoveryContext, firstService, shopOf } from './context.ts';
import { atItsRoute } from './own-address.ts';
import { mppEndpointOf } from './pay-by-mpp.ts';
import { firstServiceByWallet, networksFor, SPENDING_CAP_RULE, walletProgramOf } from './pay-by-wallet.ts';
import { chainsOf } from './readable-chains.ts';
import { curlOf } from './recipe.ts';

/**
 * `/x402/catalog`: every service with its price and whether it is for sale now. Entries carry the interface's names
 * (`path`, `tag`, `x-price-usd`, …) and those that existing clients read (`id`, `endpoint`, `priceUSD`, …). Keys
 * about on-chain payment are null while it is off.
 */
export function catalogDocument(context: DiscoveryContext) {
  const { x402, mpp } = context.rails;
  const preferred = x402?.networks[0];
  const services = context.services.map((service) => catalogEntry(service, context));
  const first = firstService(context);
  const firstByWallet = firstServiceByWallet(context);
  return {
    ...shopOf(context),
    catalogUrl: `${context.baseUrl}/x402/catalog`,
    x402Version: x402 === null ? null : 2,
    facilitatorUrl: x402?.facilitatorUrl ?? null,
    network: preferred?.name ?? null,
    x402Network: preferred?.network ?? null,
    paymentAsset: preferred?.asset ?? null,
    payTo: preferred?.payTo ?? null,
    paymentManifest: x402 === null ? null : `${context.baseUrl}/x402/payment-manifest.json`,
    spendingCap: x402 === null ? null : SPENDING_CAP_RULE,
    paymentMethods: ['api_key', ...(x402 === null ? [] : ['x402']), ...(mpp === null ? [] : ['mpp'])],
    mppCatalog: mpp === null ? null : `${context.baseUrl}/mpp/catalog`,
    currency: 'USD',
    totalServices: countedOf(services).length,
    availableServices: countedOf(services).filter(({ available }) => available).length,
    services,
    quickStart:
      first === null
        ? null
        : {
            freeKey: context.trial === null ? null : `GET ${context.baseUrl}/api/m2m/credits/trial`,
            firstCall: curlOf(first, context),
            service: first.path,
            firstCallByWallet: firstByWallet === null ? null : walletProgramOf(firstByWallet, context),
          },
  };
}

/** A service as the catalog shows it. */
export function catalogEntry(service: Service, context: DiscoveryContext) {
  const { available, reason, message, supply } = context.availability(service);
  return {
    ...sandboxMark(context.sandbox),
    id: service.path,
    /** The service whose second name this is, which is counted once; null for all others. */
    aliasOf: service.aliasOf ?? null,
    path: `/x402/${service.path}`,
    method: 'POST',
    endpoint: `${context.baseUrl}/x402/${service.path}`,
    ...atItsRoute(service, context),
    name: service.name,
    tag: service.tag,
    category: service.tag,
    description: service.summary,
    answers: service.mediaType,
    'x-price-usd': Number(service.priceUsd),
    priceUSD: Number(service.priceUsd),
    priceUSDC: service.priceUsd,
    priceMicro: String(usdToMicros(service.priceUsd)),
    featured: service.featured,
    discoverable: true,
    firstCallFree: false,
    paymentNetworks: networksFor(service, context).map(({ network }) => network),
    paidFirst: service.effect === 'write',
    /** Whether the Machine Payments Protocol buys it too, at `mppEndpoint`. */
    mpp: mppEndpointOf(service, context) !== null,
    mppEndpoint: mppEndpointOf(service, context),
    available,
    unavailableReason: reason,
    unavailableMessage: message,
    chains: chainsOf(service, context),
    /** Answers that are not from a cache: what the budget of its scarcest source allows, all callers together; null: no bound. */
    freshAnswersPerHour: supply?.answersPerHour ?? null,
    recipe: `${context.baseUrl}/x402/recipes/${service.path}`,
  };
}
