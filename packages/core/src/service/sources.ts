/** The sources that services ask, as the paid call sees them: by name, and whatever they are. */

export type SourceState = 'up' | 'down' | 'not_configured';

/** What a source has cost the operator that is paid by use, as far as its replies told the measure. */
export interface MeasuredCost {
  /** Its name, as services need it. */
  source: string;
  requests: bigint;
  costMicros: bigint;
}

/** Whether a source can be asked now. */
export interface SourceHealth {
  name: string;
  state: SourceState;
  /** Why it is not up, in words that may be shown to callers. */
  reason: string | null;
  retryAfterMs: number;
  lastSuccessAtMs: number | null;
  lastFailureAtMs: number | null;
  /** The budget that all callers share; absent or null where there is none. */
  requestsPerHour?: number | null;
}

/** The call on whose behalf a source is asked. */
export interface AskingCall {
  callId: string;
  /** The payer, at every door the same. */
  caller: string;
  /** Whether the service has a lasting effect: a source then recognizes a repeated request of the same call. */
  isEffect: boolean;
}

export interface Sources {
  /** What services get as `upstreams`. */
  apis: object;
  /** @throws Error for a name that no source has */
  health(name: string): SourceHealth;
  /** Runs a service's work as part of a call. */
  inCall<Result>(call: AskingCall, work: () => Result): Result;
}

/** For a shop whose services ask nobody. */
export const NO_SOURCES: Sources = {
  apis: {},
  health(name) {
    throw new Error(`no source ${name}`);
  },
  inCall: (_, work) => work(),
};
