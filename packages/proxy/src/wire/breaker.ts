/**
 * Whether an upstream is left alone for a while because it keeps failing.
 *
 * The catalogue's sources have cockatiel for that, whose breaker hears one verdict of a call, when its promise settles. Here a call has two: an
 * answer that begins lets others call at once, and may still fail hours later. cockatiel counts an error that it does not handle as
 * a success of the call that tries, though a caller who left has shown nothing; it has further calls wait for that one, and these are refused
 * with the time to come again; and it reads `Date.now()`, where the clock is passed in.
 */

export interface BreakerSettings {
  /** How many failures in a row open it. */
  readonly failures: number;
  /** How long it stays open, before one call may try again. */
  readonly openMs: number;
}

/** How often a caller is told to come back while a single call tries. */
const TRYING_RETRY_MS = 1_000;

/** The leave to make one call. It is given back exactly once; further times do nothing. */
export interface Leave {
  /** The answer to the call has begun, which may take long: the upstream is there, and others may call it again. */
  began(): void;
  /** The call shows that the upstream works. */
  worked(): void;
  /** The call shows that it does not. */
  failed(): void;
  /** The call shows nothing. */
  saidNothing(): void;
}

export class Breaker {
  readonly #settings: BreakerSettings | null;
  readonly #nowMs: () => number;
  #failuresInRow = 0;
  #openedAtMs: number | null = null;
  #isTrying = false;

  /** @param settings null: it never opens */
  constructor(settings: BreakerSettings | null, nowMs: () => number) {
    this.#settings = settings;
    this.#nowMs = nowMs;
  }

  /** When a call may be made again; null: now. */
  get waitMs(): number | null {
    if (this.#settings === null || this.#openedAtMs === null) return null;
    const sinceMs = this.#nowMs() - this.#openedAtMs;
    const { openMs } = this.#settings;
    // A clock that was set back must not leave it open for long.
    if (sinceMs >= 0 && sinceMs < openMs) return openMs - sinceMs;
    return this.#isTrying ? TRYING_RETRY_MS : null;
  }

  /** Asks for leave to make a call. @returns in how many milliseconds to ask again, if there is none now */
  ask(): Leave | number {
    const { waitMs } = this;
    if (waitMs !== null) return waitMs;
    let isTrial = this.#openedAtMs !== null;
    if (isTrial) this.#isTrying = true;
    let isGiven = true;
    const give = (back: () => void) => () => {
      if (!isGiven) return;
      isGiven = false;
      if (isTrial) this.#isTrying = false;
      back();
    };
    const close = () => {
      this.#failuresInRow = 0;
      this.#openedAtMs = null;
    };
    return {
      began: () => {
        if (!isGiven || !isTrial) return;
        isTrial = false;
        this.#isTrying = false;
        close();
      },
      worked: give(close),
      failed: give(() => {
        this.#failuresInRow += 1;
        const isOver = this.#failuresInRow >= (this.#settings?.failures ?? Number.POSITIVE_INFINITY);
        // Calls that began before it opened do not keep it open for longer.
        if (isTrial || (isOver && this.#openedAtMs === null)) this.#openedAtMs = this.#nowMs();
      }),
      saidNothing: give(() => {}),
    };
  }
}
