import type { Audited, Rule } from '../ledger/rule.ts';

/** Rules of the books for credit that was bought by card. Each query finds what breaks it. */

/** Transfers but those of calls, which are nearly all: there is an index of the others. */
const OTHER = `(select * from ledger_transfers where code <> 'call' and phase in (1, 3)) t`;

const CARD_RULES: readonly Rule[] = [
  {
    name: 'every paid order has its payment and its bonus, once, and no other has any',
    sql: `select coalesce('order ' || o.id, x.note) as name, o.state, o.amount_micros, x.payments, x.bonuses
          from card_orders o full join (
            select account_id, note, debit_account, credit_account,
                   array_agg(amount_micros) filter (where code = 'card_payment') as payments,
                   coalesce(array_agg(amount_micros) filter (where code = 'card_bonus'), '{}') as bonuses
            from (
              select account_id, note, amount_micros, code, credit_account,
                     case code when 'card_payment' then debit_account - 9 else debit_account - 10 end as debit_account
              from ${OTHER} where code in ('card_payment', 'card_bonus')
            ) t group by 1, 2, 3, 4
          ) x on x.note = 'order ' || o.id
          where (o.state = 1) is distinct from (x.payments is not null)
             or (x.payments is not null and (x.payments, x.bonuses, x.debit_account, x.credit_account, x.account_id)
               is distinct from (array[o.amount_micros],
                 case when o.credit_micros > o.amount_micros then array[o.credit_micros - o.amount_micros] else '{}' end,
                 0::bigint, o.account_id, o.account_id)) limit 1`,
    together: {},
    say: (r) =>
      `${r.name} of ${r.amount_micros} is in state ${r.state}; its payments are ${r.payments}, its bonuses ${r.bonuses}`,
  },
  {
    name: 'card clearing and promotions hold what is left of every order, and nothing else',
    sql: `select coalesce('order ' || o.id, x.note) as name, o.state, o.amount_micros, o.reversed_micros, x.clearing,
                 x.promotions
          from card_orders o full join (
            select note,
                   sum(case 9 when debit_account then amount_micros when credit_account then -amount_micros
                       else 0 end) as clearing,
                   sum(case 10 when debit_account then amount_micros when credit_account then -amount_micros
                       else 0 end) as promotions,
                   min(account_id) filter (where account_id not in (8, 11)) as first_account,
                   max(account_id) as last_account
            from ${OTHER} where debit_account in (9, 10) or credit_account in (9, 10) group by note
          ) x on x.note = 'order ' || o.id
          where o.id is null
             or coalesce(x.clearing, 0)
               <> case o.state when 1 then o.amount_micros - o.reversed_micros - o.lost_micros else 0 end
             or coalesce(x.promotions, 0)
               <> case o.state when 1 then o.credit_micros - o.amount_micros - o.bonus_taken_micros else 0 end
             or x.first_account <> o.account_id or x.last_account <> o.account_id
             or (o.state <> 1 and o.reversed_micros + o.bonus_taken_micros + o.lost_micros <> 0) limit 1`,
    together: {},
    say: (r) =>
      `${r.name} of ${r.amount_micros}, of which ${r.reversed_micros} went back, is in state ${r.state}; clearing holds ${r.clearing} of it, promotions gave ${r.promotions}`,
  },
  {
    name: 'what accounts owe is what the receivables claim of them',
    sql: `select coalesce(d.account_id, x.account_id) as account_id, d.owed_micros, x.claimed
          from account_debts d full join (
            select account_id, sum(micros) as claimed from (
              select coalesce(o.account_id, t.account_id) as account_id,
                     case when t.debit_account = 11 then t.amount_micros else -t.amount_micros end as micros
              from ${OTHER} left join card_orders o
                on (t.account_id = 11 or t.code in ('key_reversal', 'key_reversal_undone')) and t.note = 'order ' || o.id
              where t.debit_account = 11 or t.credit_account = 11
              -- What came back and is on its way to keys is nobody's debt.
              union all select account_id, give_micros from reversal_walks
            ) c group by 1
          ) x on x.account_id = d.account_id
          where coalesce(d.owed_micros, 0) <> coalesce(x.claimed, 0) limit 1`,
    together: {},
    say: (r) => `account ${r.account_id} owes ${r.owed_micros}; the receivables claim ${r.claimed}`,
  },
  {
    name: 'what was taken from keys of a reversed payment is noted where it came from',
    sql: `select coalesce(x.name, o.name) as name, x.moved, o.taken from (
            select account_id, note as name, sum(case when debit_account = 11 then -amount_micros else amount_micros end) as moved
            from ${OTHER} where code in ('key_reversal', 'key_reversal_undone') group by 1, 2
          ) x full join (
            select account_id, 'order ' || order_id as name, sum(taken_micros) as taken from credit_origins
            where account_id is not null and order_id is not null group by 1, 2
          ) o on o.account_id = x.account_id and o.name = x.name
          where coalesce(x.moved, 0) <> coalesce(o.taken, 0) and (o.account_id is not null or x.moved > 0) limit 1`,
    together: {},
    say: (r) => `the keys of ${r.name} gave ${r.moved}; noted is ${r.taken}`,
  },
  {
    name: 'an account is frozen for a debt exactly as long as it owes',
    sql: `select coalesce(d.account_id, f.account_id) as account_id, d.owed_micros, f.cause
          from (select * from account_debts where owed_micros > 0) d
          full join (select * from account_freezes where cause = 'debt') f on f.account_id = d.account_id
          where d.account_id is null or f.account_id is null limit 1`,
    say: (r) => `account ${r.account_id} owes ${r.owed_micros}; it is frozen for ${r.cause}`,
  },
  {
    name: 'the keys of an account are frozen exactly as long as it is',
    sql: `select k.id, k.account_id, k.status, f.causes from api_keys k
          left join (select account_id, string_agg(cause, ', ') as causes from account_freezes group by 1) f
            on f.account_id = k.account_id
          where k.status <> 'revoked' and (k.status = 'frozen') <> (f.causes is not null) limit 1`,
    together: {},
    say: (r) =>
      `key ${r.id} of account ${r.account_id} is ${r.status}; the account is frozen for ${r.causes}`,
  },
  {
    name: 'every paid order that buys a key has one, of its own and of its account',
    sql: `select o.id, o.state, o.account_id, o.key_id, k.account_id as key_account from card_orders o
          left join api_keys k on k.id = o.key_id
          where (o.state = 1 and o.key_digest is not null) <> (o.key_id is not null)
             or (o.key_id is not null and (k.digest, k.account_id) is distinct from (o.key_digest, o.account_id))
             or (o.state = 1 and o.account_id is null)
             or o.key_id in (select key_id from card_orders where key_id is not null group by 1 having count(*) > 1)
          limit 1`,
    together: { api_keys: 'id in (select key_id from card_orders)' },
    say: (r) =>
      `order ${r.id} of account ${r.account_id} is in state ${r.state}, its key ${r.key_id} is of account ${r.key_account}`,
  },
];

export const CARD_BOOKS: Audited = {
  rules: CARD_RULES,
  namesAccounts: [
    { table: 'card_orders', column: 'account_id' },
    { table: 'account_debts', column: 'account_id' },
    { table: 'account_freezes', column: 'account_id' },
    { table: 'auto_recharges', column: 'account_id' },
  ],
  totals: {
    cards: `
      select count(*) as orders, coalesce(sum(amount_micros), 0)::bigint as "paidMicros",
             coalesce(sum(reversed_micros), 0)::bigint as "reversedMicros",
             coalesce(sum(disputed_micros), 0)::bigint as "disputedMicros",
             (select coalesce(sum(owed_micros), 0)::bigint from account_debts) as "owedMicros",
             coalesce(sum(credit_micros - amount_micros - bonus_taken_micros), 0)::bigint as "promotionsMicros"
      from card_orders where state = 1`,
  },
};
