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

/** Drops days that are older than they are kept. Safe on several replicas. @returns how many were dropped */
export async function dropOldDays(
  sql: Database,
  { nowMs, retentionDays }: { nowMs: number; retentionDays: number },
): Promise<number> {
  const oldest = nameOf(Math.floor(nowMs / DAY_MS) - retentionDays);
  const old = (await partitions(sql)).filter((name) => name < oldest).sort();
  for (const name of old) {
    // Not in a transaction: readers of other days are not kept waiting.
    await sql.unsafe(`alter table device_readings detach partition ${name} concurrently`);
    await sql.unsafe(`drop table if exists ${name}`);
  }
  return old.length;
}

async function partitions(sql: Database | Transaction): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'device_readings'::regclass`;
  return rows.map(({ name }) => name);
}

/** Attaching waits for no reader and no writer of other days, which making them in place would. */
async function make(sql: Database, today: number): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(8402, hashtext('device_readings'))`;
    const there = new Set(await partitions(transaction));
    const days = Array.from({ length: DAYS_BEHIND + DAYS_AHEAD + 1 }, (_, nth) => today - DAYS_BEHIND + nth);
    const missing = days.filter((day) => !there.has(nameOf(day)));
    if (missing.length === 0) return;
    await transaction.unsafe(
      missing
        .map(
          (day) => `
            create table ${nameOf(day)} (like device_readings including defaults including constraints);
            alter table device_readings attach partition ${nameOf(day)}
              for values from ('${dayOf(day)}') to ('${dayOf(day + 1)}');`,
        )
        .join(''),
    );
  });
}

const dayOf = (day: number) => `${new Date(day * DAY_MS).toISOString().slice(0, 10)} 00:00:00+00`;
/** In order of the days. */
const nameOf = (day: number) =>
  `device_readings_${new Date(day * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`;
