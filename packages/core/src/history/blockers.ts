/** Why a week of calls cannot be archived yet. */
import type { Database } from '../db/connection.ts';
import { sqlFunction } from '../db/functions.ts';
import type { Week } from '../db/weeks.ts';
import { tablesOf } from './week-rows.ts';

/** @returns the first thing that it waits for, in words; null: nothing */
export async function blockerOf(patient: Database, week: Week): Promise<string | null> {
  const { calls, transfers, answers } = tablesOf(week);
  const within = (column: string) => `${column} >= '${week.from}' and ${column} < '${week.to}'`;
  const blockers: readonly (readonly [because: string, query: string])[] = [
    ['a call of it is open', `select 1 from ${calls} where state not in (1, 2)`],
    [
      'a transfer of it is pending',
      `select 1 from ${transfers} t where t.phase = 2 and not exists (
         select 1 from ${transfers} e where e.account_id = t.account_id and e.id = t.id and e.resolves)`,
    ],
    ['an answer of it is kept', `select 1 from ${answers}`],
    [
      'money of one of its calls is on its way back',
      `select 1 from refunds where state = 0 and ${within('call_id')}
       union all select 1 from undelivered_calls where ${within('call_id')}`,
    ],
    [
      'a payment of it is not final',
      `select 1 from settlements where state in (0, 3) and ${within('call_id')}`,
    ],
    [
      'its days of the books are not closed',
      `select 1 from ledger_days_head h where exists (
         select 1 from ${transfers} where created_at >= coalesce(h.open_day::timestamp at time zone 'UTC', '-infinity'))`,
    ],
    [
      'released calls of its days are not gone',
      `select 1 from ledger_days where released_apart and released_gone_at is null and day in (
         select distinct (created_at at time zone 'UTC')::date from ${transfers})`,
    ],
    [
      'its sales are not counted',
      `select 1 from sales_folded f where exists (select 1 from ${calls} where begun_at >= f.calls_to)
         or exists (select 1 from ${transfers} where code <> 'call' and created_at >= f.transfers_to)
       union all select 1 from sales_open where ${within('id')}`,
    ],
    [
      'a closed day of it is not what it was closed with: npm run books says which',
      `select 1 from ledger_days d cross join lateral ${sqlFunction('ledger_day_transfers')}(d.day, d.released_apart, null) t
       where d.day in (select distinct (created_at at time zone 'UTC')::date from ${transfers})
         and not exists (select 1 from ledger_carried c where c.day = d.day)
         and (t.transfers <> d.transfers or t.digest <> d.transfers_digest)`,
    ],
  ];
  for (const [because, query] of blockers) {
    const [found] = await patient.unsafe(`${query} limit 1`);
    if (found !== undefined) return because;
  }
  return null;
}
