import { Counter, Histogram, Registry } from 'prom-client';
import { askedGauge, MICROS_IN_USD } from '../metrics.ts';
import type { CallReport } from './inside/outcome.ts';

export interface CallMetrics {
  registry: Registry;
  call(report: CallReport): void;
  reconciled(outcome: string, count: number): void;
  /** One step of a payment on a chain: `verify`, `settle` or `reconcile`. */
  settlement(network: string, step: string, outcome: string): void;
}

/** Metrics of paid calls and of the payments that chains settle for them, on all rails. */
export function createCallMetrics(): CallMetrics {
  const registry = new Registry();
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
    help: 'Money taken for answers, and for credit that is bought by x402 (services credits/topup/…)',
    labelNames: ['service', 'rail'],
    registers,
  });
  const released = new Counter({
    name: 'farebox_released_usd_total',
    help: 'Money that was reserved and given back',
    labelNames: ['service', 'rail'],
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
  /** Looking a series up by its labels costs more than counting, so each is looked up once. */
  const bound = new Map<string, { count: Counter.Internal; duration: Histogram.Internal<string> }>();
  return {
    registry,
    call({ service, rail, outcome, durationMs, priceMicros, callId }) {
      const name = `${service} ${rail} ${outcome}`;
      let series = bound.get(name);
      if (series === undefined) {
        series = { count: calls.labels(service, rail, outcome), duration: duration.labels(service, outcome) };
        bound.set(name, series);
      }
      series.count.inc();
      series.duration.observe(durationMs / 1_000);
      if (outcome === 'captured') captured.inc({ service, rail }, Number(priceMicros) / MICROS_IN_USD);
      else if (callId !== null && outcome !== 'replayed')
        released.inc({ service, rail }, Number(priceMicros) / MICROS_IN_USD);
    },
    reconciled: (outcome, count) => reconciled.inc({ outcome }, count),
    settlement: (network, step, outcome) => settlements.inc({ network, step, outcome }),
  };
}

/** Gauges whose values are read when the metrics are scraped. */
export function watchCalls(
  { registry }: CallMetrics,
  watched: {
    running(): number;
    waitingForDatabase(): number;
    reservedMicros(): Promise<bigint>;
    /** How many calls may have been captured without their answer being delivered. */
    undelivered(): Promise<number>;
  },
): void {
  askedGauge(
    registry,
    'farebox_reserved_usd',
    'Money reserved by running calls, over all processes',
    async () => Number(await watched.reservedMicros()) / MICROS_IN_USD,
  );
  askedGauge(
    registry,
    'farebox_undelivered_calls',
    'Calls that may have been charged without their answer being delivered; they are given back soon',
    watched.undelivered,
  );
  askedGauge(registry, 'farebox_running_calls', 'Paid calls running now in this process', watched.running);
  askedGauge(
    registry,
    'farebox_waiting_for_database',
    'Pieces of work that wait for the next group commit',
    watched.waitingForDatabase,
  );
}
