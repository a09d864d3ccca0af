import { createReplica } from '../db/replicas.ts';
import { type ArchiveNeeds, archiveWeeks } from '../history/archive-weeks.ts';
import { compactWeeks } from '../history/compact-weeks.ts';
import { dropReleased } from '../history/drop-released.ts';
import { type Job, untilNoneIsDue } from '../jobs/schedule.ts';
import { rootBuyerOf } from '../keys/root-buyer.ts';
import { type BucketTurns, createBucketTurns } from '../ledger/bucket-turns.ts';
import { hearTransfers } from '../ledger/heard-transfers.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { House, Part, PartCapability } from '../part.ts';
import { type Availability, availabilityOf, NO_CAPABILITY } from '../service/availability.ts';
import type { CatalogLine, Service } from '../service/define.ts';
import type { ServiceFigures } from '../service/figures.ts';
import type { Sources } from '../service/sources.ts';
import { makeChallenge } from './challenge.ts';
import { PAID_CALL } from './declared.ts';
import { doorOf, x402Door } from './door.ts';
import { FollowedCalls } from './followed-calls.ts';
import { createFreeHangUps } from './free-hang-ups.ts';
import { unfitForHttp } from './http-door.ts';
import { type CallShares, createCallShares } from './inside/call-shares.ts';
import { type CallStore, createCallStore } from './inside/calls.ts';
import { catalogLines } from './inside/catalog-lines.ts';
import { SettlementFinisher } from './inside/finish-settlements.ts';
import { foldSales } from './inside/fold-sales.ts';
import { createFreeCalls } from './inside/free-calls.ts';
import { namedCallOperations, namedCallRoute } from './inside/named-call-route.ts';
import { onceATurn } from './inside/once-a-turn.ts';
import { createPaymentRefunds, type PaymentRefunds } from './inside/payment-refunds.ts';
import { createReconciler, type Reconciler } from './inside/reconcile-calls.ts';
import { createRequestNotes, NOTES_FORGOTTEN_AT_ONCE } from './inside/request-notes.ts';
import { paidCallRoutes } from './inside/routes.ts';
import { createSettlementStore } from './inside/settlement-store.ts';
import { createUndeliveredCalls } from './inside/undelivered.ts';
import { type CallMetrics, watchCalls } from './metrics.ts';
import { type KeyUse, PaidCall, type PaidCallParts } from './paid-call.ts';
import type { Rail } from './rail.ts';
import type { AnswerSeal } from './sealed-answer.ts';
import { measureServices } from './service-figures.ts';
import type { SettlementStore } from './settlements.ts';

export { PAID_CALL };

const DAY_MS = 86_400_000;
const ROWS_DROPPED_AT_ONCE = 1_000;
const SHARES_PAID_AT_ONCE = 500;
const TRANSFERS_HEARD_AT_ONCE = 100;
const WEEKS_MADE_EVERY_MS = 600_000;
const REQUESTS_NOTED_EVERY_MS = 2_000;
const HISTORY_EVERY_MS = 600_000;
const COMPACTED_EVERY_MS = 3_600_000;

/** What the doors of the paid call share. */
export type SharedByDoors = Omit<PaidCallParts, 'rails' | 'door'>;

export interface Sales extends Part {
  calls: CallStore;
  followedCalls: FollowedCalls;
  settlements: SettlementStore;
  reconciler: Reconciler;
  settlementFinisher: SettlementFinisher;
  /** Sends payments back on the chains that they came from. */
  payments: PaymentRefunds;
  /** The shares that others get of the price of a call. */
  shares: CallShares;
  shared: SharedByDoors;
  /** How long a bought answer can be asked for again. */
  answersLastMs: number;
  /** This process's row in `replicas`; null before its first sign of life. */
  replicaId(): bigint | null;
  availability(service: Service): Availability;
  catalog(): readonly CatalogLine[];
  /** How the services have answered in the last day. */
  figures: ServiceFigures;
  /** Whether somebody new would get a trial now, as far as is known. */
  promisesTrials(): boolean;
  /** Opens a door: the rails that pay there, and the form of its answers. */
  open(door: Pick<PaidCallParts, 'rails' | 'door'> & Partial<SharedByDoors>): PaidCall;
}

interface SalesSettings {
  answerTtlMs: number;
  maxAnswerBytes: number;
  requestRetentionDays: number;
  refundAfterMs: number;
  reconcileIntervalMs: number;
  shareHoldMs: number;
  shareCardHoldMs: number;
  rateLimitPerKey: number;
  maxConcurrentCalls: number;
  maxConcurrentCallsPerKey: number;
  /** Null, or not given: calls stay in the database. */
  historyDays?: number | null;
  historyFolder?: string | null;
}

interface SalesNeeds {
  metrics: CallMetrics;
  ledger: Ledger;
  seal: AnswerSeal;
  sources: Sources;
  /** The path below which receipts of on-chain payments stand. */
  receiptsAt: string;
  /** All parts, since some provide capabilities to services. Called only after all parts are open. */
  capable(): readonly Part[];
  /** Called for each call that a key pays. It must cost no more than a lookup in memory. */
  keyUsed(use: KeyUse): void;
  /** The rails whose payments settle on a chain. */
  railsOnChains: readonly Rail[];
}

/**
 * How calls are sold: what the doors share, the calls' books, and the jobs that end calls which were left open.
 *
 * @example
 * ```ts
 * import { createCallMetrics } from '@farebox/core/paid-call/metrics';
 * import { openSales } from '@farebox/core/paid-call/part';
 * import { NO_SOURCES } from '@farebox/core/service/sources';
 *
 * const opened = openSales(house, config.paidCall.settings, {
 *   ledger,
 *   seal,
 *   metrics: createCallMetrics(),
 *   sources: NO_SOURCES,
 *   receiptsAt: '/receipts',
 *   railsOnChains: [],
 *   capable: () => [],
 *   keyUsed: () => {},
 * });
 * opened.catalog().length; // 1
 * ```
 */
export function openSales(house: House, settings: SalesSettings, needs: SalesNeeds): Sales {
  const records = openRecords(house, settings, needs);
  const { calls, settlements, undelivered, reconciler, settlementFinisher, replica, shares } = records;
  const { followedCalls } = records;
  const shared = shareWithDoors(house, settings, needs, records);
  const { availability, catalog } = shared;
  const doors: PaidCall[] = [];
  const running = () => doors.reduce((sum, door) => sum + door.running, 0);
  watchCalls(needs.metrics, {
    running,
    waitingForDatabase: () => calls.depth,
    reservedMicros: calls.reservedMicros,
    undelivered: async () => reconciler.unnoted().length + (await undelivered.waiting()),
  });
  return {
    name: 'paid-call',
    requestHeaders: ['Idempotency-Key'],
    calls,
    followedCalls,
    settlements,
    reconciler,
    settlementFinisher,
    shares,
    shared,
    availability,
    catalog,
    figures: records.figures,
    payments: createPaymentRefunds(needs.railsOnChains),
    promisesTrials: () => needs.capable().every((part) => part.trialsOpen?.() !== false),
    answersLastMs: settings.answerTtlMs,
    replicaId: replica.id,
    open(door) {
      const opened = new PaidCall({ ...shared, ...door, door: doorOf(house, door.door) });
      doors.push(opened);
      return opened;
    },
    // Runs first, so that whatever a lost process holds is released while other parts wait for locks.
    prepare: (patience) => patience.take(replica.start),
    notReady: async () => replica.notReady(),
    jobs: [...jobsOf(records, settings), ...historyJobs(house, settings)],
    metrics: needs.metrics.registry,
    queues: [undelivered.queue],
    // Of what is undelivered nobody else knows: it may have been charged.
    leftOpen: () => ({ running: running(), undelivered: reconciler.unnoted().map(({ id }) => id) }),
    close: () => endCalls(house, records),
  };
}

type Records = ReturnType<typeof openRecords>;

/** The stores of calls and settlements, and the jobs that finish what no request finishes. */
function openRecords(
  house: House,
  settings: SalesSettings,
  { ledger, metrics, railsOnChains, capable }: SalesNeeds,
) {
  const { pools, logger, nowMs } = house;
  const { sql } = pools;
  const { answerTtlMs, refundAfterMs } = settings;
  const replica = createReplica({
    sql,
    clock: pools.clock,
    live: pools.replicas,
    nowMs,
    free: (transaction, id) => settlements.freeLeasesOf(transaction, id),
    beaten: pools.writing.beat,
    rewound() {
      for (const part of capable()) part.rewound?.();
    },
    async ended() {
      const released = await reconciler.releaseOfEnded();
      logger.warn({ released }, 'another process has ended, and what it held is free');
    },
  });
  const calls = createCallStore(pools, { nowMs, answerTtlMs, holder: replica.id });
  const undelivered = createUndeliveredCalls(sql, nowMs);
  const freeCalls = createFreeCalls(sql, nowMs);
  const settlements = createSettlementStore(sql, nowMs, {
    answersLastMs: answerTtlMs + refundAfterMs + DAY_MS,
    holder: replica.id,
  });
  const reconciler: Reconciler = createReconciler({
    calls,
    undelivered,
    ledger,
    freeCalls,
    report: (outcome, count) => metrics.reconciled(outcome, count),
  });
  const settlementFinisher = new SettlementFinisher({
    calls,
    settlements,
    ledger,
    refundAfterMs,
    nowMs,
    chainsOf: (name) => railsOnChains.find((rail) => rail.name === name)?.chains,
    report(outcome, { callId, network }) {
      metrics.settlement(network, 'reconcile', outcome);
      if (outcome === 'lost') logger.error({ callId, network }, 'a chain took a settlement back');
      else if (outcome !== 'waiting' && outcome !== 'final')
        logger.warn({ callId, network, outcome }, 'settlement');
    },
  });
  const shares = createCallShares(pools, { ledger, nowMs, cardHoldMs: settings.shareCardHoldMs });
  const requests = createRequestNotes(sql, nowMs, settings.requestRetentionDays);
  const buyerOf = async (id: bigint) => (await rootBuyerOf(sql, id)).name;
  const freeHangUps = createFreeHangUps({ sql, nowMs, buyerOf });
  const followedCalls = new FollowedCalls(pools, { nowMs, holder: replica.id });
  const turns = createBucketTurns(pools);
  const figures = measureServices(sql, nowMs, turns);
  const sold = { calls, settlements, undelivered, freeHangUps, freeCalls, followedCalls, requests, figures };
  const hear = (stopping?: AbortSignal) =>
    hearTransfers(pools, { turns, atOnce: TRANSFERS_HEARD_AT_ONCE, stopping });
  const salesFold = foldSales(sql, undefined, turns);
  return { ...sold, reconciler, settlementFinisher, replica, shares, salesFold, hear, turns };
}

/** What the doors of the paid call share. The bounds are among it: a payer has one limit over all doors. */
function shareWithDoors(
  house: House,
  settings: SalesSettings,
  needs: SalesNeeds,
  { requests, calls, settlements, reconciler, freeHangUps, followedCalls }: Records,
): SharedByDoors {
  const { baseUrl, version, logger, nowMs } = house;
  const { sources, metrics } = needs;
  const { refundAfterMs } = settings;
  let known: readonly PartCapability[] | null = null;
  const capabilities = () => {
    known ??= needs.capable().flatMap((part) => part.capabilities ?? []);
    return known;
  };
  const capable = (name: string) => capabilities().find((each) => each.name === name);
  const standing = (name: string) => {
    const found = capable(name);
    return found === undefined ? NO_CAPABILITY : { ...found, unable: found.unable?.() ?? null };
  };
  const availability = (service: Service) => availabilityOf(service, sources.health, standing);
  const { health } = sources;
  const catalog = onceATurn(catalogLines({ services: () => house.shelf.services, health, standing }));
  return {
    calls,
    settlements,
    freeHangUps,
    followedCalls,
    refundAfterMs,
    honoured: (service) => house.shelf.honoured(service),
    newer: (service) => house.shelf.newer(service),
    availability,
    catalog,
    baseUrl,
    version,
    nowMs,
    seal: needs.seal,
    keyUsed: needs.keyUsed,
    receiptsUrl: `${baseUrl}${needs.receiptsAt}`,
    capabilitiesFor: ({ requires, mayUse }, proof) =>
      Object.fromEntries([...requires, ...mayUse].map((name) => [name, capable(name)?.forPayer?.(proof)])),
    async beforeAnswer(callId, service) {
      for (const { name, beforeAnswer } of capabilities())
        if (service.requires.includes(name)) await beforeAnswer?.(callId);
    },
    sources,
    addressLimit: house.limitByAddress(),
    payerLimit: house.limit(settings.rateLimitPerKey),
    maxConcurrent: settings.maxConcurrentCalls,
    maxConcurrentPerPayer: settings.maxConcurrentCallsPerKey,
    maxAnswerBytes: settings.maxAnswerBytes,
    undelivered: (call) => reconciler.undelivered(call),
    report(report) {
      metrics.call(report);
      requests.note(report);
      const { error, priceMicros, ...line } = report;
      // A fault of ours is logged as an error, a failure of a source or the database as a warning, and everything else
      // as information.
      if (error === undefined) logger.info(line, 'paid call');
      else
        logger[report.outcome === 'failed' ? 'error' : 'warn']({ ...line, err: error }, 'paid call failed');
    },
  };
}

/** A job that deletes what is past, so many at once until nothing is left. */
function dropping(name: string, drop: (limit: number) => Promise<number>): Job {
  return {
    name,
    intervalMs: 60_000,
    run: async (stopping) =>
      void (await untilNoneIsDue(ROWS_DROPPED_AT_ONCE, () => drop(ROWS_DROPPED_AT_ONCE), stopping)),
  };
}

/** The job that deletes answers which nobody may ask for any more, of each bucket in its turn. */
function droppingAnswers(calls: CallStore, turns: BucketTurns): Job {
  return {
    name: 'drop-expired-answers',
    intervalMs: 60_000,
    run: async (stopping) =>
      void (await turns.each(
        ROWS_DROPPED_AT_ONCE,
        (bucket) => calls.dropExpiredAnswers(ROWS_DROPPED_AT_ONCE, bucket),
        stopping,
      )),
  };
}

function jobsOf(
  {
    calls,
    settlements,
    requests,
    reconciler,
    settlementFinisher,
    shares,
    freeHangUps,
    freeCalls,
    followedCalls,
    figures,
    salesFold,
    hear,
    turns,
  }: Records,
  { reconcileIntervalMs: intervalMs, shareHoldMs }: SalesSettings,
): Job[] {
  return [
    { name: 'reconcile-calls', intervalMs, run: async () => void (await reconciler.run()) },
    { name: 'hear-of-transfers', intervalMs, run: async (stopping) => void (await hear(stopping)) },
    { name: 'make-weeks-of-calls', intervalMs: WEEKS_MADE_EVERY_MS, run: calls.makeWeeks },
    droppingAnswers(calls, turns),
    dropping('drop-followed-calls', (limit) => followedCalls.dropExpired(limit)),
    { name: 'note-requests', intervalMs: REQUESTS_NOTED_EVERY_MS, run: requests.flush },
    {
      name: 'forget-requests',
      intervalMs: 3_600_000,
      run: async (stopping) =>
        void (await untilNoneIsDue(NOTES_FORGOTTEN_AT_ONCE, requests.forget, stopping)),
    },
    dropping('drop-moved-payments', (limit) => settlements.dropMoved(limit)),
    dropping('forget-free-calls', (limit) => freeCalls.forget(limit)),
    figures.job,
    salesFold,
    { name: 'forget-hang-ups', intervalMs: 3_600_000, run: () => freeHangUps.forget() },
    {
      name: 'pay-shares',
      intervalMs: 60_000,
      run: async (stopping) =>
        void (await untilNoneIsDue(
          SHARES_PAID_AT_ONCE,
          () => shares.payOut(shareHoldMs, SHARES_PAID_AT_ONCE),
          stopping,
        )),
    },
    {
      name: 'finish-settlements',
      intervalMs,
      run: async (stopping) => void (await settlementFinisher.finish(stopping)),
    },
    {
      name: 'watch-settlements',
      intervalMs,
      run: async (stopping) => void (await settlementFinisher.watch(stopping)),
    },
    {
      name: 'pay-refunds',
      intervalMs,
      run: async (stopping) => void (await settlementFinisher.payRefunds(stopping)),
    },
  ];
}

/** What takes old calls out of the database. */
function historyJobs({ pools, nowMs, logger }: House, { historyDays, historyFolder }: SalesSettings): Job[] {
  const released: Job = {
    name: 'drop-released-calls',
    intervalMs: HISTORY_EVERY_MS,
    run: async (stopping) => void (await dropReleased(pools.patient, nowMs, stopping)),
  };
  const compact: Job = {
    name: 'compact-weeks',
    intervalMs: COMPACTED_EVERY_MS,
    run: async (stopping) =>
      void (await compactWeeks(
        {
          patient: pools.patient,
          nowMs,
          report: (week) => logger.info({ week }, 'a week of calls was made compact'),
        },
        () => stopping?.aborted !== true,
      )),
  };
  if (historyDays == null || historyFolder == null) return [released, compact];
  const report: ArchiveNeeds['report'] = (week, step, detail) =>
    logger.info({ week, step, detail }, 'archive of a week of calls');
  const needs = { pools, nowMs, historyDays, folder: historyFolder, report };
  return [
    released,
    compact,
    {
      name: 'archive-weeks',
      intervalMs: HISTORY_EVERY_MS,
      run: async (stopping) => void (await archiveWeeks(needs, () => stopping?.aborted !== true)),
    },
  ];
}

/** Settles what the last calls left open or owe. What only this process knows would be lost with it. */
async function endCalls({ logger }: House, records: Records): Promise<void> {
  const { reconciler, requests, replica, followedCalls } = records;
  followedCalls.close();
  await requests
    .flush()
    .catch((error: unknown) => logger.warn({ err: error }, 'notes of the last requests are lost'));
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
}

/** A door that sells services over HTTP, at one or several addresses. */
export function servicesDoor(
  house: House,
  door: { name: string; prefixes: readonly string[]; isSold(service: Service): boolean; paidCall: PaidCall },
): Part {
  const { prefixes, isSold, paidCall } = door;
  return {
    name: door.name,
    refuses: unfitForHttp,
    operations: [
      {
        operations: [],
        untold: prefixes.map((prefix) => ({
          path: `${prefix}/*`,
          because: 'A service is described by its declaration.',
        })),
      },
    ],
    routes: (http) => {
      const { addressOf, shelf } = house;
      paidCallRoutes(http, { prefixes, shelf, isSold, paidCall, addressOf });
    },
  };
}

/**
 * `/x402/`: everything on sale, paid by every rail. The oldest SDK calls `/api/x402/` instead. One address more buys the same
 * calls by the name of a service, for hosts of models that take few operations.
 *
 * @example
 * ```ts
 * import { openX402Door } from '@farebox/core/paid-call/part';
 *
 * const door = openX402Door(house, { rails: [credits], sales });
 * door.paidCall.running; // 0
 * ```
 */
export function openX402Door(
  house: House,
  { rails, sales }: { rails: readonly Rail[]; sales: Sales },
): Part & { paidCall: PaidCall } {
  const { baseUrl, shop, sandbox } = house;
  const about = { baseUrl, seller: shop.name, sandbox, trialsOpen: sales.promisesTrials };
  const door = x402Door((quote) => makeChallenge(quote, rails, about));
  const paidCall = sales.open({ rails, door });
  const prefixes = ['/x402', '/api/x402'];
  const byAddress = servicesDoor(house, { name: 'x402-door', prefixes, isSold: () => true, paidCall });
  return {
    ...byAddress,
    paidCall,
    get operations() {
      return [...(byAddress.operations ?? []), namedCallOperations(house.firstCall)];
    },
    routes(http) {
      byAddress.routes?.(http);
      const { addressOf, shelf } = house;
      namedCallRoute(http, { shelf, paidCall, addressOf });
    },
  };
}
