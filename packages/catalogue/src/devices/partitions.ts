/** The days of the time series: made ahead, and dropped when their time is over. */
import type { Database, Transaction } from '@farebox/core/db/connection';

const DAY_MS = 86_400_000;
const DAYS_AHEAD = 2;
/** The days that a reading may lie back, and a day more. */
const DAYS_BEHIND = 8;

/** The days that readings may go to. */
export interface Days {
  /** Makes those that are missing from a week ago to the day after tomorrow. Of many who ask at once one does it. */
  make(): Promise<void>;
  /**
   * Whether readings of these times have their days. Asks nobody: days are made ahead, so that neither midnight nor a lock
   * on the table delays a reading.
   */
  areThere(readings: readonly { atMs: number }[]): boolean;
  /** A day was not there after all: the database is asked again. */
  forget(): void;
}

export function createDays(sql: Database, nowMs: () => number): Days {
  let made = new Set<number>();
  let making: Promise<void> | null = null;
  return {
    make() {
      making ??= make(sql, Math.floor(nowMs() / DAY_MS))
        .then((days) => {
          made = new Set(days);
        })
        .finally(() => {
          making = null;
        });
      return making;
    },
    areThere: (readings) => readings.every(({ atMs }) => made.has(Math.floor(atMs / DAY_MS))),
    forget: () => made.clear(),
  };
}

/**
 * Drops days that are older than they are kept, and those of which somebody who died or had to stop has dropped a part.
 * Safe on several replicas.
 *
 * @throws the database's error when a day is still there, such as while a backup reads it: it is left for the next round
 */
export async function dropOldDays(
  sql: Database,
  { nowMs, retentionDays }: { nowMs: number; retentionDays: number },
): Promise<void> {
  const oldest = nameOf(Math.floor(nowMs / DAY_MS) - retentionDays);
  const old = async () => (await daysThere(sql)).filter(({ name }) => name < oldest);
  const failures: unknown[] = [];
  for (const day of await old()) {
    await drop(sql, day).catch((error: unknown) => {
      if (!isDroppedByAnother(error)) failures.push(error);
    });
  }
  if (failures.length > 0 && (await old()).length > 0) throw failures[0];
}

/** That a table is not there, is no partition, or is not in the state in which it was seen. */
const isDroppedByAnother = (error: unknown) =>
  error instanceof Error && 'code' in error && (error.code === '42P01' || error.code === '55000');

/** Drops a day's partition, not in a transaction: readers of other days are not kept waiting. */
async function drop(sql: Database, { name, state }: Day): Promise<void> {
  if (state !== 'detached') {
    const how = state === 'attached' ? 'concurrently' : 'finalize';
    await sql.unsafe(`alter table device_readings detach partition ${name} ${how}`);
  }
  await sql.unsafe(`drop table if exists ${name}`);
}

interface Day {
  name: string;
  /** Detaching takes two steps, between which a day is `detaching`; no other can be detached until it has taken the second. */
  state: 'attached' | 'detaching' | 'detached';
}

async function daysThere(sql: Database | Transaction): Promise<Day[]> {
  return sql<Day[]>`
    select c.relname as name, case when i.inhrelid is null then 'detached'
                                   when i.inhdetachpending then 'detaching' else 'attached' end as state
    from pg_class c left join pg_inherits i on i.inhrelid = c.oid
    where c.relnamespace = (select relnamespace from pg_class where oid = 'device_readings'::regclass)
      and c.relkind = 'r' and c.relname ~ '^device_readings_[0-9]{8}$'
    order by i.inhdetachpending is true desc, c.relname`;
}

/** @returns the days that there are now */
async function make(sql: Database, today: number): Promise<number[]> {
  const wanted = Array.from({ length: DAYS_BEHIND + DAYS_AHEAD + 1 }, (_, nth) => today - DAYS_BEHIND + nth);
  let kept: number[] = [];
  // One that a clock ahead of this one has begun to drop is older than any reading that comes.
  const missingIn = async (from: Database | Transaction) => {
    const there = new Map((await daysThere(from)).map(({ name, state }) => [name, state]));
    kept = [...there].flatMap(([name, state]) => (state === 'attached' ? dayNumberOf(name) : []));
    return wanted.filter((day) => (there.get(nameOf(day)) ?? 'detached') === 'detached');
  };
  // Nothing is locked where nothing is missing.
  if ((await missingIn(sql)).length > 0)
    await sql.begin(async (transaction) => {
      await transaction`select pg_advisory_xact_lock(8402, hashtext('device_readings'))`;
      const missing = await missingIn(transaction);
      if (missing.length > 0) await transaction.unsafe(missing.map(statementsFor).join(''));
    });
  return [...kept, ...wanted];
}

/** Attaching waits for no reader and no writer of other days, which making it in place would. */
function statementsFor(day: number): string {
  const name = nameOf(day);
  return `
    create table if not exists ${name} (like device_readings including defaults including constraints);
    alter table device_readings attach partition ${name} for values from ('${dayOf(day)}') to ('${dayOf(day + 1)}');`;
}

const dayOf = (day: number) => `${new Date(day * DAY_MS).toISOString().slice(0, 10)} 00:00:00+00`;
const dayNumberOf = (name: string) =>
  Date.parse(name.replace(/^.*_(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3T00:00:00Z')) / DAY_MS;
/** In the order of days. */
const nameOf = (day: number) =>
  `device_readings_${new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`;
