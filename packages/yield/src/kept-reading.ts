/** A value that costs a look at a chain, kept for whoever takes one of its age. */

export interface Kept<Value> {
  value: Value;
  /** HIT: kept and fresh. STALE: kept, and a new one is being read. MISS: read for this asker. */
  cache: 'HIT' | 'STALE' | 'MISS';
  ageMs: number;
}

export interface Bounds {
  /** So old it is as good as a new one. */
  freshMs: number;
  /** So old it may be told while a new one is read; left out: whoever asks waits for the new one. */
  staleMs?: number;
}

/**
 * Keeps what is read, and reads it once for all who want it at a time.
 *
 * @param retryMs how soon after a failure it is read again: until then those who wait get the same failure
 * @returns throws what `read` throws, once nothing is kept that is young enough
 */
export function keptReading<Value>(
  read: () => Promise<Value>,
  { retryMs = 0, nowMs }: { retryMs?: number; nowMs(): number },
): (bounds: Bounds) => Promise<Kept<Value>> {
  let kept: { value: Value; atMs: number } | null = null;
  let failed: { error: unknown; atMs: number } | null = null;
  let reading: Promise<Value> | null = null;

  async function readOnce(): Promise<Value> {
    if (failed !== null && nowMs() - failed.atMs < retryMs) throw failed.error;
    reading ??= read()
      .then(
        (value) => {
          kept = { value, atMs: nowMs() };
          failed = null;
          return value;
        },
        (error: unknown) => {
          failed = { error, atMs: nowMs() };
          throw error;
        },
      )
      .finally(() => {
        reading = null;
      });
    return reading;
  }

  return async ({ freshMs, staleMs = 0 }) => {
    if (kept !== null) {
      const ageMs = nowMs() - kept.atMs;
      if (ageMs < freshMs) return { value: kept.value, cache: 'HIT', ageMs };
      if (ageMs < staleMs) {
        // Whoever asks later is told of the failure, if there is nothing younger by then.
        readOnce().catch(() => {});
        return { value: kept.value, cache: 'STALE', ageMs };
      }
    }
    return { value: await readOnce(), cache: 'MISS', ageMs: 0 };
  };
}
