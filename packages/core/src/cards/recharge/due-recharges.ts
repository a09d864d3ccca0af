/**
 * The job that charges accounts which are due. It opens an order for each charge, and from then on the order decides. An
 * account has at most one open order, so a charge of unknown outcome is waited for and never made twice.
 */
import { arrayLiteral } from '../../db/array-literal.ts';
import type { Database, Transaction } from '../../db/connection.ts';
import type { BucketTurns } from '../../ledger/bucket-turns.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import { isCardDisputed } from '../disputes/disputed-cards.ts';
import { WITHDRAWN } from '../orders/look.ts';
import type { OrderStore } from '../orders/orders.ts';
import { hold, type KeptCard, type KeptCardRow, readKeptCard } from './kept-card.ts';
import { ATTEMPTS_COUNTED_MS, type Attempt, limitOf, type Obstacle } from './recharge-limits.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const MAX_ATTEMPTS_READ = 1_000;
/** A key that is frozen may thaw: see again. */
const FROZEN_FOR_MS = 10 * MINUTE_MS;
/** Less than a day, for which the provider knows a repeated charge by its idempotency key. */
const ORDER_LIVES_MS = 23 * HOUR_MS;
/** The time after which the sweeper charges an order whose opener has died before it could. */
const SWEEPER_LOOKS_AFTER_MS = 30_000;
const NOTICES_AT_ONCE = 1_000;
const ACCOUNTS_AT_ONCE = 20;

export interface RechargeReport {
  accountId: bigint;
  orderId?: string;
  reason?: string;
  /** Why its outcome is unknown. The order's sweeper finds out. */
  error?: unknown;
}

export interface DueRechargesParts {
  sql: Database;
  turns: BucketTurns;
  orders: Pick<OrderStore, 'insert'>;
  /** Asks the provider to charge an order, and brings the books up to date. */
  reconcile(orderId: string): Promise<unknown>;
  /** Switches an account's recharges off, in a transaction that holds nothing yet. */
  stop(transaction: Transaction, accountId: bigint, reason: string): Promise<void>;
  /** Charges of one account in 24 hours. */
  maxPerDay: number;
  nowMs(): number;
  /** Reports the outcome for a due account to the log: no address and no card. */
  report(outcome: 'charging' | 'waiting' | 'off' | 'unknown', account: RechargeReport): void;
}

export class DueRecharges {
  readonly #parts: DueRechargesParts;

  constructor(parts: DueRechargesParts) {
    this.#parts = parts;
  }

  /**
   * Charges all accounts that are due and that nobody holds. What `stopping` keeps from being charged stays due.
   *
   * @returns how many charges it began
   * @throws the first failure, after the others had their turn
   */
  async run(stopping?: AbortSignal): Promise<number> {
    let begun = 0;
    const failures: unknown[] = [];
    await this.#readNotices(stopping).catch((error: unknown) => failures.push(error));
    // One that fails stays due: it has had its turn in this round.
    const seen: bigint[] = [];
    for (let more = true; more && stopping?.aborted !== true; ) {
      const due = await this.#dueWithout(seen);
      seen.push(...due);
      for (const each of await Promise.allSettled(
        due.map((accountId) => this.#recharge(accountId, stopping)),
      )) {
        if (each.status === 'rejected') failures.push(each.reason);
        else if (each.value) begun += 1;
      }
      more = due.length === ACCOUNTS_AT_ONCE;
    }
    if (failures.length > 0) throw failures[0];
    return begun;
  }

  /** Makes accounts due by the notices of debits which saw a balance low while somebody held its recharge. */
  async #readNotices(stopping?: AbortSignal): Promise<void> {
    const { turns } = this.#parts;
    await turns.each(
      NOTICES_AT_ONCE,
      (bucket) => (bucket === null ? this.#readAllNotices() : this.#readNoticesOf(bucket)),
      stopping,
    );
  }

  async #readAllNotices(): Promise<number> {
    await this.#parts.sql`
      with noticed as (
        delete from auto_recharge_notices
        where ctid in (select ctid from auto_recharge_notices limit ${NOTICES_AT_ONCE} for update skip locked)
        returning account_id
      )
      update auto_recharges r set state = 1
      from (select distinct account_id from noticed) n join ledger_accounts a on a.id = n.account_id
      where r.account_id = n.account_id and r.state = 0
        and a.credits_posted - a.debits_posted < a.low_below_micros`;
    return 0;
  }

  /**
   * The same on a database that is spread, where every debit that leaves a balance low leaves a notice on the account's server. Notices are
   * struck after what they are for is committed here: whoever dies in between finds them again.
   *
   * @returns how many there were
   */
  async #readNoticesOf(bucket: number): Promise<number> {
    const { sql } = this.#parts;
    const noticed = await sql<{ id: string; account_id: bigint }[]>`
      select id, account_id from auto_recharge_notices where bucket = ${bucket} limit ${NOTICES_AT_ONCE}`;
    if (noticed.length === 0) return 0;
    const accounts = [...new Set(noticed.map(({ account_id }) => account_id))];
    await sql`
      update auto_recharges set state = 1
      where account_id = any(${arrayLiteral(accounts)}::text::bigint[]) and state = 0`;
    await sql`
      delete from auto_recharge_notices
      where bucket = ${bucket} and id = any(${arrayLiteral(noticed.map(({ id }) => id))}::text::uuid[])`;
    return noticed.length;
  }

  async #dueWithout(seen: readonly bigint[]): Promise<bigint[]> {
    const { sql, turns } = this.#parts;
    // An account on another server is held when its turn comes.
    const account = turns.isSpread ? sql`` : sql`join ledger_accounts a on a.id = r.account_id`;
    const due = await sql<{ account_id: bigint }[]>`
      select r.account_id from auto_recharges r ${account}
      where r.state = 1 and (r.next_at is null or r.next_at <= ${this.#at()})
        and r.account_id <> all(${arrayLiteral(seen)}::text::bigint[])
      order by r.next_at nulls first limit ${ACCOUNTS_AT_ONCE} for no key update skip locked`;
    return due.map(({ account_id: accountId }) => accountId);
  }

  /** @returns whether a charge was begun */
  async #recharge(accountId: bigint, stopping?: AbortSignal): Promise<boolean> {
    const { sql, reconcile, report, stop } = this.#parts;
    if (await this.#restIfFull(accountId)) return false;
    if (stopping?.aborted === true) return false;
    const opened = await this.#open(accountId);
    if (opened === null) return false;
    if (typeof opened !== 'string') {
      const isOff = 'off' in opened;
      // With the row let go: to stop means to hold the account first.
      if (isOff) await sql.begin((transaction) => stop(transaction, accountId, opened.off));
      report(isOff ? 'off' : 'waiting', { accountId, reason: isOff ? opened.off : opened.waitingFor });
      return false;
    }
    report('charging', { accountId, orderId: opened });
    await reconcile(opened).catch((error: unknown) =>
      report('unknown', { accountId, orderId: opened, error }),
    );
    return true;
  }

  /** Makes a due account idle whose balance is not low any more, because somebody has topped it up. @returns whether it was */
  async #restIfFull(accountId: bigint): Promise<boolean> {
    const { sql, turns } = this.#parts;
    if (turns.isSpread)
      return sql.begin(async (transaction) => {
        const { balanceMicros } = await hold(transaction, accountId);
        const { count } = await transaction`
          update auto_recharges set state = 0, next_at = null, waiting_for = null, changed_at = ${this.#at()}
          where account_id = ${String(accountId)} and state = 1 and threshold_micros <= ${String(balanceMicros)}`;
        return count === 1;
      });
    // One statement holds the account as briefly as a debit does. No debit can come in between, find the row due, leave it
    // so, and be forgotten.
    const rows = await sql`
      with account as (
        select id, credits_posted - debits_posted as balance from ledger_accounts where id = ${String(accountId)}
        for no key update
      )
      update auto_recharges r set state = 0, next_at = null, waiting_for = null, changed_at = ${this.#at()}
      from account where r.account_id = account.id and r.state = 1 and account.balance >= r.threshold_micros
      returning r.account_id`;
    return rows.length === 1;
  }

  /** Opens the order of an account that is due, if it may be charged now. @returns the order, or what stands in its way */
  async #open(accountId: bigint): Promise<string | Obstacle | null> {
    return this.#parts.sql.begin(async (transaction) => {
      const [row] = await transaction<KeptCardRow[]>`
        select * from auto_recharges
        where account_id = ${String(accountId)} and state = 1 and (next_at is null or next_at <= ${this.#at()})
        for update skip locked`;
      if (row === undefined) return null;
      const kept = readKeptCard(row);
      const obstacle = await this.#obstacle(transaction, accountId, kept);
      if (obstacle === null) return this.#openOrder(transaction, accountId, kept);
      if ('untilMs' in obstacle) {
        const until = new Date(obstacle.untilMs).toISOString();
        await transaction`
          update auto_recharges set next_at = ${until}, waiting_for = ${obstacle.waitingFor}
          where account_id = ${String(accountId)}`;
      }
      return obstacle;
    });
  }

  async #openOrder(transaction: Transaction, accountId: bigint, kept: KeptCard): Promise<string> {
    const { orders, nowMs } = this.#parts;
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
      key: null,
      tokenDigest: null,
      requestDigest: null,
      keyName: null,
      email: null,
      recharge: null,
      cardFingerprint: null,
      addressDigest: null,
      siteDigest: null,
      keySecretId: null,
    });
    if (!inserted) throw new Error(`account ${accountId} is due while an order of its is under way`);
    await transaction`
      update auto_recharges
      set state = 2, order_id = ${orderId}, next_at = null, waiting_for = null, changed_at = ${this.#at()}
      where account_id = ${String(accountId)}`;
    return orderId;
  }

  /** Why an account that is due is not charged now; null: it is. */
  async #obstacle(transaction: Transaction, accountId: bigint, kept: KeptCard): Promise<Obstacle | null> {
    if (await isCardDisputed(transaction, kept.cardFingerprint)) return { off: 'dispute' };
    const ofKeys = await this.#keyObstacle(transaction, accountId);
    if (ofKeys !== null) return ofKeys;
    const { maxPerDay, nowMs } = this.#parts;
    return limitOf(await this.#attemptsOf(transaction, accountId), kept, maxPerDay, nowMs());
  }

  /** Whether there is a key that the charge would be for. */
  async #keyObstacle(transaction: Transaction, accountId: bigint): Promise<Obstacle | null> {
    const rows = await transaction<{ status: string }[]>`
      select distinct status from api_keys
      where account_id = ${String(accountId)} and status <> 'revoked'
        and (expires_at is null or expires_at > ${this.#at()})`;
    if (rows.length === 0) return { off: 'no_active_key' };
    if (rows.some(({ status }) => status === 'active')) return null;
    return { untilMs: this.#parts.nowMs() + FROZEN_FOR_MS, waitingFor: 'thaw' };
  }

  async #attemptsOf(transaction: Transaction, accountId: bigint): Promise<Attempt[]> {
    const rows = await transaction<
      { created_at: Date; amount_micros: bigint; state: number; payment_method_id: string | null }[]
    >`
      select created_at, amount_micros, state, payment_method_id from card_orders
      where account_id = ${String(accountId)} and kind = 'recharge'
        and created_at > ${this.#at(-ATTEMPTS_COUNTED_MS)} and failure is distinct from ${WITHDRAWN}
      order by created_at desc limit ${MAX_ATTEMPTS_READ}`;
    return rows.map((row) => ({
      atMs: row.created_at.getTime(),
      amountMicros: row.amount_micros,
      failed: row.state === 2,
      paymentMethodId: row.payment_method_id,
    }));
  }

  #at(inMs = 0): string {
    return new Date(this.#parts.nowMs() + inMs).toISOString();
  }
}
