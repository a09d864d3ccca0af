/** Rules about accounts, transfers and closed days alone. Each part that moves money has its own rules beside its code. */
import { sqlFunction } from '../db/functions.ts';
import { overRowsSince, type Rule } from './rule.ts';

/** Before the first closed day. */
const BEGINNING = `decode(repeat('00', 32), 'hex')`;

const DP = `case phase when 2 then amount_micros when 3 then -coalesce(reserved_micros, amount_micros) when 4 then -amount_micros else 0 end`;
const D = `case when phase in (1, 3) then amount_micros else 0 end`;

/**
 * The query that compares the balances of customers with their transfers.
 *
 * @param given rows of what is taken as given: account_id, dp, d, cp, c
 * @param since a condition on transfers: those that are added
 */
const balances = (given: string, since: string) => `
      select a.id, a.debits_pending, a.debits_posted, a.credits_pending, a.credits_posted,
             coalesce(s.dp, 0) as dp, coalesce(s.d, 0) as d, coalesce(s.cp, 0) as cp, coalesce(s.c, 0) as c
      from ledger_accounts a left join (
        select account_id, sum(dp) as dp, sum(d) as d, sum(cp) as cp, sum(c) as c from (
          ${given}
          union all
          select account_id, sum(${DP}) filter (where debit_account = account_id),
                 sum(${D}) filter (where debit_account = account_id),
                 sum(${DP}) filter (where credit_account = account_id),
                 sum(${D}) filter (where credit_account = account_id)
          from ledger_transfers where ${since} group by account_id
        ) moved group by account_id
      ) s on s.account_id = a.id
      where not a.house and (a.debits_pending, a.debits_posted, a.credits_pending, a.credits_posted)
        is distinct from (coalesce(s.dp, 0), coalesce(s.d, 0), coalesce(s.cp, 0), coalesce(s.c, 0))
      order by a.id limit 1`;
const MOVES = `select m.account_id, m.debits_pending as dp, m.debits_posted as d, m.credits_pending as cp, m.credits_posted as c`;

const sayDay = (r: Record<string, unknown>) =>
  r.day === null ? 'the closed days' : `the closed day ${r.day}`;

/** Rules about days that were closed. */
const DAY_RULES: readonly Rule[] = [
  {
    name: 'every closed day stands as it was written, after the one that was before it',
    sql: `(select to_char(d.day, 'YYYY-MM-DD') as day from (
              select *, lag(digest, 1, ${BEGINNING}) over (order by day) as before, lag(day) over (order by day) as day_before
              from ledger_days
            ) d where d.day <> d.day_before + 1
              or d.digest <> ${sqlFunction('ledger_day_digest')}(d.before, d.day, d.transfers, d.transfers_digest, d.moves_digest)
            order by d.day limit 1)
          union all
          select to_char(l.day, 'YYYY-MM-DD') from (values (1)) one left join (
            select day, digest from ledger_days order by day desc limit 1
          ) l on true
          where not exists (
            select 1 from ledger_days_head h
            where h.digest = coalesce(l.digest, ${BEGINNING}) and h.open_day is not distinct from l.day + 1
          ) limit 1`,
    say: (r) => `the digest of ${sayDay(r)} says that it, or one beside it, was changed or removed`,
  },
  {
    name: 'what accounts moved on a closed day is what was written when it was closed',
    sql: `select to_char(d.day, 'YYYY-MM-DD') as day from ledger_days d
          where d.moves_digest <> ${sqlFunction('ledger_moves_digest')}(d.day)
          union all
          select to_char(m.day, 'YYYY-MM-DD') from ledger_day_moves m
          where not exists (select 1 from ledger_days d where d.day = m.day) limit 1`,
    ofOpenDays: () => '',
    say: (r) => `the moves of ${sayDay(r)} were changed after it was closed`,
  },
  {
    name: 'the transfers of a closed day are those that it was closed with',
    // Where some of them stand in files, `npm run books` reads those as well: `history/prove-archives.ts`.
    sql: `select to_char(d.day, 'YYYY-MM-DD') as day, d.transfers, t.transfers + coalesce(c.transfers, 0) as found
          from ledger_days d
          cross join lateral (
            select * from ${sqlFunction('ledger_day_transfers')}(d.day, d.released_apart, null) where not d.by_account
            union all
            select * from ${sqlFunction('ledger_day_transfers_apart')}(d.day) where d.by_account
          ) t
          left join (select day, sum(transfers) as transfers from ledger_carried group by day) c on c.day = d.day
          where d.transfers <> t.transfers + coalesce(c.transfers, 0)
            or c.day is null and t.digest <> d.transfers_digest
          order by d.day limit 1`,
    ofOpenDays: () => '',
    dayByDay: true,
    say: (r) =>
      `${sayDay(r)} was closed with ${r.transfers} transfers; ${r.found} bear its time now, of which some were added, changed or removed`,
  },
  {
    name: 'what accounts moved on a closed day is what its transfers say',
    sql: `select to_char(d.day, 'YYYY-MM-DD') as day, x.account_id from ledger_days d
          cross join lateral (
            select coalesce(m.account_id, t.account_id) as account_id
            from (select * from ledger_day_moves where day = d.day) m
            full join (
              select account_id, sum(debits_pending) as dp, sum(debits_posted) as d, sum(credits_pending) as cp,
                     sum(credits_posted) as c
              from (
                select * from ${sqlFunction('ledger_day_moved')}(d.day)
                union all
                select account_id, debits_pending, debits_posted, credits_pending, credits_posted
                from ledger_carried where day = d.day
              ) made group by account_id
            ) t on t.account_id = m.account_id
            -- Of an account that was only released nothing may be left: it moved nothing.
            where (coalesce(m.debits_pending, 0), coalesce(m.debits_posted, 0), coalesce(m.credits_pending, 0),
                   coalesce(m.credits_posted, 0)) is distinct from
              (coalesce(t.dp, 0), coalesce(t.d, 0), coalesce(t.cp, 0), coalesce(t.c, 0)) limit 1
          ) x limit 1`,
    ofOpenDays: () => '',
    dayByDay: true,
    say: (r) => `on ${sayDay(r)} account ${r.account_id} moved something else than was written`,
  },
  {
    name: 'the closed balances are what accounts moved on closed days',
    sql: `select coalesce(b.account_id, m.account_id) as account_id from ledger_closed_balances b full join (
            select account_id, sum(debits_pending) as dp, sum(debits_posted) as d, sum(credits_pending) as cp,
                   sum(credits_posted) as c from ledger_day_moves group by account_id
          ) m on m.account_id = b.account_id
          where (b.debits_pending, b.debits_posted, b.credits_pending, b.credits_posted)
            is distinct from (m.dp, m.d, m.cp, m.c) limit 1`,
    ofOpenDays: () => '',
    say: (r) => `the closed balance of account ${r.account_id} is not the sum of its closed days`,
  },
];

/** Rules about accounts and transfers. */
export const LEDGER_RULES: readonly Rule[] = [
  {
    name: 'every balance equals its transfers',
    sql: balances(`${MOVES} from ledger_carried m`, 'true'),
    ofOpenDays: (since) => balances(`${MOVES} from ledger_closed_balances m`, `created_at >= ${since}`),
    say: (r) =>
      `account ${r.id} holds debits ${r.debits_pending}+${r.debits_posted}, credits ${r.credits_pending}+${r.credits_posted}; its transfers say ${r.dp}+${r.d}, ${r.cp}+${r.c}`,
  },
  {
    name: 'no customer is overdrawn',
    sql: `select id, debits_pending + debits_posted as debits, credits_posted as credits from ledger_accounts
          where not house and debits_pending + debits_posted > credits_posted order by id limit 1`,
    say: (r) => `account ${r.id} has debits of ${r.debits} against credits of ${r.credits}`,
  },
  {
    name: 'every account of a transfer exists',
    sql: orphans('true'),
    ofOpenDays: (since) => orphans(`t.created_at >= ${since}`),
    say: (r) => `transfer ${r.id} names an account that does not exist (account ${r.account_id})`,
  },
  {
    name: 'every post and void has its pending transfer, frees all of its amount, and has the same accounts',
    ...overRowsSince('e.created_at', unmatched),
    say: (r) => `the resolution ${r.id} of account ${r.account_id} does not match a pending transfer`,
  },
  ...DAY_RULES,
];

function orphans(which: string): string {
  return `select t.id, t.account_id from ledger_transfers t
          where ${which} and (not exists (select 1 from ledger_accounts a where a.id = t.debit_account)
             or not exists (select 1 from ledger_accounts a where a.id = t.credit_account)) limit 1`;
}

function unmatched(which: string, oneByOne: string): string {
  return `select e.id, e.account_id from ledger_transfers e
          left join lateral (select * from ledger_transfers t
            where t.account_id = e.account_id and t.id = e.id and t.phase = 2 ${oneByOne}) t on true
          where e.phase in (3, 4) and ${which} and (
            t.id is null or t.amount_micros <> coalesce(e.reserved_micros, e.amount_micros)
            or e.amount_micros > t.amount_micros or t.debit_account <> e.debit_account or t.credit_account <> e.credit_account) limit 1`;
}

/** The rule that stands in for a foreign key to accounts, which Citus keeps none of. */
export function accountsAreThere({ table, column }: { table: string; column: string }): Rule {
  return {
    name: `every account that ${table} names is there (${column})`,
    sql: `with named as materialized (
            select distinct ${column} as account_id from ${table} where ${column} is not null
          ), there as materialized (
            select id from ledger_accounts where id in (select account_id from named)
          )
          select account_id from named where account_id not in (select id from there) order by account_id limit 1`,
    together: {},
    say: (r) => `${table} names account ${r.account_id}, which is not there`,
  };
}
