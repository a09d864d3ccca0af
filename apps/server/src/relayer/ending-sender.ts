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
  /** For whom it opens an account at our cost. */
  opensFor?: string;
  /** Whose key pays for it. */
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

const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 1_000;
const SEND_AGAIN_MS = 2_000;
const RESUME_BATCH = 200;
const MAX_RESUME_BATCHES = 10;
const RESUMED_AT_ONCE = 8;
/** A round begins with none after this. */
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

/** @param parts.network CAIP-2 */
export function createEndingSender(parts: {
  sql: Database;
  network: string;
  chain: EndingChain;
  nowMs(): number;
}): EndingSender {
  const { sql, network, chain, nowMs } = parts;
  const at = (ms = 0) => new Date(nowMs() + ms).toISOString();
  const storedOf = (row: Row): StoredTransaction => ({
    id: row.id,
    hash: row.hash,
    raw: row.raw,
    endsAt: row.ends_at,
    createdAtMs: row.created_at.getTime(),
  });

  async function newest(id: string): Promise<Row | null> {
    const [row] = await sql<Row[]>`
      select hash, id, raw, ends_at, state, created_at from ending_transactions
      where network = ${network} and id = ${id} order by state in (0, 1) desc, created_at desc limit 1`;
    return row ?? null;
  }

  /** Stores it unless somebody else was faster. */
  async function store(id: string, made: EndingTransaction): Promise<void> {
    await sql`
      insert into ending_transactions (network, hash, id, raw, ends_at, opens_for, paid_by, created_at, sent_at)
      values (${network}, ${made.hash}, ${id}, ${made.raw}, ${String(made.endsAt)}, ${made.opensFor ?? null},
              ${made.paidBy}, ${at()}, ${at()})
      on conflict do nothing`;
  }

  /** Writes down what is for ever and what it cost, once. */
  async function note(row: Row, fate: Fate): Promise<void> {
    const isOver = fate.status === 'over';
    if (!isOver && !(fate.status === 'landed' && fate.final)) return;
    const state = isOver ? STATES.over : fate.ok ? STATES.landed : STATES.failed;
    const cost = isOver ? null : await chain.cost(storedOf(row)).catch(() => null);
    await sql`
      with ended as (
        update ending_transactions set state = ${state}
        where network = ${network} and hash = ${row.hash} and state = 0 returning paid_by
      )
      insert into gas_spent as g (network, address, day, transactions, priced, spent)
      select ${network}, paid_by, ${at().slice(0, 10)}::date, 1, ${cost === null ? 0 : 1}::integer,
             ${String(cost ?? 0n)}::numeric
      from ended where paid_by is not null and ${!isOver}
      on conflict (network, address, day) do update
      set transactions = g.transactions + excluded.transactions, priced = g.priced + excluded.priced,
          spent = g.spent + excluded.spent`;
  }

  async function fateOf(row: Row): Promise<Fate> {
    if (row.state === STATES.over) return { status: 'over' };
    if (row.state !== STATES.pending)
      return { status: 'landed', ok: row.state === STATES.landed, final: true };
    const [fate] = await chain.fates([storedOf(row)]);
    if (fate === undefined) throw new Error('the chain said nothing');
    await note(row, fate);
    return fate;
  }

  const isLostForGood = (fate: Fate) =>
    fate.status === 'over' || (fate.status === 'landed' && !fate.ok && fate.final);

  return {
    async find(id) {
      const row = await newest(id);
      return row === null ? null : storedOf(row);
    },

    async fateOf({ hash, id }) {
      const row = await newest(id);
      if (row === null || row.hash !== hash) throw new Error('no such transaction was stored');
      return fateOf(row);
    },

    async deliver({ id, once, make, until }, timeoutMs) {
      const untilMs = performance.now() + timeoutMs;
      let row = await newest(id);
      let sentMs = Number.NEGATIVE_INFINITY;
      let fate: Fate = row === null ? { status: 'unseen' } : await fateOf(row);
      if (row === null || (isLostForGood(fate) && !once)) {
        const made = await make();
        if (made === null) return null;
        await store(id, made);
        row = await newest(id);
        if (row === null) throw new Error('what was stored is gone');
        fate = { status: 'unseen' };
      }
      for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_LOOK_MS)) {
        if (fate.status === 'over') break;
        if (fate.status === 'landed' && (fate.final || until === 'landed')) break;
        if (fate.status === 'unseen' && performance.now() - sentMs >= SEND_AGAIN_MS) {
          sentMs = performance.now();
          // An error is no proof: it may have been passed on all the same.
          await chain.send(row.raw).catch(() => {});
        }
        if (performance.now() + pauseMs > untilMs) break;
        await sleep(pauseMs);
        fate = await fateOf(row).catch((): Fate => ({ status: 'unseen' }));
      }
      return { hash: row.hash, fate };
    },

    async failed(id) {
      const [row] = await sql<{ count: number }[]>`
        select count(*)::integer as count from ending_transactions
        where network = ${network} and id = ${id} and state = ${STATES.failed}`;
      return row?.count ?? 0;
    },

    async opened(forWhom, sinceMs) {
      const [row] = await sql<{ theirs: number; all: number }[]>`
        select count(*) filter (where opens_for = ${forWhom})::integer as theirs,
               count(*) filter (where created_at >= ${new Date(sinceMs).toISOString()})::integer as all
        from ending_transactions where network = ${network} and opens_for is not null and state in (0, 1)`;
      return row ?? { theirs: 0, all: 0 };
    },

    async resume() {
      let looked = 0;
      const untilMs = performance.now() + ROUND_MS;
      const failures: unknown[] = [];
      for (let batch = 0; batch < MAX_RESUME_BATCHES && performance.now() < untilMs; batch++) {
        const due = await sql<Row[]>`
          update ending_transactions set sent_at = ${at()}
          where (network, hash) in (
            select network, hash from ending_transactions
            where network = ${network} and state = 0 and sent_at <= ${at(-SEND_AGAIN_MS)}
            order by sent_at limit ${RESUME_BATCH} for update skip locked
          )
          returning hash, id, raw, ends_at, state, created_at`;
        if (due.length === 0) break;
        looked += due.length;
        // One that the chain says nothing of spoils the answer for all of them: then each is asked for by itself.
        const together = await chain.fates(due.map(storedOf)).catch(() => null);
        const rows = [...due.entries()];
        const resumeOne = async ([index, row]: [number, Row]) => {
          const fate = together === null ? await fateOf(row) : together[index];
          if (together !== null && fate !== undefined) await note(row, fate);
          if (fate?.status === 'unseen') await chain.send(row.raw).catch(() => {});
        };
        failures.push(...(await inLanes(rows, { atOnce: RESUMED_AT_ONCE, untilMs }, resumeOne)));
        if (due.length < RESUME_BATCH) break;
      }
      const [failure] = failures;
      if (failure !== undefined) throw failure;
      return looked;
    },
  };
}
