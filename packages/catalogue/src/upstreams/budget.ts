import { ALONE, type LiveReplicas } from '@farebox/core/db/live-replicas';

/** How many requests a source may be sent at once: what it declares, or half a minute's worth. */
export function burstOf({ burst }: { burst?: number | undefined }, perMinute: number): number {
  return burst ?? Math.max(5, perMinute / 2);
}

/**
 * A token bucket that refills evenly, and of which each process that serves has an equal share.
 *
 * `take` returns how long to wait for a token: 0, or more. Up to `patienceMs` the token is taken in advance, and belongs to
 * whoever waits.
 */
export class Budget {
  readonly #perMs: number;
  readonly #capacity: number;
  readonly #nowMs: () => number;
  readonly #replicas: LiveReplicas;
  #tokens: number;
  /** Taken, and not come back yet. A share that has grown is filled by and by, and nobody has used what it lacks. */
  #used = 0;
  #atMs: number;

  /** @param perMinute of all processes together, as is the capacity */
  constructor(perMinute: number, capacity: number, nowMs: () => number, replicas: LiveReplicas = ALONE) {
    this.#perMs = perMinute / 60_000;
    this.#capacity = capacity;
    this.#nowMs = nowMs;
    this.#replicas = replicas;
    this.#tokens = capacity;
    this.#atMs = nowMs();
  }

  take(patienceMs: number, count = 1): number {
    const { perMs } = this.#refill();
    const waitMs = this.#tokens < count ? Math.ceil((count - this.#tokens) / perMs) : 0;
    if (waitMs <= patienceMs) this.#use(count);
    return waitMs;
  }

  /** How many tokens were used up and have not come back. */
  missing(): number {
    this.#refill();
    return this.#used;
  }

  /**
   * Takes over from a process that has ended: what it had used up is used up.
   *
   * @param missing tokens that its share lacked
   * @param ageMs how long ago that was; so much has come back since
   */
  inherit(missing: number, ageMs: number): void {
    const { perMs } = this.#refill();
    this.#use(Math.max(0, missing - ageMs * perMs));
  }

  #use(count: number): void {
    this.#tokens -= count;
    this.#used += count;
  }

  /** Adds what has come back until now. */
  #refill(): { perMs: number } {
    const now = this.#nowMs();
    const { count: processes } = this.#replicas;
    const perMs = this.#perMs / processes;
    // Less than one token would be none for ever.
    const capacity = Math.max(1, this.#capacity / processes);
    const cameBack = (now - this.#atMs) * perMs;
    this.#tokens = Math.min(capacity, this.#tokens + cameBack);
    this.#used = Math.max(0, this.#used - cameBack);
    this.#atMs = now;
    return { perMs };
  }
}
