/** How many calls are with one upstream at the same time, and how many wait for that, first come, first served. */

/** Somebody who waits for a place. */
interface Waiting {
  taken(leave: () => void): void;
}

export class Places {
  readonly #most: number;
  readonly #mostWaiting: number;
  readonly #waiting = new Set<Waiting>();
  #taken = 0;

  constructor(most: number, mostWaiting: number) {
    this.#most = most;
    this.#mostWaiting = mostWaiting;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Takes a place, or waits for one.
   *
   * @param taken called once with how to leave the place, at once if one is free
   * @returns how to stop waiting; null when nobody more may wait
   */
  take(taken: (leave: () => void) => void): (() => void) | null {
    if (this.#taken < this.#most) {
      this.#taken += 1;
      taken(this.#leave());
      return () => {};
    }
    if (this.#waiting.size >= this.#mostWaiting) return null;
    const waiting = { taken };
    this.#waiting.add(waiting);
    return () => {
      this.#waiting.delete(waiting);
    };
  }

  /** A way out of a place, which goes to the next who waits. */
  #leave(): () => void {
    let isLeft = false;
    return () => {
      if (isLeft) return;
      isLeft = true;
      const [next] = this.#waiting;
      if (next === undefined) {
        this.#taken -= 1;
        return;
      }
      this.#waiting.delete(next);
      next.taken(this.#leave());
    };
  }
}
