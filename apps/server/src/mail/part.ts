import { untilNoneIsDue } from '../jobs/schedule.ts';
import type { House, Part } from '../part.ts';
import { createMailer, MAILS_AT_ONCE, MAILS_FORGOTTEN_AT_ONCE, type Mailer } from './mailer.ts';

const TIMEOUT_MS = 20_000;

/** Mail to owners. @param smtp null: what is written stays unsent, and no part writes any */
export function openMail(
  { pools, logger, metrics, nowMs }: House,
  smtp: { smtpUrl: string; from: string } | null,
): Part & { mailer: Mailer } {
  const mailer = createMailer(pools.sql, {
    smtp: smtp === null ? null : { ...smtp, timeoutMs: TIMEOUT_MS },
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
