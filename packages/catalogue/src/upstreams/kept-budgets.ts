/** What was used up of each source's burst, kept over restarts: what was agreed with a source ends with no process. */
import { randomUUID } from 'node:crypto';
import type { Database } from '@farebox/core/db/connection';
import type { Budget } from './budget.ts';

/** A process that lives writes every second. One that has not for so long has ended, or does nothing. */
const ENDED_AFTER_MS = 2_500;
/** A process that was killed just before this one began is known to have ended by then. */
const LOOKS_FOR_MS = 10_000;
/** Less than this is refilled before anybody could use it. */
const LEAST_MISSING = 0.01;
/** Every burst is full again by then. */
const FORGOTTEN_AFTER_DAYS = 2;

export interface KeptBudgets {
  /** Begins with what the last process to end has left of each burst; nothing is taken from processes that live. */
  takeOver(): Promise<void>;
  /** Writes down what this process has used up, if anything changed. */
  keep(): Promise<void>;
}

/**
 * Each process that starts takes over from one that has ended, so that as many as start follow as many as ended. One that
 * joins others begins with its whole share: theirs have become smaller by it.
 *
 * @param budgets by the sources' names
 * @param nowMs milliseconds of a clock, for how long this process has looked
 */
export function createKeptBudgets(
  sql: Database,
  { budgets, nowMs }: { budgets: ReadonlyMap<string, Budget>; nowMs(): number },
): KeptBudgets {
  const process = randomUUID();
  const beganAtMs = nowMs();
  let hasTakenOver = false;
  let hasWritten = false;

  async function takeOver(): Promise<void> {
    const left = await sql<{ source: string; missing: number; age_ms: number }[]>`
      delete from source_budgets where process = (
        select process from source_budgets
        where process <> ${process} and at < now() - ${ENDED_AFTER_MS} * interval '1 ms'
        order by at desc limit 1)
      returning source, missing, (extract(epoch from now() - at) * 1000)::float8 as age_ms`;
    for (const { source, missing, age_ms: ageMs } of left) budgets.get(source)?.inherit(missing, ageMs);
    hasTakenOver ||= left.length > 0;
  }

  return {
    takeOver,
    async keep() {
      if (!hasTakenOver && nowMs() < beganAtMs + LOOKS_FOR_MS) await takeOver();
      const used = [...budgets]
        .map(([source, budget]) => ({ source, missing: budget.missing() }))
        .filter(({ missing }) => missing >= LEAST_MISSING);
      if (used.length === 0 && !hasWritten) return;
      const sources = used.map(({ source }) => source);
      await sql`
        with written as (
          insert into source_budgets (process, source, missing, at)
          select ${process}, source, missing, now()
          from unnest(${sources}::text[], ${used.map(({ missing }) => String(missing))}::text[]::float8[]) as used (source, missing)
          on conflict (process, source) do update set missing = excluded.missing, at = excluded.at)
        delete from source_budgets
        where (process = ${process} and source <> all (${sources}::text[]))
          or at < now() - ${FORGOTTEN_AFTER_DAYS} * interval '1 day'`;
      hasWritten = used.length > 0;
    },
  };
}
