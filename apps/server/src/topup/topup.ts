import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Database, Transaction } from '../db/connection.ts';
import type { RateLimit } from '../http/rate-limit.ts';
import type { Keys } from '../keys/keys.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { doorOf } from '../paid-call/door.ts';
import { createPaidCall, type PaidCall, type PaidCallParts } from '../paid-call/paid-call.ts';
import type { X402Rail } from '../rails/x402/x402.ts';
import type { Availability } from '../services/registry.ts';
import { topupDoor } from './door.ts';
import { topupRail } from './rail.ts';
import { topupRoutes } from './routes.ts';
import { topupServices } from './services.ts';
import { createTopups, type TopupOutcome, type Topups } from './topups.ts';

const FOR_SALE: Availability = { available: true, reason: null, message: null, retryAfterMs: 0 };
const NO_CHAIN: Availability = {
  available: false,
  reason: 'not_configured',
  message:
    'No chain is ready here on which USDC could be paid. GET /api/m2m/credits/trial gives a trial key.',
  retryAfterMs: 60_000,
};

export interface TopupDoor {
  topups: Topups;
  paidCall: PaidCall;
  routes(app: FastifyInstance): void;
}

/** Puts the sale of credit for USDC together: a door of its own to the paid call, for x402 alone. */
export function openTopupDoor(parts: {
  sql: Database;
  common: Omit<PaidCallParts, 'services' | 'rails' | 'door'>;
  sandbox: boolean;
  x402: Pick<X402Rail, 'rail' | 'offered'>;
  ledger: Ledger;
  keys: Keys;
  /** Told within the commit that credited an account, such as to cover what it owes. */
  credited(transaction: Transaction, accountId: bigint): Promise<void>;
  addressLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
  report(outcome: TopupOutcome, callId: string): void;
}): TopupDoor {
  const { common, x402, ledger, keys } = parts;
  const { baseUrl, nowMs } = common;
  const topups = createTopups(parts.sql, {
    ledger,
    keys,
    credited: parts.credited,
    report: parts.report,
    nowMs,
  });
  const sold = topupServices(topups);
  const rail = topupRail(x402.rail);
  const paidCall = createPaidCall({
    ...common,
    services: sold.map(({ service }) => service),
    rails: [rail],
    door: doorOf(parts.sandbox, topupDoor(rail, baseUrl)),
    availability: () => (x402.offered().length > 0 ? FOR_SALE : NO_CHAIN),
    beforeAnswer: topups.grant,
  });
  const { addressLimit, addressOf } = parts;
  return {
    topups,
    paidCall,
    routes: (app) => topupRoutes(app, { sold, paidCall, keys, addressLimit, addressOf, nowMs }),
  };
}
