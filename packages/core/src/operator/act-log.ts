/** The record of operators' acts: the rows of `operator_acts`, which never change, and of how the provider's part ended. */
import type { Database, Transaction } from '../db/connection.ts';
import { Problem } from '../http/problem.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import type { Act, ActDone, ActName, CardRefundStatus, Order } from './act.ts';
import { digestOf } from './digest.ts';

export const ACTS_A_PAGE = 50;

/** The facts of an act that are known before it is done. */
export interface Subject {
  keyId?: bigint | null;
  orderId?: string;
  callId?: string;
  amountMicros?: bigint;
  transferId?: string;
}

/** How an act is done. */
export interface Doing {
  /** The other details of the order, which the same key must repeat. */
  details: readonly string[];
  /** Asks others what must be known, before anything is held. */
  ready?(): Promise<void>;
  /** Looks whether it can be done, and to what; takes the locks that it needs. */
  prepare(transaction: Transaction, id: string): Promise<Subject>;
  /** Does it. */
  effect?(transaction: Transaction, subject: Subject): Promise<void>;
}

interface ActRow {
  id: string;
  number: bigint;
  at: Date;
  actor: string;
  act: ActName;
  account_id: bigint;
  key_id: bigint | null;
  order_id: string | null;
  call_id: string | null;
  amount_micros: bigint | null;
  reason: string;
  transfer_id: string | null;
  request_digest: Buffer;
  digest: Buffer;
  outcome: string | null;
  refund_id: string | null;
  outcome_at: Date | null;
}

/** The digests by which a request is known again. */
interface Digests {
  ofKey: Buffer;
  ofRequest: Buffer;
}

export class ActLog {
  readonly #sql: Database;
  readonly #nowMs: () => number;

  constructor(sql: Database, nowMs: () => number) {
    this.#sql = sql;
    this.#nowMs = nowMs;
  }

  /** Does an act once, in the commit that writes it down: the same key again finds it done. */
  async once(act: ActName, order: Order, doing: Doing): Promise<ActDone> {
    const { actor, accountId, reason, idempotencyKey } = order;
    const digests: Digests = {
      ofKey: digestOf([idempotencyKey]),
      ofRequest: digestOf([actor, act, String(accountId), reason, ...doing.details]),
    };
    const before = await this.#found(digests);
    if (before !== null) return { act: before, repeated: true };
    const id = newTransferId(this.#nowMs());
    try {
      await doing.ready?.();
      if (await this.#first(id, act, order, doing, digests))
        return { act: await this.byId(id), repeated: false };
    } catch (error) {
      // What is refused may be refused because the same act was done a moment ago.
      const done = error instanceof Problem ? await this.#found(digests) : null;
      if (done === null) throw error;
      return { act: done, repeated: true };
    }
    const done = await this.#found(digests);
    if (done === null) throw new Error('an act that was there is gone');
    return { act: done, repeated: true };
  }

  /** Writes an act down and does it. @returns false, with nothing done, when somebody with the same key was faster */
  async #first(id: string, act: ActName, order: Order, doing: Doing, digests: Digests): Promise<boolean> {
    const { actor, accountId, reason } = order;
    return this.#sql.begin(async (transaction) => {
      // Acts take turns, and each takes its turn before any other lock: the digest of one goes into the next.
      await transaction`select 1 from operator_acts_head for update`;
      const subject = await doing.prepare(transaction, id);
      const inserted = await transaction`
        insert into operator_acts (id, at, actor, act, account_id, key_id, order_id, call_id, amount_micros, reason,
                                   transfer_id, idempotency_digest, request_digest)
        values (${id}, ${this.#now()}, ${actor}, ${act}, ${String(accountId)}, ${textOf(subject.keyId)},
                ${subject.orderId ?? null}, ${subject.callId ?? null}, ${textOf(subject.amountMicros)}, ${reason},
                ${subject.transferId ?? null}, ${digests.ofKey}, ${digests.ofRequest})
        on conflict (idempotency_digest) do nothing returning id`;
      if (inserted.length === 0) return false;
      await doing.effect?.(transaction, subject);
      return true;
    });
  }

  /** Adds how the card provider's part of an act ended. The first such word stands. */
  async ended(
    actId: string,
    { status, refundId }: { status: CardRefundStatus; refundId?: string },
  ): Promise<Act> {
    await this.#sql`
      insert into operator_act_outcomes (act_id, at, status, refund_id)
      values (${actId}, ${this.#now()}, ${status}, ${refundId ?? null}) on conflict (act_id) do nothing`;
    return this.byId(actId);
  }

  /** @throws Problem 404 when there is no such act */
  async byId(id: string): Promise<Act> {
    const [row] = await this.#rows(this.#sql`where a.id = ${id}`);
    if (row === undefined) throw new Problem(404, 'NO_SUCH_ACT', 'There is no such act.');
    return asAct(row);
  }

  /** The newest first, 50 at a time. `after`: the number of the last one seen. */
  async list({ accountId, after }: { accountId: bigint | null; after: bigint | null }): Promise<Act[]> {
    const sql = this.#sql;
    const rows = await this.#rows(sql`
      where ${accountId === null ? sql`true` : sql`a.account_id = ${String(accountId)}`}
        and ${after === null ? sql`true` : sql`a.number < ${String(after)}`}
      order by a.number desc limit ${ACTS_A_PAGE}`);
    return rows.map(asAct);
  }

  /** Those whose end is not known, oldest first, at most 50. */
  async open(): Promise<Act[]> {
    const rows = await this.#rows(this.#sql`
      where a.act = 'refund_order' and o.act_id is null order by a.number limit ${ACTS_A_PAGE}`);
    return rows.map(asAct);
  }

  /** The act that was done by this key; null: none. @throws Problem 409 when it was another act */
  async #found({ ofKey, ofRequest }: Digests): Promise<Act | null> {
    const [row] = await this.#rows(this.#sql`where a.idempotency_digest = ${ofKey}`);
    if (row === undefined) return null;
    if (row.request_digest.equals(ofRequest)) return asAct(row);
    throw new Problem(409, 'IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another action.');
  }

  #rows(which: ReturnType<Database>): Promise<ActRow[]> {
    return this.#sql<ActRow[]>`
      select a.*, o.status as outcome, o.refund_id, o.at as outcome_at from operator_acts a
      left join operator_act_outcomes o on o.act_id = a.id ${which}`;
  }

  #now(): string {
    return new Date(this.#nowMs()).toISOString();
  }
}

function textOf(value: bigint | null | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}

function asAct(row: ActRow): Act {
  const needsOutcome = row.act === 'refund_order';
  return {
    id: row.id,
    number: row.number,
    at: row.at,
    actor: row.actor,
    act: row.act,
    accountId: row.account_id,
    keyId: row.key_id,
    orderId: row.order_id,
    callId: row.call_id,
    amountMicros: row.amount_micros,
    reason: row.reason,
    transferId: row.transfer_id,
    digest: row.digest.toString('hex'),
    state: !needsOutcome || row.outcome === 'refunded' ? 'done' : row.outcome === null ? 'asked' : 'refused',
    outcome:
      row.outcome === null || row.outcome_at === null
        ? null
        : { status: row.outcome, refundId: row.refund_id, at: row.outcome_at },
  };
}
