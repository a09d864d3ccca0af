/**
 * Keys that are sold: each holds what was paid for it. While the call runs the key is written down, and nothing moves;
 * once the call is captured its account is opened and the price goes there, in one commit, by whoever comes first: the
 * request itself, the next one with the same payment, or the job. What was trial credit stays it, and ends when it would
 * have ended.
 */
import { byKey } from '../db/by-key.ts';
import type { Database, Transaction } from '../db/connection.ts';
import { eachDueRow } from '../db/due-rows.ts';
import { type WatchedQueue, watchQueue } from '../db/leased-queue.ts';
import { newApiKey } from '../keys/api-key.ts';
import { type Lot, leftOf, lotsOf, type Part, spentLast } from '../keys/credit-lots.ts';
import {
  endOrigins,
  forgetOrigins,
  placeOrigins,
  recordOrigins,
  trialPartOf,
} from '../keys/credit-origins.ts';
import type { Keys } from '../keys/keys.ts';
import { bucketOfBuyer, recordRootBuyer } from '../keys/root-buyer.ts';
import { openTrialCredit } from '../keys/trial-credit.ts';
import { type HouseAccount, isHouseAccount } from '../ledger/accounts.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { microsToUsd } from '../ledger/money.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import type { AnswerSeal } from '../paid-call/sealed-answer.ts';
import type { KeySales } from '../service/define.ts';
import { noAnswer } from '../words/failure.ts';
import type { RailName } from '../words/rail-names.ts';

const BATCH = 100;
/** After so long nobody is still answering a captured call: its process has died. */
const ABANDONED_AFTER_MS = 60_000;
const DAY_MS = 86_400_000;
/** A theft is noticed by then, mostly. */
const NEW_CARD_MS = 7 * DAY_MS;
/** `calls.state`, as in `db/migrations/280_baseline.sql`. */
const CAPTURED = 1;
const RELEASED = 2;
/** `settlements.state`, as in `db/migrations/280_baseline.sql`. */
const LOST = 4;
/** Where the price of a call is booked, by how it was paid. */
const REVENUE: Readonly<Record<RailName, HouseAccount>> = {
  credits: 'revenue_credits',
  x402: 'revenue_x402',
  mpp: 'revenue_mpp',
};

/** The outcome for a sold key in one round of the job. */
export type SoldKeyOutcome = 'granted' | 'dropped' | 'closed' | 'taken_back' | 'paid_back';

interface Row {
  call_id: string;
  payer_account: bigint;
  label: string | null;
  amount_micros: bigint;
  sealed_key: string;
  key_lookup: bigint;
  key_digest: Buffer;
  key_prefix: string;
  /** The bucket that the key names. */
  key_bucket: number;
  account_id: bigint | null;
  rail: RailName;
  /** The wallet that paid; null where credit did. */
  wallet: string | null;
}

/** A key for which there may be something to do. */
interface Due {
  call_id: string;
  created_at: string;
  /** Null: the call was never begun, or is not known any more. */
  call_state: number | null;
  answered: boolean;
  granted: boolean;
  refunded: boolean;
  lost: boolean;
  /** Whether its buyer can ask for the key again. */
  retrievable: boolean;
}

export interface SoldKeysParts {
  ledger: Ledger;
  keys: Keys;
  seal: AnswerSeal;
  report(outcome: SoldKeyOutcome, callId: string): void;
  /** Most keys that credit of a new card buys in a day, in micro-USD; null: any. */
  newCardMicrosPerDay: bigint | null;
  nowMs(): number;
}

/** A key that a call will buy. */
interface Sale {
  callId: string;
  payerAccount: bigint;
  label: string | null;
  amountMicros: bigint;
}

/** The table of them. */
export class SoldKeys {
  /** The sales that are not over. */
  readonly queue: WatchedQueue;
  readonly #sql: Database;
  readonly #parts: SoldKeysParts;

  constructor(sql: Database, parts: SoldKeysParts) {
    this.#sql = sql;
    this.#parts = parts;
    this.queue = watchQueue(
      sql,
      { name: 'sold-keys', table: 'sold_keys', since: 'created_at', waiting: (on) => on`closed_at is null` },
      parts.nowMs,
    );
  }

  /**
   * The key that a call will buy, which is of no use before. The same call again is told the same key.
   *
   * @param sale.payerAccount whose call it is
   * @returns `trial`: what of its credit is a trial's, and until when it lasts; null: none is
   * @throws noAnswer `NEW_CARD_KEYS_LIMIT` when new card credit has bought as many keys as it may in a day
   */
  async keyFor(sale: Sale): ReturnType<KeySales['keyFor']> {
    const { callId, payerAccount, amountMicros } = sale;
    await this.#sql.begin((transaction) => this.#intend(transaction, sale));
    const [row] = await this.#sql<{ sealed_key: string | null; key_prefix: string }[]>`
      select sealed_key, key_prefix from sold_keys where call_id = ${callId}`;
    if (row === undefined || row.sealed_key === null)
      throw new Error(`the key of call ${callId} is handed over already`);
    const trialMicros = await trialPartOf(this.#sql, callId);
    const apiKey = this.#parts.seal.open(callId, row.sealed_key);
    if (trialMicros === 0n) return { apiKey, prefix: row.key_prefix, trial: null };
    const endsAtMs = (await trialEndOf(this.#sql, payerAccount)).getTime();
    const trial = { usd: microsToUsd(trialMicros), isAll: trialMicros === amountMicros, endsAtMs };
    return { apiKey, prefix: row.key_prefix, trial };
  }

  /** Writes down a key, and which credit pays for it: from here on that credit is its payer's no more. */
  async #intend(
    transaction: Transaction,
    { callId, payerAccount, label, amountMicros }: Sale,
  ): Promise<void> {
    const { ledger, seal, nowMs } = this.#parts;
    // Held, so that of two keys at once the second is paid by what the first has left.
    const held = await ledger.lock(transaction, isHouseAccount(payerAccount) ? [] : [payerAccount]);
    const bucket = isHouseAccount(payerAccount)
      ? ledger.newBucket()
      : ((await bucketOfBuyer(transaction, { accountId: payerAccount })) ?? ledger.newBucket());
    const made = newApiKey(bucket);
    const { count } = await transaction`
      insert into sold_keys (call_id, payer_account, refund_id, label, amount_micros, sealed_key, key_lookup,
                             key_digest, key_prefix, key_bucket, created_at)
      values (${callId}, ${String(payerAccount)}, ${transferIdFor(`refund:${callId}`)}, ${label},
              ${String(amountMicros)}, ${seal.seal(callId, made.apiKey)}, ${String(made.lookup)}, ${made.digest},
              ${made.prefix}, ${bucket}, ${this.#now()})
      on conflict (call_id) do nothing`;
    if (count === 0 || isHouseAccount(payerAccount)) return;
    const lots = await lotsOf(transaction, payerAccount, { since: this.#now(-DAY_MS), now: this.#now() });
    const parts = spentLast(lots, {
      availableMicros: held.get(payerAccount) ?? 0n,
      priceMicros: amountMicros,
    });
    refuseNewCard(lots, parts, { mostMicros: this.#parts.newCardMicrosPerDay, nowMs: nowMs() });
    await recordOrigins(transaction, {
      callId,
      payerAccount,
      priceMicros: amountMicros,
      parts,
      at: this.#now(),
    });
  }

  /**
   * Grants what a captured call has bought. Again changes nothing.
   *
   * @throws when the call is not captured, or the database does not answer: nothing is granted then, or all of it
   */
  async grant(callId: string): Promise<void> {
    await this.#grantOnce(callId, true);
  }

  /**
   * A round over all that is not closed: grants what a crash left, or pays back what nobody can ask for again; drops what
   * was never paid, and takes back what is left of a key whose price was given back, or whose payment the chain has
   * forgotten.
   *
   * @returns how many it brought further
   * @throws the first failure, after the others had their turn
   */
  async finish(): Promise<number> {
    return eachDueRow({
      pageAfter: (last: Due | undefined) => this.#dueAfter(last),
      pageSize: BATCH,
      act: async (due) => {
        const outcome = await this.#bringFurther(due);
        if (outcome !== null) this.#parts.report(outcome, due.call_id);
        return outcome !== null;
      },
    });
  }

  /** @param patient whether to wait for whoever is at it @returns false when it was granted before, or they are */
  #grantOnce(callId: string, patient: boolean): Promise<boolean> {
    return this.#sql.begin(async (transaction) => {
      const [row] = await transaction<Row[]>`
        with k as materialized (
          select * from sold_keys where call_id = ${callId} and granted_at is null and refunded_at is null
          for update ${patient ? this.#sql`` : this.#sql`skip locked`}
        )
        select k.*, c.rail, s.payer as wallet from k
        join calls c on c.account_id = k.payer_account and c.id = k.call_id
        left join settlements s on s.bucket = c.bucket and s.account_id = c.account_id and s.call_id = c.id
        where c.state = ${CAPTURED} and c.outcome = 'answered'`;
      if (row !== undefined) {
        await this.#open(transaction, row);
        return true;
      }
      if (!patient) return false;
      const [granted] = await transaction`
        select 1 from sold_keys where call_id = ${callId} and granted_at is not null`;
      if (granted === undefined) throw new Error(`the key of call ${callId} is not paid`);
      return false;
    });
  }

  /** Opens the account of a key, and moves its price there. */
  async #open(transaction: Transaction, row: Row): Promise<void> {
    const { ledger, keys } = this.#parts;
    const { call_id: callId, payer_account: payer, amount_micros: amountMicros } = row;
    const trialMicros = await trialPartOf(transaction, callId);
    const trialEnds = trialMicros === 0n ? null : await trialEndOf(transaction, payer);
    const isTrial = trialMicros === amountMicros;
    const buyer = row.wallet === null ? { accountId: payer } : { wallet: row.wallet };
    const bucket = await bucketOfBuyer(transaction, buyer);
    const accountId = await ledger.openAccount(transaction, bucket ?? row.key_bucket);
    await recordRootBuyer(transaction, accountId, buyer);
    await placeOrigins(transaction, callId, accountId);
    const move = { accountId, phase: 'posted', side: 'credit', house: REVENUE[row.rail] } as const;
    for (const [code, micros] of [
      ['sold_key_trial', trialMicros],
      ['sold_key', amountMicros - trialMicros],
    ] as const) {
      if (micros === 0n) continue;
      const { status } = await ledger.transferWithin(transaction, {
        ...move,
        code,
        amountMicros: micros,
        note: `key of call ${callId}`,
        id: transferIdFor(`${code === 'sold_key' ? 'sold-key' : 'sold-key-trial'}:${callId}`),
      });
      if (status !== 'done') throw new Error(`the key of call ${callId} cannot be granted: ${status}`);
    }
    if (trialEnds !== null) {
      const times = { grantedAtMs: this.#parts.nowMs(), expiresAtMs: trialEnds.getTime() };
      await openTrialCredit(transaction, {
        accountId,
        grantedMicros: trialMicros,
        ...times,
        movedFrom: payer,
      });
    }
    await keys.admit(transaction, {
      accountId,
      kind: isTrial ? 'trial' : 'paid',
      label: row.label,
      stored: { lookup: row.key_lookup, digest: row.key_digest, prefix: row.key_prefix },
      expiresAtMs: isTrial ? (trialEnds?.getTime() ?? null) : null,
    });
    await transaction`
      update sold_keys set account_id = ${String(accountId)}, granted_at = ${this.#now()}, sealed_key = null
      where call_id = ${callId}`;
  }

  /** Takes back what is neither spent nor reserved, to where it came from; the rest is a loss, as with any other call. */
  #takeBack(callId: string, isLost: boolean): Promise<boolean> {
    const { ledger } = this.#parts;
    return this.#sql.begin(async (transaction) => {
      const [row] = await transaction<Row[]>`
        with k as materialized (
          select * from sold_keys
          where call_id = ${callId} and granted_at is not null and closed_at is null and taken_back_micros is null
          for update skip locked
        )
        select k.*, c.rail from k join calls c on c.account_id = k.payer_account and c.id = k.call_id`;
      if (row === undefined || row.account_id === null) return false;
      const accountId = row.account_id;
      const available = (await ledger.lock(transaction, [accountId])).get(accountId) ?? 0n;
      const lots = await lotsOf(transaction, accountId, { since: this.#now(), now: this.#now() });
      const left = leftOf(lots, available);
      // What came to the key otherwise is not what was paid for it.
      const amountMicros = lots.reduce(
        (sum, lot, index) => sum + (lot.isFirst ? (left[index] ?? 0n) : 0n),
        0n,
      );
      await endOrigins(transaction, callId);
      if (amountMicros > 0n) {
        const { status } = await ledger.transferWithin(transaction, {
          id: transferIdFor(`sold-key-undone:${callId}`),
          accountId,
          phase: 'posted',
          side: 'debit',
          house: isLost ? 'settlement_losses' : REVENUE[row.rail],
          amountMicros,
          code: 'sold_key_undone',
          note: `key of call ${callId}`,
        });
        if (status !== 'done') throw new Error(`the key of call ${callId} cannot be taken back: ${status}`);
      }
      await transaction`
        update sold_keys set taken_back_micros = ${String(amountMicros)}, closed_at = ${this.#now()}
        where call_id = ${callId}`;
      return true;
    });
  }

  /**
   * Gives the price back of a key that nobody was told of: its call carried no identity, so nobody can ask for it again.
   *
   * @returns false when it was granted or given back meanwhile
   */
  #payBack(callId: string): Promise<boolean> {
    const { ledger } = this.#parts;
    return this.#sql.begin(async (transaction) => {
      const [sale] = await transaction<{ payer_account: bigint }[]>`
        select payer_account from sold_keys where call_id = ${callId}`;
      if (sale === undefined) return false;
      // The account comes first, as for everybody who gives a price back.
      await ledger.lock(transaction, [sale.payer_account]);
      const [row] = await transaction<{ refund_id: string; rail: RailName; price_micros: bigint }[]>`
        with k as materialized (
          select * from sold_keys where call_id = ${callId} and granted_at is null and refunded_at is null for update
        )
        select k.refund_id, c.rail, c.price_micros from k
        join calls c on c.account_id = k.payer_account and c.id = k.call_id where c.state = ${CAPTURED}`;
      if (row === undefined) return false;
      const { status } = await ledger.transferWithin(transaction, {
        id: row.refund_id,
        accountId: sale.payer_account,
        phase: 'posted',
        side: 'credit',
        house: REVENUE[row.rail],
        amountMicros: row.price_micros,
        code: 'call_refund',
        note: `undelivered call ${callId}`,
      });
      if (status !== 'done') throw new Error(`the price of call ${callId} cannot be given back: ${status}`);
      await close(transaction, callId, this.#now());
      return true;
    });
  }

  #drop(callId: string): Promise<boolean> {
    return this.#sql.begin(async (transaction) => {
      const { count } = await transaction`
        delete from sold_keys where call_id = (
          select call_id from sold_keys where call_id = ${callId} and granted_at is null for update skip locked)`;
      if (count > 0) await forgetOrigins(transaction, callId);
      return count > 0;
    });
  }

  #closeUngranted(callId: string): Promise<boolean> {
    return this.#sql.begin((transaction) => close(transaction, callId, this.#now()));
  }

  async #bringFurther(due: Due): Promise<SoldKeyOutcome | null> {
    const { call_id: callId } = due;
    if (due.granted) {
      if (due.refunded || due.lost) return (await this.#takeBack(callId, due.lost)) ? 'taken_back' : null;
      const closed = await this.#sql`
        update sold_keys set closed_at = ${this.#now()} where call_id = (
          select call_id from sold_keys where call_id = ${callId} and closed_at is null for update skip locked)`;
      return closed.count === 0 ? null : 'closed';
    }
    if (due.call_state === CAPTURED && due.answered) {
      if (due.refunded) return (await this.#closeUngranted(callId)) ? 'closed' : null;
      if (due.retrievable) return (await this.#grantOnce(callId, false)) ? 'granted' : null;
      return (await this.#payBack(callId)) ? 'paid_back' : null;
    }
    // Nobody was or will be told of this key.
    return (await this.#drop(callId)) ? 'dropped' : null;
  }

  /** Lists what is due next, in order of time. */
  #dueAfter(last: Due | undefined): Promise<Due[]> {
    const after =
      last === undefined
        ? this.#sql`true`
        : this.#sql`(k.created_at, k.call_id) > (${last.created_at}::timestamptz, ${last.call_id}::uuid)`;
    return byKey(
      this.#sql,
      (on) => on<Due[]>`
      with k as materialized (select * from sold_keys where closed_at is null)
      select call_id, k.created_at::text as created_at, call_state, answered, granted, refunded, lost, retrievable from (
        select k.call_id, k.created_at, c.state as call_state, c.outcome = 'answered' as answered,
               k.granted_at is not null as granted,
               k.refunded_at is not null as refunded,
               coalesce(s.state = ${LOST}, false) as lost, s.call_id is null or s.final_at is not null as final,
               c.account_id < 1000 or c.identity is not null as retrievable,
               c.finished_at < ${this.#now(-ABANDONED_AFTER_MS)} as abandoned
        from k
        join calls c on c.account_id = k.payer_account and c.id = k.call_id
        left join settlements s on s.bucket = c.bucket and s.account_id = c.account_id and s.call_id = c.id
      ) k
      where ${after} and case
        when granted then final or lost or refunded
        when call_state = ${CAPTURED} then retrievable or refunded or abandoned or not answered
        else call_state = ${RELEASED} end
      order by k.created_at, k.call_id limit ${BATCH}`,
    );
  }

  #now(afterMs = 0): string {
    return new Date(this.#parts.nowMs() + afterMs).toISOString();
  }
}

/** When an account's trial ends. */
async function trialEndOf(on: Database | Transaction, accountId: bigint): Promise<Date> {
  const [trial] = await on<{ expires_at: Date }[]>`
    select expires_at from trial_credits where account_id = ${String(accountId)}`;
  if (trial === undefined) throw new Error(`account ${accountId} has no trial`);
  return trial.expires_at;
}

/** @throws noAnswer when what a new card paid would buy more keys in a day than it may */
function refuseNewCard(
  lots: readonly Lot[],
  parts: readonly Part[],
  { mostMicros, nowMs }: { mostMicros: bigint | null; nowMs: number },
): void {
  if (mostMicros === null) return;
  // What came with a key was counted where a card paid for it.
  const isNew = ({ orderId, isFirst, at }: Lot) =>
    orderId !== null && !isFirst && at.getTime() > nowMs - NEW_CARD_MS;
  const now = parts.reduce((sum, { lot, micros }) => sum + (isNew(lot) ? micros : 0n), 0n);
  const before = lots.reduce((sum, lot) => sum + (isNew(lot) ? lot.soldLatelyMicros : 0n), 0n);
  if (now === 0n || before + now <= mostMicros) return;
  throw noAnswer(
    'NEW_CARD_KEYS_LIMIT',
    `Credit from a card payment of the last seven days buys keys for at most ${microsToUsd(mostMicros)} USD in 24 hours, and this account has bought keys for ${microsToUsd(before)} USD with it. Pay for the key with USDC, or buy it later.`,
  );
}

/** Ends a key that was never granted and whose price went back. Its row stays: it tells what the refund was for. */
async function close(transaction: Transaction, callId: string, at: string): Promise<boolean> {
  const { count } = await transaction`
    update sold_keys set closed_at = ${at}, sealed_key = null
    where call_id = ${callId} and granted_at is null and refunded_at is not null and closed_at is null`;
  if (count > 0) await endOrigins(transaction, callId);
  return count > 0;
}
