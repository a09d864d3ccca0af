/**
 * Receives the card provider's messages. Each is written down and answered at once; it is worked later, and means no
 * more than that somebody should look at an order. So a flood of messages about one order is one look, and what was
 * missed while we were away is found in the provider's own list of events.
 */
import type { Database } from '../../db/connection.ts';
import { type Held, LeasedQueue, type QueueShape, type WatchedQueue } from '../../db/leased-queue.ts';
import { type CardProvider, concernsOrders, type EventRef, ProviderUnavailable } from '../provider.ts';
import { passesByItself } from '../stripe/asking.ts';
import type { ForgottenOrders } from './forgotten-orders.ts';
import type { OrderStore } from './orders.ts';
import type { OrderReconciler } from './reconcile.ts';
import { eachOf } from './sweep.ts';

/** In one call of `work`. */
export const EVENTS_AT_ONCE = 200;
/** In one call of `forget`. */
export const EVENTS_FORGOTTEN_AT_ONCE = 5_000;
const LOOKS_AT_ONCE = 4;
const LONGEST_WAIT_MS = 3_600_000;
const QUEUE: QueueShape = {
  name: 'card-events',
  table: 'card_events',
  key: ['id'],
  columns: ['type', 'order_id', 'session_id', 'payment_intent_id'],
  attempts: 'attempts',
  leaseMs: 60_000,
  backOffMs: (attempts) => Math.min(1_000 * 2 ** attempts, LONGEST_WAIT_MS),
  mostAttempts: 12,
  settled: 'kept',
  givenUpAt: null,
  since: 'received_at',
};
/** The provider keeps its events for thirty days. */
const OLDEST_MS = 30 * 86_400_000;
/** Events may be listed a little later than they happened. */
const OVERLAP_MS = 10 * 60_000;
/** So much of the list is read at once: what was read before an error need not be read again. */
const READ_AT_ONCE_MS = 6 * 3_600_000;
/** Banks take disputes up to four months after a payment, and some for longer. */
const DISPUTED_WITHIN_MS = 180 * 86_400_000;
const KEPT_MS = 35 * 86_400_000;

export interface Inbox {
  /** The events that nobody has worked yet. */
  readonly queue: WatchedQueue;
  /** Writes an event down, unless it is there. @returns whether it is new */
  receive(event: EventRef): Promise<boolean>;
  /** Works what waits. @returns how many events that was */
  work(stopping?: AbortSignal): Promise<number>;
  /**
   * Reads the provider's list from where it was last read. What `stopping` keeps from being read is read by the next.
   *
   * @returns how many events were new
   */
  catchUp(stopping?: AbortSignal): Promise<number>;
  /** How many events nobody has worked yet. */
  waiting(): Promise<number>;
  /** Forgets what nobody can send again, some of it. @returns how many */
  forget(): Promise<number>;
}

interface EventRow {
  id: string;
  type: string;
  order_id: string | null;
  session_id: string | null;
  payment_intent_id: string | null;
}

export function createInbox(parts: {
  sql: Database;
  orders: OrderStore;
  provider: CardProvider;
  reconciler: OrderReconciler;
  forgotten: ForgottenOrders;
  nowMs(): number;
  onError(eventId: string, error: unknown): void;
  /** Told when the list no longer goes back to where it was last read; so many payments are looked at one by one. */
  onForgotten(payments: number): void;
}): Inbox {
  const { sql, orders, provider, reconciler, nowMs } = parts;
  const queue = new LeasedQueue<EventRow>(sql, QUEUE, nowMs);
  const iso = (ms: number) => new Date(ms).toISOString();

  async function later(event: Held<EventRow>, error: unknown): Promise<void> {
    if (!passesByItself(error)) parts.onError(event.id, error);
    const isOver = !queue.mayTryAgain(event) && !(error instanceof ProviderUnavailable);
    await (isOver ? queue.giveUp(event) : queue.backOff(event));
  }

  async function receive(event: EventRef): Promise<boolean> {
    if (!concernsOrders(event.type)) return false;
    const rows = await sql`
        insert into card_events (id, type, order_id, session_id, payment_intent_id, created_at, received_at,
                                 next_at)
        values (${event.id}, ${event.type}, ${event.orderId}, ${event.sessionId}, ${event.paymentIntentId},
                ${iso(event.createdAtMs)}, ${iso(nowMs())}, ${iso(nowMs())})
        on conflict (id) do nothing returning id`;
    return rows.length === 1;
  }

  return {
    queue,
    receive,

    async work(stopping) {
      const events = await queue.claim(EVENTS_AT_ONCE);
      const begun = new Set<Held<EventRow>>();
      const byOrder = new Map<string, Held<EventRow>[]>();
      const assign = async (event: Held<EventRow>) => {
        begun.add(event);
        try {
          const orderId = await orderOf(parts, event);
          if (orderId === null) return void (await queue.settle(event));
          await avert(provider, event);
          byOrder.set(orderId, [...(byOrder.get(orderId) ?? []), event]);
          begun.delete(event);
        } catch (error) {
          await later(event, error);
        }
      };
      const assigned = eachOf(events, LOOKS_AT_ONCE, assign, stopping);
      const look = async ([orderId, about]: [string, Held<EventRow>[]]) => {
        for (const event of about) begun.add(event);
        try {
          await reconciler.reconcile(orderId);
          await queue.settleAll(about);
        } catch (error) {
          for (const event of about) await later(event, error);
        }
      };
      // An event that could not be put off keeps nobody from the orders of the others.
      await assigned.catch(() => {});
      await eachOf([...byOrder], LOOKS_AT_ONCE, look, stopping).finally(() => assigned);
      // Only what was stopped is left over: it waits for nobody's lease.
      await queue.giveBack(events.filter((event) => !begun.has(event)));
      return events.length;
    },

    async catchUp(stopping) {
      const [cursor] = await sql<{ read_until: Date }[]>`select read_until from card_event_cursor`;
      const startedAtMs = nowMs();
      let readMs = cursor?.read_until.getTime() ?? startedAtMs;
      if (readMs < startedAtMs - OLDEST_MS) {
        // What the list has forgotten is found by looking at the payments themselves.
        parts.onForgotten(await orders.wakePaid(startedAtMs - DISPUTED_WITHIN_MS));
        readMs = startedAtMs - OLDEST_MS;
      }
      let isNew = 0;
      do {
        const sinceMs = readMs - OVERLAP_MS;
        readMs = Math.min(readMs + READ_AT_ONCE_MS, startedAtMs);
        const events = await provider.events(sinceMs, readMs < startedAtMs ? readMs : null);
        for (const event of events) {
          // Before the cursor: what is left of these events is read again.
          if (stopping?.aborted === true) return isNew;
          if (await receive(event)) isNew += 1;
        }
        await sql`
          insert into card_event_cursor (one, read_until) values (true, ${iso(readMs)})
          on conflict (one) do update set read_until = greatest(card_event_cursor.read_until, excluded.read_until)`;
      } while (readMs < startedAtMs && stopping?.aborted !== true);
      return isNew;
    },

    async waiting() {
      const [row] = await sql<{ waiting: number }[]>`
        select count(*)::integer as waiting from card_events where next_at is not null`;
      return row?.waiting ?? 0;
    },

    async forget() {
      const { count } = await sql`
        delete from card_events where id in (
          select id from card_events where received_at < ${iso(nowMs() - KEPT_MS)} and next_at is null
          order by received_at limit ${EVENTS_FORGOTTEN_AT_ONCE} for update skip locked)`;
      return count;
    },
  };
}

/** A payment that the card's bank takes for fraud goes back before it is disputed, which would cost a fee. */
async function avert(
  provider: CardProvider,
  { type, payment_intent_id: paymentIntentId }: EventRow,
): Promise<void> {
  if (type !== 'radar.early_fraud_warning.created' || paymentIntentId === null) return;
  if (!(await provider.isWarnedOf(paymentIntentId))) return;
  // The provider may have sent it back and not have told us so; it would go on not telling us.
  const payment = await provider.payment(paymentIntentId);
  if (payment === null || payment.reversedMicros >= payment.paidMicros) return;
  await provider.refund(paymentIntentId, null, `warned:${paymentIntentId}`, true);
}

/** Works the inbox as soon as something has come, without anybody waiting for it; one round at a time. */
export function workSoon(
  inbox: Pick<Inbox, 'receive' | 'work'>,
  onError: (error: unknown) => void,
): Pick<Inbox, 'receive'> & { close(): Promise<void> } {
  let working: Promise<void> | null = null;
  let moreCame = false;
  const stopping = new AbortController();

  async function work(): Promise<void> {
    while (moreCame && !stopping.signal.aborted) {
      moreCame = false;
      const worked = await inbox.work(stopping.signal).catch((error: unknown) => {
        onError(error);
        return 0;
      });
      // A flood is more than one round.
      if (worked > 0) moreCame = true;
    }
    working = null;
  }

  return {
    async receive(event) {
      const isNew = await inbox.receive(event);
      if (isNew) {
        moreCame = true;
        working ??= work();
      }
      return isNew;
    },
    /** Begins no more, and waits for what is under way. */
    async close() {
      stopping.abort();
      await working;
    },
  };
}

/** Finds the order that an event is about, also one that the database has forgotten. @returns null: none of ours */
async function orderOf(
  parts: { orders: OrderStore; provider: CardProvider; forgotten: ForgottenOrders },
  event: EventRow,
): Promise<string | null> {
  const { orders, provider, forgotten } = parts;
  if (event.order_id !== null)
    return (await orders.find(event.order_id))?.id ?? forgotten.rebuilt(event, event.order_id);
  if (event.session_id !== null) return (await orders.findBySession(event.session_id))?.id ?? null;
  const { payment_intent_id: paymentIntentId } = event;
  if (paymentIntentId === null) return null;
  const known = await orders.findByPayment(paymentIntentId);
  if (known !== null) return known.id;
  // A refund may be heard of before the payment that it is of.
  const named = (await provider.payment(paymentIntentId))?.orderId ?? null;
  return named === null ? null : ((await orders.find(named))?.id ?? forgotten.rebuilt(event, named));
}
