import type { Audited } from '../ledger/rule.ts';

/** Top-ups that are not what their call says. @param both top-ups `t` beside calls `c` */
function captured(both: string): string {
  return `select coalesce(c.id, t.call_id) as id, c.state, t.call_id, t.granted_at from ${both}
          where (t.call_id is not null or c.service like 'credits/topup/%') and (
            c.id is null
            or (t.granted_at is not null and (c.state <> 1 or c.price_micros <> t.amount_micros))
            or (c.state = 1 and t.granted_at is null and c.finished_at < now() - interval '10 minutes')) limit 1`;
}

/** Rules of the books for credit that was bought on a chain. Each query finds what violates it. */
export const TOPUP_BOOKS: Audited = {
  namesAccounts: [{ table: 'topups', column: 'account_id' }],
  rules: [
    {
      // Credit is granted in a commit after the capture, so a young top-up may still be on its way.
      name: 'every captured top-up is granted, and no other',
      sql: captured(`calls c full join topups t on t.call_id = c.id and c.account_id = 5`),
      ofOpenDays: (since) =>
        captured(`(
            select id from calls where created_at >= ${since} and account_id = 5 and service like 'credits/topup/%'
            union select call_id from topups where created_at >= ${since}
          ) young left join lateral (select * from calls where account_id = 5 and id = young.id offset 0) c on true
          left join topups t on t.call_id = young.id`),
      together: {
        calls: `bucket = 0 and account_id = 5 and (service like 'credits/topup/%' or id in (select call_id from topups))`,
      },
      say: (r) =>
        `call ${r.id} of top-up ${r.call_id} is in state ${r.state}; its credit was granted at ${r.granted_at}`,
    },
    {
      name: 'every granted top-up has its transfer, once and of its amount',
      sql: `select coalesce(t.call_id::text, x.note) as topup, t.amount_micros, x.micros, x.count from topups t
          full join (
            select account_id, note, count(*) as count, sum(amount_micros) as micros from ledger_transfers
            where code = 'usdc_topup' group by 1, 2
          ) x on x.note = 'topup ' || t.call_id and x.account_id = t.account_id
          where x.count > 1 or (t.granted_at is not null) is distinct from (x.count is not null)
             or x.micros <> t.amount_micros limit 1`,
      together: {},
      say: (r) => `top-up ${r.topup} of ${r.amount_micros} has ${r.count} transfers of ${r.micros}`,
    },
    {
      name: 'every top-up that was taken back had lost its settlement',
      sql: `select coalesce(t.call_id::text, x.note) as topup, t.taken_back_micros, x.micros, s.state from topups t
          full join (
            select account_id, note, sum(amount_micros) as micros from ledger_transfers
            where code = 'usdc_topup_lost' group by 1, 2
          ) x on x.note = 'topup ' || t.call_id and x.account_id = t.account_id
          left join lateral (
            select state from settlements where t.taken_back_micros is not null and account_id = 5 and call_id = t.call_id offset 0
          ) s on true
          where coalesce(t.taken_back_micros, 0) <> coalesce(x.micros, 0)
             or (t.taken_back_micros is not null and s.state is distinct from 4) limit 1`,
      together: {
        ledger_transfers: `code = 'usdc_topup_lost'`,
        settlements: `bucket = 0 and account_id = 5 and call_id in (select call_id from topups where taken_back_micros is not null)`,
      },
      say: (r) =>
        `top-up ${r.topup}, whose settlement is in state ${r.state}, took back ${r.taken_back_micros}; its transfers say ${r.micros}`,
    },
  ],
};
