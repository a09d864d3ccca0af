/** How a claim of a trial ends. */
import type { NewApiKey } from './api-key.ts';

export type TrialOutcome =
  | { status: 'issued'; key: NewApiKey; expiresAtMs: number }
  /** The installation has a trial from this address: it gets a new key for what is left of it. */
  | { status: 'replaced'; key: NewApiKey; expiresAtMs: number; availableMicros: bigint }
  /** `by` site: this address has had none, but its neighbours have had all there are for them. */
  | { status: 'claimed'; by: 'address' | 'site'; retryAfterMs: number }
  /** All that may be given by now has been; when there is one again. */
  | { status: 'spent'; untilMs: number };

/** Ends a transaction that would have given a trial. */
export class NotGiven extends Error {
  readonly outcome: Exclude<TrialOutcome, { key: NewApiKey }>;

  constructor(outcome: Exclude<TrialOutcome, { key: NewApiKey }>) {
    super(outcome.status);
    this.outcome = outcome;
  }
}
