import { Counter, Registry } from 'prom-client';

/** The metrics of keys that are sold. */
export function createSoldKeyMetrics() {
  const registry = new Registry();
  const keys = new Counter({
    name: 'farebox_sold_keys_total',
    help: 'Keys that were sold, by what became of them outside the call itself',
    labelNames: ['outcome'],
    registers: [registry],
  });
  return { registry, soldKey: (outcome: string) => keys.inc({ outcome }) };
}
