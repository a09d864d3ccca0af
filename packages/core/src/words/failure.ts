import { type Choice, choicesIn } from './choices.ts';

/** What a seller's API refuses keeps its own status. */
type FailureStatus = 400 | 404 | 405 | 406 | 409 | 410 | 412 | 413 | 415 | 416 | 422 | 428 | 502 | 503 | 504;

/**
 * How a service says that it cannot answer. Whatever is thrown here costs the caller nothing: the paid call
 * releases its reservation and the answer says `charged: false`.
 */
export class ServiceFailure extends Error {
  readonly status: FailureStatus;
  readonly code: string;
  readonly field: string | undefined;
  readonly retryAfterMs: number | undefined;
  /** Further fields of the error's body. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(failure: {
    status: FailureStatus;
    code: string;
    message: string;
    field?: string;
    retryAfterMs?: number;
    details?: Readonly<Record<string, unknown>>;
    cause?: unknown;
  }) {
    super(failure.message, { cause: failure.cause });
    this.name = 'ServiceFailure';
    this.status = failure.status;
    this.code = failure.code;
    this.field = failure.field;
    this.retryAfterMs = failure.retryAfterMs;
    this.details = failure.details ?? {};
  }
}

/** The request makes no sense as it stands (400, not charged). `choices`: what would, if that can be listed. */
export function invalidInput(field: string, message: string, choices?: readonly Choice[]): ServiceFailure {
  const details = choices === undefined ? {} : choicesIn(choices);
  return new ServiceFailure({ status: 400, code: 'INVALID_REQUEST', message, field, details });
}

/**
 * The caller named a thing that the source does not know (404, not charged). `field` is the input's path.
 *
 * @example
 * ```ts
 * import { notFound } from '@farebox/core/words/failure';
 *
 * notFound('coinId', 'There is no coin with this id.').status; // 404
 * ```
 */
export function notFound(field: string, message: string, choices?: readonly Choice[]): ServiceFailure {
  const details = choices === undefined ? {} : choicesIn(choices);
  return new ServiceFailure({ status: 404, code: 'NOT_FOUND', message, field, details });
}

/**
 * The input is well-formed but cannot be answered, such as sea temperature on land (422, not charged).
 *
 * @example
 * ```ts
 * import { noAnswer } from '@farebox/core/words/failure';
 *
 * noAnswer('NO_REAL_ROOT', 'A negative number has no real square root.', 'of').status; // 422
 * ```
 */
export function noAnswer(
  code: string,
  message: string,
  field?: string,
  choices?: readonly Choice[],
): ServiceFailure {
  const details = choices === undefined ? {} : choicesIn(choices);
  return new ServiceFailure({
    status: 422,
    code,
    message,
    details,
    ...(field === undefined ? {} : { field }),
  });
}

export type UnavailableReason =
  | 'not_configured'
  | 'upstream_down'
  | 'rate_limited'
  | 'busy'
  | 'invalid_reply'
  | 'timeout';

/**
 * A source failed, lied or is not configured (503 with `Retry-After`, not charged). `busy`: all our own connections to
 * it are in use, and it was not asked.
 */
export function sourceUnavailable(
  upstream: string,
  reason: UnavailableReason,
  message: string,
  retryAfterMs = 30_000,
  cause?: unknown,
): UpstreamUnavailable {
  return new UpstreamUnavailable(upstream, reason, message, retryAfterMs, cause);
}

export class UpstreamUnavailable extends ServiceFailure {
  readonly upstream: string;
  readonly reason: string;

  constructor(upstream: string, reason: string, message: string, retryAfterMs: number, cause?: unknown) {
    const code = reason === 'busy' ? 'BUSY' : 'UPSTREAM_UNAVAILABLE';
    super({ status: 503, code, message, retryAfterMs, cause });
    this.name = 'UpstreamUnavailable';
    this.upstream = upstream;
    this.reason = reason;
  }
}
