import type { Configured } from '../declared.ts';
import { untilNoneIsDue } from '../jobs/schedule.ts';
import type { House, Part } from '../part.ts';
import { MAIL } from './declared.ts';
import { createMailer, MAILS_AT_ONCE, MAILS_FORGOTTEN_AT_ONCE, type Mailer } from './mailer.ts';
import { createMailMetrics } from './metrics.ts';

export { MAIL };

const TIMEOUT_MS = 20_000;

/** Mail to owners. Without a mail server what is written stays unsent, and no part writes any. */
export function openMail(
  { pools, shop, baseUrl, logger, nowMs }: House,
  { settings, secrets }: Configured<typeof MAIL.variables>,
): Part & { mailer: Mailer } {
  const { from, retentionDays } = settings;
  const metrics = createMailMetrics();
  const { smtpUrl: first } = secrets.reveal();
  const smtpUrl = () => secrets.reveal().smtpUrl ?? '';
  const mailer = createMailer(pools.sql, {
    smtp:
      first === null || from === null
        ? null
        : { smtpUrl, from: { name: shop.name, address: from }, timeoutMs: TIMEOUT_MS },
    // A signature as mail programs know one: two dashes and a blank (RFC 3676, 4.3).
    signature: ['-- ', shop.name, baseUrl, ...(shop.contactEmail === null ? [] : [shop.contactEmail])].join(
      '\n',
    ),
    retentionDays,
    nowMs,
    report({ outcome, ...line }) {
      metrics.mail(outcome);
      logger[outcome === 'given-up' ? 'error' : outcome === 'failed' ? 'warn' : 'info'](
        line,
        `mail ${outcome}`,
      );
    },
  });
  return {
    name: 'mail',
    mailer,
    metrics: metrics.registry,
    queues: mailer.sends ? [mailer.queue] : [],
    jobs: [
      {
        name: 'send-mails',
        intervalMs: 5_000,
        run: async (stopping) => void (await untilNoneIsDue(MAILS_AT_ONCE, mailer.send, stopping)),
      },
      {
        name: 'forget-mails',
        intervalMs: 3_600_000,
        run: async (stopping) =>
          void (await untilNoneIsDue(MAILS_FORGOTTEN_AT_ONCE, mailer.forget, stopping)),
      },
    ],
    close: mailer.close,
  };
}
