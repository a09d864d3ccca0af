/**
 * Sends transactions from keys of our own, each exactly once:
 *
 *   one of this purpose there already ─► waited for
 *   none ─► gas measured ─► stored signed with its nonce (`key-queue.ts`) ─► sent ─► waited for ─► noted as mined
 *
 * Whatever was stored is sent again, by any process that has its key, until a block holds it: `round.ts`.
 */
import type { Rpc } from '../chain-rpc/json-rpc.ts';
import type { Database } from '../db/connection.ts';
import { type EvmFees, feesOf, weiOf } from './evm-gas.ts';
import type { GasTank } from './gas-tanks.ts';
import { KeyQueue, MAX_GAS, type Stored } from './key-queue.ts';
import { EvmNode } from './node.ts';
import { type MinedTransaction, quantity } from './node-reply.ts';
import { LEAST_GAS, Round } from './round.ts';
import type { EvmKey } from './sign.ts';
import { type Mined, STATES, TransactionStore } from './store.ts';
import { type Hex, OutOfGas, type TransactionToSend } from './to-send.ts';

export interface Relayer {
  readonly addresses: readonly Hex[];
  /** The address of the key that would pay for the next transaction, as far as that is known. */
  readonly payer: Hex | undefined;
  /** The fees that a transaction is sent with now. @throws when the node does not answer */
  fees(): Promise<EvmFees>;
  /** Begins to ask the node what a transaction needs, for who will send one in a moment. Never throws. */
  prepare(): void;
  /**
   * Sends a transaction and waits until it is mined.
   *
   * @returns null when the time was over first: it is still on its way, and the same id finds it again
   * @throws RpcRefusal when the node says that it would fail, OutOfGas when no key can pay, NotWanted when what it depends on is
   *   not there; nothing was sent then
   */
  send(transaction: TransactionToSend, timeoutMs: number): Promise<MinedTransaction | null>;
  /**
   * One round over what is pending: sends it again, raises fees, fills nonces.
   *
   * @returns how many are pending
   * @throws the first failure, after the others had their turn
   */
  resume(): Promise<number>;
}

const FIRST_POLL_MS = 20;
const LAST_POLL_MS = 500;
/** Transactions that were mined are noted together, this long after the first of them. */
const NOTE_AFTER_MS = 100;

interface RelayerParts {
  sql: Database;
  rpc: Rpc;
  /** CAIP-2. */
  network: string;
  chainId: number;
  /** They are used side by side. */
  keys: readonly EvmKey[];
  /** The gas of these keys: one that ran dry is passed by. */
  tank: GasTank;
  nowMs(): number;
}

/** A relayer for one chain. */
export function createRelayer(parts: RelayerParts): Relayer {
  return new ChainRelayer(parts);
}

class ChainRelayer implements Relayer {
  readonly #network: string;
  readonly #tank: GasTank;
  readonly #nowMs: () => number;
  readonly #currentFees: () => Promise<EvmFees>;
  readonly #node: EvmNode;
  readonly #store: TransactionStore;
  readonly #queues: readonly KeyQueue[];
  /** Mined, and not yet noted as such. */
  #unnoted: Mined[] = [];

  constructor(parts: RelayerParts) {
    this.#network = parts.network;
    this.#tank = parts.tank;
    this.#nowMs = parts.nowMs;
    this.#currentFees = feesOf(parts.rpc, parts.nowMs);
    this.#node = new EvmNode(parts.rpc);
    this.#store = new TransactionStore(parts);
    const shared = { ...parts, store: this.#store, node: this.#node, currentFees: this.#currentFees };
    this.#queues = parts.keys.map((key) => new KeyQueue(shared, key));
  }

  get addresses(): readonly Hex[] {
    return this.#queues.map(({ address }) => address);
  }

  get payer(): Hex | undefined {
    return this.#inOrder()[0]?.address;
  }

  async fees(): Promise<EvmFees> {
    const { maxFeePerGas, maxPriorityFeePerGas } = await this.#currentFees();
    return { maxFeePerGas, maxPriorityFeePerGas };
  }

  prepare(): void {
    this.#inOrder()[0]?.prepare();
  }

  async send(transaction: TransactionToSend, timeoutMs: number): Promise<MinedTransaction | null> {
    const untilMs = performance.now() + timeoutMs;
    const { id } = transaction;
    if (this.#unnoted.some((each) => each.id === id)) await this.#note();
    if (transaction.again !== true) {
      const [earlier] = await this.#store.ofPurpose(id);
      if (earlier?.state === STATES.pending || earlier?.state === STATES.mined)
        return this.#waitFor(id, untilMs);
    }
    const stored = await this.#storeWithAnyKey(transaction);
    const mined = stored === 'taken' ? null : await this.#node.sendAndWait(stored.raw);
    if (mined === null) return this.#waitFor(id, untilMs);
    // One that failed may be asked for again at once, and must not be taken for one that is on its way.
    if (mined.status === 'success') this.#noteLater({ id, mined });
    else await this.#store.noteMined([{ id, mined }]);
    return mined;
  }

  async resume(): Promise<number> {
    await this.#note();
    await new Round({
      store: this.#store,
      node: this.#node,
      queues: this.#queues,
      currentFees: this.#currentFees,
      nowMs: this.#nowMs,
    }).run();
    return this.#store.countPending();
  }

  /**
   * Stores a transaction signed by the first key that can pay for it.
   *
   * @throws RpcRefusal when it would fail; OutOfGas when no key can pay
   */
  async #storeWithAnyKey(transaction: TransactionToSend): Promise<Stored> {
    if (this.#queues.length === 0) throw new Error(`no relayer key for ${this.#network}`);
    let tooMany: Error | null = null;
    for (const queue of this.#inOrder()) {
      if (queue.isFull) {
        tooMany = new Error('too many transactions wait for this key');
        continue;
      }
      try {
        const gasLimit = transaction.gasLimit ?? (await this.#measuredGas(queue.address, transaction));
        return await queue.store({ ...transaction, gasLimit });
      } catch (error) {
        if (!(error instanceof OutOfGas)) throw error;
      }
    }
    throw tooMany ?? new OutOfGas(this.#network);
  }

  /** The keys in the order in which they are asked: those that can pay first, and of these the least busy ones. */
  #inOrder(): KeyQueue[] {
    return this.#queues
      .map((queue) => ({ queue, last: this.#tank.canPay(queue.address) ? 0 : 1, chance: Math.random() }))
      .toSorted((a, b) => a.last - b.last || a.queue.length - b.queue.length || a.chance - b.chance)
      .map(({ queue }) => queue);
  }

  /**
   * A quarter more gas than the node measures, as far as that may be paid.
   *
   * @throws RpcRefusal when the transaction would fail, or take more gas than it may cost; OutOfGas when this key cannot pay
   */
  async #measuredGas(from: Hex, { to, data, maxCostWei }: TransactionToSend): Promise<bigint> {
    const { rpc } = this.#node;
    const { maxFeePerGas, maxPriorityFeePerGas } = await this.#currentFees();
    const affordable = maxCostWei === undefined || maxFeePerGas === 0n ? MAX_GAS : maxCostWei / maxFeePerGas;
    const most = affordable < MAX_GAS ? affordable : MAX_GAS;
    // Code that others gave us to run sees who pays for its gas, and how much: it is tried as it will be sent.
    const fees =
      maxCostWei === undefined
        ? {}
        : { maxFeePerGas: hexOf(maxFeePerGas), maxPriorityFeePerGas: hexOf(maxPriorityFeePerGas) };
    const estimate = rpc.call('eth_estimateGas', [{ from, to, data, gas: hexOf(most), ...fees }]);
    const needed = await estimate.catch(async (error: unknown) => {
      // Anything fails that is tried as a key without gas would send it.
      const holds = await weiOf(rpc, from).catch(() => null);
      if (holds === null || holds >= LEAST_GAS * maxFeePerGas) throw error;
      this.#tank.saw(from, holds);
      throw new OutOfGas(this.#network);
    });
    const given = (quantity(needed) * 5n) / 4n;
    return given < most ? given : most;
  }

  /** Waits for whatever transaction of this purpose is pending. */
  async #waitFor(id: string, untilMs: number): Promise<MinedTransaction | null> {
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, LAST_POLL_MS)) {
      const [row] = await this.#store.ofPurpose(id);
      const mined = row === undefined ? null : await this.#node.receiptOf(row.hashes).catch(() => null);
      if (mined !== null) {
        await this.#store.noteMined([{ id, mined }]);
        return mined;
      }
      if (row === undefined || row.state === STATES.givenUp || performance.now() >= untilMs) return null;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  /** Notes a mined transaction a little later; nobody waits, and `resume` notes it when this process does not. */
  #noteLater(mined: Mined): void {
    this.#unnoted.push(mined);
    if (this.#unnoted.length === 1) setTimeout(() => void this.#note().catch(() => {}), NOTE_AFTER_MS);
  }

  async #note(): Promise<void> {
    const batch = this.#unnoted;
    this.#unnoted = [];
    if (batch.length > 0) await this.#store.noteMined(batch);
  }
}

function hexOf(value: bigint): Hex {
  return `0x${value.toString(16)}`;
}
