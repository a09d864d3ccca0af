/**
 * How many processes serve on this database, for what all of them share: what was agreed with a source is agreed with the
 * shop, not with each of its processes. Kept right by the heartbeats of `replicas.ts`.
 */
export interface LiveReplicas {
  /** This process and the others that are alive; 1 until they were looked for. */
  readonly count: number;
}

/** The same, with what the heartbeats write into it. */
export interface LiveReplicasNote extends LiveReplicas {
  counted(count: number): void;
}

/** A process by itself, such as a command: it shares with nobody. */
export const ALONE: LiveReplicas = { count: 1 };

export function createLiveReplicas(): LiveReplicasNote {
  let count = 1;
  return {
    get count() {
      return count;
    },
    counted(alive) {
      count = Math.max(1, alive);
    },
  };
}
