/**
 * What operators do: each act is a row that is never changed, with who, why and what it moved. The row and what it does
 * are one commit; where the card provider must do its part, the row comes first and how it ended is added after.
 */
import { createHash } from 'node:crypto';
import type { Database, Transaction } from '../db/connection.ts';
import { Problem } from '../http/problem.ts';
import type { Keys } from '../keys/keys.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { microsToUsd } from '../ledger/money.ts';
import { newTransferId, transferIdFor } from '../ledger/transfer-id.ts';

const MAX_NOTE_CHARACTERS = 500;
export const ACTS_A_PAGE = 50;

export type ActName = 'freeze' | 'unfreeze' | 'grant' | 'refund_order' | 'refund_call' | 'mail_key';

/** Gives money back through the card provider, and brings the books to match. */
export interface CardRefunds {
  /**
   * @param order.actKey the same key again is the same refund
   * @param order.amountMicros null: all that is left of it
   */
  refund(order: {
    orderId: string;
    amountMicros: bigint | null;
    actKey: string;
  }): Promise<{ status: CardRefundStatus; refundId?: string }>;
  /**
   * Gets ready to mail whoever paid an order a link to a new key: asks where the mail goes.
   *
   * @returns writes the mail down within the act's transaction
   * @throws Problem when no link can be sent
   */
  prepareKeyLink(orderId: string): Promise<(transaction: Transaction) => Promise<void>>;
}

export type CardRefundStatus =
  | 'refunded'
  | 'not_paid'
  | 'nothing_left'
  | 'too_much'
  | 'unknown_order'
  | 'unknown_outcome';

/** Who acts, why, and by which key it is the same act when it is sent again. */
export interface Order {
  actor: string;
  accountId: bigint;
  /** 3 to 500 characters. */
  reason: string;
  idempotencyKey: string;
}

export interface Act {
  id: string;
  /** Grows from act to act. */
  number: bigint;
  at: Date;
  actor: string;
  act: ActName;
  accountId: bigint;
  keyId: bigint | null;
  orderId: string | null;
  callId: string | null;
  amountMicros: bigint | null;
  reason: string;
  transferId: string | null;
  /** `asked`: nobody knows yet how it ended; it may be repeated. */
  state: 'done' | 'asked' | 'refused';
  /** What the card provider's part came to; null where it has none, or is not known. */
  outcome: { status: string; refundId: string | null; at: Date } | null;
}

export interface ActDone {
  act: Act;
  /** Whether it had been done before, by the same key. */
  repeated: boolean;
}

export interface Acts {
  freeze(order: Order): Promise<ActDone>;
  /** Takes the operator's freeze away; an account that owes stays frozen. */
  unfreeze(order: Order): Promise<ActDone>;
  grant(order: Order & { amountMicros: bigint }): Promise<ActDone>;
  /** Gives a captured call's price back to the key's account, once. */
  refundCall(order: Order & { callId: string }): Promise<ActDone>;
  /** Sends a card payment back, or a part of it. `amountMicros` null: the rest. */
  refundOrder(order: Order & { orderId: string; amountMicros: bigint | null }): Promise<ActDone>;
  /** Mails whoever paid an order a link that gives a new key, and ends the others. */
  mailKey(order: Order & { orderId: string }): Promise<ActDone>;
  /** Goes on with an act whose end is not known. */
  goOn(actId: string): Promise<ActDone>;
  /** The newest first, 50 at a time. `after`: the number of the last one seen. */
  list(filter: { accountId: bigint | null; after: bigint | null }): Promise<Act[]>;
  /** Those whose end is not known, oldest first, at most 50. */
  open(): Promise<Act[]>;
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
  outcome: string | null;
  refund_id: string | null;
  outcome_at: Date | null;
}

/** What of an act is known before it is done. */
interface Subject {
  keyId?: bigint | null;
  orderId?: string;
  callId?: string;
  amountMicros?: bigint;
  transferId?: string;
}

interface Doing {
  /** What else was asked for, which the same key must repeat. */
  details: readonly string[];
  /** Asks others what must be known, before anything is held. */
  ready?(): Promise<void>;
  /** Looks whether it can be done, and to what; takes the locks that it needs. */
  prepare(transaction: Transaction, id: string): Promise<Subject>;
  /** Does it. */
  effect?(transaction: Transaction, subject: Subject): Promise<void>;
}

export function createActs(parts: {
  sql: Database;
  ledger: Ledger;
  keys: Keys;
  /** Pays what an account owes from credit that has just come, in the same commit. */
  collectDebts(transaction: Transaction, accountId: bigint): Promise<unknown>;
  /** Null: there is no card provider. */
  cards: CardRefunds | null;
  nowMs(): number;
}): Acts {
  const { sql, ledger, keys, cards, nowMs } = parts;
  const now = () => new Date(nowMs()).toISOString();
  /** Refunds that this process is waiting for, so that the same one asked for twice is asked of the provider once. */
  const waiting = new Map<string, Promise<Act>>();

  const rowsOf = (which: ReturnType<typeof sql>) => sql<ActRow[]>`
    select a.*, o.status as outcome, o.refund_id, o.at as outcome_at from operator_acts a
    left join operator_act_outcomes o on o.act_id = a.id ${which}`;

  async function found(idempotencyDigest: Buffer, requestDigest: Buffer): Promise<Act | null> {
    const [row] = await rowsOf(sql`where a.idempotency_digest = ${idempotencyDigest}`);
    if (row === undefined) return null;
    if (row.request_digest.equals(requestDigest)) return asAct(row);
    throw new Problem(409, 'IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another action.');
  }

  async function byId(id: string): Promise<Act> {
    const [row] = await rowsOf(sql`where a.id = ${id}`);
    if (row === undefined) throw new Problem(404, 'NO_SUCH_ACT', 'There is no such act.');
    return asAct(row);
  }

  /** Does an act once: the same key again finds it done. */
  async function once(act: ActName, order: Order, doing: Doing): Promise<ActDone> {
    const { actor, accountId, reason } = order;
    const requestDigest = digestOf([actor, act, String(accountId), reason, ...doing.details]);
    const idempotencyDigest = digestOf([order.idempotencyKey]);
    const before = await found(idempotencyDigest, requestDigest);
    if (before !== null) return { act: before, repeated: true };

    const id = newTransferId(nowMs());
    try {
      await doing.ready?.();
      const first = await sql.begin(async (transaction) => {
        const subject = await doing.prepare(transaction, id);
        const inserted = await transaction`
          insert into operator_acts (id, at, actor, act, account_id, key_id, order_id, call_id, amount_micros, reason,
                                     transfer_id, idempotency_digest, request_digest)
          values (${id}, ${now()}, ${actor}, ${act}, ${String(accountId)}, ${textOf(subject.keyId)},
                  ${subject.orderId ?? null}, ${subject.callId ?? null}, ${textOf(subject.amountMicros)}, ${reason},
                  ${subject.transferId ?? null}, ${idempotencyDigest}, ${requestDigest})
          on conflict (idempotency_digest) do nothing returning id`;
        // Whoever had the same key was faster: theirs is the act.
        if (inserted.length === 0) return false;
        await doing.effect?.(transaction, subject);
        return true;
      });
      if (first) return { act: await byId(id), repeated: false };
    } catch (error) {
      // What is refused may be refused because the same act was done a moment ago.
      const done = error instanceof Problem ? await found(idempotencyDigest, requestDigest) : null;
      if (done === null) throw error;
      return { act: done, repeated: true };
    }
    const done = await found(idempotencyDigest, requestDigest);
    if (done === null) throw new Error('an act that was there is gone');
    return { act: done, repeated: true };
  }

  /** Locks a customer's account. @throws Problem 404 when there is none, or when it is one of the house's own */
  async function lockCustomer(transaction: Transaction, accountId: bigint): Promise<void> {
    const [row] =
      await transaction`select 1 from ledger_accounts where id = ${String(accountId)} and not house`;
    if (row === undefined) throw new Problem(404, 'NO_SUCH_ACCOUNT', 'There is no such account.');
    await ledger.lock(transaction, [accountId]);
  }

  /** Lets the card provider do its part, and adds how that ended. The act's id is the provider's key for it. */
  async function sendBack(act: Act): Promise<Act> {
    if (cards === null) throw noCards();
    if (act.orderId === null) throw new Error(`act ${act.id} has no order`);
    const { status, refundId } = await cards.refund({
      orderId: act.orderId,
      amountMicros: act.amountMicros,
      actKey: act.id,
    });
    if (status !== 'unknown_outcome') {
      await sql`
        insert into operator_act_outcomes (act_id, at, status, refund_id)
        values (${act.id}, ${now()}, ${status}, ${refundId ?? null}) on conflict (act_id) do nothing`;
    }
    return byId(act.id);
  }

  async function finish({ act, repeated }: ActDone): Promise<ActDone> {
    let ended = act;
    if (act.state === 'asked') {
      let sent = waiting.get(act.id);
      if (sent === undefined) {
        sent = sendBack(act).finally(() => waiting.delete(act.id));
        waiting.set(act.id, sent);
      }
      ended = await sent;
    }
    if (ended.state === 'done') return { act: ended, repeated };
    const details = { actId: ended.id };
    if (ended.state === 'asked') {
      throw new Problem(
        503,
        'REFUND_OUTCOME_UNKNOWN',
        'The card provider did not tell how it ended. The same request with the same Idempotency-Key is safe to send again.',
        { details, headers: { 'retry-after': '5' } },
      );
    }
    throw new Problem(409, 'REFUND_REFUSED', REFUSALS[ended.outcome?.status ?? ''] ?? 'It was refused.', {
      details,
    });
  }

  /** A transfer that must take place: what would not is refused, and nothing of the act stays. */
  async function give(
    transaction: Transaction,
    transfer: Pick<
      Parameters<Ledger['transferWithin']>[1],
      'id' | 'accountId' | 'house' | 'amountMicros' | 'code'
    >,
    note: string,
  ): Promise<void> {
    const { status } = await ledger.transferWithin(transaction, {
      ...transfer,
      phase: 'posted',
      side: 'credit',
      note,
    });
    if (status !== 'done') throw new Error(`the ledger answered ${status} to transfer ${transfer.id}`);
    await parts.collectDebts(transaction, transfer.accountId);
  }

  return {
    freeze: (order) =>
      once('freeze', order, {
        details: [],
        async prepare(transaction) {
          await lockCustomer(transaction, order.accountId);
          return {};
        },
        effect: (transaction) => keys.freeze(transaction, order.accountId, 'operator', noteOf(order)),
      }),

    unfreeze: (order) =>
      once('unfreeze', order, {
        details: [],
        async prepare(transaction) {
          await lockCustomer(transaction, order.accountId);
          return {};
        },
        async effect(transaction) {
          if (await keys.thaw(transaction, order.accountId, 'operator')) return;
          throw new Problem(409, 'NOT_FROZEN', 'No operator has frozen this account.');
        },
      }),

    grant: (order) =>
      once('grant', order, {
        details: [String(order.amountMicros)],
        async prepare(transaction, id) {
          await lockCustomer(transaction, order.accountId);
          await refuseUnspendable(transaction, order.accountId, now());
          return { amountMicros: order.amountMicros, transferId: id };
        },
        async effect(transaction, { transferId = '' }) {
          const { accountId, amountMicros } = order;
          const transfer = { id: transferId, accountId, house: 'operator_grants', amountMicros } as const;
          await give(transaction, { ...transfer, code: 'operator_grant' }, noteOf(order));
          // What is given must not run out with what was left of a trial.
          await keys.becomePaid(transaction, accountId);
        },
      }),

    refundCall: (order) =>
      once('refund_call', order, {
        details: [order.callId],
        async prepare(transaction) {
          await lockCustomer(transaction, order.accountId);
          const [call] = await transaction<
            { state: number; key_id: bigint | null; price_micros: bigint; revenue: bigint }[]
          >`
            select c.state, c.key_id, c.price_micros, t.credit_account as revenue from calls c
            join ledger_transfers t on t.account_id = c.account_id and t.id = c.id and t.phase = 2
            where c.account_id = ${String(order.accountId)} and c.id = ${order.callId}`;
          if (call === undefined) throw new Problem(404, 'NO_SUCH_CALL', 'This account has no such call.');
          if (call.state !== 1 || call.revenue !== HOUSE_ACCOUNTS.revenue_credits) {
            throw new Problem(409, 'CALL_NOT_CHARGED', 'Nothing was taken for this call that could go back.');
          }
          // The same id as when a call could not be delivered: a price goes back once, whoever sends it.
          const transferId = transferIdFor(`refund:${order.callId}`);
          const refunds = await transaction`
            select 1 from ledger_transfers where account_id = ${String(order.accountId)} and id = ${transferId}`;
          if (refunds.length > 0) {
            throw new Problem(409, 'CALL_ALREADY_REFUNDED', 'The price of this call has gone back already.');
          }
          return {
            callId: order.callId,
            keyId: call.key_id,
            amountMicros: call.price_micros,
            transferId,
          };
        },
        async effect(transaction, { transferId = '', amountMicros = 0n }) {
          const transfer = { id: transferId, accountId: order.accountId, amountMicros };
          await give(
            transaction,
            { ...transfer, house: 'revenue_credits', code: 'operator_refund' },
            noteOf(order),
          );
        },
      }),

    async refundOrder(order) {
      if (cards === null) throw noCards();
      const asked = order.amountMicros;
      const done = await once('refund_order', order, {
        details: [order.orderId, asked === null ? 'rest' : String(asked)],
        async prepare(transaction) {
          const [row] = await transaction<
            { state: number; key_id: bigint | null; amount_micros: bigint; reversed_micros: bigint }[]
          >`
            select state, key_id, amount_micros, reversed_micros from card_orders
            where id = ${order.orderId} and account_id = ${String(order.accountId)}`;
          if (row === undefined) throw new Problem(404, 'NO_SUCH_ORDER', 'This account has no such order.');
          const leftMicros = row.amount_micros - row.reversed_micros;
          const refused =
            row.state !== 1
              ? 'not_paid'
              : leftMicros === 0n
                ? 'nothing_left'
                : asked !== null && asked > leftMicros
                  ? 'too_much'
                  : null;
          if (refused !== null) {
            const details = { leftUsd: microsToUsd(row.state === 1 ? leftMicros : 0n) };
            throw new Problem(409, 'REFUND_REFUSED', REFUSALS[refused] ?? refused, { details });
          }
          // Told in numbers even when it is the rest, so that to ask again is to ask the same.
          return { orderId: order.orderId, keyId: row.key_id, amountMicros: asked ?? leftMicros };
        },
      });
      return finish(done);
    },

    mailKey: async (order) => once('mail_key', order, keyMailed(order, cards)),

    async goOn(actId) {
      return finish({ act: await byId(actId), repeated: true });
    },

    async list({ accountId, after }) {
      const rows = await rowsOf(sql`
        where ${accountId === null ? sql`true` : sql`a.account_id = ${String(accountId)}`}
          and ${after === null ? sql`true` : sql`a.number < ${String(after)}`}
        order by a.number desc limit ${ACTS_A_PAGE}`);
      return rows.map(asAct);
    },

    async open() {
      const rows = await rowsOf(sql`
        where a.act = 'refund_order' and o.act_id is null order by a.number limit ${ACTS_A_PAGE}`);
      return rows.map(asAct);
    },
  };
}

/** @throws Problem 409 when no key of the account could spend what it is given */
async function refuseUnspendable(transaction: Transaction, accountId: bigint, at: string): Promise<void> {
  const usable = await transaction`
    select 1 from api_keys where account_id = ${String(accountId)} and status <> 'revoked'
      and not trial_closed and (kind = 'trial' or expires_at is null or expires_at > ${at}) limit 1`;
  if (usable.length === 0) throw new Problem(409, 'NO_USABLE_KEY', 'No key of this account could spend it.');
}

/** How a link to a new key is mailed: the provider is asked where to, before anything is held. */
function keyMailed({ accountId, orderId }: Order & { orderId: string }, cards: CardRefunds | null): Doing {
  if (cards === null) throw noCards();
  let send: ((transaction: Transaction) => Promise<void>) | null = null;
  return {
    details: [orderId],
    async ready() {
      send = await cards.prepareKeyLink(orderId);
    },
    async prepare(transaction) {
      const [row] = await transaction<{ key_id: bigint | null }[]>`
        select key_id from card_orders where id = ${orderId} and account_id = ${String(accountId)}`;
      if (row === undefined) throw new Problem(404, 'NO_SUCH_ORDER', 'This account has no such order.');
      return { orderId, keyId: row.key_id };
    },
    effect: async (transaction) => send?.(transaction),
  };
}

const REFUSALS: Readonly<Record<string, string>> = {
  not_paid: 'This order was never paid.',
  nothing_left: 'All of this payment has gone back already.',
  too_much: 'That is more than is left of this payment.',
  unknown_order: 'The card provider knows no payment of this order.',
};

function noCards(): Problem {
  return new Problem(503, 'CARDS_NOT_CONFIGURED', 'This server has no card provider.', {
    headers: { 'retry-after': '3600' },
  });
}

/** Who and why, as it stands in the ledger. The whole reason is in the act's own row. */
function noteOf({ actor, reason }: Order): string {
  return `${actor}: ${reason}`.slice(0, MAX_NOTE_CHARACTERS).toWellFormed();
}

function digestOf(texts: readonly string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(texts)).digest();
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
    state: !needsOutcome || row.outcome === 'refunded' ? 'done' : row.outcome === null ? 'asked' : 'refused',
    outcome:
      row.outcome === null || row.outcome_at === null
        ? null
        : { status: row.outcome, refundId: row.refund_id, at: row.outcome_at },
  };
}
