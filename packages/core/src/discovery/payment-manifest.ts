import { sandboxMark } from '../http/sandbox-notice.ts';
import { type DiscoveryContext, shopOf, type X402Offer } from './context.ts';
import { amountUnitsOf, networksFor, walletRules } from './pay-by-wallet.ts';

/**
 * `/x402/payment-manifest.json`: whom a wallet pays, in what, and how much for each service. The interface's payment
 * information stands at the top; each service is a line. Null while no chain takes payments.
 */
export function paymentManifestDocument(context: DiscoveryContext) {
  const { x402 } = context.rails;
  if (x402 === null) return null;
  const { baseUrl } = context;
  const preferred = x402.networks[0];
  const resources = context.services.map((service) => {
    const networks = networksFor(service, context).map(({ network }) => network);
    return {
      ...sandboxMark(context.sandbox),
      id: service.path,
      resource: `${baseUrl}/x402/${service.path}`,
      path: `/x402/${service.path}`,
      method: 'POST',
      priceMicro: amountUnitsOf(service),
      priceUsd: service.priceUsd,
      networks,
      category: service.tag,
      paidFirst: service.effect === 'write',
      available: context.availability(service).available && networks.length > 0,
    };
  });
  return {
    kind: 'x402-payment-manifest',
    protocol: 'x402',
    provider: shopOf(context),
    ...paymentInformation(x402),
    paymentDefaults: {
      scheme: 'exact',
      network: preferred.network,
      asset: preferred.asset.symbol,
      assetAddress: preferred.asset.address,
      payTo: preferred.payTo,
      facilitatorUrl: x402.facilitatorUrl,
      decimals: preferred.asset.decimals,
    },
    networks: x402.networks,
    headers: {
      challenge: 'PAYMENT-REQUIRED',
      payment: ['PAYMENT-SIGNATURE', 'X-PAYMENT'],
      receipt: ['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE'],
      signIn: 'SIGN-IN-WITH-X',
    },
    rules: walletRules(context),
    totalResources: resources.length,
    resources,
    links: {
      catalog: `${baseUrl}/x402/catalog`,
      openapi: `${baseUrl}/openapi.json`,
      instructions: `${baseUrl}/.well-known/agent-instructions.json`,
      capabilities: `${baseUrl}/api/auth/capabilities`,
    },
  };
}

/** The fields that the interface calls the payment information; the network is the preferred one. */
export function paymentInformation(x402: X402Offer) {
  const preferred = x402.networks[0];
  return {
    x402Version: 2,
    network: preferred.network,
    asset: preferred.asset.symbol,
    assetAddress: preferred.asset.address,
    recipientWallet: preferred.payTo,
    /** Null when the server settles by itself. */
    facilitator: x402.facilitatorUrl,
    supportedChains: x402.networks.map(({ name }) => name),
  };
}
