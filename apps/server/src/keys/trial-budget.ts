/** What a day (UTC) may give in trials, over all replicas: the rows of `trial_days`. */
import type { Database, Transaction } from '../db/connection.ts';
import { NotGiven, type TrialOutcome } from './trial-outcome.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

type Spent = Extract<TrialOutcome, { status: 'spent' }>;

export class TrialBudget {
  readonly #sql: Database;
  readonly #trialMicros: bigint;
  readonly #microsPerDay: bigint | null;
  readonly #nowMs: () => number;

  /** @param parts.microsPerDay the most that a day may grant; null: no bound */
  constructor(
    sql: Database,
    parts: { trialMicros: bigint; microsPerDay: bigint | null; nowMs: () => number },
  ) {
    this.#sql = sql;
    this.#trialMicros = parts.trialMicros;
    this.#microsPerDay = parts.microsPerDay;
    this.#nowMs = parts.nowMs;
  }

  /** @returns what a claim is answered when the day seems to have given all it may, else null. `take` decides. */
  async spent(): Promise<Spent | null> {
    if (this.#microsPerDay === null) return null;
    const nowMs = this.#nowMs();
    const [row] = await this.#sql<{ granted_micros: bigint }[]>`
      select granted_micros from trial_days where day = ${dayOf(nowMs)}::date`;
    return (row?.granted_micros ?? 0n) + this.#trialMicros > this.#microsPerDay ? spentOn(nowMs) : null;
  }

  /**
   * Takes a trial from what the day may give. The day's row is held until the commit, so this comes last in it. It is one row
   * for all replicas, so that none gives what another has given.
   *
   * @throws NotGiven when the day has given all it may
   */
  async take(transaction: Transaction): Promise<void> {
    const nowMs = this.#nowMs();
    const micros = String(this.#trialMicros);
    const most = this.#microsPerDay === null ? null : String(this.#microsPerDay);
    const taken = await transaction`
      insert into trial_days as d (day, granted_micros, trials)
      select ${dayOf(nowMs)}::date, ${micros}::bigint, 1
      where ${most}::bigint is null or ${micros}::bigint <= ${most}::bigint
      on conflict (day) do update
      set granted_micros = d.granted_micros + excluded.granted_micros, trials = d.trials + 1
      where ${most}::bigint is null or d.granted_micros + excluded.granted_micros <= ${most}::bigint`;
    if (taken.count === 0) throw new NotGiven(spentOn(nowMs));
  }
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** By the time at which its day was looked at: when the answer is made, the next one may have begun. */
function spentOn(nowMs: number): Spent {
  return { status: 'spent', untilMs: nowMs - (nowMs % DAY_MS) + DAY_MS };
}
