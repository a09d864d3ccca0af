/** The messages of webhooks: what waits to be sent, what became of it, and what its owner has sent again. */
import type { Database, Transaction } from '../db/connection.ts';
import type { WatchedQueue } from '../db/leased-queue.ts';
import { Courier, type CourierParts } from './courier.ts';
import { TEST_EVENT, testMessage } from './events.ts';
import { missedBy } from './missed.ts';
import { cursorOf, type Page, pageOf, placeOf } from './page.ts';

const DAY_MS = 86_400_000;
/** In one call of `forget`. */
export const DELIVERIES_FORGOTTEN_AT_ONCE = 5_000;
/** Messages that may wait for a webhook, and be written for it in a day. The trigger on `account_events` has the same bounds. */
const MOST_WAITING = 1_000;
const EVENTS_A_DAY = 1_500;
/** Test messages find no more room once so many wait, or so many messages were written in a day. */
const TESTS_WAITING = 20;
const TESTS_A_DAY = 500;

/** One message for one webhook, as its owner sees it. */
export interface Delivery {
  id: string;
  eventId: string | null;
  type: string;
  body: string;
  createdAt: Date;
  attempts: number;
  nextAt: Date | null;
  deliveredAt: Date | null;
  givenUpAt: Date | null;
  lastResult: string | null;
}

/** The deliveries that `recover` has put in the queue. */
export interface Recovered {
  /** Events that no message had been written for. */
  missed: number;
  /** Messages that had been given up. */
  givenUp: number;
  /** Whether there is more than the queue has room for. */
  more: boolean;
}

export interface Outbox {
  /** The messages that wait. */
  readonly queue: WatchedQueue;
  /** A message whose only end is to be received. @returns its id; null: enough wait already, or were written in a day */
  test(webhookId: string): Promise<string | null>;
  /** Begins to send what is due, as much as may be sent at once. @returns how many webhooks it began to serve */
  send(): Promise<number>;
  /** The deliveries of a webhook, newest first. @param before a cursor of `page.ts`, or null for the first page */
  list(webhookId: string, before?: string | null, limit?: number): Promise<Page<Delivery>>;
  /** Sends a delivery anew, with the id that it has. @returns whether there is one that is not waiting anyway, and room for it */
  resend(webhookId: string, id: string): Promise<boolean>;
  /**
   * Puts into the queue what a webhook has not got since a time: first the events that no message was written for, then the
   * messages that were given up, the oldest first.
   *
   * @returns null when the webhook is off or gone
   */
  recover(webhookId: string, sinceMs: number): Promise<Recovered | null>;
  /** Forgets the oldest, sent or not, and says how many. */
  forget(): Promise<number>;
  /** Settles when what is being sent has ended. */
  idle(): Promise<void>;
  /** Begins nothing more, and waits for what was begun. */
  close(): Promise<void>;
}

export function createOutbox(sql: Database, parts: CourierParts): Outbox {
  const queue = new Queue(sql, parts.nowMs, parts.retentionDays);
  const courier = new Courier(sql, parts);
  return {
    queue: courier.queue,
    test: (webhookId) => queue.test(webhookId),
    list: (webhookId, before = null, limit = 50) => queue.list(webhookId, before, limit),
    resend: (webhookId, id) => queue.resend(webhookId, id),
    recover: (webhookId, sinceMs) => queue.recover(webhookId, sinceMs),
    forget: () => queue.forget(),
    send: () => courier.send(),
    idle: () => courier.idle(),
    close: () => courier.close(),
  };
}

class Queue {
  readonly #sql: Database;
  readonly #nowMs: () => number;
  readonly #retentionDays: number;

  constructor(sql: Database, nowMs: () => number, retentionDays: number) {
    this.#retentionDays = retentionDays;
    this.#sql = sql;
    this.#nowMs = nowMs;
  }

  async test(webhookId: string): Promise<string | null> {
    const at = this.#at();
    const rows = await this.#sql<{ id: string }[]>`
      insert into webhook_deliveries (id, webhook_id, type, body, created_at, wanted_at, next_at)
      select gen_random_uuid(), w.id, ${TEST_EVENT}, ${testMessage(this.#nowMs())}, ${at}, ${at}, ${at} from webhooks w
      where w.id = ${webhookId} and w.disabled_at is null
        and ${waiting(this.#sql)} < ${TESTS_WAITING}
        and (select count(*) from (
              select 1 from webhook_deliveries d where d.webhook_id = w.id and d.created_at > ${this.#at(-DAY_MS)}
              limit ${TESTS_A_DAY}
            ) of_the_day) < ${TESTS_A_DAY}
      -- Its owner may be deleting it: nobody waits for that.
      for key share of w skip locked
      returning id`;
    return rows[0]?.id ?? null;
  }

  async list(webhookId: string, before: string | null, limit: number): Promise<Page<Delivery>> {
    const rows = await this.#sql<(Delivery & { cursor: string })[]>`
      select id, event_id as "eventId", type, body, created_at as "createdAt", attempts, next_at as "nextAt",
             delivered_at as "deliveredAt", given_up_at as "givenUpAt", last_result as "lastResult",
             ${cursorOf(this.#sql)} as cursor
      from webhook_deliveries where webhook_id = ${webhookId}
        and ${before === null ? this.#sql`true` : this.#sql`(created_at, id) < ${placeOf(this.#sql, before)}`}
      order by created_at desc, id desc limit ${limit + 1}`;
    return pageOf(rows, limit);
  }

  async resend(webhookId: string, id: string): Promise<boolean> {
    const rows = await this.#sql`
      update webhook_deliveries d
      set next_at = ${this.#at()}, wanted_at = ${this.#at()}, attempts = 0, delivered_at = null, given_up_at = null
      from webhooks w
      where d.id = ${id} and d.webhook_id = ${webhookId} and d.next_at is null
        and w.id = d.webhook_id and w.disabled_at is null and ${waiting(this.#sql)} < ${MOST_WAITING}
      returning d.id`;
    return rows.length === 1;
  }

  async recover(webhookId: string, sinceMs: number): Promise<Recovered | null> {
    const since = new Date(sinceMs).toISOString();
    return this.#sql.begin(async (transaction) => {
      // Of two at once the second finds what the first put in.
      const [hook] = await transaction<{ waiting: number }[]>`
        select ${waiting(transaction)}::integer as waiting from webhooks w
        where w.id = ${webhookId} and w.disabled_at is null for no key update of w`;
      if (hook === undefined) return null;
      const room = Math.max(0, MOST_WAITING - hook.waiting);
      const missed = await transaction`
        insert into webhook_deliveries (id, webhook_id, event_id, type, body, created_at, wanted_at, next_at)
        select gen_random_uuid(), w.id, e.id, e.type,
               jsonb_build_object(
                 'type', e.type,
                 'timestamp', to_char(e.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                 'eventId', e.id, 'data', e.data)::text,
               e.created_at, ${this.#at()}, ${this.#at()}
        from webhooks w join account_events e on ${missedBy(transaction)}
        where w.id = ${webhookId} and e.created_at >= ${since}
        order by e.created_at limit ${room}
        returning id`;
      const again = await transaction`
        update webhook_deliveries
        set next_at = ${this.#at()}, wanted_at = ${this.#at()}, attempts = 0, given_up_at = null
        where id in (
          select id from webhook_deliveries
          where webhook_id = ${webhookId} and given_up_at is not null and created_at >= ${since}
          order by created_at limit ${room - missed.length})
        returning id`;
      const [left] = await transaction`
        select 1 from webhook_deliveries
        where webhook_id = ${webhookId} and given_up_at is not null and created_at >= ${since}
        union all
        select 1 from webhooks w join account_events e on ${missedBy(transaction)}
        where w.id = ${webhookId} and e.created_at >= ${since}
        limit 1`;
      return { missed: missed.length, givenUp: again.length, more: left !== undefined };
    });
  }

  async forget(): Promise<number> {
    const { count } = await this.#sql`
      delete from webhook_deliveries where id in (
        select id from webhook_deliveries where created_at < ${this.#at(-this.#retentionDays * DAY_MS)} order by created_at
        limit ${DELIVERIES_FORGOTTEN_AT_ONCE} for update skip locked
      )`;
    return count;
  }

  #at(inMs = 0): string {
    return new Date(this.#nowMs() + inMs).toISOString();
  }
}

/** Whether the trigger on `account_events` would write a message for a webhook `w`: its bounds, for an event not about money. */
export function hasRoom(on: Database | Transaction, at: string) {
  return on`(${waiting(on)} < ${MOST_WAITING} and (select count(*) from (
    select 1 from webhook_deliveries d
    where d.webhook_id = w.id and d.created_at > ${at}::timestamptz - interval '1 day' limit ${EVENTS_A_DAY}
  ) of_the_day) < ${EVENTS_A_DAY})`;
}

/** The number of messages that wait for a webhook `w`, counted no further than the bound. */
function waiting(on: Database | Transaction) {
  return on`(select count(*) from (
    select 1 from webhook_deliveries o where o.webhook_id = w.id and o.next_at is not null limit ${MOST_WAITING}
  ) waiting)`;
}
