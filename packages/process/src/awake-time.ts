/**
 * Time in which this process ran. Who was stopped, or slept with the machine, has not waited for anybody meanwhile, and
 * those that it waits for have mostly stood still with it.
 */
const LOOKED_EVERY_MS = 250;
/** A busy machine keeps a process waiting as long as that. In what is longer, it did not run. */
const LONGEST_MS = 2_000;

export interface AwakeTime {
  /** How much has passed. */
  passedMs(): number;
  /** Ends the measuring, which is for as long as somebody waits. */
  stop(): void;
}

/**
 * Measures from now on.
 *
 * @param nowMs a clock that goes on while the process stands still
 * @param longestMs the most that is counted between two looks
 */
export function measureAwake(nowMs: () => number, longestMs = LONGEST_MS): AwakeTime {
  let lookedAtMs = nowMs();
  let passedMs = 0;
  const look = () => {
    const atMs = nowMs();
    passedMs += Math.min(atMs - lookedAtMs, longestMs);
    lookedAtMs = atMs;
  };
  const looking = setInterval(look, LOOKED_EVERY_MS);
  looking.unref();
  return {
    passedMs() {
      look();
      return passedMs;
    },
    stop: () => clearInterval(looking),
  };
}
