/** The table of contents of the server: parts in, HTTP app out. */
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { StartError } from '../../../packages/process/src/start-error.ts';
import { accountRoutes } from './account/routes.ts';
import { type Cards, openCards } from './cards/cards.ts';
import { closedCardRoutes } from './cards/closed.ts';
import { createDebts, type Debts } from './cards/debts.ts';
import { PURCHASE_REQUESTS_PER_MINUTE } from './cards/purchase-routes.ts';
import { CHECKOUTS_PER_MINUTE } from './cards/routes.ts';
import { connectRpc } from './chain-rpc/json-rpc.ts';
import { type Config, rpcUrlsOf } from './config.ts';
import { createKeyring, parseKeyEncryptionKeys } from './custody/envelope.ts';
import { ownerOf } from './custody/owner.ts';
import { custodyRoutes, RECORDED_REFUSALS_PER_MINUTE, WALLET_REQUESTS_PER_MINUTE } from './custody/routes.ts';
import { createWallets } from './custody/wallets.ts';
import { createDataLists, type DataLists } from './data-lists/data-lists.ts';
import type { Database, Pools } from './db/connection.ts';
import { createReplica } from './db/replicas.ts';
import type { StartPatience } from './db/start-patience.ts';
import type { MppOffer, Route, X402Offer } from './discovery/context.ts';
import { openPages } from './discovery/pages.ts';
import { discoveryRoutes } from './discovery/routes.ts';
import { createAddressReader, proxyNotices } from './http/proxy-check.ts';
import { createAddressLimit, createRateLimit } from './http/rate-limit.ts';
import { createHttpServer } from './http/server.ts';
import { createRegistrar } from './identity/registrar.ts';
import { ERC8004_IDENTITY_REGISTRY } from './identity/registry-abi.ts';
import { createSettlementFinisher, type SettlementFinisher } from './jobs/finish-settlements.ts';
import { createReconciler, type Reconciler } from './jobs/reconcile-calls.ts';
import { type Job, untilNoneIsDue } from './jobs/schedule.ts';
import { CREDIT_TIERS } from './keys/credit-tiers.ts';
import { createKeys, type Keys } from './keys/keys.ts';
import { createTrials, TRIAL_DAYS, TRIAL_USD, type Trials } from './keys/trial.ts';
import { CLAIMS_PER_MINUTE, trialRoutes } from './keys/trial-routes.ts';
import { createLedger, type Ledger } from './ledger/ledger.ts';
import { legacyCheckoutOf } from './legacy/credit-checkout.ts';
import { legacyDoor, walletAtTheLegacyDoor } from './legacy/door.ts';
import { openEndpoints } from './legacy/endpoints.ts';
import { createFreeCall, FREE_CALLS_PER_MINUTE, FREE_RUNS_PER_MINUTE } from './legacy/free-call.ts';
import { legacyRoutes } from './legacy/routes.ts';
import { createMailer, MAILS_AT_ONCE, MAILS_FORGOTTEN_AT_ONCE } from './mail/mailer.ts';
import { createMetrics } from './operations/metrics.ts';
import { createProbe } from './operations/probe.ts';
import { operationsRoutes } from './operations/routes.ts';
import { REFUSALS_PER_MINUTE } from './operator/credentials.ts';
import { openOperatorDoor } from './operator/operator.ts';
import { type CallStore, createCallStore } from './paid-call/calls.ts';
import { makeChallenge } from './paid-call/challenge.ts';
import { type Door, doorOf, x402Door } from './paid-call/door.ts';
import { createPaidCall, type PaidCall, type PaidCallParts } from './paid-call/paid-call.ts';
import { paidCallRoutes } from './paid-call/routes.ts';
import { createAnswerSeal } from './paid-call/sealed-answer.ts';
import { createSettlementStore } from './paid-call/settlements.ts';
import { createUndeliveredCalls } from './paid-call/undelivered.ts';
import { creditsRail } from './rails/credits/credits.ts';
import { mppDoor } from './rails/mpp/door.ts';
import { type MppRail, openMppRail } from './rails/mpp/mpp.ts';
import { mppAtTheWrongDoor } from './rails/mpp/wrong-door.ts';
import { ASSET_DECIMALS } from './rails/x402/networks.ts';
import { receiptRoutes } from './rails/x402/routes.ts';
import { createX402Rail, type X402Rail } from './rails/x402/x402.ts';
import { createRelayer } from './relayer/relayer.ts';
import { senderOf } from './relayer/sender.ts';
import { createSecretRegister, SECRET_NOTED_EVERY_MS } from './secrets/register.ts';
import type { Capability, CatalogLine, Service } from './services/define.ts';
import { availabilityOf } from './services/registry.ts';
import { openTopupDoor } from './topup/topup.ts';
import { connectUpstreams, UPSTREAM_NAMES } from './upstreams/index.ts';

/** More names than a flood can push out while their minute runs. */
const MAX_LIMITED_NAMES = 50_000;
const MAX_ANSWER_BYTES = 1_000_000;
const DAY_MS = 86_400_000;
const ANSWERS_DROPPED_AT_ONCE = 1_000;
const TRIALS_CLOSED_AT_ONCE = 500;
const DEBTS_AT_ONCE = 100;
const CAPS_RELEASED_AT_ONCE = 500;
const MAIL_TIMEOUT_MS = 20_000;
const WALLETS_REWRAPPED_AT_ONCE = 100;
/** Within a second, with what the answer itself takes. */
const READY_WITHIN_MS = 800;
const FACILITATORS_ASKED_EVERY_MS = 30_000;
const RELAYERS_RESUMED_EVERY_MS = 3_000;
const REGISTRATION_TIMEOUT_MS = 15_000;
/** Where identities are registered, and where MPP's evm method settles. */
const BASE_CHAIN_ID = 8453;

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
  /** Null: nothing is sold by card. */
  cards: Cards | null;
  debts: Debts;
  dataLists: DataLists;
  reconciler: Reconciler;
  settlementFinisher: SettlementFinisher;
  /** Asks those whose answers the first 402 depends on. To be awaited before listening. */
  prepare(patience: StartPatience): Promise<void>;
  /** From here on `/health/ready` says no, so that no new calls are sent here. */
  drain(): void;
  close(): Promise<void>;
}

/** Puts the server together. It does not listen yet, and its jobs do not run yet. */
export function createApp(parts: AppParts): App {
  const { config, baseUrl, version, pools, services, logger, nowMs } = parts;
  const { sql } = pools;
  const addresses = createAddressReader(config.proxyTrust, (message) => logger.warn(message));
  const addressOf = (request: FastifyRequest) => addresses.addressOf(request.raw);

  const ledger = createLedger(pools, nowMs);
  const keys = createKeys(sql, nowMs);
  const { secrets } = config;
  const trials = createTrials(sql, {
    ...{ keys, ledger, secrets, nowMs },
    budgetMicrosPerDay: config.trialBudgetMicrosPerDay,
  });
  const replica = createReplica({
    sql,
    nowMs,
    free: (transaction, id) => settlements.freeLeasesOf(transaction, id),
    async ended() {
      const released = await reconciler.releaseOfEnded();
      logger.warn({ released }, 'another process has ended, and what it held is free');
    },
  });
  const calls = createCallStore(pools, { nowMs, answerTtlMs: config.answerTtlMs, holder: replica.id });
  const undelivered = createUndeliveredCalls(sql, nowMs);
  const debts = createDebts(sql, { ledger, keys, nowMs });
  const limit = (perMinute: number) => createRateLimit({ perMinute, maxNames: MAX_LIMITED_NAMES, nowMs });
  const limitByAddress = (perMinute: number) =>
    createAddressLimit({ perMinute, maxNames: MAX_LIMITED_NAMES, nowMs });
  const mailer = createMailer(sql, {
    smtp: config.mail === null ? null : { ...config.mail, timeoutMs: MAIL_TIMEOUT_MS },
    nowMs,
    report({ outcome, ...line }) {
      metrics.mail(outcome);
      logger[outcome === 'given-up' ? 'error' : outcome === 'failed' ? 'warn' : 'info'](
        line,
        `mail ${outcome}`,
      );
    },
  });
  const cards =
    config.cards === null
      ? null
      : openCards({
          ...{
            sql,
            settings: config.cards,
            ledger,
            keys,
            debts,
            mailer,
            secrets,
            baseUrl,
            addressOf,
            nowMs,
          },
          checkoutLimit: limitByAddress(CHECKOUTS_PER_MINUTE),
          purchaseLimit: limitByAddress(PURCHASE_REQUESTS_PER_MINUTE),
          accountLimit: limitByAddress(config.rateLimitPerAddress),
          report(what, { id, kind, amountMicros }) {
            metrics.cardOrder(kind, what);
            const line = { what, orderId: id, kind, amountMicros: String(amountMicros) };
            if (what === 'mismatch') logger.error(line, 'a payment by card is not what its order says');
            else logger.info(line, 'card order');
          },
          reportRecharge(outcome, { accountId, error, ...line }) {
            metrics.recharge(outcome);
            const told = { outcome, accountId: String(accountId), ...line };
            if (error === undefined) logger.info(told, 'recharge');
            else logger.warn({ ...told, err: error }, 'recharge');
          },
          onError: (what, error) => logger.error({ what, err: error }, 'card money'),
        });
  const reconciler: Reconciler = createReconciler({
    calls,
    undelivered,
    ledger,
    report: (outcome, count) => metrics.reconciled(outcome, count),
  });
  const upstreams = connectUpstreams(config.upstreams, {
    userAgent: `farebox/${version}${config.contactEmail === null ? '' : ` (${config.contactEmail})`}`,
    acceptSandbox: !config.production,
    nowMs,
    onRequest: (name, outcome, durationMs) => metrics.upstreamRequest(name, outcome, durationMs),
  });
  const dataLists = createDataLists(sql, {
    upstreams: upstreams.apis,
    isConfigured: (name) => config.upstreams[name].baseUrl !== null,
    nowMs,
    report({ list, outcome, reason }) {
      if (reason === undefined) logger.info({ list, outcome }, 'data list');
      else logger.warn({ list, outcome, reason }, 'data list');
    },
  });
  const registrar = registrarOf(config, sql, nowMs);
  const wallets =
    config.walletEncryptionKeys.length === 0
      ? null
      : createWallets(sql, {
          keyring: createKeyring(parseKeyEncryptionKeys(config.walletEncryptionKeys.join(','))),
          nowMs,
        });
  const capabilities: Capability[] = [
    ...(wallets === null ? [] : (['custody'] as const)),
    ...(registrar === null ? [] : (['identities'] as const)),
    ...(dataLists.lists.configured.includes('ofac-sdn') ? (['lists'] as const) : []),
  ];
  const availability = (service: Service) => availabilityOf(service, upstreams.health, capabilities);
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
  const settlements = createSettlementStore(sql, nowMs, {
    answersLastMs: config.answerTtlMs + config.x402.refundAfterMs + DAY_MS,
    holder: replica.id,
  });
  const x402 = createX402Rail(
    {
      ...config.x402,
      rpcUrls: rpcUrlsOf(config),
    },
    {
      sql,
      baseUrl,
      secrets,
      sandbox: config.sandbox,
      nowMs,
      report: (network, step, outcome) => metrics.settlement(network, step, outcome),
    },
  );
  const mpp = openMppRail(config.mpp, new URL(baseUrl).hostname, {
    sql,
    evm: x402.authorizations(BASE_CHAIN_ID),
    sandbox: config.sandbox,
    nowMs,
    report: (network, step, outcome) => metrics.settlement(network, step, outcome),
  });
  const settlementFinisher = createSettlementFinisher({
    calls,
    settlements,
    ledger,
    chainsOf: (rail) => (rail === 'x402' ? x402 : rail === 'mpp' ? mpp : null)?.rail.chains,
    refundAfterMs: config.x402.refundAfterMs,
    nowMs,
    report(outcome, { callId, network }) {
      metrics.settlement(network, 'reconcile', outcome);
      if (outcome === 'lost') logger.error({ callId, network }, 'a chain took a settlement back');
      else if (outcome !== 'waiting' && outcome !== 'final')
        logger.warn({ callId, network, outcome }, 'settlement');
    },
  });

  // Who sends a payment beside its key means the payment: clients keep sending a key that ran dry.
  const credits = creditsRail({ keys, baseUrl });
  const soldByMpp = services.filter((service) => service.mpp);
  const rails = [
    x402.rail,
    ...(mpp === null
      ? []
      : [mppAtTheWrongDoor({ baseUrl, soldByMpp: (path) => soldByMpp.some((each) => each.path === path) })]),
    credits,
  ];
  const seal = createAnswerSeal(secrets);
  const secretRegister = createSecretRegister(pools, {
    ...{ secrets, lostIds: config.secretsLost, nowMs },
    canOpen(callId, body) {
      try {
        seal.open(callId, body);
        return true;
      } catch {
        return false;
      }
    },
  });
  const common: Omit<PaidCallParts, 'services' | 'rails' | 'door'> = {
    calls,
    settlements,
    seal,
    refundAfterMs: config.x402.refundAfterMs,
    capabilitiesFor: (proof) => ({
      custody: wallets?.paidBy(ownerOf(proof)),
      identities: registrar?.identities.paidBy(ownerOf(proof)),
      lists: dataLists.lists,
    }),
    upstreams: upstreams.apis,
    availability,
    catalog,
    addressLimit: limitByAddress(config.rateLimitPerAddress),
    payerLimit: limit(config.rateLimitPerKey),
    maxConcurrent: config.maxConcurrentCalls,
    maxConcurrentPerPayer: config.maxConcurrentCallsPerKey,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    baseUrl,
    version,
    nowMs,
    addCreditAt: () =>
      [
        ...(x402.offered().length > 0 ? ['topup'] : []),
        ...(cards === null ? [] : ['purchase', 'checkout/session']),
      ].map((way) => `${baseUrl}/api/m2m/credits/${way}`),
    frozenBecause: debts.standing,
    undelivered: (call) => reconciler.undelivered(call),
    report(report) {
      metrics.call(report);
      const { error, priceMicros, ...line } = report;
      // A fault of ours is an error; what a source or the database did is a warning; all else is business.
      if (error === undefined) logger.info(line, 'paid call');
      else
        logger[report.outcome === 'failed' ? 'error' : 'warn']({ ...line, err: error }, 'paid call failed');
    },
  };
  const told = (door: Door) => doorOf(config.sandbox, door);
  const paidCall = createPaidCall({
    ...common,
    services,
    rails,
    door: told(
      x402Door((quote) => makeChallenge(quote, rails, { baseUrl, servicesAvailable: () => services.length })),
    ),
  });
  const mppCall =
    mpp === null
      ? null
      : createPaidCall({
          ...common,
          services: soldByMpp,
          rails: [mpp.rail, x402.rail, credits],
          door: told(mppDoor(mpp, [x402.rail], baseUrl)),
        });

  // The older family of addresses: the same services under their older names, for keys alone.
  const walletsPay = () => x402.offered().length > 0;
  const endpoints = openEndpoints(services);
  const legacyCall = createPaidCall({
    ...common,
    services: endpoints.flatMap(({ endpoint, sold }) =>
      endpoint.priceUsd === null || sold === null ? [] : [sold],
    ),
    rails: [walletAtTheLegacyDoor(), credits],
    door: told(
      legacyDoor({
        endpoints,
        baseUrl,
        trial: { creditsUsd: String(TRIAL_USD), lifetimeDays: TRIAL_DAYS },
        cardCheckout: cards !== null,
        walletsPay,
      }),
    ),
  });
  const freeCall = createFreeCall({
    upstreams: upstreams.apis,
    availability,
    catalog,
    baseUrl,
    version,
    nowMs,
    addressLimit: limitByAddress(FREE_CALLS_PER_MINUTE),
    runLimit: limit(FREE_RUNS_PER_MINUTE),
    report({ error, ...line }) {
      if (error === undefined) logger.info(line, 'free call');
      else logger[line.status === 500 ? 'error' : 'warn']({ ...line, err: error }, 'free call failed');
    },
  });

  // Credit for USDC.
  const topup = openTopupDoor({
    sql,
    common,
    sandbox: config.sandbox,
    x402,
    ledger,
    keys,
    credited: (transaction, accountId) =>
      debts.collect(transaction, accountId, `top-up of account ${accountId}`),
    addressLimit: limitByAddress(config.rateLimitPerAddress),
    addressOf,
    report: (outcome, callId) => {
      metrics.topup(outcome);
      if (outcome === 'taken_back') logger.error({ callId }, 'the chain took back what had bought credit');
      else if (outcome !== 'closed') logger.warn({ callId, outcome }, 'top-up');
    },
  });

  const metrics = createMetrics({
    running: () => paidCall.running + (mppCall?.running ?? 0) + legacyCall.running + topup.paidCall.running,
    waitingForDatabase: () => calls.depth,
    reservedMicros: calls.reservedMicros,
    owedMicros: debts.total,
    undelivered: async () => reconciler.unnoted().length + (await undelivered.waiting()),
    databaseSilences: () => pools.silence.episodes,
    cardEventsWaiting: async () => (await cards?.inbox.waiting()) ?? 0,
    upstreamHealth: () => UPSTREAM_NAMES.map(upstreams.health),
    dataLists: dataLists.states,
    nowMs,
  });

  const pages = openPages({ sandbox: config.sandbox });
  const operator = openOperatorDoor(config.adminTokens, {
    sql,
    patient: pools.patient,
    ledger,
    keys,
    collectDebts: (transaction, accountId) =>
      debts.collect(transaction, accountId, `credit by an operator to account ${accountId}`),
    cards,
    creditServices: 'credits/topup/',
    trialBudgetMicrosPerDay: config.trialBudgetMicrosPerDay,
    upstreamHealth: () => UPSTREAM_NAMES.map(upstreams.health),
    dataLists: dataLists.states,
    sendPage: (request, reply) => pages.send(request, reply, 'admin.html'),
    refusalLimit: limitByAddress(REFUSALS_PER_MINUTE),
    addressOf,
    explainAddress: (request) => addresses.explain(request.raw),
    logger,
    nowMs,
  });

  let draining = false;
  const databaseAnswers = createProbe(() => sql`select 1`, READY_WITHIN_MS);
  async function notReady(): Promise<string | null> {
    if (draining) return 'The server is about to stop.';
    return (await databaseAnswers()) ? null : 'The database does not answer.';
  }
  pools.silence.onChange((silent) => {
    if (silent)
      logger.error('the database went silent: what waits for it is told so, and new connections are tried');
    else logger.warn('the database answers again');
  });

  const http = createHttpServer(logger);
  const routes: Route[] = [];
  http.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.push({ method: each, path: url });
  });
  operationsRoutes(http, { metrics, metricsToken: config.metricsToken, version, notReady, addressOf });
  trialRoutes(http, {
    ...{ trials, baseUrl, servicesAvailable: services.length, addressOf, nowMs },
    trialAllowInternal: config.trialAllowInternal,
    claimLimit: limitByAddress(CLAIMS_PER_MINUTE),
  });
  accountRoutes(http, {
    ...{
      keys,
      ledger,
      autoRecharges: cards?.recharges ?? null,
      standing: debts.standing,
      baseUrl,
      addressOf,
      nowMs,
    },
    accountLimit: limitByAddress(config.rateLimitPerAddress),
  });
  if (cards === null) closedCardRoutes(http);
  else cards.routes(http);
  discoveryRoutes(http, pages, {
    product: 'Farebox',
    version,
    baseUrl,
    contactEmail: config.contactEmail,
    sandbox: config.sandbox,
    services,
    availability,
    rails: {
      get x402() {
        return x402OfferOf(x402);
      },
      get mpp() {
        return mppOfferOf(mpp, soldByMpp);
      },
    },
    trial: { creditsUsd: String(TRIAL_USD), lifetimeDays: TRIAL_DAYS, onePerDays: TRIAL_DAYS },
    cardCheckout: cards !== null,
    tiers: CREDIT_TIERS,
    limits: { requestsPerMinute: config.rateLimitPerKey, bodyBytes: http.initialConfig.bodyLimit ?? 0 },
    routes,
  });
  // `/api/x402/` is where the oldest SDK looks.
  paidCallRoutes(http, { prefixes: ['/x402', '/api/x402'], services, paidCall, addressOf });
  if (mppCall !== null)
    paidCallRoutes(http, { prefixes: ['/mpp'], services: soldByMpp, paidCall: mppCall, addressOf });
  legacyRoutes(http, {
    endpoints,
    paidCall: legacyCall,
    freeCall,
    checkout: cards === null ? null : legacyCheckoutOf(cards.checkout),
    baseUrl,
    checkoutLimit: limitByAddress(CHECKOUTS_PER_MINUTE),
    accountLimit: limitByAddress(config.rateLimitPerAddress),
    walletsPay,
    addressOf,
    nowMs,
  });
  topup.routes(http);
  receiptRoutes(http, { settlements, accountLimit: limitByAddress(config.rateLimitPerAddress), addressOf });
  if (wallets !== null) {
    custodyRoutes(http, {
      wallets,
      keys,
      walletLimit: limitByAddress(WALLET_REQUESTS_PER_MINUTE),
      refusalLimit: limit(RECORDED_REFUSALS_PER_MINUTE),
      addressOf,
    });
  }

  operator?.routes(http);

  return {
    http,
    paidCall,
    calls,
    keys,
    ledger,
    trials,
    cards,
    debts,
    dataLists,
    reconciler,
    settlementFinisher,
    jobs: [
      {
        name: 'reconcile-calls',
        intervalMs: config.reconcileIntervalMs,
        run: async () => void (await reconciler.run()),
      },
      {
        name: 'expire-trials',
        intervalMs: 60_000,
        run: async (stopping) => void (await trials.expire(TRIALS_CLOSED_AT_ONCE, stopping)),
      },
      {
        name: 'drop-expired-answers',
        intervalMs: 60_000,
        run: async (stopping) =>
          void (await untilNoneIsDue(
            ANSWERS_DROPPED_AT_ONCE,
            () => calls.dropExpiredAnswers(ANSWERS_DROPPED_AT_ONCE),
            stopping,
          )),
      },
      {
        name: 'finish-settlements',
        intervalMs: config.reconcileIntervalMs,
        run: async (stopping) => void (await settlementFinisher.finish(stopping)),
      },
      {
        name: 'watch-settlements',
        intervalMs: config.reconcileIntervalMs,
        run: async (stopping) => void (await settlementFinisher.watch(stopping)),
      },
      {
        name: 'pay-refunds',
        intervalMs: config.reconcileIntervalMs,
        run: async (stopping) => void (await settlementFinisher.payRefunds(stopping)),
      },
      {
        name: 'finish-topups',
        intervalMs: config.reconcileIntervalMs,
        run: async () => void (await topup.topups.finish()),
      },
      { name: 'ask-facilitators', intervalMs: FACILITATORS_ASKED_EVERY_MS, run: x402.refresh },
      {
        name: 'resume-relayers',
        intervalMs: RELAYERS_RESUMED_EVERY_MS,
        async run() {
          // A chain that is silent keeps no other one waiting.
          const all = await Promise.allSettled([x402.resume(), mpp?.resume(), registrar?.resume()]);
          const failed = all.find(({ status }) => status === 'rejected');
          if (failed?.status === 'rejected') throw failed.reason;
        },
      },
      ...(cards?.jobs ?? []),
      { name: 'collect-debts', intervalMs: 60_000, run: async () => void (await debts.sweep(DEBTS_AT_ONCE)) },
      {
        name: 'release-caps',
        intervalMs: 60_000,
        run: async (stopping) =>
          void (await untilNoneIsDue(
            CAPS_RELEASED_AT_ONCE,
            () => keys.releaseCaps(CAPS_RELEASED_AT_ONCE),
            stopping,
          )),
      },
      {
        name: 'send-mails',
        intervalMs: 5_000,
        run: async (stopping) => void (await untilNoneIsDue(MAILS_AT_ONCE, mailer.send, stopping)),
      },
      {
        name: 'forget-mails',
        intervalMs: 3_600_000,
        run: async (stopping) =>
          void (await untilNoneIsDue(MAILS_FORGOTTEN_AT_ONCE, mailer.forget, stopping)),
      },
      {
        name: 'fetch-data-lists',
        intervalMs: 30_000,
        run: async (stopping) => void (await dataLists.fetchDue(stopping)),
      },
      { name: 'note-secret', intervalMs: SECRET_NOTED_EVERY_MS, run: secretRegister.note },
      { name: 'drop-sign-ins', intervalMs: 60_000, run: x402.dropExpired },
      ...(operator === null ? [] : [operator.job]),
      ...(wallets === null
        ? []
        : [
            {
              name: 'rewrap-wallets',
              intervalMs: 60_000,
              run: async (stopping?: AbortSignal) =>
                void (await untilNoneIsDue(
                  WALLETS_REWRAPPED_AT_ONCE,
                  () => wallets.rewrap(WALLETS_REWRAPPED_AT_ONCE),
                  stopping,
                )),
            },
          ]),
    ],
    async prepare(patience) {
      const { proxyTrust, host, publicUrl } = config;
      for (const { level, message } of proxyNotices(proxyTrust, { host, publicUrl })) logger[level](message);
      // First: while the next step waits for a lock, what a lost process holds is given free.
      await patience.take(replica.start);
      await patience.take(async () => {
        // Admitting may take minutes, and gives a silent database as long: only one that answers is asked.
        await sql`select 1`;
        await secretRegister.admit();
      });
      await x402.refresh();
      const missing = await patience.take(async () => wallets?.missingKeyIds());
      if (missing !== undefined && missing.length > 0) {
        throw new StartError(
          `WALLET_ENCRYPTION_KEY: wallets are encrypted under keys that are not given: ${missing.join(', ')}`,
        );
      }
    },
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
      const lost = reconciler.unnoted();
      if (lost.length > 0)
        logger.error(
          { calls: lost.map(({ id }) => id) },
          'these calls may have been charged without an answer, and the database could not be told: refund those that are captured',
        );
      await replica.stop();
      await Promise.all([
        upstreams.close(),
        cards?.close(),
        mailer.close(),
        x402.close(),
        mpp?.close(),
        registrar?.close(),
      ]);
    },
  };
}

/** Who registers identities on Base, with a key and a node of its own; null when either is missing. */
function registrarOf(config: Config, sql: Database, nowMs: () => number) {
  const { baseUrl: rpcUrl } = config.upstreams.base;
  if (rpcUrl === null || config.identityRegistrarKey === null) return null;
  const rpc = connectRpc(rpcUrl, { timeoutMs: 5_000 });
  const keys = [config.identityRegistrarKey];
  const relayer = createRelayer({
    sql,
    rpc,
    network: `eip155:${BASE_CHAIN_ID}`,
    chainId: BASE_CHAIN_ID,
    keys,
    nowMs,
  });
  const sender = senderOf(relayer, REGISTRATION_TIMEOUT_MS);
  const registry = ERC8004_IDENTITY_REGISTRY;
  return {
    identities: createRegistrar({ sql, sender, chainId: BASE_CHAIN_ID, registry, nowMs }),
    resume: relayer.resume,
    close: rpc.close,
  };
}

/** What documents say about x402; null while no chain is ready. */
function x402OfferOf(x402: X402Rail): X402Offer | null {
  const [first, ...rest] = x402.offered().map(({ network, payTo }) => ({
    network: network.id,
    name: network.name,
    payTo,
    asset: { symbol: 'USDC', address: network.asset, decimals: ASSET_DECIMALS },
    canRefund: x402.rail.chains?.canRefund(network.id) === true,
  }));
  return first === undefined ? null : { facilitatorUrl: x402.facilitatorUrl, networks: [first, ...rest] };
}

/** What documents say about MPP; null while it is off, or nothing is sold by it. */
function mppOfferOf(mpp: MppRail | null, sold: readonly Service[]): MppOffer | null {
  const [first, ...rest] = (mpp?.methods ?? []).map((each) => ({
    ...each,
    canRefund: mpp?.rail.chains?.canRefund(`eip155:${each.chainId}`) === true,
  }));
  return first === undefined || sold.length === 0 ? null : { methods: [first, ...rest] };
}
