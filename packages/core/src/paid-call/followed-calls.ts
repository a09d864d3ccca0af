/**
 * Calls without an identity whose answer is followed until it has arrived. Their clients can neither name a purchase nor
 * always close a connection: those of MCP post a cancellation in a request of its own, which may reach another replica.
 *
 *   begun ─► cancelled before the charge: the work ends, and nothing is charged
 *         ─► charged ─► arrived: nobody gets this answer again
 *                    ─► lost, by a cancellation or a broken stream: the next same call of the same key gets it, once
 */
import { randomUUID } from 'node:crypto';
import { arrayLiteral } from '../db/array-literal.ts';
import { byKey } from '../db/by-key.ts';
import { type Database, isRefusal, type Pools } from '../db/connection.ts';
import { sqlFunction } from '../db/functions.ts';
import { createWeeks, type Weeks } from '../db/weeks.ts';
import { unavailable } from '../http/problem.ts';
import { GroupCommit, NoAnswerInTime, NotBegun, QueueFull } from '../ledger/group-commit.ts';

const BEGIN = sqlFunction('followed_calls_begin');
const ARRIVED = sqlFunction('followed_calls_arrived');

/** How long a charged answer that was lost on its way is kept for the next same call. */
export const LOST_ANSWER_MS = 600_000;
/** How long after an answer has left a cancellation still says that it did not arrive. */
const LATE_CANCELLATION_MS = 15_000;
/** How often a process looks for cancellations that reached another one, while it runs calls that can be cancelled. */
const LOOK_MS = 250;
/** How many calls go in one statement, and how many may wait for the next one. */
const BOUNDS = { maxBatch: 256, maxFlights: 1, maxWaiting: 10_000, maxAttempts: 3 };
/** How long a caller waits until its call is followed. */
const DEADLINE_MS = 4_000;

/** How a client names itself and one of its requests. */
export interface NamedRequest {
  /** Null when the client did not name itself. */
  client: string | null;
  requestId: string;
}

export interface CallToFollow {
  id: string;
  accountId: bigint;
  keyId: bigint;
  fingerprint: Buffer;
  /** Null when it cannot be cancelled. */
  request: NamedRequest | null;
  /** The longest that the call may take. */
  longestMs: number;
  /** Called when the call was cancelled, here or on another replica. */
  cancelled(): void;
}

/** One delivery of an answer. */
export interface Delivery {
  /** The charged answer that an earlier caller of the same call lost; null: there is none, and the call is to be sold. */
  lost: { callId: string; answeredAtMs: number } | null;
  /** Ends the delivery. False: the answer did not reach its caller, as far as can be seen here. */
  end(hasArrived: boolean): Promise<void>;
  /** Forgets a call that was not charged, or is paid back. */
  drop(): Promise<void>;
}

/** Calls back for those of this process's deliveries that were cancelled, here or on another replica. */
class Cancellations {
  readonly #sql: Database;
  readonly #watched = new Map<string, () => void>();
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(sql: Database) {
    this.#sql = sql;
  }

  watch(delivery: string, cancelled: () => void): void {
    this.#watched.set(delivery, cancelled);
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS).unref();
  }

  unwatch(delivery: string): void {
    this.#watched.delete(delivery);
    if (this.#watched.size === 0) this.close();
  }

  tell(deliveries: readonly { delivery: string }[]): void {
    for (const { delivery } of deliveries) {
      const cancelled = this.#watched.get(delivery);
      this.unwatch(delivery);
      cancelled?.();
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#watched.clear();
  }

  /** While the database is away no cancellation is found, and the calls go on. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      this.tell(
        await this.#sql<{ delivery: string }[]>`
          select delivery from followed_calls
          where delivery = any(${arrayLiteral([...this.#watched.keys()])}::text::uuid[]) and state = 1`,
      );
    } catch {
      // The next look will tell.
    } finally {
      this.#isLooking = false;
    }
  }
}

/** A call that begins to be followed. */
interface Beginning {
  call: CallToFollow;
  delivery: string;
  /** Whether it is followed even where an answer is owed to its caller. */
  isAnyway: boolean;
}

/** A delivery whose answer arrived. */
interface Arrival {
  delivery: string;
  callId: string;
}

export class FollowedCalls {
  readonly #sql: Database;
  readonly #nowMs: () => number;
  readonly #holder: () => bigint | null;
  readonly #cancellations: Cancellations;
  readonly #weeks: Weeks;
  /** Answers whether the caller is owed an answer, and its call is not followed. */
  readonly #beginnings = inBatches<Beginning, boolean>((batch) => this.#beginBatch(batch));
  readonly #arrivals = inBatches<Arrival, null>((batch) => this.#arriveBatch(batch));

  /** @param parts.holder this process, by its row in `replicas` */
  constructor(
    { sql, patient }: Pick<Pools, 'sql' | 'patient'>,
    parts: { nowMs(): number; holder(): bigint | null },
  ) {
    this.#sql = sql;
    this.#nowMs = parts.nowMs;
    this.#holder = parts.holder;
    this.#cancellations = new Cancellations(sql);
    this.#weeks = createWeeks({ sql, patient });
  }

  /**
   * Begins to follow a call, or to deliver what an earlier caller of the same call lost.
   *
   * @throws Problem 503 when too many wait, or the database does not answer
   */
  async begin(call: CallToFollow): Promise<Delivery> {
    const delivery = randomUUID();
    const isOwed = await this.#follow({ call, delivery, isAnyway: false });
    const lost = isOwed ? await this.#takeLost(call, delivery) : null;
    // Another caller was quicker.
    if (isOwed && lost === null) await this.#follow({ call, delivery, isAnyway: true });
    if (lost === null && call.request !== null) this.#cancellations.watch(delivery, call.cancelled);
    const callId = lost?.callId ?? call.id;
    return {
      lost,
      end: (hasArrived) => this.#end({ delivery, callId }, hasArrived),
      drop: () => this.#drop(delivery),
    };
  }

  /**
   * Cancels the call of a request, wherever it runs. Without the client's name a request is known by its id alone, and
   * cancelled only if a single call of the key has it.
   *
   * @returns whether there was such a call
   */
  async cancel(keyId: bigint, { client, requestId }: NamedRequest): Promise<boolean> {
    const cancelled = await this.#sql<{ delivery: string }[]>`
      with named as (
        select account_id, call_id from followed_calls
        where key_id = ${String(keyId)} and request_id = ${requestId} and state <> 1 and expires_at > ${this.#at(0)}
          and (${client}::text is null or client = ${client})
      )
      update followed_calls f set state = 1, expires_at = ${this.#at(LOST_ANSWER_MS)}
      from named n
      where f.account_id = n.account_id and f.call_id = n.call_id
        and (${client}::text is not null or (select count(*) from named) = 1)
      returning f.delivery`;
    this.#cancellations.tell(cancelled);
    return cancelled.length > 0;
  }

  /** Deletes what has expired, with its answers, at most `limit` of them. @returns how many were deleted */
  async dropExpired(limit: number): Promise<number> {
    const dropped = await byKey(
      this.#sql,
      (on) => on`
      with expired as (
        select account_id, call_id from followed_calls where expires_at <= ${this.#at(0)}
        order by expires_at limit ${limit} for update skip locked
      ), dropped as (
        delete from followed_calls f using expired e
        where f.account_id = e.account_id and f.call_id = e.call_id returning f.account_id, f.call_id
      ), answers as (
        delete from call_answers a using dropped d where a.account_id = d.account_id and a.id = d.call_id
      )
      select 1 from dropped`,
    );
    return dropped.length;
  }

  close(): void {
    this.#cancellations.close();
  }

  #at(inMs: number): string {
    return new Date(this.#nowMs() + inMs).toISOString();
  }

  #holderText(): string | null {
    const holder = this.#holder();
    return holder === null ? null : String(holder);
  }

  /** Takes over the answer that an earlier caller lost. Of several takers at once each gets another one, or none. */
  async #takeLost(call: CallToFollow, delivery: string): Promise<Delivery['lost']> {
    const { accountId, keyId, fingerprint, request } = call;
    const [row] = await byKey(
      this.#sql,
      (on) => on<{ call_id: string; finished_at: Date }[]>`
      with lost as (
        select f.account_id, f.call_id, c.finished_at from followed_calls f
        join calls c on c.account_id = f.account_id and c.id = f.call_id and c.state = 1
        join call_answers a on a.account_id = f.account_id and a.id = f.call_id
        join api_keys k on k.id = f.key_id and k.status = 'active'
        where f.key_id = ${String(keyId)} and f.account_id = ${String(accountId)} and f.fingerprint = ${fingerprint}
          and f.expires_at > ${this.#at(0)}
          and (f.state = 1 or f.state = 0 and exists (
            select 1 from replicas r where r.id = f.holder and r.ended_at is not null))
        order by c.finished_at limit 1 for update of f skip locked
      )
      update followed_calls f
      set state = 0, delivery = ${delivery}, holder = ${this.#holderText()}, client = ${request?.client ?? null},
          request_id = ${request?.requestId ?? null}
      from lost where f.account_id = lost.account_id and f.call_id = lost.call_id
      returning f.call_id, lost.finished_at`,
    );
    return row === undefined ? null : { callId: row.call_id, answeredAtMs: row.finished_at.getTime() };
  }

  #follow(beginning: Beginning): Promise<boolean> {
    return this.#beginnings.submit(beginning).catch((error: unknown) => {
      if (error instanceof QueueFull)
        throw unavailable('BUSY', 'Too many calls wait for the database.', 1_000);
      if (error instanceof NotBegun || error instanceof NoAnswerInTime)
        throw unavailable('DATABASE_UNAVAILABLE', 'The database does not answer.', 2_000, {}, error);
      throw error;
    });
  }

  async #beginBatch(batch: readonly Beginning[]): Promise<readonly boolean[]> {
    const column = (pick: (beginning: Beginning) => string | bigint | boolean | null) =>
      arrayLiteral(batch.map(pick));
    const [row] = await this.#sql<{ owed: boolean[] }[]>`
      select owed from ${this.#sql(BEGIN)}(
        ${column(({ call }) => call.accountId)}::text::bigint[], ${column(({ call }) => call.id)}::text::uuid[],
        ${column(({ call }) => call.keyId)}::text::bigint[],
        ${column(({ call }) => `\\x${call.fingerprint.toString('hex')}`)}::text::bytea[],
        ${column(({ delivery }) => delivery)}::text::uuid[],
        ${column(({ call }) => call.request?.client ?? null)}::text::text[],
        ${column(({ call }) => call.request?.requestId ?? null)}::text::text[],
        ${column(({ call }) => this.#at(call.longestMs + LOST_ANSWER_MS))}::text::timestamptz[],
        ${column(({ isAnyway }) => isAnyway)}::text::boolean[], ${this.#holderText()}::text::bigint, ${this.#at(0)}::timestamptz)`;
    return row?.owed ?? [];
  }

  async #arriveBatch(batch: readonly Arrival[]): Promise<readonly null[]> {
    await this.#weeks.run((weekOf) => {
      const week = weekOf(batch.map(({ callId }) => callId));
      return this.#sql`
        select 1 from ${this.#sql(week === null ? ARRIVED : `${ARRIVED}_${week}`)}(
          ${arrayLiteral(batch.map(({ delivery }) => delivery))}::text::uuid[], ${this.#at(LATE_CANCELLATION_MS)}::timestamptz)`;
    });
    return batch.map(() => null);
  }

  async #end({ delivery, callId }: Arrival, hasArrived: boolean): Promise<void> {
    this.#cancellations.unwatch(delivery);
    if (hasArrived) await this.#arrivals.submit({ delivery, callId });
    else
      await this.#sql`
        update followed_calls set state = 1, expires_at = ${this.#at(LOST_ANSWER_MS)} where delivery = ${delivery}`;
  }

  async #drop(delivery: string): Promise<void> {
    this.#cancellations.unwatch(delivery);
    await this.#sql`
      with dropped as (delete from followed_calls where delivery = ${delivery} returning account_id, call_id)
      delete from call_answers a using dropped d where a.account_id = d.account_id and a.id = d.call_id`;
  }
}

/** Work of many callers at once, in one statement each time. */
function inBatches<Work, Result>(flush: (batch: readonly Work[]) => Promise<readonly Result[]>) {
  return new GroupCommit<Work, Result>({
    ...BOUNDS,
    deadlineMs: DEADLINE_MS,
    firstBackoffMs: 50,
    isRefusal,
    keysOf: () => [],
    lockOf: () => '',
    isLocked: () => false,
    flush,
  });
}
