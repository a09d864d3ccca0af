/**
 * Moves in the books what an order's payment moves: the credit that it buys, and what is taken back or given back when the payment
 * goes back or returns. All of it happens in the commit that changes the order, while the order is held.
 */
import type { Transaction } from '../../db/connection.ts';
import { NEW_CUSTOMER_CAP } from '../../keys/credit-tiers.ts';
import type { Keys } from '../../keys/keys.ts';
import { HOUSE_ACCOUNTS, type HouseAccount } from '../../ledger/accounts.ts';
import type { Ledger, TransferCode } from '../../ledger/ledger.ts';
import { usdToMicros } from '../../ledger/money.ts';
import { transferIdFor } from '../../ledger/transfer-id.ts';
import type { Debts } from '../disputes/debts.ts';
import { isDisputed } from '../disputes/disputed-cards.ts';
import type { ReversalWalks } from '../disputes/reversal-walks.ts';
import type { PaymentFacts } from '../provider.ts';
import type { AutoRecharges } from '../recharge/auto-recharge.ts';
import type { CardOrder, OrderChange } from './orders.ts';

const NEW_CARD_CAP_MICROS = usdToMicros(String(NEW_CUSTOMER_CAP.usdPerDay));
const NEW_CARD_MS = NEW_CUSTOMER_CAP.days * 86_400_000;

export interface OrderBooksParts {
  ledger: Ledger;
  keys: Keys;
  debts: Debts;
  walks: ReversalWalks;
  recharges: Pick<AutoRecharges, 'enable' | 'stop'>;
  nowMs(): number;
}

/** A paid order whose payment changed. */
interface Reversal {
  order: CardOrder;
  accountId: bigint;
  payment: PaymentFacts;
  /** The changes to be written about the order; grows. */
  change: OrderChange;
}

export class OrderBooks {
  readonly #parts: OrderBooksParts;

  constructor(parts: OrderBooksParts) {
    this.#parts = parts;
  }

  /** Grants what was paid for. @param change grows by what is to be written. @returns the account that has it now */
  async grant(
    transaction: Transaction,
    order: CardOrder,
    payment: PaymentFacts,
    change: OrderChange,
  ): Promise<bigint> {
    const { ledger, debts, keys, nowMs } = this.#parts;
    const accountId = order.accountId ?? (await ledger.openAccount(transaction));
    await debts.hold(transaction, accountId);
    await this.#credit(transaction, order, accountId);
    change.accountId = accountId;
    if (order.key === null) await keys.becomePaid(transaction, accountId);
    else {
      const key = { accountId, kind: 'paid', label: order.keyName, stored: order.key } as const;
      change.keyId = await keys.admit(transaction, key);
    }
    if (order.kind === 'purchase' && !(await isKnownCustomer(transaction, accountId, nowMs())))
      await keys.fixCap(transaction, accountId, NEW_CARD_CAP_MICROS, nowMs() + NEW_CARD_MS);
    await debts.collect(transaction, accountId, noteOf(order));
    await this.#keepCard(transaction, order, accountId, payment);
    return accountId;
  }

  /** Takes back, or gives back, what the payment's refunds and disputes have changed. @returns which; null: nothing */
  async reverse(transaction: Transaction, reversal: Reversal): Promise<'reversed' | 'restored' | null> {
    const { order, payment, change } = reversal;
    noteDispute(order, payment, change);
    if (payment.dispute !== order.dispute && isDisputed(payment.dispute))
      change.forgetCardSinceMs = this.#parts.nowMs();
    await this.#lose(transaction, order, payment, change);
    if (payment.reversedMicros === order.reversedMicros) return null;
    change.reversedMicros = payment.reversedMicros;
    if (payment.reversedMicros > order.reversedMicros) {
      await this.#takeBack(transaction, reversal);
      return 'reversed';
    }
    await this.#giveBack(transaction, reversal);
    return 'restored';
  }

  /** The payment becomes credit, with the bonus that the order promised. */
  async #credit(transaction: Transaction, order: CardOrder, accountId: bigint): Promise<void> {
    const credit = { accountId, side: 'credit' } as const;
    await this.#move(transaction, order, 'payment', {
      ...credit,
      house: 'card_clearing',
      code: 'card_payment',
      amountMicros: order.amountMicros,
    });
    await this.#move(transaction, order, 'bonus', {
      ...credit,
      house: 'promotions',
      code: 'card_bonus',
      amountMicros: order.creditMicros - order.amountMicros,
    });
  }

  async #keepCard(
    transaction: Transaction,
    order: CardOrder,
    accountId: bigint,
    { customerId, paymentMethodId, card }: PaymentFacts,
  ): Promise<void> {
    if (order.recharge === null || customerId === null || paymentMethodId === null) return;
    const cardLabel = card?.label ?? 'card';
    await this.#parts.recharges.enable(transaction, {
      accountId,
      ...order.recharge,
      customerId,
      paymentMethodId,
      cardLabel,
      email: order.email,
      cardFingerprint: card?.fingerprint ?? null,
    });
  }

  /** Books what was taken beyond the payment: a refund does not keep a bank from taking the same money once more. */
  async #lose(
    transaction: Transaction,
    order: CardOrder,
    { lostMicros }: PaymentFacts,
    change: OrderChange,
  ): Promise<void> {
    if (lostMicros === order.lostMicros) return;
    change.lostMicros = lostMicros;
    const more = lostMicros - order.lostMicros;
    await this.#move(transaction, order, `loss:${order.version}`, {
      accountId: HOUSE_ACCOUNTS.settlement_losses,
      house: 'card_clearing',
      ...(more > 0n
        ? { side: 'debit', code: 'card_loss', amountMicros: more }
        : { side: 'credit', code: 'card_loss_undone', amountMicros: -more }),
    });
  }

  /**
   * Takes the payment back out of all that the account has to spend, and the bonus out of the rest. What is missing is owed.
   * Where keys were bought with it, only what is left of the payment itself is taken at first; what is missing is looked for
   * on those keys, and only then in what else the account has.
   */
  async #takeBack(transaction: Transaction, { order, accountId, payment, change }: Reversal): Promise<void> {
    const { debts, recharges, walks } = this.#parts;
    const allMicros = await debts.hold(transaction, accountId);
    const ordered = { orderId: order.id, accountId };
    const reversedMicros = payment.reversedMicros - order.reversedMicros;
    const dueMicros =
      reversedMicros - (await walks.withdraw(transaction, { ...ordered, amountMicros: reversedMicros }));
    const ownMicros = await walks.ownPart(transaction, { ...ordered, availableMicros: allMicros });
    const availableMicros = ownMicros ?? allMicros;
    const takenMicros = least(dueMicros, availableMicros);
    const bonusDueMicros = bonusToTake(order, payment) - order.bonusTakenMicros;
    const bonusTakenMicros = least(bonusDueMicros > 0n ? bonusDueMicros : 0n, availableMicros - takenMicros);
    const debit = { accountId, side: 'debit', code: 'card_reversal' } as const;
    await this.#move(transaction, order, `reversal:${order.version}`, {
      ...debit,
      house: 'card_clearing',
      amountMicros: takenMicros,
    });
    await this.#move(transaction, order, `bonus-taken:${order.version}`, {
      ...debit,
      house: 'promotions',
      amountMicros: bonusTakenMicros,
    });
    change.bonusTakenMicros = order.bonusTakenMicros + bonusTakenMicros;
    const missingMicros = dueMicros - takenMicros;
    if (missingMicros > 0n) {
      await debts.owe(transaction, accountId, missingMicros, noteOf(order));
      // Also while a call is running: it may be buying a key.
      if (ownMicros !== null || (await isBusy(transaction, accountId)))
        await walks.take(transaction, { ...ordered, amountMicros: missingMicros });
    }
    await recharges.stop(transaction, accountId, payment.dispute === null ? 'refund' : 'dispute');
  }

  /**
   * Gives back what came back: first to keys that it was taken from, then by taking less of what is owed, the rest as credit,
   * and the bonus with it.
   */
  async #giveBack(transaction: Transaction, { order, accountId, payment, change }: Reversal): Promise<void> {
    const { debts, walks } = this.#parts;
    await debts.hold(transaction, accountId);
    const amountMicros = order.reversedMicros - payment.reversedMicros;
    const dueMicros =
      amountMicros - (await walks.give(transaction, { orderId: order.id, accountId, amountMicros }));
    const waivedMicros = await debts.waive(transaction, accountId, dueMicros, noteOf(order));
    const credit = { accountId, side: 'credit', code: 'card_reversal_undone' } as const;
    await this.#move(transaction, order, `restored:${order.version}`, {
      ...credit,
      house: 'card_clearing',
      amountMicros: dueMicros - waivedMicros,
    });
    const bonusMicros = bonusToTake(order, payment);
    if (order.bonusTakenMicros > bonusMicros) {
      await this.#move(transaction, order, `bonus-restored:${order.version}`, {
        ...credit,
        house: 'promotions',
        amountMicros: order.bonusTakenMicros - bonusMicros,
      });
      change.bonusTakenMicros = bonusMicros;
    }
    await debts.collect(transaction, accountId, noteOf(order));
  }

  /** One transfer of an order. @param step makes its id: the same step again is the same transfer */
  async #move(
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
    const { status } = await this.#parts.ledger.transferWithin(transaction, {
      ...transfer,
      id: transferIdFor(`card:${order.id}:${step}`),
      phase: 'posted',
      note: noteOf(order),
    });
    if (status !== 'done') throw new Error(`the transfer ${step} of order ${order.id} was ${status}`);
  }
}

/**
 * Whether an account is known: it has paid by card so long ago that a theft would have been noticed, or an operator has
 * given it credit. A payment from a wallet says nothing of the card: who has a stolen card has 5 USDC as well.
 */
async function isKnownCustomer(transaction: Transaction, accountId: bigint, nowMs: number): Promise<boolean> {
  const rows = await transaction`
    select 1 from card_orders where account_id = ${String(accountId)} and state = 1 and reversed_micros = 0
      and paid_at <= ${new Date(nowMs - NEW_CARD_MS).toISOString()}
    union all
    select 1 from ledger_transfers where account_id = ${String(accountId)}
      and code = 'operator_grant' limit 1`;
  return rows.length > 0;
}

/** Whether a running call holds some of an account's credit. */
async function isBusy(transaction: Transaction, accountId: bigint): Promise<boolean> {
  const rows = await transaction`
    select 1 from ledger_accounts where id = ${String(accountId)} and debits_pending > 0`;
  return rows.length > 0;
}

/** How much of the bonus goes with what went back of the payment: the same share of it. */
function bonusToTake(order: CardOrder, { reversedMicros }: PaymentFacts): bigint {
  return ((order.creditMicros - order.amountMicros) * reversedMicros) / order.amountMicros;
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function noteOf(order: CardOrder): string {
  return `order ${order.id}`;
}

/** Notes what has changed about the order's dispute. */
function noteDispute(order: CardOrder, payment: PaymentFacts, change: OrderChange): void {
  if (payment.dispute !== order.dispute) change.dispute = payment.dispute;
  if (payment.disputeDueAtMs !== order.disputeDueAtMs) change.disputeDueAtMs = payment.disputeDueAtMs;
  if (payment.disputedMicros !== order.disputedMicros) change.disputedMicros = payment.disputedMicros;
}
