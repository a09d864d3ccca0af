/**
 * Brings the books to what the card provider says of a payment. Whatever arrives (a webhook, a poll, the sweeper, an
 * event of the provider's list) is no more than a reason to look, so that it does not matter what came first, twice or
 * never: a snapshot is applied only if nobody has changed the order since before it was taken.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Transaction } from '../../db/connection.ts';
import { NEW_CUSTOMER_CAP } from '../../keys/credit-tiers.ts';
import type { Keys } from '../../keys/keys.ts';
import { HOUSE_ACCOUNTS, type HouseAccount } from '../../ledger/accounts.ts';
import type { Ledger, TransferCode } from '../../ledger/ledger.ts';
import { microsToUsd, usdToMicros } from '../../ledger/money.ts';
import { transferIdFor } from '../../ledger/transfer-id.ts';
import type { Debts } from '../disputes/debts.ts';
import {
  type CardProvider,
  type Failure,
  type PaymentFacts,
  ProviderUnavailable,
  type SessionFacts,
} from '../provider.ts';
import type { AutoRecharges } from '../recharge/auto-recharge.ts';
import { type CardOrder, nextLookAfterMs, type OrderChange, type OrderStore } from './orders.ts';

const MISMATCH = 'amount_mismatch';
const MAX_ATTEMPTS = 8;
const BACKOFF_MS = 20;
/** By then whoever opened a checkout has written down its page, or has died before anybody was told of it. */
const OPENED_BY_MS = 10 * 60_000;
/** A charge that was begun when its order was about to expire has been answered, or never will be, after so long. */
const ON_ITS_WAY_MS = 2 * 60_000;
const NEW_CARD_CAP_MICROS = usdToMicros(String(NEW_CUSTOMER_CAP.usdPerDay));
const NEW_CARD_MS = NEW_CUSTOMER_CAP.days * 86_400_000;

export interface OrderReconcilerParts {
  sql: Database;
  orders: OrderStore;
  provider: CardProvider;
  ledger: Ledger;
  keys: Keys;
  debts: Debts;
  /** What a kept card needs to be told. */
  recharges: Pick<AutoRecharges, 'enable' | 'paid' | 'failed' | 'stop'>;
  nowMs(): number;
  /** Told what changed: `paid`, `over`, `reversed`, `restored`, or `mismatch`, which somebody should look into. */
  report(what: 'paid' | 'over' | 'reversed' | 'restored' | 'mismatch', order: CardOrder): void;
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

/** What a look at the provider found. */
type Finding =
  | { is: 'open' }
  | { is: 'paid'; payment: PaymentFacts }
  | { is: 'over'; failure: Failure; paymentIntentId: string | null; because: 'refused' | 'absent' }
  /** Money came, and not what the order says. */
  | { is: 'mismatch'; payment: PaymentFacts };

/** Nobody can pay it any more. */
const refused = (failure: Failure | null, paymentIntentId: string | null): Finding => ({
  is: 'over',
  failure: failure ?? failureNamed('declined'),
  paymentIntentId,
  because: 'refused',
});

/** Its time is over and there is no payment: as long as nobody has begun one since. */
const absent = (code: string): Finding => ({
  is: 'over',
  failure: failureNamed(code),
  paymentIntentId: null,
  because: 'absent',
});

const failureNamed = (code: string): Failure => ({ code, declineCode: null, adviceCode: null });

export function createOrderReconciler(parts: OrderReconcilerParts): OrderReconciler {
  const { sql, orders, provider, ledger, keys, debts, recharges, nowMs } = parts;

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

  async function look(order: CardOrder): Promise<Finding> {
    const finding = await (order.kind === 'checkout' ? lookAtSession(order) : lookAtCharge(order));
    const isOurs = finding.is === 'mismatch' && finding.payment.orderId === order.id;
    return isOurs && order.state === 'open' ? sentBack(order, finding.payment) : finding;
  }

  /** Money that came for an order and is not what it says goes back whole, and buys nothing. */
  async function sentBack(order: CardOrder, payment: PaymentFacts): Promise<Finding> {
    if (payment.reversedMicros < payment.paidMicros)
      await provider.refund(payment.paymentIntentId, null, `mismatch:${order.id}`, false);
    return refused(failureNamed(MISMATCH), payment.paymentIntentId);
  }

  async function lookAtSession(order: CardOrder): Promise<Finding> {
    if (order.sessionId === null) {
      return nowMs() - order.createdAtMs < OPENED_BY_MS ? { is: 'open' } : absent('not_opened');
    }
    const session = await provider.session(order.sessionId);
    // Money before the page: whoever paid has paid, even if the page closed meanwhile.
    if (session.payment?.status === 'paid') return found(order, session.payment, session);
    if (session.status === 'expired') return absent('expired');
    return session.payment === null ? { is: 'open' } : found(order, session.payment, session);
  }

  /** A charge that the provider began and never ended is ended: its time is over, and nobody will come back to it. */
  async function foundCharge(order: CardOrder, payment: PaymentFacts): Promise<Finding> {
    const isLeft = payment.status === 'open' && nowMs() >= order.expiresAtMs + ON_ITS_WAY_MS;
    return found(order, isLeft ? await provider.cancel(payment.paymentIntentId) : payment, null);
  }

  /** A charge of ours is looked for, and made when there is none: the same order is never charged twice. */
  async function lookAtCharge(order: CardOrder): Promise<Finding> {
    if (order.paymentMethodId === null) throw new Error(`order ${order.id} has no card`);
    if (order.paymentIntentId !== null) {
      const payment = await provider.payment(order.paymentIntentId);
      return payment === null ? { is: 'open' } : foundCharge(order, payment);
    }
    const mayCharge = () => order.state === 'open' && nowMs() < order.expiresAtMs;
    // As long as there is no customer nobody has tried.
    if (order.customerId === null && !mayCharge()) return absent('not_charged');
    const { id, amountMicros, paymentMethodId, email, looks } = order;
    const customerId = order.customerId ?? (await provider.openCustomer({ orderId: id, attempt: looks }));
    if (looks > 0) {
      const earlier = await provider.findPayment({ orderId: id, customerId });
      if (earlier !== null) return foundCharge(order, earlier);
    }
    if (!mayCharge()) {
      const isOnItsWay = looks > 0 && nowMs() < order.expiresAtMs + ON_ITS_WAY_MS;
      return order.state === 'open' && isOnItsWay ? { is: 'open' } : absent('not_charged');
    }
    const payerId = await orders.charging(id, nowMs() + nextLookAfterMs(looks), customerId);
    if (payerId === null) return { is: 'open' };
    const outcome = await provider.charge({
      ...{ orderId: id, amountMicros, customerId: payerId, paymentMethodId, email },
      title: titleOf(order),
    });
    if (outcome.status === 'refused') {
      // It may have charged the card and refused all the same: what exists there is asked, before anybody is told to pay
      // again.
      const made = await provider.findPayment({ orderId: id, customerId: payerId });
      return made === null ? refused(outcome.failure, null) : foundCharge(order, made);
    }
    return found(order, outcome.payment, null);
  }

  async function move(
    transaction: Transaction,
    order: CardOrder,
    step: string,
    transfer: {
      accountId: bigint;
      side: 'debit' | 'credit';
      house: HouseAccount;
      amountMicros: bigint;
      code: TransferCode;
    },
  ): Promise<void> {
    if (transfer.amountMicros === 0n) return;
    const { status } = await ledger.transferWithin(transaction, {
      ...transfer,
      id: transferIdFor(`card:${order.id}:${step}`),
      phase: 'posted',
      note: noteOf(order),
    });
    if (status !== 'done') throw new Error(`the transfer ${step} of order ${order.id} was ${status}`);
  }

  /** Grants what was paid for. @returns the account that has it now */
  async function grant(
    transaction: Transaction,
    order: CardOrder,
    payment: PaymentFacts,
    change: OrderChange,
  ): Promise<bigint> {
    const accountId = order.accountId ?? (await ledger.openAccount(transaction));
    await debts.hold(transaction, accountId);
    const credit = { accountId, side: 'credit' } as const;
    await move(transaction, order, 'payment', {
      ...{ ...credit, house: 'card_clearing', code: 'card_payment', amountMicros: order.amountMicros },
    });
    await move(transaction, order, 'bonus', {
      ...{ ...credit, house: 'promotions', code: 'card_bonus' },
      amountMicros: order.creditMicros - order.amountMicros,
    });
    change.accountId = accountId;
    if (order.key !== null) {
      const key = { accountId, kind: 'paid', label: order.keyName, stored: order.key } as const;
      change.keyId = await keys.admit(transaction, key);
    } else await keys.becomePaid(transaction, accountId);
    if (order.kind === 'purchase' && !(await isKnownCustomer(transaction, accountId))) {
      await keys.fixCap(transaction, accountId, NEW_CARD_CAP_MICROS, nowMs() + NEW_CARD_MS);
    }
    await debts.collect(transaction, accountId, noteOf(order));
    if (order.recharge !== null && payment.customerId !== null && payment.paymentMethodId !== null) {
      await recharges.enable(transaction, {
        accountId,
        ...order.recharge,
        customerId: payment.customerId,
        paymentMethodId: payment.paymentMethodId,
        cardLabel: payment.card?.label ?? 'card',
        email: order.email,
      });
    }
    return accountId;
  }

  /**
   * Whether an account is known: it has paid by card so long ago that a theft would have been noticed, or an operator has
   * given it credit. What came from a wallet says nothing of the card: who has a stolen one has 5 USDC as well.
   */
  async function isKnownCustomer(transaction: Transaction, accountId: bigint): Promise<boolean> {
    const rows = await transaction`
      select 1 from card_orders where account_id = ${String(accountId)} and state = 1 and reversed_micros = 0
        and paid_at <= ${new Date(nowMs() - NEW_CARD_MS).toISOString()}
      union all
      select 1 from ledger_transfers where account_id = ${String(accountId)}
        and code = 'operator_grant' limit 1`;
    return rows.length > 0;
  }

  /** Books what was taken beyond the payment: a refund does not keep a bank from taking the same money once more. */
  async function lose(
    transaction: Transaction,
    order: CardOrder,
    { lostMicros }: PaymentFacts,
    change: OrderChange,
  ): Promise<void> {
    if (lostMicros === order.lostMicros) return;
    change.lostMicros = lostMicros;
    const more = lostMicros - order.lostMicros;
    await move(transaction, order, `loss:${order.version}`, {
      accountId: HOUSE_ACCOUNTS.settlement_losses,
      house: 'card_clearing',
      ...(more > 0n
        ? { side: 'debit', code: 'card_loss', amountMicros: more }
        : { side: 'credit', code: 'card_loss_undone', amountMicros: -more }),
    });
  }

  /** Takes back, or gives back, what the payment's refunds and disputes have changed. */
  async function reverse(
    transaction: Transaction,
    order: CardOrder,
    accountId: bigint,
    payment: PaymentFacts,
    change: OrderChange,
  ): Promise<'reversed' | 'restored' | null> {
    const target = payment.reversedMicros;
    noteDispute(order, payment, change);
    await lose(transaction, order, payment, change);
    if (target === order.reversedMicros) return null;
    const bonusMicros = order.creditMicros - order.amountMicros;
    const bonusTarget = (bonusMicros * target) / order.amountMicros;
    const available = await debts.hold(transaction, accountId);
    const step = (name: string) => `${name}:${order.version}`;
    change.reversedMicros = target;
    if (target > order.reversedMicros) {
      const due = target - order.reversedMicros;
      const taken = due < available ? due : available;
      const bonusDue = bonusTarget > order.bonusTakenMicros ? bonusTarget - order.bonusTakenMicros : 0n;
      const left = available - taken;
      const bonusTaken = bonusDue < left ? bonusDue : left;
      const debit = { accountId, side: 'debit', code: 'card_reversal' } as const;
      await move(transaction, order, step('reversal'), {
        ...{ ...debit, house: 'card_clearing', amountMicros: taken },
      });
      await move(transaction, order, step('bonus-taken'), {
        ...{ ...debit, house: 'promotions', amountMicros: bonusTaken },
      });
      change.bonusTakenMicros = order.bonusTakenMicros + bonusTaken;
      if (due > taken) await debts.owe(transaction, accountId, due - taken, noteOf(order));
      await recharges.stop(transaction, accountId, payment.dispute === null ? 'refund' : 'dispute');
      return 'reversed';
    }
    const due = order.reversedMicros - target;
    const waived = await debts.waive(transaction, accountId, due, noteOf(order));
    const credit = { accountId, side: 'credit', code: 'card_reversal_undone' } as const;
    await move(transaction, order, step('restored'), {
      ...{ ...credit, house: 'card_clearing', amountMicros: due - waived },
    });
    if (order.bonusTakenMicros > bonusTarget) {
      await move(transaction, order, step('bonus-restored'), {
        ...{ ...credit, house: 'promotions', amountMicros: order.bonusTakenMicros - bonusTarget },
      });
      change.bonusTakenMicros = bonusTarget;
    }
    await debts.collect(transaction, accountId, noteOf(order));
    return 'restored';
  }

  /** Changes an order that is held. */
  async function put(transaction: Transaction, order: CardOrder, change: OrderChange): Promise<void> {
    if (!(await orders.change(transaction, order, change)))
      throw new Error(`order ${order.id} was held and changed`);
  }

  /** Applies a snapshot. @returns false when the order was changed since before it was taken */
  async function apply(order: CardOrder, finding: Finding): Promise<boolean> {
    if (finding.is === 'open') return true;
    const told: Parameters<typeof parts.report>[0][] = [];
    const applied = await sql.begin(async (transaction) => {
      told.length = 0;
      const isAbsent = finding.is === 'over' && finding.because === 'absent';
      if (!(await orders.hold(transaction, order, { charging: isAbsent }))) return false;
      if (finding.is === 'mismatch') {
        // It names another order, or came to one that has ended: nothing here may touch it.
        if (order.failure !== MISMATCH) {
          told.push('mismatch');
          await put(transaction, order, { failure: MISMATCH, nextAtMs: null });
        }
        return true;
      }
      if (finding.is === 'over') {
        // What is paid stays paid, whatever becomes of the page.
        if (order.state !== 'open') return true;
        const { failure, paymentIntentId } = finding;
        told.push('over');
        if (failure.code === MISMATCH) told.push('mismatch');
        await put(transaction, order, {
          state: 'over',
          failure: failure.code,
          declineCode: failure.declineCode,
          ...(paymentIntentId === null ? {} : { paymentIntentId }),
          nextAtMs: null,
        });
        if (order.kind === 'recharge') await recharges.failed(transaction, order, failure);
        return true;
      }
      const { payment } = finding;
      const change: OrderChange = {};
      let { accountId } = order;
      if (order.state !== 'paid') {
        accountId = await grant(transaction, order, payment, change);
        told.push('paid');
        Object.assign(change, {
          ...{ state: 'paid', failure: null, declineCode: null, nextAtMs: null, paidAtMs: nowMs() },
          paymentIntentId: payment.paymentIntentId,
          ...(payment.customerId === null ? {} : { customerId: payment.customerId }),
          ...(payment.paymentMethodId === null ? {} : { paymentMethodId: payment.paymentMethodId }),
          ...(payment.card?.fingerprint == null ? {} : { cardFingerprint: payment.card.fingerprint }),
        } satisfies OrderChange);
      }
      if (accountId === null) throw new Error(`order ${order.id} is paid and has no account`);
      const reversal = await reverse(transaction, order, accountId, payment, change);
      if (reversal !== null) told.push(reversal);
      if (order.kind === 'recharge' && order.state !== 'paid') await recharges.paid(transaction, order);
      if (Object.keys(change).length > 0) await put(transaction, order, change);
      return true;
    });
    if (applied) for (const what of told) parts.report(what, order);
    return applied;
  }

  return {
    async reconcile(orderId) {
      for (let attempt = 1; ; attempt++) {
        const order = await orders.find(orderId);
        if (order === null) return null;
        let finding: Finding;
        try {
          finding = await look(order);
        } catch (error) {
          if (error instanceof ProviderUnavailable && order.state === 'open')
            await orders.looked(order.id, nowMs() + nextLookAfterMs(order.looks));
          throw error;
        }
        if (await apply(order, finding)) return orders.find(orderId);
        if (attempt >= MAX_ATTEMPTS)
          throw new Error(`order ${orderId} is changed faster than it can be read`);
        await sleep(BACKOFF_MS * attempt * Math.random());
      }
    },
  };
}

/** What a payer reads beside the amount. */
export function titleOf(order: Pick<CardOrder, 'creditMicros'>): string {
  return `Prepaid credit, ${microsToUsd(order.creditMicros, 2)} USD`;
}

function noteOf(order: CardOrder): string {
  return `order ${order.id}`;
}

/** What has changed about the order's dispute. */
function noteDispute(order: CardOrder, payment: PaymentFacts, change: OrderChange): void {
  if (payment.dispute !== order.dispute) change.dispute = payment.dispute;
  if (payment.disputeDueAtMs !== order.disputeDueAtMs) change.disputeDueAtMs = payment.disputeDueAtMs;
  if (payment.disputedMicros !== order.disputedMicros) change.disputedMicros = payment.disputedMicros;
}
