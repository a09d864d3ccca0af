import type { Database, Transaction } from '../db/connection.ts';
import { isDistributed } from '../db/distribution.ts';
import { houseAccountName } from './accounts.ts';
import { type OpenDays, openDays } from './closed-days.ts';
import { accountsAreThere, LEDGER_RULES } from './ledger-rules.ts';
import type { Audited, Rule } from './rule.ts';
import { BY_TIME, openSpreadBooks, type SpreadBooks } from './spread-books.ts';

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
  /** The last closed day that the proof took as given, YYYY-MM-DD in UTC; null: it read everything. */
  closedTo: string | null;
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

/** What the database shows a proof as, and whether it is still wanted. */
interface Session {
  name: string;
  wanted(): boolean;
}

/** A rule reads a table or two: what takes longer than this will not end. */
const STEP_TIMEOUT_MS = 3_600_000;

/**
 * Proves the books from the transfers up, while calls go on. Each rule has a snapshot of its own, and so have the sums: a
 * snapshot that is held keeps the database from clearing away what is past, and a rule needs no other's.
 *
 * @param parts what must hold of what each part keeps, beside the ledger's own rules
 * @param reads `open days` takes the balances of closed days as given, and reads what came since; `everything` takes nothing as
 *   given
 * @param session what the database shows the proof as, and whether it is still wanted: asked before each step
 * @returns each rule with the first thing that breaks it, and the sums
 * @throws ProofUnwanted
 */
export async function proveBooks(
  sql: Database,
  parts: readonly Audited[],
  session: Session = { name: 'farebox books', wanted: () => true },
  reads: 'everything' | 'open days' = 'everything',
): Promise<Books> {
  const open = reads === 'everything' ? null : await openDays(sql);
  async function step<T>(read: (transaction: Transaction) => Promise<T>): Promise<T> {
    if (!session.wanted()) throw new ProofUnwanted();
    // The driver's types unwrap what a transaction returns; what is read here holds no promises.
    const [value] = await sql.begin('isolation level repeatable read read only', async (transaction) => {
      await transaction`
        select set_config('statement_timeout', ${String(STEP_TIMEOUT_MS)}, true),
               set_config('application_name', ${session.name}, true)`;
      // Whoever closes a day meanwhile moves what is taken as given.
      if (open !== null && (await openDays(transaction))?.since !== open.since) throw new ProofUnwanted();
      return [await read(transaction)] as const;
    });
    return value as T;
  }
  const spread = (await isDistributed(sql)) ? await openSpreadBooks(sql) : null;
  /** @returns null when there is nothing to ask: a rule about closed days alone has nothing to ask of open ones */
  async function check(rule: Rule): Promise<BooksCheck | null> {
    const query = open === null ? rule.sql : (rule.ofOpenDays?.(open.since) ?? rule.sql);
    if (query === '') return null;
    const isByTime = spread !== null && rule.dayByDay === true;
    const read = (query: string) =>
      open === null && !isByTime
        ? readAlone(sql, query, session)
        : step(async (transaction) => {
            // In a message of its own: Citus hands the whole text of it on to other servers.
            if (isByTime) await transaction.unsafe(BY_TIME);
            return transaction.unsafe<Record<string, unknown>[]>(query);
          });
    for (const each of spread?.queriesOf(rule, query) ?? [query]) {
      const look = async () => (await read(each))[0];
      const row = await (spread === null ? look() : spread.surely(look));
      if (row !== undefined) return { name: rule.name, ok: false, finding: rule.say(row) };
    }
    return { name: rule.name, ok: true, finding: null };
  }
  const checks: BooksCheck[] = [];
  for (const rule of rulesOf(parts, spread !== null)) {
    const checked = await check(rule);
    if (checked !== null) checks.push(checked);
  }
  let sums = await sumsOf(step, parts, open, spread);
  // An account that is moved from one part to another meanwhile may have been added up in both or in neither.
  await spread?.surely(async () => {
    if (differenceIn(sums.amounts) === 0n) return undefined;
    const row = { difference: differenceIn(sums.amounts) };
    sums = await sumsOf(step, parts, open, spread);
    return row;
  });
  return reportOf(sums, checks, open);
}

/** The sum of all entries, which is zero. */
function differenceIn(amounts: readonly Amounts[]): bigint {
  return amounts.reduce((all, { house, owed }) => house.reduce((sum, { net }) => sum + net, all + owed), 0n);
}

function rulesOf(parts: readonly Audited[], isSpread: boolean): Rule[] {
  const rules = [...LEDGER_RULES, ...parts.flatMap((part) => part.rules)];
  if (isSpread) rules.push(...parts.flatMap((part) => part.namesAccounts ?? []).map(accountsAreThere));
  return rules;
}

/**
 * Reads what one query finds in a transaction of its own, which begins and ends with its message to the database: a proof asks some
 * fifty queries, and most are over sooner than four messages have gone back and forth.
 */
async function readAlone(
  sql: Database,
  query: string,
  { name, wanted }: Session,
): Promise<readonly Record<string, unknown>[]> {
  if (!wanted()) throw new ProofUnwanted();
  const statements = [
    'set transaction isolation level repeatable read read only',
    `set local statement_timeout = ${STEP_TIMEOUT_MS}`,
    `set local application_name = '${name.replaceAll("'", "''")}'`,
    query,
  ];
  // The driver gives what has no rows one answer together, and each query after that its own.
  const [, found, ...others] = await sql.unsafe<Record<string, unknown>[][]>(statements.join(';\n'));
  if (!Array.isArray(found) || others.length > 0) throw new Error('a rule of the books is one query');
  return found;
}

/** The proof was given up: somebody else has taken over. */
export class ProofUnwanted extends Error {}

interface Amounts {
  house: readonly { account: bigint; net: bigint }[];
  owed: bigint;
  reserved: bigint;
  transfers: bigint;
}

interface Sums {
  /** Those of one PostgreSQL, or of each part of a database that is spread: each is of one snapshot. */
  amounts: readonly Amounts[];
  /** Transfers that are counted and not read. */
  carried: bigint;
  totals: Record<string, unknown>;
}

/** @param step reads in one snapshot */
async function sumsOf(
  step: <T>(read: (transaction: Transaction) => Promise<T>) => Promise<T>,
  parts: readonly Audited[],
  open: OpenDays | null,
  spread: SpreadBooks | null,
): Promise<Sums> {
  const carriedIn = open === null ? 'ledger_carried' : 'ledger_days';
  if (spread === null)
    return step(async (transaction) => ({
      amounts: [await amountsOf(transaction, open, (query) => query)],
      ...(await totalsOf(transaction, parts, { isOfDays: open !== null, carriedIn })),
    }));
  const amounts: Amounts[] = [];
  for (const part of spread.parts)
    amounts.push(await step((transaction) => amountsOf(transaction, open, part)));
  // Days are counted bucket by bucket there, each as far as its server has come: all calls are counted instead.
  return {
    amounts,
    ...(await step((transaction) => totalsOf(transaction, parts, { isOfDays: false, carriedIn }))),
  };
}

/** @param of what is read of, as a query: all, or a part */
async function amountsOf(
  transaction: Transaction,
  open: OpenDays | null,
  of: (query: string) => string,
): Promise<Amounts> {
  // What closed days hold, or, where nothing is taken as given, what was carried of transfers that stand in files.
  const given =
    open === null
      ? `select account_id as account, credits_posted - debits_posted as amount from ledger_carried`
      : `select account_id, credits_posted - debits_posted from ledger_closed_balances`;
  const since = open === null ? '' : `and created_at >= ${open.since}`;
  const house = await transaction.unsafe<{ account: bigint; net: bigint }[]>(
    of(`
      select account, sum(amount)::bigint as net from (
        ${given}
        union all
        select credit_account, amount_micros from ledger_transfers where phase in (1, 3) ${since}
        union all
        select debit_account, -amount_micros from ledger_transfers where phase in (1, 3) ${since}
      ) entries (account, amount) where account < 1000 group by account order by account`),
  );
  const [customers] = await transaction.unsafe<{ owed: bigint; reserved: bigint }[]>(
    of(`
      select coalesce(sum(credits_posted - debits_posted), 0)::bigint as owed,
             coalesce(sum(debits_pending), 0)::bigint as reserved
      from ledger_accounts where not house`),
  );
  // But for those of calls that were begun and released on one day, which do not stay.
  const [counted] = await transaction.unsafe<{ transfers: bigint }[]>(
    of(`
      select (select count(*) from ledger_transfers where true ${since}) - 2 * (
        select count(*) from ledger_transfers e cross join lateral (
          select created_at from ledger_transfers t
          where t.account_id = e.account_id and t.id = e.id and t.phase = 2 ${open === null ? '' : 'offset 0'}
        ) t
        where e.phase = 4 ${since.replaceAll('created_at', 'e.created_at')}
          and (t.created_at at time zone 'UTC')::date = (e.created_at at time zone 'UTC')::date
      ) as transfers`),
  );
  return {
    house,
    owed: customers?.owed ?? 0n,
    reserved: customers?.reserved ?? 0n,
    transfers: counted?.transfers ?? 0n,
  };
}

async function totalsOf(
  transaction: Transaction,
  parts: readonly Audited[],
  { isOfDays, carriedIn }: { isOfDays: boolean; carriedIn: string },
): Promise<Pick<Sums, 'totals' | 'carried'>> {
  const [carried] = await transaction.unsafe<{ transfers: bigint }[]>(
    `select coalesce(sum(transfers), 0)::bigint as transfers from ${carriedIn}`,
  );
  const totals: Record<string, unknown> = {};
  for (const part of parts) {
    const queries = { ...part.totals, ...(isOfDays ? part.totalsOfOpenDays : {}) };
    for (const [name, query] of Object.entries(queries)) [totals[name]] = await transaction.unsafe(query);
  }
  return { carried: carried?.transfers ?? 0n, totals };
}

function reportOf(
  { amounts, carried, totals }: Sums,
  rules: readonly BooksCheck[],
  open: OpenDays | null,
): Books {
  const sum = (of: (amounts: Amounts) => bigint) => amounts.reduce((all, each) => all + of(each), 0n);
  const customersMicros = sum(({ owed }) => owed);
  const nets = new Map<bigint, bigint>();
  for (const { account, net } of amounts.flatMap(({ house }) => house))
    nets.set(account, (nets.get(account) ?? 0n) + net);
  const houseMicros = [...nets.values()].reduce((all, net) => all + net, 0n);
  const isZero = houseMicros + customersMicros === 0n;
  const checks = [
    {
      name: 'all entries sum to zero',
      ok: isZero,
      finding: isZero
        ? null
        : `customers hold ${customersMicros} micro-USD, the house's accounts net ${houseMicros}`,
    },
    ...rules,
  ];
  return {
    balanced: checks.every(({ ok }) => ok),
    checks,
    house: [...nets]
      .sort(([one], [other]) => Number(one - other))
      .map(([account, netMicros]) => ({ account: houseAccountName(account) ?? String(account), netMicros })),
    customersMicros,
    reservedMicros: sum(({ reserved }) => reserved),
    transfers: carried + sum(({ transfers }) => transfers),
    closedTo: open?.closedTo ?? null,
    ...NOTHING,
    ...totals,
  };
}
