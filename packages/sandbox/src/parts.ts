/** Starts the parts of a world at the same time, so that a start takes as long as the slowest of them and not as all together. */
import { StartError } from '../../process/src/start-error.ts';

export interface WorldPart {
  name: string;
  url: string;
  /** What it stands in for. */
  standsFor: string;
}

interface Startable {
  url: string;
  stop(): Promise<void>;
}

export interface Parts {
  /**
   * Starts one. Those that have begun stand in the list in the order in which they were named here.
   *
   * @returns rejects with a StartError when it does not start
   */
  begin<Part extends Startable>(name: string, standsFor: string, start: () => Promise<Part>): Promise<Part>;
  /**
   * Waits for all that were named until now, also when one has failed: what is still starting could not be stopped.
   *
   * @throws StartError of the first that did not start; the others are stopped then
   */
  allBegun(): Promise<readonly WorldPart[]>;
  /** Stops them, the last to begin first. */
  stop(): Promise<void>;
}

export function openParts(): Parts {
  const starting: Promise<WorldPart>[] = [];
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const end of stops.splice(0).toReversed()) await end();
  };
  return {
    begin(name, standsFor, start) {
      const begun = Promise.resolve()
        .then(start)
        .then(
          (part) => {
            stops.push(() => part.stop());
            return part;
          },
          (cause: unknown) => {
            if (cause instanceof StartError) throw cause;
            const why = cause instanceof Error ? cause.message : String(cause);
            throw new StartError(`the sandbox's ${name} did not start: ${why}`, { cause });
          },
        );
      const listed = begun.then(({ url }) => ({ name, url, standsFor }));
      // Whoever waits for all of them is told.
      listed.catch(() => undefined);
      starting.push(listed);
      return begun;
    },
    async allBegun() {
      const begun = await Promise.allSettled(starting);
      const failed = begun.find((each) => each.status === 'rejected');
      if (failed !== undefined) {
        await stop();
        throw failed.reason;
      }
      return begun.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
    },
    stop,
  };
}
