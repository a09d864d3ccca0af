import type { Audited } from '../ledger/rule.ts';

/** Rules about keys and trial credit. Each query returns violations. */
export const KEY_BOOKS: Audited = {
  namesAccounts: [
    { table: 'trial_claims', column: 'account_id' },
    { table: 'trial_credits', column: 'account_id' },
    { table: 'trial_credits', column: 'moved_from' },
  ],
  rules: [
    {
      name: 'every key leads to an account, every trial has its grant',
      sql: `select k.id, k.account_id from api_keys k
          where not exists (select 1 from ledger_accounts a where a.id = k.account_id and not a.house)
             or (k.kind = 'trial' and not exists (
               select 1 from ledger_transfers t where t.account_id = k.account_id and t.code in ('trial_grant', 'sold_key_trial'))) limit 1`,
      say: (r) => `key ${r.id} has no proper account (${r.account_id})`,
    },
    {
      name: 'what trials gave and took is what their transfers say',
      sql: `select coalesce(t.account_id, x.account_id) as account_id, t.granted_micros, t.expired_micros, x.given, x.taken
          from trial_credits t full join (
            select account_id, sum(amount_micros) filter (where code <> 'trial_expiry') as given,
                   coalesce(sum(amount_micros) filter (where code = 'trial_expiry'), 0) as taken
            from ledger_transfers where code <> 'call' and code in ('trial_grant', 'sold_key_trial', 'trial_expiry')
            group by account_id having bool_or(code <> 'trial_expiry')
          ) x on x.account_id = t.account_id
          where (t.granted_micros, t.expired_micros) is distinct from (x.given, x.taken) limit 1`,
      say: (r) =>
        `the trial of account ${r.account_id} gave ${r.granted_micros} and took ${r.expired_micros}; its transfers say ${r.given}, ${r.taken}`,
    },
    {
      name: 'what the days gave in trials is what trials were given',
      sql: `select d.micros as days, t.micros as trials
          from (select coalesce(sum(granted_micros), 0) as micros from trial_days) d,
               (select coalesce(sum(granted_micros), 0) as micros from trial_credits where moved_from is null) t
          where d.micros <> t.micros`,
      say: (r) => `the days gave ${r.days}; the trials had ${r.trials}`,
    },
  ],
};
