/**
 * The time as the database's clock has it. What one process writes into a row is judged by others, so all of them must
 * mean the same time: each keeps the offset of its machine's clock to the database's.
 */

/** An answer that took longer says too little about when it was given. */
const MOST_ROUND_TRIP_MS = 500;
/** From this offset on the operator is warned. Within it two clocks agree. */
const DRIFTED_MS = 1_000;

export interface DatabaseClock {
  /** Milliseconds since 1970, by the machine's clock until the database's was heard. */
  nowMs(): number;
  /** How far the machine's clock is ahead of the database's, negative while it is behind; null while that is not known. */
  readonly aheadMs: number | null;
  /**
   * Asks the database for its time, and notes it if the answer was quick.
   *
   * @param ask returns the database's `clock_timestamp()` in milliseconds since 1970; null: it was not said
   * @throws what `ask` throws
   */
  measure(ask: () => Promise<number | null>): Promise<void>;
  /**
   * Calls `listener` with `aheadMs` when the clocks no longer agree (`true`), at once if that is so already, and when
   * they do again (`false`).
   */
  onDrift(listener: (drifted: boolean, aheadMs: number) => void): void;
}

/** Whether a clock is so near to the database's that it can be taken for the same. */
export function agrees(aheadMs: number): boolean {
  return Math.abs(aheadMs) <= DRIFTED_MS;
}

/**
 * @param machineMs the machine's clock, in milliseconds since 1970
 * @param stopwatchMs a clock that nobody sets, for how long an answer took
 */
export function createDatabaseClock(
  machineMs: () => number = Date.now,
  stopwatchMs: () => number = () => performance.now(),
): DatabaseClock {
  const listeners: ((drifted: boolean, aheadMs: number) => void)[] = [];
  let aheadMs: number | null = null;
  /** What the listeners were told last. */
  let toldDrifted = false;

  /** The true offset lies between these two, so the known one is moved no further than it must be. */
  function note(leastMs: number, mostMs: number): void {
    const known = aheadMs ?? (leastMs + mostMs) / 2;
    aheadMs = Math.min(Math.max(known, leastMs), mostMs);
    const drifted = !agrees(aheadMs);
    if (drifted === toldDrifted) return;
    toldDrifted = drifted;
    for (const listener of listeners) listener(drifted, aheadMs);
  }

  return {
    nowMs: () => Math.round(machineMs() - (aheadMs ?? 0)),
    get aheadMs() {
      return aheadMs;
    },
    async measure(ask) {
      const askedAtMs = machineMs();
      const startedMs = stopwatchMs();
      const databaseMs = await ask();
      if (databaseMs === null || stopwatchMs() - startedMs >= MOST_ROUND_TRIP_MS) return;
      const answeredAtMs = machineMs();
      // A clock that was set meanwhile says nothing.
      if (answeredAtMs < askedAtMs || answeredAtMs - askedAtMs >= MOST_ROUND_TRIP_MS) return;
      note(askedAtMs - databaseMs, answeredAtMs - databaseMs);
    },
    onDrift(listener) {
      listeners.push(listener);
      if (toldDrifted && aheadMs !== null) listener(true, aheadMs);
    },
  };
}
