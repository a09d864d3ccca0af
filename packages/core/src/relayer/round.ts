/**
 * A round over everything that is pending: what was stored and never sent is sent, what waits too long gets higher fees, what
 * would only fail by now is replaced by a transfer of nothing, and nonces that the chain forgot are filled again.
 */
import { parseTransaction } from 'viem';
import type { EvmFees } from './evm-gas.ts';
import type { KeyQueue } from './key-queue.ts';
import { inLanes } from './lanes.ts';
import type { EvmNode } from './node.ts';
import type { StoredRow, TransactionStore } from './store.ts';

/** The gas that every transaction uses. */
export const LEAST_GAS = 21_000n;
/** How long a transaction waits before it is sent again. */
const RESEND_AFTER_MS = 5_000;
/** When a transaction of a key that we do not have is looked at: whoever has the key, and can do more, was there before. */
const FOREIGN_AFTER_MS = 120_000;
/** How long a transaction waits before its fees are raised. */
const BUMP_AFTER_MS = 30_000;
/** Fees are never raised above so many times what the chain asks now. */
const MAX_FEE_FACTOR = 10n;
/**
 * How long a nonce may be used with none of our transactions found. One node may know of a block and another not yet, and
 * what is given up too early would be paid a second time. There is no hurry: nothing waits behind a used nonce.
 */
const GIVE_UP_AFTER_MS = 600_000;
/** How many nonces are filled in one round after the chain forgot them. */
const MAX_FORGOTTEN = 200;
const BATCH = 50;
const MAX_BATCHES = 10;
const AT_ONCE = 8;
/** After this a round begins with nothing more: a node that is silent about some must not keep the rest waiting for good. */
const ROUND_MS = 10_000;

export interface RoundParts {
  store: TransactionStore;
  node: EvmNode;
  queues: readonly KeyQueue[];
  currentFees(): Promise<EvmFees>;
  nowMs(): number;
}

export class Round {
  readonly #parts: RoundParts;
  readonly #untilMs = performance.now() + ROUND_MS;

  constructor(parts: RoundParts) {
    this.#parts = parts;
  }

  /** @throws the first failure, after the others had their turn */
  async run(): Promise<void> {
    const { addresses, failures } = await this.#resumeDue();
    const queues = this.#parts.queues.filter(({ address }) => addresses.has(address));
    failures.push(...(await this.#inLanes(queues, (queue) => this.#fillForgotten(queue))));
    const [failure] = failures;
    if (failure !== undefined) throw failure;
  }

  /** @returns whose transactions were looked at, and why some could not be */
  async #resumeDue(): Promise<{ addresses: Set<string>; failures: unknown[] }> {
    const { store, queues } = this.#parts;
    const ours = queues.map(({ address }) => address);
    const waited = { oursMs: RESEND_AFTER_MS, othersMs: FOREIGN_AFTER_MS };
    const addresses = new Set<string>();
    const failures: unknown[] = [];
    for (let batch = 0; batch < MAX_BATCHES && !this.#isOver; batch++) {
      const due = await store.takeDue(ours, waited, BATCH);
      for (const { address } of due) addresses.add(address);
      const lowestFirst = due.toSorted((a, b) => Number(a.nonce - b.nonce));
      failures.push(...(await this.#inLanes(lowestFirst, (row) => this.#resume(row))));
      if (due.length < BATCH) break;
    }
    return { addresses, failures };
  }

  async #resume(row: StoredRow): Promise<void> {
    const { store, node, queues } = this.#parts;
    const mined = await node.receiptOf([...row.hashes, ...(row.filler === null ? [] : [row.filler])]);
    if (mined !== null) return store.noteMined([{ id: row.id, mined }]);
    const queue = queues.find(({ address }) => address === row.address);
    if (queue !== undefined) await this.#sendAgain(queue, row);
  }

  async #sendAgain(queue: KeyQueue, row: StoredRow): Promise<void> {
    const { node, nowMs } = this.#parts;
    const ageMs = nowMs() - row.created_at.getTime();
    if (ageMs < BUMP_AFTER_MS) return node.send(row.raw);
    const used = await node.noncesUsed(queue.address, 'latest');
    if (used > row.nonce) return this.#endIfLost(row, ageMs);
    return this.#raise(queue, row);
  }

  /** Ends a transaction whose nonce is used by somebody else's, unless one of ours is found after all. */
  async #endIfLost(row: StoredRow, ageMs: number): Promise<void> {
    const { store, node } = this.#parts;
    if (ageMs >= GIVE_UP_AFTER_MS && (await node.receiptOf(row.hashes)) === null) await store.giveUp(row);
  }

  /** Signs a transaction anew with higher fees, as a transfer of nothing where it would only fail by now. */
  async #raise(queue: KeyQueue, row: StoredRow): Promise<void> {
    const { store, node, currentFees } = this.#parts;
    const call = { from: queue.address, to: row.to_address, data: row.data, gas: row.gas_limit };
    const isFiller = await node.wouldRevert(call);
    const current = await currentFees();
    const fees = raisedFees(row, current);
    // Where the fee is not what holds it up, more would not help, and could not be paid in the end.
    const mostWei = row.max_cost_wei === null ? null : BigInt(row.max_cost_wei);
    const isTooDear = mostWei !== null && fees.maxFeePerGas * row.gas_limit > mostWei;
    if (isTooDear || fees.maxFeePerGas > current.maxFeePerGas * MAX_FEE_FACTOR) return node.send(row.raw);
    const next = isFiller
      ? { to: queue.address, data: '0x' as const, gasLimit: LEAST_GAS }
      : { to: row.to_address, data: row.data, gasLimit: row.gas_limit };
    const signed = await queue.sign(next, row.nonce, fees);
    // Stored before it is sent: a hash that nobody wrote down could not be found again.
    await store.replace(row, { ...signed, maxFeeWei: fees.maxFeePerGas, isFiller });
    await node.send(signed.raw);
  }

  /** Sends what the chain forgot: a chain that was put back takes these nonces once more, and the pending ones wait for them. */
  async #fillForgotten({ address }: KeyQueue): Promise<void> {
    const { store, node } = this.#parts;
    const used = await node.noncesUsed(address, 'latest');
    for (const raw of await store.forgotten(address, used, MAX_FORGOTTEN)) {
      if (this.#isOver) return;
      await node.send(raw);
    }
  }

  get #isOver(): boolean {
    return performance.now() >= this.#untilMs;
  }

  #inLanes<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>): Promise<unknown[]> {
    return inLanes(items, { atOnce: AT_ONCE, untilMs: this.#untilMs }, work);
  }
}

/** A quarter more than what was signed last, of which nodes ask for a tenth, and no less than what the chain asks now. */
function raisedFees({ raw }: StoredRow, current: EvmFees): EvmFees {
  const last = parseTransaction(raw);
  const higher = (fee: bigint | undefined, asked: bigint) => {
    const raised = ((fee ?? 0n) * 5n) / 4n + 1n;
    return raised > asked ? raised : asked;
  };
  return {
    maxFeePerGas: higher(last.maxFeePerGas, current.maxFeePerGas),
    maxPriorityFeePerGas: higher(last.maxPriorityFeePerGas, current.maxPriorityFeePerGas),
  };
}
