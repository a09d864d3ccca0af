/**
 * Sends transactions that have an end of their own (a blockhash, a validity), for each purpose one that lands.
 *
 * A transaction is stored signed before it is sent, and sent again until the chain has it or its end has come. Nothing
 * that a node answers to a sending counts: whether it landed, and whether it still can, is asked of the chain by its hash
 * alone, which any process can do after a crash. Another one is made only when the one before can never land.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../db/connection.ts';
import { inLanes } from './lanes.ts';

/** A signed transaction, before it is sent. */
export interface EndingTransaction {
  /** The transaction's name on the chain. */
  hash: string;
  raw: string;
  /** After this the chain takes it no more, in the chain's own measure. */
  endsAt: bigint;
  /** The wallet for which it opens an account at our cost. */
  opensFor?: string;
  /** The address of the key that pays for it. */
  paidBy: string;
}

export interface StoredTransaction extends Omit<EndingTransaction, 'opensFor' | 'paidBy'> {
  id: string;
  createdAtMs: number;
}

/** The state of a transaction. `over`: it did not land, and never will. */
export type Fate =
  | { status: 'unseen' }
  | { status: 'landed'; ok: boolean; final: boolean }
  | { status: 'over' };

export interface EndingChain {
  /** Asks what became of them, in their order. @throws when the chain does not say */
  fates(transactions: readonly StoredTransaction[]): Promise<Fate[]>;
  /** The fee of a final transaction, in the smallest unit of the chain's fee currency. @throws when the chain does not say */
  cost(transaction: StoredTransaction): Promise<bigint>;
  /** Submits a transaction. A failure to submit proves nothing. */
  send(raw: string): Promise<unknown>;
}

export interface EndingSender {
  /** The last transaction stored for this purpose; null: none. */
  find(id: string): Promise<StoredTransaction | null>;
  /** The state of a transaction. @throws when the node does not answer */
  fateOf(stored: StoredTransaction): Promise<Fate>;
  /**
   * Sends one for this purpose and waits until it has landed.
   *
   * @param order.once `true`: no second one is ever made, whatever became of the first
   * @param order.make signs one when there is none; null: not now
   * @param order.until whether it must be final to have landed
   * @returns null when none was made; a fate of `unseen` when the time was over first: it is still on its way
   */
  deliver(
    order: {
      id: string;
      once: boolean;
      make(): Promise<EndingTransaction | null>;
      until: 'landed' | 'final';
    },
    timeoutMs: number,
  ): Promise<{ hash: string; fate: Fate } | null>;
  /** How many of this purpose landed and failed, for good. */
  failed(id: string): Promise<number>;
  /** How many accounts were opened at our cost since then: for this one ever, and for all. */
  opened(forWhom: string, sinceMs: number): Promise<{ theirs: number; all: number }>;
  /**
   * One round over what is on its way: looks, and sends again what is not there.
   *
   * @returns how many it looked at
   * @throws the first failure, after the others had their turn
   */
  resume(): Promise<number>;
}

type Order = Parameters<EndingSender['deliver']>[0];

const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 1_000;
const SEND_AGAIN_MS = 2_000;
const RESUME_BATCH = 200;
const MAX_RESUME_BATCHES = 10;
const RESUMED_AT_ONCE = 8;
/** After this a round begins with nothing more. */
const ROUND_MS = 10_000;
const STATES = { pending: 0, landed: 1, failed: 2, over: 3 };

interface Row {
  hash: string;
  id: string;
  raw: string;
  ends_at: bigint;
  state: number;
  created_at: Date;
}

interface EndingSenderParts {
  sql: Database;
  /** CAIP-2. */
  network: string;
  chain: EndingChain;
  nowMs(): number;
}

export function createEndingSender(parts: EndingSenderParts): EndingSender {
  return new StoredSender(parts);
}

class StoredSender implements EndingSender {
  readonly #sql: Database;
  readonly #network: string;
  readonly #chain: EndingChain;
  readonly #nowMs: () => number;

  constructor(parts: EndingSenderParts) {
    this.#sql = parts.sql;
    this.#network = parts.network;
    this.#chain = parts.chain;
    this.#nowMs = parts.nowMs;
  }

  async find(id: string): Promise<StoredTransaction | null> {
    const row = await this.#newest(id);
    return row === null ? null : storedOf(row);
  }

  async fateOf({ hash, id }: StoredTransaction): Promise<Fate> {
    const row = await this.#newest(id);
    if (row === null || row.hash !== hash) throw new Error('no such transaction was stored');
    return this.#fateOf(row);
  }

  async deliver(order: Order, timeoutMs: number): Promise<{ hash: string; fate: Fate } | null> {
    const untilMs = performance.now() + timeoutMs;
    const earlier = await this.#newest(order.id);
    let fate: Fate = earlier === null ? { status: 'unseen' } : await this.#fateOf(earlier);
    let row = earlier;
    if (row === null || (isLostForGood(fate) && !order.once)) {
      row = await this.#make(order);
      if (row === null) return null;
      // Another replica's may have come to its end meanwhile.
      fate = row.state === STATES.pending ? { status: 'unseen' } : await this.#fateOf(row);
    }
    return { hash: row.hash, fate: await this.#sendUntil(row, fate, { untilMs, enough: order.until }) };
  }

  async failed(id: string): Promise<number> {
    const [row] = await this.#sql<{ count: number }[]>`
      select count(*)::integer as count from ending_transactions
      where network = ${this.#network} and id = ${id} and state = ${STATES.failed}`;
    return row?.count ?? 0;
  }

  async opened(forWhom: string, sinceMs: number): Promise<{ theirs: number; all: number }> {
    const [row] = await this.#sql<{ theirs: number; all: number }[]>`
      select count(*) filter (where opens_for = ${forWhom})::integer as theirs,
             count(*) filter (where created_at >= ${new Date(sinceMs).toISOString()})::integer as all
      from ending_transactions where network = ${this.#network} and opens_for is not null and state in (0, 1)`;
    return row ?? { theirs: 0, all: 0 };
  }

  async resume(): Promise<number> {
    let looked = 0;
    const untilMs = performance.now() + ROUND_MS;
    const failures: unknown[] = [];
    for (let batch = 0; batch < MAX_RESUME_BATCHES && performance.now() < untilMs; batch++) {
      const due = await this.#takeDue();
      looked += due.length;
      failures.push(...(await this.#resumeAll(due, untilMs)));
      if (due.length < RESUME_BATCH) break;
    }
    const [failure] = failures;
    if (failure !== undefined) throw failure;
    return looked;
  }

  /** Makes and stores a transaction. @returns what is stored, which may be somebody else's who was faster; null: not now */
  async #make({ id, once, make }: Order): Promise<Row | null> {
    const made = await make();
    if (made === null) return null;
    await this.#store(id, once, made);
    const row = await this.#newest(id);
    if (row === null) throw new Error('what was stored is gone');
    return row;
  }

  /** Sends a stored transaction until it has landed, is over, or the time is. @returns what became of it by then */
  async #sendUntil(
    row: Row,
    known: Fate,
    { untilMs, enough }: { untilMs: number; enough: Order['until'] },
  ): Promise<Fate> {
    let fate = known;
    let sentMs = Number.NEGATIVE_INFINITY;
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_LOOK_MS)) {
      if (fate.status === 'over') return fate;
      if (fate.status === 'landed' && (fate.final || enough === 'landed')) return fate;
      if (fate.status === 'unseen' && performance.now() - sentMs >= SEND_AGAIN_MS) {
        sentMs = performance.now();
        await this.#send(row);
      }
      if (performance.now() + pauseMs > untilMs) return fate;
      await sleep(pauseMs);
      fate = await this.#fateOf(row).catch((): Fate => ({ status: 'unseen' }));
    }
  }

  /** Takes those that wait, the longest waiting first. */
  async #takeDue(): Promise<Row[]> {
    return this.#sql<Row[]>`
      update ending_transactions set sent_at = ${this.#at()}
      where (network, hash) in (
        select network, hash from ending_transactions
        where network = ${this.#network} and state = 0 and sent_at <= ${this.#at(-SEND_AGAIN_MS)}
        order by sent_at limit ${RESUME_BATCH} for update skip locked
      )
      returning hash, id, raw, ends_at, state, created_at`;
  }

  /** Looks at transactions, and sends again those that are not there. @returns why some could not be looked at */
  async #resumeAll(due: readonly Row[], untilMs: number): Promise<unknown[]> {
    if (due.length === 0) return [];
    // One that the chain says nothing of spoils the answer for all of them: then each is asked for by itself.
    const together = await this.#chain.fates(due.map(storedOf)).catch(() => null);
    const resumeOne = async ([index, row]: [number, Row]) => {
      const fate = together === null ? await this.#fateOf(row) : together[index];
      if (together !== null && fate !== undefined) await this.#note(row, fate);
      if (fate?.status === 'unseen') await this.#send(row);
    };
    return inLanes([...due.entries()], { atOnce: RESUMED_AT_ONCE, untilMs }, resumeOne);
  }

  /** Sends a transaction. An error is no proof: it may have been passed on all the same. */
  async #send({ raw }: Row): Promise<void> {
    await this.#chain.send(raw).catch(() => {});
  }

  async #newest(id: string): Promise<Row | null> {
    const [row] = await this.#sql<Row[]>`
      select hash, id, raw, ends_at, state, created_at from ending_transactions
      where network = ${this.#network} and id = ${id} order by state in (0, 1) desc, created_at desc limit 1`;
    return row ?? null;
  }

  /**
   * Stores a transaction unless somebody else was faster: one that is still on its way or has landed keeps out all others,
   * and one that must be the only one keeps them out whatever became of it since it was looked for.
   */
  async #store(id: string, once: boolean, made: EndingTransaction): Promise<void> {
    await this.#sql`
      insert into ending_transactions
        (network, hash, id, raw, ends_at, opens_for, paid_by, only_one, created_at, sent_at)
      values (${this.#network}, ${made.hash}, ${id}, ${made.raw}, ${String(made.endsAt)}, ${made.opensFor ?? null},
              ${made.paidBy}, ${once}, ${this.#at()}, ${this.#at()})
      on conflict do nothing`;
  }

  /** Finds out what became of a stored transaction, and writes down an end. @throws when the chain does not say */
  async #fateOf(row: Row): Promise<Fate> {
    if (row.state === STATES.over) return { status: 'over' };
    if (row.state !== STATES.pending)
      return { status: 'landed', ok: row.state === STATES.landed, final: true };
    const [fate] = await this.#chain.fates([storedOf(row)]);
    if (fate === undefined) throw new Error('the chain said nothing');
    await this.#note(row, fate);
    return fate;
  }

  /** Writes down what is for ever and what it cost, once. */
  async #note(row: Row, fate: Fate): Promise<void> {
    const isOver = fate.status === 'over';
    if (!isOver && !(fate.status === 'landed' && fate.final)) return;
    const state = isOver ? STATES.over : fate.ok ? STATES.landed : STATES.failed;
    const cost = isOver ? null : await this.#chain.cost(storedOf(row)).catch(() => null);
    await this.#sql`
      with ended as (
        update ending_transactions set state = ${state}
        where network = ${this.#network} and hash = ${row.hash} and state = 0 returning paid_by
      )
      insert into gas_spent as g (network, address, day, transactions, priced, spent)
      select ${this.#network}, paid_by, ${this.#at().slice(0, 10)}::date, 1, ${cost === null ? 0 : 1}::integer,
             ${String(cost ?? 0n)}::numeric
      from ended where paid_by is not null and ${!isOver}
      on conflict (network, address, day) do update
      set transactions = g.transactions + excluded.transactions, priced = g.priced + excluded.priced,
          spent = g.spent + excluded.spent`;
  }

  #at(inMs = 0): string {
    return new Date(this.#nowMs() + inMs).toISOString();
  }
}

function storedOf(row: Row): StoredTransaction {
  return {
    id: row.id,
    hash: row.hash,
    raw: row.raw,
    endsAt: row.ends_at,
    createdAtMs: row.created_at.getTime(),
  };
}

function isLostForGood(fate: Fate): boolean {
  return fate.status === 'over' || (fate.status === 'landed' && !fate.ok && fate.final);
}
