import type { Configured } from '../declared.ts';
import { untilNoneIsDue } from '../jobs/schedule.ts';
import type { Keys } from '../keys/keys.ts';
import { createBucketTurns } from '../ledger/bucket-turns.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { KeyUse } from '../paid-call/paid-call.ts';
import type { House, Part } from '../part.ts';
import type { Secrets } from '../secrets/secrets.ts';
import type { CourierParts } from './courier.ts';
import { WEBHOOKS } from './declared.ts';
import { createEventLog, EVENTS_FORGOTTEN_AT_ONCE } from './event-log.ts';
import { ADDRESSES_FORGOTTEN_AT_ONCE, createKeyUses } from './key-use.ts';
import { tellOfLowBalances } from './low-balances.ts';
import { createWebhookMetrics } from './metrics.ts';
import { missedToday } from './missed.ts';
import { EVENT_OPERATIONS, WEBHOOK_OPERATIONS } from './operations.ts';
import { createOutbox, DELIVERIES_FORGOTTEN_AT_ONCE, type Outbox } from './outbox.ts';
import { WEBHOOK_REQUESTS_PER_MINUTE, webhookRoutes } from './routes.ts';
import type { Seal } from './secret.ts';
import { createSender } from './send.ts';
import { createWebhooks } from './webhooks.ts';

export { WEBHOOKS };

const LOOKED_EVERY_MS = 2_000;
const LOW_LOOKED_EVERY_MS = 5_000;

/** Events of an account, sent to where its owner wants them. */
export function openWebhooks(
  house: House,
  {
    settings: { privateAddresses: allowPrivate, retentionDays, addressRetentionDays },
  }: Configured<typeof WEBHOOKS.variables>,
  needs: { keys: Keys; mailer: Mailer; secrets: Secrets; seal: Seal },
): Part & { outbox: Outbox; keyUsed(use: KeyUse): void } {
  const { pools, baseUrl, version, logger, addressOf, nowMs } = house;
  const { sql } = pools;
  const { keys, mailer, secrets, seal } = needs;
  const metrics = createWebhookMetrics(() => missedToday(sql, nowMs()));
  const sender = createSender({ allowPrivate, userAgent: `Farebox/${version} (+${baseUrl})` });
  const webhooks = createWebhooks(sql, { seal, currentId: secrets.current.id, nowMs });
  const report: CourierParts['report'] = ({ outcome, ...line }) => {
    metrics.message(outcome);
    logger[outcome === 'taken' ? 'info' : 'warn'](line, `webhook ${outcome}`);
  };
  const outbox = createOutbox(sql, { sender, seal, mailer, baseUrl, retentionDays, nowMs, report });
  const log = createEventLog(sql, nowMs, retentionDays);
  const turns = createBucketTurns(pools);
  const uses = createKeyUses(sql, { secrets, log, retentionDays: addressRetentionDays, nowMs });
  return {
    name: 'webhooks',
    outbox,
    keyUsed: uses.note,
    operations: [WEBHOOK_OPERATIONS, EVENT_OPERATIONS],
    metrics: metrics.registry,
    queues: [outbox.queue],
    prepare: (patience) => patience.take(webhooks.reseal),
    routes(http) {
      const limit = house.limitByAddress(WEBHOOK_REQUESTS_PER_MINUTE);
      webhookRoutes(http, { webhooks, outbox, log, uses, keys, allowPrivate, limit, addressOf });
    },
    jobs: [
      { name: 'send-webhooks', intervalMs: LOOKED_EVERY_MS, run: async () => void (await outbox.send()) },
      { name: 'tell-of-key-use', intervalMs: LOOKED_EVERY_MS, run: uses.flush },
      {
        name: 'tell-of-low-balances',
        intervalMs: LOW_LOOKED_EVERY_MS,
        run: async (stopping) => void (await tellOfLowBalances(sql, { log, turns, stopping, nowMs })),
      },
      {
        name: 'forget-webhook-messages',
        intervalMs: 3_600_000,
        run: async (stopping) =>
          void (await untilNoneIsDue(DELIVERIES_FORGOTTEN_AT_ONCE, outbox.forget, stopping)),
      },
      {
        name: 'forget-account-events',
        intervalMs: 3_600_000,
        run: async (stopping) => void (await untilNoneIsDue(EVENTS_FORGOTTEN_AT_ONCE, log.forget, stopping)),
      },
      {
        name: 'forget-key-addresses',
        intervalMs: 3_600_000,
        run: async (stopping) =>
          void (await untilNoneIsDue(ADDRESSES_FORGOTTEN_AT_ONCE, uses.forget, stopping)),
      },
    ],
    async close() {
      await uses.flush().catch((error: unknown) => logger.error({ err: error }, 'notes of key use are lost'));
      await outbox.close();
      await sender.close();
    },
  };
}
