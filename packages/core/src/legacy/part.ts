import type { Checkout } from '../cards/ways/checkout.ts';
import { CHECKOUTS_PER_MINUTE } from '../cards/ways/checkout-session-route.ts';
import { TRIAL_DAYS, TRIAL_USD } from '../keys/trial.ts';
import type { Sales } from '../paid-call/part.ts';
import type { Rail } from '../paid-call/rail.ts';
import type { House, Part } from '../part.ts';
import { legacyCheckoutOf } from './credit-checkout.ts';
import { legacyDoor, walletAtTheLegacyDoor } from './door.ts';
import { endpointsOn } from './endpoints.ts';
import { createFreeCall, FREE_CALLS_PER_MINUTE, FREE_RUNS_PER_MINUTE } from './free-call.ts';
import { LEGACY_DESCRIBED } from './operations.ts';
import { legacyRoutes } from './routes.ts';

/** The older family of addresses: the same services under their older names, paid with keys alone. */
export function openLegacy(
  house: House,
  needs: {
    sales: Sales;
    credits: Rail;
    /** Null when nothing is sold by card. */
    checkout: Checkout | null;
    /** Whether x402 is offered now. */
    walletsPay(): boolean;
  },
): Part {
  const { baseUrl, shelf, logger, addressOf, nowMs, version } = house;
  const { sales, walletsPay, checkout } = needs;
  const { availability, catalog } = sales;
  const endpoints = endpointsOn(shelf);
  const paidCall = sales.open({
    rails: [walletAtTheLegacyDoor(), needs.credits],
    door: legacyDoor({
      endpoints,
      baseUrl,
      walletsPay,
      trial: { creditsUsd: String(TRIAL_USD), lifetimeDays: TRIAL_DAYS },
      cardCheckout: checkout !== null,
    }),
  });
  const freeCall = createFreeCall({
    availability,
    catalog,
    baseUrl,
    version,
    nowMs,
    sources: sales.shared.sources,
    addressLimit: house.limitByAddress(FREE_CALLS_PER_MINUTE),
    runLimit: house.limit(FREE_RUNS_PER_MINUTE),
    report({ error, ...line }) {
      if (error === undefined) logger.info(line, 'free call');
      else logger[line.status === 500 ? 'error' : 'warn']({ ...line, err: error }, 'free call failed');
    },
  });
  return {
    name: 'legacy',
    operations: [
      {
        ...LEGACY_DESCRIBED,
        operations: [],
        untold: [{ path: '/api/gpt/*', because: 'What a service stands behind says so at its route.' }],
      },
    ],
    routes(http) {
      legacyRoutes(http, {
        endpoints,
        paidCall,
        freeCall,
        baseUrl,
        walletsPay,
        addressOf,
        nowMs,
        checkout: checkout === null ? null : legacyCheckoutOf(checkout),
        checkoutLimit: house.limitByAddress(CHECKOUTS_PER_MINUTE),
        accountLimit: house.limitByAddress(),
      });
    },
  };
}
