/** The newest requests of the API, for tests that count attempts: no parameters, and keys only as digests. */
const MAX_SEEN = 500;

export interface SeenRequest {
  method: string;
  path: string;
  /** Null when the connection was torn down or nothing was answered. */
  status: number | null;
  /** SHA-256 of the idempotency key: two that are equal had the same. */
  keyDigest: string | null;
  replayed: boolean;
}

/** Opens an empty list; it keeps the newest 500 and counts all. */
export function openRequests() {
  let seen: SeenRequest[] = [];
  let total = 0;
  return {
    add(request: SeenRequest): void {
      total += 1;
      seen.push(request);
      if (seen.length > MAX_SEEN) seen.shift();
    },
    all: (): readonly SeenRequest[] => seen,
    total: () => total,
    clear(): void {
      seen = [];
      total = 0;
    },
  };
}
