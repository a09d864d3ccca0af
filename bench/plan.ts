/** How long a run measures. */
export interface Plan {
  rounds: number;
  /** Of one side in one round. */
  roundMs: number;
  /** Before the first round, each side: so that its code is compiled and its connections are open. */
  warmUpMs: number;
  /** Transfers that (d) puts into the ledger before it measures. */
  pastTransfers: number;
  /** Past calls that (j) measures beside, one after the other. */
  pastCalls: readonly number[];
  /** Of one side in one round of (h) and (i). */
  paidCalls: number;
}

export const FULL: Plan = {
  rounds: 5,
  roundMs: 3_000,
  warmUpMs: 3_000,
  pastTransfers: 5_000_000,
  pastCalls: [1_000_000, 5_000_000],
  paidCalls: 400,
};
/** To see that everything works; its figures mean little. */
export const QUICK: Plan = {
  rounds: 3,
  roundMs: 1_000,
  warmUpMs: 1_000,
  pastTransfers: 200_000,
  pastCalls: [200_000],
  paidCalls: 100,
};
/** What (j) measures beside when it is asked to go on for an hour. */
export const DEEP_PAST_CALLS: readonly number[] = [1_000_000, 5_000_000, 20_000_000];
