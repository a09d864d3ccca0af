/** When the database last stopped answering, for the log and the metrics. One episode is told once. */
export interface Silence {
  /** Whether a query's deadline has passed since the database was last heard. */
  readonly isSilent: boolean;
  /** How often the database fell silent since the start. */
  readonly episodes: number;
  /** Calls `listener` once when an episode begins (`true`) and once when it has ended for some seconds (`false`). */
  onChange(listener: (silent: boolean) => void): void;
  /** A query's deadline passed, and nothing was heard meanwhile. */
  fellSilent(): void;
  /** Bytes came from the database. Called for every chunk, so it must cost nothing. */
  heard(): void;
}

/** Connections fall silent one after another: for so long all of it is one episode. */
const ONE_EPISODE_MS = 5_000;

export function createSilence(): Silence {
  const listeners: ((silent: boolean) => void)[] = [];
  let isSilent = false;
  let fellSilentAtMs = 0;
  /** The last state that the listeners were told. */
  let told = false;
  let episodes = 0;
  function tell(silent: boolean): void {
    told = silent;
    for (const listener of listeners) listener(silent);
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
      isSilent = true;
      fellSilentAtMs = performance.now();
      if (told) return;
      episodes += 1;
      tell(true);
    },
    heard() {
      isSilent = false;
      if (told && performance.now() - fellSilentAtMs >= ONE_EPISODE_MS) tell(false);
    },
  };
}
