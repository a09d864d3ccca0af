import { sqlFunction } from '../../db/functions.ts';
import { type Audited, overRowsSince, type Rule } from '../../ledger/rule.ts';
import { SHARE_RULES } from './share-rules.ts';

const overCalls = (query: (which: string, oneByOne: string) => string) =>
  overRowsSince('c.created_at', query);
const overTransfers = (query: (which: string, oneByOne: string) => string) =>
  overRowsSince('t.created_at', query);

function inOtherBucket(what: string, r: Record<string, unknown>): string {
  const lies = `${what} ${r.id} of account ${r.account_id} lies in bucket ${r.bucket}`;
  return r.of_account === null ? `${lies}, where its account is not` : `${lies}, and not ${r.of_account}`;
}

/** What must hold of calls, their settlements and their refunds. Each query finds what breaks it. */
const CALL_RULES: readonly Rule[] = [
  {
    name: 'every call has exactly the transfers of its state',
    ...overCalls(
      (
        which,
        oneByOne,
      ) => `select c.id, c.account_id, c.state, t.phase as first, e.phase as last, t.amount_micros, c.price_micros, c.reserved_micros
          from calls c
          left join lateral (select * from ledger_transfers t
            where t.account_id = c.account_id and t.id = c.id and t.phase = 2 ${oneByOne}) t on true
          left join lateral (select * from ledger_transfers e
            where e.account_id = c.account_id and e.id = c.id and e.phase in (3, 4) ${oneByOne}) e on true
          where ${which} and case when c.price_micros = 0 then t.id is not null or e.id is not null
                else t.id is null or t.amount_micros <> coalesce(c.reserved_micros, c.price_micros)
                  or e.amount_micros <> c.price_micros or c.reserved_micros is not null and c.state <> 1
                  or e.reserved_micros is distinct from c.reserved_micros
                  or e.phase is distinct from (case c.state when 1 then 3 when 2 then 4 end) end limit 1`,
    ),
    say: (r) =>
      `call ${r.id} of account ${r.account_id} is in state ${r.state}, its transfers are ${r.first}, ${r.last}`,
  },
  {
    name: 'every call of a customer lies in the bucket of its account',
    ...overCalls(
      (which) => `select c.id, c.account_id, c.bucket, a.bucket as of_account from calls c
          left join ledger_accounts a on a.id = c.account_id
          where ${which} and (a.id is null or not a.house and c.bucket <> a.bucket) limit 1`,
    ),
    say: (r) => inOtherBucket('call', r),
  },
  {
    name: 'every transfer of a customer lies in the bucket of its account',
    ...overTransfers(
      (which) => `select t.id, t.account_id, t.bucket, a.bucket as of_account from ledger_transfers t
          left join ledger_accounts a on a.id = t.account_id
          where ${which} and (a.id is null or not a.house and t.bucket <> a.bucket) limit 1`,
    ),
    say: (r) => inOtherBucket('transfer', r),
  },
  {
    name: 'every free call that counts was begun for nothing, and not given back',
    sql: `select f.call_id, f.account_id, c.state, c.price_micros from free_calls f
          left join lateral (
            select id, state, price_micros from calls where account_id = f.account_id and id = f.call_id offset 0
          ) c on true
          where c.id is null or c.state = 2 or c.price_micros <> 0 limit 1`,
    say: (r) =>
      `the free call ${r.call_id} of account ${r.account_id} is in state ${r.state}, at ${r.price_micros}`,
  },
  {
    name: 'every open call is where open calls are looked for',
    ...overCalls(
      (which) => `select c.id, c.account_id, c.begun_at from calls c
          where ${which} and c.state = 0 and not exists (select 1 from ${sqlFunction('open_calls')}() o where o.account_id = c.account_id and o.id = c.id)
          limit 1`,
    ),
    together: { calls: 'state = 0' },
    say: (r) =>
      `call ${r.id} of account ${r.account_id} is open since ${r.begun_at}, and no job would find it`,
  },
  {
    name: 'every transfer for a call has its call, and every refund a captured one',
    ...overTransfers(
      (which, oneByOne) => `select t.id, t.account_id, t.code from ledger_transfers t
          left join lateral (select c.id from calls c where c.account_id = t.account_id and c.id = t.id ${oneByOne}) c on true
          where ${which} and ((t.code = 'call' and c.id is null)
             or (t.code in ('onchain_refund', 'settlement_lost') and not exists (
               select 1 from calls r where r.account_id = t.account_id and r.state = 1
                 and t.note in ('refund of call ' || r.id, 'lost settlement of call ' || r.id)))
             or (t.code = 'call_refund' and not exists (
               select 1 from calls r where r.account_id = t.account_id and r.state = 1
                 and t.note = 'undelivered call ' || r.id and r.price_micros = t.amount_micros))) limit 1`,
    ),
    say: (r) => `transfer ${r.id} (${r.code}) of account ${r.account_id} has no call`,
  },
  {
    name: 'every captured call that a chain paid for has its transaction',
    ...overCalls(
      (which, oneByOne) => `select c.id, c.rail, s.state, s.transaction, s.amount_units from calls c
          left join lateral (select * from settlements s where s.account_id = c.account_id and s.call_id = c.id ${oneByOne}) s on true
          where ${which} and c.rail <> 'credits' and c.state = 1
            and (s.transaction is null or s.state not in (1, 4) or s.amount_units < c.price_micros
              or s.amount_units > c.price_micros
                and (s.evidence->>'scheme' is distinct from 'transfer' or s.evidence ? 'priceUnits')) limit 1`,
    ),
    say: (r) =>
      `call ${r.id} (${r.rail}) is captured; its settlement is in state ${r.state}, by ${r.transaction}, of ${r.amount_units}`,
  },
  {
    name: 'every settlement is in step with its call',
    sql: `select s.call_id, s.state, c.state as call_state from settlements s
          left join calls c on c.account_id = s.account_id and c.id = s.call_id
          where c.id is null or c.state = 0 or (s.state = 2) <> (c.state = 2)
             or (s.state in (0, 3) and c.state <> 3) limit 1`,
    ofOpenDays: (since) => `select c.id as call_id, s.state, c.state as call_state
          from (select * from calls where created_at >= ${since} and rail <> 'credits' offset 0) c
          cross join lateral (select state from settlements where account_id = c.account_id and call_id = c.id offset 0) s
          where (c.state = 0 or (s.state = 2) <> (c.state = 2)
             or (s.state in (0, 3) and c.state <> 3)) limit 1`,
    say: (r) => `the settlement of call ${r.call_id} is in state ${r.state}, the call in ${r.call_state}`,
  },
  {
    name: 'every refund on a chain has its transfer and its transaction',
    sql: `select r.call_id, r.state, r.transaction, t.amount_micros from refunds r
          left join ledger_transfers t on t.account_id = r.account_id and t.code = 'onchain_refund'
            and t.note = 'refund of call ' || r.call_id
          where (r.state = 1) <> (t.id is not null and r.transaction is not null)
             or t.amount_micros <> r.amount_micros limit 1`,
    say: (r) =>
      `the refund of call ${r.call_id} is in state ${r.state}, by ${r.transaction}, booked ${r.amount_micros}`,
  },
  {
    name: 'spending by day equals captured calls',
    sql: `select coalesce(s.account_id, c.account_id) as account_id, coalesce(s.service, c.service) as service,
                 coalesce(s.day, c.day) as day, s.spent_micros, c.spent
          from call_spending s full join (
            select account_id, service, day, sum(spent) as spent, sum(calls) as calls from (
              select account_id, service, (finished_at at time zone 'UTC')::date as day, price_micros as spent, 1 as calls
              from calls where state = 1 and account_id >= 1000
              union all
              select account_id, service, day, spent_micros, calls from calls_carried
            ) captured group by 1, 2, 3
          ) c on c.account_id = s.account_id and c.service = s.service and c.day = s.day
          where s.spent_micros is distinct from c.spent or s.calls is distinct from c.calls limit 1`,
    // A call that credits pay ends within a day. Spending without any call is found by the whole proof.
    ofOpenDays: (since) => `select c.account_id, c.service, c.day, s.spent_micros, c.spent from (
            select account_id, service, (finished_at at time zone 'UTC')::date as day, sum(price_micros) as spent,
                   count(*) as calls
            from calls where created_at >= ${since} - interval '1 day' and finished_at >= ${since} and state = 1
              and account_id >= 1000 group by 1, 2, 3
          ) c left join lateral (select * from call_spending s
            where s.account_id = c.account_id and s.service = c.service and s.day = c.day offset 0) s on true
          where s.spent_micros is distinct from c.spent or s.calls is distinct from c.calls limit 1`,
    say: (r) =>
      `account ${r.account_id}, ${r.service} on ${r.day}: spending says ${r.spent_micros}, calls say ${r.spent}`,
  },
];

/** Calls by how they ended, and what is with a chain, or owed on one. */
export const CALL_BOOKS: Audited = {
  rules: [...CALL_RULES, ...SHARE_RULES],
  namesAccounts: [
    { table: 'call_shares', column: 'account_id' },
    { table: 'call_shares', column: 'beneficiary' },
    { table: 'share_payouts', column: 'beneficiary' },
    { table: 'refunds', column: 'account_id' },
    { table: 'free_calls', column: 'account_id' },
    { table: 'root_buyers', column: 'account_id' },
  ],
  totalsOfOpenDays: {
    calls: `
      with newest as (
        select state from calls where begun_at >= (select calls_to from sales_folded)
        union all
        select c.state from sales_open o
        cross join lateral (select state from calls where account_id = o.account_id and id = o.id offset 0) c
      )
      select (select coalesce(sum(answered), 0) from sales_days)::bigint + count(*) filter (where state = 1) as captured,
             (select coalesce(sum(released), 0) from sales_days)::bigint + count(*) filter (where state = 2) as released,
             count(*) filter (where state in (0, 3)) as open from newest`,
  },
  totals: {
    calls: `
      select c.captured + coalesce(a.captured, 0) as captured, c.released + coalesce(a.released, 0) as released, c.open
      from (
        select count(*) filter (where state = 1) as captured, count(*) filter (where state = 2) as released,
               count(*) filter (where state in (0, 3)) as open from calls
      ) c cross join (
        select sum(captured)::bigint as captured, sum(released)::bigint as released from call_archives where dropped_at is not null
      ) a`,
    onChain: `
      select s.settling, l.lost, r.owed as "refundsOwed", r.paid as "refundsPaid"
      from (select count(*) as settling from settlements where final_at is null and state in (0, 3)) s
      cross join (select count(*) as lost from settlements where state = 4) l
      cross join (
        select count(*) filter (where state = 0) as owed, count(*) filter (where state = 1) as paid from refunds
      ) r`,
  },
};
