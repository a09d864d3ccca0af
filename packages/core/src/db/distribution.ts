/**
 * A database that is spread over several servers by Citus. The tables of accounts and their calls are spread by their bucket; the
 * functions that begin and end calls run on the server that has it. The coordinator keeps all other tables, and the house's bucket.
 */
import type { Database, Pools, Transaction } from './connection.ts';

/** The first of the tables that are spread: the others lie beside it. */
export const SPREAD_LIKE = 'ledger_accounts';
/** The functions that run whole on the server of a bucket, and what they call. */
const MOVED = ['calls_begin', 'calls_finish_apart'] as const;
const CALLED = ['call_terms_take'] as const;

/** Learns whether the database is spread, before anybody begins a call on it. */
export async function learnDistribution({ sql, commits, distribution }: Pools): Promise<void> {
  distribution.isDistributed = await isDistributed(sql);
  // Of connections that open from now on; none is open yet.
  if (distribution.isDistributed) commits.options.connection.plan_cache_mode = 'force_custom_plan';
}

/** Whether the tables of calls are spread over servers. */
export async function isDistributed(on: Database | Transaction): Promise<boolean> {
  const [known] = await on<
    { known: boolean }[]
  >`select to_regclass('pg_catalog.pg_dist_partition') is not null as known`;
  if (known?.known !== true) return false;
  const [row] = await on<{ spread: boolean }[]>`
    select exists (select 1 from pg_dist_partition where logicalrelid = to_regclass(${SPREAD_LIKE})) as spread`;
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
