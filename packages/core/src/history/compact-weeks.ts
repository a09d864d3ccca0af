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
/** The number of the turn of whoever compacts, held by its session. */
const TURN = 8407;
const BLOCKS_AT_ONCE = 30n;
const LOCK_TIMEOUT_MS = 100;
const LOCK_ATTEMPTS = 60;
const LOCK_PAUSE_MS = 500;
/** Pages are cut off only if they are a sixteenth of all; so many more than the rows would fill are therefore left. */
const SPARE = 16n;

/** One connection, which holds the turn. */
type Session = Awaited<ReturnType<Database['reserve']>>;

export interface CompactNeeds {
  patient: Database;
  nowMs: () => number;
  /** Told of each week that is compact now. */
  report?: (week: string) => void;
}

/**
 * Compacts the weeks that ended 37 days ago or earlier, the oldest first, each once. One of several replicas does it. A week of which
 * somebody's old snapshot still sees rows that moved is compact at a later run.
 *
 * @param wanted asked before each batch
 * @returns the names of the weeks that are compact now, and were not
 * @throws AggregateError, when all others are done, with the database's errors
 */
export async function compactWeeks(needs: CompactNeeds, wanted: () => boolean): Promise<string[]> {
  const session = await needs.patient.reserve();
  try {
    const [turn] = await session<{ ours: boolean }[]>`select pg_try_advisory_lock(${TURN}) as ours`;
    if (turn?.ours !== true) return [];
    const done: string[] = [];
    const errors: unknown[] = [];
    try {
      for (const week of await dueWeeks(session, needs.nowMs())) {
        try {
          if (!(await compactWeek(session, week, wanted))) continue;
          await session`insert into compacted_weeks (week) values (${week}) on conflict (week) do nothing`;
          needs.report?.(week);
          done.push(week);
        } catch (error) {
          errors.push(error);
        }
      }
    } finally {
      await session.unsafe(`reset lock_timeout; select pg_advisory_unlock(${TURN})`);
    }
    if (errors.length > 0) throw new AggregateError(errors, 'weeks of calls could not be made compact');
    return done;
  } finally {
    session.release();
  }
}

/** Names of weeks, such as `w20251124`. What is being archived is left alone. */
async function dueWeeks(session: Session, nowMs: number): Promise<string[]> {
  const latest = new Date(nowMs - AGE_DAYS * DAY_MS - WEEK_MS).toISOString().slice(0, 10).replaceAll('-', '');
  const rows = await session<{ name: string }[]>`
    select substring(c.relname from 'w[0-9]{8}$') as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'calls'::regclass and c.relname ~ '^calls_w[0-9]{8}$' and c.relname <= ${`calls_w${latest}`}
      and not exists (select 1 from compacted_weeks w where 'calls_' || w.week = c.relname)
      and not exists (select 1 from call_archives a where 'calls_' || a.week = c.relname)
    order by 1`;
  return rows.map(({ name }) => name);
}

/** @returns whether it is compact now */
async function compactWeek(session: Session, name: string, wanted: () => boolean): Promise<boolean> {
  const { calls, transfers } = tablesOf({ name });
  await session.unsafe(`alter table ${calls} set (fillfactor = 100)`);
  // A row may move to a page that is emptied later, so there may be several passes, and each leaves fewer pages.
  for (let before: bigint | null = null; ; ) {
    // It notes which pages have room, and cuts off those at the end that have no row.
    await session.unsafe(`vacuum (truncate on) ${calls}`);
    const { pages, filled } = await pagesOf(session, calls);
    const first = filled + filled / SPARE + 1n;
    if (pages <= first + first / SPARE + 1n) break;
    if (before !== null && pages >= before) return false;
    before = pages;
    for (let to = pages; to > first; to -= BLOCKS_AT_ONCE) {
      if (!wanted()) return false;
      const from = to - BLOCKS_AT_ONCE;
      if (!(await moveRows(session, calls, { from: from > first ? from : first, to }))) return false;
    }
  }
  for (const table of [calls, transfers])
    for (const index of await indexesOf(session, table)) {
      if (!wanted()) return false;
      await session.unsafe(`alter index ${index} set (fillfactor = 100)`);
      // It holds up nobody, so it may wait for those who have begun before it.
      await session.unsafe('set lock_timeout = 0');
      await session.unsafe(`reindex index concurrently ${index}`);
      await session.unsafe('reset lock_timeout');
    }
  return true;
}

/** How many pages the table has, and how many its rows would fill. */
async function pagesOf(session: Session, table: string): Promise<{ pages: bigint; filled: bigint }> {
  // A row has a header of 24 bytes or more, ends on a multiple of eight, and has four bytes that point to it; a page has a header.
  const [size] = await session.unsafe<{ pages: bigint; filled: bigint }[]>(`
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
  session: Session,
  table: string,
  { from, to }: { from: bigint; to: bigint },
): Promise<boolean> {
  const columns = await columnsOf(session, table);
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt += 1) {
    try {
      // Statements of one message are one transaction.
      await session.unsafe(`
        set local lock_timeout = '${LOCK_TIMEOUT_MS}ms';
        lock table ${table} in exclusive mode;
        with moved as (
          delete from ${table} where ctid >= '(${from},0)' and ctid < '(${to},0)' returning ${columns}
        ) insert into ${table} (${columns}) select ${columns} from moved`);
      return true;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      await sleep(Math.random() * LOCK_PAUSE_MS);
    }
  }
  return false;
}

/** The columns of a table that are written, in their order, for a statement. */
async function columnsOf(session: Session, table: string): Promise<string> {
  const columns = await session<{ name: string }[]>`
    select quote_ident(attname) as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`;
  return columns.map(({ name }) => name).join(', ');
}

/** The indexes of a table that have an order; what a build that was cut off left behind is taken away. */
async function indexesOf(session: Session, table: string): Promise<string[]> {
  const rows = await session<{ name: string; valid: boolean }[]>`
    select quote_ident(c.relname) as name, x.indisvalid as valid
    from pg_index x join pg_class c on c.oid = x.indexrelid join pg_am a on a.oid = c.relam
    where x.indrelid = ${table}::regclass and a.amname = 'btree' order by 1`;
  for (const { name, valid } of rows)
    if (!valid) await session.unsafe(`drop index concurrently if exists ${name}`);
  return rows.flatMap(({ name, valid }) => (valid ? [name] : []));
}
