import { isDatabaseAway } from '../words/database-away.ts';
import type { ServiceFailure } from '../words/failure.ts';
import { cleanLine } from '../words/outsider-text.ts';

const MAX_MESSAGE_CHARACTERS = 4_000;

/**
 * An answer that is not 2xx, as a typed value. Thrown anywhere, turned into HTTP in one place (`http/server.ts`).
 * The body is `{ error, message, code, requestId, …details }`.
 */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: string,
    message: string,
    extra: { details?: Record<string, unknown>; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, { cause: extra.cause });
    this.name = 'Problem';
    this.status = status;
    this.code = code;
    this.details = extra.details ?? {};
    this.headers = extra.headers ?? {};
  }

  body(requestId: string): Record<string, unknown> {
    const wait = this.headers['retry-after'];
    return {
      error: this.code,
      message: this.message,
      code: this.code,
      requestId,
      // Whoever reads only the body waits as long as whoever reads `Retry-After`.
      ...(wait === undefined ? {} : { retryAfterSeconds: Number(wait) }),
      ...this.details,
    };
  }
}

/** One thing that is wrong with the input: where, and what would be right. */
export interface FieldIssue {
  /** Such as `quotes.0.amount`; empty for the body as a whole. */
  field: string;
  message: string;
}

/** A 400 that names each field and what to change. Nothing was reserved or charged. @param details more of its body */
export function invalidRequest(
  message: string,
  fields: FieldIssue[] = [],
  details: Record<string, unknown> = {},
): Problem {
  return new Problem(400, 'INVALID_REQUEST', message, { details: { fields, ...details, charged: false } });
}

/** The 404 for a service that there is, and that the operator of this server does not sell. */
export function notSoldHere(path: string, details: Record<string, unknown> = {}): Problem {
  return new Problem(404, 'NOT_SOLD_HERE', `This shop does not sell ${path}.`, {
    details: { ...details, charged: false },
  });
}

/** A 503 with the time to wait. Nothing was charged, unless `details` says that it is not known. */
export function unavailable(
  code: string,
  message: string,
  retryAfterMs: number,
  details: Record<string, unknown> = {},
  cause?: unknown,
): Problem {
  const retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1_000));
  return new Problem(503, code, message, {
    details: { retryAfterSeconds, charged: false, ...details },
    headers: { 'retry-after': String(retryAfterSeconds) },
    cause,
  });
}

/** A service's failure as its caller is told it. Nothing was charged; `cause` is for the log. */
export function problemOf(failure: ServiceFailure): Problem {
  const { status, code, field, retryAfterMs = 5_000, cause } = failure;
  // It may quote a source, a contract, or what somebody called a thing.
  const message = cleanLine(failure.message, MAX_MESSAGE_CHARACTERS);
  const fields = field === undefined ? {} : { fields: [{ field, message }] };
  const details = { ...failure.details, ...fields, charged: false };
  if (status === 503) return unavailable(code, message, retryAfterMs, details, cause);
  return new Problem(status, code, message, { details, cause });
}

/**
 * The 503 for an error by which the driver or PostgreSQL says that it cannot be asked now (`words/database-away.ts`); null for
 * any other.
 */
export function databaseAway(error: unknown): Problem | null {
  if (!isDatabaseAway(error)) return null;
  return unavailable('DATABASE_UNAVAILABLE', 'The database does not answer.', 2_000, {}, error);
}
