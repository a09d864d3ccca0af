import { Counter, Registry } from 'prom-client';

/** Metrics of webhooks. */
export function createWebhookMetrics() {
  const registry = new Registry();
  const messages = new Counter({
    name: 'farebox_webhook_messages_total',
    help: 'Attempts to send a message to a key’s owner: taken, failed, gone, given-up, unnoted; and webhooks that were switched-off',
    labelNames: ['outcome'],
    registers: [registry],
  });
  return { registry, message: (outcome: string) => messages.inc({ outcome }) };
}
