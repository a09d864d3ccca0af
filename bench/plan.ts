/** How long a run measures. */
export interface Plan {
  rounds: number;
  /** The length of one round of one side. */
  roundMs: number;
  /** The time before the first round, for each side, in which its code is compiled and its connections are opened. */
  warmUpMs: number;
  /** Transfers that (d) inserts into the ledger before it measures. */
  pastTransfers: number;
  /** The numbers of past calls that (j) measures with, one after the other. */
  pastCalls: readonly number[];
  /** Paid calls of one side in one round of (h) and (i). */
  paidCalls: number;
  /** Of (p): how many devices send, and for how long, each side in one round. */
  devices: { count: number; roundSeconds: number; warmUpSeconds: number };
}

export const FULL: Plan = {
  rounds: 5,
  roundMs: 3_000,
  warmUpMs: 3_000,
  pastTransfers: 5_000_000,
  pastCalls: [1_000_000, 5_000_000],
  paidCalls: 400,
  devices: { count: 2_000, roundSeconds: 12, warmUpSeconds: 3 },
};
/** For checking that everything works; its figures mean little. */
export const QUICK: Plan = {
  rounds: 3,
  roundMs: 1_000,
  warmUpMs: 1_000,
  pastTransfers: 200_000,
  pastCalls: [200_000],
  paidCalls: 100,
  devices: { count: 200, roundSeconds: 3, warmUpSeconds: 1 },
};
/** The numbers of past calls for (j) in a run of an hour. */
export const DEEP_PAST_CALLS: readonly number[] = [1_000_000, 5_000_000, 20_000_000];
