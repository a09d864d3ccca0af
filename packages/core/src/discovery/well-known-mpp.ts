import { sandboxMark } from '../http/sandbox-notice.ts';
import { inputSchemaOf } from '../service/json-schema.ts';
import type { DiscoveryContext } from './context.ts';
import { otherWaysOf } from './mpp-catalog.ts';
import {
  MPP_CHALLENGE_SCHEME,
  MPP_CREDENTIAL_SCHEME,
  MPP_SPECIFICATION,
  mppEndpointOf,
  mppMethodsOf,
  mppOffersOf,
  mppRules,
  soldByMpp,
} from './pay-by-mpp.ts';

/**
 * `/.well-known/mpp.json`: the manifest of what the Machine Payments Protocol buys here. The standard defines only
 * `/openapi.json`. This document has the names that readers of the interface look for (`provider`,
 * `settlementCurrency`, `services[].amount`, …) next to those of the standard (`realm`, `methods`, `offers`). Null
 * while MPP is off.
 */
export function mppDocument(context: DiscoveryContext) {
  const { mpp } = context.rails;
  if (mpp === null) return null;
  const { baseUrl } = context;
  const methods = mppMethodsOf(context);
  const preferred = methods[0];
  return {
    schemaVersion: '1',
    version: '1',
    protocol: 'mpp',
    protocolVersion: '1',
    scheme: 'Payment',
    spec: MPP_SPECIFICATION,
    /** What every challenge is bound to: the host of this server's public address. */
    realm: new URL(baseUrl).hostname,
    provider: {
      name: context.shop.name,
      url: `${baseUrl}/`,
      description: 'Single HTTP calls for software agents, paid one by one, with no account.',
      contact: context.shop.contactEmail,
    },
    challengeScheme: MPP_CHALLENGE_SCHEME,
    credentialScheme: MPP_CREDENTIAL_SCHEME,
    receiptHeader: 'Payment-Receipt',
    methods,
    settlementCurrency: preferred?.symbol ?? preferred?.currency,
    settlementNetwork: preferred?.network,
    tempoRecipient: methods.find(({ method }) => method === 'tempo')?.recipient ?? null,
    catalog: `${baseUrl}/mpp/catalog`,
    catalogUrl: `${baseUrl}/mpp/catalog`,
    openapi: `${baseUrl}/openapi.json`,
    services: soldByMpp(context).map((service) => ({
      ...sandboxMark(context.sandbox),
      id: service.path,
      name: service.name,
      method: 'POST',
      path: `/mpp/${service.path}`,
      url: mppEndpointOf(service, context),
      price: { amount: service.priceUsd, currency: 'USD' },
      amount: service.priceUsd,
      currency: 'USD',
      offers: mppOffersOf(service, context),
      description: service.summary,
      tags: ['MPP', service.tag],
      available: context.availability(service).available,
      inputSchema: inputSchemaOf(service),
    })),
    rules: mppRules(context),
    crossProtocolAlternatives: otherWaysOf(context),
  };
}
