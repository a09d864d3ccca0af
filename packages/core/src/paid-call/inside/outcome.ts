/** The outcome of a request, and how a failure is reported. */
import { databaseAway, Problem, unavailable } from '../../http/problem.ts';
import { NotBegun, QueueFull } from '../../ledger/group-commit.ts';
import { ServiceFailure } from '../../words/failure.ts';
import { cleanLine } from '../../words/outsider-text.ts';
import type { Payment } from '../rail.ts';

const MAX_MESSAGE_CHARACTERS = 4_000;

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
    // It may quote a source, a contract, or what somebody called a thing.
    const message = cleanLine(error.message, MAX_MESSAGE_CHARACTERS);
    const fields = error.field === undefined ? [] : [{ field: error.field, message }];
    const details = { ...error.details, ...(fields.length > 0 ? { fields } : {}), charged: false };
    if (error.status === 400) report.outcome = 'invalid';
    else if (error.status < 500) report.outcome = 'no_answer';
    else if (error.status === 503 || error.status === 504) report.outcome = 'unavailable';
    if (error.status === 503) return unavailable(error.code, message, error.retryAfterMs ?? 5_000, details);
    return new Problem(error.status, error.code, message, { details, cause: error });
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
