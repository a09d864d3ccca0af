/** Looks at the card provider: what became of an order's payment there. A charge that nobody has made yet is made here. */
import type { Database } from '../../db/connection.ts';
import type { Secrets } from '../../secrets/secrets.ts';
import type { CardProvider, Failure, PaymentFacts, SessionFacts } from '../provider.ts';
import { noteOfStored } from './order-note.ts';
import { type CardOrder, nextLookAfterMs, type OrderStore, titleOf } from './orders.ts';
import { isChargeWanted } from './wanted.ts';

/** Money came for an order, and is not what the order says. */
export const MISMATCH = 'amount_mismatch';
/** Its charge was not wanted any more before the card was charged. */
export const WITHDRAWN = 'withdrawn';
/** The time after which the opener of a checkout has written down its page, or has died before anybody was told of it. */
const OPENED_BY_MS = 10 * 60_000;
/** A charge that was asked for has been answered, or never will be, after so long. */
const ON_ITS_WAY_MS = 2 * 60_000;
/** A process that stood still for so long since it wrote down its attempt does not make it. */
const ASKS_WITHIN_MS = 30_000;

/** The finding of a look at the provider. */
export type Finding =
  | { is: 'open' }
  | { is: 'paid'; payment: PaymentFacts }
  | { is: 'over'; failure: Failure; paymentIntentId: string | null; because: 'refused' | 'absent' }
  /** Money came, and not what the order says. */
  | { is: 'mismatch'; payment: PaymentFacts };

interface LookParts {
  sql: Database;
  orders: Pick<OrderStore, 'hold' | 'charging'>;
  provider: CardProvider;
  secrets: Secrets;
  nowMs(): number;
}

export class ProviderLook {
  readonly #sql: Database;
  readonly #orders: LookParts['orders'];
  readonly #provider: CardProvider;
  readonly #secrets: Secrets;
  readonly #nowMs: () => number;

  constructor(parts: LookParts) {
    this.#sql = parts.sql;
    this.#orders = parts.orders;
    this.#provider = parts.provider;
    this.#secrets = parts.secrets;
    this.#nowMs = parts.nowMs;
  }

  /** @throws ProviderUnavailable when the provider could not be asked */
  async look(order: CardOrder): Promise<Finding> {
    const finding = await (order.kind === 'checkout'
      ? this.#lookAtSession(order)
      : this.#lookAtCharge(order));
    const isOurs = finding.is === 'mismatch' && finding.payment.orderId === order.id;
    return isOurs && order.state === 'open' ? this.#sentBack(order, finding.payment) : finding;
  }

  /** Money that came for an order and is not what it says goes back whole, and buys nothing. */
  async #sentBack(order: CardOrder, payment: PaymentFacts): Promise<Finding> {
    if (payment.reversedMicros < payment.paidMicros)
      await this.#provider.refund(payment.paymentIntentId, null, `mismatch:${order.id}`, false);
    return refused(failureNamed(MISMATCH), payment.paymentIntentId);
  }

  async #lookAtSession(order: CardOrder): Promise<Finding> {
    if (order.sessionId === null)
      return this.#nowMs() - order.createdAtMs < OPENED_BY_MS ? { is: 'open' } : absent('not_opened');
    const session = await this.#provider.session(order.sessionId);
    // Money before the page: whoever paid has paid, even if the page closed meanwhile.
    if (session.payment?.status === 'paid') return found(order, session.payment, session);
    if (session.status === 'expired') return absent('expired');
    return session.payment === null ? { is: 'open' } : found(order, session.payment, session);
  }

  /** A charge of ours is looked for, and made when there is none: the same order is never charged twice. */
  async #lookAtCharge(order: CardOrder): Promise<Finding> {
    if (order.paymentIntentId !== null) {
      const payment = await this.#provider.payment(order.paymentIntentId);
      return payment === null ? { is: 'open' } : this.#foundCharge(order, payment);
    }
    if (order.paymentMethodId === null) {
      if (order.isErased) return absent('not_charged');
      throw new Error(`order ${order.id} has no card`);
    }
    // As long as there is no customer nobody has tried.
    if (order.customerId === null && !this.#mayCharge(order)) return absent('not_charged');
    const { id, looks } = order;
    const customerId =
      order.customerId ?? (await this.#provider.openCustomer({ orderId: id, attempt: looks }));
    if (looks > 0) {
      const earlier = await this.#provider.findPayment({ orderId: id, customerId });
      if (earlier !== null) return this.#foundCharge(order, earlier);
    }
    if (this.#mayCharge(order)) return this.#charge(order, order.paymentMethodId, customerId);
    const isOnItsWay = looks > 0 && this.#nowMs() < order.expiresAtMs + ON_ITS_WAY_MS;
    return order.state === 'open' && isOnItsWay ? { is: 'open' } : absent('not_charged');
  }

  #mayCharge(order: CardOrder): boolean {
    return order.state === 'open' && this.#nowMs() < order.expiresAtMs;
  }

  /**
   * Writes down that a charge is asked for.
   *
   * @returns whom to charge; `changed`: nobody, since the order has ended, expired or changed since it was read
   */
  #attempt(order: CardOrder, customerId: string): Promise<{ payerId: string } | 'unwanted' | 'changed'> {
    return this.#sql.begin(async (transaction) => {
      if (!(await this.#orders.hold(transaction, order, { charging: false }))) return 'changed';
      if (!(await isChargeWanted(transaction, order, this.#nowMs()))) return 'unwanted';
      const nextAtMs = this.#nowMs() + nextLookAfterMs(order.looks);
      const payerId = await this.#orders.charging(transaction, order.id, nextAtMs, customerId);
      return payerId === null ? 'changed' : { payerId };
    });
  }

  /** There is no payment: as long as one that was asked for before may be on its way, nobody can say so for good. */
  #withdrawn({ chargeAskedAtMs }: CardOrder): Finding {
    const isOnItsWay = chargeAskedAtMs !== null && this.#nowMs() < chargeAskedAtMs + ON_ITS_WAY_MS;
    return isOnItsWay ? { is: 'open' } : absent(WITHDRAWN);
  }

  /** Charges the order's card, unless that is not wanted any more or somebody has ended the order meanwhile. */
  async #charge(order: CardOrder, paymentMethodId: string, customerId: string): Promise<Finding> {
    const { id, amountMicros, email } = order;
    const beganAtMs = this.#nowMs();
    const attempt = await this.#attempt(order, customerId);
    if (attempt === 'unwanted') return this.#withdrawn(order);
    if (attempt === 'changed' || this.#nowMs() > beganAtMs + ASKS_WITHIN_MS) return { is: 'open' };
    const { payerId } = attempt;
    const outcome = await this.#provider.charge({
      orderId: id,
      note: noteOfStored(order, this.#secrets),
      amountMicros,
      customerId: payerId,
      paymentMethodId,
      email,
      title: titleOf(order),
    });
    if (outcome.status === 'known') return found(order, outcome.payment, null);
    // The provider may have charged the card and refused all the same. It is asked what exists there before anybody is told
    // to pay again.
    const made = await this.#provider.findPayment({ orderId: id, customerId: payerId });
    return made === null ? refused(outcome.failure, null) : this.#foundCharge(order, made);
  }

  /** A charge that the provider began and never ended is ended: its time is over, and nobody will come back to it. */
  async #foundCharge(order: CardOrder, payment: PaymentFacts): Promise<Finding> {
    const isLeft = payment.status === 'open' && this.#nowMs() >= order.expiresAtMs + ON_ITS_WAY_MS;
    return found(order, isLeft ? await this.#provider.cancel(payment.paymentIntentId) : payment, null);
  }
}

/** Judges what a payment means for its order. @param session the page that it was made on; null: it was charged */
function found(order: CardOrder, payment: PaymentFacts, session: SessionFacts | null): Finding {
  if (payment.status === 'open') return { is: 'open' };
  if (payment.status === 'dead') {
    // On the provider's page a person may try another card.
    return session?.status === 'open' ? { is: 'open' } : refused(payment.failure, payment.paymentIntentId);
  }
  const agrees =
    payment.paidMicros === order.amountMicros &&
    payment.currency === 'usd' &&
    payment.orderId === order.id &&
    (session === null || (session.totalMicros === order.amountMicros && session.orderId === order.id));
  return agrees ? { is: 'paid', payment } : { is: 'mismatch', payment };
}

/** The finding that nobody can pay an order any more. */
function refused(failure: Failure | null, paymentIntentId: string | null): Finding {
  return { is: 'over', failure: failure ?? failureNamed('declined'), paymentIntentId, because: 'refused' };
}

/** Its time is over and there is no payment: as long as nobody has begun one since. */
function absent(code: string): Finding {
  return { is: 'over', failure: failureNamed(code), paymentIntentId: null, because: 'absent' };
}

function failureNamed(code: string): Failure {
  return { code, declineCode: null, adviceCode: null };
}
