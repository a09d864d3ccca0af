import { Counter, Registry } from 'prom-client';
import { askedGauge } from '../metrics.ts';

/** Metrics of webhooks. @param missedToday is asked when the metrics are scraped */
export function createWebhookMetrics(missedToday: () => Promise<number>) {
  const registry = new Registry();
  const messages = new Counter({
    name: 'farebox_webhook_messages_total',
    help: 'Attempts to send a message to a key’s owner: taken, failed, gone, given-up, unnoted; and webhooks that were switched-off',
    labelNames: ['outcome'],
    registers: [registry],
  });
  askedGauge(
    registry,
    'farebox_webhook_events_missed',
    'Events of the last 24 hours that webhooks should have got and that no message was written for, 10,000 at most',
    missedToday,
  );
  return { registry, message: (outcome: string) => messages.inc({ outcome }) };
}
