/**
 * The proof of what stands in archives, for `npm run books`: each file is what was written, its rows are what the books carry of them,
 * and the days that its transfers were made on are what they were closed with, hash for hash.
 */
import { join } from 'node:path';
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import { isDistributed } from '../db/distribution.ts';
import { sqlFunction } from '../db/functions.ts';
import { BY_TIME } from '../ledger/spread-books.ts';
import { type ArchiveRow, readArchiveFile, sha256OfFile } from './archive-file.ts';
import { addUp, NO_ROWS, type Sums } from './week-rows.ts';

export interface ArchiveCheck {
  name: string;
  ok: boolean;
  finding: string | null;
}

interface Archive {
  week: string;
  calls_file: string;
  calls_sha256: Buffer;
  transfers_file: string;
  transfers_sha256: Buffer;
  captured: bigint;
  released: bigint;
  calls_micros: string;
  transfers: bigint;
  transfers_micros: string;
}

/**
 * Reads all archives, the oldest first. It takes as long as the files are long, and room in the database for the transfers of two weeks.
 *
 * @param folder HISTORY_FOLDER; null: it is not set, which is found wrong where there are archives
 * @returns a check for each week that has left the database
 */
export async function proveArchives(patient: Database, folder: string | null): Promise<ArchiveCheck[]> {
  const archives = await patient<Archive[]>`
    select week, calls_file, calls_sha256, transfers_file, transfers_sha256, captured, released, calls_micros::text,
           transfers, transfers_micros::text
    from call_archives where dropped_at is not null order by week`;
  if (archives.length === 0) return [];
  return patient.begin(async (transaction) => {
    // One snapshot: what is in files and what is in tables are of the same moment.
    await transaction`set transaction isolation level repeatable read`;
    if (await isDistributed(transaction)) await transaction.unsafe(BY_TIME);
    await transaction.unsafe(`
      create temporary table archived_transfers (
        week text, account_id bigint, id uuid, phase smallint, debit_account bigint, credit_account bigint, amount_micros bigint,
        reserved_micros bigint, code text, note text, created_at timestamptz
      ) on commit drop;
      create index on archived_transfers using brin (created_at);
      create temporary table archived_calls (
        week text, account_id bigint, key_id bigint, service text, day date, price_micros bigint
      ) on commit drop`);
    const checks: ArchiveCheck[] = [];
    let before: string | null = null;
    for (const archive of archives) {
      const finding =
        folder === null
          ? 'HISTORY_FOLDER is not set'
          : await findingOf(transaction, archive, before, folder).catch(unreadable);
      checks.push({
        name: `the archive of the week ${archive.week} holds what left the database`,
        ok: finding === null,
        finding,
      });
      before = archive.week;
    }
    return checks;
  });
}

function unreadable(error: unknown): string {
  // What the database says about a row of a file leaves its transaction good for nothing.
  if (error instanceof Error && !('severity' in error)) return `it cannot be read: ${error.message}`;
  throw error;
}

async function findingOf(
  transaction: Transaction,
  archive: Archive,
  before: string | null,
  folder: string,
): Promise<string | null> {
  const { week } = archive;
  const paths = { calls: join(folder, archive.calls_file), transfers: join(folder, archive.transfers_file) };
  if (!(await sha256OfFile(paths.calls)).equals(archive.calls_sha256))
    return `${archive.calls_file} was changed: its SHA-256 is another`;
  if (!(await sha256OfFile(paths.transfers)).equals(archive.transfers_sha256))
    return `${archive.transfers_file} was changed: its SHA-256 is another`;
  await transaction`delete from archived_transfers where week <> ${before ?? ''}`;
  await transaction`delete from archived_calls`;
  const calls = await load(paths.calls, (rows) => loadCalls(transaction, week, rows));
  const transfers = await load(paths.transfers, (rows) => loadTransfers(transaction, week, rows));
  if (
    calls.captured !== archive.captured ||
    calls.released !== archive.released ||
    calls.micros !== BigInt(archive.calls_micros) ||
    transfers.rows !== archive.transfers ||
    transfers.micros !== BigInt(archive.transfers_micros)
  )
    return 'its rows do not add up to what was noted of them';
  return (
    (await wrongCarried(transaction, week)) ??
    (await wrongCalls(transaction, week)) ??
    (await wrongDay(transaction, week))
  );
}

async function load(path: string, take: (rows: readonly ArchiveRow[]) => Promise<void>): Promise<Sums> {
  let sums = NO_ROWS;
  for await (const rows of readArchiveFile(path)) {
    await take(rows);
    sums = addUp(sums, rows);
  }
  return sums;
}

const texts = (rows: readonly ArchiveRow[], name: string) =>
  arrayLiteral(rows.map((row) => textOf(row[name])));

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint' || typeof value === 'number') return String(value);
  throw new Error('an archive holds a value of another type');
}

async function loadTransfers(
  transaction: Transaction,
  week: string,
  rows: readonly ArchiveRow[],
): Promise<void> {
  await transaction`
    insert into archived_transfers
    select ${week}, account, id, phase, debit, credit, amount, reserved, code, note,
           timestamptz 'epoch' + (made / 1000000) * interval '1 second' + (made % 1000000) * interval '1 microsecond'
    from unnest(
      ${texts(rows, 'account_id')}::text::bigint[], ${texts(rows, 'id')}::text::uuid[],
      ${texts(rows, 'phase')}::text::smallint[], ${texts(rows, 'debit_account')}::text::bigint[],
      ${texts(rows, 'credit_account')}::text::bigint[], ${texts(rows, 'amount_micros')}::text::bigint[],
      ${texts(rows, 'reserved_micros')}::text::bigint[], ${texts(rows, 'code')}::text::text[],
      ${texts(rows, 'note')}::text::text[], ${texts(rows, 'created_at')}::text::bigint[]
    ) as x (account, id, phase, debit, credit, amount, reserved, code, note, made)`;
}

async function loadCalls(transaction: Transaction, week: string, rows: readonly ArchiveRow[]): Promise<void> {
  const captured = rows.filter(({ state }) => state === 1);
  await transaction`
    insert into archived_calls
    select ${week}, account, coalesce(key, 0), service,
           ((timestamptz 'epoch' + (ended / 1000000) * interval '1 second') at time zone 'UTC')::date, price
    from unnest(
      ${texts(captured, 'account_id')}::text::bigint[], ${texts(captured, 'key_id')}::text::bigint[],
      ${texts(captured, 'service')}::text::text[], ${texts(captured, 'finished_at')}::text::bigint[],
      ${texts(captured, 'price_micros')}::text::bigint[]
    ) as x (account, key, service, ended, price)`;
}

async function wrongCarried(transaction: Transaction, week: string): Promise<string | null> {
  const [wrong] = await transaction<{ day: string; account_id: bigint }[]>`
    select to_char(coalesce(c.day, f.day), 'YYYY-MM-DD') as day, coalesce(c.account_id, f.account) as account_id
    from (select * from ledger_carried where week = ${week}) c
    full join (
      select (t.created_at at time zone 'UTC')::date as day, s.account, count(*) filter (where s.account = t.account_id) as transfers,
             coalesce(sum(p.pending) filter (where s.debit), 0) as dp, coalesce(sum(p.posted) filter (where s.debit), 0) as d,
             coalesce(sum(p.pending) filter (where not s.debit), 0) as cp,
             coalesce(sum(p.posted) filter (where not s.debit), 0) as c
      from archived_transfers t
      cross join lateral (values (t.debit_account, true), (t.credit_account, false)) as s (account, debit)
      cross join lateral (select
        case t.phase when 2 then t.amount_micros when 3 then -coalesce(t.reserved_micros, t.amount_micros)
          when 4 then -t.amount_micros else 0 end as pending,
        case when t.phase in (1, 3) then t.amount_micros else 0 end as posted) p
      where t.week = ${week} group by 1, 2
    ) f on f.day = c.day and f.account = c.account_id
    where (c.transfers, c.debits_pending, c.debits_posted, c.credits_pending, c.credits_posted)
      is distinct from (f.transfers, f.dp, f.d, f.cp, f.c) limit 1`;
  return wrong === undefined
    ? null
    : `its transfers do not say what is carried for account ${wrong.account_id} on ${wrong.day}`;
}

async function wrongCalls(transaction: Transaction, week: string): Promise<string | null> {
  const [wrong] = await transaction<{ account_id: bigint; service: string }[]>`
    select coalesce(c.account_id, f.account_id) as account_id, coalesce(c.service, f.service) as service
    from (select * from calls_carried where week = ${week}) c
    full join (
      select account_id, key_id, service, day, count(*) as calls, count(*) filter (where price_micros > 0) as charged,
             sum(price_micros) as spent
      from archived_calls group by 1, 2, 3, 4
    ) f on f.account_id = c.account_id and f.key_id = c.key_id and f.service = c.service and f.day = c.day
    where (c.calls, c.charged, c.spent_micros) is distinct from (f.calls, f.charged, f.spent) limit 1`;
  return wrong === undefined
    ? null
    : `its calls do not say what is carried for account ${wrong.account_id} and ${wrong.service}`;
}

/** The days of the week itself: what was made on them and stands in files is of this week and the one before, which are both loaded. */
async function wrongDay(transaction: Transaction, week: string): Promise<string | null> {
  const [wrong] = await transaction<{ day: string }[]>`
    select to_char(d.day, 'YYYY-MM-DD') as day from ledger_days d
    cross join lateral (
      select * from ${transaction(sqlFunction('ledger_day_transfers'))}(d.day, d.released_apart, 'archived_transfers')
      where not d.by_account
      union all
      select * from ${transaction(sqlFunction('ledger_day_transfers_apart'))}(d.day, 'archived_transfers') where d.by_account
    ) t
    where d.day >= to_date(${week.slice(1)}, 'YYYYMMDD') and d.day < to_date(${week.slice(1)}, 'YYYYMMDD') + 7
      and (t.transfers <> d.transfers or t.digest <> d.transfers_digest) order by d.day limit 1`;
  return wrong === undefined
    ? null
    : `with its transfers, the closed day ${wrong.day} is not what it was closed with`;
}
