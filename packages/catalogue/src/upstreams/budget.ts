/**
 * A token bucket that refills evenly. `take` returns how long to wait for a token: 0, or more. Up to `patienceMs` the
 * token is taken in advance, and belongs to whoever waits.
 */
export class Budget {
  readonly #perMs: number;
  readonly #capacity: number;
  readonly #nowMs: () => number;
  #tokens: number;
  #atMs: number;

  constructor(perMinute: number, capacity: number, nowMs: () => number) {
    this.#perMs = perMinute / 60_000;
    this.#capacity = capacity;
    this.#nowMs = nowMs;
    this.#tokens = this.#capacity;
    this.#atMs = nowMs();
  }

  take(patienceMs: number, count = 1): number {
    const now = this.#nowMs();
    this.#tokens = Math.min(this.#capacity, this.#tokens + (now - this.#atMs) * this.#perMs);
    this.#atMs = now;
    const waitMs = this.#tokens < count ? Math.ceil((count - this.#tokens) / this.#perMs) : 0;
    if (waitMs <= patienceMs) this.#tokens -= count;
    return waitMs;
  }
}
