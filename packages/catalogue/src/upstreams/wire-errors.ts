/** Errors of a request to an upstream. */

/** The upstream answered with a status that is no 2xx. */
export class StatusError extends Error {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly sandbox: boolean;
  constructor(status: number, retryAfter: { retryAfterMs: number | undefined; sandbox: boolean }) {
    super(`status ${status}`);
    this.status = status;
    this.retryAfterMs = retryAfter.retryAfterMs;
    this.sandbox = retryAfter.sandbox;
  }
}
/** The reply does not have the documented shape. */
export class InvalidReply extends Error {}
/** A stream that ended before its announced end. */
export class BrokenOff extends Error {}
/** Whoever asked does not want the reply any more. That says nothing about the upstream. */
export class Abandoned extends Error {}
/** The reply came from a sandbox part, which is not accepted here. */
export class SandboxReply extends Error {}
export class TimedOut extends Error {
  readonly timeoutMs: number;
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`);
    this.timeoutMs = timeoutMs;
  }
}
