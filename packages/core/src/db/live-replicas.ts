/**
 * How many processes serve on this database, for what all of them share: what was agreed with a source is agreed with the
 * shop, not with each of its processes. Kept right by the heartbeats of `replicas.ts`.
 */
export interface LiveReplicas {
  /** This process and the others that are alive; 1 until they were looked for. */
  readonly count: number;
  /**
   * How long before this process the last one lived that has ended since: what that may have used up just before its end has
   * come back in part by then. Infinite when none has ended within an hour; null until it is known whether those that the
   * database names are alive.
   */
  readonly restedMs: number | null;
}

/** The same, with what the heartbeats write into it. */
export interface LiveReplicasNote extends LiveReplicas {
  counted(count: number): void;
  rested(restedMs: number): void;
}

/** A process by itself, such as a command: it shares with nobody, and nobody was there before it. */
export const ALONE: LiveReplicas = { count: 1, restedMs: Number.POSITIVE_INFINITY };

export function createLiveReplicas(): LiveReplicasNote {
  let count = 1;
  let restedMs: number | null = null;
  return {
    get count() {
      return count;
    },
    get restedMs() {
      return restedMs;
    },
    counted(alive) {
      count = Math.max(1, alive);
    },
    rested(known) {
      restedMs = Math.max(0, known);
    },
  };
}
