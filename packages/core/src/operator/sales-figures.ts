/** Sums of what was sold, from the days that the job `fold-sales` keeps and the calls that it has not reached. */
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
 * @param creditServices what the names of services begin with that sell credit: no sale until it is spent
 * @param notes told when the newest calls are left out
 */
export async function salesOf(
  on: Transaction,
  since: Date,
  creditServices: readonly string[],
  notes: string[],
): Promise<Record<string, unknown>> {
  const sinceDay = since.toISOString().slice(0, 10);
  const [uncounted] = await on<{ calls: bigint; calls_to: Date | null }[]>`
    select case when isfinite(calls_to) then calls_to end as calls_to, (
      select count(*) from (
        select 1 from calls where begun_at >= (select calls_to from sales_folded) limit ${UNCOUNTED_READ + 1}
      ) newest
    ) as calls from sales_folded`;
  const readsAll = (uncounted?.calls ?? 0n) <= BigInt(UNCOUNTED_READ);
  if (!readsAll) notes.push(behind('Sales', uncounted?.calls_to ?? null));
  const rows = await on<SoldRow[]>`
    with uncounted as (
      select (coalesce(finished_at, created_at) at time zone 'UTC')::date as day, service, rail, state, price_micros
      from (
        (select finished_at, created_at, service, rail, state, price_micros from calls
         where ${readsAll} and begun_at >= (select calls_to from sales_folded) limit ${UNCOUNTED_READ})
        union all
        select c.finished_at, c.created_at, c.service, c.rail, c.state, c.price_micros
        from sales_open o
        cross join lateral (select * from calls where account_id = o.account_id and id = o.id offset 0) c
      ) newest where state in (1, 2)
    )
    select to_char(day, 'YYYY-MM-DD') as day, service, rail, credit,
           sum(answered)::bigint as captured, sum(answered_micros)::bigint as captured_micros,
           sum(released)::bigint as released, sum(released_micros)::bigint as released_micros
    from (
      select day, service, rail, service ^@ any(${creditServices as string[]}::text[]) as credit,
             answered, answered_micros, released, released_micros
      from (
        select day, service, rail, answered, answered_micros, released, released_micros from sales_days
        union all
        select day, service, rail, (state = 1)::integer, case state when 1 then price_micros else 0 end,
               (state = 2)::integer, case state when 2 then price_micros else 0 end
        from uncounted
      ) of_both
      where day >= ${sinceDay}::date and answered + released > 0
    ) ended
    group by grouping sets ((day, rail, credit), (service, rail, credit))
    order by day, captured_micros desc, service, rail`;
  return salesAsJson(rows);
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
 * @param notes told when the newest transfers are left out
 */
export async function movedOf(
  on: Transaction,
  since: Date,
  notes: string[],
): Promise<{ code: string; moved: bigint; transfers: bigint }[]> {
  const from = since.toISOString();
  const [uncounted] = await on<{ transfers: bigint; transfers_to: Date | null }[]>`
    select case when isfinite(transfers_to) then transfers_to end as transfers_to, (
      select count(*) from (
        select 1 from ledger_transfers
        where code <> 'call' and created_at >= (select transfers_to from sales_folded) limit ${UNCOUNTED_READ + 1}
      ) newest
    ) as transfers from sales_folded`;
  const readsAll = (uncounted?.transfers ?? 0n) <= BigInt(UNCOUNTED_READ);
  if (!readsAll) notes.push(behind('Money moved', uncounted?.transfers_to ?? null));
  return on<{ code: string; moved: bigint; transfers: bigint }[]>`
    select code, sum(moved)::bigint as moved, sum(transfers)::bigint as transfers from (
      select code, moved_micros as moved, transfers from transfer_days where day >= ${from.slice(0, 10)}::date
      union all
      (select code, amount_micros, 1 from ledger_transfers
       where ${readsAll} and code <> 'call'
         and created_at >= greatest(${from}::timestamptz, (select transfers_to from sales_folded))
       limit ${UNCOUNTED_READ})
    ) moved group by code order by code`;
}
