/** The outcome of a request, and how a failure is reported. */
import { databaseAway, Problem, problemOf, unavailable } from '../../http/problem.ts';
import { NotBegun, QueueFull } from '../../ledger/group-commit.ts';
import { ServiceFailure } from '../../words/failure.ts';
import type { Payment } from '../rail.ts';

/** The outcome of a request, for metrics and the log. */
export type CallOutcome =
  | 'captured'
  | 'replayed'
  | 'unpaid'
  | 'tried'
  | 'refused'
  | 'invalid'
  | 'no_answer'
  | 'unavailable'
  | 'limited'
  | 'conflict'
  | 'unsettled'
  | 'failed'
  | 'abandoned';

export interface CallReport {
  service: string;
  rail: Payment['rail'] | 'none';
  outcome: CallOutcome;
  status: number;
  durationMs: number;
  priceMicros: bigint;
  requestId: string;
  callId: string | null;
  /** Why a payment was refused, in the words that the caller was told. */
  reason?: string;
  /** What went wrong inside, for the log; never shown to the caller. */
  error?: unknown;
}

/** Thrown when nobody is left to read an answer. The work is abandoned, and nothing is charged. */
export class CallerGone extends Error {}

/** Thrown when the caller left while the service was running, so that work was done for nobody. */
export class LeftDuringWork extends CallerGone {}

export function tookTooLong(): Problem {
  return unavailable('TOOK_TOO_LONG', 'The call took so long that its reservation was released.', 1_000);
}

/** Turns a thrown error into the answer that the caller gets, and notes it in the report. */
export function asProblem(error: unknown, report: CallReport): Problem {
  if (error instanceof Problem) {
    report.error = error.cause;
    if (report.outcome === 'failed') {
      if (error.status === 400 || error.status === 405) report.outcome = 'invalid';
      else if (error.status === 428 || error.status === 429) report.outcome = 'limited';
      else if (error.status === 503) report.outcome = 'unavailable';
    }
    return error;
  }
  if (error instanceof ServiceFailure) {
    report.error = error.cause;
    if (error.status === 400) report.outcome = 'invalid';
    else if (error.status < 500) report.outcome = 'no_answer';
    else if (error.status === 503 || error.status === 504) report.outcome = 'unavailable';
    return problemOf(error);
  }
  if (error instanceof QueueFull) return unavailable('BUSY', 'The ledger is busy.', 1_000);
  if (error instanceof NotBegun) {
    report.outcome = 'unavailable';
    report.error = error;
    return error.why === 'locked'
      ? unavailable('ACCOUNT_BUSY', 'Somebody else is changing this account.', 2_000)
      : unavailable('LEDGER_UNAVAILABLE', 'The ledger does not answer.', 2_000);
  }
  report.error = error;
  const lost = databaseAway(error);
  if (lost !== null) {
    report.outcome = 'unavailable';
    return lost;
  }
  return new Problem(500, 'SERVICE_ERROR', 'The service failed.');
}
