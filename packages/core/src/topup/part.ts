import type { Transaction } from '../db/connection.ts';
import type { Keys } from '../keys/keys.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Sales } from '../paid-call/part.ts';
import type { House, Part } from '../part.ts';
import type { X402Rail } from '../rails/x402/rail.ts';
import type { Availability } from '../service/availability.ts';
import { TOPUP } from './declared.ts';
import { topupDoor } from './door.ts';
import { createTopupMetrics } from './metrics.ts';
import { TOPUP_OPERATIONS } from './operations.ts';
import { topupRail } from './rail.ts';
import { topupRoutes } from './routes.ts';
import { topupServices } from './services.ts';
import { createTopups } from './topups.ts';

export { TOPUP };

const FOR_SALE: Availability = { available: true, reason: null, message: null, retryAfterMs: 0, chains: [] };
const NO_CHAIN: Availability = {
  available: false,
  reason: 'not_configured',
  message:
    'No chain is ready here on which USDC could be paid. GET /api/m2m/credits/trial gives a trial key.',
  retryAfterMs: 60_000,
  chains: [],
};

/** Credit for USDC: its own door to the paid call, for x402 alone. */
export function openTopup(
  house: House,
  settings: { reconcileIntervalMs: number },
  needs: {
    ledger: Ledger;
    keys: Keys;
    sales: Sales;
    x402: Pick<X402Rail, 'rail' | 'offered'>;
    /** Collects an account's debt within the commit that credited the account; the reason stands in the ledger. */
    collectAfter(reason: string): (transaction: Transaction, accountId: bigint) => Promise<void>;
  },
): Part {
  const { baseUrl, logger, addressOf, nowMs } = house;
  const metrics = createTopupMetrics();
  const { x402, ledger, keys, collectAfter } = needs;
  const topups = createTopups(house.pools.sql, {
    ledger,
    keys,
    nowMs,
    credited: collectAfter('top-up of'),
    report(outcome, callId) {
      metrics.topup(outcome);
      if (outcome === 'taken_back') logger.error({ callId }, 'the chain took back what had bought credit');
      else if (outcome !== 'closed') logger.warn({ callId, outcome }, 'top-up');
    },
  });
  const sold = topupServices(topups);
  const rail = topupRail(x402.rail);
  const paidCall = needs.sales.open({
    rails: [rail],
    door: topupDoor(rail, baseUrl),
    availability: () => (x402.offered().length > 0 ? FOR_SALE : NO_CHAIN),
    beforeAnswer: topups.grant,
  });
  return {
    name: 'topup',
    creditServices: ['credits/topup/'],
    metrics: metrics.registry,
    queues: [topups.queue],
    operations: [{ ...TOPUP_OPERATIONS, offered: () => x402.offered().length > 0 }],
    routes(http) {
      const addressLimit = house.limitByAddress();
      topupRoutes(http, { sold, paidCall, keys, addressLimit, addressOf, nowMs });
    },
    jobs: [
      {
        name: 'finish-topups',
        intervalMs: settings.reconcileIntervalMs,
        run: async () => void (await topups.finish()),
      },
    ],
  };
}
