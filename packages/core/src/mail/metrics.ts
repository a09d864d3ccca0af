import { Counter, Registry } from 'prom-client';

/** Metrics of mail. */
export function createMailMetrics() {
  const registry = new Registry();
  const mails = new Counter({
    name: 'farebox_mails_total',
    help: 'Attempts to send a mail: sent, failed, given-up',
    labelNames: ['outcome'],
    registers: [registry],
  });
  return { registry, mail: (outcome: string) => mails.inc({ outcome }) };
}
