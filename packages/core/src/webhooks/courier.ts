/**
 * The sending of messages: at least once, with the same id. A process takes a webhook for itself by a lease that outlasts
 * what it sends in one turn; when that process dies, the lease ends and another goes on. A receiver that answers well gets
 * several messages at once. One that failed is asked one thing at a time, rests in between, and keeps nobody else waiting.
 */
import type { Database, Transaction } from '../db/connection.ts';
import { type Held, LeasedQueue, type QueueShape, type WatchedQueue } from '../db/leased-queue.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import type { Mailer } from '../mail/mailer.ts';
import { type FormerSecret, type Seal, sealedFor, stillSigning } from './secret.ts';
import type { Sender, Sent } from './send.ts';
import { switchOff } from './webhooks.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Pauses after the first attempt, the second, and so on: about three days in all, as the standard proposes. */
const BACK_OFF_MS = [
  ...[5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 5 * HOUR_MS],
  ...[10 * HOUR_MS, 14 * HOUR_MS, 20 * HOUR_MS, 24 * HOUR_MS],
];
/** The age at which a delivery is given up, however few attempts it had. */
const MAX_AGE_MS = 4 * DAY_MS;
/** A receiver that failed is left alone: after one failure in a row, after two, after more. */
const REST_MS = [5 * SECOND_MS, 15 * SECOND_MS, MINUTE_MS];
/** A receiver that took nothing for so long is asked no more. */
const SWITCHED_OFF_AFTER_MS = 3 * DAY_MS;
/** A receiver that is back after so long gets all that waits at once. */
const OUTAGE_MS = MINUTE_MS;
/** Webhooks that one process serves at once. */
const WEBHOOKS_AT_ONCE = 32;
/** Messages that a receiver without failures gets in one turn, and how many of them at once. */
const IN_A_TURN = 32;
const AT_ONCE = 8;
const QUEUE: QueueShape = {
  name: 'webhook-messages',
  table: 'webhook_deliveries',
  key: ['id'],
  columns: ['webhook_id', 'body', 'wanted_at'],
  attempts: 'attempts',
  // Longer than a turn can take: four rounds of 10 s, and its two statements.
  leaseMs: MINUTE_MS,
  backOffMs: (attempts) => BACK_OFF_MS[attempts - 1] ?? 0,
  mostAttempts: BACK_OFF_MS.length + 1,
  settled: 'kept',
  givenUpAt: 'given_up_at',
  since: 'wanted_at',
};

export interface CourierReport {
  /** `unnoted`: what became of an attempt could not be written down, and it is sent again; or the next was not found. */
  outcome: Sent['outcome'] | 'given-up' | 'switched-off' | 'unnoted';
  webhookId: string;
  deliveryId: string;
  attempts: number;
  result: string;
}

export interface CourierParts {
  sender: Pick<Sender, 'send'>;
  seal: Seal;
  mailer: Pick<Mailer, 'enqueue'>;
  baseUrl: string;
  /** How long messages are kept. */
  retentionDays: number;
  nowMs(): number;
  report(report: CourierReport): void;
}

interface Claimed {
  id: string;
  body: string;
  wanted_at: Date;
  webhook_id: string;
  url: string;
  email: string | null;
  failures: number;
  failing_since: Date | null;
  sealed_secret: string;
  former_secrets: FormerSecret[];
}

/** One turn of sending to a webhook. */
interface Turn {
  hook: Held<Claimed>;
  messages: readonly Held<Claimed>[];
  /** The end of its lease, in ISO 8601: stands in the webhook and in each of the messages. */
  leasedUntil: string;
}

/** A message of a turn, and what became of it; null: it was not sent, because one before it failed. */
interface Tried {
  message: Held<Claimed>;
  sent: Sent | null;
}

/** An attempt that ended. */
interface Ended {
  message: Held<Claimed>;
  sent: Sent;
}

type Failed = Ended & AfterFailure;

/** The consequence of a failed attempt. */
interface AfterFailure {
  /** Whether it is not sent again. */
  isOver: boolean;
  off: 'gone' | 'failing' | null;
}

/** Sends what is due. */
export class Courier {
  readonly #sql: Database;
  readonly #parts: CourierParts;
  readonly #queue: LeasedQueue<Claimed>;
  readonly #running = new Set<Promise<void>>();
  #closed = false;

  constructor(sql: Database, parts: CourierParts) {
    this.#sql = sql;
    this.#parts = parts;
    this.#queue = new LeasedQueue(sql, QUEUE, parts.nowMs);
  }

  /** The messages that wait. */
  get queue(): WatchedQueue {
    return this.#queue;
  }

  async send(): Promise<number> {
    let begun = 0;
    while (!this.#closed && this.#running.size < WEBHOOKS_AT_ONCE) {
      const turn = await this.#claim();
      if (turn === null) break;
      begun += 1;
      const working = this.#work(turn);
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

  /** Sends one turn after the other until nothing is due. */
  async #work(first: Turn): Promise<void> {
    for (let turn: Turn | null = first; turn !== null; ) {
      const { id: deliveryId, webhook_id: webhookId, heldAttempts: attempts }: Held<Claimed> = turn.hook;
      try {
        await this.#settle(turn, await this.#sendAll(turn));
        turn = this.#closed ? null : await this.#claim();
      } catch (error) {
        // What fails here is the database, as a rule: the lease ends, and another round goes on.
        const { code } = error as { code?: unknown };
        const result = typeof code === 'string' ? code : 'error';
        this.#parts.report({ outcome: 'unnoted', webhookId, deliveryId, attempts, result });
        return;
      }
    }
  }

  /**
   * Takes a webhook that has something due, and the oldest of that: one message if its receiver has failed, else a turn's
   * worth. Webhooks that were served last come last.
   */
  async #claim(): Promise<Turn | null> {
    const [now, leasedUntil] = [this.#at(), this.#queue.leaseEnd()];
    const claimed = await this.#sql<Claimed[]>`
      with hook as (
        select w.id from webhooks w
        where w.disabled_at is null and (w.not_before is null or w.not_before <= ${now})
          and exists (select 1 from webhook_deliveries d where d.webhook_id = w.id and d.next_at <= ${now})
        order by w.not_before nulls first limit 1 for no key update skip locked
      ), held as (
        update webhooks w set not_before = ${leasedUntil} from hook where w.id = hook.id
        returning w.id, w.url, w.email, w.failures, w.failing_since, w.sealed_secret, w.former_secrets
      ), due as (
        select d.id from webhook_deliveries d join held on held.id = d.webhook_id
        where d.next_at <= ${now} order by d.next_at, d.created_at, d.id
        limit (select case when failures = 0 then ${IN_A_TURN}::integer else 1 end from held) for no key update of d
      )
      update webhook_deliveries d set attempts = d.attempts + 1, next_at = ${leasedUntil}
      from due, held where d.id = due.id
      returning d.id, d.webhook_id, d.body, d.attempts, d.wanted_at, held.url, held.email,
                held.failures, held.failing_since, held.sealed_secret, held.former_secrets`;
    const messages = claimed.map((message) => this.#queue.held(message, leasedUntil));
    const [hook] = messages;
    return hook === undefined ? null : { hook, messages, leasedUntil };
  }

  /** Sends a turn's messages, several at once, until one of them fails. */
  async #sendAll({ messages }: Turn): Promise<Tried[]> {
    const tried: Tried[] = messages.map((message) => ({ message, sent: null }));
    let next = 0;
    let failed = false;
    const lane = async (): Promise<void> => {
      for (let each = tried[next]; each !== undefined && !failed; each = tried[next]) {
        next += 1;
        each.sent = await this.#attempt(each.message);
        if (each.sent.outcome !== 'taken') failed = true;
      }
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, messages.length) }, lane));
    return tried;
  }

  async #attempt(claimed: Held<Claimed>): Promise<Sent> {
    const { id, body, url, webhook_id: webhookId } = claimed;
    const { seal, sender, nowMs } = this.#parts;
    // The attempts before were cut short, each by the end of its process.
    if (this.#queue.isSpent(claimed)) return { outcome: 'failed', result: 'no attempt ended' };
    const open = (sealed: string) => openOrNull(seal, webhookId, sealed);
    const current = open(claimed.sealed_secret);
    if (current === null) return { outcome: 'failed', result: 'secret lost' };
    const at = nowMs();
    // A replaced secret that cannot be opened does not sign: receivers accept any one of the signatures.
    const former = stillSigning(claimed.former_secrets, at).flatMap(({ sealed }) => open(sealed) ?? []);
    return sender.send({ id, body, url, secrets: [current, ...former] }, at);
  }

  /**
   * Notes what became of a turn. Only the holder of the latest lease decides what comes next. A success is noted by any
   * holder, because the message has arrived.
   */
  async #settle(turn: Turn, tried: readonly Tried[]): Promise<void> {
    const taken = tried.flatMap(({ message, sent }) =>
      sent?.outcome === 'taken' ? [{ message, sent }] : [],
    );
    const failed = tried.flatMap(({ message, sent }) =>
      sent === null || sent.outcome === 'taken'
        ? []
        : [{ message, sent, ...this.#afterFailure(message, sent.outcome, taken.length > 0) }],
    );
    const unsent = tried.flatMap(({ message, sent }) => (sent === null ? [message] : []));
    const noted = await this.#sql.begin(async (transaction) => {
      // The webhook is held before its deliveries here, as in every other statement: so none waits for another in a circle.
      const [hook] = await transaction<{ not_before: Date | null }[]>`
        select not_before from webhooks where id = ${turn.hook.webhook_id} for no key update`;
      if (hook === undefined) return [];
      const isHolder = hook.not_before?.getTime() === Date.parse(turn.leasedUntil);
      for (const each of taken) await this.#noteTaken(transaction, each);
      if (!isHolder) return [];
      if (taken.length > 0) await this.#noteAnswering(transaction, turn);
      return this.#noteFailing(transaction, turn, { failed, unsent });
    });
    this.#reportAll(taken, noted);
  }

  async #noteTaken(transaction: Transaction, { message, sent }: Ended): Promise<void> {
    const set = { delivered_at: this.#at(), last_result: sent.result };
    await this.#queue.settle(message, { set, on: transaction, isFact: true });
  }

  /** Its receiver takes messages. If it is back after an outage, all that waits for a later attempt is due now. */
  async #noteAnswering(transaction: Transaction, { hook }: Turn): Promise<void> {
    await transaction`
      update webhooks set failures = 0, failing_since = null, not_before = ${this.#at()} where id = ${hook.webhook_id}`;
    const failedForMs = this.#parts.nowMs() - (hook.failing_since?.getTime() ?? this.#parts.nowMs());
    // A shorter pause may be of one message that its receiver refuses while it takes others.
    if (failedForMs < OUTAGE_MS) return;
    await transaction`
      update webhook_deliveries set next_at = ${this.#at()}
      where webhook_id = ${hook.webhook_id} and next_at > ${this.#at()}`;
  }

  /**
   * Its receiver failed: it rests, and what was not sent waits as if it had not been claimed.
   *
   * @returns those that it noted: not what has been given up or made due for another meanwhile
   */
  async #noteFailing(
    transaction: Transaction,
    turn: Turn,
    { failed, unsent }: { failed: readonly Failed[]; unsent: readonly Held<Claimed>[] },
  ): Promise<readonly Failed[]> {
    const { webhook_id: webhookId } = turn.hook;
    const noted: Failed[] = [];
    for (const each of failed) if (await this.#noteFailed(transaction, each)) noted.push(each);
    await this.#queue.giveBack(unsent, transaction);
    if (noted.length === 0) return noted;
    const [{ failures = 0 } = {}] = await transaction<{ failures: number }[]>`
      update webhooks set failures = least(failures + 1, 1000), failing_since = coalesce(failing_since, ${this.#at()})
      where id = ${webhookId} returning failures`;
    const restMs = REST_MS[Math.min(failures - 1, REST_MS.length - 1)] ?? MINUTE_MS;
    await transaction`update webhooks set not_before = ${this.#at(restMs)} where id = ${webhookId}`;
    const off = noted.find((each) => each.off !== null)?.off ?? null;
    if (off === null) return noted;
    await switchOff(transaction, webhookId, off, this.#at());
    await this.#tellByMail(transaction, turn.hook, off);
    return noted;
  }

  /** @returns false when the message has passed to another, or waits no more */
  async #noteFailed(transaction: Transaction, { message, sent, isOver }: Failed): Promise<boolean> {
    const change = { set: { last_result: sent.result }, on: transaction };
    return isOver ? this.#queue.giveUp(message, change) : this.#queue.backOff(message, change);
  }

  #reportAll(taken: readonly Ended[], failed: readonly Failed[]): void {
    const { report } = this.#parts;
    const about = ({ message, sent }: Ended) => ({
      webhookId: message.webhook_id,
      deliveryId: message.id,
      attempts: message.heldAttempts,
      result: sent.result,
    });
    for (const each of taken) report({ outcome: 'taken', ...about(each) });
    for (const each of failed) {
      report({ outcome: each.sent.outcome, ...about(each) });
      if (each.isOver) report({ outcome: 'given-up', ...about(each) });
      if (each.off !== null) report({ outcome: 'switched-off', ...about(each) });
    }
  }

  /** When a message is sent again, and whether its receiver is asked anything any more. */
  #afterFailure(message: Held<Claimed>, outcome: 'gone' | 'failed', answersOthers: boolean): AfterFailure {
    if (outcome === 'gone') return { isOver: true, off: 'gone' };
    const { wanted_at: wantedAt, failing_since: failingSince } = message;
    const nowMs = this.#parts.nowMs();
    const pauseMs = this.#queue.mayTryAgain(message) ? QUEUE.backOffMs(message.heldAttempts) : null;
    const tooOld = nowMs - wantedAt.getTime() + (pauseMs ?? 0) > MAX_AGE_MS;
    const failedForMs = answersOthers ? 0 : nowMs - (failingSince?.getTime() ?? nowMs);
    return {
      isOver: pauseMs === null || tooOld,
      off: failedForMs >= SWITCHED_OFF_AFTER_MS ? 'failing' : null,
    };
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

function openOrNull(seal: Seal, webhookId: string, sealed: string): string | null {
  try {
    return seal.open(sealedFor(webhookId), sealed);
  } catch {
    return null;
  }
}
