import type { Database, Transaction } from '../db/connection.ts';
import { houseAccountName } from './accounts.ts';
import { CARD_RULES, CARD_TOTALS, type CardTotals } from './card-rules.ts';
import type { Rule } from './rule.ts';
import { TOPUP_RULES } from './topup-rules.ts';
import { TRIAL_RULES } from './trial-rules.ts';

export interface BooksCheck {
  /** What must hold. */
  name: string;
  ok: boolean;
  /** The first thing that does not balance, in words; null when all does. */
  finding: string | null;
}

export interface Books {
  balanced: boolean;
  checks: BooksCheck[];
  /** Sums of all posted transfers, by house account: micro-USD, debits negative. */
  house: { account: string; netMicros: bigint }[];
  /** What we owe to customers. */
  customersMicros: bigint;
  reservedMicros: bigint;
  transfers: bigint;
  calls: { captured: bigint; released: bigint; open: bigint };
  /** What is with a chain, or owed on one. */
  onChain: { settling: bigint; lost: bigint; refundsOwed: bigint; refundsPaid: bigint };
  cards: CardTotals;
}

const RULES: readonly Rule[] = [
  {
    name: 'every balance equals its transfers',
    sql: `
      select a.id, a.debits_pending, a.debits_posted, a.credits_pending, a.credits_posted,
             coalesce(s.dp, 0) as dp, coalesce(s.d, 0) as d, coalesce(s.cp, 0) as cp, coalesce(s.c, 0) as c
      from ledger_accounts a left join (
        select account_id,
          sum(case phase when 2 then amount_micros when 3 then -amount_micros when 4 then -amount_micros else 0 end)
            filter (where debit_account = account_id) as dp,
          sum(amount_micros) filter (where phase in (1, 3) and debit_account = account_id) as d,
          sum(case phase when 2 then amount_micros when 3 then -amount_micros when 4 then -amount_micros else 0 end)
            filter (where credit_account = account_id) as cp,
          sum(amount_micros) filter (where phase in (1, 3) and credit_account = account_id) as c
        from ledger_transfers group by account_id
      ) s on s.account_id = a.id
      where not a.house and (a.debits_pending, a.debits_posted, a.credits_pending, a.credits_posted)
        is distinct from (coalesce(s.dp, 0), coalesce(s.d, 0), coalesce(s.cp, 0), coalesce(s.c, 0))
      order by a.id limit 1`,
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
    sql: `select t.id, t.account_id from ledger_transfers t
          where not exists (select 1 from ledger_accounts a where a.id = t.debit_account)
             or not exists (select 1 from ledger_accounts a where a.id = t.credit_account) limit 1`,
    say: (r) => `transfer ${r.id} names an account that does not exist (account ${r.account_id})`,
  },
  {
    name: 'every post and void has its pending transfer, and the same amount and accounts',
    sql: `select e.id, e.account_id from ledger_transfers e
          left join ledger_transfers t on t.account_id = e.account_id and t.id = e.id and t.phase = 2
          where e.phase in (3, 4) and (t.id is null or t.amount_micros <> e.amount_micros
            or t.debit_account <> e.debit_account or t.credit_account <> e.credit_account) limit 1`,
    say: (r) => `the resolution ${r.id} of account ${r.account_id} does not match a pending transfer`,
  },
  {
    name: 'every call has exactly the transfers of its state',
    sql: `select c.id, c.account_id, c.state, t.phase as first, e.phase as last, t.amount_micros, c.price_micros
          from calls c
          left join ledger_transfers t on t.account_id = c.account_id and t.id = c.id and t.phase = 2
          left join ledger_transfers e on e.account_id = c.account_id and e.id = c.id and e.phase in (3, 4)
          where t.id is null or t.amount_micros <> c.price_micros
             or e.phase is distinct from (case c.state when 1 then 3 when 2 then 4 end) limit 1`,
    say: (r) =>
      `call ${r.id} of account ${r.account_id} is in state ${r.state}, its transfers are ${r.first}, ${r.last}`,
  },
  {
    name: 'every open call is where open calls are looked for',
    sql: `select c.id, c.account_id, c.begun_at from calls c
          where c.state = 0 and not exists (select 1 from open_calls() o where o.account_id = c.account_id and o.id = c.id)
          limit 1`,
    say: (r) =>
      `call ${r.id} of account ${r.account_id} is open since ${r.begun_at}, and no job would find it`,
  },
  {
    name: 'every transfer for a call has its call, and every refund a captured one',
    sql: `select t.id, t.account_id, t.code from ledger_transfers t
          left join calls c on c.account_id = t.account_id and c.id = t.id
          where (t.code = 'call' and c.id is null)
             or (t.code in ('onchain_refund', 'settlement_lost') and not exists (
               select 1 from calls r where r.account_id = t.account_id and r.state = 1
                 and t.note in ('refund of call ' || r.id, 'lost settlement of call ' || r.id)))
             or (t.code = 'call_refund' and not exists (
               select 1 from calls r where r.account_id = t.account_id and r.state = 1
                 and t.note = 'undelivered call ' || r.id and r.price_micros = t.amount_micros)) limit 1`,
    say: (r) => `transfer ${r.id} (${r.code}) of account ${r.account_id} has no call`,
  },
  {
    name: 'every captured call that a chain paid for has its transaction',
    sql: `select c.id, c.rail, s.state, s.transaction, s.amount_units from calls c
          left join settlements s on s.account_id = c.account_id and s.call_id = c.id
          where c.rail in ('x402', 'mpp') and c.state = 1
            and (s.transaction is null or s.state not in (1, 4) or s.amount_units < c.price_micros
              or s.amount_units > c.price_micros
                and (s.evidence->>'scheme' is distinct from 'transfer' or s.evidence ? 'priceUnits')) limit 1`,
    say: (r) =>
      `call ${r.id} (${r.rail}) is captured; its settlement is in state ${r.state}, by ${r.transaction}, of ${r.amount_units}`,
  },
  {
    name: 'every settlement is in step with its call',
    sql: `select s.call_id, s.state, c.state as call_state from settlements s
          left join calls c on c.account_id = s.account_id and c.id = s.call_id
          where c.id is null or c.state = 0 or (s.state = 2) <> (c.state = 2)
             or (s.state in (0, 3) and c.state <> 3) limit 1`,
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
            select account_id, service, (finished_at at time zone 'UTC')::date as day, sum(price_micros) as spent,
                   count(*) as calls
            from calls where state = 1 and account_id >= 1000 group by 1, 2, 3
          ) c on c.account_id = s.account_id and c.service = s.service and c.day = s.day
          where s.spent_micros is distinct from c.spent or s.calls is distinct from c.calls limit 1`,
    say: (r) =>
      `account ${r.account_id}, ${r.service} on ${r.day}: spending says ${r.spent_micros}, calls say ${r.spent}`,
  },
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
  {
    name: 'every key leads to an account, every trial has its grant',
    sql: `select k.id, k.account_id from api_keys k
          where not exists (select 1 from ledger_accounts a where a.id = k.account_id and not a.house)
             or (k.kind = 'trial' and not exists (
               select 1 from ledger_transfers t where t.account_id = k.account_id and t.code = 'trial_grant')) limit 1`,
    say: (r) => `key ${r.id} has no proper account (${r.account_id})`,
  },
  ...TRIAL_RULES,
  ...TOPUP_RULES,
  ...CARD_RULES,
];

/** A rule reads a table or two: what takes longer than this will not end. */
const STEP_TIMEOUT_MS = 3_600_000;

/**
 * Proves the books from the transfers up, while calls go on. Each rule has a snapshot of its own, and so have the sums: a
 * snapshot that is held keeps the database from clearing away what is past, and a rule needs no other's.
 *
 * @param session what the database shows the proof as, and whether it is still wanted: asked before each step
 * @returns each rule with the first thing that breaks it, and the sums
 * @throws ProofUnwanted
 */
export async function proveBooks(
  sql: Database,
  session: { name: string; wanted(): boolean } = { name: 'farebox books', wanted: () => true },
): Promise<Books> {
  async function step<T>(read: (transaction: Transaction) => Promise<T>): Promise<T> {
    if (!session.wanted()) throw new ProofUnwanted();
    // The driver's types unwrap what a transaction returns; what is read here holds no promises.
    const [value] = await sql.begin('isolation level repeatable read read only', async (transaction) => {
      await transaction`
        select set_config('statement_timeout', ${String(STEP_TIMEOUT_MS)}, true),
               set_config('application_name', ${session.name}, true)`;
      return [await read(transaction)] as const;
    });
    return value as T;
  }
  const checks: BooksCheck[] = [];
  for (const rule of RULES) {
    const [row] = await step((transaction) => transaction.unsafe<Record<string, unknown>[]>(rule.sql));
    checks.push({
      name: rule.name,
      ok: row === undefined,
      finding: row === undefined ? null : rule.say(row),
    });
  }
  return step((transaction) => sumsOf(transaction, checks));
}

/** The proof was given up: somebody else has taken over. */
export class ProofUnwanted extends Error {}

async function sumsOf(transaction: Transaction, checks: BooksCheck[]): Promise<Books> {
  const house = await transaction<{ account: bigint; net: bigint }[]>`
      select account, sum(amount)::bigint as net from (
        select credit_account as account, amount_micros as amount from ledger_transfers where phase in (1, 3)
        union all
        select debit_account, -amount_micros from ledger_transfers where phase in (1, 3)
      ) entries where account < 1000 group by account order by account`;
  const [customers] = await transaction<{ owed: bigint; reserved: bigint }[]>`
      select coalesce(sum(credits_posted - debits_posted), 0)::bigint as owed,
             coalesce(sum(debits_pending), 0)::bigint as reserved
      from ledger_accounts where not house`;
  const [counts] = await transaction<
    { transfers: bigint; captured: bigint; released: bigint; open: bigint }[]
  >`
      select (select count(*) from ledger_transfers) as transfers,
             count(*) filter (where state = 1) as captured, count(*) filter (where state = 2) as released,
             count(*) filter (where state in (0, 3)) as open from calls`;
  const [onChain] = await transaction<{ settling: bigint; lost: bigint; owed: bigint; paid: bigint }[]>`
      select (select count(*) from settlements where state in (0, 3)) as settling,
             (select count(*) from settlements where state = 4) as lost,
             count(*) filter (where state = 0) as owed, count(*) filter (where state = 1) as paid from refunds`;
  const [cards] =
    await transaction.unsafe<
      {
        orders: bigint;
        paid: bigint;
        reversed: bigint;
        disputed: bigint;
        owed: bigint;
        promotions: bigint;
      }[]
    >(CARD_TOTALS);
  const customersMicros = customers?.owed ?? 0n;
  const houseMicros = house.reduce((sum, { net }) => sum + net, 0n);
  checks.unshift({
    name: 'all entries sum to zero',
    ok: houseMicros + customersMicros === 0n,
    finding:
      houseMicros + customersMicros === 0n
        ? null
        : `customers hold ${customersMicros} micro-USD, the house's accounts net ${houseMicros}`,
  });
  return {
    balanced: checks.every(({ ok }) => ok),
    checks,
    house: house.map(({ account, net }) => ({
      account: houseAccountName(account) ?? String(account),
      netMicros: net,
    })),
    customersMicros,
    reservedMicros: customers?.reserved ?? 0n,
    transfers: counts?.transfers ?? 0n,
    calls: { captured: counts?.captured ?? 0n, released: counts?.released ?? 0n, open: counts?.open ?? 0n },
    onChain: {
      settling: onChain?.settling ?? 0n,
      lost: onChain?.lost ?? 0n,
      refundsOwed: onChain?.owed ?? 0n,
      refundsPaid: onChain?.paid ?? 0n,
    },
    cards: {
      orders: cards?.orders ?? 0n,
      paidMicros: cards?.paid ?? 0n,
      reversedMicros: cards?.reversed ?? 0n,
      disputedMicros: cards?.disputed ?? 0n,
      owedMicros: cards?.owed ?? 0n,
      promotionsMicros: cards?.promotions ?? 0n,
    },
  };
}
