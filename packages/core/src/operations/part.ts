import { Gauge, Registry } from 'prom-client';
import type { Configured } from '../declared.ts';
import { askedGauge } from '../metrics.ts';
import type { House, Part } from '../part.ts';
import { openTracing } from '../tracing/open-telemetry.ts';
import { traceWith } from '../tracing/traced.ts';
import { OPERATIONS } from './declared.ts';
import { joinMetrics, showQueues } from './metrics.ts';
import { HEALTH_OPERATIONS } from './operations.ts';
import { createProbe } from './probe.ts';
import { operationsRoutes } from './routes.ts';

export { OPERATIONS };

/** Within a second, with what the answer itself takes. */
const READY_WITHIN_MS = 800;

/** Opens the addresses that a load balancer and a Prometheus ask. @param parts all of them: each may say that it is not ready */
export function openOperations(
  house: House,
  { settings, secrets }: Configured<typeof OPERATIONS.variables>,
  { parts, publicUrl }: { parts(): readonly Part[]; publicUrl: string | null },
): Part {
  const { pools, version, logger, addresses } = house;
  const registry = new Registry();
  showFigures(registry, pools, parts);
  showQueues(registry, () => parts().flatMap((part) => part.queues ?? []));
  pools.clock.onDrift((drifted, aheadMs) => {
    if (drifted)
      logger.warn({ aheadMs }, 'the clock of this machine is wrong by more than a second: set it by NTP');
    else logger.warn({ aheadMs }, 'the clock of this machine is right again');
  });
  const metrics = joinMetrics(() => parts().flatMap((part) => part.metrics ?? []));
  let draining = false;
  let closeTracing: (() => Promise<void>) | null = null;
  const databaseAnswers = createProbe(() => pools.sql`select 1`, READY_WITHIN_MS);
  pools.silence.onChange((silent) => {
    if (silent)
      logger.error('the database went silent: what waits for it is told so, and new connections are tried');
    else logger.warn('the database answers again');
  });
  async function notReady(): Promise<string | null> {
    if (draining) return 'The server is about to stop.';
    if (!(await databaseAnswers())) return 'The database does not answer.';
    if (pools.writing.isRefused) return 'The database takes no writes: its disk is full, or it is a standby.';
    for (const part of parts()) {
      const reason = (await part.notReady?.()) ?? null;
      if (reason !== null) return reason;
    }
    return null;
  }
  return {
    name: 'operations',
    async prepare() {
      const { tracesEndpoint: endpoint, tracesSampled: sampled } = settings;
      if (endpoint === null) return;
      const headers = () => secrets.reveal().tracesHeaders;
      const tracing = await openTracing({ endpoint, headers, sampled, version });
      traceWith(tracing.begin);
      closeTracing = tracing.close;
    },
    async close() {
      if (closeTracing === null) return;
      traceWith(null);
      await closeTracing();
    },
    routes: (http) =>
      operationsRoutes(http, {
        metrics,
        metricsToken: () => secrets.reveal().metricsToken,
        version,
        notReady,
        readiness: (isFromWithin) =>
          Object.assign({}, ...parts().map((part) => part.readiness?.(isFromWithin) ?? {})),
        isPublic: publicUrl !== null && !isOwnMachine(publicUrl),
        explainAddress: (request) => addresses.explain(request.raw),
      }),
    metrics: registry,
    operations: [HEALTH_OPERATIONS],
    drain() {
      draining = true;
    },
  };
}

/** The figures of the database, and of the chains that payments are taken on. */
function showFigures(registry: Registry, pools: House['pools'], parts: () => readonly Part[]): void {
  askedGauge(
    registry,
    'farebox_database_silences',
    'How often the database did not answer within its deadline since the start',
    () => pools.silence.episodes,
  );
  askedGauge(
    registry,
    'farebox_clock_ahead_seconds',
    'How far the clock of this machine is ahead of that of the database; negative: behind',
    () => {
      const { aheadMs } = pools.clock;
      if (aheadMs === null) throw new Error('the database has not said its time');
      return aheadMs / 1_000;
    },
  );
  new Gauge({
    name: 'farebox_rail_offered',
    help: '1 while somebody could pay on this chain when it was looked at last; 0: nobody could',
    registers: [registry],
    labelNames: ['network'],
    collect() {
      this.reset();
      for (const { network, offered } of parts().flatMap((part) => part.railStandings?.() ?? []))
        this.set({ network }, offered ? 1 : 0);
    },
  });
}

/** Whether an address is of this machine alone, as `npm start` has it. */
function isOwnMachine(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.');
}
