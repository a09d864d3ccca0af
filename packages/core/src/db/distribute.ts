/**
 * Spreads a database over the servers of Citus: `npm run database:distribute`. Each step looks whether it was done, and is a commit of its
 * own, so that the command can be run again after it was interrupted, and after an upgrade.
 */
import { StartError } from '@farebox/process/start-error';
import type { Database, Transaction } from './connection.ts';
import {
  allowTriggers,
  distributeFunctions,
  OUTBOX,
  onSpread,
  runOnSpread,
  SPREAD_LIKE,
} from './distribution.ts';
import { bringSpreadTriggers, SQL_TEXTS, sqlFunctionsOfWeek } from './functions.ts';
import { inTurn } from './turns.ts';

/** The tables that are spread by their bucket, each with the key that it gets: one that contains the bucket. */
export const SPREAD = [
  { table: 'ledger_accounts', keys: { ledger_accounts_pkey: 'id', ledger_accounts_name_key: 'name' } },
  { table: 'api_keys', keys: { api_keys_pkey: 'id', api_keys_lookup_key: 'lookup' } },
  { table: 'calls', keys: { calls_pkey: 'account_id, id' } },
  { table: 'call_answers', keys: { call_answers_pkey: 'account_id, id' } },
  { table: 'ledger_transfers', keys: { ledger_transfers_pkey: 'account_id, id, resolves' } },
  { table: 'call_identities', keys: { call_identities_pkey: 'account_id, kind, identity' } },
  { table: 'call_spending', keys: { call_spending_pkey: 'account_id, day, service' } },
  { table: 'call_shares', keys: { call_shares_pkey: 'account_id, call_id' } },
  { table: 'settlements', keys: { settlements_pkey: 'account_id, call_id' } },
  { table: 'payments_in_flight', keys: { payments_in_flight_pkey: 'account_id, call_id' } },
  { table: OUTBOX, keys: { ledger_outbox_pkey: 'account_id, id, phase' } },
  { table: 'auto_recharge_notices', keys: {} },
] as const;
/** Tables without a bucket that these functions touch: each server has a copy, which all of them write together. */
export const COPIED = [
  'root_buyers',
  'lifted_bounds',
  'trial_credits',
  'free_calls',
  'call_quotas',
  'call_archives',
  'refunds',
] as const;
/** Among how many parts the buckets are spread; servers that are added later take some of them over. */
export const USUAL_SHARDS = 32;
const HOUSE_BUCKET = 0;

/** What a run found to do. */
export interface Distributed {
  /** Each step that was taken now, in words. */
  steps: readonly string[];
}

/**
 * Spreads the tables of calls by their bucket, and lets the functions that begin and end calls run where they lie. The house's bucket stays
 * on the coordinator, beside the tables that are not spread.
 *
 * @param options.shards among how many parts the buckets are spread, where they are not yet
 * @param options.report told of each step before it is taken
 * @throws StartError when the database cannot be spread: it has no Citus, no servers, or a server of ours that lives
 */
export async function distribute(
  sql: Database,
  { shards, report }: { shards: number; report(step: string): void },
): Promise<Distributed> {
  await assertCluster(sql);
  const steps: string[] = [];
  const say = (step: string) => {
    steps.push(step);
    report(step);
  };
  await boundConnections(sql, say);
  const missing = await notDistributed(sql);
  if (missing.length > 0) await assertNobodyServes(sql);
  for (const { table, constraint } of await foreignKeys(sql)) {
    say(`take the foreign key ${constraint} from ${table}: Citus keeps none between these tables`);
    await inTurn(
      sql,
      (transaction) =>
        transaction`alter table ${transaction(table)} drop constraint ${transaction(constraint)}`,
    );
  }
  for (const table of COPIED.filter((each) => missing.includes(each))) {
    say(`copy ${table} to each server`);
    await inTurn(sql, (transaction) => transaction`select create_reference_table(${table})`);
  }
  await moveTriggers(sql, say);
  for (const { table, keys } of SPREAD) {
    for (const [key, columns] of Object.entries(keys)) await widenKey(sql, { table, key, columns }, say);
    if (missing.includes(table)) await spread(sql, { table, shards }, say);
  }
  await indexBuckets(sql, say);
  await keepHouseHere(sql, say);
  for (const trigger of await bringSpreadTriggers(sql))
    say(`${trigger}: each server notes what the coordinator has to hear`);
  await inTurn(sql, async (transaction) => {
    const names = await functionsThere(transaction);
    for (const name of await distributeFunctions(transaction, names)) say(`let ${name} run on each server`);
  });
  return { steps };
}

async function assertCluster(sql: Database): Promise<void> {
  const [there] = await sql<{ citus: boolean }[]>`
    select exists (select 1 from pg_extension where extname = 'citus') as citus`;
  if (there?.citus !== true)
    throw new StartError(
      'this database has no Citus, so it cannot be spread over servers. One PostgreSQL needs no spreading; else run `create extension citus` in this database on each server first.',
    );
  const [cluster] = await sql<{ coordinator: boolean; named: boolean; workers: number }[]>`
    select (select groupid = 0 from pg_dist_local_group) as coordinator,
           exists (select 1 from pg_dist_node where groupid = 0) as named,
           (select count(*)::integer from pg_dist_node where groupid <> 0 and isactive and shouldhaveshards) as workers`;
  if (cluster?.coordinator !== true)
    throw new StartError('DATABASE_URL leads to a worker of Citus: give the address of its coordinator.');
  if (!cluster.named)
    throw new StartError(
      'Citus does not know the address of its coordinator: run `select citus_set_coordinator_host(…)` with one that its workers reach.',
    );
  if (cluster.workers === 0)
    throw new StartError('Citus has no workers: run `select citus_add_node(…)` for each of them.');
}

async function assertNobodyServes(sql: Database): Promise<void> {
  const [row] = await sql<{ living: number }[]>`
    select count(*)::integer as living from replicas where ended_at is null and seen_at > now() - interval '1 minute'`;
  if ((row?.living ?? 0) > 0)
    throw new StartError(
      'a server runs on this database. Stop it first: tables are locked while they are spread, and it learns at its start that they are.',
    );
}

/** A statement over all buckets would open sixteen connections to each server, and every session of ours might run one. */
async function boundConnections(sql: Database, say: (step: string) => void): Promise<void> {
  const setting = 'citus.max_adaptive_executor_pool_size';
  const [set] = await sql`
    select 1 from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
    where d.datname = current_database() and s.setrole = 0 and ${`${setting}=1`} = any (s.setconfig)`;
  if (set !== undefined) return;
  say('let a session open one connection to each server');
  await sql`alter database ${sql(await nameOf(sql))} set citus.max_adaptive_executor_pool_size = 1`;
}

async function nameOf(sql: Database): Promise<string> {
  const [row] = await sql<{ name: string }[]>`select current_database() as name`;
  return row?.name ?? '';
}

/** Our tables that Citus does not know yet. */
async function notDistributed(sql: Database): Promise<string[]> {
  const tables = [...SPREAD.map(({ table }) => table), ...COPIED];
  const rows = await sql<{ name: string }[]>`
    select logicalrelid::text as name from pg_dist_partition where partmethod in ('h', 'n') and logicalrelid::text in ${sql(tables)}`;
  const known = new Set(rows.map(({ name }) => name));
  return tables.filter((table) => !known.has(table));
}

/** Those that lead from or to a table that is spread or copied, which Citus does not keep across servers. */
async function foreignKeys(sql: Database): Promise<{ table: string; constraint: string }[]> {
  const tables = [...SPREAD.map(({ table }) => table), ...COPIED];
  return sql<{ table: string; constraint: string }[]>`
    select conrelid::regclass::text as table, conname as constraint from pg_constraint
    where contype = 'f' and conparentid = 0 and connamespace = current_schema()::regnamespace
      and (confrelid::regclass::text in ${sql(tables)} or conrelid::regclass::text in ${sql(tables)})`;
}

/** Adds the bucket to a key, behind its columns. Statements name no columns of keys, so they find either. */
async function widenKey(
  sql: Database,
  { table, key, columns }: { table: string; key: string; columns: string },
  say: (step: string) => void,
): Promise<void> {
  const [there] = await sql<{ wide: boolean }[]>`
    select 'bucket' = any (array(select attname::text from pg_attribute where attrelid = conrelid and attnum = any (conkey))) as wide
    from pg_constraint where conrelid = to_regclass(${table}) and conname = ${key}`;
  if (there?.wide === true) return;
  say(`add the bucket to the key ${key}`);
  const kind = key.endsWith('_pkey') ? 'primary key' : 'unique';
  await inTurn(sql, (transaction) =>
    transaction.unsafe(
      `alter table ${table} drop constraint if exists ${key}, add constraint ${key} ${kind} (${columns}, bucket)`,
    ),
  );
}

async function spread(
  sql: Database,
  { table, shards }: { table: string; shards: number },
  say: (step: string) => void,
): Promise<void> {
  say(`spread ${table} over the servers`);
  await inTurn(sql, async (transaction) => {
    await allowTriggers(transaction);
    await (table === SPREAD_LIKE
      ? transaction`select create_distributed_table(${table}, 'bucket', shard_count => ${shards}, colocate_with => 'none')`
      : transaction`select create_distributed_table(${table}, 'bucket', colocate_with => ${SPREAD_LIKE})`);
  });
}

/** Takes the triggers away that would let a commit on a worker fail, and puts them where the coordinator keeps what it has heard. */
async function moveTriggers(sql: Database, say: (step: string) => void): Promise<void> {
  for (const { text } of SQL_TEXTS.triggers) {
    const moved = onSpread(text);
    for (const { trigger, table } of moved.taken) {
      const [there] = await sql`
        select 1 from pg_trigger where tgrelid = to_regclass(${table}) and tgname = ${trigger} and tgparentid = 0`;
      if (there === undefined) continue;
      say(`take the trigger ${trigger} from ${table}: the coordinator hears of it`);
      await inTurn(sql, async (transaction) => {
        await allowTriggers(transaction);
        await transaction`drop trigger if exists ${transaction(trigger)} on ${transaction(table)}`;
        await runOnSpread(transaction, moved.text);
      });
    }
  }
}

/** Lets the highest bucket be found at once: jobs do their work bucket by bucket. */
async function indexBuckets(sql: Database, say: (step: string) => void): Promise<void> {
  const [there] = await sql`select 1 from pg_class where oid = to_regclass('ledger_accounts_by_bucket')`;
  if (there !== undefined) return;
  say('index the buckets of accounts');
  await inTurn(
    sql,
    (transaction) =>
      transaction`create index if not exists ledger_accounts_by_bucket on ledger_accounts (bucket)`,
  );
}

/** Gives the house's bucket a part of its own, and moves it to the coordinator. */
async function keepHouseHere(sql: Database, say: (step: string) => void): Promise<void> {
  const find = async () => {
    const [row] = await sql<{ shard: bigint; alone: boolean; groupid: number; host: string; port: number }[]>`
      select s.shardid as shard, s.shardminvalue = s.shardmaxvalue as alone, n.groupid, n.nodename as host, n.nodeport as port
      from pg_dist_shard s join pg_dist_placement p using (shardid) join pg_dist_node n using (groupid)
      where s.shardid = get_shard_id_for_distribution_column(${SPREAD_LIKE}, ${HOUSE_BUCKET}::smallint)`;
    if (row === undefined) throw new Error('the house has no part of the tables');
    return row;
  };
  if (!(await find()).alone) {
    say("give the house's bucket a part of its own");
    await inTurn(
      sql,
      (transaction) =>
        transaction`select isolate_tenant_to_new_shard(${SPREAD_LIKE}, ${HOUSE_BUCKET}::smallint, 'CASCADE', shard_transfer_mode => 'block_writes')`,
    );
  }
  const takesParts = (should: boolean) =>
    sql`select citus_set_node_property(nodename, nodeport, 'shouldhaveshards', ${should}) from pg_dist_node where groupid = 0`;
  const { shard, groupid, host, port } = await find();
  if (groupid !== 0) {
    say("move the house's bucket to the coordinator");
    await takesParts(true);
    await inTurn(
      sql,
      (transaction) =>
        transaction`
        select citus_move_shard_placement(${String(shard)}::bigint, ${host}, ${port}, nodename, nodeport, 'block_writes')
        from pg_dist_node where groupid = 0`,
    );
  }
  // What else is spread goes to the workers, also when an earlier run was killed right after the move.
  await takesParts(false);
}

/** The functions of this version that are there, those of weeks among them. */
async function functionsThere(transaction: Transaction): Promise<string[]> {
  const rows = await transaction<{ week: string }[]>`
    select distinct right(proname, 9) as week from pg_proc where proname ~ '_w[0-9]{8}$'`;
  return [...SQL_TEXTS.functions.values(), ...rows.flatMap(({ week }) => sqlFunctionsOfWeek(week))].map(
    ({ name }) => name,
  );
}
