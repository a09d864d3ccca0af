import { setTimeout as sleep } from 'node:timers/promises';

/** Thrown when more work is waiting than may wait. Nothing was begun. */
export class QueueFull extends Error {
  constructor() {
    super('too much work is waiting for the database');
    this.name = 'QueueFull';
  }
}

interface Waiting<Work, Result> {
  work: Work;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

export interface GroupCommitOptions<Work, Result> {
  /** Does a batch in one statement; answers one result for each piece of work, in order. Must be idempotent. */
  flush(batch: readonly Work[]): Promise<readonly Result[]>;
  /** Two pieces with a key in common are never at the database together: the later one waits. */
  keysOf(work: Work): readonly string[];
  maxBatch: number;
  /** Whether the database answered and would not do it, in contrast to not answering: a batch is then taken apart. */
  isRefusal(error: unknown): boolean;
  /** How many batches may be at the database at once. */
  maxFlights: number;
  maxWaiting: number;
  /** How often a failed batch is sent again. It may have been committed, which is why `flush` is idempotent. */
  maxAttempts: number;
  /** How long to wait before attempt 2, 3, …; doubles each time. */
  firstBackoffMs: number;
}

/**
 * Many requests, one statement: what arrives while a batch is at the database goes together in the next one. There is
 * no timer: an idle database is asked at once, a busy one gets larger batches, so the cost of a call falls as load
 * grows.
 */
export class GroupCommit<Work, Result> {
  readonly #options: GroupCommitOptions<Work, Result>;
  #waiting: Waiting<Work, Result>[] = [];
  #flights = 0;
  #scheduled = false;
  /** Keys of the batches that are at the database. */
  readonly #busyKeys = new Set<string>();

  constructor(options: GroupCommitOptions<Work, Result>) {
    this.#options = options;
  }

  /** How many pieces of work wait or are on their way. */
  get depth(): number {
    return this.#waiting.length;
  }

  /**
   * Adds a piece of work to the next batch.
   *
   * @throws QueueFull at once; the database's error when all attempts failed: the outcome is then unknown
   */
  submit(work: Work): Promise<Result> {
    if (this.#waiting.length >= this.#options.maxWaiting) return Promise.reject(new QueueFull());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#flights >= this.#options.maxFlights) return;
    this.#scheduled = true;
    // Requests that arrive in the same turn of the event loop share the first batch.
    setImmediate(() => {
      this.#scheduled = false;
      void this.#fly();
    });
  }

  async #fly(): Promise<void> {
    const batch = this.#takeBatch();
    if (batch.length === 0) return;
    const keys = batch.flatMap(({ work }) => this.#options.keysOf(work));
    for (const key of keys) this.#busyKeys.add(key);
    this.#flights += 1;
    try {
      await this.#deliver(batch);
    } catch (error) {
      // Perhaps a single piece of work is what the database refuses: the others must not fail for it.
      if (batch.length === 1 || !this.#options.isRefusal(error)) for (const item of batch) item.reject(error);
      else for (const item of batch) await this.#deliver([item]).catch(item.reject);
    } finally {
      this.#flights -= 1;
      for (const key of keys) this.#busyKeys.delete(key);
      if (this.#waiting.length > 0) this.#schedule();
    }
  }

  async #deliver(batch: readonly Waiting<Work, Result>[]): Promise<void> {
    const results = await this.#attempt(batch.map(({ work }) => work));
    if (results.length !== batch.length)
      throw new Error('the database answered not as many results as were asked');
    for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
  }

  #takeBatch(): Waiting<Work, Result>[] {
    const { maxBatch, keysOf } = this.#options;
    const taken: Waiting<Work, Result>[] = [];
    const left: Waiting<Work, Result>[] = [];
    const keys = new Set<string>();
    for (const item of this.#waiting) {
      const own = taken.length < maxBatch ? keysOf(item.work) : undefined;
      if (own === undefined || own.some((key) => keys.has(key) || this.#busyKeys.has(key))) left.push(item);
      else {
        for (const key of own) keys.add(key);
        taken.push(item);
      }
    }
    this.#waiting = left;
    return taken;
  }

  async #attempt(batch: readonly Work[]): Promise<readonly Result[]> {
    const { flush, maxAttempts, firstBackoffMs } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        return await flush(batch);
      } catch (error) {
        if (attempt >= maxAttempts) throw error;
        await sleep(firstBackoffMs * 2 ** (attempt - 1));
      }
    }
  }
}
