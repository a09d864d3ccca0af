import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { declare, whole } from '../declared.ts';
import { CALL_BOOKS } from './inside/books-rules.ts';
import { CALL_PEOPLE } from './personal-data.ts';

const HOUR_MS = 3_600_000;
/** Longer than a year's books, and than anybody may still dispute the card payment that paid for a call. */
const FEWEST_HISTORY_DAYS = 400;

export const PAID_CALL = declare({
  name: 'paidCall',
  books: CALL_BOOKS,
  people: CALL_PEOPLE,
  variables: {
    rateLimitPerKey: {
      name: 'RATE_LIMIT_PER_KEY',
      describe: 'Paid requests a minute with one key, per process',
      shape: whole(1, 100_000_000),
      fallback: '1000',
    },
    maxConcurrentCalls: {
      name: 'MAX_CONCURRENT_CALLS',
      describe: 'Paid calls running at once, per process',
      shape: whole(1, 100_000),
      fallback: '1000',
    },
    maxConcurrentCallsPerKey: {
      name: 'MAX_CONCURRENT_CALLS_PER_KEY',
      describe: 'Paid calls of one key running at once, per process',
      shape: whole(1, 100_000),
      fallback: '100',
    },
    answerTtlMs: {
      name: 'ANSWER_TTL_HOURS',
      describe: 'How long a bought answer is kept for repeats, in hours',
      shape: whole(24, 24 * 30).transform((hours) => hours * HOUR_MS),
      fallback: '48',
    },
    requestRetentionDays: {
      name: 'REQUEST_RETENTION_DAYS',
      describe: 'How many days it is kept which request paid for which call on a chain, and which failed',
      shape: whole(1, 3_650),
      fallback: '30',
    },
    maxAnswerBytes: {
      name: 'MAX_ANSWER_BYTES',
      describe:
        'Size of the largest answer, in bytes. A larger one fails and is not charged; a longer stream is not kept for a repeat',
      // One statement carries up to 512 answers, sealed and in base64, and the database takes at most 1 GB in one.
      shape: whole(10_000, 1_400_000),
      fallback: '1000000',
    },
    refundAfterMs: {
      name: 'X402_REFUND_AFTER_SECONDS',
      describe:
        'How long, in seconds, the caller of a paid call that failed may try again before the price is sent back',
      shape: whole(30, 86_400).transform((seconds) => seconds * 1_000),
      fallback: '600',
    },
    shareHoldMs: {
      name: 'SHARE_HOLD_HOURS',
      describe:
        'How long a share of a call, such as that of a device’s owner, is held before it is paid out, in hours',
      shape: whole(0, 24 * 90).transform((hours) => hours * HOUR_MS),
      fallback: '24',
    },
    shareCardHoldMs: {
      name: 'SHARE_CARD_HOLD_DAYS',
      describe:
        'How many days a card payment must be old before a share of a call that it may have paid is paid out',
      shape: whole(7, 180).transform((days) => days * 24 * HOUR_MS),
      fallback: '7',
    },
    reconcileIntervalMs: {
      name: 'RECONCILE_INTERVAL_MS',
      describe: 'How often, in milliseconds, the server looks for unfinished calls',
      shape: whole(100, 600_000),
      fallback: '5000',
    },
    historyDays: {
      name: 'HISTORY_DAYS',
      describe:
        'After how many days a week of calls is written to files and leaves the database ([history.md](history.md)); without it, never',
      shape: whole(FEWEST_HISTORY_DAYS, 36_500),
      fallback: null,
    },
    historyFolder: {
      name: 'HISTORY_FOLDER',
      describe:
        'The folder for these files, by its absolute path. All replicas must see it, and your backups must hold it',
      shape: z.string().max(1_000).refine(isAbsolute, 'must be an absolute path'),
      fallback: null,
    },
  },
  problems: ({ historyDays, historyFolder }) =>
    typeof historyDays === 'number' && historyFolder === null
      ? ['HISTORY_FOLDER: must be set: what HISTORY_DAYS takes out of the database needs a place']
      : [],
});
