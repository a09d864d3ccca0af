import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { CallReport } from '../paid-call/paid-call.ts';
import type { UpstreamHealth } from '../upstreams/http.ts';

const MICROS = 1_000_000;

export interface Metrics {
  call(report: CallReport): void;
  upstreamRequest(upstream: string, outcome: 'ok' | 'failed', durationMs: number): void;
  reconciled(outcome: string, count: number): void;
  /** One step of a payment on a chain: `verify`, `settle` or `reconcile`. */
  settlement(network: string, step: string, outcome: string): void;
  /** The text that Prometheus reads. */
  render(): Promise<string>;
  readonly contentType: string;
}

/** What an operator can draw: calls, money, upstreams, the database's queue, the process. */
export function createMetrics(watched: {
  running(): number;
  waitingForDatabase(): number;
  reservedMicros(): Promise<bigint>;
  upstreamHealth(): readonly UpstreamHealth[];
}): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const calls = new Counter({
    name: 'farebox_calls_total',
    help: 'Requests to paid services by how they ended',
    labelNames: ['service', 'rail', 'outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'farebox_call_duration_seconds',
    help: 'From request to answer, by service and outcome',
    labelNames: ['service', 'outcome'],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25],
    registers,
  });
  const captured = new Counter({
    name: 'farebox_captured_usd_total',
    help: 'Money taken for answers',
    labelNames: ['service', 'rail'],
    registers,
  });
  const released = new Counter({
    name: 'farebox_released_usd_total',
    help: 'Money that was reserved and given back',
    labelNames: ['service', 'rail'],
    registers,
  });
  const upstreamRequests = new Counter({
    name: 'farebox_upstream_requests_total',
    help: 'Requests that left for an upstream',
    labelNames: ['upstream', 'outcome'],
    registers,
  });
  const upstreamDuration = new Histogram({
    name: 'farebox_upstream_duration_seconds',
    help: 'How long upstreams take',
    labelNames: ['upstream'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const reconciled = new Counter({
    name: 'farebox_reconciled_total',
    help: 'Unfinished business that a job finished',
    labelNames: ['outcome'],
    registers,
  });
  const settlements = new Counter({
    name: 'farebox_settlements_total',
    help: 'Steps of payments on chains by how they ended: verify, settle, and what the reconciler did',
    labelNames: ['network', 'step', 'outcome'],
    registers,
  });
  new Gauge({
    name: 'farebox_running_calls',
    help: 'Paid calls running now in this process',
    registers,
    collect() {
      this.set(watched.running());
    },
  });
  new Gauge({
    name: 'farebox_waiting_for_database',
    help: 'Pieces of work that wait for the next group commit',
    registers,
    collect() {
      this.set(watched.waitingForDatabase());
    },
  });
  new Gauge({
    name: 'farebox_reserved_usd',
    help: 'Money reserved by running calls, over all processes',
    registers,
    async collect() {
      // Without a database there is nothing to say; the other figures are wanted then more than ever.
      const reserved = await watched.reservedMicros().catch(() => null);
      if (reserved === null) this.reset();
      else this.set(Number(reserved) / MICROS);
    },
  });
  new Gauge({
    name: 'farebox_upstream_up',
    help: '1 up, 0 down; upstreams that are not configured are left out',
    labelNames: ['upstream'],
    registers,
    collect() {
      this.reset();
      for (const { name, state } of watched.upstreamHealth()) {
        if (state !== 'not_configured') this.set({ upstream: name }, state === 'up' ? 1 : 0);
      }
    },
  });

  /** Finding a series by its labels costs more than counting, so each is looked up once. */
  const bound = new Map<string, { count: Counter.Internal; duration: Histogram.Internal<string> }>();

  return {
    call({ service, rail, outcome, durationMs, priceMicros, callId }) {
      const name = `${service} ${rail} ${outcome}`;
      let series = bound.get(name);
      if (series === undefined) {
        series = { count: calls.labels(service, rail, outcome), duration: duration.labels(service, outcome) };
        bound.set(name, series);
      }
      series.count.inc();
      series.duration.observe(durationMs / 1_000);
      if (outcome === 'captured') captured.inc({ service, rail }, Number(priceMicros) / MICROS);
      else if (callId !== null && outcome !== 'replayed')
        released.inc({ service, rail }, Number(priceMicros) / MICROS);
    },
    upstreamRequest(upstream, outcome, durationMs) {
      upstreamRequests.inc({ upstream, outcome });
      upstreamDuration.observe({ upstream }, durationMs / 1_000);
    },
    settlement: (network, step, outcome) => settlements.inc({ network, step, outcome }),
    reconciled: (outcome, count) => reconciled.inc({ outcome }, count),
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
