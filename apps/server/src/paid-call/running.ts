/** How many calls may run at once, and for how long one may. */
import { Problem, unavailable } from '../http/problem.ts';
import { ServiceFailure } from '../words/failure.ts';

/** The places of calls that run, in this process. */
export interface Places {
  /**
   * Holds a place.
   *
   * @param payer by the name that its calls are counted under
   * @returns gives the place back
   * @throws Problem 429 when this payer has as many as it may, 503 when nobody may have another
   */
  enter(payer: string): () => void;
  readonly taken: number;
}

export function createPlaces(bounds: { maxConcurrent: number; maxConcurrentPerPayer: number }): Places {
  const takenBy = new Map<string, number>();
  let taken = 0;
  return {
    enter(payer) {
      const own = takenBy.get(payer) ?? 0;
      if (own >= bounds.maxConcurrentPerPayer) {
        throw new Problem(
          429,
          'TOO_MANY_CONCURRENT_CALLS',
          `At most ${bounds.maxConcurrentPerPayer} calls of one payer run at once. Wait for one to end.`,
          {
            details: { charged: false, retryAfter: 1 },
            headers: { 'retry-after': '1' },
          },
        );
      }
      if (taken >= bounds.maxConcurrent) throw unavailable('BUSY', 'Too many calls are running.', 1_000);
      taken += 1;
      takenBy.set(payer, own + 1);
      return () => {
        taken -= 1;
        const left = (takenBy.get(payer) ?? 1) - 1;
        if (left === 0) takenBy.delete(payer);
        else takenBy.set(payer, left);
      };
    },
    get taken() {
      return taken;
    },
  };
}

/** A reason of its own, made once: the default one is an exception with a stack for every call that ends well. */
const CALL_ENDED = new Error('the call has ended');

/** The time a service has. Its signal is made when somebody asks for it: most services do not. */
export class Deadline {
  #controller: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#ended) this.#controller.abort(CALL_ENDED);
    return this.#controller.signal;
  }

  /** The work's result, or a failure once the time is over, whether the work heeds its signal or not. */
  race<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#timer = setTimeout(() => {
        reject(
          new ServiceFailure({
            status: 503,
            code: 'DEADLINE_EXCEEDED',
            message: `No answer within ${timeoutMs / 1_000} s.`,
            retryAfterMs: 5_000,
          }),
        );
        this.end();
      }, timeoutMs);
      work.then(resolve, reject);
    });
  }

  /** Whatever the service still does for this call has no reader any more. */
  end(): void {
    clearTimeout(this.#timer);
    this.#ended = true;
    this.#controller?.abort(CALL_ENDED);
  }
}
