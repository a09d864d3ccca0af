/** The days of the time series: made ahead, and dropped when their time is over. */
import type { Database, Transaction } from '../db/connection.ts';

const DAY_MS = 86_400_000;
const DAYS_AHEAD = 2;
/** As far back as a reading may be, and a day more. */
const DAYS_BEHIND = 8;

/** Makes the days that readings may go to, each time a day begins; asked before readings are stored. */
export function dayMaker(sql: Database, nowMs: () => number): () => Promise<void> {
  let madeFor = Number.NaN;
  return async () => {
    const today = Math.floor(nowMs() / DAY_MS);
    if (madeFor === today) return;
    await make(sql, today);
    madeFor = today;
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

/** Not in a transaction: readers of other days are not kept waiting. */
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

/** Attaching waits for no reader and no writer of other days, which making them in place would. */
async function make(sql: Database, today: number): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(8402, hashtext('device_readings'))`;
    const there = new Map((await daysThere(transaction)).map(({ name, state }) => [name, state]));
    const days = Array.from({ length: DAYS_BEHIND + DAYS_AHEAD + 1 }, (_, nth) => today - DAYS_BEHIND + nth);
    // One that a clock ahead of this one has begun to drop is older than any reading that comes.
    const missing = days.filter((day) => (there.get(nameOf(day)) ?? 'detached') === 'detached');
    if (missing.length === 0) return;
    await transaction.unsafe(
      missing
        .map(
          (day) => `
            create table if not exists ${nameOf(day)} (like device_readings including defaults including constraints);
            alter table device_readings attach partition ${nameOf(day)}
              for values from ('${dayOf(day)}') to ('${dayOf(day + 1)}');`,
        )
        .join(''),
    );
  });
}

const dayOf = (day: number) => `${new Date(day * DAY_MS).toISOString().slice(0, 10)} 00:00:00+00`;
/** In the order of days. */
const nameOf = (day: number) =>
  `device_readings_${new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`;
