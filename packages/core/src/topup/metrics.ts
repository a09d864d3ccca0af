import { Counter, Registry } from 'prom-client';

/** Metrics of credit that is sold on chains. */
export function createTopupMetrics() {
  const registry = new Registry();
  const topups = new Counter({
    name: 'farebox_topups_total',
    help: 'Credit sold on chains, by what became of it outside the call itself',
    labelNames: ['outcome'],
    registers: [registry],
  });
  return { registry, topup: (outcome: string) => topups.inc({ outcome }) };
}
