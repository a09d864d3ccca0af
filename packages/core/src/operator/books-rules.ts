import type { Audited } from '../ledger/rule.ts';

/** Before the first act. */
const BEGINNING = `decode(repeat('00', 32), 'hex')`;

/** Rules of the books for the money that operators move, and for the record of their acts. */
export const OPERATOR_BOOKS: Audited = {
  namesAccounts: [{ table: 'operator_acts', column: 'account_id' }],
  rules: [
    {
      name: 'every act of an operator that moves money has its transfer, and a call is refunded once, at its price',
      sql: `select coalesce(a.id, t.id) as id, coalesce(a.act, t.code) as what, t.amount_micros
            from (select * from operator_acts where transfer_id is not null and act <> 'refund_payment') a
            full join (select * from ledger_transfers where code in ('operator_grant', 'operator_refund')) t
              on t.account_id = a.account_id and t.id = a.transfer_id
            left join lateral (select * from calls where account_id = a.account_id and id = a.call_id offset 0) c on true
            where (a.id is not null and (t.amount_micros is distinct from a.amount_micros
                     or t.code is distinct from case a.act when 'grant' then 'operator_grant' else 'operator_refund' end))
               or (t.code = 'operator_refund' and (a.id is null or c.state is distinct from 1 or t.debit_account <> 1
                     or t.amount_micros is distinct from c.price_micros
                     or exists (select 1 from ledger_transfers r where r.account_id = t.account_id
                       and r.code = 'call_refund' and r.note = 'undelivered call ' || a.call_id))) limit 1`,
      say: (r) => `${r.what} ${r.id} does not match: its transfer moved ${r.amount_micros}`,
    },
    {
      // A job sends it, and books the transfer when the chain has it: rules about refunds on chains hold the two together.
      name: 'every payment that an operator sends back is owed on its chain, at the price of its call',
      sql: `select a.id, a.call_id, a.amount_micros, r.amount_micros as owed from operator_acts a
            left join refunds r on r.account_id = a.account_id and r.call_id = a.call_id
            left join lateral (select * from calls where account_id = a.account_id and id = a.call_id offset 0) c on true
            where a.act = 'refund_payment'
              and (r.amount_micros is distinct from a.amount_micros or c.price_micros is distinct from a.amount_micros) limit 1`,
      say: (r) => `act ${r.id} sends back ${r.amount_micros} of call ${r.call_id}, and ${r.owed} is owed`,
    },
    {
      // The trigger `operator_acts_chained` has the same text.
      name: 'every act of an operator stands as it was written, after the one that was before it',
      sql: `(select a.number, a.id from (
              select *, lag(digest, 1, ${BEGINNING}) over (order by number) as before from operator_acts
            ) a where a.digest <> sha256(a.before || convert_to(
              jsonb_build_array(a.number, a.id, to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), a.actor, a.act,
                a.account_id, a.key_id, a.order_id, a.call_id, a.amount_micros, a.reason, a.transfer_id,
                encode(a.idempotency_digest, 'hex'), encode(a.request_digest, 'hex'))::text, 'UTF8'))
              order by a.number limit 1)
            union all
            select l.number, l.id from (values (1)) one left join (
              select number, id, digest from operator_acts order by number desc limit 1
            ) l on true
            where not exists (
              select 1 from operator_acts_head h
              where h.number = coalesce(l.number, 0) and h.digest = coalesce(l.digest, ${BEGINNING})
            ) limit 1`,
      say: (r) =>
        r.id === null
          ? 'all acts of operators are gone'
          : `the digest of act ${r.number} (${r.id}) says that it, or one beside it, was changed or removed`,
    },
    {
      // The trigger `operator_trail_chained` has the same text.
      name: 'every row of the trail of operators stands as it was written, after the one that was before it',
      sql: `(select a.number from (
              select *, lag(digest, 1, ${BEGINNING}) over (order by number) as before,
                     lag(number, 1, 0::bigint) over (order by number) as number_before from operator_trail
            ) a where a.number <> a.number_before + 1 or a.digest <> sha256(a.before || convert_to(
              jsonb_build_array(a.number, to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), a.kind, a.actor,
                a.issuer, a.subject, a.email, a.role, a.address, a.about)::text, 'UTF8'))
              order by a.number limit 1)
            union all
            select coalesce(l.number, 0) from (values (1)) one left join (
              select number, digest from operator_trail order by number desc limit 1
            ) l on true
            where not exists (
              select 1 from operator_trail_head h
              where h.number = coalesce(l.number, 0) and h.digest = coalesce(l.digest, ${BEGINNING})
            ) limit 1`,
      say: (r) => `the trail of operators was changed, or cut off, at row ${r.number}`,
    },
  ],
};
