/** Refunds through the card provider. The act comes first, and how the provider's part ended is added after it. */
import type { Transaction } from '../db/connection.ts';
import { Problem } from '../http/problem.ts';
import { microsToUsd } from '../ledger/money.ts';
import { type Act, type ActDone, type CardRefunds, type GiftOrder, noCards } from './act.ts';
import type { ActLog, Doing } from './act-log.ts';
import { refuseAlone } from './given-alone.ts';

const REFUSALS: Readonly<Record<string, string>> = {
  not_paid: 'This order was never paid.',
  nothing_left: 'All of this payment has gone back already.',
  too_much: 'That is more than is left of this payment.',
  unknown_order: 'The card provider knows no payment of this order.',
};

/** An order to send a card payment back, or a part of it. */
export type OrderRefund = GiftOrder & {
  orderId: string;
  /** Null: the rest. */
  amountMicros: bigint | null;
};

export class OrderRefunds {
  readonly #log: ActLog;
  readonly #cards: CardRefunds | null;
  readonly #bounds: { aloneUpToMicros(): bigint | null; nowMs(): number };
  /** Refunds that this process is waiting for, so that the same one asked for twice is asked of the provider once. */
  readonly #waiting = new Map<string, Promise<Act>>();

  /**
   * @param parts.cards null: there is no card provider
   * @param parts.aloneUpToMicros what one operator alone may send back of an order; null: any sum
   */
  constructor(
    log: ActLog,
    parts: { cards: CardRefunds | null; aloneUpToMicros(): bigint | null; nowMs(): number },
  ) {
    this.#log = log;
    this.#cards = parts.cards;
    this.#bounds = parts;
  }

  async refund(order: OrderRefund): Promise<ActDone> {
    if (this.#cards === null) throw noCards();
    return this.finish(await this.#log.once('refund_order', order, refunding(order, this.#bounds)));
  }

  /**
   * Goes on with an act whose end is not known.
   *
   * @throws Problem 409 REFUND_REFUSED; 503 REFUND_OUTCOME_UNKNOWN when the provider did not tell
   */
  async finish({ act, repeated }: ActDone): Promise<ActDone> {
    const ended = act.state === 'asked' ? await this.#sentBack(act) : act;
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
    const why = REFUSALS[ended.outcome?.status ?? ''] ?? 'It was refused.';
    throw new Problem(409, 'REFUND_REFUSED', why, { details });
  }

  #sentBack(act: Act): Promise<Act> {
    const waiting = this.#waiting.get(act.id);
    if (waiting !== undefined) return waiting;
    const sent = this.#sendBack(act).finally(() => this.#waiting.delete(act.id));
    this.#waiting.set(act.id, sent);
    return sent;
  }

  /** Lets the card provider do its part, and adds how that ended. The act's id is the provider's key for it. */
  async #sendBack({ id, orderId, amountMicros }: Act): Promise<Act> {
    if (this.#cards === null) throw noCards();
    if (orderId === null) throw new Error(`act ${id} has no order`);
    const outcome = await this.#cards.refund({ orderId, amountMicros, actKey: id });
    return outcome.status === 'unknown_outcome' ? this.#log.byId(id) : this.#log.ended(id, outcome);
  }
}

function refunding(order: OrderRefund, bounds: { aloneUpToMicros(): bigint | null; nowMs(): number }): Doing {
  const { accountId, orderId, amountMicros: asked } = order;
  return {
    details: [orderId, asked === null ? 'rest' : String(asked)],
    async prepare(transaction) {
      const paid = await paidOrder(transaction, accountId, orderId);
      const leftMicros = paid.amount_micros - paid.reversed_micros;
      const refused = whyNot(paid.state === 1, leftMicros, asked);
      if (refused !== null) {
        const details = { leftUsd: microsToUsd(paid.state === 1 ? leftMicros : 0n) };
        throw new Problem(409, 'REFUND_REFUSED', REFUSALS[refused] ?? refused, { details });
      }
      // Told in numbers even when it is the rest, so that to ask again is to ask the same.
      const amountMicros = asked ?? leftMicros;
      const gift = { act: 'refund_order', orderId, amountMicros } as const;
      await refuseAlone(transaction, { order, gift, amountMicros }, bounds);
      return { orderId, keyId: paid.key_id, amountMicros };
    },
  };
}

/** @throws Problem 404 when this account has no such order */
async function paidOrder(transaction: Transaction, accountId: bigint, orderId: string) {
  const [row] = await transaction<
    { state: number; key_id: bigint | null; amount_micros: bigint; reversed_micros: bigint }[]
  >`
    select state, key_id, amount_micros, reversed_micros from card_orders
    where id = ${orderId} and account_id = ${String(accountId)}`;
  if (row === undefined) throw new Problem(404, 'NO_SUCH_ORDER', 'This account has no such order.');
  return row;
}

function whyNot(isPaid: boolean, leftMicros: bigint, asked: bigint | null): string | null {
  if (!isPaid) return 'not_paid';
  if (leftMicros === 0n) return 'nothing_left';
  return asked !== null && asked > leftMicros ? 'too_much' : null;
}
