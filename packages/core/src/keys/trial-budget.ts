/**
 * The budget of a day (UTC) for trials, over all replicas: the rows of `trial_days`. An eighth of it is there in the
 * morning, and the rest comes evenly until 21:00, so that somebody with many addresses cannot end the trials of a day in seconds.
 */
import type { Database, Transaction } from '../db/connection.ts';
import { NotGiven, type TrialOutcome } from './trial-outcome.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const MORNING_IS_ONE_OF = 8n;

type Spent = Extract<TrialOutcome, { status: 'spent' }>;

export class TrialBudget {
  readonly #sql: Database;
  readonly #trialMicros: bigint;
  readonly #microsPerDay: bigint | null;
  readonly #nowMs: () => number;
  /** The next free moment, as it was seen last. */
  #nextAtMs: number | null = null;

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

  /** When the next trial may be given, as far as this process knows; null: now. */
  get nextAtMs(): number | null {
    return this.#nextAtMs === null || this.#nextAtMs <= this.#nowMs() ? null : this.#nextAtMs;
  }

  /** @returns what a claim is answered when all that may be given by now seems to be, else null. `take` decides. */
  async spent(): Promise<Spent | null> {
    if (this.#microsPerDay === null) return null;
    const nowMs = this.#nowMs();
    const [row] = await this.#sql<{ granted_micros: bigint }[]>`
      select granted_micros from trial_days where day = ${dayOf(nowMs)}::date`;
    const neededMicros = (row?.granted_micros ?? 0n) + this.#trialMicros;
    const untilMs = dayStart(nowMs) + this.#freeAfterMs(neededMicros, this.#microsPerDay);
    this.#nextAtMs = untilMs;
    return untilMs > nowMs ? { status: 'spent', untilMs } : null;
  }

  /**
   * Takes a trial from what may be given by now. The day's row is held until the commit, so this comes last in it. It is one
   * row for all replicas, so that none gives what another has given.
   *
   * @throws NotGiven when all of it has been given
   */
  async take(transaction: Transaction): Promise<void> {
    const nowMs = this.#nowMs();
    const micros = String(this.#trialMicros);
    const most = this.#microsPerDay === null ? null : String(this.#freeMicros(nowMs, this.#microsPerDay));
    const taken = await transaction`
      insert into trial_days as d (day, granted_micros, trials)
      select ${dayOf(nowMs)}::date, ${micros}::bigint, 1
      where ${most}::bigint is null or ${micros}::bigint <= ${most}::bigint
      on conflict (day) do update
      set granted_micros = d.granted_micros + excluded.granted_micros, trials = d.trials + 1
      where ${most}::bigint is null or d.granted_micros + excluded.granted_micros <= ${most}::bigint`;
    if (taken.count > 0 || this.#microsPerDay === null) return;
    const [row] = await transaction<{ granted_micros: bigint }[]>`
      select granted_micros from trial_days where day = ${dayOf(nowMs)}::date`;
    const neededMicros = (row?.granted_micros ?? 0n) + this.#trialMicros;
    const untilMs = dayStart(nowMs) + this.#freeAfterMs(neededMicros, this.#microsPerDay);
    this.#nextAtMs = untilMs;
    throw new NotGiven({ status: 'spent', untilMs });
  }

  /** The micro-USD that may have been given by now: what the morning has and what came since, and one trial at least, unless a day has less. */
  #freeMicros(nowMs: number, perDayMicros: bigint): bigint {
    const cameMicros =
      (perDayMicros * (DAY + MORNING_IS_ONE_OF * BigInt(nowMs - dayStart(nowMs)))) /
      (MORNING_IS_ONE_OF * DAY);
    const freeMicros = cameMicros > this.#trialMicros ? cameMicros : this.#trialMicros;
    return freeMicros < perDayMicros ? freeMicros : perDayMicros;
  }

  /** How long after the day's beginning that much may have been given, in ms; the next day's beginning if never. */
  #freeAfterMs(micros: bigint, perDayMicros: bigint): number {
    if (micros > perDayMicros) return DAY_MS;
    if (micros <= this.#freeMicros(0, perDayMicros)) return 0;
    const above = DAY * (MORNING_IS_ONE_OF * micros - perDayMicros);
    const slope = MORNING_IS_ONE_OF * perDayMicros;
    return Number((above + slope - 1n) / slope);
  }
}

const DAY = BigInt(DAY_MS);
const dayStart = (ms: number) => ms - (ms % DAY_MS);
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
