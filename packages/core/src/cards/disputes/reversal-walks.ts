/**
 * Follows a card payment that went back into the keys that were bought with it, over any number of keys that bought keys. The
 * account that paid by card owes all that it cannot give, and is frozen, in the commit that books the reversal. The walk
 * lowers that debt by what is left of the payment on those keys, newest first, and never touches what came to them
 * otherwise. If the payment comes back after all, they get back what was taken.
 *
 * Each step is a commit of its own that says how far the walk has come, so any process goes on with it.
 */
import { arrayLiteral } from '../../db/array-literal.ts';
import type { Database, Transaction } from '../../db/connection.ts';
import type { DistributionNote } from '../../db/distribution-note.ts';
import {
  boughtWith,
  givePartsBack,
  keysToGive,
  keysToTake,
  takenOf,
  takeParts,
} from '../../keys/credit-origins.ts';
import type { Keys } from '../../keys/keys.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import type { Debts } from './debts.ts';

/** The most accounts that a step holds. */
const KEYS_AT_ONCE = 100;
const FROZEN_LOOKED_AT_ONCE = 1_000;
/** A call that holds credit ends sooner, mostly. */
const AGAIN_AFTER_MS = 15_000;
/** An hour of them: what is held longer is not waited for. */
const MOST_ROUNDS = 240;

export interface ReversalWalks {
  /**
   * The credit that an account still has of a card order, where keys were bought with that order. To be called while it is held.
   *
   * @returns null when no key was bought with it
   */
  ownPart(transaction: Transaction, order: Ordered & { availableMicros: bigint }): Promise<bigint | null>;
  /** Begins to look for this much of a debt on the keys that were bought with the order. */
  take(transaction: Transaction, order: Ordered & { amountMicros: bigint }): Promise<void>;
  /**
   * Books what came back of an order's payment for the keys that it was taken from, and looks for no more than is left.
   *
   * @returns how much is theirs
   */
  give(transaction: Transaction, order: Ordered & { amountMicros: bigint }): Promise<bigint>;
  /** Keeps what was to be given back and has not been yet: the payment went back again. @returns how much it was */
  withdraw(transaction: Transaction, order: Ordered & { amountMicros: bigint }): Promise<bigint>;
  /** Goes on with the walks that are due. @returns how many steps it made */
  run(stopping?: AbortSignal): Promise<number>;
}

interface Ordered {
  orderId: string;
  /** The account that paid by card. */
  accountId: bigint;
}

interface Walk {
  order_id: string;
  account_id: bigint;
  take_micros: bigint;
  give_micros: bigint;
  position: bigint | null;
  /** The newest account that a round began with. */
  newest: bigint;
  again: boolean;
  rounds: number;
  steps: number;
}

export interface ReversalWalkParts {
  ledger: Ledger;
  keys: Keys;
  debts: Debts;
  distribution: DistributionNote;
  /** Told of each step that moved something, once it is committed. */
  report(what: 'taken' | 'given', orderId: string, amountMicros: bigint): void;
  nowMs(): number;
}

export class CardReversalWalks implements ReversalWalks {
  readonly #sql: Database;
  readonly #parts: ReversalWalkParts;

  constructor(sql: Database, parts: ReversalWalkParts) {
    this.#sql = sql;
    this.#parts = parts;
  }

  async ownPart(
    transaction: Transaction,
    { orderId, accountId, availableMicros }: Ordered & { availableMicros: bigint },
  ): Promise<bigint | null> {
    return boughtWith(transaction, { orderId, accountId, availableMicros, now: this.#at() });
  }

  async take(
    transaction: Transaction,
    { orderId, accountId, amountMicros }: Ordered & { amountMicros: bigint },
  ): Promise<void> {
    await transaction`
      insert into reversal_walks (order_id, account_id, take_micros, next_at)
      values (${orderId}, ${String(accountId)}, ${String(amountMicros)}, ${this.#at()})
      on conflict (order_id) do update
      set take_micros = reversal_walks.take_micros + excluded.take_micros, position = null, rounds = 0,
          steps = reversal_walks.steps + 1, next_at = excluded.next_at`;
  }

  async give(
    transaction: Transaction,
    { orderId, accountId, amountMicros }: Ordered & { amountMicros: bigint },
  ): Promise<bigint> {
    const promised = await this.#promised(transaction, orderId);
    const taken = (await takenOf(transaction, orderId)) - promised;
    const toKeys = taken < amountMicros ? taken : amountMicros;
    await transaction`
      update reversal_walks set take_micros = greatest(take_micros - ${String(amountMicros - toKeys)}::bigint, 0)
      where order_id = ${orderId}`;
    if (toKeys <= 0n) return 0n;
    await this.#move(transaction, orderId, {
      accountId: HOUSE_ACCOUNTS.receivables,
      side: 'credit',
      house: 'card_clearing',
      code: 'card_reversal_undone',
      amountMicros: toKeys,
    });
    await transaction`
      insert into reversal_walks (order_id, account_id, give_micros, next_at)
      values (${orderId}, ${String(accountId)}, ${String(toKeys)}, ${this.#at()})
      on conflict (order_id) do update
      set give_micros = reversal_walks.give_micros + excluded.give_micros, position = null,
          steps = reversal_walks.steps + 1, next_at = excluded.next_at`;
    return toKeys;
  }

  async withdraw(
    transaction: Transaction,
    { orderId, amountMicros }: Ordered & { amountMicros: bigint },
  ): Promise<bigint> {
    const promised = await this.#promised(transaction, orderId);
    const kept = promised < amountMicros ? promised : amountMicros;
    if (kept === 0n) return 0n;
    await transaction`
      update reversal_walks set give_micros = give_micros - ${String(kept)}::bigint, steps = steps + 1
      where order_id = ${orderId}`;
    await this.#move(transaction, orderId, {
      accountId: HOUSE_ACCOUNTS.receivables,
      side: 'debit',
      house: 'card_clearing',
      code: 'card_reversal',
      amountMicros: kept,
    });
    return kept;
  }

  async run(stopping?: AbortSignal): Promise<number> {
    let steps = 0;
    const failures: unknown[] = [];
    const failed = new Set<string>();
    while (stopping?.aborted !== true) {
      const due = await this.#sql<Walk[]>`
        select * from reversal_walks where next_at <= ${this.#at()} order by next_at, order_id limit ${KEYS_AT_ONCE}`;
      const walk = due.find(({ order_id }) => !failed.has(order_id));
      if (walk === undefined) break;
      try {
        await this.#step(walk);
        steps += 1;
      } catch (error) {
        failed.add(walk.order_id);
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    await this.#thawWhatHolds();
    return steps;
  }

  async #step(walk: Walk): Promise<void> {
    const isGiving = walk.give_micros > 0n;
    const moved = await this.#sql.begin((transaction) =>
      isGiving ? this.#giveStep(transaction, walk) : this.#takeStep(transaction, walk),
    );
    if (moved > 0n) this.#parts.report(isGiving ? 'given' : 'taken', walk.order_id, moved);
  }

  /**
   * Holds all accounts of a step, in order of id, and then the walk.
   *
   * @returns what each account can spend; null when somebody else has made this step
   */
  async #hold(
    transaction: Transaction,
    walk: Walk,
    keyAccounts: readonly bigint[],
  ): Promise<ReadonlyMap<bigint, bigint> | null> {
    const available = await this.#parts.ledger.lock(transaction, [
      ...[HOUSE_ACCOUNTS.receivables, walk.account_id],
      ...keyAccounts,
    ]);
    const held = await transaction`
      select 1 from reversal_walks where order_id = ${walk.order_id} and steps = ${walk.steps}
        and take_micros = ${String(walk.take_micros)} for update`;
    return held.length === 1 ? available : null;
  }

  async #takeStep(transaction: Transaction, walk: Walk): Promise<bigint> {
    const { debts } = this.#parts;
    const { order_id: orderId, account_id: payer } = walk;
    const accounts = await keysToTake(transaction, orderId, walk.position, KEYS_AT_ONCE);
    const available = await this.#hold(transaction, walk, accounts);
    if (available === null) return 0n;
    const owed = await debts.owed(transaction, payer);
    const most = walk.take_micros < owed ? walk.take_micros : owed;
    let left = most;
    for (const accountId of accounts) {
      if (left === 0n) break;
      left -= await this.#takeFrom(transaction, orderId, {
        accountId,
        availableMicros: available.get(accountId) ?? 0n,
        mostMicros: left,
      });
    }
    const takenMicros = most - left;
    if (takenMicros > 0n) await debts.lower(transaction, payer, takenMicros);
    const again = walk.again || (await holdsAny(transaction, [payer, ...accounts]));
    const newest = walk.position === null ? (accounts[0] ?? 0n) : walk.newest;
    const isRoundOver = left === 0n || accounts.length < KEYS_AT_ONCE;
    if (isRoundOver && (left === 0n || !(await isWorthAnother(transaction, { ...walk, again, newest })))) {
      await transaction`delete from reversal_walks where order_id = ${orderId}`;
      await debts.collect(transaction, payer, `order ${orderId}`);
    } else
      await this.#note(transaction, walk, {
        left,
        again,
        isRoundOver,
        newest,
        last: accounts.at(-1) ?? null,
      });
    return takenMicros;
  }

  async #note(
    transaction: Transaction,
    walk: Walk,
    so: { left: bigint; again: boolean; isRoundOver: boolean; newest: bigint; last: bigint | null },
  ): Promise<void> {
    const { left, again, isRoundOver, newest, last } = so;
    await transaction`
      update reversal_walks
      set take_micros = ${String(left)}, steps = steps + 1, rounds = rounds + ${isRoundOver ? 1 : 0},
          again = ${again && !isRoundOver}, newest = ${String(newest)}, position = ${isRoundOver || last === null ? null : String(last)},
          next_at = ${this.#at(isRoundOver ? AGAIN_AFTER_MS : 0)}
      where order_id = ${walk.order_id}`;
  }

  /** Takes what a key has left of an order's credit. @returns how much */
  async #takeFrom(
    transaction: Transaction,
    orderId: string,
    from: { accountId: bigint; availableMicros: bigint; mostMicros: bigint },
  ): Promise<bigint> {
    const { accountId, availableMicros } = from;
    const takenMicros = await takeParts(transaction, { orderId, ...from, now: this.#at() });
    if (takenMicros > 0n)
      await this.#move(transaction, orderId, {
        accountId,
        side: 'debit',
        house: 'receivables',
        code: 'key_reversal',
        amountMicros: takenMicros,
      });
    // What a running call holds comes back to a key that can spend nothing meanwhile.
    const isEmpty = availableMicros === takenMicros;
    if (isEmpty && (takenMicros > 0n || (await holdsAny(transaction, [accountId]))))
      await this.#parts.keys.freeze(transaction, accountId, 'reversal', `order ${orderId}`);
    return takenMicros;
  }

  async #giveStep(transaction: Transaction, walk: Walk): Promise<bigint> {
    const { keys, debts } = this.#parts;
    const { order_id: orderId, account_id: payer } = walk;
    const due = await keysToGive(transaction, orderId, walk.position, KEYS_AT_ONCE);
    if ((await this.#hold(transaction, walk, due)) === null) return 0n;
    let left = walk.give_micros;
    const give = async (accountId: bigint, amountMicros: bigint) => {
      left -= amountMicros;
      await this.#move(transaction, orderId, {
        accountId,
        side: 'credit',
        house: 'receivables',
        code: 'key_reversal_undone',
        amountMicros,
      });
      await keys.thaw(transaction, accountId, 'reversal');
      await debts.collect(transaction, accountId, `order ${orderId}`);
    };
    for (const accountId of due) {
      if (left === 0n) break;
      const micros = await givePartsBack(transaction, { orderId, accountId, mostMicros: left });
      if (micros > 0n) await give(accountId, micros);
    }
    const isOver = left === 0n || due.length < KEYS_AT_ONCE;
    const movedMicros = walk.give_micros - left;
    // A key whose price went back meanwhile is no key that credit was taken from: its payer's account has it.
    if (isOver && left > 0n) await give(payer, left);
    await transaction`
      update reversal_walks
      set give_micros = ${String(left)}, steps = steps + 1, next_at = ${this.#at()},
          position = ${isOver ? null : String(due.at(-1) ?? 0n)}
      where order_id = ${orderId}`;
    if (isOver)
      await transaction`delete from reversal_walks where order_id = ${orderId} and take_micros = 0 and give_micros = 0`;
    return movedMicros;
  }

  /** Ends freezes of keys on which something is again, such as a share or a refund, that nobody looks for. */
  async #thawWhatHolds(): Promise<void> {
    const { keys, ledger, distribution } = this.#parts;
    const due = await (distribution.isDistributed
      ? frozenThatHoldOf(this.#sql, KEYS_AT_ONCE)
      : frozenThatHold(this.#sql, KEYS_AT_ONCE));
    for (const accountId of due) {
      await this.#sql.begin(async (transaction) => {
        const available = await ledger.lock(transaction, [accountId]);
        if ((available.get(accountId) ?? 0n) > 0n) await keys.thaw(transaction, accountId, 'reversal');
      });
    }
  }

  async #promised(transaction: Transaction, orderId: string): Promise<bigint> {
    const [walk] = await transaction<{ give_micros: bigint }[]>`
      select give_micros from reversal_walks where order_id = ${orderId} for update`;
    return walk?.give_micros ?? 0n;
  }

  async #move(
    transaction: Transaction,
    orderId: string,
    transfer: Omit<Parameters<Ledger['transferWithin']>[1], 'id' | 'phase' | 'note'>,
  ): Promise<void> {
    const { status } = await this.#parts.ledger.transferWithin(transaction, {
      ...transfer,
      id: newTransferId(this.#parts.nowMs()),
      phase: 'posted',
      note: `order ${orderId}`,
    });
    if (status !== 'done') throw new Error(`a transfer of the reversed order ${orderId} was ${status}`);
  }

  #at(inMs = 0): string {
    return new Date(this.#parts.nowMs() + inMs).toISOString();
  }
}

/** Accounts that are frozen for a reversal, have something again, and are not looked for; in order. */
async function frozenThatHold(sql: Database, atMost: number): Promise<bigint[]> {
  const rows = await sql<{ account_id: bigint }[]>`
      select f.account_id from account_freezes f join ledger_accounts a on a.id = f.account_id
      where f.cause = 'reversal' and a.credits_posted - a.debits_posted - a.debits_pending > 0
        and not exists (
          select 1 from credit_origins o join reversal_walks w on w.order_id = o.order_id and w.take_micros > 0
          where o.account_id = f.account_id)
      order by f.account_id limit ${atMost}`;
  return rows.map(({ account_id }) => account_id);
}

/** The same where the database is spread: freezes lie on the coordinator, and what the accounts have on workers. */
async function frozenThatHoldOf(sql: Database, atMost: number): Promise<bigint[]> {
  const holding: bigint[] = [];
  for (let last = 0n, more = true; more && holding.length < atMost; ) {
    const frozen = await sql<{ account_id: bigint }[]>`
      select f.account_id from account_freezes f
      where f.cause = 'reversal' and f.account_id > ${String(last)}
        and not exists (
          select 1 from credit_origins o join reversal_walks w on w.order_id = o.order_id and w.take_micros > 0
          where o.account_id = f.account_id)
      order by f.account_id limit ${FROZEN_LOOKED_AT_ONCE}`;
    const able = await sql<{ id: bigint }[]>`
      select id from ledger_accounts
      where id = any(${arrayLiteral(frozen.map(({ account_id }) => account_id))}::text::bigint[])
        and credits_posted - debits_posted - debits_pending > 0 order by id`;
    holding.push(...able.map(({ id }) => id));
    last = frozen.at(-1)?.account_id ?? last;
    more = frozen.length === FROZEN_LOOKED_AT_ONCE;
  }
  return holding;
}

/** Whether any of these accounts has credit that a running call holds. */
async function holdsAny(transaction: Transaction, accountIds: readonly bigint[]): Promise<boolean> {
  const rows = await transaction`
    select 1 from ledger_accounts where id in ${transaction(accountIds.map(String))} and debits_pending > 0 limit 1`;
  return rows.length > 0;
}

/**
 * Whether another round may find more: a call held something, or a key has been bought since the round began, which keys that
 * were still to come in it may have paid. To be asked while the accounts of the round's last step are held.
 */
async function isWorthAnother(
  transaction: Transaction,
  walk: Pick<Walk, 'order_id' | 'rounds' | 'again' | 'newest'>,
): Promise<boolean> {
  if (walk.rounds >= MOST_ROUNDS) return false;
  if (walk.again) return true;
  const bought = await transaction`
    select 1 from credit_origins
    where order_id = ${walk.order_id} and not ended and taken_micros < amount_micros
      and (account_id is null or account_id > ${String(walk.newest)}) limit 1`;
  return bought.length > 0;
}
