/** The record of our transactions on one network: the rows of `relayers` and `relayer_transactions`. */
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import type { MinedTransaction } from './node-reply.ts';
import type { Hex, TransactionToSend } from './to-send.ts';

/**
 * The states of a transaction, as in `db/migrations/280_baseline.sql`. A nonce that was given up went to a transfer of nothing, or to a stranger.
 * Statements have the numbers themselves: an index of `state = 0` does not serve a parameter.
 */
export const STATES = { pending: 0, mined: 1, reverted: 2, givenUp: 3 } as const;

/** A stored transaction. */
export interface StoredRow {
  address: string;
  nonce: bigint;
  id: string;
  to_address: Hex;
  data: Hex;
  gas_limit: bigint;
  max_cost_wei: string | null;
  /** The transaction that was signed last under this nonce. */
  raw: Hex;
  /** The hashes of everything with this nonce that does what was asked for. */
  hashes: string[];
  /** The hash of a transfer of nothing under this nonce; null: there is none. */
  filler: string | null;
  state: number;
  created_at: Date;
}

/** A transaction with its nonce, as it will be sent. */
export interface Signed {
  nonce: bigint;
  raw: Hex;
  hash: Hex;
}

/** Transactions that a key has signed, in the order of their nonces. */
export interface SignedBatch {
  added: readonly (TransactionToSend & Signed & { gasLimit: bigint })[];
  /** The nonce after the last one. */
  nextNonce: bigint;
  /** The most that each unit of gas may cost. */
  maxFeeWei: bigint;
}

/** A transaction that a block holds, by its purpose. */
export interface Mined {
  id: string;
  mined: MinedTransaction;
}

export class TransactionStore {
  readonly #sql: Database;
  readonly #network: string;
  readonly #nowMs: () => number;

  /** @param parts.network CAIP-2 */
  constructor(parts: { sql: Database; network: string; nowMs: () => number }) {
    this.#sql = parts.sql;
    this.#network = parts.network;
    this.#nowMs = parts.nowMs;
  }

  /** All that was stored for a purpose, the newest first. */
  async ofPurpose(id: string): Promise<StoredRow[]> {
    return this.#sql<StoredRow[]>`
      select address, nonce, id, to_address, data, gas_limit, max_cost_wei::text, raw, hashes, filler, state, created_at
      from relayer_transactions where network = ${this.#network} and id = ${id} order by created_at desc`;
  }

  /**
   * Locks a key's next nonce until the commit.
   *
   * @param onChain the nonce that the chain would take next. It is above ours when somebody else used the key, and below
   *   when the chain forgot what we sent, which `Round` then sends again.
   */
  async holdNonce(transaction: Transaction, address: string, onChain: bigint): Promise<bigint> {
    const [row] = await transaction<{ next_nonce: bigint }[]>`
      insert into relayers as r (network, address, next_nonce)
      values (${this.#network}, ${address}, ${String(onChain)})
      on conflict (network, address) do update set next_nonce = r.next_nonce
      returning next_nonce`;
    if (row === undefined) throw new Error('the database returned no relayer');
    return onChain > row.next_nonce ? onChain : row.next_nonce;
  }

  /** The purposes of these that have a transaction already: a pending one, or a mined one that counts. */
  async taken(transaction: Transaction, asked: readonly TransactionToSend[]): Promise<Set<string>> {
    const rows = await transaction<{ id: string }[]>`${this.#takenOf(asked)}`;
    return new Set(rows.map(({ id }) => id));
  }

  #takenOf(asked: readonly TransactionToSend[]) {
    const idsOf = (each: readonly TransactionToSend[]) => arrayLiteral(each.map(({ id }) => id));
    const counting = asked.filter(({ again }) => again !== true);
    return this.#sql`
      select id from relayer_transactions where network = ${this.#network} and (
        (state = 0 and id = any(${idsOf(asked)}::text::text[])) or
        (state = 1 and id = any(${idsOf(counting)}::text::text[])))`;
  }

  /** The wei that a key's pending transactions may cost it. */
  async promisedWei(transaction: Transaction, address: string): Promise<bigint> {
    const [row] = await transaction<{ promised: string }[]>`
      select (${this.#promisedBy(address)})::text as promised`;
    return BigInt(row?.promised ?? '0');
  }

  #promisedBy(address: string) {
    return this.#sql`
      select coalesce(sum(gas_limit * max_fee_wei), 0) from relayer_transactions
      where network = ${this.#network} and address = ${address} and state = 0`;
  }

  /**
   * Stores transactions of a key whose nonce is held, and moves that nonce on.
   *
   * @throws a unique violation when another key has stored one of these purposes meanwhile
   */
  async insert(transaction: Transaction, address: string, batch: SignedBatch): Promise<void> {
    await transaction`${this.#rowsOf(address, batch)}`;
    await transaction`
      update relayers set next_nonce = ${String(batch.nextNonce)}
      where network = ${this.#network} and address = ${address}`;
  }

  /**
   * Stores transactions in one statement, if they bear the nonces that their key has next, none of their purposes has a
   * transaction, what they depend on is there, and the key can pay for them beside what is pending. Whoever stores for a key moves its nonce on, so what
   * the statement read of this key's transactions is what it finds when it has the lock.
   *
   * @param mostWei what this key may have promised afterwards; null: any amount
   * @returns whether they were stored; if not, nothing was
   * @throws a unique violation when another key has stored one of these purposes meanwhile
   */
  async insertExpected(address: string, batch: SignedBatch, mostWei: bigint | null): Promise<boolean> {
    const [first] = batch.added;
    if (first === undefined) return true;
    const costsWei = batch.added.reduce((sum, { gasLimit }) => sum + gasLimit * batch.maxFeeWei, 0n);
    const stored = await this.#sql<{ nonce: bigint }[]>`
      with held as (
        update relayers set next_nonce = ${String(batch.nextNonce)}
        where network = ${this.#network} and address = ${address} and next_nonce = ${String(first.nonce)}
          and not exists (${this.#takenOf(batch.added)})
          and coalesce(${mostWei === null ? null : String(mostWei)}::text::numeric >=
            ${String(costsWei)}::text::numeric + (${this.#promisedBy(address)}), true)
          ${this.#ifAllAreWanted(batch.added)}
        returning 1
      )
      ${this.#rowsOf(address, batch, this.#sql`where exists (select from held)`)}
      returning nonce`;
    return stored.length > 0;
  }

  #ifAllAreWanted(asked: readonly TransactionToSend[]) {
    return asked.reduce(
      (all, { onlyIf }) => (onlyIf === undefined ? all : this.#sql`${all} and ${onlyIf(this.#sql)}`),
      this.#sql``,
    );
  }

  /** Whether what a transaction depends on is there. */
  async isWanted(transaction: Transaction, { onlyIf }: TransactionToSend): Promise<boolean> {
    if (onlyIf === undefined) return true;
    const [row] = await transaction<{ wanted: boolean }[]>`select ${onlyIf(this.#sql)} as wanted`;
    return row?.wanted === true;
  }

  /** The statement that inserts a batch. Every key stores purposes in the same order: two that store the same ones at once cannot wait for each other. */
  #rowsOf(address: string, { added, maxFeeWei }: SignedBatch, where = this.#sql``) {
    const now = this.#at();
    const column = (pick: (each: (typeof added)[number]) => string | bigint) => arrayLiteral(added.map(pick));
    return this.#sql`
      insert into relayer_transactions
        (network, address, nonce, id, to_address, data, gas_limit, max_cost_wei, max_fee_wei, raw, hashes,
         created_at, sent_at)
      select ${this.#network}, ${address}, x.nonce, x.id, x.to_address, x.data, x.gas,
             nullif(x.max_cost, 0), ${String(maxFeeWei)}::numeric, x.raw, array[x.hash], ${now}, ${now}
      from unnest(${column((x) => x.nonce)}::text::bigint[], ${column((x) => x.id)}::text::text[],
                  ${column((x) => x.to)}::text::text[], ${column((x) => x.data)}::text::text[],
                  ${column((x) => x.gasLimit)}::text::bigint[],
                  ${column((x) => x.maxCostWei ?? 0n)}::text::numeric[], ${column((x) => x.raw)}::text::text[],
                  ${column((x) => x.hash)}::text::text[]) as x (nonce, id, to_address, data, gas, max_cost, raw, hash)
      ${where}
      order by x.id`;
  }

  /** Writes down which transactions were mined and what they cost, each once. */
  async noteMined(batch: readonly Mined[]): Promise<void> {
    const column = (pick: (each: Mined) => string | bigint | number | null) => arrayLiteral(batch.map(pick));
    await this.#sql`
      with mined as (
        update relayer_transactions t
        set state = case when x.hash = t.filler then 3 else x.state end, block = x.block
        from unnest(${column(({ id }) => id)}::text::text[], ${column(({ mined }) => mined.hash)}::text::text[],
                    ${column(({ mined }) => (mined.status === 'success' ? STATES.mined : STATES.reverted))}::text::smallint[],
                    ${column(({ mined }) => mined.blockNumber)}::text::bigint[],
                    ${column(({ mined }) => mined.costWei)}::text::numeric[]) as x (id, hash, state, block, cost)
        where t.network = ${this.#network} and t.id = x.id and t.state = 0
          and (x.hash = any(t.hashes) or x.hash = t.filler)
        returning t.address, x.cost
      )
      insert into gas_spent as g (network, address, day, transactions, priced, spent)
      select ${this.#network}, address, ${this.#at().slice(0, 10)}::date, count(*), count(cost), coalesce(sum(cost), 0)
      from mined group by address order by address
      on conflict (network, address, day) do update
      set transactions = g.transactions + excluded.transactions, priced = g.priced + excluded.priced,
          spent = g.spent + excluded.spent`;
  }

  /**
   * Takes pending transactions that nobody has looked at for a while. Those looked at longest ago come first, so that none
   * always stands behind a slow one.
   *
   * @param waited.oursMs how long one of our keys' has not been looked at
   * @param waited.othersMs the same, for one of a key that we do not have
   */
  async takeDue(
    ours: readonly string[],
    waited: { oursMs: number; othersMs: number },
    limit: number,
  ): Promise<StoredRow[]> {
    return this.#sql<StoredRow[]>`
      update relayer_transactions set sent_at = ${this.#at()}
      where (network, address, nonce) in (
        select network, address, nonce from relayer_transactions
        where network = ${this.#network} and state = 0 and sent_at <= case
          when address = any(${arrayLiteral(ours)}::text::text[]) then ${this.#at(-waited.oursMs)}::timestamptz
          else ${this.#at(-waited.othersMs)}::timestamptz end
        order by sent_at, nonce limit ${limit} for update skip locked
      )
      returning address, nonce, id, to_address, data, gas_limit, max_cost_wei::text, raw, hashes, filler, state, created_at`;
  }

  /** Puts what was signed anew in the place of what was signed last. @param next.isFiller whether it is a transfer of nothing */
  async replace(
    { address, nonce }: StoredRow,
    next: { raw: Hex; hash: Hex; maxFeeWei: bigint; isFiller: boolean },
  ): Promise<void> {
    await this.#sql`
      update relayer_transactions
      set raw = ${next.raw}, max_fee_wei = ${String(next.maxFeeWei)}::numeric,
        hashes = case when ${next.isFiller} then hashes else hashes || ${next.hash}::text end,
        filler = case when ${next.isFiller} then ${next.hash} else filler end
      where network = ${this.#network} and address = ${address} and nonce = ${String(nonce)}
        and state = 0`;
  }

  /** Ends a pending transaction whose nonce somebody else has used. */
  async giveUp({ address, nonce }: StoredRow): Promise<void> {
    await this.#sql`
      update relayer_transactions set state = 3
      where network = ${this.#network} and address = ${address} and nonce = ${String(nonce)}
        and state = 0`;
  }

  /** Transactions of a key that have ended, with nonces that the chain does not count: the lowest nonce first. */
  async forgotten(address: string, used: bigint, limit: number): Promise<Hex[]> {
    const rows = await this.#sql<{ raw: Hex }[]>`
      select raw from relayer_transactions
      where network = ${this.#network} and address = ${address} and state <> 0
        and nonce >= ${String(used)}
      order by nonce limit ${limit}`;
    return rows.map(({ raw }) => raw);
  }

  async countPending(): Promise<number> {
    const [count] = await this.#sql<{ pending: bigint }[]>`
      select count(*) as pending from relayer_transactions
      where network = ${this.#network} and state = 0`;
    return Number(count?.pending ?? 0n);
  }

  #at(inMs = 0): string {
    return new Date(this.#nowMs() + inMs).toISOString();
  }
}
