/** The errors by which the driver, the system and PostgreSQL say that a database cannot be asked now. */

/** Codes of a database that was not found, did not answer or broke the connection (CONNECT…, E…, class 08); one that answered is going, starting (57P) or full (53). */
const LOST = /^(CONNECT|ECONN|EPIPE|ETIMEDOUT|EAI_AGAIN|57P0|08|53)/;
/** It answered: the statement took too long, a lock was held, or the transaction was idle for too long. */
const BUSY = /^(57014|55P03|25P03)$/;

/** Whether there is no connection to it, or none that lasts: what was asked may have been done. */
export function isDatabaseLost(error: unknown): boolean {
  return LOST.test(codeOf(error));
}

/**
 * Whether asking again later may help, and the request is not at fault: the database is lost, or somebody else kept it from
 * answering in time.
 */
export function isDatabaseAway(error: unknown): boolean {
  return isDatabaseLost(error) || BUSY.test(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
