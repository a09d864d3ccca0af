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
  /** The calls of the two histories that (u) compares: how many more, how many fewer, and those of one old week and of one day. */
  longAgo: { many: number; few: number; weekCalls: number; dayCalls: number };
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
  longAgo: { many: 5_000_000, few: 1_000_000, weekCalls: 50_000, dayCalls: 20_000 },
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
  longAgo: { many: 200_000, few: 40_000, weekCalls: 2_000, dayCalls: 1_000 },
  paidCalls: 100,
  devices: { count: 200, roundSeconds: 3, warmUpSeconds: 1 },
};
/** The numbers of past calls for (j) in a run of an hour. */
export const DEEP_PAST_CALLS: readonly number[] = [1_000_000, 5_000_000, 20_000_000];
/** The longer of the two histories of (u) in such a run. */
export const DEEP_LONG_AGO = 20_000_000;
