import { unavailable } from '../http/problem.ts';
import { NoAnswerInTime, NotBegun, QueueFull } from '../ledger/group-commit.ts';

/**
 * Turns what a group commit that moves no money was rejected with into the 503 that its caller is told: nothing was charged, whether it
 * was done or not.
 *
 * @param busy the sentence for a queue that is full
 * @returns the error itself when it is of another kind
 */
export function groupProblem(error: unknown, busy: string): unknown {
  if (error instanceof QueueFull) return unavailable('BUSY', busy, 1_000);
  // Whoever waited behind a batch that got no answer, or was in it.
  if (error instanceof NotBegun || error instanceof NoAnswerInTime)
    return unavailable('DATABASE_UNAVAILABLE', 'The database does not answer.', 2_000, {}, error);
  return error;
}
