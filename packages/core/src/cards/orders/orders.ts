import type { Database, Transaction } from '../../db/connection.ts';
import { microsToUsd } from '../../ledger/money.ts';
import type { ShownCard } from '../provider.ts';

export type OrderKind = 'checkout' | 'purchase' | 'recharge';
export type OrderState = 'open' | 'paid' | 'over';
const STATES: readonly OrderState[] = ['open', 'paid', 'over'];

/** An order: what somebody set out to buy by card. */
export interface CardOrder {
  id: string;
  kind: OrderKind;
  state: OrderState;
  version: number;
  amountMicros: bigint;
  /** The credit that is granted when it is paid. */
  creditMicros: bigint;
  /** Null: a new account's, which is opened when it is paid. */
  accountId: bigint | null;
  keyId: bigint | null;
  /** The stored part of the key that it buys; null: it buys none. */
  key: { lookup: bigint; digest: Buffer; prefix: string } | null;
  tokenDigest: Buffer | null;
  requestDigest: Buffer | null;
  keyName: string | null;
  email: string | null;
  /** The card is to be kept, and charged so much whenever the balance falls below so much. */
  recharge: { thresholdMicros: bigint; topUpMicros: bigint } | null;
  sessionId: string | null;
  sessionUrl: string | null;
  paymentIntentId: string | null;
  customerId: string | null;
  paymentMethodId: string | null;
  /** The provider's name for the card, once it is known. */
  cardFingerprint: string | null;
  /** The card that paid; null: not paid, paid before this was kept, or its payer was erased. */
  shownCard: ShownCard | null;
  failure: string | null;
  declineCode: string | null;
  /** How much of the payment went back or is disputed. */
  reversedMicros: bigint;
  /** How much of the credit beyond the payment was taken back with it. */
  bonusTakenMicros: bigint;
  /** How much of it is disputed, and may still come back. */
  disputedMicros: bigint;
  /** How much was taken beyond the payment itself. */
  lostMicros: bigint;
  /** The provider's word for where a dispute stands; null: there is none. */
  dispute: string | null;
  /** The time until which the provider takes evidence in it; null: no more, or there is no dispute. */
  disputeDueAtMs: number | null;
  createdAtMs: number;
  expiresAtMs: number;
  looks: number;
  /** When a charge of its card was last asked for; null: never. */
  chargeAskedAtMs: number | null;
  paidAtMs: number | null;
  deliveredAtMs: number | null;
  /** The first place that had the key; null: nobody, or it was before this was kept. */
  deliveredTo: 'agent' | 'page' | null;
  pageSeal: Buffer | null;
  /** Whether its payer was erased: nobody is mailed about it. */
  isErased: boolean;
  /** The version of our secret that the key follows from; null without a key, or before this was kept. */
  keySecretId: string | null;
}

export interface NewOrder {
  id: string;
  kind: OrderKind;
  amountMicros: bigint;
  creditMicros: bigint;
  accountId: bigint | null;
  key: CardOrder['key'];
  tokenDigest: Buffer | null;
  requestDigest: Buffer | null;
  keyName: string | null;
  email: string | null;
  recharge: CardOrder['recharge'];
  customerId: string | null;
  paymentMethodId: string | null;
  cardFingerprint: string | null;
  addressDigest: Buffer | null;
  /** The same digest as `addressDigest`, of the IPv6 site; null for IPv4 and for whatever does not count by address. */
  siteDigest: Buffer | null;
  /** The version of our secret that the key follows from; null without a key. */
  keySecretId: string | null;
  /** The retrieval token under the proof of the return page; left out: no page leads to the key. */
  pageSeal?: Buffer | null;
  expiresAtMs: number;
  /** When the sweeper looks at it first. */
  nextAtMs: number;
}

/** The fields that may change. `nextAtMs` null: nobody need look at it again unless something is heard of it. */
export interface OrderChange {
  state?: OrderState;
  accountId?: bigint;
  keyId?: bigint;
  sessionId?: string;
  sessionUrl?: string | null;
  paymentIntentId?: string;
  customerId?: string;
  paymentMethodId?: string;
  cardFingerprint?: string;
  shownCard?: ShownCard;
  failure?: string | null;
  declineCode?: string | null;
  reversedMicros?: bigint;
  bonusTakenMicros?: bigint;
  disputedMicros?: bigint;
  lostMicros?: bigint;
  dispute?: string | null;
  disputeDueAtMs?: number | null;
  /** Since when its card is to be forgotten wherever it is kept. */
  forgetCardSinceMs?: number;
  expiresAtMs?: number;
  nextAtMs?: number | null;
  paidAtMs?: number;
}

export interface OrderStore {
  /** Adds an order. @returns false when its secret names one already: the same purchase again */
  insert(on: Database | Transaction, order: NewOrder): Promise<boolean>;
  find(id: string): Promise<CardOrder | null>;
  findBySession(sessionId: string): Promise<CardOrder | null>;
  findByPayment(paymentIntentId: string): Promise<CardOrder | null>;
  /** The purchase that was asked for under this secret. */
  findPurchase(tokenDigest: Buffer): Promise<CardOrder | null>;
  /**
   * Holds an order until the transaction ends: the first thing to do in it.
   *
   * @param unless.charging not when somebody has begun to charge it since it was read, either
   * @returns false when it was changed since it was read
   */
  hold(transaction: Transaction, order: CardOrder, unless: { charging: boolean }): Promise<boolean>;
  /** Changes an order. @returns false, and changes nothing, when it was changed since it was read */
  change(on: Database | Transaction, order: CardOrder, change: OrderChange): Promise<boolean>;
  /** Counts a look at the provider, and says when the next is due unless something is heard of it before. */
  looked(id: string, nextAtMs: number): Promise<void>;
  /**
   * Records an attempt to charge a card before it is made, so that it is known after a crash. Nobody charges without it, so
   * an order that is over or expired is never charged.
   *
   * @param customerId the provider's name for whom to charge, under which the payment will be found
   * @returns the customer that was written down first, whom to charge; null: do not charge
   */
  charging(on: Transaction, id: string, nextAtMs: number, customerId: string): Promise<string | null>;
  /**
   * Whether the provider may be asked about this order now: at most once in so many milliseconds, by whomever.
   */
  mayLook(id: string, everyMs: number): Promise<boolean>;
  /**
   * Orders that somebody should look at, longest waiting first; they are put off so that others take other ones.
   *
   * @param of.pages those that wait for a person, or those that charge a card
   */
  takeDue(of: { pages: boolean }, limit: number, putOffMs: number): Promise<readonly string[]>;
  /** Lets a closed order rest: nobody need look at it again unless something is heard of it. */
  rest(id: string): Promise<void>;
  /** Has the sweeper look at what was paid since then, the newest first and a few at a time. @returns how many */
  wakePaid(sinceMs: number): Promise<number>;
  /** Forgets checkouts from before then that nobody has tried to pay, so many at most. @returns how many */
  forgetUnpaid(beforeMs: number, limit: number): Promise<number>;
  /** Marks the key as handed over. @returns when it was for the first time, in milliseconds since 1970 */
  deliver(id: string, to: 'agent' | 'page'): Promise<number>;
}

interface OrderRow {
  id: string;
  kind: OrderKind;
  state: number;
  version: number;
  amount_micros: bigint;
  credit_micros: bigint;
  account_id: bigint | null;
  key_id: bigint | null;
  key_lookup: bigint | null;
  key_digest: Buffer | null;
  key_prefix: string | null;
  token_digest: Buffer | null;
  request_digest: Buffer | null;
  key_name: string | null;
  email: string | null;
  recharge_threshold_micros: bigint | null;
  recharge_top_up_micros: bigint | null;
  session_id: string | null;
  session_url: string | null;
  payment_intent_id: string | null;
  customer_id: string | null;
  payment_method_id: string | null;
  card_fingerprint: string | null;
  card_brand: string | null;
  card_last4: string | null;
  failure: string | null;
  decline_code: string | null;
  reversed_micros: bigint;
  bonus_taken_micros: bigint;
  disputed_micros: bigint;
  lost_micros: bigint;
  dispute: string | null;
  dispute_due_at: Date | null;
  created_at: Date;
  expires_at: Date;
  looks: number;
  charge_asked_at: Date | null;
  paid_at: Date | null;
  delivered_at: Date | null;
  delivered_to: 'agent' | 'page' | null;
  page_seal: Buffer | null;
  key_secret_id: string | null;
  erased_at: Date | null;
}

/** Slower than the sweeper is, so that others have their turn. */
const WAKE_EVERY_MS = 1_000;
/** The most orders that one statement can wake in its time. */
const WOKEN_AT_MOST = 200_000;

/** How long the sweeper leaves an order that it could not finish, by how often it has looked. */
export function nextLookAfterMs(looks: number): number {
  return Math.min(60_000 * 2 ** Math.min(looks, 10), 6 * 3_600_000);
}

/** Card orders in SQL. */
export function createOrderStore(sql: Database, nowMs: () => number): OrderStore {
  const iso = (ms: number) => new Date(ms).toISOString();
  /** The same for a column: null empties it, undefined leaves it as it is. */
  const now = () => iso(nowMs());
  const text = (value: bigint | null) => (value === null ? null : String(value));

  async function findWhere(on: Database | Transaction, where: ReturnType<typeof sql>): Promise<CardOrder[]> {
    const rows = await on<OrderRow[]>`select * from card_orders where ${where}`;
    return rows.map(readRow);
  }
  const firstOf = async (orders: Promise<CardOrder[]>) => (await orders)[0] ?? null;

  return {
    async insert(on, order) {
      const rows = await on`
        insert into card_orders ${on({
          id: order.id,
          kind: order.kind,
          amount_micros: String(order.amountMicros),
          credit_micros: String(order.creditMicros),
          account_id: text(order.accountId),
          key_lookup: text(order.key?.lookup ?? null),
          key_digest: order.key?.digest ?? null,
          key_prefix: order.key?.prefix ?? null,
          token_digest: order.tokenDigest,
          request_digest: order.requestDigest,
          key_name: order.keyName,
          email: order.email,
          recharge_threshold_micros: text(order.recharge?.thresholdMicros ?? null),
          recharge_top_up_micros: text(order.recharge?.topUpMicros ?? null),
          customer_id: order.customerId,
          payment_method_id: order.paymentMethodId,
          card_fingerprint: order.cardFingerprint,
          address_digest: order.addressDigest,
          site_digest: order.siteDigest,
          key_secret_id: order.keySecretId,
          page_seal: order.pageSeal ?? null,
          created_at: now(),
          expires_at: iso(order.expiresAtMs),
          next_at: iso(order.nextAtMs),
        })} on conflict do nothing returning id`;
      return rows.length === 1;
    },

    find: (id) => firstOf(findWhere(sql, sql`id = ${id}`)),
    findBySession: (sessionId) => firstOf(findWhere(sql, sql`session_id = ${sessionId}`)),
    findByPayment: (paymentIntentId) => firstOf(findWhere(sql, sql`payment_intent_id = ${paymentIntentId}`)),
    findPurchase: (tokenDigest) =>
      firstOf(findWhere(sql, sql`token_digest = ${tokenDigest} and kind = 'purchase'`)),

    async hold(transaction, order, { charging }) {
      const rows = await transaction<{ looks: number }[]>`
        select looks from card_orders where id = ${order.id} and version = ${order.version} for update`;
      // Whoever charges counts a look before.
      return rows.length === 1 && !(charging && rows[0]?.looks !== order.looks);
    },

    async change(on, order, change) {
      const rows = await on`
        update card_orders set ${on({ ...columnsOf(change), version: order.version + 1 })}
        where id = ${order.id} and version = ${order.version} returning id`;
      return rows.length === 1;
    },

    async looked(id, nextAtMs) {
      await sql`
        update card_orders set looks = looks + 1, looked_at = ${now()}, next_at = ${iso(nextAtMs)}
        where id = ${id} and state = 0`;
    },

    async charging(on, id, nextAtMs, customerId) {
      const [row] = await on<{ customer_id: string }[]>`
        update card_orders set looks = looks + 1, looked_at = ${now()}, next_at = ${iso(nextAtMs)},
          charge_asked_at = ${now()}, customer_id = coalesce(customer_id, ${customerId})
        where id = ${id} and state = 0 and expires_at > ${now()} returning customer_id`;
      return row?.customer_id ?? null;
    },

    async mayLook(id, everyMs) {
      const rows = await sql`
        update card_orders set looked_at = ${now()}
        where id = ${id} and (looked_at is null or looked_at <= ${iso(nowMs() - everyMs)}) returning id`;
      return rows.length === 1;
    },

    async takeDue({ pages }, limit, putOffMs) {
      const rows = await sql<{ id: string }[]>`
        update card_orders set next_at = ${iso(nowMs() + putOffMs)}
        where id in (
          select id from card_orders where next_at <= ${now()} and (kind = 'checkout') = ${pages}
          order by next_at limit ${limit} for update skip locked
        ) returning id`;
      return rows.map(({ id }) => id);
    },

    async rest(id) {
      await sql`update card_orders set next_at = null where id = ${id} and state <> 0`;
    },

    async wakePaid(sinceMs) {
      const rows = await sql`
        update card_orders o set next_at = ${now()}::timestamptz + paid.number * ${WAKE_EVERY_MS} * interval '1 ms'
        from (
          select id, row_number() over (order by paid_at desc) as number from card_orders
          where state = 1 and paid_at >= ${iso(sinceMs)} order by paid_at desc limit ${WOKEN_AT_MOST}
        ) paid
        where o.id = paid.id and o.next_at is null`;
      return rows.count;
    },

    async forgetUnpaid(beforeMs, limit) {
      const { count } = await sql`
        delete from card_orders where id in (
          select id from card_orders where created_at < ${iso(beforeMs)} and kind = 'checkout' and state = 2
            and payment_intent_id is null order by created_at limit ${limit} for update skip locked)`;
      return count;
    },

    async deliver(id, to) {
      const [row] = await sql<{ delivered_at: Date }[]>`
        update card_orders set delivered_at = coalesce(delivered_at, ${now()}),
          delivered_to = case when delivered_at is null then ${to} else delivered_to end
        where id = ${id} returning delivered_at`;
      if (row === undefined) throw new Error(`there is no order ${id}`);
      return row.delivered_at.getTime();
    },
  };
}

/** The columns that a change touches, and what stands in them then. */
function columnsOf(change: OrderChange): Record<string, string | number | null> {
  const columns: Record<string, string | number | null> = {};
  const put = (column: string, value: string | number | null | undefined) => {
    if (value !== undefined) columns[column] = value;
  };
  put('state', change.state === undefined ? undefined : STATES.indexOf(change.state));
  put('account_id', change.accountId === undefined ? undefined : String(change.accountId));
  put('key_id', change.keyId === undefined ? undefined : String(change.keyId));
  put('session_id', change.sessionId);
  put('session_url', change.sessionUrl);
  put('payment_intent_id', change.paymentIntentId);
  put('customer_id', change.customerId);
  put('payment_method_id', change.paymentMethodId);
  put('card_fingerprint', change.cardFingerprint);
  put('card_brand', change.shownCard?.brand);
  put('card_last4', change.shownCard?.last4);
  put('failure', change.failure);
  put('decline_code', change.declineCode);
  put('reversed_micros', change.reversedMicros?.toString());
  put('bonus_taken_micros', change.bonusTakenMicros?.toString());
  put('disputed_micros', change.disputedMicros?.toString());
  put('lost_micros', change.lostMicros?.toString());
  put('dispute', change.dispute);
  put('dispute_due_at', moment(change.disputeDueAtMs));
  put('forget_card_since', moment(change.forgetCardSinceMs));
  put('expires_at', moment(change.expiresAtMs));
  put('next_at', moment(change.nextAtMs));
  put('paid_at', moment(change.paidAtMs));
  return columns;
}

const moment = (ms: number | null | undefined) => (typeof ms === 'number' ? new Date(ms).toISOString() : ms);

function readRow(row: OrderRow): CardOrder {
  const state = STATES[row.state];
  if (state === undefined) throw new Error(`order ${row.id} is in state ${row.state}`);
  const { key_lookup: lookup, key_digest: digest, key_prefix: prefix } = row;
  const { recharge_threshold_micros: thresholdMicros, recharge_top_up_micros: topUpMicros } = row;
  const { card_brand: brand, card_last4: last4 } = row;
  return {
    id: row.id,
    kind: row.kind,
    state,
    version: row.version,
    amountMicros: row.amount_micros,
    creditMicros: row.credit_micros,
    accountId: row.account_id,
    keyId: row.key_id,
    key: lookup === null || digest === null || prefix === null ? null : { lookup, digest, prefix },
    tokenDigest: row.token_digest,
    requestDigest: row.request_digest,
    keyName: row.key_name,
    email: row.email,
    recharge: thresholdMicros === null || topUpMicros === null ? null : { thresholdMicros, topUpMicros },
    sessionId: row.session_id,
    sessionUrl: row.session_url,
    paymentIntentId: row.payment_intent_id,
    customerId: row.customer_id,
    paymentMethodId: row.payment_method_id,
    cardFingerprint: row.card_fingerprint,
    shownCard: brand === null || last4 === null ? null : { brand, last4 },
    failure: row.failure,
    declineCode: row.decline_code,
    reversedMicros: row.reversed_micros,
    bonusTakenMicros: row.bonus_taken_micros,
    disputedMicros: row.disputed_micros,
    lostMicros: row.lost_micros,
    dispute: row.dispute,
    disputeDueAtMs: row.dispute_due_at?.getTime() ?? null,
    createdAtMs: row.created_at.getTime(),
    expiresAtMs: row.expires_at.getTime(),
    looks: row.looks,
    chargeAskedAtMs: row.charge_asked_at?.getTime() ?? null,
    paidAtMs: row.paid_at?.getTime() ?? null,
    deliveredAtMs: row.delivered_at?.getTime() ?? null,
    deliveredTo: row.delivered_to,
    pageSeal: row.page_seal,
    isErased: row.erased_at !== null,
    keySecretId: row.key_secret_id,
  };
}

/** The title that a payer reads beside the amount. */
export function titleOf(order: Pick<CardOrder, 'creditMicros'>): string {
  return `Prepaid credit, ${microsToUsd(order.creditMicros, 2)} USD`;
}
