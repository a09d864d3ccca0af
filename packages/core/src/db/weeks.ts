/**
 * The weeks of calls: the tables that calls, their answers and their transfers lie in, by the time that their ids begin with.
 *
 * PostgreSQL plans and locks all tables that a statement may touch, so a statement over all weeks costs more with each of them.
 * Those that begin and end calls are therefore made for one week at a time (`functions.ts`), and name its tables alone.
 *
 * A call whose week is missing goes to the table of the rest, and is moved when its week is made.
 */
import { type Database, isLockTimeout, isNoFunction, type Pools, type Transaction } from './connection.ts';
import { isDistributed, SPREAD_LIKE } from './distribution.ts';
import { bringFunctions, sqlFunctionsOfWeek } from './functions.ts';

const WEEK_MS = 604_800_000;
/** The first Monday of 1970. */
const MONDAY_MS = 345_600_000;
/** A call may end after its week, and a clock may be slow. */
const WEEKS_BEHIND = 1;
/** For so long no job need succeed. */
const WEEKS_AHEAD = 4;
/** Making a week locks the table of the rest: whoever reads it is not waited for longer than this. */
const LOCK_TIMEOUT_MS = 100;

const TABLES = [
  { table: 'calls', settings: 'fillfactor = 50' },
  {
    table: 'call_answers',
    settings: 'autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000',
  },
  { table: 'ledger_transfers', settings: 'fillfactor = 100' },
] as const;

export interface Week {
  /** By its Monday (UTC), such as `w20261123`. Its tables end in it. */
  name: string;
  /** Ids from the first to before the second are of this week; in lower case, as ids are written. */
  from: string;
  to: string;
}

/** The week of a time. @param atMs milliseconds since 1970 */
export function weekOf(atMs: number): Week {
  const fromMs = Math.floor((atMs - MONDAY_MS) / WEEK_MS) * WEEK_MS + MONDAY_MS;
  const name = `w${new Date(fromMs).toISOString().slice(0, 10).replaceAll('-', '')}`;
  return { name, from: firstIdOf(fromMs), to: firstIdOf(fromMs + WEEK_MS) };
}

/** The weeks that calls begin and end in at a time: the one before, its own, and the next four. */
export function weeksAround(atMs: number): Week[] {
  return Array.from({ length: WEEKS_BEHIND + 1 + WEEKS_AHEAD }, (_, nth) =>
    weekOf(atMs + (nth - WEEKS_BEHIND) * WEEK_MS),
  );
}

/** The smallest id that begins with this time. */
function firstIdOf(atMs: number): string {
  const hex = atMs.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** Which weeks have functions of their own. */
export interface Weeks {
  /**
   * Makes the weeks around a time that are missing, and has the indexes of the one that has ended know all of it. Of many who ask at once
   * one makes them, and nobody waits for a long reader.
   */
  make(nowMs: number): Promise<void>;
  /** Learns which weeks there are, once. */
  learn(): Promise<void>;
  /** The week that all these ids are of and that has functions of its own; null: there is none. Asks nobody. */
  of(ids: readonly string[]): string | null;
  /**
   * Runs a statement by the functions of a week, or by those for all weeks until it is known which weeks there are. If a function
   * is not there after all, nothing was done, and the statement runs by those for all.
   *
   * @param statement is given `of`
   */
  run<T>(statement: (weekOf: (ids: readonly string[]) => string | null) => Promise<T>): Promise<T>;
}

/**
 * @param sql for questions
 * @param patient for making weeks, by a connection that may take its time
 */
export function createWeeks({ sql, patient }: Pick<Pools, 'sql' | 'patient'>): Weeks {
  let known: Week[] | null = null;
  let learning: Promise<void> | null = null;
  const learn = async () => {
    known = await weeksThere(sql);
  };
  const learnOnce = async () => {
    if (known !== null) return;
    learning ??= learn().finally(() => {
      learning = null;
    });
    await learning;
  };
  const of = (ids: readonly string[]) => {
    const [first] = ids;
    if (first === undefined) return null;
    const week = known?.find(({ from, to }) => first >= from && first < to);
    return week !== undefined && ids.every((id) => id >= week.from && id < week.to) ? week.name : null;
  };
  return {
    async make(nowMs) {
      for (const week of weeksAround(nowMs)) {
        await patient
          .begin(async (transaction) => {
            await transaction.unsafe(
              `select pg_advisory_xact_lock(8402); set local lock_timeout = '${LOCK_TIMEOUT_MS}ms'`,
            );
            await makeWeeks(transaction, [week]);
          })
          .catch((error: unknown) => {
            // Somebody reads the rest, such as a proof of the books: the next round is soon enough.
            if (!isLockTimeout(error)) throw error;
          });
      }
      await learn();
      await summarizeWeek(patient, weekOf(nowMs - WEEKS_BEHIND * WEEK_MS)).catch((error: unknown) => {
        // A vacuum is at it, for instance.
        if (!isLockTimeout(error)) throw error;
      });
    },
    learn: learnOnce,
    of,
    async run(statement) {
      void learnOnce().catch(() => {});
      try {
        return await statement(of);
      } catch (error) {
        // Nobody has called the functions of this week for long, and they were dropped.
        if (!isNoFunction(error)) throw error;
        known = null;
        return statement(() => null);
      }
    },
  };
}

/** The weeks for which this version has all its functions, newest first: most calls are of the newest but those to come. */
async function weeksThere(sql: Database): Promise<Week[]> {
  const rows = await sql<{ name: string }[]>`
    select proname as name from pg_proc
    where pronamespace = current_schema()::regnamespace and proname ~ '_w[0-9]{8}$'`;
  const there = new Set(rows.map(({ name }) => name));
  const days = new Set([...there].map((name) => name.slice(-8)));
  return [...days]
    .map((day) => weekOf(Date.parse(`${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}T00:00:00Z`)))
    .filter(({ name }) => sqlFunctionsOfWeek(name).every((each) => there.has(each.name)))
    .sort((a, b) => (a.name < b.name ? 1 : -1));
}

/**
 * Makes the tables of weeks that are missing, with what lies in the rest for them, and their functions. To be called in turn.
 * It locks the tables of the rest where a table is missing, and nothing else.
 */
export async function makeWeeks(transaction: Transaction, weeks: readonly Week[]): Promise<void> {
  for (const week of weeks) {
    // A clock that is years behind makes no week again whose calls stand in files.
    const [archived] = await transaction`select 1 from call_archives where week = ${week.name}`;
    if (archived !== undefined) continue;
    for (const { table, settings } of TABLES) await makeTable(transaction, { table, settings, week });
    await bringFunctions(transaction, sqlFunctionsOfWeek(week.name));
  }
}

/**
 * Has the indexes by time know the last pages of a week that has ended. PostgreSQL notes the times of 128 pages once they are full, and
 * the last ones never are: whoever looks for another day would read them, of every week. It costs nothing where that was done.
 */
async function summarizeWeek(patient: Database, { name }: Week): Promise<void> {
  await patient`
    select brin_summarize_new_values(i.indexrelid) from pg_index i
    join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
    where a.amname = 'brin' and pg_has_role(c.relowner, 'usage') and i.indrelid in (to_regclass(${`calls_${name}`}), to_regclass(${`ledger_transfers_${name}`}))`;
}

async function makeTable(
  transaction: Transaction,
  { table, settings, week }: { table: string; settings: string; week: Week },
): Promise<void> {
  const name = `${table}_${week.name}`;
  const [there] = await transaction`select 1 from pg_class where oid = to_regclass(${name})`;
  if (there !== undefined) return;
  const columns = await transaction<{ name: string }[]>`
    select quote_ident(attname) as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`;
  const list = columns.map((column) => column.name).join(', ');
  const make = `create table ${name} (like ${table} including defaults including constraints including generated) with (${settings})`;
  if (await isDistributed(transaction)) {
    const rows = `from ${table}_rest where id >= '${week.from}' and id < '${week.to}'`;
    for (const step of [
      make,
      `select create_distributed_table('${name}', 'bucket', colocate_with => '${SPREAD_LIKE}')`,
      `lock table ${table}_rest in access exclusive mode`,
      `insert into ${name} (${list}) select ${list} ${rows}`,
      `delete ${rows}`,
      `alter table ${table} attach partition ${name} for values from ('${week.from}') to ('${week.to}')`,
    ])
      await transaction.unsafe(step);
    return;
  }
  // Attaching waits for nobody who reads or writes other weeks, which making it in place would.
  await transaction.unsafe(`
    ${make};
    lock table ${table}_rest in access exclusive mode;
    with moved as (delete from ${table}_rest where id >= '${week.from}' and id < '${week.to}' returning ${list})
    insert into ${name} (${list}) select ${list} from moved;
    alter table ${table} attach partition ${name} for values from ('${week.from}') to ('${week.to}')`);
}
