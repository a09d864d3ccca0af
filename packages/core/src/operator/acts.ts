/**
 * The operators' acts: each act is a row that is never changed, with who, why and what it moved. The row and what it does
 * are one commit (`act-log.ts`). Where the card provider must do its part, the row comes first (`order-refunds.ts`).
 */
import type { Database, Transaction } from '../db/connection.ts';
import { Problem } from '../http/problem.ts';
import type { Keys } from '../keys/keys.ts';
import { liftBounds } from '../keys/root-buyer.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { holdBucket } from '../ledger/buckets.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import type { RuleChange, StockDesk } from '../stock/desk.ts';
import {
  type Act,
  type ActDone,
  type CardRefunds,
  type GiftOrder,
  type NoPaymentRefund,
  noCards,
  type Order,
  type PaymentRefunds,
} from './act.ts';
import { ActLog, type Doing, type Subject } from './act-log.ts';
import { refuseArchived } from './archived-call.ts';
import { type Gift, refuseAlone } from './given-alone.ts';
import { type OrderRefund, OrderRefunds } from './order-refunds.ts';

const MAX_NOTE_CHARACTERS = 500;

export interface Acts {
  freeze(order: Order): Promise<ActDone>;
  /** Takes the operator's freeze away; an account that owes stays frozen. */
  unfreeze(order: Order): Promise<ActDone>;
  /** Lets accounts that were bought with this one's credit be counted by themselves, for bounds per account. */
  liftBounds(order: Order): Promise<ActDone>;
  grant(order: GiftOrder & { amountMicros: bigint }): Promise<ActDone>;
  /** Gives a captured call's price back to the key's account, once. */
  refundCall(order: GiftOrder & { callId: string }): Promise<ActDone>;
  /** Owes a captured call's price to the wallet that paid it; a job sends it. */
  refundPayment(order: GiftOrder & { callId: string }): Promise<ActDone>;
  /** Sends a card payment back, or a part of it. `amountMicros` null: the rest. */
  refundOrder(order: OrderRefund): Promise<ActDone>;
  /** Mails whoever paid an order a link that gives a new key, and ends the others. */
  mailKey(order: Order & { orderId: string }): Promise<ActDone>;
  /** Sells a service otherwise, or as before again. */
  setService(order: Omit<Order, 'accountId'> & { path: string; rule: RuleChange }): Promise<ActDone>;
  /** Goes on with an act whose end is not known. */
  goOn(actId: string): Promise<ActDone>;
  /** The newest first, 50 at a time. `after`: the number of the last one seen. */
  list(filter: { accountId: bigint | null; after: bigint | null }): Promise<Act[]>;
  /** Those whose end is not known, oldest first, at most 50. */
  open(): Promise<Act[]>;
}

interface ActsParts {
  sql: Database;
  ledger: Ledger;
  keys: Keys;
  /** Pays what an account owes from credit that has just come, in the same commit. */
  collectDebts(transaction: Transaction, accountId: bigint): Promise<unknown>;
  /** Null: there is no card provider. */
  cards: CardRefunds | null;
  /** The most that one operator alone may give, in micro-USD; null: any sum. */
  aloneUpToMicros(): bigint | null;
  payments: PaymentRefunds;
  /** What is sold, and how an operator changes it. */
  stock: Pick<StockDesk, 'set' | 'follow'>;
  /** The beginnings of the names of services that sell credit. */
  creditServices(): readonly string[];
  nowMs(): number;
}

export function createActs(parts: ActsParts): Acts {
  return new OperatorActs(parts);
}

class OperatorActs implements Acts {
  readonly #parts: ActsParts;
  readonly #log: ActLog;
  readonly #refunds: OrderRefunds;

  constructor(parts: ActsParts) {
    this.#parts = parts;
    this.#log = new ActLog(parts.sql, parts.nowMs);
    this.#refunds = new OrderRefunds(this.#log, parts);
  }

  freeze(order: Order): Promise<ActDone> {
    const { keys } = this.#parts;
    return this.#log.once('freeze', order, {
      details: [],
      prepare: (transaction) => this.#holdCustomer(transaction, order),
      effect: (transaction) => keys.freeze(transaction, order.accountId, 'operator', noteOf(order)),
    });
  }

  unfreeze(order: Order): Promise<ActDone> {
    const { keys } = this.#parts;
    return this.#log.once('unfreeze', order, {
      details: [],
      prepare: (transaction) => this.#holdCustomer(transaction, order),
      async effect(transaction) {
        if (await keys.thaw(transaction, order.accountId, 'operator')) return;
        throw new Problem(409, 'NOT_FROZEN', 'No operator has frozen this account.');
      },
    });
  }

  liftBounds(order: Order): Promise<ActDone> {
    const { nowMs } = this.#parts;
    return this.#log.once('lift_bounds', order, {
      details: [],
      prepare: (transaction) => this.#holdCustomer(transaction, order),
      async effect(transaction) {
        if (await liftBounds(transaction, order.accountId, new Date(nowMs()).toISOString())) return;
        throw new Problem(409, 'BOUNDS_LIFTED', 'The bounds of this buyer are lifted already.');
      },
    });
  }

  grant(order: GiftOrder & { amountMicros: bigint }): Promise<ActDone> {
    const { keys, nowMs } = this.#parts;
    const { accountId, amountMicros } = order;
    return this.#log.once('grant', order, {
      details: [String(amountMicros)],
      prepare: async (transaction, id) => {
        await this.#holdCustomer(transaction, order);
        await refuseUnspendable(transaction, accountId, new Date(nowMs()).toISOString());
        const gift = { act: 'grant', amountMicros } as const;
        return this.#counted(transaction, { order, gift }, { amountMicros, transferId: id });
      },
      effect: async (transaction, { transferId = '' }) => {
        const transfer = { id: transferId, accountId, house: 'operator_grants', amountMicros } as const;
        await this.#give(transaction, { ...transfer, code: 'operator_grant' }, noteOf(order));
        // What is given must not run out with what was left of a trial.
        await keys.becomePaid(transaction, accountId);
      },
    });
  }

  refundCall(order: GiftOrder & { callId: string }): Promise<ActDone> {
    const { accountId, callId } = order;
    return this.#log.once('refund_call', order, {
      details: [callId],
      prepare: async (transaction) => {
        await this.#holdCustomer(transaction, order);
        const call = await chargedCall(transaction, accountId, callId);
        return this.#counted(transaction, { order, gift: { act: 'refund_call', callId } }, call);
      },
      effect: (transaction, { transferId = '', amountMicros = 0n }) => {
        const transfer = { id: transferId, accountId, house: 'revenue_credits', amountMicros } as const;
        return this.#give(transaction, { ...transfer, code: 'operator_refund' }, noteOf(order));
      },
    });
  }

  refundPayment(order: GiftOrder & { callId: string }): Promise<ActDone> {
    const { payments, creditServices, nowMs } = this.#parts;
    const { callId } = order;
    return this.#log.once('refund_payment', order, {
      details: [callId],
      prepare: async (transaction) => {
        const owed = await payments.look(transaction, callId);
        if (typeof owed === 'string') throw noPaymentRefund(owed);
        if (creditServices().some((name) => owed.service.startsWith(name))) throw creditIsOut();
        const { amountMicros, transferId } = owed;
        const gift = { act: 'refund_payment', callId } as const;
        return this.#counted(transaction, { order, gift }, { callId, amountMicros, transferId });
      },
      effect: (transaction) =>
        payments.owe(transaction, callId, 'sent back by the operator', new Date(nowMs()).toISOString()),
    });
  }

  refundOrder(order: OrderRefund): Promise<ActDone> {
    return this.#refunds.refund(order);
  }

  async mailKey(order: Order & { orderId: string }): Promise<ActDone> {
    return this.#log.once('mail_key', order, keyMailed(order, this.#parts.cards));
  }

  async setService(order: Omit<Order, 'accountId'> & { path: string; rule: RuleChange }): Promise<ActDone> {
    const { stock } = this.#parts;
    const { actor, path, rule } = order;
    const { priceMicros, isAvailable, isSoldByMpp } = rule;
    let id = '';
    // It is about no account of a customer.
    const done = await this.#log.once(
      'set_service',
      { ...order, accountId: HOUSE_ACCOUNTS.revenue_credits },
      {
        details: [path, String(priceMicros), String(isAvailable), String(isSoldByMpp)],
        async prepare(_transaction, actId) {
          id = actId;
          return {};
        },
        effect: (transaction) => stock.set(transaction, { actId: id, actor }, { path, rule }),
      },
    );
    await stock.follow();
    return done;
  }

  async goOn(actId: string): Promise<ActDone> {
    return this.#refunds.finish({ act: await this.#log.byId(actId), repeated: true });
  }

  list(filter: { accountId: bigint | null; after: bigint | null }): Promise<Act[]> {
    return this.#log.list(filter);
  }

  open(): Promise<Act[]> {
    return this.#log.open();
  }

  /** Checks that this operator may give as much as a gift is of. @throws Problem 409 SECOND_OPERATOR_NEEDED */
  async #counted<What extends Subject & { amountMicros: bigint }>(
    transaction: Transaction,
    of: { order: GiftOrder; gift: Gift },
    what: What,
  ): Promise<What> {
    await refuseAlone(transaction, { ...of, amountMicros: what.amountMicros }, this.#parts);
    return what;
  }

  /** Locks a customer's account. @throws Problem 404 when there is none, or when it is one of the house's own */
  async #holdCustomer(transaction: Transaction, { accountId }: Order): Promise<Subject> {
    const [row] =
      await transaction`select 1 from ledger_accounts where id = ${String(accountId)} and not house`;
    if (row === undefined) throw new Problem(404, 'NO_SUCH_ACCOUNT', 'There is no such account.');
    await this.#parts.ledger.lock(transaction, [accountId]);
    return {};
  }

  /** A transfer that must take place: what would not is refused, and nothing of the act stays. */
  async #give(
    transaction: Transaction,
    transfer: Pick<
      Parameters<Ledger['transferWithin']>[1],
      'id' | 'accountId' | 'house' | 'amountMicros' | 'code'
    >,
    note: string,
  ): Promise<void> {
    const { ledger, collectDebts } = this.#parts;
    const posted = { ...transfer, phase: 'posted', side: 'credit', note } as const;
    const { status } = await ledger.transferWithin(transaction, posted);
    if (status !== 'done') throw new Error(`the ledger answered ${status} to transfer ${transfer.id}`);
    await collectDebts(transaction, transfer.accountId);
  }
}

/** Works out what goes back of a call. @throws Problem 404, 409 when nothing can */
async function chargedCall(
  transaction: Transaction,
  accountId: bigint,
  callId: string,
): Promise<Subject & { amountMicros: bigint }> {
  const bucket = await holdBucket(transaction, accountId);
  const [call] = await transaction<
    { state: number; key_id: bigint | null; price_micros: bigint; revenue: bigint }[]
  >`
    select c.state, c.key_id, c.price_micros, t.credit_account as revenue from calls c
    join ledger_transfers t on t.bucket = c.bucket and t.account_id = c.account_id and t.id = c.id and t.phase = 2
    where c.bucket = ${bucket} and c.account_id = ${String(accountId)} and c.id = ${callId} for key share of c`;
  // Read after the call is locked: a week is sealed when nobody has a call of it.
  await refuseArchived(transaction, callId);
  if (call === undefined) throw new Problem(404, 'NO_SUCH_CALL', 'This account has no such call.');
  if (call.state !== 1 || call.revenue !== HOUSE_ACCOUNTS.revenue_credits)
    throw new Problem(
      409,
      'CALL_NOT_CHARGED',
      'Nothing was charged for this call, so nothing can be refunded.',
    );
  // The same id as when a call could not be delivered: a price goes back once, whoever sends it.
  const transferId = transferIdFor(`refund:${callId}`);
  const refunds = await transaction`
    select 1 from ledger_transfers where account_id = ${String(accountId)} and id = ${transferId}`;
  if (refunds.length > 0)
    throw new Problem(409, 'CALL_ALREADY_REFUNDED', 'The price of this call has gone back already.');
  return { callId, keyId: call.key_id, amountMicros: call.price_micros, transferId };
}

const NO_PAYMENT_REFUND: Readonly<Record<NoPaymentRefund, [status: number, code: string, message: string]>> =
  {
    unknown: [404, 'NO_SUCH_CALL', 'No chain paid for a call of this id.'],
    not_charged: [409, 'CALL_NOT_CHARGED', 'Nothing was charged for this call, so nothing can be refunded.'],
    already: [409, 'CALL_ALREADY_REFUNDED', 'Money of this call has gone back already, or is on its way.'],
    not_final: [
      409,
      'PAYMENT_NOT_FINAL',
      'The chain may still take this payment back. Try again when its transaction is final.',
    ],
    cannot: [
      409,
      'REFUND_KEY_MISSING',
      'This server has no key that sends payments back on this chain. docs/taking-x402.md says which variable holds it.',
    ],
  };

function noPaymentRefund(why: NoPaymentRefund): Problem {
  return new Problem(...NO_PAYMENT_REFUND[why]);
}

/** A call that sold a key or a top-up: its price lives on in an account. */
function creditIsOut(): Problem {
  return new Problem(
    409,
    'CALL_SOLD_CREDIT',
    'This call sold credit, which can still be spent. Freeze the account that it went to, and settle with its owner.',
  );
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

/** The note in the ledger of who acted and why. The whole reason is in the act's own row. */
function noteOf({ actor, reason }: Order): string {
  return `${actor}: ${reason}`.slice(0, MAX_NOTE_CHARACTERS).toWellFormed();
}
