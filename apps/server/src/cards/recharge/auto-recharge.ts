/**
 * Auto-recharge: a card is kept, and charged when the balance is low. The commit that lowers the balance also marks the
 * account as due (migration 007). A job opens an order for the charge, and from then on the order decides. An account has
 * at most one open order, so that a charge of unknown outcome is waited for and never made twice.
 *
 * Locks are taken in the order card_orders, ledger_accounts, api_keys, auto_recharges, mails.
 */
import { arrayLiteral } from '../../db/array-literal.ts';
import type { Database, Transaction } from '../../db/connection.ts';
import { Problem } from '../../http/problem.ts';
import { microsToUsd } from '../../ledger/money.ts';
import { newTransferId, transferIdFor } from '../../ledger/transfer-id.ts';
import type { Mailer } from '../../mail/mailer.ts';
import type { CardOrder, OrderStore } from '../orders/orders.ts';
import type { Failure } from '../provider.ts';
import { declineReason, readDecline } from './declines.ts';
import { HOW_TO_KEEP_A_CARD, type MailText, rechargeMails } from './recharge-mail.ts';
import { checkRecharge, type RechargePatch, type RechargeSettings } from './recharge-settings.ts';

export interface AutoRecharges {
  /** Keeps a card, in the commit of the payment that asked for it. Replaces what was kept before. */
  enable(transaction: Transaction, card: NewKeptCard): Promise<void>;
  /** In the commit that grants a recharge order's credit: ready for the next time, or due at once if it is still low. */
  paid(transaction: Transaction, order: CardOrder): Promise<void>;
  /** In the commit that ends a recharge order unpaid: another time, or not any more. */
  failed(transaction: Transaction, order: CardOrder, failure: Failure): Promise<void>;
  /** Switches it off for a reason, such as `dispute`, `refund`, `card_detached`. Nothing happens where it is off. */
  stop(transaction: Transaction, accountId: bigint, reason: string): Promise<void>;
  /** The job: opens orders for all that is due and that nobody holds, and has them charged. @returns how many it opened */
  run(): Promise<number>;
  describe(accountId: bigint): Promise<RechargeView>;
  /**
   * @throws Problem 400 INVALID_AUTO_RECHARGE when a top-up would not reach the threshold; 409 NO_SAVED_CARD when there
   *   is no card to charge
   */
  change(accountId: bigint, patch: RechargePatch): Promise<RechargeView>;
}

export interface NewKeptCard extends RechargeSettings {
  accountId: bigint;
  customerId: string;
  paymentMethodId: string;
  /** What its owner knows the card by, such as `visa 4242`. */
  cardLabel: string;
  email: string | null;
}

const STATES = ['idle', 'due', 'charging', 'off'] as const;
type State = (typeof STATES)[number];
/** What one that is due waits for: see `nextAttemptAt`. */
type WaitingFor = 'decline' | 'spacing' | 'daily_limit' | 'thaw';

/** What the key's owner sees. Amounts in USD with six places, times in ISO 8601. */
export type RechargeView =
  | { enabled: false; disabledReason: null; how: string }
  | {
      enabled: boolean;
      state: State;
      thresholdUsd: string;
      topUpUsd: string;
      /** Null: it must not be charged again; only another card helps. */
      card: string | null;
      email: string | null;
      lastChargedAt: string | null;
      /** In the last 24 hours, one that is under way included. */
      chargesToday: number;
      maxChargesPerDay: number;
      nextAttemptAt: string | null;
      waitingFor: WaitingFor | null;
      disabledReason: string | null;
    };

export interface AutoRechargeParts {
  orders: Pick<OrderStore, 'insert'>;
  /** Asks the provider to charge an order, and brings the books up to date. */
  reconcile(orderId: string): Promise<unknown>;
  mailer: Pick<Mailer, 'enqueue'>;
  /** Where the API is, for mail. */
  baseUrl: string;
  /** Charges of one account in 24 hours. */
  maxPerDay: number;
  nowMs(): number;
  /** What became of a due account, for the log: no address and no card. */
  report(outcome: 'charging' | 'waiting' | 'off' | 'unknown', account: RechargeReport): void;
}

export interface RechargeReport {
  accountId: bigint;
  orderId?: string;
  reason?: string;
  /** Why its outcome is unknown. The order's sweeper finds out. */
  error?: unknown;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** After the first decline in a row that may pass, the second, the third; after one more it is off. */
const BACK_OFF_MS = [HOUR_MS, 6 * HOUR_MS, DAY_MS];
const SPACING_MS = MINUTE_MS;
/** In 24 hours no more than so many times the top-up, whatever it was in between. */
const MAX_TOP_UPS_PER_DAY = 5n;
const MAX_DECLINES_PER_DAY = 3;
/** Card networks fine a merchant for more attempts than this on a card that declines, in so many days. */
const MAX_DECLINES = 15;
const DECLINES_COUNTED_MS = 30 * DAY_MS;
const MAX_ATTEMPTS_READ = 1_000;
/** A key that is frozen may thaw: see again. */
const FROZEN_FOR_MS = 10 * MINUTE_MS;
/** Less than a day, for which the provider knows a repeated charge by its idempotency key. */
const ORDER_LIVES_MS = 23 * HOUR_MS;
/** Whoever opened the order charges it at once; when that process dies, the sweeper does. */
const SWEEPER_LOOKS_AFTER_MS = 30_000;
const NOTICES_AT_ONCE = 1_000;
const ACCOUNTS_AT_ONCE = 20;

/** Reasons after which the card is not kept: its owner must not be charged without being asked anew. */
const FORGET_CARD_FOR = new Set(['dispute', 'card_detached', 'declined_too_often']);

interface Recharge extends RechargeSettings {
  state: State;
  customerId: string;
  paymentMethodId: string | null;
  cardLabel: string;
  email: string | null;
  /** The order that is under way, even when it is off. */
  orderId: string | null;
  softFailures: number;
  nextAtMs: number | null;
  waitingFor: WaitingFor | null;
  offReason: string | null;
  lastChargedAtMs: number | null;
}

interface RechargeRow {
  state: number;
  threshold_micros: bigint;
  top_up_micros: bigint;
  customer_id: string;
  payment_method_id: string | null;
  card_label: string;
  email: string | null;
  order_id: string | null;
  soft_failures: number;
  next_at: Date | null;
  waiting_for: WaitingFor | null;
  off_reason: string | null;
  last_charged_at: Date | null;
}

/** An order of before, for the limits. */
export interface Attempt {
  atMs: number;
  amountMicros: bigint;
  /** It ended without a payment. */
  failed: boolean;
  paymentMethodId: string | null;
}

/** What stands between an account that is due and the charge. */
export type Obstacle = { untilMs: number; waitingFor: WaitingFor } | { off: string };

/**
 * The limits: so many charges and so much money in 24 hours, a minute between two, and not again and again on a card
 * that declines. A limit is waited for; only a card that keeps declining is given up.
 *
 * @param attempts of the last 30 days
 * @returns null: charge
 */
export function limitOf(
  attempts: readonly Attempt[],
  kept: { topUpMicros: bigint; paymentMethodId: string | null },
  maxPerDay: number,
  nowMs: number,
): Obstacle | null {
  const declinesOfCard = attempts.filter(
    (each) => each.failed && each.paymentMethodId === kept.paymentMethodId,
  );
  if (declinesOfCard.length >= MAX_DECLINES) return { off: 'declined_too_often' };

  const today = attempts.filter(({ atMs }) => atMs > nowMs - DAY_MS);
  const charges = today.filter(({ failed }) => !failed);
  const declines = today.filter(({ failed }) => failed);
  const charged = charges.reduce((sum, { amountMicros }) => sum + amountMicros, 0n);
  const whenOldestIsADayOld = (group: readonly Attempt[]) =>
    Math.min(...group.map(({ atMs }) => atMs)) + DAY_MS;
  if (charges.length >= maxPerDay || charged + kept.topUpMicros > MAX_TOP_UPS_PER_DAY * kept.topUpMicros)
    return { untilMs: whenOldestIsADayOld(charges), waitingFor: 'daily_limit' };
  if (declines.length >= MAX_DECLINES_PER_DAY)
    return { untilMs: whenOldestIsADayOld(declines), waitingFor: 'decline' };

  const nextMs = Math.max(...today.map(({ atMs }) => atMs)) + SPACING_MS;
  return nextMs > nowMs ? { untilMs: nextMs, waitingFor: 'spacing' } : null;
}

export function createAutoRecharges(sql: Database, parts: AutoRechargeParts): AutoRecharges {
  const { orders, mailer, maxPerDay, nowMs, report } = parts;
  const mails = rechargeMails(parts.baseUrl);
  const iso = (ms: number) => new Date(ms).toISOString();
  const isoOrNull = (ms: number | null) => (ms === null ? null : iso(ms));
  const now = () => iso(nowMs());

  /** Locks an account and what is kept for it. @returns its balance, reservations included */
  async function hold(
    transaction: Transaction,
    accountId: bigint,
  ): Promise<{ balanceMicros: bigint; kept: Recharge | null }> {
    const [account] = await transaction<{ balance: bigint }[]>`
      select credits_posted - debits_posted as balance from ledger_accounts where id = ${String(accountId)}
      for no key update`;
    if (account === undefined) throw new Error(`there is no account ${accountId}`);
    const [row] = await transaction<RechargeRow[]>`
      select * from auto_recharges where account_id = ${String(accountId)} for update`;
    return { balanceMicros: account.balance, kept: row === undefined ? null : readRow(row) };
  }

  /** Writes what is kept, in the state that follows from it. The account is held. */
  async function write(
    transaction: Transaction,
    accountId: bigint,
    balanceMicros: bigint,
    changed: Omit<Recharge, 'state'>,
  ): Promise<void> {
    const kept = settled(changed, balanceMicros);
    const watched = kept.state === 'off' ? null : String(kept.thresholdMicros);
    // First: when the balance is low already, the database makes the row due, which is then written as it must be.
    await transaction`
      update ledger_accounts set low_below_micros = ${watched}
      where id = ${String(accountId)} and low_below_micros is distinct from ${watched}::bigint`;
    const columns = {
      state: STATES.indexOf(kept.state),
      threshold_micros: String(kept.thresholdMicros),
      top_up_micros: String(kept.topUpMicros),
      customer_id: kept.customerId,
      payment_method_id: kept.paymentMethodId,
      card_label: kept.cardLabel,
      email: kept.email,
      order_id: kept.orderId,
      soft_failures: kept.softFailures,
      next_at: isoOrNull(kept.nextAtMs),
      waiting_for: kept.waitingFor,
      off_reason: kept.offReason,
      last_charged_at: isoOrNull(kept.lastChargedAtMs),
      changed_at: now(),
    };
    await transaction`
      insert into auto_recharges ${transaction({ account_id: String(accountId), created_at: now(), ...columns })}
      on conflict (account_id) do update set ${transaction(columns)}`;
  }

  async function mail(
    transaction: Transaction,
    to: string | null,
    cause: string,
    { subject, text }: MailText,
  ): Promise<void> {
    if (to === null) return;
    await mailer.enqueue(transaction, { id: transferIdFor(`mail:recharge:${cause}`), to, subject, text });
  }

  async function stop(transaction: Transaction, accountId: bigint, reason: string): Promise<void> {
    const { balanceMicros, kept } = await hold(transaction, accountId);
    if (kept === null) return;
    const forget = FORGET_CARD_FOR.has(reason);
    const wasOn = kept.state !== 'off';
    // What is off stays off for its first reason, unless this one is the end of the card as well.
    if (!wasOn && (!forget || kept.paymentMethodId === null)) return;
    const paymentMethodId = forget ? null : kept.paymentMethodId;
    await write(transaction, accountId, balanceMicros, { ...kept, paymentMethodId, offReason: reason });
    if (!wasOn) return;
    await mail(
      transaction,
      kept.email,
      `${accountId}:off:${now()}`,
      mails.off(kept, { amountMicros: null, balanceMicros, reason, cardIsKept: !forget }),
    );
  }

  /** Makes an account idle that is due and not low any more: somebody else has topped it up. @returns whether it was */
  async function restIfFull(accountId: bigint): Promise<boolean> {
    // One statement, which holds the account as briefly as a debit does. While it is held no debit can take place that
    // would find the row due, leave it so, and be forgotten.
    const rows = await sql`
      with account as (
        select id, credits_posted - debits_posted as balance from ledger_accounts where id = ${String(accountId)}
        for no key update
      )
      update auto_recharges r set state = 0, next_at = null, waiting_for = null, changed_at = ${now()}
      from account where r.account_id = account.id and r.state = 1 and account.balance >= r.threshold_micros
      returning r.account_id`;
    return rows.length === 1;
  }

  /** Whether there is a key that the charge would be for. */
  async function keyObstacle(transaction: Transaction, accountId: bigint): Promise<Obstacle | null> {
    const rows = await transaction<{ status: string }[]>`
      select distinct status from api_keys
      where account_id = ${String(accountId)} and status <> 'revoked'
        and (expires_at is null or expires_at > ${now()})`;
    if (rows.length === 0) return { off: 'no_active_key' };
    if (rows.some(({ status }) => status === 'active')) return null;
    return { untilMs: nowMs() + FROZEN_FOR_MS, waitingFor: 'thaw' };
  }

  async function attemptsOf(transaction: Transaction, accountId: bigint): Promise<Attempt[]> {
    const rows = await transaction<
      { created_at: Date; amount_micros: bigint; state: number; payment_method_id: string | null }[]
    >`
      select created_at, amount_micros, state, payment_method_id from card_orders
      where account_id = ${String(accountId)} and kind = 'recharge'
        and created_at > ${iso(nowMs() - DECLINES_COUNTED_MS)}
      order by created_at desc limit ${MAX_ATTEMPTS_READ}`;
    return rows.map((row) => ({
      atMs: row.created_at.getTime(),
      amountMicros: row.amount_micros,
      failed: row.state === 2,
      paymentMethodId: row.payment_method_id,
    }));
  }

  /** Opens the order of an account that is due, if it may be charged now. @returns the order, or what stands between */
  async function open(accountId: bigint): Promise<string | Obstacle | null> {
    return sql.begin(async (transaction) => {
      const [row] = await transaction<RechargeRow[]>`
        select * from auto_recharges
        where account_id = ${String(accountId)} and state = 1 and (next_at is null or next_at <= ${now()})
        for update skip locked`;
      if (row === undefined) return null;
      const kept = readRow(row);
      const obstacle =
        (await keyObstacle(transaction, accountId)) ??
        limitOf(await attemptsOf(transaction, accountId), kept, maxPerDay, nowMs());
      if (obstacle !== null) {
        if ('untilMs' in obstacle) {
          await transaction`
            update auto_recharges set next_at = ${iso(obstacle.untilMs)}, waiting_for = ${obstacle.waitingFor}
            where account_id = ${String(accountId)}`;
        }
        return obstacle;
      }
      const orderId = newTransferId(nowMs());
      // Whoever is due has no order under way, so this waits for nobody although the row is held already.
      const inserted = await orders.insert(transaction, {
        id: orderId,
        kind: 'recharge',
        amountMicros: kept.topUpMicros,
        creditMicros: kept.topUpMicros,
        accountId,
        customerId: kept.customerId,
        paymentMethodId: kept.paymentMethodId,
        expiresAtMs: nowMs() + ORDER_LIVES_MS,
        nextAtMs: nowMs() + SWEEPER_LOOKS_AFTER_MS,
        ...{ key: null, tokenDigest: null, requestDigest: null, keyName: null, email: null, recharge: null },
        ...{ cardFingerprint: null, addressDigest: null, siteDigest: null, keySecretId: null },
      });
      if (!inserted) throw new Error(`account ${accountId} is due while an order of its is under way`);
      await transaction`
        update auto_recharges
        set state = 2, order_id = ${orderId}, next_at = null, waiting_for = null, changed_at = ${now()}
        where account_id = ${String(accountId)}`;
      return orderId;
    });
  }

  /** @returns whether a charge was begun */
  async function recharge(accountId: bigint): Promise<boolean> {
    if (await restIfFull(accountId)) return false;
    const opened = await open(accountId);
    if (opened === null) return false;
    if (typeof opened !== 'string') {
      const isOff = 'off' in opened;
      // With the row let go: to stop means to hold the account first.
      if (isOff) await sql.begin((transaction) => stop(transaction, accountId, opened.off));
      report(isOff ? 'off' : 'waiting', { accountId, reason: isOff ? opened.off : opened.waitingFor });
      return false;
    }
    report('charging', { accountId, orderId: opened });
    await parts
      .reconcile(opened)
      .catch((error: unknown) => report('unknown', { accountId, orderId: opened, error }));
    return true;
  }

  function viewOf(kept: Recharge, chargesToday: number): RechargeView {
    return {
      enabled: kept.state !== 'off',
      state: kept.state,
      thresholdUsd: microsToUsd(kept.thresholdMicros),
      topUpUsd: microsToUsd(kept.topUpMicros),
      card: kept.paymentMethodId === null ? null : kept.cardLabel,
      email: kept.email === null ? null : masked(kept.email),
      lastChargedAt: isoOrNull(kept.lastChargedAtMs),
      chargesToday,
      maxChargesPerDay: maxPerDay,
      nextAttemptAt: kept.state === 'due' ? iso(kept.nextAtMs ?? nowMs()) : null,
      waitingFor: kept.waitingFor,
      disabledReason: kept.offReason,
    };
  }

  async function describe(accountId: bigint): Promise<RechargeView> {
    const [row] = await sql<(RechargeRow & { charges: bigint })[]>`
      select r.*, (
        select count(*) from card_orders o
        where o.account_id = r.account_id and o.kind = 'recharge' and o.state <> 2
          and o.created_at > ${iso(nowMs() - DAY_MS)}
      ) as charges
      from auto_recharges r where r.account_id = ${String(accountId)}`;
    return row === undefined ? NOT_KEPT : viewOf(readRow(row), Number(row.charges));
  }

  return {
    describe,
    stop,

    async enable(transaction, { accountId, ...card }) {
      const { balanceMicros, kept } = await hold(transaction, accountId);
      await write(transaction, accountId, balanceMicros, {
        ...card,
        // An order on the card of before goes on.
        orderId: kept?.orderId ?? null,
        lastChargedAtMs: kept?.lastChargedAtMs ?? null,
        ...{ softFailures: 0, nextAtMs: null, waitingFor: null, offReason: null },
      });
      await mail(transaction, card.email, `${accountId}:on:${now()}`, mails.enabled(card));
    },

    async paid(transaction, order) {
      const accountId = accountOf(order);
      const { balanceMicros, kept } = await hold(transaction, accountId);
      if (kept === null) return;
      await write(transaction, accountId, balanceMicros, {
        ...withoutOrder(kept, order),
        softFailures: 0,
        lastChargedAtMs: nowMs(),
      });
      const text = mails.charged(kept, order.amountMicros, balanceMicros);
      await mail(transaction, kept.email, `${order.id}:paid`, text);
    },

    async failed(transaction, order, failure) {
      const accountId = accountOf(order);
      const { balanceMicros, kept } = await hold(transaction, accountId);
      if (kept === null) return;
      const free = withoutOrder(kept, order);
      // Switched off meanwhile, or another card is kept by now: then this says nothing of what is kept.
      if (kept.state === 'off' || order.paymentMethodId !== kept.paymentMethodId) {
        return write(transaction, accountId, balanceMicros, free);
      }
      const { amountMicros } = order;
      const verdict = readDecline(failure);
      const reason = declineReason(failure);
      const pauseMs = verdict === 'later' ? BACK_OFF_MS[kept.softFailures] : undefined;
      if (pauseMs === undefined) {
        const paymentMethodId = verdict === 'forget' ? null : kept.paymentMethodId;
        await write(transaction, accountId, balanceMicros, { ...free, paymentMethodId, offReason: reason });
        const cardIsKept = paymentMethodId !== null;
        const text = mails.off(kept, { amountMicros, balanceMicros, reason, cardIsKept });
        return mail(transaction, kept.email, `${order.id}:off`, text);
      }
      const nextAtMs = nowMs() + pauseMs;
      await write(transaction, accountId, balanceMicros, {
        ...free,
        softFailures: kept.softFailures + 1,
        nextAtMs,
        waitingFor: 'decline',
      });
      const text = mails.declined(kept, { amountMicros, balanceMicros, reason, nextAtMs });
      await mail(transaction, kept.email, `${order.id}:declined`, text);
    },

    async change(accountId, patch) {
      await sql.begin(async (transaction) => {
        const { balanceMicros, kept } = await hold(transaction, accountId);
        if (kept === null) {
          // Switching off what there is not is done.
          if (patch.enabled === false && Object.keys(patch).length === 1) return;
          throw noSavedCard();
        }
        const { enabled, ...settings } = patch;
        const merged = { ...kept, ...settings };
        checkRecharge(merged);
        if (enabled === true && kept.state === 'off') {
          if (kept.paymentMethodId === null) throw noSavedCard();
          merged.offReason = null;
          merged.softFailures = 0;
        }
        if (enabled === false && kept.state !== 'off') merged.offReason = 'owner';
        await write(transaction, accountId, balanceMicros, merged);
        if (merged.email !== kept.email)
          await mail(transaction, kept.email, `${accountId}:moved:${now()}`, mails.movedAway());
        // Whoever holds the key may ask more of the card; its owner is to know.
        if (merged.topUpMicros > kept.topUpMicros || merged.thresholdMicros > kept.thresholdMicros)
          await mail(transaction, kept.email, `${accountId}:raised:${now()}`, mails.raised(merged));
      });
      return describe(accountId);
    },

    async run() {
      let begun = 0;
      const failures: unknown[] = [];
      // Debits that saw a balance low while somebody held its recharge left a notice.
      const noticed = sql`
        with noticed as (
          delete from auto_recharge_notices
          where ctid in (select ctid from auto_recharge_notices limit ${NOTICES_AT_ONCE} for update skip locked)
          returning account_id
        )
        update auto_recharges r set state = 1
        from (select distinct account_id from noticed) n join ledger_accounts a on a.id = n.account_id
        where r.account_id = n.account_id and r.state = 0
          and a.credits_posted - a.debits_posted < a.low_below_micros`;
      await noticed.catch((error: unknown) => failures.push(error));
      // One that fails stays due: it has had its turn in this round.
      const seen: bigint[] = [];
      for (let more = true; more; ) {
        const due = await sql<{ account_id: bigint }[]>`
          select r.account_id from auto_recharges r join ledger_accounts a on a.id = r.account_id
          where r.state = 1 and (r.next_at is null or r.next_at <= ${now()})
            and r.account_id <> all(${arrayLiteral(seen)}::text::bigint[])
          order by r.next_at nulls first limit ${ACCOUNTS_AT_ONCE} for no key update skip locked`;
        const rounds = await Promise.allSettled(
          due.map(({ account_id: accountId }) => {
            seen.push(accountId);
            return recharge(accountId);
          }),
        );
        for (const each of rounds) {
          if (each.status === 'rejected') failures.push(each.reason);
          else if (each.value) begun += 1;
        }
        more = due.length === ACCOUNTS_AT_ONCE;
      }
      if (failures.length > 0) throw failures[0];
      return begun;
    },
  };
}

const HOW = `No card is kept. ${HOW_TO_KEEP_A_CARD}`;
const NOT_KEPT: RechargeView = { enabled: false, disabledReason: null, how: HOW };

function noSavedCard(): Problem {
  return new Problem(409, 'NO_SAVED_CARD', 'There is no card that may be charged for this key.', {
    details: { how: HOW, charged: false },
  });
}

/** The state that follows: off for a reason, charging while an order is under way, due while the balance is low. */
function settled(kept: Omit<Recharge, 'state'>, balanceMicros: bigint): Recharge {
  const waits = { nextAtMs: null, waitingFor: null };
  if (kept.offReason !== null) return { ...kept, ...waits, state: 'off' };
  if (kept.orderId !== null) return { ...kept, ...waits, state: 'charging' };
  if (balanceMicros >= kept.thresholdMicros) return { ...kept, ...waits, state: 'idle' };
  return { ...kept, state: 'due' };
}

function withoutOrder(kept: Recharge, order: CardOrder): Recharge {
  return kept.orderId === order.id ? { ...kept, orderId: null } : kept;
}

function accountOf({ id, accountId }: CardOrder): bigint {
  if (accountId === null) throw new Error(`order ${id} recharges no account`);
  return accountId;
}

/** `a***@example.com`: enough to know one's own address by. */
function masked(email: string): string {
  return `${email.slice(0, 1)}***${email.slice(email.lastIndexOf('@'))}`;
}

function readRow(row: RechargeRow): Recharge {
  const state = STATES[row.state];
  if (state === undefined) throw new Error(`an auto-recharge is in state ${row.state}`);
  return {
    state,
    thresholdMicros: row.threshold_micros,
    topUpMicros: row.top_up_micros,
    customerId: row.customer_id,
    paymentMethodId: row.payment_method_id,
    cardLabel: row.card_label,
    email: row.email,
    orderId: row.order_id,
    softFailures: row.soft_failures,
    nextAtMs: row.next_at?.getTime() ?? null,
    waitingFor: row.waiting_for,
    offReason: row.off_reason,
    lastChargedAtMs: row.last_charged_at?.getTime() ?? null,
  };
}
