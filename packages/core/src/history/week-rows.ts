/** The rows of a week that stay in the database, and those that leave it for files. */
import type { Database, Transaction } from '../db/connection.ts';
import { isDistributed, SPREAD_LIKE } from '../db/distribution.ts';
import { sqlFunction } from '../db/functions.ts';
import type { Week } from '../db/weeks.ts';
import type { ArchiveColumn, ArchiveRow } from './archive-file.ts';

/** Rows of a group of a file, which are in memory at once. */
const ROWS_AT_ONCE = 10_000;

/** The tables of a week. What is to stay stands in `…_kept` before the week leaves. */
export function tablesOf({ name }: Pick<Week, 'name'>) {
  const calls = `calls_${name}`;
  const transfers = `ledger_transfers_${name}`;
  const kept = { calls: `${calls}_kept`, transfers: `${transfers}_kept` };
  return { calls, transfers, answers: `call_answers_${name}`, kept };
}

const column = (name: string, type: ArchiveColumn['type'], nullable = false): ArchiveColumn => ({
  name,
  type,
  nullable,
});

/** A file lies where no erasure of a person's data comes by: it holds no Idempotency-Key, and nothing of what was asked. */
export const CALL_COLUMNS: readonly ArchiveColumn[] = [
  column('account_id', 'bigint'),
  column('id', 'uuid'),
  column('key_id', 'bigint', true),
  column('price_micros', 'bigint'),
  column('reserved_micros', 'bigint', true),
  column('created_at', 'time'),
  column('finished_at', 'time', true),
  column('begun_at', 'time', true),
  column('state', 'integer'),
  column('rail', 'text'),
  column('service', 'text'),
  column('outcome', 'text', true),
];

/** The bucket that a row was in when it left, on a database that is spread. */
export const BUCKET_COLUMN = column('bucket', 'integer');

export const TRANSFER_COLUMNS: readonly ArchiveColumn[] = [
  column('account_id', 'bigint'),
  column('id', 'uuid'),
  column('phase', 'integer'),
  column('debit_account', 'bigint'),
  column('credit_account', 'bigint'),
  column('amount_micros', 'bigint'),
  column('reserved_micros', 'bigint', true),
  column('created_at', 'time'),
  column('code', 'text'),
  column('note', 'text', true),
];

/** How a column is selected, as the file holds it. */
function selected({ name, type }: ArchiveColumn): string {
  if (type === 'time') return `(extract(epoch from ${name}) * 1000000)::bigint as ${name}`;
  return type === 'uuid' ? `${name}::text` : name;
}

/**
 * Puts aside the rows of a sealed week that stay, once more if they were before: calls that something else names, that a chain
 * paid, or whose price went elsewhere than to the revenue of credits, with their transfers; and transfers that are no call's, so
 * that no cause is ever applied twice.
 */
export async function keepRows(transaction: Transaction, week: Week): Promise<void> {
  const { calls, transfers, kept } = tablesOf(week);
  await transaction.unsafe(`
    drop table if exists ${kept.calls}, ${kept.transfers};
    create table ${kept.calls} (like ${calls} including all) with (fillfactor = 100);
    create table ${kept.transfers} (like ${transfers} including all) with (fillfactor = 100)`);
  if (await isDistributed(transaction))
    for (const table of [kept.calls, kept.transfers])
      await transaction`select create_distributed_table(${table}, 'bucket', colocate_with => ${SPREAD_LIKE})`;
  const callColumns = await storedColumns(transaction, calls);
  await transaction.unsafe(`
    with named as materialized (select account_id, id from ${sqlFunction('calls_named')}('${week.from}', '${week.to}'))
    insert into ${kept.calls} (${callColumns}) select ${callColumns} from ${calls} c
    where c.account_id < 1000 or c.rail <> 'credits' or c.shared or c.service = 'instant-api-key' or c.service like 'credits/topup/%'
      or (c.account_id, c.id) in (select account_id, id from named)
      or c.state = 2 and (c.created_at at time zone 'UTC')::date = (c.finished_at at time zone 'UTC')::date
        -- Its day was closed without it. It stayed because something named it then.
        and (c.created_at at time zone 'UTC')::date in (select day from ledger_days where released_apart)
      or exists (select 1 from ${transfers} t where t.bucket = c.bucket and t.account_id = c.account_id and t.id = c.id
        and (t.code <> 'call' or t.debit_account <> c.account_id or t.credit_account <> 1))`);
  await keepTransfers(transaction, week);
}

/** Puts aside the transfers that stay, and are not yet put aside. */
export async function keepTransfers(transaction: Transaction, week: Week): Promise<void> {
  const { transfers, kept } = tablesOf(week);
  const columns = await storedColumns(transaction, transfers);
  await transaction.unsafe(`
    insert into ${kept.transfers} (${columns}) select ${columns} from ${transfers} t
    where (t.code <> 'call' or exists (select 1 from ${kept.calls} k where k.bucket = t.bucket and k.account_id = t.account_id and k.id = t.id))
      and not exists (
        select 1 from ${kept.transfers} k
        where k.bucket = t.bucket and k.account_id = t.account_id and k.id = t.id and k.resolves = t.resolves)`);
}

/** Takes from the calls that stay what an erasure has taken from them since they were put aside. */
export async function keepErasures(transaction: Transaction, week: Week): Promise<void> {
  const { calls, kept } = tablesOf(week);
  await transaction.unsafe(`
    update ${kept.calls} k set identity = c.identity, fingerprint = c.fingerprint from ${calls} c
    where c.bucket = k.bucket and c.account_id = k.account_id and c.id = k.id
      and (c.identity, c.fingerprint) is distinct from (k.identity, k.fingerprint)`);
}

async function storedColumns(transaction: Transaction, table: string): Promise<string> {
  const columns = await transaction<{ name: string }[]>`
    select quote_ident(attname) as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`;
  return columns.map(({ name }) => name).join(', ');
}

/**
 * Which rows of a table `t` leave. A transfer that is no call's stays, and comes to a sealed week too: what is put aside need not have it yet.
 */
function leaving(which: 'calls' | 'transfers', kept: string): string {
  const ofCalls = which === 'calls' ? '' : "t.code = 'call' and ";
  return `${ofCalls}not exists (select 1 from ${kept} k where k.bucket = t.bucket and k.account_id = t.account_id and k.id = t.id)`;
}

export interface RowsToWrite {
  which: 'calls' | 'transfers';
  columns: readonly ArchiveColumn[];
  /** The parts of a database that is spread, as conditions: one server's after the other, or all would sort for each group. */
  parts: readonly string[];
  /** Called with each group, such as to renew a lease. */
  each(): Promise<void>;
}

/** Reads the rows that leave, part by part and in the order of their keys, a group at a time. */
export async function* leavingRows(
  sql: Database,
  week: Week,
  { parts, ...of }: RowsToWrite,
): AsyncGenerator<readonly ArchiveRow[]> {
  for (const part of parts) yield* rowsOfPart(sql, week, { ...of, part });
}

async function* rowsOfPart(
  sql: Database,
  week: Week,
  { which, columns, part, each }: Omit<RowsToWrite, 'parts'> & { part: string },
): AsyncGenerator<readonly ArchiveRow[]> {
  const tables = tablesOf(week);
  const key = which === 'calls' ? 'account_id, id' : 'account_id, id, resolves';
  // The place of a row in this order, as a literal.
  const place = `format('(%s, %L${which === 'calls' ? '' : ', %L'})', ${key}) as place`;
  const list = [...columns.map(selected), place].join(', ');
  let after = '';
  for (;;) {
    await each();
    const rows = await sql.unsafe<(ArchiveRow & { place: string })[]>(`
      select ${list} from ${tables[which]} t
      where ${part} and ${leaving(which, tables.kept[which])} ${after}
      order by ${key.replaceAll(/\w+/g, 't.$&')} limit ${ROWS_AT_ONCE}`);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = `and (${key.replaceAll(/\w+/g, 't.$&')}) > ${last.place}`;
  }
}

/** What rows add up to. */
export interface Sums {
  rows: bigint;
  captured: bigint;
  released: bigint;
  micros: bigint;
}

/** Adds rows of a file up: the prices of captured calls, or the amounts of transfers. */
export function addUp(sums: Sums, rows: readonly ArchiveRow[]): Sums {
  const { rows: count, captured, released, micros } = sums;
  const counted = (state: number) => BigInt(rows.filter((row) => row.state === state).length);
  const moved = rows.map(({ state, price_micros: price, amount_micros: amount }) =>
    state === undefined ? amount : state === 1 ? price : 0n,
  );
  return {
    rows: count + BigInt(rows.length),
    captured: captured + counted(1),
    released: released + counted(2),
    micros: moved.reduce<bigint>((sum, each) => sum + (typeof each === 'bigint' ? each : 0n), micros),
  };
}

export const NO_ROWS: Sums = { rows: 0n, captured: 0n, released: 0n, micros: 0n };

/** What the rows that leave add up to, by the database. */
export async function sumsLeaving(sql: Database, week: Week): Promise<Record<'calls' | 'transfers', Sums>> {
  const { calls, transfers, kept } = tablesOf(week);
  const from = (which: 'calls' | 'transfers', table: string) =>
    `from ${table} t where ${leaving(which, kept[which])}`;
  const [ofCalls] = await sql.unsafe<{ rows: bigint; captured: bigint; released: bigint; micros: string }[]>(`
    select count(*) as rows, count(*) filter (where state = 1) as captured, count(*) filter (where state = 2) as released,
           coalesce(sum(price_micros) filter (where state = 1), 0)::text as micros ${from('calls', calls)}`);
  const [ofTransfers] = await sql.unsafe<{ rows: bigint; micros: string }[]>(`
    select count(*) as rows, coalesce(sum(amount_micros), 0)::text as micros ${from('transfers', transfers)}`);
  return {
    calls: { ...NO_ROWS, ...ofCalls, micros: BigInt(ofCalls?.micros ?? 0) },
    transfers: { ...NO_ROWS, ...ofTransfers, micros: BigInt(ofTransfers?.micros ?? 0) },
  };
}
