/** Sums of what was sold, from the days that the job `fold-sales` keeps and the calls that it has not reached. */
import type { PendingQuery, Row } from 'postgres';
import type { Transaction } from '../db/connection.ts';
import { microsToUsd } from '../ledger/money.ts';

/**
 * The most calls, or transfers, that are read beside the days: more have come since than the job counts in a minute, so the
 * page says up to when it counted.
 */
const UNCOUNTED_READ = 20_000;

/** A note for the reader of the page that the newest are left out. */
function behind(what: string, to: Date | null): string {
  const since = to === null ? '' : ` since ${to.toISOString()}`;
  return `${what}: so many came${since} that they are not added up yet. The job fold-sales adds them.`;
}

interface SoldRow {
  day: string | null;
  service: string | null;
  rail: string;
  credit: boolean;
  captured: bigint;
  captured_micros: bigint;
  released: bigint;
  released_micros: bigint;
}

/**
 * Reads what was sold since a day, that day among it. A call counts for the day on which it ended.
 *
 * @param of.creditServices what the names of services begin with that sell credit: no sale until it is spent
 * @param of.notes told when the newest calls are left out
 * @param of.isSpread whether the database is spread over servers; not given: it is not
 */
export async function salesOf(
  on: Transaction,
  since: Date,
  {
    creditServices,
    notes,
    isSpread = false,
  }: { creditServices: readonly string[]; notes: string[]; isSpread?: boolean },
): Promise<Record<string, unknown>> {
  const sinceDay = since.toISOString().slice(0, 10);
  const { uncounted, countedTo } = await (isSpread ? uncountedOfBuckets(on) : uncountedOfOne(on));
  if (countedTo !== undefined) notes.push(behind('Sales', countedTo));
  const rows = await on<SoldRow[]>`
    select to_char(day, 'YYYY-MM-DD') as day, service, rail, credit,
           sum(answered)::bigint as captured, sum(answered_micros)::bigint as captured_micros,
           sum(released)::bigint as released, sum(released_micros)::bigint as released_micros
    from (
      select day, service, rail, service ^@ any(${creditServices as string[]}::text[]) as credit,
             answered, answered_micros, released, released_micros
      from (
        select day, service, rail, answered, answered_micros, released, released_micros from sales_days
        union all
        ${uncounted}
      ) of_both
      where day >= ${sinceDay}::date and answered + released > 0
    ) ended
    group by grouping sets ((day, rail, credit), (service, rail, credit))
    order by day, captured_micros desc, service, rail`;
  return salesAsJson(rows);
}

/** Calls that the days have not got yet, as rows like theirs. */
interface Uncounted {
  uncounted: PendingQuery<Row[]>;
  /** Where they are too many: the time up to which the days have them. Not there: they are all read. */
  countedTo?: Date | null;
}

async function uncountedOfOne(on: Transaction): Promise<Uncounted> {
  const [newest] = await on<{ calls: bigint; calls_to: Date | null }[]>`
    select case when isfinite(calls_to) then calls_to end as calls_to, (
      select count(*) from (
        select 1 from calls where begun_at >= (select calls_to from sales_folded) limit ${UNCOUNTED_READ + 1}
      ) newest
    ) as calls from sales_folded`;
  const readsAll = (newest?.calls ?? 0n) <= BigInt(UNCOUNTED_READ);
  const uncounted = on`
    select day, service, rail, (state = 1)::integer, case state when 1 then price_micros else 0 end,
           (state = 2)::integer, case state when 2 then price_micros else 0 end
    from (
      select (coalesce(finished_at, created_at) at time zone 'UTC')::date as day, service, rail, state, price_micros
      from (
        (select finished_at, created_at, service, rail, state, price_micros from calls
         where ${readsAll} and begun_at >= (select calls_to from sales_folded) limit ${UNCOUNTED_READ})
        union all
        select c.finished_at, c.created_at, c.service, c.rail, c.state, c.price_micros
        from sales_open o
        cross join lateral (select * from calls where account_id = o.account_id and id = o.id offset 0) c
      ) newest where state in (1, 2)
    ) uncounted`;
  return readsAll ? { uncounted } : { uncounted, countedTo: newest?.calls_to ?? null };
}

function salesAsJson(rows: readonly SoldRow[]): Record<string, unknown> {
  const sold = rows.filter(({ credit }) => !credit);
  const byService = sold.filter(({ day }) => day === null);
  const creditSold = rows.filter(({ day, credit }) => day === null && credit);
  const sum = (pick: (row: SoldRow) => bigint, of = byService) =>
    of.reduce((total, row) => total + pick(row), 0n);
  const line = (row: SoldRow) => ({
    rail: row.rail,
    calls: Number(row.captured),
    capturedUsd: microsToUsd(row.captured_micros),
    released: Number(row.released),
    releasedUsd: microsToUsd(row.released_micros),
  });
  return {
    calls: Number(sum(({ captured }) => captured)),
    capturedUsd: microsToUsd(sum(({ captured_micros: micros }) => micros)),
    released: Number(sum(({ released }) => released)),
    releasedUsd: microsToUsd(sum(({ released_micros: micros }) => micros)),
    creditSoldOnChainsUsd: microsToUsd(sum(({ captured_micros: micros }) => micros, creditSold)),
    byDay: sold.flatMap((row) => (row.day === null ? [] : [{ day: row.day, ...line(row) }])),
    byService: byService.map((row) => ({ service: row.service, ...line(row) })),
  };
}

/**
 * Reads what moved since a day beside calls, by the code of the transfer.
 *
 * @param of.notes told when the newest transfers are left out
 * @param of.isSpread whether the database is spread over servers; not given: it is not
 */
export async function movedOf(
  on: Transaction,
  since: Date,
  { notes, isSpread = false }: { notes: string[]; isSpread?: boolean },
): Promise<{ code: string; moved: bigint; transfers: bigint }[]> {
  const from = since.toISOString();
  const { uncounted, countedTo } = await (isSpread ? movedInBuckets(on, from) : movedUncounted(on, from));
  if (countedTo !== undefined) notes.push(behind('Money moved', countedTo));
  return on<{ code: string; moved: bigint; transfers: bigint }[]>`
    select code, sum(moved)::bigint as moved, sum(transfers)::bigint as transfers from (
      select code, moved_micros as moved, transfers from transfer_days where day >= ${from.slice(0, 10)}::date
      union all
      ${uncounted}
    ) moved group by code order by code`;
}

async function movedUncounted(on: Transaction, from: string): Promise<Uncounted> {
  const [newest] = await on<{ transfers: bigint; transfers_to: Date | null }[]>`
    select case when isfinite(transfers_to) then transfers_to end as transfers_to, (
      select count(*) from (
        select 1 from ledger_transfers
        where code <> 'call' and created_at >= (select transfers_to from sales_folded) limit ${UNCOUNTED_READ + 1}
      ) newest
    ) as transfers from sales_folded`;
  const readsAll = (newest?.transfers ?? 0n) <= BigInt(UNCOUNTED_READ);
  const uncounted = on`
    (select code, amount_micros, 1 from ledger_transfers
     where ${readsAll} and code <> 'call'
       and created_at >= greatest(${from}::timestamptz, (select transfers_to from sales_folded))
     limit ${UNCOUNTED_READ})`;
  return readsAll ? { uncounted } : { uncounted, countedTo: newest?.transfers_to ?? null };
}

/** How far the count of each bucket has come, and where one began that has no count yet. Times are text, which has microseconds. */
interface Counts {
  buckets: string;
  to: string;
  /** Where a bucket without a count began. */
  origin: string;
  /** The least of all of them, by which an index is looked up. */
  least: string;
  leastAt: Date | null;
}

async function countsOf(on: Transaction, column: 'calls_to' | 'transfers_to'): Promise<Counts> {
  const [row] = await on<
    { buckets: string; to: string; origin: string; least: string; least_at: Date | null }[]
  >`
    select coalesce(array_agg(bucket) filter (where bucket >= 0), '{}')::text as buckets,
           coalesce(array_agg(${on(column)}) filter (where bucket >= 0), '{}')::text as to,
           coalesce(min(${on(column)}) filter (where bucket < 0), (select ${on(column)} from sales_folded))::text as origin,
           coalesce(min(${on(column)}) filter (where bucket >= 0), (select ${on(column)} from sales_folded))::text as least,
           min(${on(column)}) filter (where bucket >= 0 and isfinite(${on(column)})) as least_at
    from sales_folded_buckets`;
  if (row === undefined) throw new Error('the database returned nothing');
  const { least_at: leastAt, ...counts } = row;
  return { ...counts, leastAt };
}

/** How far the count of a row's bucket has come. */
function countedTo(on: Transaction, { buckets, to, origin }: Counts, bucket: PendingQuery<Row[]>) {
  return on`coalesce((${to}::text::timestamptz[])[array_position(${buckets}::text::smallint[], ${bucket})], ${origin}::text::timestamptz)`;
}

/**
 * The calls that each bucket's days have not got yet, added up by the servers that have them. How far the days go stands in the snapshot in which
 * they are read, so a call that is being counted meanwhile is in one of the two.
 */
async function uncountedOfBuckets(on: Transaction): Promise<Uncounted> {
  const counts = await countsOf(on, 'calls_to');
  const newest = on`
    from calls c where c.begun_at >= ${counts.least}::text::timestamptz and c.begun_at >= ${countedTo(on, counts, on`c.bucket`)}`;
  const [row] = await on<{ calls: bigint }[]>`
    select count(*) as calls from (select 1 ${newest} limit ${UNCOUNTED_READ + 1}) newest`;
  const readsAll = (row?.calls ?? 0n) <= BigInt(UNCOUNTED_READ);
  const ended = (of: PendingQuery<Row[]>) => on`
    select to_char(coalesce(c.finished_at, c.created_at) at time zone 'UTC', 'YYYY-MM-DD') as day, c.service, c.rail,
           (count(*) filter (where c.state = 1))::text as answered,
           coalesce(sum(c.price_micros) filter (where c.state = 1), 0)::text as answered_micros,
           (count(*) filter (where c.state = 2))::text as released,
           coalesce(sum(c.price_micros) filter (where c.state = 2), 0)::text as released_micros
    ${of} and c.state in (1, 2) group by 1, 2, 3`;
  // Sent to the servers: they look each up by its key.
  const wereOpen = on`
    with left_open as materialized (select account_id, id from sales_open)
    ${ended(on`from calls c join left_open o on o.account_id = c.account_id and o.id = c.id where true`)}`;
  const rows = [...(readsAll ? await ended(newest) : []), ...(await wereOpen)];
  const uncounted = on`
    select * from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as u (
      day date, service text, rail text, answered bigint, answered_micros bigint, released bigint, released_micros bigint)`;
  return readsAll ? { uncounted } : { uncounted, countedTo: counts.leastAt };
}

/** The same of transfers beside calls. */
async function movedInBuckets(on: Transaction, from: string): Promise<Uncounted> {
  const counts = await countsOf(on, 'transfers_to');
  const newest = on`
    from ledger_transfers t
    where t.code <> 'call' and t.created_at >= greatest(${from}::timestamptz, ${counts.least}::text::timestamptz)
      and t.created_at >= ${countedTo(on, counts, on`t.bucket`)}`;
  const [row] = await on<{ transfers: bigint }[]>`
    select count(*) as transfers from (select 1 ${newest} limit ${UNCOUNTED_READ + 1}) newest`;
  const readsAll = (row?.transfers ?? 0n) <= BigInt(UNCOUNTED_READ);
  const rows = readsAll
    ? await on`select t.code, sum(t.amount_micros)::text as moved, count(*)::text as transfers ${newest} group by t.code`
    : [];
  const uncounted = on`
    select * from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as u (code text, moved bigint, transfers bigint)`;
  return readsAll ? { uncounted } : { uncounted, countedTo: counts.leastAt };
}
