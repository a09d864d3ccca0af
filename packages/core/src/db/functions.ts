/**
 * The functions of the database. The current text of each is one file, in a folder `functions` beside the code that calls
 * it, and the start brings it into the database after the migrations.
 *
 * `name.sql` is a function that statements call. In the database its name ends in the checksum of its text, so that replicas
 * of two versions can run on one database: each calls the text that it was written for, and never sees the other's. A text
 * names other functions as if they had no version; what it calls is part of its checksum.
 *
 * A text that names a table `calls__week` is made once for all weeks, where that is the table `calls`, and once for each week that
 * calls are made in now, where it is that week's table: see `weeks.ts`.
 *
 * `name.v2.sql` is the function of a trigger, with the trigger. Every writer runs it, whatever its version, so it has one
 * text at a time, and the highest number stays: a replica of an older version that starts late leaves it alone. Like a
 * migration it must suit the version before it. `name.spread.v1.sql` is one for databases that are spread over servers alone
 * (`distribution.ts`).
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { StartError } from '@farebox/process/start-error';
import { arrayLiteral } from './array-literal.ts';
import type { Database, Transaction } from './connection.ts';
import { distributeFunctions, isDistributed, OUTBOX, onSpread, runOnSpread } from './distribution.ts';
import type { SqlFragment } from './sql-fragment.ts';
import { inTurn } from './turns.ts';

const ROOT = join(import.meta.dirname, '..');
const FILE = /(?:^|[/\\])functions[/\\][a-z_]+(?:(?:\.spread)?\.v[1-9]\d*)?\.sql$/;
const CHECKSUM_DIGITS = 12;
const TABLE_OF_WEEK = /\b([a-z_]+)__week\b/g;
/** For so long a function stays that no process calls any more: an upgrade may be taken back for as long. */
const KEPT_FOR = '30 days';

/** One text of a function that statements call. */
export interface SqlFunction {
  /** Its name in the database. */
  name: string;
  /** The statement that makes it, or makes it this again. */
  text: string;
  /** The same function for the tables of one week, such as `w20261123`; absent where it touches no such table. */
  ofWeek?(week: string): SqlFunction;
}

/** One text of a trigger's function, with its triggers. */
export interface SqlTrigger {
  name: string;
  /** Which text of it this is: 1, 2, … */
  number: number;
  text: string;
}

export interface SqlTexts {
  /** By the names that they have in files. */
  functions: ReadonlyMap<string, SqlFunction>;
  triggers: readonly SqlTrigger[];
  /** Those that only a database has that is spread over servers. */
  spreadTriggers: readonly SqlTrigger[];
}

/**
 * Names each function for its text and for those of the functions that it calls.
 *
 * @param files texts by the names of their files
 * @throws Error when two files have one name, and when functions call each other in a circle
 */
export function sqlTextsOf(files: readonly (readonly [file: string, text: string])[]): SqlTexts {
  const texts = new Map<string, string>();
  const triggers: SqlTrigger[] = [];
  const spreadTriggers: SqlTrigger[] = [];
  const names = new Set<string>();
  for (const [file, text] of files) {
    const [given = '', number] = file.replace(/\.sql$/, '').split('.v');
    const name = given.replace(/\.spread$/, '');
    if (names.has(name)) throw new Error(`two files are the function ${name}`);
    names.add(name);
    if (number === undefined) texts.set(name, text);
    else (given === name ? triggers : spreadTriggers).push({ name, number: Number(number), text });
  }
  const functions = new Map<string, SqlFunction>();
  /** The versions of those that may be made for a week. */
  const weekly = new Set<string>();
  const calling = (name: string) => new RegExp(`\\b${name}(?=\\s*\\()`, 'g');

  function named(name: string, way: readonly string[]): SqlFunction {
    const known = functions.get(name);
    if (known !== undefined) return known;
    if (way.includes(name)) throw new Error(`functions call each other: ${[...way, name].join(', ')}`);
    let text = texts.get(name) ?? '';
    for (const other of texts.keys()) {
      if (other === name || !calling(other).test(text)) continue;
      text = text.replace(calling(other), named(other, [...way, name]).name);
    }
    const checksum = createHash('sha256').update(text).digest('hex').slice(0, CHECKSUM_DIGITS);
    const version = `${name}_${checksum}`;
    const source = text.replace(calling(name), version);
    const called = [...weekly].filter((each) => source.includes(each));
    const made: SqlFunction = { name: version, text: source.replace(TABLE_OF_WEEK, '$1') };
    if (called.length > 0 || source !== made.text) {
      weekly.add(version);
      made.ofWeek = (week) => ({
        name: `${version}_${week}`,
        text: [version, ...called].reduce(
          (all, each) => all.replaceAll(each, `${each}_${week}`),
          source.replace(TABLE_OF_WEEK, `$1_${week}`),
        ),
      });
    }
    functions.set(name, made);
    return made;
  }
  for (const name of [...texts.keys()].sort()) named(name, []);
  const byName = (a: SqlTrigger, b: SqlTrigger) => (a.name < b.name ? -1 : 1);
  return { functions, triggers: triggers.sort(byName), spreadTriggers: spreadTriggers.sort(byName) };
}

/** The texts of this version. */
export const SQL_TEXTS = sqlTextsOf(
  readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
    .filter((path) => FILE.test(path))
    .map((path) => [basename(path), readFileSync(join(ROOT, path), 'utf8')] as const),
);

/** The name in the database of the text that this version calls. @param name as its file is called */
export function sqlFunction(name: string): string {
  const known = SQL_TEXTS.functions.get(name);
  if (known === undefined) throw new Error(`there is no file functions/${name}.sql`);
  return known.name;
}

/** The same, to stand in a fragment of a statement. */
export function sqlFunctionFragment(name: string): SqlFragment {
  return { strings: [sqlFunction(name)], values: [] };
}

/**
 * Creates the functions of this version in a migrated database, notes that this version calls them, and drops functions that
 * no version has called for thirty days. A function that is up to date is left alone. Several processes may do this at once,
 * and again at any time.
 *
 * @throws StartError when the database's user may not do it, or may not call what another user made
 */
export async function bringSqlTexts(sql: Database, texts: SqlTexts = SQL_TEXTS): Promise<void> {
  // Each trigger in a commit of its own: it takes a lock on its table.
  const isSpread = await isDistributed(sql);
  for (const trigger of texts.triggers)
    await inTurn(sql, (transaction) =>
      bringTrigger(transaction, isSpread ? { ...trigger, text: onSpread(trigger.text).text } : trigger),
    );
  if (isSpread) await bringSpreadTriggers(sql, texts);
  await inTurn(sql, async (transaction) => {
    await bringFunctions(transaction, [...texts.functions.values()]);
    await dropUnwanted(transaction);
  });
}

/**
 * Creates the triggers that only a database has that is spread, once what they write to is spread too.
 *
 * @returns the names of those that were brought now
 */
export async function bringSpreadTriggers(
  sql: Database,
  { spreadTriggers }: SqlTexts = SQL_TEXTS,
): Promise<string[]> {
  if (!(await isDistributed(sql, OUTBOX))) return [];
  const brought: string[] = [];
  for (const trigger of spreadTriggers) {
    const isNew = await inTurn(sql, (transaction) => bringTrigger(transaction, trigger));
    if (isNew) brought.push(trigger.name);
  }
  return brought;
}

async function bringTrigger(transaction: Transaction, { name, number, text }: SqlTrigger): Promise<boolean> {
  const [known] = await transaction<{ text_number: number }[]>`
    select text_number from sql_triggers where name = ${name}`;
  if (known !== undefined && known.text_number >= number) return false;
  if (await isDistributed(transaction)) await runOnSpread(transaction, text);
  else await transaction.unsafe(text);
  await transaction`
    insert into sql_triggers (name, text_number) values (${name}, ${number})
    on conflict (name) do update set text_number = excluded.text_number`;
  return true;
}

/** The functions of this version for the tables of one week. */
export function sqlFunctionsOfWeek(week: string): SqlFunction[] {
  return [...SQL_TEXTS.functions.values()].flatMap(({ ofWeek }) => ofWeek?.(week) ?? []);
}

/** Creates functions that are missing or have another text, and notes that this version calls them. */
export async function bringFunctions(
  transaction: Transaction,
  functions: readonly SqlFunction[],
): Promise<void> {
  const names = functions.map(({ name }) => name);
  const rows = await transaction<{ name: string; body: string; callable: boolean }[]>`
    select proname as name, prosrc as body, has_function_privilege(oid, 'execute') as callable from pg_proc
    where pronamespace = current_schema()::regnamespace and proname in ${transaction(names)}`;
  const standing = new Map(rows.map((row) => [row.name, row]));
  for (const { name, text } of functions) {
    const known = standing.get(name);
    // Somebody may have put another text in its place by hand.
    if (known === undefined || !text.includes(`$$${known.body}$$`)) await transaction.unsafe(text);
    else if (!known.callable)
      throw new StartError(`the database's user may not call the function ${name}: grant execute on it.`);
  }
  await transaction`
    insert into sql_functions (name, wanted_at) select name, now() from unnest(${arrayLiteral(names)}::text::text[]) as u (name)
    on conflict (name) do update set wanted_at = now()`;
  await distributeFunctions(transaction, names);
}

/** A replica that lives and started before a function was last asked for may be of a version that says nothing about it. */
async function dropUnwanted(transaction: Transaction): Promise<void> {
  const unwanted = await transaction<{ name: string; signature: string | null }[]>`
    select f.name, p.oid::regprocedure::text as signature from sql_functions f
    left join pg_proc p on p.proname = f.name and p.pronamespace = current_schema()::regnamespace
    where f.wanted_at < now() - ${KEPT_FOR}::interval
      -- What another user made is that one's to drop.
      and (p.oid is null or pg_has_role(p.proowner, 'usage'))
      and not exists (select 1 from replicas r where r.ended_at is null and r.started_at <= f.wanted_at)`;
  for (const { name, signature } of unwanted) {
    if (signature !== null) await transaction.unsafe(`drop function if exists ${signature}`);
    await transaction`delete from sql_functions where name = ${name}`;
  }
}
