import type { Audited } from '../ledger/rule.ts';

/** What must hold of the money that operators move. */
export const OPERATOR_BOOKS: Audited = {
  rules: [
    {
      name: 'every act of an operator that moves money has its transfer, and a call is refunded once, at its price',
      sql: `select coalesce(a.id, t.id) as id, coalesce(a.act, t.code) as what, t.amount_micros
            from (select * from operator_acts where transfer_id is not null) a
            full join (select * from ledger_transfers where code in ('operator_grant', 'operator_refund')) t
              on t.account_id = a.account_id and t.id = a.transfer_id
            left join calls c on c.account_id = a.account_id and c.id = a.call_id
            where (a.id is not null and (t.amount_micros is distinct from a.amount_micros
                     or t.code is distinct from case a.act when 'grant' then 'operator_grant' else 'operator_refund' end))
               or (t.code = 'operator_refund' and (a.id is null or c.state is distinct from 1 or t.debit_account <> 1
                     or t.amount_micros is distinct from c.price_micros
                     or exists (select 1 from ledger_transfers r where r.account_id = t.account_id
                       and r.code = 'call_refund' and r.note = 'undelivered call ' || a.call_id))) limit 1`,
      say: (r) => `${r.what} ${r.id} does not match: its transfer moved ${r.amount_micros}`,
    },
  ],
};
