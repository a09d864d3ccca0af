/** Fills a ledger with past calls, as the server would have left them. */
import type { Database } from '../packages/core/src/db/connection.ts';
import { makeWeeks, weekOf } from '../packages/core/src/db/weeks.ts';

/** The customers that the past calls are spread over: few made many calls, many made few. */
const ACCOUNTS = 10_000;
const FIRST_ACCOUNT = 1_000_000;
const DAYS = 90;
const PRICE_MICROS = 250_000;

/** The calls, in the order of time: `n`, whose, when, and an id that begins with that time (UUID version 7). */
const PAST_CALLS = (calls: number) => `
  select n, account, at,
    (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
      || '7' || substr(md5('a' || n), 1, 3) || '8' || substr(md5('b' || n), 1, 15))::uuid as id,
    (array['ping', 'token-price', 'trade-signals', 'market-brief'])[1 + n % 4] as service
  from (
    select n, ${FIRST_ACCOUNT} + floor(${ACCOUNTS} * power(hashint4(n)::float8 / 4294967296 + 0.5, 2))::bigint as account,
      date_trunc('milliseconds', now() - interval '${DAYS} days' + n * (interval '${DAYS} days' / ${calls})) as at
    from generate_series(0, ${calls - 1}) n
  ) numbered`;

/**
 * Puts captured calls with their pending and post transfers, balances and daily sums into an empty ledger, and leaves
 * the tables as a running database has them: analyzed, and with nothing to clean up.
 *
 * @param transfers how many: two for each call
 */
export async function fillWithPastTransfers(sql: Database, transfers: number): Promise<void> {
  const calls = transfers / 2;
  await sql.begin(async (transaction) => {
    await transaction`set local statement_timeout = 0`;
    for (let ago = DAYS + 7; ago >= 0; ago -= 7)
      await makeWeeks(transaction, [weekOf(Date.now() - ago * 86_400_000)]);
    // Indexes are built after the rows are inserted, which is faster. The rows are in order of time all the same.
    await transaction.unsafe(`
      set local work_mem = '256MB';
      set local maintenance_work_mem = '512MB';
      alter table ledger_transfers drop constraint ledger_transfers_pkey;
      alter table calls drop constraint calls_pkey;

      insert into calls (account_id, id, state, rail, service, price_micros, created_at, begun_at, expires_at, finished_at,
          outcome)
        select account, id, 1, 'credits', service, ${PRICE_MICROS}, at, at, at + interval '25 seconds',
          at + interval '5 milliseconds', 'answered'
        from (${PAST_CALLS(calls)}) past order by n;

      insert into ledger_transfers
          (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
        select account, id, phase, account, 1, ${PRICE_MICROS}, 'call', at + (phase - 2) * interval '5 milliseconds'
        from (${PAST_CALLS(calls)}) past, (values (2), (3)) as phases (phase) order by n, phase;

      insert into call_spending (account_id, day, service, calls, spent_micros)
        select account_id, (finished_at at time zone 'UTC')::date, service, count(*), sum(price_micros)
        from calls group by 1, 2, 3;

      insert into ledger_accounts (id, house, debits_posted, credits_posted)
        select account_id, false, sum(price_micros), sum(price_micros) from calls group by account_id;
      insert into ledger_transfers
          (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
        select id, gen_random_uuid(), 1, 4, id, credits_posted, 'operator_grant', now() - interval '${DAYS + 1} days'
        from ledger_accounts where id >= ${FIRST_ACCOUNT};

      alter table calls add primary key (account_id, id);
      alter table ledger_transfers add primary key (account_id, id, resolves);
    `);
  });
  await sql.unsafe('set statement_timeout = 0');
  await sql.unsafe('vacuum (analyze, freeze)');
  await sql.unsafe('checkpoint');
}
