/**
 * Moves customers' accounts into other buckets: those that were opened before there were so many, or before the database was spread. Each
 * account goes with all that is its own, in one commit, while nothing of it is open and no server runs.
 */
import { createHash } from 'node:crypto';
import { StartError } from '@farebox/process/start-error';
import type { Database, Pools, Transaction } from '../db/connection.ts';
import type { SPREAD } from '../db/distribute.ts';
import { HOUSE_ACCOUNTS } from './accounts.ts';
import { commitAsOne } from './one-commit.ts';

/** Accounts that are looked at together. */
const PAGE = 500;

/**
 * Tells what becomes of each table that has a bucket. `moved`: its rows of the account go with it. `empty`: a note in it says that something of the
 * account is under way, and then it stays. `house`: rows of customers are never in it.
 */
const TABLES: Readonly<Record<(typeof SPREAD)[number]['table'], 'moved' | 'empty' | 'house'>> = {
  ledger_accounts: 'moved',
  api_keys: 'moved',
  calls: 'moved',
  call_answers: 'moved',
  ledger_transfers: 'moved',
  call_identities: 'moved',
  call_spending: 'moved',
  call_shares: 'moved',
  settlements: 'house',
  payments_in_flight: 'house',
  ledger_outbox: 'empty',
  auto_recharge_notices: 'empty',
};
const MOVED = Object.entries(TABLES).flatMap(([table, becomes]) => (becomes === 'moved' ? [table] : []));

/** The result of a run of the command. */
export interface AccountsMoved {
  moved: number;
  /** Accounts that stay, because something of theirs is open. */
  open: readonly bigint[];
}

interface Move {
  id: bigint;
  from: number;
  to: number;
}

/**
 * Moves the accounts of a bucket to the others. Accounts of one root buyer, which share their bounds, go to one bucket. Where it was
 * interrupted, the next run goes on.
 *
 * @param plan.from the bucket
 * @param plan.buckets over how many buckets accounts are spread. Bucket 0, which has the house's accounts, gets none
 * @param plan.moved told of the number of accounts that were moved, now and then
 * @throws StartError while a server of ours lives, while a week of calls is being archived, and once something was counted by bucket
 */
export async function moveAccounts(
  { patient, distribution }: Pick<Pools, 'patient' | 'distribution'>,
  { from, buckets, moved: report }: { from: number; buckets: number; moved?(accounts: number): void },
): Promise<AccountsMoved> {
  await assertNothingByBucket(patient);
  const open: bigint[] = [];
  let moved = 0;
  let last = 0n;
  for (;;) {
    const page = await patient<{ id: bigint; root: string }[]>`
      select a.id, coalesce(r.root_buyer, 'account:' || a.id) as root
      from ledger_accounts a left join root_buyers r on r.account_id = a.id
      where a.bucket = ${from} and not a.house and a.id > ${String(last)} order by a.id limit ${PAGE}`;
    for (const { id, root } of page) {
      const to = bucketOf(root, buckets);
      if (to === from) continue;
      const isMoved = await patient.begin(async (transaction) => {
        await transaction.unsafe('set local statement_timeout = 0');
        await assertNobodyServes(transaction);
        await commitAsOne(transaction, distribution);
        return moveAccount(transaction, { id, from, to }, distribution);
      });
      if (isMoved) moved++;
      else open.push(id);
    }
    report?.(moved);
    const [end] = page.slice(-1);
    if (end === undefined || page.length < PAGE) return { moved, open };
    last = end.id;
  }
}

/** Once a server has run on a database that is spread, days are closed and sales counted bucket by bucket. */
async function assertNothingByBucket(sql: Database): Promise<void> {
  const counted = await sql`
    select 1 from sales_folded_buckets union all select 1 from ledger_days where by_bucket limit 1`;
  if (counted.length > 0)
    throw new StartError(
      'a server has run on this database since it was spread, and has counted sales and closed days bucket by bucket. Accounts can be moved before that alone.',
    );
}

/** The bucket that the accounts of a root buyer belong to: the same for all of them, in whatever order they are moved. */
function bucketOf(root: string, buckets: number): number {
  return 1 + (createHash('sha256').update(root).digest().readUInt32BE(0) % (buckets - 1));
}

/** Keeps servers from starting until the transaction ends: each notes first that it lives. */
async function assertNobodyServes(transaction: Transaction): Promise<void> {
  await transaction`lock table replicas in share mode`;
  const [row] = await transaction<{ living: number; archiving: string | null }[]>`
    select (select count(*)::integer from replicas where ended_at is null and seen_at > now() - interval '1 minute') as living,
           (select min(week) from call_archives where dropped_at is null) as archiving`;
  if ((row?.living ?? 0) > 0)
    throw new StartError(
      'a server runs on this database. Stop all of them first: each remembers in which bucket an account is. What was moved so far stays moved.',
    );
  if (row?.archiving != null)
    throw new StartError(
      `the week ${row.archiving} is being archived, and its rows cannot change meanwhile. Start a server, and wait until the week has left.`,
    );
}

/** @returns false, and nothing is changed, when something of the account is open */
async function moveAccount(
  transaction: Transaction,
  move: Move,
  distribution: Pools['distribution'],
): Promise<boolean> {
  const { id, from, to } = move;
  const [account] = await transaction<{ pending: boolean }[]>`
    select debits_pending <> 0 or credits_pending <> 0 as pending from ledger_accounts
    where bucket = ${from} and id = ${String(id)} for update`;
  if (account === undefined || account.pending || (await hasOpen(transaction, move, distribution)))
    return false;
  // Triggers are for what happens, and nothing does.
  if (distribution.isDistributed)
    await transaction.unsafe(
      `set local citus.propagate_set_commands = 'local'; set local session_replication_role = 'replica'`,
    );
  for (const table of MOVED)
    await moveRows(transaction, { table, of: rowsOf(table, move), to }, distribution);
  return true;
}

/** Whether a call of the account has not ended or was not delivered, or a note of it waits to be read. */
async function hasOpen(
  transaction: Transaction,
  { id, from }: Move,
  { isDistributed }: Pools['distribution'],
): Promise<boolean> {
  const calls = await transaction`
    select 1 from calls where bucket = ${from} and account_id = ${String(id)} and state in (0, 3) limit 1`;
  // A job that has still to give a price back remembers the bucket.
  const undelivered = await transaction`
    select 1 from undelivered_calls where account_id = ${String(id)} limit 1`;
  if (calls.length > 0 || undelivered.length > 0) return true;
  // On one PostgreSQL notes are of no bucket.
  for (const [table, becomes] of isDistributed ? Object.entries(TABLES) : []) {
    if (becomes !== 'empty') continue;
    const notes = await transaction`
      select 1 from ${transaction(table)} where bucket = ${from} and account_id = ${String(id)} limit 1`;
    if (notes.length > 0) return true;
  }
  return false;
}

/** The condition for the rows of a table that go with an account. What was set aside of its calls' prices lies beside them. */
function rowsOf(table: string, { id, from }: Move): string {
  if (table === 'ledger_accounts') return `bucket = ${from} and id = ${id}`;
  const own = `bucket = ${from} and account_id = ${id}`;
  if (table !== 'ledger_transfers') return own;
  const shares = `select call_id from call_shares where ${own}`;
  const back = `select md5('share of ' || call_id)::uuid from call_shares where ${own}`;
  return `bucket = ${from} and (account_id = ${id} or account_id = ${HOUSE_ACCOUNTS.shares_owed} and id in (${shares} union all ${back}))`;
}

/** Moves rows of a table. Where the buckets lie on several servers, a row is written on the other one, and deleted here. */
async function moveRows(
  transaction: Transaction,
  { table, of, to }: { table: string; of: string; to: number },
  { isDistributed }: Pools['distribution'],
): Promise<void> {
  if (!isDistributed) {
    await transaction.unsafe(`update ${table} set bucket = ${to} where ${of}`);
    return;
  }
  // Held before they are read: who holds one has changed it, or will not.
  await transaction.unsafe(`select count(*) from (select 1 from ${table} where ${of} for update) held`);
  const columns = await transaction<{ name: string }[]>`
    select quote_ident(attname) as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attname <> 'bucket' order by attnum`;
  const names = columns.map(({ name }) => name).join(', ');
  await transaction.unsafe(
    `insert into ${table} (bucket, ${names}) overriding system value select ${to}::smallint, ${names} from ${table} where ${of}`,
  );
  await transaction.unsafe(`delete from ${table} where ${of}`);
}
