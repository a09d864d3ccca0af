/**
 * What really happened on the chain during one verify or settle. The reference library turns every failure into a
 * refusal: a node that cannot be reached becomes "invalid signature". A signer records here what it saw, so that the
 * facilitator can distinguish a refusal from an unknown outcome.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

export interface Attempt {
  /** The transaction that moves the money, once it may have reached the node; null before. */
  settlement: string | null;
  /** Why the node gave no answer; null when it answered everything. */
  nodeFailure: string | null;
  /** The settlement was sent, and nobody saw it confirmed or fail. */
  unconfirmed: boolean;
  /** Set by an ordered fault: the signer sends the transaction, but never sees it confirmed. */
  readonly blind: boolean;
}

const attempts = new AsyncLocalStorage<Attempt>();

/** Runs `work` with an attempt of its own, which the signers find by `currentAttempt`. */
export function withAttempt<T>(attempt: Attempt, work: () => Promise<T>): Promise<T> {
  return attempts.run(attempt, work);
}

/** The attempt that the running code belongs to; null outside of one. */
export function currentAttempt(): Attempt | null {
  return attempts.getStore() ?? null;
}

/** A fresh attempt. */
export function newAttempt(blind: boolean): Attempt {
  return { settlement: null, nodeFailure: null, unconfirmed: false, blind };
}

/** Notes that the node gave no answer. */
export function noteNodeFailure(error: unknown): void {
  const attempt = currentAttempt();
  if (attempt !== null) attempt.nodeFailure = error instanceof Error ? error.message : String(error);
}

/** Notes which transaction moves the money. */
export function noteSettlement(transaction: string): void {
  const attempt = currentAttempt();
  if (attempt !== null) attempt.settlement = transaction;
}

/** Notes that a transaction was sent whose outcome nobody saw. */
export function noteUnconfirmed(): void {
  const attempt = currentAttempt();
  if (attempt !== null) attempt.unconfirmed = true;
}
