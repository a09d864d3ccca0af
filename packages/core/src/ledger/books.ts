import type { Database, Transaction } from '../db/connection.ts';
import { houseAccountName } from './accounts.ts';
import type { Audited, Rule } from './rule.ts';

export interface BooksCheck {
  /** The rule, in words. */
  name: string;
  ok: boolean;
  /** The first thing that does not balance, in words; null when all does. */
  finding: string | null;
}

/** Sums over card money, in micro-USD. */
interface CardTotals {
  /** How many orders were paid. */
  orders: bigint;
  paidMicros: bigint;
  /** The refunded or disputed part of it. */
  reversedMicros: bigint;
  /** The disputed part of that, which may still come back. */
  disputedMicros: bigint;
  /** Debts of customers: payments taken back after their credit was spent. */
  owedMicros: bigint;
  /** Credit given beyond what was paid for it, less what was taken back with the payment. */
  promotionsMicros: bigint;
}

export interface Books {
  balanced: boolean;
  checks: BooksCheck[];
  /** Sums of all posted transfers, by house account: micro-USD, debits negative. */
  house: { account: string; netMicros: bigint }[];
  /** Balances of customers. */
  customersMicros: bigint;
  reservedMicros: bigint;
  transfers: bigint;
  calls: { captured: bigint; released: bigint; open: bigint };
  /** Settlements that a chain has not decided, and refunds owed on chains. */
  onChain: { settling: bigint; lost: bigint; refundsOwed: bigint; refundsPaid: bigint };
  cards: CardTotals;
}

/** The report's values when no part keeps such money. */
const NOTHING: Pick<Books, 'calls' | 'onChain' | 'cards'> = {
  calls: { captured: 0n, released: 0n, open: 0n },
  onChain: { settling: 0n, lost: 0n, refundsOwed: 0n, refundsPaid: 0n },
  cards: {
    orders: 0n,
    paidMicros: 0n,
    reversedMicros: 0n,
    disputedMicros: 0n,
    owedMicros: 0n,
    promotionsMicros: 0n,
  },
};

/** Rules about accounts and transfers alone. Each part that moves money has its own rules beside its code. */
const LEDGER_RULES: readonly Rule[] = [
  {
    name: 'every balance equals its transfers',
    sql: `
      select a.id, a.debits_pending, a.debits_posted, a.credits_pending, a.credits_posted,
             coalesce(s.dp, 0) as dp, coalesce(s.d, 0) as d, coalesce(s.cp, 0) as cp, coalesce(s.c, 0) as c
      from ledger_accounts a left join (
        select account_id,
          sum(case phase when 2 then amount_micros when 3 then -coalesce(reserved_micros, amount_micros) when 4 then -amount_micros else 0 end)
            filter (where debit_account = account_id) as dp,
          sum(amount_micros) filter (where phase in (1, 3) and debit_account = account_id) as d,
          sum(case phase when 2 then amount_micros when 3 then -coalesce(reserved_micros, amount_micros) when 4 then -amount_micros else 0 end)
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
    name: 'every post and void has its pending transfer, frees all of its amount, and has the same accounts',
    sql: `select e.id, e.account_id from ledger_transfers e
          left join ledger_transfers t on t.account_id = e.account_id and t.id = e.id and t.phase = 2
          where e.phase in (3, 4) and (t.id is null or t.amount_micros <> coalesce(e.reserved_micros, e.amount_micros)
            or e.amount_micros > t.amount_micros or t.debit_account <> e.debit_account or t.credit_account <> e.credit_account) limit 1`,
    say: (r) => `the resolution ${r.id} of account ${r.account_id} does not match a pending transfer`,
  },
];

/** A rule reads a table or two: what takes longer than this will not end. */
const STEP_TIMEOUT_MS = 3_600_000;

/**
 * Proves the books from the transfers up, while calls go on. Each rule has a snapshot of its own, and so have the sums: a
 * snapshot that is held keeps the database from clearing away what is past, and a rule needs no other's.
 *
 * @param parts what must hold of what each part keeps, beside the ledger's own rules
 * @param session what the database shows the proof as, and whether it is still wanted: asked before each step
 * @returns each rule with the first thing that breaks it, and the sums
 * @throws ProofUnwanted
 */
export async function proveBooks(
  sql: Database,
  parts: readonly Audited[],
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
  for (const rule of [...LEDGER_RULES, ...parts.flatMap(({ rules }) => rules)]) {
    const [row] = await step((transaction) => transaction.unsafe<Record<string, unknown>[]>(rule.sql));
    checks.push({
      name: rule.name,
      ok: row === undefined,
      finding: row === undefined ? null : rule.say(row),
    });
  }
  return step((transaction) => sumsOf(transaction, parts, checks));
}

/** The proof was given up: somebody else has taken over. */
export class ProofUnwanted extends Error {}

async function sumsOf(
  transaction: Transaction,
  parts: readonly Audited[],
  checks: BooksCheck[],
): Promise<Books> {
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
  const [counted] = await transaction<{ transfers: bigint }[]>`
      select count(*) as transfers from ledger_transfers`;
  const totals: Record<string, unknown> = {};
  for (const [name, query] of parts.flatMap((part) => Object.entries(part.totals ?? {})))
    [totals[name]] = await transaction.unsafe(query);
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
    transfers: counted?.transfers ?? 0n,
    ...NOTHING,
    ...totals,
  };
}
