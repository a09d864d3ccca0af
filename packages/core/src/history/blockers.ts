/** Why a week of calls cannot be archived yet. */
import type { Database, Transaction } from '../db/connection.ts';
import { isDistributed } from '../db/distribution.ts';
import { sqlFunction } from '../db/functions.ts';
import type { Week } from '../db/weeks.ts';
import { BY_TIME } from '../ledger/spread-books.ts';
import { tablesOf } from './week-rows.ts';

/** @returns the first thing that it waits for, in words; null: nothing */
export async function blockerOf(patient: Database, week: Week): Promise<string | null> {
  const { calls, transfers, answers } = tablesOf(week);
  const made = await patient.unsafe<{ day: string }[]>(
    `select distinct to_char(created_at at time zone 'UTC', 'YYYY-MM-DD') as day from ${transfers}`,
  );
  const days = `'{${made.map(({ day }) => day).join()}}'::date[]`;
  const within = (column: string) => `${column} >= '${week.from}' and ${column} < '${week.to}'`;
  const blockers: readonly (readonly [because: string, ...queries: string[]])[] = [
    ['a call of it is open', `select 1 from ${calls} where state not in (1, 2)`],
    [
      'a transfer of it is pending',
      `select 1 from ${transfers} t where t.phase = 2 and not exists (
         select 1 from ${transfers} e where e.bucket = t.bucket and e.account_id = t.account_id and e.id = t.id and e.resolves)`,
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
      `select 1 from ${transfers} where created_at >= (
         select coalesce(open_day::timestamp at time zone 'UTC', '-infinity') from ledger_days_head)`,
    ],
    [
      'released calls of its days are not gone',
      `select 1 from ledger_days where released_apart and released_gone_at is null and day = any(${days})`,
    ],
    [
      'its sales are not counted',
      `select 1 from ${calls} where begun_at >= (select calls_to from sales_folded)`,
      `select 1 from ${transfers} where code <> 'call' and created_at >= (select transfers_to from sales_folded)`,
      `select 1 from sales_open where ${within('id')}`,
    ],
  ];
  for (const [because, ...queries] of blockers)
    for (const query of queries) {
      const [found] = await patient.unsafe(`${query} limit 1`);
      if (found !== undefined) return because;
    }
  return (await isDayChanged(patient, days))
    ? 'a closed day of it is not what it was closed with: npm run books says which'
    : null;
}

/** Whether one of these days, of which nothing stands in files yet, has other transfers than it was closed with. */
async function isDayChanged(patient: Database, days: string): Promise<boolean> {
  const ask = (on: Database | Transaction) =>
    on.unsafe(`
      select 1 from ledger_days d cross join lateral (
        select * from ${sqlFunction('ledger_day_transfers')}(d.day, d.released_apart, null) where not d.by_account
        union all
        select * from ${sqlFunction('ledger_day_transfers_apart')}(d.day) where d.by_account
      ) t
      where d.day = any(${days}) and not exists (select 1 from ledger_carried c where c.day = d.day)
        and (t.transfers <> d.transfers or t.digest <> d.transfers_digest) limit 1`);
  if (!(await isDistributed(patient))) return (await ask(patient)).length > 0;
  return patient.begin(async (transaction) => {
    await transaction.unsafe(BY_TIME);
    return (await ask(transaction)).length > 0;
  });
}
