/**
 * Brings the books to what the card provider says of a payment:
 *
 *   order read ─► the provider looked at (`look.ts`) ─► order held, unless it was changed since ─► books moved
 *     (`order-books.ts`) and order changed, in one commit
 *
 * Whatever arrives (a webhook, a poll, the sweeper, an event of the provider's list) is no more than a reason to look. It does
 * not matter what came first, twice or never: a snapshot is applied only if nobody has changed the order since before it
 * was taken.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Transaction } from '../../db/connection.ts';
import type { Secrets } from '../../secrets/secrets.ts';
import { type CardProvider, type PaymentFacts, ProviderUnavailable } from '../provider.ts';
import type { AutoRecharges } from '../recharge/auto-recharge.ts';
import { type Finding, MISMATCH, ProviderLook } from './look.ts';
import { OrderBooks, type OrderBooksParts } from './order-books.ts';
import { type CardOrder, nextLookAfterMs, type OrderChange, type OrderStore } from './orders.ts';

const MAX_ATTEMPTS = 8;
const BACKOFF_MS = 20;

/** The change of an order. `mismatch`: money came that is not what the order says, and somebody should look into it. */
type Reported = 'paid' | 'over' | 'reversed' | 'restored' | 'mismatch';

export interface OrderReconcilerParts extends Omit<OrderBooksParts, 'recharges'> {
  sql: Database;
  orders: OrderStore;
  provider: CardProvider;
  secrets: Secrets;
  /** The calls by which a kept card learns of its orders. */
  recharges: Pick<AutoRecharges, 'enable' | 'paid' | 'failed' | 'stop'>;
  /** Reported of each change once it is committed. */
  report(what: Reported, order: CardOrder): void;
}

export interface OrderReconciler {
  /**
   * Looks at the provider and brings the order and the books up to date.
   *
   * @returns the order as it stands then; null: there is none
   * @throws ProviderUnavailable when the provider could not be asked; nothing has changed then
   */
  reconcile(orderId: string): Promise<CardOrder | null>;
}

export function createOrderReconciler(parts: OrderReconcilerParts): OrderReconciler {
  return new Reconciler(parts);
}

class Reconciler implements OrderReconciler {
  readonly #parts: OrderReconcilerParts;
  readonly #look: ProviderLook;
  readonly #books: OrderBooks;

  constructor(parts: OrderReconcilerParts) {
    this.#parts = parts;
    this.#look = new ProviderLook(parts);
    this.#books = new OrderBooks(parts);
  }

  async reconcile(orderId: string): Promise<CardOrder | null> {
    const { orders } = this.#parts;
    for (let attempt = 1; ; attempt++) {
      const order = await orders.find(orderId);
      if (order === null) return null;
      if (await this.#apply(order, await this.#lookAt(order))) return orders.find(orderId);
      if (attempt >= MAX_ATTEMPTS) throw new Error(`order ${orderId} is changed faster than it can be read`);
      await sleep(BACKOFF_MS * attempt * Math.random());
    }
  }

  /** Looks at the provider. A look that failed counts, so that the next one is later. */
  async #lookAt(order: CardOrder): Promise<Finding> {
    const { orders, nowMs } = this.#parts;
    try {
      return await this.#look.look(order);
    } catch (error) {
      if (error instanceof ProviderUnavailable && order.state === 'open')
        await orders.looked(order.id, nowMs() + nextLookAfterMs(order.looks));
      throw error;
    }
  }

  /** Applies a snapshot. @returns false when the order was changed since before it was taken */
  async #apply(order: CardOrder, finding: Finding): Promise<boolean> {
    if (finding.is === 'open') return true;
    const { sql, orders, report } = this.#parts;
    const reported = await sql.begin(async (transaction) => {
      const isAbsent = finding.is === 'over' && finding.because === 'absent';
      if (!(await orders.hold(transaction, order, { charging: isAbsent }))) return null;
      if (finding.is === 'mismatch') return this.#noteMismatch(transaction, order);
      if (finding.is === 'over') return this.#end(transaction, order, finding);
      return this.#bookPayment(transaction, order, finding.payment);
    });
    if (reported === null) return false;
    for (const what of reported) report(what, order);
    return true;
  }

  /** The payment names another order, or came to one that has ended: nothing here may touch the money. */
  async #noteMismatch(transaction: Transaction, order: CardOrder): Promise<Reported[]> {
    if (order.failure === MISMATCH) return [];
    await this.#put(transaction, order, { failure: MISMATCH, nextAtMs: null });
    return ['mismatch'];
  }

  /** Ends an order unpaid. What is paid stays paid, whatever becomes of the page. */
  async #end(
    transaction: Transaction,
    order: CardOrder,
    { failure, paymentIntentId }: Extract<Finding, { is: 'over' }>,
  ): Promise<Reported[]> {
    if (order.state !== 'open') return [];
    await this.#put(transaction, order, {
      state: 'over',
      failure: failure.code,
      declineCode: failure.declineCode,
      ...(paymentIntentId === null ? {} : { paymentIntentId }),
      nextAtMs: null,
    });
    if (order.kind === 'recharge') await this.#parts.recharges.failed(transaction, order, failure);
    return failure.code === MISMATCH ? ['over', 'mismatch'] : ['over'];
  }

  /** Grants what was paid for, once, and books what has gone back of it since. */
  async #bookPayment(transaction: Transaction, order: CardOrder, payment: PaymentFacts): Promise<Reported[]> {
    const reported: Reported[] = [];
    const change: OrderChange = {};
    let { accountId } = order;
    if (order.state !== 'paid') {
      accountId = await this.#books.grant(transaction, order, payment, change);
      Object.assign(change, paidBy(order, payment), { paidAtMs: this.#parts.nowMs() } satisfies OrderChange);
      reported.push('paid');
    }
    if (accountId === null) throw new Error(`order ${order.id} is paid and has no account`);
    const reversal = await this.#books.reverse(transaction, { order, accountId, payment, change });
    if (reversal !== null) reported.push(reversal);
    if (order.kind === 'recharge' && order.state !== 'paid')
      await this.#parts.recharges.paid(transaction, order);
    if (Object.keys(change).length > 0) await this.#put(transaction, order, change);
    return reported;
  }

  /** Changes an order that is held. */
  async #put(transaction: Transaction, order: CardOrder, change: OrderChange): Promise<void> {
    if (!(await this.#parts.orders.change(transaction, order, change)))
      throw new Error(`order ${order.id} was held and changed`);
  }
}

/** The change to an order once it is paid. Of an erased payer no card is written down to be shown. */
function paidBy(
  { isErased }: CardOrder,
  { paymentIntentId, customerId, paymentMethodId, card }: PaymentFacts,
): OrderChange {
  return {
    state: 'paid',
    failure: null,
    declineCode: null,
    nextAtMs: null,
    paymentIntentId,
    ...(customerId === null ? {} : { customerId }),
    ...(paymentMethodId === null ? {} : { paymentMethodId }),
    ...(card?.fingerprint == null ? {} : { cardFingerprint: card.fingerprint }),
    ...(card?.shown == null || isErased ? {} : { shownCard: card.shown }),
  };
}
