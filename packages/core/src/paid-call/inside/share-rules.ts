import { overRowsSince, type Rule } from '../../ledger/rule.ts';

/** What must hold of shares of calls: what is set aside, what was taken back, and what was paid out. */
export const SHARE_RULES: readonly Rule[] = [
  {
    name: 'every share of a call was set aside with its capture, once and of its amount',
    sql: setAside('true', 'true', ''),
    // A share is set aside at the time of its transfer.
    ofOpenDays: (since) => setAside(`set_aside_at >= ${since}`, `created_at >= ${since}`, 'offset 0'),
    say: (r) =>
      `the share of call ${r.id} is in state ${r.state}, of ${r.amount_micros}, its transfer of ${r.moved}, the call in state ${r.call_state}`,
  },
  {
    name: 'a captured call that is shared has its share, and nobody shares in a call of their own',
    ...overRowsSince(
      'c.created_at',
      (which, oneByOne) => `select c.id, c.state, s.state as share, s.beneficiary from calls c
          left join lateral (select * from call_shares s where s.account_id = c.account_id and s.call_id = c.id ${oneByOne}) s on true
          where ${which} and c.shared and c.state = 1 and (s.call_id is null or s.state = 0 or s.beneficiary = c.account_id) limit 1`,
    ),
    say: (r) =>
      `call ${r.id} is in state ${r.state}, its share for account ${r.beneficiary} in state ${r.share}`,
  },
  {
    name: 'a share is taken back if, and only if, the price of its call went back',
    // Read once for all shares: what was given back grows with what went wrong, and not with calls.
    sql: `with given_back as materialized (
            select account_id, id, amount_micros, code,
                   substring(note from '^(?:refund of|lost settlement of|undelivered) call ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$')::uuid as call_id
            from ledger_transfers where code <> 'call'
            union all
            select t.account_id, t.id, t.amount_micros, t.code, a.call_id from operator_acts a
            join ledger_transfers t on t.account_id = a.account_id and t.id = a.transfer_id and t.code = 'operator_refund'
          ), returned as materialized (
            select s.account_id, s.call_id, min(g.code) as code, array_agg(g.id) as transfers from call_shares s
            join given_back g on g.account_id = s.account_id and g.call_id = s.call_id
            cross join lateral (select price_micros from calls where account_id = s.account_id and id = s.call_id offset 0) c
            where g.amount_micros >= c.price_micros group by 1, 2
          )
          select s.call_id as id, s.state, b.amount_micros as back, r.code from call_shares s
          left join ledger_transfers b on b.account_id = 13 and b.code = 'share_back'
            and b.note = 'share of call ' || s.call_id
          left join returned r on r.account_id = s.account_id and r.call_id = s.call_id
          where s.state > 0 and ((s.state = 2) <> (r.code is not null)
            or (s.state = 2 and s.reversed_micros < s.amount_micros) <> (b.id is not null)
            or b.amount_micros <> s.amount_micros - s.reversed_micros)
            -- What a spread database's coordinator has yet to hear of takes the share back when it does.
            and not exists (select 1 from ledger_outbox o where o.account_id = s.account_id and o.id = any (r.transfers)) limit 1`,
    say: (r) =>
      `the share of call ${r.id} is in state ${r.state}; back went ${r.back}, and the price by ${r.code}`,
  },
  {
    name: 'what went back of shares with a card payment is what its transfers say',
    sql: `select coalesce('shares of order ' || s.reversed_by, x.note) as name, s.micros, x.moved
          from (select reversed_by, sum(reversed_micros) as micros from call_shares
                where reversed_by is not null group by 1) s
          full join (
            select note, sum(case debit_account when 13 then amount_micros else -amount_micros end) as moved
            from ledger_transfers where code in ('share_reversed', 'share_restored') group by 1
          ) x on x.note = 'shares of order ' || s.reversed_by
          where coalesce(s.micros, 0) <> coalesce(x.moved, 0) limit 1`,
    together: {},
    say: (r) => `${r.name}: ${r.micros} went back; its transfers say ${r.moved}`,
  },
  {
    name: 'what is owed of shares is what was set aside, less what went back and was paid out',
    sql: owed('0', 'true'),
    // What was moved on closed days is taken as given.
    ofOpenDays: (since) =>
      owed(
        `coalesce((select credits_posted - debits_posted from ledger_closed_balances where account_id = 13), 0)`,
        `created_at >= ${since}`,
      ),
    together: {},
    say: (r) =>
      `shares of ${r.due} are due and ${r.held} is held; ${r.paid} was paid out, by transfers of ${r.moved}`,
  },
];

/**
 * The query for shares and transfers of theirs that do not match.
 *
 * @param shares which shares
 * @param transfers which transfers
 * @param oneByOne the end of a LATERAL query, as in `overRowsSince`
 */
function setAside(shares: string, transfers: string, oneByOne: string): string {
  return `select coalesce(s.call_id, t.id) as id, s.state, s.amount_micros, t.amount_micros as moved, c.state as call_state
          from (select * from call_shares where state > 0 and ${shares}) s
          full join (select * from ledger_transfers where code = 'share' and ${transfers}) t on t.id = s.call_id
          left join lateral (
            select * from calls c where c.account_id = s.account_id and c.id = s.call_id ${oneByOne}
          ) c on true
          where s.call_id is null or t.id is null or t.amount_micros <> s.amount_micros or c.state is distinct from 1
             or t.amount_micros > c.price_micros or t.created_at is distinct from c.finished_at limit 1`;
}

/** The query that compares what is owed with what is held. @param given what is held of days that are not read */
function owed(given: string, which: string): string {
  return `select * from (
            select (select coalesce(sum(due_micros), 0) from call_shares) as due,
                   ${given} + (select coalesce(sum(case when credit_account = 13 then amount_micros else -amount_micros end), 0)
                    from ledger_transfers where 13 in (debit_account, credit_account) and phase in (1, 3) and ${which}) as held,
                   (select coalesce(sum(amount_micros), 0) from share_payouts) as paid,
                   (select coalesce(sum(t.amount_micros), 0) from share_payouts p join ledger_transfers t
                    on t.account_id = p.beneficiary and t.id = p.transfer_id and t.code = 'share_payout'
                      and t.amount_micros = p.amount_micros) as moved
          ) sums where due <> held or paid <> moved`;
}
