/**
 * When a sandbox chain makes an empty block. Wallets rely on further blocks: viem, for example, overlooks the block of
 * a transaction if it is announced while viem searches the previous block for a replacement, and asks for the receipt
 * again only with the next block.
 */

/** How old the newest block becomes before another follows it. */
export interface Pace {
  /** For a while after a transaction. */
  busyMs: number;
  /** Else. Each block costs the node the memory of a state, and the saved state 0.2 kB. */
  quietMs: number;
}

/** How long after a transaction a chain is busy: for five blocks of Base, which most wallets wait for at most. */
const BUSY_FOR_MS = 10_000;

export class BlockPace {
  readonly #pace: Pace;
  #newest: number | null = null;
  #newestSinceMs = 0;
  #transactionAtMs = Number.NEGATIVE_INFINITY;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** The newest block that was seen; null before the first. */
  get newest(): number | null {
    return this.#newest;
  }

  /**
   * Notes a new block.
   *
   * @param isEmpty whether no transaction is in it
   */
  saw(block: number, isEmpty: boolean, nowMs: number): void {
    // More than one block since the last look means that something else made them.
    const skipped = this.#newest !== null && block !== this.#newest + 1;
    if (!isEmpty || skipped) this.#transactionAtMs = nowMs;
    this.#newest = block;
    this.#newestSinceMs = nowMs;
  }

  /** How old the newest block may become now. */
  intervalMs(nowMs: number): number {
    return nowMs - this.#transactionAtMs < BUSY_FOR_MS ? this.#pace.busyMs : this.#pace.quietMs;
  }

  /** Whether it is time for another block. */
  isDue(nowMs: number): boolean {
    return nowMs - this.#newestSinceMs >= this.intervalMs(nowMs);
  }
}
