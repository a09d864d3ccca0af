/** When the database last stopped answering, for the log and the metrics. One episode is told once. */
export interface Silence {
  /** Whether a query's deadline has passed since the database was last heard. */
  readonly isSilent: boolean;
  /** How often the database fell silent since the start. */
  readonly episodes: number;
  /** Calls `listener` once when an episode begins (`true`) and once when it ends (`false`). */
  onChange(listener: (silent: boolean) => void): void;
  /** A query's deadline passed, and nothing was heard meanwhile. */
  fellSilent(): void;
  /** Bytes came from the database. Called for every chunk, so it must cost nothing. */
  heard(): void;
}

export function createSilence(): Silence {
  const listeners: ((silent: boolean) => void)[] = [];
  let isSilent = false;
  let episodes = 0;
  function change(to: boolean): void {
    isSilent = to;
    for (const listener of listeners) listener(to);
  }
  return {
    get isSilent() {
      return isSilent;
    },
    get episodes() {
      return episodes;
    },
    onChange: (listener) => void listeners.push(listener),
    fellSilent() {
      if (isSilent) return;
      episodes += 1;
      change(true);
    },
    heard() {
      if (isSilent) change(false);
    },
  };
}
