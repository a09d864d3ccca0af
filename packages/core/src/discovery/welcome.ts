import { countedOf } from '../service/counted.ts';
import { servesA2a } from './a2a-documents.ts';
import { CHARGING_RULE } from './call-errors.ts';
import { trialOf } from './capabilities.ts';

import { type DiscoveryContext, firstService, priceRange, shopOf } from './context.ts';
import { servesMcp } from './mcp-documents.ts';

import {
  firstServiceByMpp,
  MPP_CREDENTIAL_SCHEME,
  mppCommandOf,
  mppMethodsOf,
  SAME_CREDENTIAL_RULE,
} from './pay-by-mpp.ts';
import {
  firstServiceByWallet,
  SAME_HEADER_RULE,
  SPENDING_CAP_RULE,
  walletProgramOf,
} from './pay-by-wallet.ts';
import { curlOf } from './recipe.ts';

/** `GET /` for a program: what this server is, how to buy a first call, and where to read more. */
export function welcomeDocument(context: DiscoveryContext) {
  const { baseUrl } = context;
  const first = firstService(context);
  return {
    ...shopOf(context),
    version: context.version,
    description: `Single HTTP calls for software agents, paid one by one, with no account. ${CHARGING_RULE}`,
    services: {
      total: countedOf(context.services).length,
      available: countedOf(context.services).filter((service) => context.availability(service).available)
        .length,
      currency: 'USD',
      price: priceRange(context.services),
    },
    payment: {
      api_key: { header: 'X-API-KEY', freeTrial: trialOf(context) },
      ...(context.rails.x402 === null ? {} : { x402: byWallet(context) }),
      ...(context.rails.mpp === null ? {} : { mpp: byMpp(context) }),
    },
    firstCall:
      first === null
        ? null
        : {
            service: first.path,
            priceUsd: first.priceUsd,
            curl: curlOf(first, context),
            recipe: `${baseUrl}/x402/recipes/${first.path}`,
          },
    links: {
      catalog: `${baseUrl}/x402/catalog`,
      openapi: `${baseUrl}/openapi.json`,
      agentInstructions: `${baseUrl}/.well-known/agent-instructions.json`,
      capabilities: `${baseUrl}/api/auth/capabilities`,
      llms: `${baseUrl}/llms.txt`,
      docs: `${baseUrl}/docs`,
      ...(servesMcp(context) ? { mcp: `${baseUrl}/mcp` } : {}),
      ...(servesA2a(context) ? { agentCard: `${baseUrl}/.well-known/agent-card.json` } : {}),
      ...(context.rails.x402 === null ? {} : { paymentManifest: `${baseUrl}/x402/payment-manifest.json` }),
      ...(context.rails.mpp === null ? {} : { mppCatalog: `${baseUrl}/mpp/catalog` }),
    },
  };
}

function byWallet(context: DiscoveryContext) {
  const first = firstServiceByWallet(context);
  return {
    header: 'X-PAYMENT',
    alternativeHeader: 'PAYMENT-SIGNATURE',
    networks: context.rails.x402?.networks.map(({ network }) => network) ?? [],
    spendingCap: SPENDING_CAP_RULE,
    uncertain: SAME_HEADER_RULE,
    firstCall: first === null ? null : walletProgramOf(first, context),
  };
}

function byMpp(context: DiscoveryContext) {
  const first = firstServiceByMpp(context);
  return {
    header: MPP_CREDENTIAL_SCHEME,
    methods: mppMethodsOf(context).map(({ method, network, symbol }) => ({ method, network, symbol })),
    catalog: `${context.baseUrl}/mpp/catalog`,
    uncertain: SAME_CREDENTIAL_RULE,
    firstCall: first === null ? null : mppCommandOf(first, context),
  };
}
