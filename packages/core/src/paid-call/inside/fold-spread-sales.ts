/**
 * The count of what was sold by day, on a database that is spread over servers. Calls and transfers lie on the server of their bucket, and the
 * days on the coordinator. So each bucket has a count of how far it was counted, on the coordinator too: what is counted of a bucket, and how
 * far it goes, are one commit of the coordinator, which reads from one server a batch that nobody writes to any more.
 */
import type { PendingQuery, Row } from 'postgres';
import { arrayLiteral } from '../../db/array-literal.ts';
import type { Database, Transaction } from '../../db/connection.ts';
import type { BucketTurns } from '../../ledger/bucket-turns.ts';

/** A statement that has its time already may have no transaction number yet. Statements end within seconds. */
const UNNUMBERED_FOR = '1 minute';
/** The row that says where every bucket began: what one PostgreSQL had counted before it was spread. */
const ORIGIN = -1;

/** What ended on a day, as the days add it up. Amounts are text: JSON has no such numbers. */
export interface Ended {
  account: string;
  day: string;
  service: string;
  rail: string;
  answered: string;
  answered_micros: string;
  released: string;
  released_micros: string;
}

interface Progress {
  calls_to: string;
  transfers_to: string;
  complete_to: string;
}

/**
 * Counts what is complete, so many calls or transfers of a bucket at a time. Several processes may do it at once, and any of them may die at any
 * point.
 *
 * @throws the first failure, after the other buckets had their turn
 */
export async function foldSpreadSales(
  sql: Database,
  { turns, atOnce, stopping }: { turns: BucketTurns; atOnce: number; stopping?: AbortSignal | undefined },
): Promise<void> {
  const failures: unknown[] = [];
  for (const fold of [foldCalls, foldTransfers])
    await turns
      .each(atOnce, (bucket) => foldBucket(sql, { bucket: bucket ?? 0, atOnce, fold }), stopping)
      .catch((error: unknown) => void failures.push(error));
  // What asks whether all is counted, such as the archive of a week, asks this.
  await sql`
    update sales_folded f set calls_to = greatest(f.calls_to, b.calls_to), transfers_to = greatest(f.transfers_to, b.transfers_to)
    from (select min(calls_to) as calls_to, min(transfers_to) as transfers_to from sales_folded_buckets where bucket <> ${ORIGIN}) b
    where f.calls_to < b.calls_to or f.transfers_to < b.transfers_to`;
  if (failures.length > 0) throw failures[0];
}

interface Batch {
  bucket: number;
  atOnce: number;
  progress: Progress;
}

/** @returns how many it looked at; 0 too when another process is at it */
function foldBucket(
  sql: Database,
  { bucket, atOnce, fold }: { bucket: number; atOnce: number; fold: typeof foldCalls },
): Promise<number> {
  return sql.begin(async (transaction) => {
    // As in `sales_fold_calls`, on the bucket's server too: each row is found by its index.
    await transaction.unsafe(`
      set local citus.propagate_set_commands = 'local'; set local enable_seqscan = off;
      set local enable_hashjoin = off; set local enable_mergejoin = off`);
    const progress = await progressOf(transaction, bucket);
    return progress === null ? 0 : fold(transaction, { bucket, atOnce, progress });
  }) as Promise<number>;
}

/** Takes the bucket's turn, and moves on what is complete of it. @returns null when another process has it */
async function progressOf(transaction: Transaction, bucket: number): Promise<Progress | null> {
  await beginCount(transaction, bucket);
  const [held] = await transaction<(Progress & { marked_xid: string; marked_on: string })[]>`
    select calls_to::text, transfers_to::text, complete_to::text, marked_xid::text, marked_on::text
    from sales_folded_buckets where bucket = ${bucket} for update skip locked`;
  if (held === undefined) return null;
  const [server] = await transaction<{ oldest: string; id: string }[]>`
    select pg_snapshot_xmin(pg_current_snapshot())::text as oldest,
           (select system_identifier from pg_control_system())::text as id, ${ofServer(transaction, bucket)}`;
  if (server === undefined) throw new Error('the database returned nothing');
  const isOfServer = server.id === held.marked_on;
  // What was being written at the mark has not ended, and may not be there to see. A clock alone does not tell.
  if (isOfServer && BigInt(server.oldest) < BigInt(held.marked_xid)) return held;
  const [mark] = await transaction<{ at: string; xid: string }[]>`
    select clock_timestamp()::text as at, pg_current_xact_id()::text as xid, ${ofServer(transaction, bucket)}`;
  if (mark === undefined) throw new Error('the database returned nothing');
  const [marked] = await transaction<Progress[]>`
    update sales_folded_buckets
    set complete_to = case when ${isOfServer} then greatest(complete_to, marked_at - ${UNNUMBERED_FOR}::interval) else complete_to end,
        marked_at = ${mark.at}::text::timestamptz, marked_xid = ${mark.xid}::bigint, marked_on = ${server.id}::bigint
    where bucket = ${bucket} returning calls_to::text, transfers_to::text, complete_to::text`;
  return marked ?? null;
}

/** Notes where the count of a bucket begins, unless it has begun. */
export async function beginCount(transaction: Transaction, bucket: number): Promise<void> {
  const [known] = await transaction`select 1 from sales_folded_buckets where bucket = ${bucket}`;
  if (known !== undefined) return;
  await transaction`
    insert into sales_folded_buckets (bucket, calls_to, transfers_to)
    select ${ORIGIN}::smallint, calls_to, transfers_to from sales_folded on conflict do nothing`;
  await transaction`
    insert into sales_folded_buckets (bucket, calls_to, transfers_to)
    select ${bucket}::smallint, calls_to, transfers_to from sales_folded_buckets where bucket = ${ORIGIN} on conflict do nothing`;
}

/** The end of a query that the bucket's server answers, with one row: there is no such account. */
function ofServer(on: Transaction, bucket: number) {
  return on`count(*) from ledger_accounts where bucket = ${bucket} and id = 0`;
}

/** Adds calls to the days on which they ended, in the order in which they were begun, and those that were passed while they were open. */
async function foldCalls(transaction: Transaction, { bucket, atOnce, progress }: Batch): Promise<number> {
  const from = progress.calls_to;
  const next = (since: string, until: string, offset: number) => transaction<{ at: string }[]>`
    select begun_at::text as at from calls
    where bucket = ${bucket} and begun_at >= ${since}::text::timestamptz and begun_at < ${until}::text::timestamptz
    order by begun_at offset ${offset} limit 1`;
  const to = await endOf(transaction, { from, complete: progress.complete_to, atOnce, next });
  const passed = await passedCalls(
    transaction,
    transaction`
      bucket = ${bucket} and begun_at >= ${from}::text::timestamptz and begun_at < ${to}::text::timestamptz`,
  );
  const closed = await takeClosed(transaction, bucket);
  const open = passed.filter(({ call }) => call !== null);
  await transaction`
    insert into sales_open (bucket, account_id, id)
    select ${bucket}::smallint, account, call from jsonb_to_recordset(${JSON.stringify(open)}::text::jsonb) as o (account bigint, call uuid)
    on conflict do nothing`;
  await addEnded(transaction, [...passed.filter(({ call }) => call === null), ...closed]);
  await transaction`
    update sales_folded_buckets set calls_to = ${to}::text::timestamptz where bucket = ${bucket} and calls_to < ${to}::text::timestamptz`;
  return passed.reduce((sum, { looked }) => sum + looked, 0) + closed.length;
}

/** Calls that were looked at: those that have ended, added up, and each that is open, by its id. */
type Passed = Ended & { call: string | null; looked: number };

/** Reads calls in one snapshot, so that one that ends meanwhile is in it once. @param which the condition for them, of one bucket */
export function passedCalls(transaction: Transaction, which: PendingQuery<Row[]>): Promise<Passed[]> {
  return transaction<Passed[]>`
    select account_id::text as account, null::text as call,
           to_char(coalesce(finished_at, created_at) at time zone 'UTC', 'YYYY-MM-DD') as day, service, rail,
           (count(*) filter (where state = 1))::text as answered,
           coalesce(sum(price_micros) filter (where state = 1), 0)::text as answered_micros,
           (count(*) filter (where state = 2))::text as released,
           coalesce(sum(price_micros) filter (where state = 2), 0)::text as released_micros, count(*)::integer as looked
    from calls
    where ${which} and state in (1, 2)
    group by account_id, 3, service, rail
    union all
    select account_id::text, id::text, null, null, null, null, null, null, null, 1
    from calls
    where ${which} and state not in (1, 2)`;
}

/** Where a batch ends that begins at a time: nothing is complete behind that, or it has about so many rows. */
async function endOf(
  transaction: Transaction,
  of: {
    from: string;
    complete: string;
    atOnce: number;
    /** Finds the time of a row by its place in order. */
    next(since: string, until: string, offset: number): Promise<readonly { at: string }[]>;
  },
): Promise<string> {
  // Where the clock was put back, nothing is passed until it has caught up.
  const [bounds] = await transaction<{ until: string }[]>`
    select greatest(${of.from}::text::timestamptz, ${of.complete}::text::timestamptz)::text as until`;
  const until = bounds?.until ?? of.from;
  const [behind] = await of.next(of.from, until, of.atOnce);
  if (behind === undefined) return until;
  const [before] = await of.next(of.from, behind.at, 0);
  if (before !== undefined) return behind.at;
  // More than a batch were begun in one moment: they are taken together.
  const [later] = await transaction<{ at: string }[]>`
    select (${behind.at}::text::timestamptz + interval '1 microsecond')::text as at`;
  return later?.at ?? until;
}

/** Finds the calls that were passed while they were open and have ended, and strikes them from those. */
export async function takeClosed(transaction: Transaction, bucket: number): Promise<Ended[]> {
  await nameBucket(transaction, bucket);
  const open = await transaction<{ account_id: bigint; id: string }[]>`
    select account_id, id from sales_open where bucket = ${bucket}`;
  if (open.length === 0) return [];
  const closed = await transaction<(Ended & { call: string })[]>`
    select c.account_id::text as account, c.id::text as call,
           to_char(coalesce(c.finished_at, c.created_at) at time zone 'UTC', 'YYYY-MM-DD') as day, c.service, c.rail,
           (c.state = 1)::integer::text as answered, (case c.state when 1 then c.price_micros else 0 end)::text as answered_micros,
           (c.state = 2)::integer::text as released, (case c.state when 2 then c.price_micros else 0 end)::text as released_micros
    from unnest(${arrayLiteral(open.map(({ account_id: account }) => account))}::text::bigint[],
                ${arrayLiteral(open.map(({ id }) => id))}::text::uuid[]) as o (account_id, id)
    join calls c on c.bucket = ${bucket} and c.account_id = o.account_id and c.id = o.id
    where c.state in (1, 2)`;
  await transaction`
    delete from sales_open o using jsonb_to_recordset(${JSON.stringify(closed)}::text::jsonb) as c (account bigint, call uuid)
    where o.account_id = c.account and o.id = c.call`;
  return closed;
}

/** Notes the bucket of calls that were passed before the database was spread. */
async function nameBucket(transaction: Transaction, bucket: number): Promise<void> {
  const passed = await transaction<{ account_id: bigint }[]>`
    select distinct account_id from sales_open where bucket is null`;
  if (passed.length === 0) return;
  const here = await transaction<{ id: bigint }[]>`
    select id from ledger_accounts
    where bucket = ${bucket} and id = any(${arrayLiteral(passed.map(({ account_id: account }) => account))}::text::bigint[])`;
  await transaction`
    update sales_open set bucket = ${bucket}
    where bucket is null and account_id = any(${arrayLiteral(here.map(({ id }) => id))}::text::bigint[])`;
}

export async function addEnded(transaction: Transaction, ended: readonly Ended[]): Promise<void> {
  if (ended.length === 0) return;
  const counted = transaction`
    jsonb_to_recordset(${JSON.stringify(ended)}::text::jsonb) as c (
      account bigint, day date, service text, rail text, answered bigint, answered_micros bigint, released bigint, released_micros bigint)`;
  await transaction`
    insert into account_sales_days as s (account_id, day, service, rail, answered, answered_micros, released, released_micros)
    select account, day, service, rail, sum(answered), sum(answered_micros), sum(released), sum(released_micros)
    from ${counted} group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (account_id, day, service, rail) do update set
      answered = s.answered + excluded.answered, answered_micros = s.answered_micros + excluded.answered_micros,
      released = s.released + excluded.released, released_micros = s.released_micros + excluded.released_micros`;
  await transaction`
    insert into sales_days as s (day, service, rail, answered, answered_micros, released, released_micros)
    select day, service, rail, sum(answered), sum(answered_micros), sum(released), sum(released_micros)
    from ${counted} group by 1, 2, 3 order by 1, 2, 3
    on conflict (day, service, rail) do update set
      answered = s.answered + excluded.answered, answered_micros = s.answered_micros + excluded.answered_micros,
      released = s.released + excluded.released, released_micros = s.released_micros + excluded.released_micros`;
}

/** Adds transfers that are no calls to their days, in the order of their time; refunds of calls to what was sold as well. */
async function foldTransfers(transaction: Transaction, { bucket, atOnce, progress }: Batch): Promise<number> {
  const from = progress.transfers_to;
  const next = (since: string, until: string, offset: number) => transaction<{ at: string }[]>`
    select created_at::text as at from ledger_transfers
    where bucket = ${bucket} and code <> 'call' and created_at >= ${since}::text::timestamptz and created_at < ${until}::text::timestamptz
    order by created_at offset ${offset} limit 1`;
  const to = await endOf(transaction, { from, complete: progress.complete_to, atOnce, next });
  const moved = await transaction<{ day: string; code: string; transfers: number; micros: string }[]>`
    select to_char(created_at at time zone 'UTC', 'YYYY-MM-DD') as day, code, count(*)::integer as transfers, sum(amount_micros)::text as micros
    from ledger_transfers
    where bucket = ${bucket} and code <> 'call' and created_at >= ${from}::text::timestamptz and created_at < ${to}::text::timestamptz
    group by 1, 2`;
  if (moved.length > 0) {
    await transaction`
      insert into transfer_days as d (day, code, transfers, moved_micros)
      select day, code, transfers, micros
      from jsonb_to_recordset(${JSON.stringify(moved)}::text::jsonb) as m (day date, code text, transfers bigint, micros bigint)
      order by 1, 2
      on conflict (day, code) do update set
        transfers = d.transfers + excluded.transfers, moved_micros = d.moved_micros + excluded.moved_micros`;
    await addRefunded(transaction, { bucket, from, to });
  }
  await transaction`
    update sales_folded_buckets set transfers_to = ${to}::text::timestamptz
    where bucket = ${bucket} and transfers_to < ${to}::text::timestamptz`;
  return moved.reduce((sum, { transfers }) => sum + transfers, 0);
}

/**
 * Adds refunds of calls to what was sold.
 *
 * @param which.of of one account alone
 * @param which.sign -1: takes them out again
 */
export async function addRefunded(
  transaction: Transaction,
  {
    bucket,
    from,
    to,
    of,
    sign = 1,
  }: { bucket: number; from: string; to: string; of?: bigint; sign?: number },
): Promise<void> {
  const ofAccount = of === undefined ? transaction`` : transaction`and account_id = ${String(of)}`;
  const refunds = await transaction<
    { account: string; id: string; code: string; micros: string; note: string | null; day: string }[]
  >`
    select account_id::text as account, id::text, code, amount_micros::text as micros, note,
           to_char(created_at at time zone 'UTC', 'YYYY-MM-DD') as day
    from ledger_transfers
    where bucket = ${bucket} ${ofAccount} and code in ('call_refund', 'operator_refund', 'onchain_refund')
      and created_at >= ${from}::text::timestamptz and created_at < ${to}::text::timestamptz`;
  if (refunds.length === 0) return;
  const named = await transaction<{ account: string; call: string; micros: string; day: string }[]>`
    select r.account::text, r.call::text, r.micros::text, r.day from (
      select account, micros, day, case code when 'operator_refund' then (
               select a.call_id from operator_acts a where a.transfer_id = t.id and a.account_id = t.account limit 1
             ) else substring(note from '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid end as call
      from jsonb_to_recordset(${JSON.stringify(refunds)}::text::jsonb)
        as t (account bigint, id uuid, code text, micros bigint, note text, day text)
    ) r where r.call is not null`;
  const refunded = await transaction`
    select r.account::text, r.day, c.service, c.rail, (${sign}::integer * count(*))::text as refunded, (${sign}::integer * sum(r.micros))::text as micros
    from jsonb_to_recordset(${JSON.stringify(named)}::text::jsonb) as r (account bigint, call uuid, micros bigint, day text)
    join calls c on c.bucket = ${bucket} and c.account_id = r.account and c.id = r.call
    group by 1, 2, 3, 4`;
  const counted = transaction`
    jsonb_to_recordset(${JSON.stringify(refunded)}::text::jsonb)
      as r (account bigint, day date, service text, rail text, refunded bigint, micros bigint)`;
  await transaction`
    insert into account_sales_days as s (account_id, day, service, rail, refunded, refunded_micros)
    select account, day, service, rail, refunded, micros from ${counted} order by 1, 2, 3, 4
    on conflict (account_id, day, service, rail) do update set
      refunded = s.refunded + excluded.refunded, refunded_micros = s.refunded_micros + excluded.refunded_micros`;
  await transaction`
    insert into sales_days as s (day, service, rail, refunded, refunded_micros)
    select day, service, rail, sum(refunded), sum(micros) from ${counted} group by 1, 2, 3 order by 1, 2, 3
    on conflict (day, service, rail) do update set
      refunded = s.refunded + excluded.refunded, refunded_micros = s.refunded_micros + excluded.refunded_micros`;
}
