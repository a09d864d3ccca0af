/**
 * Moves customers' accounts into other buckets: those that were opened before there were so many, or before the database was spread. Each
 * account goes with all that is its own, in one commit, while nothing of it is open. Servers go on: who looks for an account where it was
 * finds that it is not there, and looks again.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '@farebox/process/start-error';
import { type Database, isDeadlock, isLockTimeout, type Pools, type Transaction } from '../db/connection.ts';
import type { SPREAD } from '../db/distribute.ts';
import { HOUSE_ACCOUNTS } from './accounts.ts';
import { beginMove } from './buckets.ts';
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

/** How long a move waits for what somebody else holds, unless it is told. */
const LOCK_TIMEOUT_MS = 1_000;
/** How often a move is begun at most while somebody keeps accounts in their places, such as one who closes a day. */
const MOST_BEGUN = 50;
const BEGIN_AGAIN_MS = 100;

/** The result of a run of the command. */
export interface AccountsMoved {
  moved: number;
  /** Accounts that stay, because something of theirs is open, or is held by somebody else. */
  open: readonly bigint[];
}

/** An account on its way from a bucket to another. */
export interface Move {
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
 * @param plan.carry takes along what is kept beside the account's rows, on a database that is spread: called in the commit of the move,
 *   before the rows are moved
 * @param plan.lockTimeoutMs how long a move waits for what somebody else holds; a second unless given
 * @param plan.again how often it comes back to accounts that had to stay, and after what time; once and for all unless given
 * @param plan.moved told of the number of accounts that were moved, now and then
 * @throws StartError while a server lives that does not look again, and while a week of calls is being archived
 */
export async function moveAccounts(
  pools: Pick<Pools, 'patient' | 'distribution'>,
  plan: {
    from: number;
    buckets: number;
    carry(transaction: Transaction, move: Move): Promise<void>;
    lockTimeoutMs?: number;
    again?: { times: number; afterMs: number };
    moved?(accounts: number): void;
  },
): Promise<AccountsMoved> {
  const { times, afterMs } = plan.again ?? { times: 0, afterMs: 0 };
  let moved = 0;
  for (let round = 0; ; round++) {
    const open: bigint[] = [];
    let last = 0n;
    for (;;) {
      const page = await pageOf(pools.patient, plan.from, last);
      for (const { id, root } of page) {
        const to = bucketOf(root, plan.buckets);
        if (to === plan.from) continue;
        if (await tryMove(pools, { id, from: plan.from, to }, plan)) moved++;
        else open.push(id);
      }
      plan.moved?.(moved);
      const [end] = page.slice(-1);
      if (end === undefined || page.length < PAGE) break;
      last = end.id;
    }
    if (open.length === 0 || round >= times) return { moved, open };
    await sleep(afterMs);
  }
}

/** Customers' accounts of a bucket in order, behind one of them, each with its root buyer. */
function pageOf(sql: Database, from: number, last: bigint): Promise<{ id: bigint; root: string }[]> {
  return sql<{ id: bigint; root: string }[]>`
    select a.id, coalesce(r.root_buyer, 'account:' || a.id) as root
    from ledger_accounts a left join root_buyers r on r.account_id = a.id
    where a.bucket = ${from} and not a.house and a.id > ${String(last)} order by a.id limit ${PAGE}`;
}

/** The bucket that the accounts of a root buyer belong to: the same for all of them, in whatever order they are moved. */
function bucketOf(root: string, buckets: number): number {
  return 1 + (createHash('sha256').update(root).digest().readUInt32BE(0) % (buckets - 1));
}

/** Moves an account in a commit of its own. @returns false, and nothing is changed, when something of it is open or held */
async function tryMove(
  { patient, distribution }: Pick<Pools, 'patient' | 'distribution'>,
  move: Move,
  {
    carry,
    lockTimeoutMs = LOCK_TIMEOUT_MS,
  }: Pick<Parameters<typeof moveAccounts>[1], 'carry' | 'lockTimeoutMs'>,
): Promise<boolean> {
  for (let begun = 0; begun < MOST_BEGUN; begun++) {
    const done = await patient
      .begin(async (transaction) => {
        if (distribution.isDistributed)
          await transaction.unsafe(`set local citus.propagate_set_commands = 'local'`);
        await transaction.unsafe(
          `set local statement_timeout = 0; set local lock_timeout = ${lockTimeoutMs}`,
        );
        if (!(await beginMove(transaction, distribution))) return 'kept';
        await assertServersLookAgain(transaction);
        await assertNoWeekLeaves(transaction);
        // Whoever closes a day reads one server after the other.
        if (distribution.isDistributed) await transaction.unsafe('lock table ledger_days_head in share mode');
        await commitAsOne(transaction, distribution);
        const isMoved = await moveAccount(transaction, { move, carry }, distribution);
        // Again: whoever seals a week holds its rows, so it was sealed before they were moved, or waits for that.
        await assertNoWeekLeaves(transaction);
        return isMoved ? 'moved' : 'open';
      })
      .catch((error: unknown) => {
        // It is tried again later, and whoever holds what is needed goes on.
        if (isLockTimeout(error) || isDeadlock(error)) return 'open' as const;
        throw error;
      });
    if (done !== 'kept') return done === 'moved';
    await sleep(BEGIN_AGAIN_MS);
  }
  return false;
}

/** A server of a version from before accounts moved remembers where one is, and does not look again. */
async function assertServersLookAgain(transaction: Transaction): Promise<void> {
  const [row] = await transaction<{ older: number }[]>`
    select count(*)::integer as older from replicas
    where ended_at is null and seen_at > now() - interval '1 minute' and not looks_again`;
  if ((row?.older ?? 0) > 0)
    throw new StartError(
      'a server of an older version runs on this database, which remembers in which bucket an account is and does not look again. Upgrade or stop it first. What was moved so far stays moved.',
    );
}

/** Rows of a week that is being archived are in files already. */
async function assertNoWeekLeaves(transaction: Transaction): Promise<void> {
  const [row] = await transaction<{ archiving: string | null }[]>`
    select min(week) as archiving from call_archives where dropped_at is null`;
  if (row?.archiving != null)
    throw new StartError(
      `the week ${row.archiving} is being archived, and its rows cannot change meanwhile. Wait until the week has left. What was moved so far stays moved.`,
    );
}

/** @returns false, and nothing is changed, when something of the account is open */
async function moveAccount(
  transaction: Transaction,
  { move, carry }: { move: Move; carry(transaction: Transaction, move: Move): Promise<void> },
  distribution: Pools['distribution'],
): Promise<boolean> {
  const { id, from, to } = move;
  const [account] = await transaction<{ pending: boolean }[]>`
    select debits_pending <> 0 or credits_pending <> 0 as pending from ledger_accounts
    where bucket = ${from} and id = ${String(id)} for update`;
  if (account === undefined || account.pending || (await hasOpen(transaction, move, distribution)))
    return false;
  if (distribution.isDistributed) await carry(transaction, move);
  // Triggers are for what happens, and nothing does.
  if (distribution.isDistributed) await transaction.unsafe(`set local session_replication_role = 'replica'`);
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

/** The condition for the transfers that go with an account, as they stand before it is moved. */
export const transfersOf = (move: Move): string => rowsOf('ledger_transfers', move);

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
