/**
 * The log of what happened to an account. Each event is one row, kept for thirty days whether or not a webhook took it; a
 * trigger on the table writes the messages of webhooks. Events about cards and refunds are added by triggers in the commit
 * that moves the money (`functions/`), all others here.
 */
import type { Database, Transaction } from '../db/connection.ts';
import type { EventType } from './events.ts';
import { cursorOf, type Page, pageOf, placeOf } from './page.ts';

const SECOND_MS = 1_000;
const DAY_MS = 86_400 * SECOND_MS;
/** Events in a day that are not about money. The log of an account takes no more of them. */
const A_DAY = 2_000;
/**
 * An event gets its time before its commit. A reader that goes forward is shown an event once every statement that could
 * still commit an earlier one has ended, so that none appears behind its cursor.
 */
const SETTLED_AFTER_MS = 30 * SECOND_MS;
/** In one call of `forget`. */
export const EVENTS_FORGOTTEN_AT_ONCE = 5_000;

/** One event, as the owner of its account sees it. */
export interface AccountEvent {
  id: string;
  type: string;
  data: object;
  createdAt: Date;
  /** Set: it concerns this webhook alone. */
  webhookId: string | null;
}

/** Which part of the log: newest first, optionally before a cursor; or oldest first after a cursor or a time. */
export type LogPart =
  | { order: 'newest'; before: string | null }
  | { order: 'oldest'; after: string }
  | { order: 'oldest'; sinceMs: number };

export interface EventLog {
  /** Adds an event of an account that one of its webhooks, on or off, wants to hear of. */
  add(on: Database | Transaction, accountId: bigint, type: EventType, data: object): Promise<void>;
  /**
   * Adds an event that concerns one webhook, which the transaction holds.
   *
   * @returns whether a message was written for the webhook; if not, nothing was added
   */
  addFor(on: Transaction, webhookId: string, type: EventType, data: object): Promise<boolean>;
  /** @param limit how many events at most */
  list(accountId: bigint, part: LogPart, limit: number): Promise<Page<AccountEvent>>;
  /** Forgets the oldest, and says how many. */
  forget(): Promise<number>;
}

/** @param retentionDays how long events are kept */
export function createEventLog(sql: Database, nowMs: () => number, retentionDays: number): EventLog {
  const at = (inMs = 0) => new Date(nowMs() + inMs).toISOString();

  return {
    async add(on, accountId, type, data) {
      await on`
        insert into account_events (account_id, type, data, about_money, created_at)
        select ${String(accountId)}, ${type}, ${JSON.stringify(data)}::text::jsonb, false, ${at()}
        where exists (
            select 1 from webhooks where account_id = ${String(accountId)} and ${type} = any (events))
          and (select count(*) from (
            select 1 from account_events
            where account_id = ${String(accountId)} and not about_money and created_at > ${at(-DAY_MS)} limit ${A_DAY}
          ) of_the_day) < ${A_DAY}`;
    },

    async addFor(on, webhookId, type, data) {
      const [added] = await on<{ id: string }[]>`
        insert into account_events (account_id, webhook_id, type, data, about_money, created_at)
        select account_id, id, ${type}, ${JSON.stringify(data)}::text::jsonb, false, ${at()}
        from webhooks where id = ${webhookId}
        returning id`;
      if (added === undefined) return false;
      const removed = await on`
        delete from account_events e where e.id = ${added.id}
          and not exists (select 1 from webhook_deliveries d where d.webhook_id = ${webhookId} and d.event_id = e.id)
        returning id`;
      return removed.length === 0;
    },

    async list(accountId, part, limit) {
      const rows = await sql<(AccountEvent & { cursor: string })[]>`
        select id, type, data, created_at as "createdAt", webhook_id as "webhookId",
               ${cursorOf(sql)} as cursor
        from account_events
        where account_id = ${String(accountId)} and ${whereOf(sql, part, at(-SETTLED_AFTER_MS))}
        ${part.order === 'newest' ? sql`order by created_at desc, id desc` : sql`order by created_at, id`}
        limit ${limit + 1}`;
      return pageOf(rows, limit);
    },

    async forget() {
      const { count } = await sql`
        delete from account_events where id in (
          select id from account_events where created_at < ${at(-retentionDays * DAY_MS)} order by created_at
          limit ${EVENTS_FORGOTTEN_AT_ONCE} for update skip locked
        )`;
      return count;
    },
  };
}

function whereOf(sql: Database, part: LogPart, settled: string) {
  if (part.order === 'newest')
    return part.before === null ? sql`true` : sql`(created_at, id) < ${placeOf(sql, part.before)}`;
  if ('after' in part) return sql`(created_at, id) > ${placeOf(sql, part.after)} and created_at < ${settled}`;
  return sql`created_at >= ${new Date(part.sinceMs).toISOString()} and created_at < ${settled}`;
}
