import type { Rule } from './rule.ts';

/** What must hold of credit that was given in trials. Each query finds what breaks it; `ledger/books.ts` runs them. */
export const TRIAL_RULES: readonly Rule[] = [
  {
    name: 'what trials gave and took is what their transfers say',
    sql: `select coalesce(t.account_id, x.account_id) as account_id, t.granted_micros, t.expired_micros, x.given, x.taken
          from trial_credits t full join (
            select account_id, sum(amount_micros) filter (where code = 'trial_grant') as given,
                   coalesce(sum(amount_micros) filter (where code = 'trial_expiry'), 0) as taken
            from ledger_transfers where code <> 'call' and code in ('trial_grant', 'trial_expiry')
            group by account_id having bool_or(code = 'trial_grant')
          ) x on x.account_id = t.account_id
          where (t.granted_micros, t.expired_micros) is distinct from (x.given, x.taken) limit 1`,
    say: (r) =>
      `the trial of account ${r.account_id} gave ${r.granted_micros} and took ${r.expired_micros}; its transfers say ${r.given}, ${r.taken}`,
  },
  {
    name: 'what the days gave in trials is what trials were given',
    sql: `select d.micros as days, t.micros as trials
          from (select coalesce(sum(granted_micros), 0) as micros from trial_days) d,
               (select coalesce(sum(granted_micros), 0) as micros from trial_credits) t
          where d.micros <> t.micros`,
    say: (r) => `the days gave ${r.days}; the trials had ${r.trials}`,
  },
];
