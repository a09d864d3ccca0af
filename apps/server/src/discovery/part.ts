import { CREDIT_TIERS } from '../keys/credit-tiers.ts';
import { TRIAL_DAYS, TRIAL_USD } from '../keys/trial.ts';
import type { House, Part } from '../part.ts';
import type { DiscoveryContext, Route } from './context.ts';
import type { Pages } from './pages.ts';
import { discoveryRoutes } from './routes.ts';

/** What the outside reads about us: documents and pages, rendered from what is there. */
export function openDiscovery(
  house: House,
  { contactEmail, requestsPerMinute }: { contactEmail: string | null; requestsPerMinute: number },
  needs: Pick<DiscoveryContext, 'services' | 'availability' | 'cardCheckout'> & {
    pages: Pages;
    x402(): DiscoveryContext['rails']['x402'];
    mpp(): DiscoveryContext['rails']['mpp'];
    routes: readonly Route[];
  },
): Part {
  const { version, baseUrl, sandbox } = house;
  const { services, availability, cardCheckout, routes } = needs;
  return {
    name: 'discovery',
    routes(http) {
      discoveryRoutes(http, needs.pages, {
        product: 'Farebox',
        ...{ version, baseUrl, sandbox, contactEmail, services, availability, cardCheckout, routes },
        rails: {
          get x402() {
            return needs.x402();
          },
          get mpp() {
            return needs.mpp();
          },
        },
        trial: { creditsUsd: String(TRIAL_USD), lifetimeDays: TRIAL_DAYS, onePerDays: TRIAL_DAYS },
        tiers: CREDIT_TIERS,
        limits: { requestsPerMinute, bodyBytes: http.initialConfig.bodyLimit ?? 0 },
      });
    },
  };
}
