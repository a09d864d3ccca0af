import { DAILY_LIMITS } from '../keys/credit-tiers.ts';
import { callsBought } from '../service/calls-bought.ts';
import { countedOf } from '../service/counted.ts';
import { CHARGING_RULE } from './call-errors.ts';
import { type DiscoveryContext, firstService } from './context.ts';
import {
  firstServiceByMpp,
  MPP_CHALLENGE_SCHEME,
  MPP_CREDENTIAL_SCHEME,
  MPP_SPECIFICATION,
  mppCommandOf,
  mppEndpointOf,
  mppMethodsOf,
  mppProgramOf,
  mppRules,
  soldByMpp,
} from './pay-by-mpp.ts';
import { firstServiceByWallet, walletProgramOf, walletRules } from './pay-by-wallet.ts';
import { readableChains } from './readable-chains.ts';
import { curlOf } from './recipe.ts';

/** `/api/auth/capabilities`: the ways to pay that work now, how to get a key, and what a first call costs. */
export function capabilitiesDocument(context: DiscoveryContext) {
  const { baseUrl } = context;
  const { x402, mpp } = context.rails;
  const first = firstService(context);
  const firstByWallet = firstServiceByWallet(context);
  return {
    service: context.shop.name,
    version: context.version,
    description: `Single HTTP calls for software agents, paid one by one. ${CHARGING_RULE}`,
    authModes: [
      byKey(context, first),
      ...(x402 === null
        ? []
        : [
            {
              mode: 'x402_onchain',
              header: 'X-PAYMENT',
              alternativeHeader: 'PAYMENT-SIGNATURE',
              description: 'A signed USDC payment sent with the call. No key is needed.',
              x402Version: 2,
              supportedChains: x402.networks.map(({ name }) => name),
              networks: x402.networks,
              facilitators: x402.facilitatorUrl === null ? [] : [x402.facilitatorUrl],
              settledBy: x402.facilitatorUrl === null ? 'this server' : 'facilitator',
              discoveryDocs: {
                manifest: `${baseUrl}/x402/payment-manifest.json`,
                x402: `${baseUrl}/.well-known/x402.json`,
                instructions: `${baseUrl}/.well-known/agent-instructions.json`,
              },
              firstCall:
                firstByWallet === null
                  ? null
                  : {
                      url: `${baseUrl}/x402/${firstByWallet.path}`,
                      price_usd: Number(firstByWallet.priceUsd),
                      program: walletProgramOf(firstByWallet, context),
                      note: 'The program signs with the key in WALLET_KEY, a wallet that holds USDC on one of `networks`. It needs no gas.',
                    },
              rules: walletRules(context),
            },
          ]),
      ...(mpp === null
        ? []
        : [
            {
              mode: 'mpp',
              header: MPP_CREDENTIAL_SCHEME,
              challengeHeader: MPP_CHALLENGE_SCHEME,
              receiptHeader: 'Payment-Receipt',
              description:
                'A Machine Payments Protocol credential for a challenge of an endpoint below /mpp/. No key is needed.',
              specification: MPP_SPECIFICATION,
              methods: mppMethodsOf(context),
              endpoints: soldByMpp(context).map(({ path }) => `${baseUrl}/mpp/${path}`),
              discoveryDocs: {
                catalog: `${baseUrl}/mpp/catalog`,
                mpp: `${baseUrl}/.well-known/mpp.json`,
                openapi: `${baseUrl}/openapi.json`,
              },
              firstCall: firstByMpp(context),
              rules: mppRules(context),
            },
          ]),
    ],
    // Readers of the interface look for these two at the top level as well.
    supportedChains: x402?.networks.map(({ name }) => name) ?? [],
    facilitators: x402 === null || x402.facilitatorUrl === null ? [] : [x402.facilitatorUrl],
    // The chains that payments come from are listed above; these are the chains that services can read.
    readableChains: readableChains(context),
    limits: {
      requestsPerMinute: context.limits.requestsPerMinute,
      bodyBytes: context.limits.bodyBytes,
    },
    supportedServices: countedOf(context.services).length,
    catalogUrl: `${baseUrl}/x402/catalog`,
    openapiUrl: `${baseUrl}/openapi.json`,
    docsUrl: `${baseUrl}/docs`,
  };
}

/** Prepaid credit: how to get a key, what a card buys, and a first call. */
function byKey(context: DiscoveryContext, first: ReturnType<typeof firstService>) {
  const { baseUrl } = context;
  return {
    mode: 'api_key',
    header: 'X-API-KEY',
    alternativeHeader: 'Authorization: Bearer <key>',
    description: 'Prepaid credits in USD held against a key.',
    obtain: {
      free_trial: trialOf(context),
      hosted_checkout: context.cardCheckout
        ? {
            method: 'POST',
            endpoint: `${baseUrl}/api/m2m/credits/checkout/session`,
            dailyLimit: DAILY_LIMITS.hosted_checkout,
          }
        : null,
      direct_card: directCard(context),
    },
    tiers: publishedTiers(context),
    dailyLimits: context.cardCheckout ? DAILY_LIMITS : null,
    firstCall:
      first === null
        ? null
        : {
            description: first.summary,
            endpoint: `${baseUrl}/x402/${first.path}`,
            price_usd: Number(first.priceUsd),
            curl: curlOf(first, context),
          },
  };
}

/** Charging a card without a person on a page; null while that is not possible. */
export function directCard({ baseUrl, cardCheckout }: DiscoveryContext) {
  if (!cardCheckout) return null;
  const endpoint = `${baseUrl}/api/m2m/credits/purchase`;
  return { method: 'POST', endpoint, newCustomers: DAILY_LIMITS.direct_card };
}

/** The call that an MPP wallet should try first; null when it can buy nothing now. */
function firstByMpp(context: DiscoveryContext) {
  const first = firstServiceByMpp(context);
  if (first === null) return null;
  return {
    url: mppEndpointOf(first, context),
    price_usd: Number(first.priceUsd),
    command: mppCommandOf(first, context),
    program: mppProgramOf(first, context),
  };
}

/** The terms of a free key, with how to get one; null while none are given out. */
export function trialOf(context: DiscoveryContext) {
  if (context.trial === null) return null;
  const { creditsUsd, lifetimeDays, onePerDays } = context.trial;
  return {
    method: 'GET',
    endpoint: `${context.baseUrl}/api/m2m/credits/trial`,
    creditsUsd,
    lifetimeDays,
    terms: `One key per address every ${onePerDays} days, shown once.`,
  };
}

/** The amounts a card can buy; none while no card can be charged. */
export function publishedTiers(context: DiscoveryContext) {
  if (!context.cardCheckout) return [];
  return context.tiers.map(({ amountUsd, label }) => ({
    amountUsd,
    label,
    description: `${amountUsd} USD of credits: ${callsBought(amountUsd, context.services)}`,
  }));
}
