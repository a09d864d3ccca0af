/**
 * A queue of work that stands in a table. A worker takes an item for a while: its lease, whose end stands in `next_at`, where
 * else the time of the next attempt stands. A worker that dies leaves an item that falls due when its lease is over.
 *
 * A holder is known by the end of its lease, and by the number of its attempt where attempts are counted. Whoever takes the
 * item next writes a later end and a higher number, so that a holder who comes back too late finds neither and changes
 * nothing.
 */
import type { Parameter, PendingQuery, Row } from 'postgres';
import type { Database, Transaction } from './connection.ts';

type On = Database | Transaction;
type Condition = (on: On) => PendingQuery<Row[]>;
/** New values by column. */
export type Columns = Readonly<
  Record<string, string | number | bigint | boolean | null | Buffer | Parameter>
>;

/** The largest depth that is told: counting costs no more than that. */
const MOST_COUNTED = 10_000;

/** A queue's declaration: its table, and for how long and how often one of its items is worked. */
export interface QueueShape {
  /** Its name in the metrics. */
  name: string;
  table: string;
  key: readonly string[];
  /** The other columns that a holder is given. */
  columns: readonly string[];
  /** The column that counts how often an item was taken; null: none does. */
  attempts: string | null;
  leaseMs: number;
  /** The pause after so many attempts that failed. */
  backOffMs(attempts: number): number;
  /** After so many attempts an item is given up; null: never. */
  mostAttempts: number | null;
  /**
   * The fate of an item that is settled: it stays with an empty `next_at`, it stays and another column takes it out of `only`, it
   * is deleted, or it falls due again after a while.
   */
  settled: 'kept' | 'marked' | 'deleted' | { againAfterMs: number };
  /** The column by which those are ordered that are due since the same time. */
  thenBy?: string;
  /** Column that says when an item was given up; null: none does. */
  givenUpAt: string | null;
  /** The rows that are items of this queue, where the table has others too. */
  only?: Condition;
  /** The column that says since when an item waits. */
  since: string;
  /** The items that wait, where an item is always to be done at some time: by default all that are not settled or given up. */
  waiting?: (on: On, now: string) => PendingQuery<Row[]>;
}

/** An item, in the hands of whoever took it. */
export type Held<Item> = Item & {
  /** How often it was taken, this time included; 1 where that is not counted. */
  heldAttempts: number;
  /** ISO 8601. */
  leasedUntil: string;
};

/** The figures of a queue that an operator watches. */
export interface WatchedQueue {
  readonly name: string;
  /** The number of items that wait or are being worked, 10,000 at most. */
  depth(): Promise<number>;
  /** For how long the oldest of them has waited, in seconds; 0 when none waits. */
  oldestSeconds(): Promise<number>;
}

interface Change {
  /** What else changes in its row. */
  set?: Columns;
  /** The transaction in which it happens. */
  on?: Transaction;
}

export class LeasedQueue<Item extends object> implements WatchedQueue {
  readonly name: string;
  readonly #sql: Database;
  readonly #shape: QueueShape;
  readonly #nowMs: () => number;
  readonly #watched: WatchedQueue;

  constructor(sql: Database, shape: QueueShape, nowMs: () => number) {
    this.name = shape.name;
    this.#sql = sql;
    this.#shape = shape;
    this.#nowMs = nowMs;
    this.#watched = watchQueue(sql, shape, nowMs);
  }

  /** Takes so many items at most, of those that are due for longest. Until their lease ends nobody else gets them. */
  async claim(most: number): Promise<Held<Item>[]> {
    const sql = this.#sql;
    const { table, key, columns, attempts } = this.#shape;
    const leasedUntil = this.leaseEnd();
    const rows = await sql<Item[]>`
      with due as materialized (
        select ${sql([...key])} from ${sql(table)} where next_at <= ${this.#at()} and ${this.#only(sql)}
        order by next_at ${this.#thenBy(sql)} limit ${most} for update skip locked
      )
      update ${sql(table)} item set next_at = ${leasedUntil} ${this.#counted(sql)}
      from due where ${this.#joined(sql)}
      returning ${sql([...key, ...columns, ...(attempts === null ? [] : [attempts])].map((column) => `item.${column}`))}`;
    return rows.map((row) => this.held(row, leasedUntil));
  }

  /** The end of a lease that begins now, in ISO 8601: for a part that takes its items by a statement of its own. */
  leaseEnd(): string {
    return this.#at(this.#shape.leaseMs);
  }

  /** An item that a statement of the part's own has leased until then. */
  held(item: Item, leasedUntil: string): Held<Item> {
    const { attempts } = this.#shape;
    const heldAttempts = attempts === null ? 1 : Number(tellingValue(item, attempts));
    return { ...item, heldAttempts, leasedUntil };
  }

  /** Whether an item may be tried once more after this attempt. */
  mayTryAgain({ heldAttempts }: Held<Item>): boolean {
    const { mostAttempts } = this.#shape;
    return mostAttempts === null || heldAttempts < mostAttempts;
  }

  /** Whether an item has had all its attempts before this one: each was cut short by the end of its process. */
  isSpent({ heldAttempts }: Held<Item>): boolean {
    const { mostAttempts } = this.#shape;
    return mostAttempts !== null && heldAttempts > mostAttempts;
  }

  /**
   * Notes that an item is done.
   *
   * @param change.isFact something has happened in the world that stays true whoever holds the item by now, such as that a
   *   message has arrived: it is noted by a late holder too
   * @returns false, and changes nothing, when the item has passed to another
   */
  async settle(held: Held<Item>, { set = {}, on, isFact = false }: Change & { isFact?: boolean } = {}) {
    const { givenUpAt } = this.#shape;
    const where = isFact ? this.#named(held, on) : this.#heldBy(held, on);
    const given = isFact && givenUpAt !== null ? { [givenUpAt]: null } : {};
    return (await this.#end(where, { ...given, ...set }, on)) > 0;
  }

  /** Notes in one statement that these items are done, but for those that have passed to another. @returns how many it noted */
  async settleAll(all: readonly Held<Item>[]): Promise<number> {
    return this.#end(this.#heldByAll(all, this.#sql), {}, undefined);
  }

  /**
   * Puts an item off after an attempt that failed.
   *
   * @param change.afterMs instead of what its attempts amount to
   * @returns false, and changes nothing, when the item has passed to another
   */
  async backOff(held: Held<Item>, { set = {}, on, afterMs }: Change & { afterMs?: number } = {}) {
    const pauseMs = afterMs ?? this.#shape.backOffMs(held.heldAttempts);
    return (await this.#update(this.#heldBy(held, on), { next_at: this.#at(pauseMs), ...set }, on)) > 0;
  }

  /** Tries an item no more. @returns false, and changes nothing, when the item has passed to another */
  async giveUp(held: Held<Item>, { set = {}, on }: Change = {}) {
    const { givenUpAt } = this.#shape;
    const given = givenUpAt === null ? {} : { [givenUpAt]: this.#at() };
    return (await this.#update(this.#heldBy(held, on), { next_at: null, ...given, ...set }, on)) > 0;
  }

  /**
   * Puts items back as if they had not been taken, but for those that have passed to another.
   *
   * @returns how many it put back
   */
  async giveBack(all: readonly Held<Item>[], on: On = this.#sql): Promise<number> {
    const { attempts, table } = this.#shape;
    const counted = attempts === null ? on`` : on`, ${on(attempts)} = ${on(`item.${attempts}`)} - 1`;
    const held = this.#heldByAll(all, on);
    const { count } = await on`
      update ${on(table)} item set next_at = ${this.#at()} ${counted} where ${held}`;
    return count;
  }

  depth(): Promise<number> {
    return this.#watched.depth();
  }

  oldestSeconds(): Promise<number> {
    return this.#watched.oldestSeconds();
  }

  /** @returns how many rows it ended */
  async #end(where: PendingQuery<Row[]>, set: Columns, on: Transaction | undefined): Promise<number> {
    const { settled, table } = this.#shape;
    if (settled === 'kept') return this.#update(where, { next_at: null, ...set }, on);
    if (settled === 'marked') return this.#update(where, set, on);
    if (settled !== 'deleted')
      return this.#update(where, { next_at: this.#at(settled.againAfterMs), ...set }, on);
    const sql = on ?? this.#sql;
    const { count } = await sql`delete from ${sql(table)} item where ${where}`;
    return count;
  }

  /** @returns how many rows it changed */
  async #update(where: PendingQuery<Row[]>, set: Columns, on: Transaction | undefined): Promise<number> {
    const sql = on ?? this.#sql;
    const { count } = await sql`update ${sql(this.#shape.table)} item set ${sql(set)} where ${where}`;
    return count;
  }

  /** Its row. */
  #named(held: Held<Item>, on: On = this.#sql): PendingQuery<Row[]> {
    return this.#shape.key.reduce(
      (all, column) => on`${all} and ${on(`item.${column}`)} = ${tellingValue(held, column)}`,
      this.#only(on),
    );
  }

  /** Its row, as long as nobody else has taken it. */
  #heldBy(held: Held<Item>, on: On = this.#sql): PendingQuery<Row[]> {
    const { attempts } = this.#shape;
    const counted = attempts === null ? on`` : on`and ${on(`item.${attempts}`)} = ${held.heldAttempts}`;
    return on`${this.#named(held, on)} and item.next_at = ${held.leasedUntil} ${counted}`;
  }

  /** The rows of those that nobody else has taken. */
  #heldByAll(all: readonly Held<Item>[], on: On): PendingQuery<Row[]> {
    return on`(${all.reduce((some, held) => on`${some} or (${this.#heldBy(held, on)})`, on`false`)})`;
  }

  #joined(on: On): PendingQuery<Row[]> {
    return this.#shape.key.reduce(
      (all, column) => on`${all} and ${on(`item.${column}`)} = ${on(`due.${column}`)}`,
      on`true`,
    );
  }

  #counted(on: On): PendingQuery<Row[]> {
    const { attempts } = this.#shape;
    return attempts === null ? on`` : on`, ${on(attempts)} = ${on(`item.${attempts}`)} + 1`;
  }

  #thenBy(on: On): PendingQuery<Row[]> {
    const { thenBy } = this.#shape;
    return thenBy === undefined ? on`` : on`, ${on(thenBy)}`;
  }

  #only(on: On): PendingQuery<Row[]> {
    return this.#shape.only?.(on) ?? on`true`;
  }

  #at(inMs = 0): string {
    return new Date(this.#nowMs() + inMs).toISOString();
  }
}

/** The figures of a queue, also of one whose items are not leased but locked. */
export function watchQueue(
  sql: Database,
  { name, table, since, only, waiting }: Pick<QueueShape, 'name' | 'table' | 'since' | 'only' | 'waiting'>,
  nowMs: () => number,
): WatchedQueue {
  const where = () => {
    const waits = waiting?.(sql, new Date(nowMs()).toISOString()) ?? sql`next_at is not null`;
    return sql`${waits} and ${only?.(sql) ?? sql`true`}`;
  };
  return {
    name,

    async depth() {
      const [row] = await sql<{ depth: number }[]>`
        select count(*)::integer as depth from (
          select 1 from ${sql(table)} where ${where()} limit ${MOST_COUNTED}
        ) waiting`;
      return row?.depth ?? 0;
    },

    async oldestSeconds() {
      const [row] = await sql<{ oldest: Date | null }[]>`
        select min(since) as oldest from (
          select ${sql(since)} as since from ${sql(table)} where ${where()} limit ${MOST_COUNTED}
        ) waiting`;
      const oldest = row?.oldest ?? null;
      return oldest === null ? 0 : Math.max(0, nowMs() - oldest.getTime()) / 1_000;
    },
  };
}

/** What stands in a column of an item by which it is told from others. @throws when the queue is declared with another column */
function tellingValue(item: object, column: string): string {
  const value: unknown = Reflect.get(item, column);
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'bigint') return value.toString();
  throw new Error(`the column ${column} of a queue's item tells it from no other`);
}
