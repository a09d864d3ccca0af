/**
 * The queue of one of our keys. A key's nonces come from the database, in the commit that stores the signed transactions
 * which use them: two processes never take the same one, and a crash leaves no gap.
 */
import { type Database, isUniqueViolation, type Transaction } from '../db/connection.ts';
import { type EvmFees, weiOf } from './evm-gas.ts';
import type { GasTank } from './gas-tanks.ts';
import type { EvmNode } from './node.ts';
import { createSigner, type EvmKey } from './sign.ts';
import type { Signer } from './signer.ts';
import type { Signed, TransactionStore } from './store.ts';
import { type Hex, NotWanted, OutOfGas, type TransactionToSend } from './to-send.ts';

/** The gas limit of a transaction, which none of ours needs: code that others gave us to run may ask for anything. */
export const MAX_GAS = 5_000_000n;
const BATCH = 50;
const MAX_STORE_ATTEMPTS = 4;
/** How many may wait for a key, and about how many it may have pending. */
const MAX_WAITING = 200;
/** How old what the chain said of a key may be when a transaction is stored. */
const STANDING_FRESH_MS = 1_500;

/** The outcome of storing a transaction: it was signed, or another one of its purpose is there already. */
export type Stored = Signed | 'taken';

/** The same; or no key could pay for it, or what it depends on is not there. */
type Became = Stored | 'unpaid' | 'unwanted';

type WithGas = TransactionToSend & { gasLimit: bigint };

interface Waiting {
  transaction: WithGas;
  attempts: number;
  done(stored: Stored): void;
  failed(error: unknown): void;
}

/** The state of a key on the chain before nonces are given out. */
interface Standing {
  fees: EvmFees;
  onChain: bigint;
  /** Its balance in wei; null: the node does not say, and the chain will decide. */
  holdsWei: bigint | null;
}

export interface KeyQueueParts {
  sql: Database;
  store: TransactionStore;
  node: EvmNode;
  /** CAIP-2. */
  network: string;
  chainId: number;
  tank: GasTank;
  currentFees(): Promise<EvmFees>;
}

export class KeyQueue {
  readonly #parts: KeyQueueParts;
  readonly #signer: Signer;
  readonly #waiting: Waiting[] = [];
  #isBusy = false;
  /** The nonce after the last one that this process has used. Another process may have used it since. */
  #expectedNonce: bigint | null = null;
  /** The answer that `prepare` asked for and no batch has used yet. */
  #prepared: { standing: Promise<Standing>; atMs: number } | null = null;

  constructor(parts: KeyQueueParts, key: EvmKey) {
    this.#parts = parts;
    this.#signer = createSigner(key);
  }

  get address(): Hex {
    return this.#signer.address;
  }

  get length(): number {
    return this.#waiting.length;
  }

  get isFull(): boolean {
    return this.#waiting.length >= MAX_WAITING;
  }

  /** Signs a transaction under a nonce of this key. */
  sign(
    { to, data, gasLimit }: Pick<WithGas, 'to' | 'data' | 'gasLimit'>,
    nonce: bigint,
    { maxFeePerGas, maxPriorityFeePerGas }: EvmFees,
  ): Promise<{ raw: Hex; hash: Hex }> {
    const { chainId } = this.#parts;
    const call = { to, data, gas: gasLimit, nonce: Number(nonce) };
    return this.#signer.sign({ type: 'eip1559', chainId, ...call, maxFeePerGas, maxPriorityFeePerGas });
  }

  /** Gives a transaction a nonce and stores it signed. @throws OutOfGas when this key cannot pay for it, NotWanted */
  store(transaction: WithGas): Promise<Stored> {
    return new Promise((done, failed) => {
      this.#waiting.push({ transaction, attempts: 0, done, failed });
      void this.#drain();
    });
  }

  /** Begins to ask the chain what storing a transaction takes, for who will store one in a moment. Never throws. */
  prepare(): void {
    if (this.#prepared !== null && isFresh(this.#prepared)) return;
    const prepared = { standing: this.#standing(), atMs: performance.now() };
    this.#prepared = prepared;
    prepared.standing.catch(() => {
      if (this.#prepared === prepared) this.#prepared = null;
    });
  }

  async #drain(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      while (this.#waiting.length > 0) await this.#storeBatch(this.#waiting.splice(0, BATCH));
    } finally {
      this.#isBusy = false;
    }
  }

  /** Stores a batch in one commit, and tells each of those who wait. Never throws. */
  async #storeBatch(batch: readonly Waiting[]): Promise<void> {
    try {
      const asked = batch.map(({ transaction }) => transaction);
      const stored = (await this.#storeExpected(asked)) ?? (await this.#storeHeld(asked));
      for (const [index, waiting] of batch.entries()) {
        const became = stored[index] ?? 'taken';
        if (became === 'unpaid') waiting.failed(new OutOfGas(this.#parts.network));
        else if (became === 'unwanted') waiting.failed(new NotWanted(waiting.transaction.id));
        else waiting.done(became);
      }
    } catch (error) {
      // Another key stored the same purpose at this moment: the next try sees it.
      const again = batch.filter((each) => isUniqueViolation(error) && ++each.attempts < MAX_STORE_ATTEMPTS);
      for (const waiting of batch) if (!again.includes(waiting)) waiting.failed(error);
      this.#waiting.unshift(...again);
    }
  }

  /**
   * Stores a batch in one statement, signed with the nonces that come next unless another process has used this key.
   *
   * @returns null when something else was found than expected: nothing was stored
   * @throws when the node does not say how the key stands
   */
  async #storeExpected(asked: readonly WithGas[]): Promise<Signed[] | null> {
    const first = this.#expectedNonce;
    if (first === null || new Set(asked.map(({ id }) => id)).size < asked.length) return null;
    const { fees, onChain, holdsWei } = await this.#preparedStanding();
    if (onChain > first) return null;
    const added = await this.#signed(asked, first, fees);
    // Some of what was pending then may have been mined and paid since.
    const dearest = added.reduce((most, { gasLimit }) => (gasLimit > most ? gasLimit : most), 0n);
    const sinceWei = BigInt(MAX_WAITING) * dearest * fees.maxFeePerGas;
    const nextNonce = first + BigInt(added.length);
    const batch = { added, nextNonce, maxFeeWei: fees.maxFeePerGas };
    const mostWei = holdsWei === null ? null : holdsWei - sinceWei;
    if (!(await this.#parts.store.insertExpected(this.address, batch, mostWei))) return null;
    this.#expectedNonce = nextNonce;
    return added;
  }

  /** Stores a batch while it holds the key's nonce. @throws when the node does not say how the key stands */
  async #storeHeld(asked: readonly WithGas[]): Promise<Became[]> {
    const standing = await this.#standing();
    const { stored, nextNonce } = await this.#parts.sql.begin((transaction) =>
      this.#storeIn(transaction, asked, standing),
    );
    this.#expectedNonce = nextNonce;
    return stored;
  }

  #signed(asked: readonly WithGas[], first: bigint, fees: EvmFees): Promise<(WithGas & Signed)[]> {
    return Promise.all(
      asked.map(async (each, index) => {
        const nonce = first + BigInt(index);
        return { ...each, nonce, ...(await this.sign(each, nonce, fees)) };
      }),
    );
  }

  /** Each is good for one batch: somebody else may use the key at any time. */
  #preparedStanding(): Promise<Standing> {
    const prepared = this.#prepared;
    this.#prepared = null;
    return prepared !== null && isFresh(prepared) ? prepared.standing : this.#standing();
  }

  /** @throws when the node does not say */
  async #standing(): Promise<Standing> {
    const { node, tank, currentFees } = this.#parts;
    const [fees, onChain, holdsWei] = await Promise.all([
      currentFees(),
      node.noncesUsed(this.address, 'pending'),
      weiOf(node.rpc, this.address).catch(() => null),
    ]);
    if (holdsWei !== null) tank.saw(this.address, holdsWei);
    return { fees, onChain, holdsWei };
  }

  /** @returns for each, in their order, what became of it, and the nonce after the last */
  async #storeIn(
    transaction: Transaction,
    asked: readonly WithGas[],
    standing: Standing,
  ): Promise<{ stored: Became[]; nextNonce: bigint }> {
    const { store } = this.#parts;
    const { fees, onChain } = standing;
    let nextNonce = await store.holdNonce(transaction, this.address, onChain);
    // Asked again now that the nonce is held: one may have been mined since `send` looked.
    const taken = await store.taken(transaction, asked);
    let spareWei = await this.#spareWei(transaction, standing);
    const added: (WithGas & Signed)[] = [];
    const stored: Became[] = [];
    for (const each of asked) {
      const costsWei = each.gasLimit * fees.maxFeePerGas;
      if (taken.has(each.id)) stored.push('taken');
      else if (!(await store.isWanted(transaction, each))) stored.push('unwanted');
      // A stored transaction is sent for as long as it takes: it would charge its payer whenever the key is filled.
      else if (spareWei !== null && costsWei > spareWei) stored.push('unpaid');
      else {
        const signed: Signed = { nonce: nextNonce, ...(await this.sign(each, nextNonce, fees)) };
        added.push({ ...each, ...signed });
        stored.push(signed);
        taken.add(each.id);
        nextNonce += 1n;
        if (spareWei !== null) spareWei -= costsWei;
      }
    }
    await store.insert(transaction, this.address, { added, nextNonce, maxFeeWei: fees.maxFeePerGas });
    return { stored, nextNonce };
  }

  /** The wei that this key holds beyond what its pending transactions may cost; null: practically unlimited, or unknown. */
  async #spareWei(transaction: Transaction, { fees, holdsWei }: Standing): Promise<bigint | null> {
    const mostAtOnceWei = BigInt(2 * MAX_WAITING) * MAX_GAS * fees.maxFeePerGas;
    if (holdsWei === null || holdsWei >= mostAtOnceWei) return null;
    return holdsWei - (await this.#parts.store.promisedWei(transaction, this.address));
  }
}

function isFresh({ atMs }: { atMs: number }): boolean {
  return performance.now() - atMs < STANDING_FRESH_MS;
}
