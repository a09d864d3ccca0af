import { CREDIT_TIERS } from '../keys/credit-tiers.ts';
import { TRIAL_DAYS, TRIAL_USD } from '../keys/trial.ts';
import type { House, Part } from '../part.ts';
import type { Secrets } from '../secrets/secrets.ts';
import { logoUrlOf, OWN_NAME } from '../shop.ts';
import { createCardSigner } from './card-signature.ts';
import type { DiscoveryContext } from './context.ts';
import { DOCUMENT_OPERATIONS, MPP_DOCUMENTS, WALLET_DOCUMENTS } from './operations.ts';
import { assetRoutes, type Pages } from './pages.ts';
import { payPageOf } from './pay-page.ts';
import { receiptPageOf } from './receipt-page.ts';
import { discoveryRoutes } from './routes.ts';

/** Opens what the outside reads about this server: documents and pages, rendered from what it serves. */
export function openDiscovery(
  house: House,
  { rateLimitPerKey }: { rateLimitPerKey: number },
  secrets: Secrets,
  needs: Pick<DiscoveryContext, 'cardCheckout'> & {
    sales: Pick<DiscoveryContext, 'availability' | 'figures'> & { promisesTrials(): boolean };
    /** All parts, once they are open. */
    parts(): readonly Part[];
    pages: Pages;
    x402(): DiscoveryContext['rails']['x402'];
    mpp(): DiscoveryContext['rails']['mpp'];
  },
): Part {
  const { version, baseUrl, sandbox, shelf, nowMs } = house;
  const { cardCheckout, pages } = needs;
  const { availability, figures } = needs.sales;
  const { routes } = pages;
  const cardSigner = createCardSigner(secrets);
  const described = () => needs.parts().flatMap(({ operations = [] }) => operations);
  const contextOf = (bodyBytes: number): DiscoveryContext => ({
    product: OWN_NAME,
    shop: { ...house.shop, logoUrl: logoUrlOf(house.shop, baseUrl) },
    version,
    baseUrl,
    sandbox,
    get tags() {
      return shelf.tags;
    },
    get leftOut() {
      return shelf.leftOut;
    },
    get services() {
      return shelf.services;
    },
    availability,
    figures,
    cardCheckout,
    cardSigner,
    described,
    routes,
    nowMs,
    rails: railsOf(needs),
    get trial() {
      if (!needs.sales.promisesTrials()) return null;
      return { creditsUsd: String(TRIAL_USD), lifetimeDays: TRIAL_DAYS, onePerDays: TRIAL_DAYS };
    },
    tiers: CREDIT_TIERS,
    limits: { requestsPerMinute: rateLimitPerKey, bodyBytes },
  });
  return {
    name: 'discovery',
    payPage: payPageOf(pages, () => contextOf(0)),
    receiptPage: receiptPageOf(pages, () => contextOf(0)),
    operations: [
      DOCUMENT_OPERATIONS,
      { ...WALLET_DOCUMENTS, offered: () => needs.x402() !== null },
      { ...MPP_DOCUMENTS, offered: () => needs.mpp() !== null },
    ],
    lost: (_request, reply, meant) => needs.pages.sendLost(reply, meant),
    routes(http) {
      // Two parts may use the same page, which is served once.
      const assets = needs.parts().flatMap((part) => Object.entries(part.assets ?? {}));
      assetRoutes(http, pages, Object.fromEntries(assets));
      discoveryRoutes(http, pages, contextOf(http.initialConfig.bodyLimit ?? 0));
    },
  };
}

/** The ways to pay from a wallet, as they are when they are read. */
function railsOf(needs: {
  x402(): DiscoveryContext['rails']['x402'];
  mpp(): DiscoveryContext['rails']['mpp'];
}): DiscoveryContext['rails'] {
  return {
    get x402() {
      return needs.x402();
    },
    get mpp() {
      return needs.mpp();
    },
  };
}
