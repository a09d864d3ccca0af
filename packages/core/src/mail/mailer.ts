/**
 * Mail that is sent because something happened: written down in the commit of what it tells of, sent by a job. It is
 * sent at least once; a second copy has the same Message-ID.
 */
import type { Database, Transaction } from '../db/connection.ts';
import {
  type Columns,
  type Held,
  LeasedQueue,
  type QueueShape,
  type WatchedQueue,
} from '../db/leased-queue.ts';
import { bodyText, isMailAddress, subjectLine } from './mail-text.ts';
import { connectSmtp, type Delivery, type Letter, type SmtpSettings } from './smtp.ts';

export interface Mail {
  /** The id that `transferIdFor` makes of the cause: the same cause is one mail, for as long as it is remembered. */
  id: string;
  to: string;
  subject: string;
  /** Plain text. It holds no key and nothing that is good for longer than a day: mail is read on its way. */
  text: string;
  /** Whether a secret stands in it: the text is forgotten once it is out of our hands. */
  secret?: boolean;
}

/** The outcome of a mail, without its address, for the log. */
export interface MailReport {
  outcome: 'sent' | 'failed' | 'given-up';
  id: string;
  attempts: number;
  /** Absent when it was sent. */
  reason?: string;
}

export interface Mailer {
  /** Whether there is a mail server. */
  readonly sends: boolean;
  /** The mails that wait. */
  readonly queue: WatchedQueue;
  /**
   * Writes a mail down, to be sent once the transaction is committed. It never fails for what it is given, because the
   * transaction tells of more than a mail: to an address that is none nothing is sent, and control characters and
   * secrets are left out. Does nothing when there is no mail server, or when the mail is known.
   */
  enqueue(transaction: Transaction, mail: Mail): Promise<void>;
  /** Sends what is due, as much as is good for one run, and says how many mails were accepted. */
  send(): Promise<number>;
  /** Forgets the oldest mails once their time is over, sent or not, and says how many. */
  forget(): Promise<number>;
  /** Begins no more mails, and waits for those that are being sent. */
  close(): Promise<void>;
}

const MINUTE_MS = 60_000;
/** After the first attempt, the second, and so on: an outage of half a day loses nothing. */
const BACK_OFF_MS = [1, 3, 9, 27, 81, 243, 360].map((minutes) => minutes * MINUTE_MS);
const MAX_ATTEMPTS = BACK_OFF_MS.length + 1;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** In one call of `forget`. */
export const MAILS_FORGOTTEN_AT_ONCE = 5_000;
const AT_ONCE = 4;
/** The mails that each of those that send at once sends in one run. */
const MAILS_A_RUN = 25;
/** In one call of `send`, at most. */
export const MAILS_AT_ONCE = AT_ONCE * MAILS_A_RUN;

interface Row {
  id: string;
  recipient: string;
  subject: string;
  body: string;
  created_at: Date;
  secret: boolean;
}

export interface MailerParts {
  smtp: SmtpSettings | null;
  /** Stands below every mail. */
  signature: string;
  /** How long a mail is kept. */
  retentionDays: number;
  nowMs(): number;
  report(report: MailReport): void;
}

/**
 * Opens the outbox.
 *
 * @param parts.smtp null: there is no mail server, and nothing is written down
 * @throws StartError when the mail server's address cannot be read
 */
export function createMailer(sql: Database, parts: MailerParts): Mailer {
  const { signature, nowMs, report, retentionDays } = parts;
  const smtp = parts.smtp === null ? null : connectSmtp(parts.smtp);
  const queue = openQueue(sql, nowMs, parts.smtp?.timeoutMs ?? 0);
  const at = (inMs = 0) => new Date(nowMs() + inMs).toISOString();
  const running = new Set<Promise<unknown>>();
  let closed = false;

  /** Notes what became of it. Only who claimed it last decides what comes next; but what was sent, was sent. */
  async function settle(held: Held<Row>, delivery: Delivery): Promise<void> {
    const { id, secret, heldAttempts: attempts } = held;
    const forgotten: Columns = secret ? { body: '' } : {};
    if (delivery.kind === 'accepted') {
      await queue.settle(held, { set: { sent_at: at(), ...forgotten }, isFact: true });
      return report({ outcome: 'sent', id, attempts });
    }
    const { reason } = delivery;
    if (delivery.kind === 'refused' || !queue.mayTryAgain(held)) {
      await queue.giveUp(held, { set: forgotten });
      return report({ outcome: 'given-up', id, attempts, reason });
    }
    await queue.backOff(held);
    report({ outcome: 'failed', id, attempts, reason });
  }

  /** Sends mail after mail until one fails: if it was the mail server that failed, the others need not. */
  async function sendSome(send: (letter: Letter) => Promise<Delivery>): Promise<number> {
    let accepted = 0;
    for (let taken = 0; taken < MAILS_A_RUN && !closed; taken += 1) {
      const [held] = await queue.claim(1);
      if (held === undefined) break;
      const delivery: Delivery = queue.isSpent(held)
        ? { kind: 'refused', reason: 'its last attempt did not end' }
        : await deliver(send, held);
      await settle(held, delivery);
      if (delivery.kind === 'accepted') accepted += 1;
      if (delivery.kind === 'failed') break;
    }
    return accepted;
  }

  return {
    sends: smtp !== null,
    queue,
    async enqueue(transaction, { id, to, subject, text, secret = false }) {
      if (smtp === null) return;
      if (!isMailAddress(to)) {
        return report({ outcome: 'given-up', id, attempts: 0, reason: 'its address is none' });
      }
      await transaction`
        insert into mails (id, recipient, subject, body, created_at, next_at, secret)
        values (${id}, ${to}, ${subjectLine(subject)}, ${bodyText(`${text}\n${signature}\n`)}, ${at()}, ${at()}, ${secret})
        on conflict (id) do nothing`;
    },
    async send() {
      if (smtp === null || closed) return 0;
      const all = Promise.allSettled(Array.from({ length: AT_ONCE }, () => sendSome(smtp.send)));
      running.add(all);
      const results = await all.finally(() => running.delete(all));
      let accepted = 0;
      for (const result of results) {
        if (result.status === 'rejected') throw result.reason;
        accepted += result.value;
      }
      return accepted;
    },
    async forget() {
      const { count } = await sql`
        delete from mails where id in (
          select id from mails where created_at < ${at(-retentionDays * DAY_MS)} order by created_at limit ${MAILS_FORGOTTEN_AT_ONCE}
          for update skip locked
        )`;
      return count;
    },
    async close() {
      closed = true;
      await Promise.all(running);
    },
  };
}

/** @param timeoutMs the time for which the mail server is waited for */
function openQueue(sql: Database, nowMs: () => number, timeoutMs: number): LeasedQueue<Row> {
  const shape: QueueShape = {
    name: 'mails',
    table: 'mails',
    key: ['id'],
    columns: ['recipient', 'subject', 'body', 'created_at', 'secret'],
    attempts: 'attempts',
    // It outlasts sending the mail and noting the result.
    leaseMs: 2 * MINUTE_MS + timeoutMs,
    backOffMs: (attempts) => BACK_OFF_MS[attempts - 1] ?? 0,
    mostAttempts: MAX_ATTEMPTS,
    settled: 'kept',
    givenUpAt: 'given_up_at',
    since: 'created_at',
  };
  return new LeasedQueue(sql, shape, nowMs);
}

/** Hands one mail to the mail server. */
async function deliver(send: (letter: Letter) => Promise<Delivery>, row: Row): Promise<Delivery> {
  const { id, recipient, subject, body, created_at } = row;
  return await send({ id, to: recipient, subject, text: body, writtenAt: created_at });
}
