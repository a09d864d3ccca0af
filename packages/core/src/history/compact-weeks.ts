/**
 * Compact weeks: a call is written when it begins and again when it ends, in the room beside it, so half of each page of a week is
 * free once its calls have ended. Nothing fills that room later, because later calls are of other weeks. A job therefore moves the
 * calls from the last pages into the room of the first ones, has PostgreSQL cut off the pages that are empty then, and builds the
 * indexes anew beside those who read them.
 *
 * Rows move so many at a time, each batch in a commit of its own, so a process may die at any time: the next one goes on with what
 * is left. A batch locks the table of its week alone, and waits a tenth of a second for it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Database, isLockTimeout } from '../db/connection.ts';
import { tablesOf } from './week-rows.ts';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
/** Released calls of a week leave it thirty days after their day: what they leave free is filled as well. */
const AGE_DAYS = 37;
/** Longer than any one statement takes: a week is leased anew before each. */
const LEASE = '30 minutes';
const BLOCKS_AT_ONCE = 30n;
const LOCK_TIMEOUT_MS = 100;
const LOCK_ATTEMPTS = 60;
const LOCK_PAUSE_MS = 500;
/** Pages are cut off only if they are a sixteenth of all; so many more than the rows would fill are therefore left. */
const SPARE = 16n;

export interface CompactNeeds {
  patient: Database;
  nowMs: () => number;
  /** Told of each week that is compact now. */
  report?: (week: string) => void;
}

/**
 * Compacts the weeks that ended 37 days ago or earlier, the oldest first, each once. Of several replicas one works on a week. One of
 * which somebody's old snapshot still sees rows that moved, or whose table or index somebody holds, is compact at a later run.
 *
 * @param wanted asked before each batch
 * @returns the names of the weeks that are compact now, and were not
 * @throws AggregateError, when all others are done, with the database's errors
 */
export async function compactWeeks(
  { patient: sql, nowMs, report }: CompactNeeds,
  wanted: () => boolean,
): Promise<string[]> {
  const done: string[] = [];
  const errors: unknown[] = [];
  for (const week of await dueWeeks(sql, nowMs())) {
    try {
      if (!(await leased(sql, week))) continue;
      const isCompact = await compactWeek(sql, week, async () => wanted() && renewed(sql, week)).catch(
        notHeldUp,
      );
      await sql`
        update compacted_weeks set lease_until = now(), compacted_at = ${isCompact ? sql`now()` : null} where week = ${week}`;
      if (!isCompact) continue;
      report?.(week);
      done.push(week);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, 'weeks of calls could not be made compact');
  return done;
}

/** Says of a lock that was not to be had that the week is not compact yet. @throws any other error */
function notHeldUp(error: unknown): false {
  if (!isLockTimeout(error)) throw error;
  return false;
}

/** @returns false: somebody else is at it, or it is compact */
async function leased(sql: Database, week: string): Promise<boolean> {
  const taken = await sql`
    insert into compacted_weeks as w (week, lease_until) values (${week}, now() + ${LEASE}::interval)
    on conflict (week) do update set lease_until = excluded.lease_until
    where w.compacted_at is null and w.lease_until <= now() returning 1`;
  return taken.length > 0;
}

async function renewed(sql: Database, week: string): Promise<true> {
  await sql`update compacted_weeks set lease_until = now() + ${LEASE}::interval where week = ${week}`;
  return true;
}

/** Names of weeks, such as `w20251124`. What is being archived is left alone. */
async function dueWeeks(sql: Database, nowMs: number): Promise<string[]> {
  const latest = new Date(nowMs - AGE_DAYS * DAY_MS - WEEK_MS).toISOString().slice(0, 10).replaceAll('-', '');
  const rows = await sql<{ name: string }[]>`
    select substring(c.relname from 'w[0-9]{8}$') as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'calls'::regclass and c.relname ~ '^calls_w[0-9]{8}$' and c.relname <= ${`calls_w${latest}`}
      and not exists (
        select 1 from compacted_weeks w where 'calls_' || w.week = c.relname and w.compacted_at is not null)
      and not exists (select 1 from call_archives a where 'calls_' || a.week = c.relname)
    order by 1`;
  return rows.map(({ name }) => name);
}

/** @returns whether it is compact now */
async function compactWeek(sql: Database, name: string, wanted: () => Promise<boolean>): Promise<boolean> {
  const { calls, transfers } = tablesOf({ name });
  const columns = await columnsOf(sql, calls);
  await sql.unsafe(`alter table ${calls} set (fillfactor = 100)`);
  // A row may move to a page that is emptied later, so there may be several passes, and each leaves fewer pages.
  for (let before: bigint | null = null; ; ) {
    // It notes which pages have room, and cuts off those at the end that have no row.
    await sql.unsafe(`vacuum (truncate on) ${calls}`);
    const { pages, filled } = await pagesOf(sql, calls);
    const first = filled + filled / SPARE + 1n;
    if (pages <= first + first / SPARE + 1n) break;
    if (before !== null && pages >= before) return false;
    before = pages;
    for (let to = pages; to > first; to -= BLOCKS_AT_ONCE) {
      if (!(await wanted())) return false;
      const from = to - BLOCKS_AT_ONCE;
      if (!(await moveRows(sql, { calls, columns }, { from: from > first ? from : first, to }))) return false;
    }
  }
  for (const table of [calls, transfers])
    for (const index of await indexesOf(sql, table)) {
      if (!(await wanted())) return false;
      await sql.unsafe(`alter index ${index} set (fillfactor = 100)`);
      await sql.unsafe(`reindex index concurrently ${index}`);
    }
  return true;
}

/** How many pages the table has, and how many its rows would fill. */
async function pagesOf(sql: Database, table: string): Promise<{ pages: bigint; filled: bigint }> {
  // A row has a header of 24 bytes or more, ends on a multiple of eight, and has four bytes that point to it; a page has a header.
  const [size] = await sql.unsafe<{ pages: bigint; filled: bigint }[]>(`
    select pg_relation_size('${table}') / current_setting('block_size')::bigint as pages,
      coalesce(ceil(sum((pg_column_size(t.*) + 7) / 8 * 8 + 4) / (current_setting('block_size')::numeric - 24)), 0)::bigint as filled
    from ${table} t`);
  return size ?? { pages: 0n, filled: 0n };
}

/**
 * Moves the rows of these pages to where there is room. Whoever changes or locks a row of the week is waited for, and waits: a row
 * that moves is another to those who have begun to wait for it, and their change would be lost.
 *
 * @returns whether it could: somebody may hold the table for too long
 */
async function moveRows(
  sql: Database,
  { calls, columns }: { calls: string; columns: string },
  { from, to }: { from: bigint; to: bigint },
): Promise<boolean> {
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt += 1) {
    try {
      await sql.begin(async (transaction) => {
        await transaction.unsafe(
          `set local lock_timeout = '${LOCK_TIMEOUT_MS}ms'; lock table ${calls} in exclusive mode`,
        );
        await transaction.unsafe(`
          with moved as (
            delete from ${calls} where ctid >= '(${from},0)' and ctid < '(${to},0)' returning ${columns}
          ) insert into ${calls} (${columns}) select ${columns} from moved`);
      });
      return true;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      await sleep(Math.random() * LOCK_PAUSE_MS);
    }
  }
  return false;
}

/** The columns of a table that are written, in their order, for a statement. */
async function columnsOf(sql: Database, table: string): Promise<string> {
  const columns = await sql<{ name: string }[]>`
    select quote_ident(attname) as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`;
  return columns.map(({ name }) => name).join(', ');
}

/** The indexes of a table that have an order; what a build that was cut off left behind is taken away. */
async function indexesOf(sql: Database, table: string): Promise<string[]> {
  const rows = await sql<{ name: string; valid: boolean }[]>`
    select quote_ident(c.relname) as name, x.indisvalid as valid
    from pg_index x join pg_class c on c.oid = x.indexrelid join pg_am a on a.oid = c.relam
    where x.indrelid = ${table}::regclass and a.amname = 'btree' order by 1`;
  for (const { name, valid } of rows)
    if (!valid) await sql.unsafe(`drop index concurrently if exists ${name}`);
  return rows.flatMap(({ name, valid }) => (valid ? [name] : []));
}
