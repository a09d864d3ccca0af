/**
 * The connections to one upstream, shared by everybody whose calls need it. A caller's share is a part of the places,
 * so that one with many slow calls does not turn the upstream off for all others: a quarter, rounded up, unless told otherwise.
 *
 * Beyond its share a caller is lent connections that are no places: there are a quarter as many of them again, and they
 * are lent only while everybody else who waits has its share. However long a call beyond its caller's share takes, it
 * keeps no place from anybody.
 */

/** None of the connections to an upstream became free in time. The upstream was not asked. */
export class NoPlace extends Error {}

/** On whose behalf an upstream is asked. */
export interface Visitor {
  /** The caller who caused the work; the shares of the places are counted by it. */
  caller: string;
  /** The call that it belongs to. */
  callId: string;
}

interface Waiting {
  visitor: Visitor;
  let(leave: () => void): void;
  /** Begins the wait anew: the call that it belongs to is making progress. */
  refresh(): void;
}

/** How long a call waits for its next place. */
const PATIENCE_MS = 2_000;
const MAX_WAITING = 2_000;
const MAX_WAITING_OF_ONE = MAX_WAITING / 4;

export interface PlacesSettings {
  /** The places that one caller may hold. */
  share?: number;
  /** The connections that are lent beyond the shares. */
  lent?: number;
  /** The longest that a call waits for its next place; null: as long as it may wait at all. */
  patienceMs?: number | null;
  mostWaiting?: number;
  mostWaitingOfOne?: number;
}

/**
 * The places of one upstream.
 *
 * @example
 * ```ts
 * import { FairPlaces } from '@farebox/core/service/fair-places';
 *
 * const places = new FairPlaces(4, { share: 3, lent: 0 });
 * const leave = await places.enter({ caller: 'account:1015', callId: 'one' }, { timeoutMs: 1_000 });
 * places.taken; // 1
 * leave();
 * ```
 */
export class FairPlaces {
  readonly #most: number;
  readonly #settings: Required<PlacesSettings>;
  /** The shares of one caller, and what all together are lent beyond it. */
  readonly #share: number;
  readonly #held = new Map<string, number>();
  /** Within the shares of their callers. */
  #taken = 0;
  #lent = 0;
  /** In the order in which they came. */
  readonly #waiting: Waiting[] = [];

  constructor(most: number, settings: PlacesSettings = {}) {
    this.#most = most;
    const share = settings.share ?? Math.ceil(most / 4);
    this.#share = share;
    const usual = { share, lent: share, patienceMs: PATIENCE_MS, mostWaiting: MAX_WAITING };
    this.#settings = Object.assign(usual, { mostWaitingOfOne: MAX_WAITING_OF_ONE }, settings);
  }

  /** How many connections there have to be, so that whoever is let in has one. */
  get connections(): number {
    return this.#most + this.#settings.lent;
  }

  /** How many are held, those that are lent among them. */
  get taken(): number {
    return this.#taken + this.#lent;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Takes a place, and waits for one while there is none. A call of many requests may wait longer than its patience, as
   * long as some of them get a place within it.
   *
   * @param options.timeoutMs the longest wait of any one request
   * @returns a function that gives the place back; only its first call counts
   * @throws NoPlace when there is none within 2 s, or when too many wait; the reason of the signal when it is aborted
   */
  async enter(
    visitor: Visitor,
    options: { timeoutMs: number; signal?: AbortSignal | undefined },
  ): Promise<() => void> {
    options.signal?.throwIfAborted();
    if (this.#mayTake(visitor, this.#mayLend())) return this.#take(visitor);
    const ofOne = this.#waiting.filter(({ visitor: { caller } }) => caller === visitor.caller).length;
    const { mostWaiting, mostWaitingOfOne } = this.#settings;
    if (this.#waiting.length >= mostWaiting || ofOne >= mostWaitingOfOne) throw new NoPlace();
    return this.#wait(visitor, options);
  }

  #wait(
    visitor: Visitor,
    { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
  ): Promise<() => void> {
    return new Promise((resolve, reject) => {
      // Who gave up no longer keeps others to their shares.
      const giveUp = (reason: unknown) => {
        end(() => reject(reason));
        this.#letNext();
      };
      const refuse = () => giveUp(new NoPlace());
      const aborted = () => giveUp(signal?.reason);
      const patienceMs = this.#settings.patienceMs ?? timeoutMs;
      let patience = setTimeout(refuse, patienceMs);
      const longest = setTimeout(refuse, timeoutMs);
      const waiting: Waiting = {
        visitor,
        let: (leave) => end(() => resolve(leave)),
        refresh() {
          clearTimeout(patience);
          patience = setTimeout(refuse, patienceMs);
        },
      };
      const end = (tell: () => void) => {
        clearTimeout(patience);
        clearTimeout(longest);
        signal?.removeEventListener('abort', aborted);
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        tell();
      };
      signal?.addEventListener('abort', aborted, { once: true });
      this.#waiting.push(waiting);
    });
  }

  /** @param mayLend as `#mayLend` says */
  #mayTake({ caller }: Visitor, mayLend: boolean): boolean {
    return this.#heldBy(caller) < this.#share ? this.#taken < this.#most : mayLend;
  }

  /** Whether there is something to lend, and nobody waits who has less than its share. */
  #mayLend(): boolean {
    return (
      this.#lent < this.#settings.lent &&
      this.#waiting.every(({ visitor: { caller } }) => this.#heldBy(caller) >= this.#share)
    );
  }

  #heldBy(caller: string): number {
    return this.#held.get(caller) ?? 0;
  }

  #take({ caller }: Visitor): () => void {
    this.#count(caller, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#count(caller, -1);
      this.#letNext();
    };
  }

  /** Notes that a caller has one more, or one fewer. What it has beyond its share is the first to be given back. */
  #count(caller: string, change: 1 | -1): void {
    const before = this.#heldBy(caller);
    const held = before + change;
    if (held === 0) this.#held.delete(caller);
    else this.#held.set(caller, held);
    if (Math.max(before, held) > this.#share) this.#lent += change;
    else this.#taken += change;
  }

  /** Gives free places to those who hold the fewest; among equals to who came first. */
  #letNext(): void {
    for (;;) {
      let next: Waiting | undefined;
      const mayLend = this.#mayLend();
      for (const waiting of this.#waiting) {
        if (!this.#mayTake(waiting.visitor, mayLend)) continue;
        if (next === undefined || this.#heldBy(waiting.visitor.caller) < this.#heldBy(next.visitor.caller))
          next = waiting;
      }
      if (next === undefined) return;
      const { callId } = next.visitor;
      next.let(this.#take(next.visitor));
      for (const waiting of this.#waiting) if (waiting.visitor.callId === callId) waiting.refresh();
    }
  }
}
