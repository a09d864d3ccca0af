/**
 * Decides when a sandbox chain makes an empty block. Wallets rely on further blocks. For example, viem overlooks the block
 * of a transaction if the block is announced while viem searches the previous block for a replacement. viem asks for the
 * receipt again only when the next block comes.
 */

/** How old the newest block may become before an empty block follows it. */
export interface Pace {
  /** For the next `BUSY_FOR_MS` after a transaction. */
  busyMs: number;
  /** At all other times. Each block costs the node the memory of a state, and adds 0.2 kB to the saved state. */
  quietMs: number;
}

/** How long a chain is busy after a transaction: for five blocks of Base. Most wallets wait for at most that many. */
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
    // More than one new block since the last look: something other than this pace made them, such as a transaction.
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
