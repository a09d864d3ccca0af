/**
 * A database that is spread over several servers by Citus. The tables of accounts and their calls are spread by their bucket; the
 * functions that begin and end calls run on the server that has it. The coordinator keeps all other tables, and the house's bucket.
 */
import type { Database, Pools, Transaction } from './connection.ts';

/** The first of the tables that are spread: the others lie beside it. */
export const SPREAD_LIKE = 'ledger_accounts';
/** What the coordinator has to hear of: a server writes it down in its own commit. Spread as these are. */
export const OUTBOX = 'ledger_outbox';
/**
 * Tables that are spread, whose triggers write tables of the coordinator: these are triggers of the table in which the coordinator keeps
 * what it has heard. Null: another trigger stands in for them.
 */
const HEARD_IN = new Map<string, string | null>([
  ['ledger_transfers', 'ledger_transfers_heard'],
  ['ledger_accounts', null],
]);
/** Triggers for which others stand in, which name a bucket in each statement (`*.spread.v1.sql`). */
const STOOD_IN_FOR = new Set(['ledger_transfer_reverses_shares', 'card_order_restores_shares']);
/** One statement of a file that makes a trigger. */
const TRIGGER = /CREATE (?:OR REPLACE )?TRIGGER\s+(\w+)\s[^;]*?\sON\s+(\w+)\b[^;]*;/g;
/** The functions that run whole on the server of a bucket, and what they call. */
const MOVED = ['calls_begin', 'calls_finish_apart'] as const;
const CALLED = ['call_terms_take'] as const;

/** Learns whether the database is spread, before anybody begins a call on it. */
export async function learnDistribution({ sql, commits, distribution }: Pools): Promise<void> {
  distribution.isDistributed = await isDistributed(sql);
  // Of connections that open from now on; none is open yet.
  if (distribution.isDistributed) commits.options.connection.plan_cache_mode = 'force_custom_plan';
}

/** Whether the tables of calls are spread over servers; or another of our tables, by its name. */
export async function isDistributed(
  on: Database | Transaction,
  table: string = SPREAD_LIKE,
): Promise<boolean> {
  const [known] = await on<
    { known: boolean }[]
  >`select to_regclass('pg_catalog.pg_dist_partition') is not null as known`;
  if (known?.known !== true) return false;
  const [row] = await on<{ spread: boolean }[]>`
    select exists (select 1 from pg_dist_partition where logicalrelid = to_regclass(${table})) as spread`;
  return row?.spread === true;
}

/**
 * Lets functions run on the servers of a database that is spread; does nothing on one that is not. To be called in the transaction
 * that made them: nobody calls one by its name before.
 *
 * @param names as the database knows them
 * @returns those that run on other servers from now on
 */
export async function distributeFunctions(
  transaction: Transaction,
  names: readonly string[],
): Promise<string[]> {
  if (names.length === 0 || !(await isDistributed(transaction))) return [];
  const moved: string[] = [];
  const rows = await transaction<
    { name: string; signature: string; text: string; custom: boolean; placed: boolean }[]
  >`
    select p.proname as name, p.oid::regprocedure::text as signature, coalesce(p.proconfig::text, '') as text,
           coalesce('plan_cache_mode=force_custom_plan' = any (p.proconfig), false) as custom,
           o.colocationid is not null as placed
    from pg_proc p left join pg_dist_object o on o.classid = 'pg_proc'::regclass and o.objid = p.oid
    where p.pronamespace = current_schema()::regnamespace and p.proname in ${transaction([...names])}`;
  const isOf = (name: string, files: readonly string[]) =>
    files.some((file) => new RegExp(`^${file}_[0-9a-f]{12}(_w[0-9]{8})?$`).test(name));
  // What a function calls is there before it.
  for (const { name, signature } of rows) {
    if (isOf(name, CALLED)) await transaction`select create_distributed_function(${signature})`;
  }
  for (const { name, signature, text, custom, placed } of rows) {
    const moves = isOf(name, MOVED);
    // Which server a statement is for is known when its bucket is: a plan for any bucket cannot be made.
    if (!custom && (moves || text.includes('force_generic_plan')))
      await transaction.unsafe(`alter function ${signature} set plan_cache_mode = 'force_custom_plan'`);
    if (!moves || placed) continue;
    await transaction`select create_distributed_function(${signature}, 'p_bucket', colocate_with => ${SPREAD_LIKE})`;
    moved.push(name);
  }
  return moved;
}

/** A trigger with the table that it hangs on. */
export interface PlacedTrigger {
  trigger: string;
  table: string;
}

/**
 * The text of a trigger's function for a database that is spread. What would write a table of the coordinator from within a commit on a
 * worker, and so let it fail, hangs on the table in which the coordinator keeps what it has heard.
 *
 * @returns also the triggers that hang elsewhere than on one PostgreSQL, as they are there
 */
export function onSpread(text: string): { text: string; taken: readonly PlacedTrigger[] } {
  const taken: PlacedTrigger[] = [];
  const changed = text.replace(TRIGGER, (statement, trigger: string, table: string) => {
    const heardIn = STOOD_IN_FOR.has(trigger) ? null : HEARD_IN.get(table);
    if (heardIn === undefined) return statement;
    taken.push({ trigger, table });
    return heardIn === null ? '' : statement.replace(new RegExp(`(\\sON\\s+)${table}\\b`), `$1${heardIn}`);
  });
  return { text: changed, taken };
}

/** Runs the text of a trigger's function, statement by statement: Citus hands what it was told on to servers that take one at a time. */
export async function runOnSpread(transaction: Transaction, text: string): Promise<void> {
  await allowTriggers(transaction);
  await transaction.unsafe(text.replace(TRIGGER, ''));
  for (const [statement] of text.matchAll(TRIGGER)) await transaction.unsafe(statement);
}

/** Lets a transaction make and drop triggers of tables that are spread. Ours write nothing but what lies beside the row. */
export async function allowTriggers(transaction: Transaction): Promise<void> {
  await transaction`set local citus.enable_unsafe_triggers = on`;
}
