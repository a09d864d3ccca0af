/** What may go wrong on the wire to an upstream. */

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
/** What came does not have the documented shape. */
export class InvalidReply extends Error {}
/** A stream that was not told to its end. */
export class BrokenOff extends Error {}
/** As many streams of this upstream are open as may be. */
export class TooManyStreams extends Error {}
/** The reply came from a sandbox part, and none is accepted here. */
export class SandboxReply extends Error {}
export class TimedOut extends Error {
  readonly timeoutMs: number;
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`);
    this.timeoutMs = timeoutMs;
  }
}
