/**
 * What is to be told, and the telling of it: at least once, with the same id. A process takes a webhook for itself by a
 * lease that outlasts one attempt, so that each receiver is asked one thing at a time, by one process; when that process
 * dies, the lease ends and another goes on. A receiver that fails rests for a while, and keeps nobody else waiting.
 */
import type { Database, Transaction } from '../db/connection.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import type { Mailer } from '../mail/mailer.ts';
import { type EventType, messageOf, TEST_EVENT } from './events.ts';
import { type Seal, sealedFor } from './secret.ts';
import type { Sender, Sent } from './send.ts';
import { switchOff } from './webhooks.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** After the first attempt, the second, and so on: about three days in all, as the standard proposes. */
const BACK_OFF_MS = [
  ...[5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 5 * HOUR_MS],
  ...[10 * HOUR_MS, 14 * HOUR_MS, 20 * HOUR_MS, 24 * HOUR_MS],
];
const MAX_ATTEMPTS = BACK_OFF_MS.length + 1;
/** What was wanted longer ago is given up, however few attempts it had. */
const MAX_AGE_MS = 4 * DAY_MS;
/** A receiver that failed is left alone: after one failure in a row, after two, after more. */
const REST_MS = [5 * SECOND_MS, 15 * SECOND_MS, MINUTE_MS];
/** A receiver that took nothing for so long is asked no more. */
const SWITCHED_OFF_AFTER_MS = 3 * DAY_MS;
/** Longer than an attempt can take, its two statements included. */
const LEASE_MS = MINUTE_MS;
const AT_ONCE = 32;
const KEPT_MS = 30 * DAY_MS;
/** In one call of `forget`. */
export const DELIVERIES_FORGOTTEN_AT_ONCE = 5_000;
/** How many messages may wait for a webhook, and be written down for it in 24 hours, when another is to be written. */
interface Bounds {
  waiting: number;
  aDay: number;
}
/** The triggers write up to 2,000 a day: what is noticed beside the calls, and what is tried, leaves room for what moves money. */
const OF_EVENTS: Bounds = { waiting: 1_000, aDay: 1_500 };
const OF_TESTS: Bounds = { waiting: 20, aDay: 500 };
const LISTED = 50;

/** One event for one webhook, as its owner sees it. */
export interface Delivery {
  id: string;
  type: string;
  body: string;
  createdAt: Date;
  attempts: number;
  nextAt: Date | null;
  deliveredAt: Date | null;
  givenUpAt: Date | null;
  lastResult: string | null;
}

export interface Outbox {
  /** Writes an event down for those of an account's webhooks that want it, in the commit of what it tells. */
  tell(on: Database | Transaction, accountId: bigint, type: EventType, data: object): Promise<void>;
  /** The same for one webhook. */
  tellOne(on: Database | Transaction, webhookId: string, type: EventType, data: object): Promise<void>;
  /** A message whose only end is to be received. @returns its id; null: enough wait already, or were written in a day */
  test(webhookId: string): Promise<string | null>;
  /** Begins to send what is due, as much as may be sent at once. @returns how many attempts it began */
  send(): Promise<number>;
  /** The latest deliveries of a webhook, newest first. */
  list(webhookId: string): Promise<Delivery[]>;
  /** Sends a delivery anew, with the id that it has. @returns whether there is one that is not waiting anyway, and room for it */
  resend(webhookId: string, id: string): Promise<boolean>;
  /** Forgets the oldest, sent or not, and says how many. */
  forget(): Promise<number>;
  /** Settles when what is being sent has ended. */
  idle(): Promise<void>;
  /** Begins nothing more, and waits for what was begun. */
  close(): Promise<void>;
}

export interface OutboxReport {
  /** `unnoted`: what became of an attempt could not be written down, and it is sent again; or the next was not found. */
  outcome: Sent['outcome'] | 'given-up' | 'switched-off' | 'unnoted';
  webhookId: string;
  deliveryId: string;
  attempts: number;
  result: string;
}

interface Claimed {
  id: string;
  webhook_id: string;
  body: string;
  attempts: number;
  wanted_at: Date;
  url: string;
  email: string | null;
  failures: number;
  failing_since: Date | null;
  sealed_secret: string;
  sealed_secret_before: string | null;
}

export interface OutboxParts {
  sender: Pick<Sender, 'send'>;
  seal: Seal;
  mailer: Pick<Mailer, 'enqueue'>;
  baseUrl: string;
  nowMs(): number;
  report(report: OutboxReport): void;
}

export function createOutbox(sql: Database, parts: OutboxParts): Outbox {
  const writer = new Writer(sql, parts.nowMs);
  const courier = new Courier(sql, parts);
  return {
    tell: (on, accountId, type, data) => writer.tell(on, { accountId }, type, data),
    tellOne: (on, webhookId, type, data) => writer.tell(on, { webhookId }, type, data),
    test: (webhookId) => writer.test(webhookId),
    list: (webhookId) => writer.list(webhookId),
    resend: (webhookId, id) => writer.resend(webhookId, id),
    forget: () => writer.forget(),
    send: () => courier.send(),
    idle: () => courier.idle(),
    close: () => courier.close(),
  };
}

/** Writes down what is to be told, and says what became of it. */
class Writer {
  readonly #sql: Database;
  readonly #nowMs: () => number;

  constructor(sql: Database, nowMs: () => number) {
    this.#sql = sql;
    this.#nowMs = nowMs;
  }

  async tell(on: Database | Transaction, which: Which, type: EventType, data: object): Promise<void> {
    await this.#write(on, which, { type, body: messageOf(type, this.#nowMs(), data), bounds: OF_EVENTS });
  }

  async test(webhookId: string): Promise<string | null> {
    const body = messageOf(TEST_EVENT, this.#nowMs(), { note: 'Sent because its owner asked for it.' });
    const [id] = await this.#write(this.#sql, { webhookId }, { type: TEST_EVENT, body, bounds: OF_TESTS });
    return id ?? null;
  }

  async #write(
    on: Database | Transaction,
    which: Which,
    { type, body, bounds }: { type: string; body: string; bounds: Bounds },
  ): Promise<string[]> {
    const at = this.#at();
    const rows = await on<{ id: string }[]>`
      insert into webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, next_at)
      select gen_random_uuid(), w.id, ${type}, ${body}, ${at}, ${at}, ${at} from webhooks w
      where ${'accountId' in which ? on`w.account_id = ${String(which.accountId)}` : on`w.id = ${which.webhookId}`}
        and w.disabled_at is null and (${type} = any (w.events) or ${type} = ${TEST_EVENT})
        and exists (select 1 from api_keys k where k.account_id = w.account_id and k.status <> 'revoked')
        and ${waiting(on)} < ${bounds.waiting}
        and (select count(*) from (
              select 1 from webhook_deliveries d where d.webhook_id = w.id and d.created_at > ${this.#at(-DAY_MS)}
              limit ${bounds.aDay}
            ) of_the_day) < ${bounds.aDay}
      -- Its owner may be deleting it: nobody waits for that.
      for key share of w skip locked
      returning id`;
    return rows.map(({ id }) => id);
  }

  async list(webhookId: string): Promise<Delivery[]> {
    return this.#sql<Delivery[]>`
      select id, type, body, created_at as "createdAt", attempts, next_at as "nextAt", delivered_at as "deliveredAt",
             given_up_at as "givenUpAt", last_result as "lastResult"
      from webhook_deliveries where webhook_id = ${webhookId} order by created_at desc, id desc limit ${LISTED}`;
  }

  async resend(webhookId: string, id: string): Promise<boolean> {
    const rows = await this.#sql`
      update webhook_deliveries d
      set next_at = ${this.#at()}, wanted_at = ${this.#at()}, attempts = 0, delivered_at = null, given_up_at = null
      from webhooks w
      where d.id = ${id} and d.webhook_id = ${webhookId} and d.next_at is null
        and w.id = d.webhook_id and w.disabled_at is null and ${waiting(this.#sql)} < ${OF_EVENTS.waiting}
      returning d.id`;
    return rows.length === 1;
  }

  async forget(): Promise<number> {
    const { count } = await this.#sql`
      delete from webhook_deliveries where id in (
        select id from webhook_deliveries where created_at < ${this.#at(-KEPT_MS)} order by created_at
        limit ${DELIVERIES_FORGOTTEN_AT_ONCE} for update skip locked
      )`;
    return count;
  }

  #at(inMs = 0): string {
    return new Date(this.#nowMs() + inMs).toISOString();
  }
}

/** Sends what is due. */
class Courier {
  readonly #sql: Database;
  readonly #parts: OutboxParts;
  readonly #running = new Set<Promise<void>>();
  #closed = false;

  constructor(sql: Database, parts: OutboxParts) {
    this.#sql = sql;
    this.#parts = parts;
  }

  async send(): Promise<number> {
    let begun = 0;
    while (!this.#closed && this.#running.size < AT_ONCE) {
      const claimed = await this.#claim();
      if (claimed === undefined) break;
      begun += 1;
      const working = this.#work(claimed);
      this.#running.add(working);
      void working.finally(() => this.#running.delete(working));
    }
    return begun;
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.idle();
  }

  /** Sends one thing after the other until nothing is due. */
  async #work(first: Claimed): Promise<void> {
    for (let claimed: Claimed | undefined = first; claimed !== undefined; ) {
      const { id: deliveryId, webhook_id: webhookId, attempts }: Claimed = claimed;
      try {
        await this.#settle(claimed, await this.#attempt(claimed));
        claimed = this.#closed ? undefined : await this.#claim();
      } catch (error) {
        // What fails here is the database, as a rule: the lease ends, and another round goes on.
        const { code } = error as { code?: unknown };
        const result = typeof code === 'string' ? code : 'error';
        this.#parts.report({ outcome: 'unnoted', webhookId, deliveryId, attempts, result });
        return;
      }
    }
  }

  /** Takes a webhook that has something due, and of that the oldest. Those that were served last come last. */
  async #claim(): Promise<Claimed | undefined> {
    const [now, leased] = [this.#at(), this.#at(LEASE_MS)];
    const [claimed] = await this.#sql<Claimed[]>`
      with hook as (
        select w.id from webhooks w
        where w.disabled_at is null and (w.not_before is null or w.not_before <= ${now})
          and exists (select 1 from webhook_deliveries d where d.webhook_id = w.id and d.next_at <= ${now})
        order by w.not_before nulls first limit 1 for no key update skip locked
      ), held as (
        update webhooks w set not_before = ${leased} from hook where w.id = hook.id
        returning w.id, w.url, w.email, w.failures, w.failing_since, w.sealed_secret,
                  case when w.before_until > ${now} then w.sealed_secret_before end as sealed_secret_before
      ), due as (
        select d.id from webhook_deliveries d join held on held.id = d.webhook_id
        where d.next_at <= ${now} order by d.next_at, d.created_at, d.id limit 1 for no key update of d
      )
      update webhook_deliveries d set attempts = d.attempts + 1, next_at = ${leased}
      from due, held where d.id = due.id
      returning d.id, d.webhook_id, d.body, d.attempts, d.wanted_at, held.url, held.email,
                held.failures, held.failing_since, held.sealed_secret, held.sealed_secret_before`;
    return claimed;
  }

  async #attempt(claimed: Claimed): Promise<Sent> {
    const { id, body, url, attempts, webhook_id: webhookId } = claimed;
    const { seal, sender, nowMs } = this.#parts;
    // The attempts before were cut short, each by the end of its process.
    if (attempts > MAX_ATTEMPTS) return { outcome: 'failed', result: 'no attempt ended' };
    const [current, before] = [claimed.sealed_secret, claimed.sealed_secret_before].map((sealed) =>
      sealed === null ? null : openOrNull(seal, webhookId, sealed),
    );
    // Without the one of before its receiver still has the current one to verify by.
    if (typeof current !== 'string') return { outcome: 'failed', result: 'secret lost' };
    const secrets = typeof before === 'string' ? [current, before] : [current];
    return sender.send({ id, body, url, secrets }, nowMs());
  }

  /** Notes what became of it. Only who claimed it last decides what comes next; but what was taken, was taken. */
  async #settle(claimed: Claimed, sent: Sent): Promise<void> {
    const { id, attempts, webhook_id: webhookId } = claimed;
    const about = { webhookId, deliveryId: id, attempts, result: sent.result };
    const { report } = this.#parts;
    if (sent.outcome === 'taken') {
      await this.#noteTaken(claimed, sent.result);
      return report({ outcome: 'taken', ...about });
    }
    const { next, off } = this.#afterFailure(claimed, sent.outcome);
    const noted = await this.#sql.begin((transaction) =>
      this.#noteFailed(transaction, claimed, { result: sent.result, next, off }),
    );
    if (!noted) return;
    report({ outcome: sent.outcome, ...about });
    if (next === null) report({ outcome: 'given-up', ...about });
    if (off !== null) report({ outcome: 'switched-off', ...about });
  }

  /** The webhook is held before its delivery here, as it is in every other statement: so none waits for another in a circle. */
  async #noteTaken({ id, webhook_id: webhookId }: Claimed, result: string): Promise<void> {
    await this.#sql`
      with hook as (
        update webhooks set failures = 0, failing_since = null, not_before = ${this.#at()}
        where id = ${webhookId} returning id
      )
      update webhook_deliveries d
      set delivered_at = ${this.#at()}, next_at = null, given_up_at = null, last_result = ${result}
      from hook where d.id = ${id} and d.webhook_id = hook.id`;
  }

  /** When it is sent again, and whether its receiver is asked anything any more. */
  #afterFailure(
    { attempts, wanted_at: wantedAt, failing_since: failingSince }: Claimed,
    outcome: 'gone' | 'failed',
  ): { next: string | null; off: 'gone' | 'failing' | null } {
    if (outcome === 'gone') return { next: null, off: 'gone' };
    const nowMs = this.#parts.nowMs();
    const pauseMs = BACK_OFF_MS[attempts - 1];
    const tooOld = nowMs - wantedAt.getTime() + (pauseMs ?? 0) > MAX_AGE_MS;
    const failedForMs = nowMs - (failingSince?.getTime() ?? nowMs);
    return {
      next: pauseMs === undefined || tooOld ? null : this.#at(pauseMs),
      off: failedForMs >= SWITCHED_OFF_AFTER_MS ? 'failing' : null,
    };
  }

  /** @returns whether it was this claim's to note */
  async #noteFailed(
    transaction: Transaction,
    claimed: Claimed,
    { result, next, off }: { result: string; next: string | null; off: 'gone' | 'failing' | null },
  ): Promise<boolean> {
    const { id, attempts, webhook_id: webhookId, failures } = claimed;
    const restMs = REST_MS[Math.min(failures, REST_MS.length - 1)] ?? MINUTE_MS;
    await transaction`select 1 from webhooks where id = ${webhookId} for no key update`;
    const rows = await transaction`
      update webhook_deliveries
      set next_at = ${next}, given_up_at = ${next === null ? this.#at() : null}, last_result = ${result}
      where id = ${id} and attempts = ${attempts} and next_at is not null returning id`;
    if (rows.length === 0) return false;
    await transaction`
      update webhooks set failures = least(failures + 1, 1000), not_before = ${this.#at(restMs)},
        failing_since = coalesce(failing_since, ${this.#at()})
      where id = ${webhookId}`;
    if (off !== null) {
      await switchOff(transaction, webhookId, off, this.#at());
      await this.#tellByMail(transaction, claimed, off);
    }
    return true;
  }

  async #tellByMail(transaction: Transaction, claimed: Claimed, off: 'gone' | 'failing'): Promise<void> {
    if (claimed.email === null) return;
    const { mailer, baseUrl } = this.#parts;
    const why =
      off === 'gone'
        ? 'Its receiver answered 410: it wants no more.'
        : 'Its receiver took nothing for three days.';
    // One a day for each recipient: who switches on what answers 410, again and again, floods nobody's mailbox.
    const day = this.#at().slice(0, 10);
    await mailer.enqueue(transaction, {
      id: transferIdFor(`mail:webhook-off:${claimed.email.toLowerCase()}:${day}`),
      to: claimed.email,
      subject: 'A webhook was switched off',
      text: `The webhook to ${new URL(claimed.url).host} gets no more messages. ${why}\n\nSwitch it on again at ${baseUrl}/keys, where its deliveries are listed and can be sent again. If others are switched off on the same day, no further mail says so.`,
    });
  }

  #at(inMs = 0): string {
    return new Date(this.#parts.nowMs() + inMs).toISOString();
  }
}

/** What a webhook `w` has waiting, counted no further than the bound. */
function waiting(on: Database | Transaction) {
  return on`(select count(*) from (
    select 1 from webhook_deliveries o where o.webhook_id = w.id and o.next_at is not null limit ${OF_EVENTS.waiting}
  ) waiting)`;
}

function openOrNull(seal: Seal, webhookId: string, sealed: string): string | null {
  try {
    return seal.open(sealedFor(webhookId), sealed);
  } catch {
    return null;
  }
}

/** All of an account's webhooks, or one. */
type Which = { accountId: bigint } | { webhookId: string };
