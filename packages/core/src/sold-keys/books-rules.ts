import type { Audited } from '../ledger/rule.ts';

/** Sales of keys that are not what their call says. @param both sold keys `k` beside calls `c` */
function captured(both: string): string {
  return `select coalesce(c.id, k.call_id) as id, c.state, k.call_id, k.granted_at from ${both}
          where (k.call_id is not null or (c.service = 'instant-api-key' and c.state = 1 and c.outcome = 'answered'))
            and (c.id is null
              or (k.granted_at is not null and (c.state <> 1 or c.outcome <> 'answered' or c.price_micros < k.amount_micros))
              or (c.state = 1 and c.outcome = 'answered' and k.granted_at is null
                and c.finished_at < now() - interval '10 minutes'
                and not exists (
                  select 1 from ledger_transfers t where t.account_id = c.account_id
                    and t.code in ('call_refund', 'operator_refund')
                    and (t.id = k.refund_id
                      -- Rows of refunded keys were not kept before this migration, which a younger database has not.
                      or (k.call_id is null and t.note = 'undelivered call ' || c.id and t.created_at < (
                        select applied_at from schema_migrations where name = '054_sold_key_refunds.sql'))))))
          limit 1`;
}

/** Rules of the books for keys that were sold. Each query finds what breaks it. */
export const SOLD_KEY_BOOKS: Audited = {
  namesAccounts: [
    { table: 'sold_keys', column: 'payer_account' },
    { table: 'sold_keys', column: 'account_id' },
  ],
  rules: [
    {
      // The key follows the capture in a commit of its own: what is younger may be on its way.
      name: 'every captured sale of a key has made it, and no other',
      sql: captured(`calls c full join sold_keys k on k.call_id = c.id and k.payer_account = c.account_id`),
      ofOpenDays: (since) =>
        captured(`(
            select account_id, id from calls where created_at >= ${since} and service = 'instant-api-key'
            union select payer_account, call_id from sold_keys where created_at >= ${since}
          ) young left join lateral (select * from calls where account_id = young.account_id and id = young.id offset 0) c on true
          left join sold_keys k on k.call_id = young.id and k.payer_account = young.account_id`),
      together: {
        calls: `service = 'instant-api-key' or (account_id, id) in (select payer_account, call_id from sold_keys)`,
        ledger_transfers: `code in ('call_refund', 'operator_refund')`,
      },
      say: (r) =>
        `call ${r.id} of key ${r.call_id} is in state ${r.state}; its key was made at ${r.granted_at}`,
    },
    {
      // What is younger may be on its way.
      name: 'every sold key whose price went back was never granted, or was taken back',
      sql: `select k.call_id, k.granted_at from sold_keys k
          join ledger_transfers t on t.account_id = k.payer_account and t.id = k.refund_id and t.code <> 'call'
          where k.granted_at is not null and k.taken_back_micros is null
            and t.created_at < now() - interval '10 minutes' limit 1`,
      together: {},
      say: (r) =>
        `the price of the key of ${r.call_id}, granted at ${r.granted_at}, went back without the key`,
    },
    {
      name: 'every sold key holds what was paid for it, as the credit that it was',
      sql: `select coalesce(k.call_id::text, x.note) as sale, k.amount_micros, x.micros, x.count from sold_keys k
          full join (
            select account_id, note, count(*) as count, sum(amount_micros) as micros,
                   sum(amount_micros) filter (where code = 'sold_key_trial') as trial
            from ledger_transfers where code in ('sold_key', 'sold_key_trial') group by 1, 2
          ) x on x.note = 'key of call ' || k.call_id and x.account_id = k.account_id
          left join trial_credits m on m.account_id = k.account_id and m.moved_from = k.payer_account
          left join trial_credits p on p.account_id = k.payer_account
          where x.count > 2 or (k.granted_at is not null) is distinct from (x.count is not null)
             or x.micros <> k.amount_micros
             or (k.granted_at is not null and x.trial is distinct from m.granted_micros)
             or (x.trial is not null and m.expires_at is distinct from p.expires_at) limit 1`,
      together: {},
      say: (r) => `the key of ${r.sale} for ${r.amount_micros} has ${r.count} transfers of ${r.micros}`,
    },
    {
      name: 'what a sold key was paid from is its price, and no credit has paid for two',
      sql: `select x.call_id, x.lot, x.micros, k.amount_micros, x.first from (
            select call_id, null::uuid as lot, sum(amount_micros) as micros, null::numeric as first from credit_origins group by 1
            union all
            select (array_agg(s.call_id))[1], s.payer_lot, sum(s.amount_micros), o.amount_micros
            from credit_origins s join credit_origins o on o.lot = s.payer_lot where not s.ended group by s.payer_lot, o.amount_micros
          ) x left join sold_keys k on k.call_id = x.call_id
          where case when x.lot is null then x.micros is distinct from k.amount_micros else x.micros > x.first end limit 1`,
      say: (r) =>
        `the key of ${r.call_id} for ${r.amount_micros} is paid from ${r.micros}; of lot ${r.lot} there were ${r.first}`,
    },
    {
      name: 'every sold key that was taken back had its price given back, or had lost its settlement',
      sql: `select coalesce(k.call_id::text, x.note) as sale, k.taken_back_micros, x.micros, s.state from sold_keys k
          full join (
            select account_id, note, sum(amount_micros) as micros from ledger_transfers
            where code = 'sold_key_undone' group by 1, 2
          ) x on x.note = 'key of call ' || k.call_id and x.account_id = k.account_id
          left join lateral (
            select state from settlements
            where k.taken_back_micros is not null and account_id = k.payer_account and call_id = k.call_id offset 0
          ) s on true
          where coalesce(k.taken_back_micros, 0) <> coalesce(x.micros, 0)
             or (k.taken_back_micros is not null and s.state is distinct from 4 and not exists (
               select 1 from ledger_transfers t where t.account_id = k.payer_account and t.id = k.refund_id and t.code <> 'call')) limit 1`,
      together: {
        ledger_transfers: `code = 'sold_key_undone' or (account_id, id) in (select payer_account, refund_id from sold_keys)`,
        settlements: `(account_id, call_id) in (select payer_account, call_id from sold_keys where taken_back_micros is not null)`,
      },
      say: (r) =>
        `the key of ${r.sale}, whose settlement is in state ${r.state}, lost ${r.taken_back_micros}; its transfers say ${r.micros}`,
    },
  ],
};
