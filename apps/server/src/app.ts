/** The table of contents of the server: parts in, HTTP app out. */
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { checkoutRoutes } from './cards/routes.ts';
import type { Config } from './config.ts';
import type { Pools } from './db/connection.ts';
import type { Route } from './discovery/context.ts';
import { discoveryRoutes } from './discovery/routes.ts';
import { callerAddress } from './http/caller-address.ts';
import { createRateLimit } from './http/rate-limit.ts';
import { createHttpServer } from './http/server.ts';
import { createReconciler, type Reconciler } from './jobs/reconcile-calls.ts';
import type { Job } from './jobs/schedule.ts';
import { createKeys, type Keys } from './keys/keys.ts';
import { CLAIMS_PER_MINUTE, keyRoutes } from './keys/routes.ts';
import { createTrials, TRIAL_DAYS, TRIAL_USD, type Trials } from './keys/trial.ts';
import { createLedger, type Ledger } from './ledger/ledger.ts';
import { createMetrics } from './operations/metrics.ts';
import { operationsRoutes } from './operations/routes.ts';
import { type CallStore, createCallStore } from './paid-call/calls.ts';
import { createPaidCall, type PaidCall } from './paid-call/paid-call.ts';
import { paidCallRoutes } from './paid-call/routes.ts';
import { creditsRail } from './rails/credits/credits.ts';
import type { CatalogLine, Service } from './services/define.ts';
import { availabilityOf } from './services/registry.ts';
import { connectUpstreams, UPSTREAM_NAMES } from './upstreams/index.ts';

/** More names than a flood can push out while their minute runs. */
const MAX_LIMITED_NAMES = 50_000;
const MAX_ANSWER_BYTES = 1_000_000;
const ANSWERS_DROPPED_AT_ONCE = 5_000;
const TRIALS_CLOSED_AT_ONCE = 500;

export interface AppParts {
  config: Config;
  /** The public address, without a trailing slash. */
  baseUrl: string;
  version: string;
  pools: Pools;
  services: readonly Service[];
  logger: FastifyBaseLogger;
  nowMs(): number;
}

export interface App {
  http: FastifyInstance;
  jobs: readonly Job[];
  paidCall: PaidCall;
  calls: CallStore;
  keys: Keys;
  ledger: Ledger;
  trials: Trials;
  reconciler: Reconciler;
  /** From here on `/health/ready` says no, so that no new calls are sent here. */
  drain(): void;
  close(): Promise<void>;
}

/** Puts the server together. It does not listen yet, and its jobs do not run yet. */
export function createApp(parts: AppParts): App {
  const { config, baseUrl, version, pools, services, logger, nowMs } = parts;
  const { sql } = pools;
  const addressOf = (request: FastifyRequest) => callerAddress(request.raw, config.trustedProxies);

  const ledger = createLedger(pools, nowMs);
  const keys = createKeys(sql, nowMs);
  const trials = createTrials(sql, { keys, ledger, secret: config.secret, nowMs });
  const calls = createCallStore(pools, { nowMs, answerTtlMs: config.answerTtlMs });
  const reconciler = createReconciler({
    calls,
    ledger,
    report: (outcome, count) => metrics.reconciled(outcome, count),
  });
  const upstreams = connectUpstreams(config.upstreams, {
    userAgent: `farebox/${version}${config.contactEmail === null ? '' : ` (${config.contactEmail})`}`,
    acceptSandbox: !config.production,
    onRequest: (name, outcome, durationMs) => metrics.upstreamRequest(name, outcome, durationMs),
  });
  const availability = (service: Service) => availabilityOf(service, upstreams.health);
  const catalog = (): CatalogLine[] =>
    services.map((service) => ({
      path: service.path,
      name: service.name,
      tag: service.tag,
      priceUsd: service.priceUsd,
      summary: service.summary,
      example: service.example,
      featured: service.featured,
      available: availability(service).available,
    }));
  const limit = (perMinute: number) => createRateLimit({ perMinute, maxNames: MAX_LIMITED_NAMES, nowMs });

  const paidCall = createPaidCall({
    services,
    rails: [creditsRail({ keys, baseUrl })],
    calls,
    upstreams: upstreams.apis,
    availability,
    catalog,
    addressLimit: limit(config.rateLimitPerAddress),
    payerLimit: limit(config.rateLimitPerKey),
    maxConcurrent: config.maxConcurrentCalls,
    maxConcurrentPerPayer: config.maxConcurrentCallsPerKey,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    baseUrl,
    version,
    nowMs,
    undelivered: (call) => reconciler.undelivered(call),
    report(report) {
      metrics.call(report);
      const { error, priceMicros, ...line } = report;
      // A fault of ours is an error; what a source or the database did is a warning; all else is business.
      if (error === undefined) logger.info(line, 'paid call');
      else
        logger[report.outcome === 'failed' ? 'error' : 'warn']({ ...line, err: error }, 'paid call failed');
    },
  });

  const metrics = createMetrics({
    running: () => paidCall.running,
    waitingForDatabase: () => calls.depth,
    async reservedMicros() {
      const [row] = await sql<{ reserved: bigint }[]>`
        select coalesce(sum(price_micros), 0)::bigint as reserved from calls where state = 0`;
      return row?.reserved ?? 0n;
    },
    upstreamHealth: () => UPSTREAM_NAMES.map(upstreams.health),
  });

  let draining = false;
  async function notReady(): Promise<string | null> {
    if (draining) return 'The server is about to stop.';
    try {
      await sql`select 1`;
      return null;
    } catch {
      return 'The database does not answer.';
    }
  }

  const http = createHttpServer(logger);
  const routes: Route[] = [];
  http.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.push({ method: each, path: url });
  });
  operationsRoutes(http, { metrics, metricsToken: config.metricsToken, version, notReady, addressOf });
  keyRoutes(http, {
    keys,
    trials,
    ledger,
    baseUrl,
    servicesAvailable: services.length,
    trialAllowInternal: config.trialAllowInternal,
    claimLimit: limit(CLAIMS_PER_MINUTE),
    accountLimit: limit(config.rateLimitPerAddress),
    addressOf,
    nowMs,
  });
  checkoutRoutes(http);
  discoveryRoutes(http, {
    product: 'Farebox',
    version,
    baseUrl,
    contactEmail: config.contactEmail,
    services,
    availability,
    rails: { x402: null, mpp: null },
    trial: { creditsUsd: String(TRIAL_USD), lifetimeDays: TRIAL_DAYS, onePerDays: TRIAL_DAYS },
    cardCheckout: false,
    tiers: [],
    limits: { requestsPerMinute: config.rateLimitPerKey, bodyBytes: http.initialConfig.bodyLimit ?? 0 },
    routes,
  });
  paidCallRoutes(http, { services, paidCall, addressOf });

  return {
    http,
    paidCall,
    calls,
    keys,
    ledger,
    trials,
    reconciler,
    jobs: [
      {
        name: 'reconcile-calls',
        intervalMs: config.reconcileIntervalMs,
        run: async () => void (await reconciler.run()),
      },
      {
        name: 'expire-trials',
        intervalMs: 60_000,
        run: async () => void (await trials.expire(TRIALS_CLOSED_AT_ONCE)),
      },
      {
        name: 'drop-expired-answers',
        intervalMs: 60_000,
        run: async () => void (await calls.dropExpiredAnswers(ANSWERS_DROPPED_AT_ONCE)),
      },
    ],
    drain() {
      draining = true;
      // A connection whose last answer is out must not be waited for until its client lets go.
      http.server.keepAliveTimeout = 1;
    },
    async close() {
      await http.close();
      // What the last calls left open, or owe, is settled before the process is gone and with it what it remembers.
      await reconciler
        .run()
        .catch((error: unknown) => logger.error({ err: error }, 'reconciling at the end failed'));
      await upstreams.close();
    },
  };
}
