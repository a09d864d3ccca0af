/**
 * Archives: a week of calls that is old enough is sealed, written to files, read back, and only then leaves the database, in one
 * commit with what the books need of it. Each step begins anew after its process has died, and finds what the steps before it did.
 *
 *   sealed    nothing of its calls can be changed any more, by triggers of its tables
 *   written   the files hold what leaves, and their sums and hashes stand in `call_archives`
 *   dropped   what left is carried by day and account, and the tables hold what stays
 *
 * Calls that something else names stay (`week-rows.ts`). Several replicas may do this: who works on a week holds a lease, and files
 * are named for their bytes, so that a late writer can only write the same again.
 */
import { randomUUID } from 'node:crypto';
import { access, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Database, isLockTimeout, type Pools, type Transaction } from '../db/connection.ts';
import { allowTriggers, isDistributed } from '../db/distribution.ts';
import { sqlFunction } from '../db/functions.ts';
import { makeWeeks, type Week, weekOf } from '../db/weeks.ts';
import { bucketsOfParts } from '../ledger/spread-books.ts';
import { writersEnded } from '../ledger/writers-ended.ts';
import { readArchiveFile, sha256OfFile, writeArchiveFile } from './archive-file.ts';
import { blockerOf } from './blockers.ts';
import {
  addUp,
  BUCKET_COLUMN,
  CALL_COLUMNS,
  keepErasures,
  keepRows,
  keepTransfers,
  leavingRows,
  NO_ROWS,
  type Sums,
  sumsLeaving,
  TRANSFER_COLUMNS,
  tablesOf,
} from './week-rows.ts';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
/** Ids before this time are of no clock that was ever right here. */
const EARLIEST_MS = Date.UTC(2020, 0, 6);
const LEASE = '5 minutes';
/** Taking the tables away locks all of them: whoever writes waits no longer than this, and it is tried again. */
const LOCK_TIMEOUT_MS = 100;
const LOCK_ATTEMPTS = 60;
const LOCK_PAUSE_MS = 500;

export type ArchiveStep = 'waits' | 'sealed' | 'kept' | 'file' | 'named' | 'written' | 'carried' | 'dropped';

export interface ArchiveNeeds {
  pools: Pick<Pools, 'sql' | 'patient'>;
  nowMs: () => number;
  historyDays: number;
  /** Where the files stand; it must be there. */
  folder: string;
  /** Told after each step of a week. */
  report: (week: string, step: ArchiveStep, detail?: string) => void;
}

interface ArchiveRecord {
  written_at: Date | null;
  calls_file: string | null;
  calls_sha256: Buffer | null;
  transfers_file: string | null;
  transfers_sha256: Buffer | null;
}

/**
 * Archives the weeks that are due, the oldest first. One that must wait does not hold up those after it.
 *
 * @param wanted asked before each step
 * @returns the weeks that left the database here
 * @throws AggregateError, when all others are done, with what went wrong: the database's errors and the folder's
 */
export async function archiveWeeks(needs: ArchiveNeeds, wanted: () => boolean): Promise<string[]> {
  const left: string[] = [];
  const errors: unknown[] = [];
  for (const week of await dueWeeks(needs)) {
    if (!wanted()) break;
    try {
      if (await archiveWeek(needs, week, wanted)) left.push(week.name);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, 'weeks of calls could not be archived');
  return left;
}

/** The weeks that end early enough, and those that were begun. */
async function dueWeeks({ pools, nowMs, historyDays }: ArchiveNeeds): Promise<Week[]> {
  const latestMs = nowMs() - historyDays * DAY_MS - WEEK_MS;
  await makeLateWeeks(pools.patient, latestMs);
  const rows = await pools.sql<{ name: string; begun: boolean }[]>`
    select w.name, a.week is not null as begun from (
      select substring(c.relname from 'w[0-9]{8}$') as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'calls'::regclass and c.relname ~ '^calls_w[0-9]{8}$'
    ) w left join call_archives a on a.week = w.name
    where a.dropped_at is null order by 1`;
  const atMs = (name: string) =>
    Date.parse(`${name.slice(1, 5)}-${name.slice(5, 7)}-${name.slice(7)}T00:00:00Z`);
  return rows.flatMap(({ name, begun }) => (begun || atMs(name) <= latestMs ? [weekOf(atMs(name))] : []));
}

/** Calls whose week was never made lie in the rest: it is made for them, so that they leave as others do. */
async function makeLateWeeks(patient: Database, latestMs: number): Promise<void> {
  const [earliest, latest] = [weekOf(EARLIEST_MS).from, weekOf(latestMs).to];
  for (;;) {
    const [first] = await patient<{ ms: bigint | null }[]>`
      select ('x' || left(replace(min(id::text), '-', ''), 12))::bit(48)::bigint as ms from calls_rest
      where id >= ${earliest} and id < ${latest}`;
    if (first?.ms == null) return;
    const week = weekOf(Number(first.ms));
    await patient.begin(async (transaction) => {
      await transaction.unsafe(
        `select pg_advisory_xact_lock(8402); set local lock_timeout = '${LOCK_TIMEOUT_MS}ms'`,
      );
      await makeWeeks(transaction, [week]);
    });
  }
}

async function archiveWeek(needs: ArchiveNeeds, week: Week, wanted: () => boolean): Promise<boolean> {
  if (!(await seal(needs, week))) return false;
  const holder = randomUUID();
  const record = await lease(needs.pools.sql, week, holder);
  if (record === null || !wanted()) return false;
  if (record.written_at === null && !(await mayLeave(needs, week, holder))) return false;
  const written = record.written_at === null ? await write(needs, week, holder) : record;
  if (!wanted()) return false;
  await checkFiles(needs.folder, week, written);
  return drop(needs, week, holder, wanted);
}

/** Takes the week for a while. @returns null: somebody else has it, or it has left */
async function lease(sql: Database, { name }: Week, holder: string): Promise<ArchiveRecord | null> {
  const [record] = await sql<ArchiveRecord[]>`
    update call_archives set holder = ${holder}, lease_until = now() + ${LEASE}::interval
    where week = ${name} and dropped_at is null and (lease_until < now() or holder = ${holder})
    returning written_at, calls_file, calls_sha256, transfers_file, transfers_sha256`;
  return record ?? null;
}

/** @throws Error where somebody else has taken it since */
async function renew(sql: Database, week: Week, holder: string): Promise<void> {
  const [held] = await sql`
    update call_archives set lease_until = now() + ${LEASE}::interval
    where week = ${week.name} and holder = ${holder} and dropped_at is null returning 1`;
  if (held === undefined) throw new Error(`another process works on the week ${week.name} now`);
}

/** @returns whether it is sealed, here or before; what was begun meanwhile is not looked for yet */
async function seal({ pools, report }: ArchiveNeeds, week: Week): Promise<boolean> {
  const { name, from, to } = week;
  const [known] = await pools.sql`select 1 from call_archives where week = ${name}`;
  if (known !== undefined) return true;
  const before = await blockerOf(pools.patient, week);
  if (before !== null) {
    report(name, 'waits', before);
    return false;
  }
  const { calls, transfers } = tablesOf(week);
  await pools.patient.begin(async (transaction) => {
    await boundLocks(transaction);
    await transaction`select ${transaction(sqlFunction('released_payments_forget'))}(${name})`;
    // Whoever reads a call to give its price back has locked its row: it is waited for.
    await transaction.unsafe(`lock table ${calls}, ${transfers} in exclusive mode`);
    await transaction`
      insert into call_archives (week, from_id, to_id, sealed_at) values (${name}, ${from}, ${to}, now())
      on conflict (week) do nothing`;
    for (const statement of [sealOf(calls), sealOf(transfers)]) await transaction.unsafe(statement);
  });
  return true;
}

/**
 * Looks at a sealed week once more, whoever sealed it: what somebody began before, with an id of a clock that was a year behind, is seen
 * now. On a database that is spread, what began before has first to end on every server.
 *
 * @returns false: it waits, and is sealed no more
 */
async function mayLeave({ pools, report }: ArchiveNeeds, week: Week, holder: string): Promise<boolean> {
  const { name } = week;
  const { calls, transfers } = tablesOf(week);
  if (await isDistributed(pools.patient)) await writersEnded(pools.patient);
  const after = await blockerOf(pools.patient, week);
  if (after === null) {
    report(name, 'sealed');
    return true;
  }
  await pools.patient.begin(async (transaction) => {
    await boundLocks(transaction);
    const [held] = await transaction`
      delete from call_archives where week = ${name} and holder = ${holder} and written_at is null returning 1`;
    if (held === undefined) return;
    for (const table of [calls, transfers])
      await transaction.unsafe(`drop trigger week_is_sealed on ${table}`);
  });
  report(name, 'waits', after);
  return false;
}

/** Bounds how long a lock is waited for, on each server of a database that is spread, and lets triggers of its tables be made. */
async function boundLocks(transaction: Transaction): Promise<void> {
  if (await isDistributed(transaction)) {
    await transaction`set local citus.propagate_set_commands = 'local'`;
    await allowTriggers(transaction);
  }
  await transaction.unsafe(`set local lock_timeout = '${LOCK_TIMEOUT_MS}ms'`);
}

const sealOf = (table: string) => `
  create or replace trigger week_is_sealed before insert or update or delete on ${table}
  for each row execute function week_is_sealed('sealed')`;

interface WrittenFile {
  name: string;
  sha256: Buffer;
  sums: Sums;
}

/** Writes the files and reads them back. @throws Error where they do not hold what the database does */
async function write(needs: ArchiveNeeds, week: Week, holder: string): Promise<ArchiveRecord> {
  const { pools, folder, report } = needs;
  await mustBeTheFolder(needs);
  await pools.patient.begin((transaction) => keepRows(transaction, week));
  report(week.name, 'kept');
  await removeUnfinished(folder, week);
  const expected = await sumsLeaving(pools.patient, week);
  const calls = await writeOne(needs, week, 'calls', holder);
  const transfers = await writeOne(needs, week, 'transfers', holder);
  await syncFolder(folder);
  for (const [which, { sums, name }] of Object.entries({ calls, transfers })) {
    const found = JSON.stringify(sums, asText);
    const wanted = JSON.stringify(which === 'calls' ? expected.calls : expected.transfers, asText);
    if (found !== wanted) throw new Error(`${name} holds ${found} of the week's ${wanted}`);
  }
  const { sums } = calls;
  const [record] = await pools.sql<ArchiveRecord[]>`
    update call_archives set written_at = now(), calls_file = ${calls.name}, calls_sha256 = ${calls.sha256},
      transfers_file = ${transfers.name}, transfers_sha256 = ${transfers.sha256},
      captured = ${String(sums.captured)}, released = ${String(sums.released)}, calls_micros = ${String(sums.micros)},
      transfers = ${String(transfers.sums.rows)}, transfers_micros = ${String(transfers.sums.micros)}
    where week = ${week.name} and holder = ${holder} and written_at is null
    returning written_at, calls_file, calls_sha256, transfers_file, transfers_sha256`;
  if (record === undefined) throw new Error(`another process works on the week ${week.name} now`);
  report(week.name, 'written');
  await removeUnnoted(folder, week, record);
  return record;
}

const asText = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);

async function writeOne(
  { pools, folder, report }: ArchiveNeeds,
  week: Week,
  which: 'calls' | 'transfers',
  holder: string,
): Promise<WrittenFile> {
  const unfinished = join(folder, `.${which}_${week.name}.${holder}.unfinished`);
  const isSpread = await isDistributed(pools.patient);
  const ofWhich = which === 'calls' ? CALL_COLUMNS : TRANSFER_COLUMNS;
  const columns = isSpread ? [BUCKET_COLUMN, ...ofWhich] : ofWhich;
  const parts = isSpread
    ? (await bucketsOfParts(pools.patient)).map((buckets) => `t.bucket in (${buckets.join()})`)
    : ['true'];
  const each = () => renew(pools.sql, week, holder);
  const rows = leavingRows(pools.patient, week, { which, columns, parts, each });
  await writeArchiveFile(unfinished, columns, rows).catch(async (error: unknown) => {
    // On a disk that is full nothing may be left.
    await rm(unfinished, { force: true });
    throw error;
  });
  report(week.name, 'file', which);
  const sha256 = await sha256OfFile(unfinished);
  const name = `${which}_${week.name}_${sha256.toString('hex').slice(0, 16)}.parquet`;
  let sums = NO_ROWS;
  for await (const group of readArchiveFile(unfinished)) {
    sums = addUp(sums, group);
    await renew(pools.sql, week, holder);
  }
  await rename(unfinished, join(folder, name));
  report(week.name, 'named', name);
  return { name, sha256, sums };
}

/** A folder whose disk is not mounted is empty: it must have what was written there before. */
async function mustBeTheFolder({ pools, folder }: ArchiveNeeds): Promise<void> {
  const [last] = await pools.sql<{ calls_file: string }[]>`
    select calls_file from call_archives where written_at is not null order by week desc limit 1`;
  if (last === undefined) return access(folder);
  await access(join(folder, last.calls_file)).catch((error: unknown) => {
    throw new Error(`HISTORY_FOLDER does not have ${last.calls_file}, which was written there before`, {
      cause: error,
    });
  });
}

/** Removes what a process left that died while it wrote files of this week. */
async function removeUnfinished(folder: string, { name }: Week): Promise<void> {
  for (const file of await readdir(folder))
    if (file.endsWith('.unfinished') && file.includes(`_${name}.`))
      await rm(join(folder, file), { force: true });
}

/**
 * Removes files of the week that another version of this program wrote and died before it noted them. Only once the files are noted:
 * until then they may be those of another process.
 */
async function removeUnnoted(folder: string, { name }: Week, record: ArchiveRecord): Promise<void> {
  for (const file of await readdir(folder))
    if (
      file.endsWith('.parquet') &&
      file.includes(`_${name}_`) &&
      file !== record.calls_file &&
      file !== record.transfers_file
    )
      await rm(join(folder, file), { force: true });
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}

/** @throws Error where a file is gone, or is not what was written */
async function checkFiles(folder: string, week: Week, record: ArchiveRecord): Promise<void> {
  for (const [name, sha256] of [
    [record.calls_file, record.calls_sha256],
    [record.transfers_file, record.transfers_sha256],
  ] as const) {
    if (name === null || sha256 === null) throw new Error(`the week ${week.name} has no files`);
    if (!(await sha256OfFile(join(folder, name))).equals(sha256))
      throw new Error(`${name} is not what was written: the week ${week.name} stays in the database`);
  }
}

/** Takes what is in the files out of the database: one commit with what is carried of it. @returns whether it was done here */
async function drop(
  { pools, report }: ArchiveNeeds,
  week: Week,
  holder: string,
  wanted: () => boolean,
): Promise<boolean> {
  return pools.patient.begin(async (transaction) => {
    const [held] = await transaction`
      select 1 from call_archives where week = ${week.name} and holder = ${holder} and written_at is not null
        and dropped_at is null for update`;
    if (held === undefined) return false;
    await transaction`select ${transaction(sqlFunction('ledger_carry'))}(${week.name})`;
    await transaction`select ${transaction(sqlFunction('calls_carry'))}(${week.name})`;
    report(week.name, 'carried');
    if (!(await lockTables(transaction, week, wanted)))
      throw new Error(`somebody reads the tables of ${week.name}`);
    await keepTransfers(transaction, week);
    await keepErasures(transaction, week);
    await replaceTables(transaction, week);
    await transaction`update call_archives set dropped_at = now(), lease_until = now() where week = ${week.name}`;
    report(week.name, 'dropped');
    return true;
  });
}

/** Locks what is to be exchanged, without keeping anybody waiting for long. */
async function lockTables(transaction: Transaction, week: Week, wanted: () => boolean): Promise<boolean> {
  const { calls, transfers, answers } = tablesOf(week);
  for (let attempt = 0; attempt < LOCK_ATTEMPTS && wanted(); attempt += 1) {
    try {
      await transaction.savepoint(async (within) => {
        await boundLocks(within);
        await within.unsafe('lock table only calls in access exclusive mode');
        await within.unsafe(`
          lock table only call_answers, only ledger_transfers, only calls_rest, only call_answers_rest,
            only ledger_transfers_rest, only ${calls}, only ${transfers}, only ${answers} in access exclusive mode nowait`);
      });
      return true;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      await sleep(Math.random() * LOCK_PAUSE_MS);
    }
  }
  return false;
}

/** Puts the tables of what stays in the place of the week's. Where nothing stays, the week has none any more. */
async function replaceTables(transaction: Transaction, week: Week): Promise<void> {
  const { calls, transfers, answers, kept } = tablesOf(week);
  for (const statement of [
    `alter table call_answers detach partition ${answers}`,
    `alter table calls detach partition ${calls}`,
    `alter table ledger_transfers detach partition ${transfers}`,
    `drop table ${answers}, ${calls}, ${transfers}`,
  ])
    await transaction.unsafe(statement);
  for (const [parent, table, name] of [
    ['calls', kept.calls, calls],
    ['ledger_transfers', kept.transfers, transfers],
  ] as const) {
    const [any] = await transaction.unsafe(`select 1 from ${table} limit 1`);
    const statements =
      any === undefined
        ? [`drop table ${table}`]
        : [
            `alter table ${table} rename to ${name}`,
            sealOf(name),
            `alter table ${parent} attach partition ${name} for values from ('${week.from}') to ('${week.to}')`,
          ];
    for (const statement of statements) await transaction.unsafe(statement);
  }
}
