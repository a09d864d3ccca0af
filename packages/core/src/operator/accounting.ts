/**
 * The books by day, for an accountant: what each day moved, by rail and service, and what it cost. Days are those of UTC. The amounts of
 * the ledger's lines add up to the balances that `npm run books` proves.
 */
import type { Database, Transaction } from '../db/connection.ts';
import { HOUSE_ACCOUNTS, houseAccountName } from '../ledger/accounts.ts';
import { microsToUsd } from '../ledger/money.ts';
import type { Service } from '../service/define.ts';
import type { MeasuredCost } from '../service/sources.ts';
import type { DeclaredCost } from './margin.ts';

export const MOST_ACCOUNTING_DAYS = 366;
const DAY_MS = 86_400_000;
/** Bound on the time of one day's sums. */
const DAY_TIMEOUT_MS = 60_000;

/** The subject of a line. */
type AccountingKind =
  | 'revenue'
  | 'refund'
  | 'dispute'
  | 'credit_sold'
  | 'credit_given'
  | 'share'
  | 'loss'
  | 'other'
  | 'source_cost'
  | 'measured_cost'
  | 'gas'
  | 'provider_fee'
  | 'end';

/** One line. `amountUsd` of `debit` and `credit` is the ledger's: it left the one account for the other. */
export interface AccountingLine {
  /** Such as `2026-11-29`, in UTC; of the last line: the day after which nothing is left out. */
  day: string;
  kind: AccountingKind;
  rail: string | null;
  service: string | null;
  /** The ledger's word for why it moved; null: it is not in the ledger. */
  code: string | null;
  /** House accounts by name; `customers` are all others. */
  debit: string | null;
  credit: string | null;
  count: string;
  /** Null: not known, as `note` says. */
  amountUsd: string | null;
  /** The cost of gas, in the smallest unit of what pays for transactions on `unit`, a chain (CAIP-2). */
  units: string | null;
  unit: string | null;
  note: string | null;
  /** The source whose cost was measured; null: it is no such line. */
  source: string | null;
}

export const COLUMNS = [
  ...(['day', 'kind', 'rail', 'service', 'code', 'debit', 'credit', 'count'] as const),
  ...(['amountUsd', 'units', 'unit', 'note', 'source'] as const),
];

/** What is known of costs. */
export interface KnownCosts {
  /** As operators declared them. */
  declared: readonly DeclaredCost[];
  services: readonly Pick<Service, 'path' | 'costsMoney' | 'needs'>[];
  /** What sources that are paid by use cost on a day, as their replies measured. @param day such as `2026-11-29` */
  measuredOn(day: string): Promise<readonly MeasuredCost[]>;
}

/** Transfers of one kind on one day: the only thing that is read of the ledger. */
interface Moved {
  code: string;
  debit: bigint;
  credit: bigint;
  service: string | null;
  disputed: boolean;
  transfers: bigint;
  micros: bigint;
}

/**
 * Sums what was posted on one day, by code, accounts and service. The index by time finds the transfers of the day, and each looks up its
 * call by its key: planned as joins, all weeks would be read for every day.
 *
 * @param dayMs its first millisecond, in UTC
 */
async function movedOn(sql: Database, dayMs: number): Promise<readonly Moved[]> {
  const [from, to] = [new Date(dayMs).toISOString(), new Date(dayMs + DAY_MS).toISOString()];
  return sql.begin('isolation level repeatable read read only', async (transaction) => {
    await transaction`
      select set_config('statement_timeout', ${String(DAY_TIMEOUT_MS)}, true), set_config('enable_seqscan', 'off', true)`;
    return transaction<Moved[]>`
      select code, debit, credit, service, disputed, sum(transfers)::bigint as transfers, sum(micros)::bigint as micros from (
        select t.code, case when t.debit_account < 1000 then t.debit_account else 1000 end as debit,
               case when t.credit_account < 1000 then t.credit_account else 1000 end as credit,
               c.service, o.dispute is not null as disputed, 1 as transfers, t.amount_micros as micros
        from ledger_transfers t
        left join lateral (
          select service from calls where t.code = 'call' and account_id = t.account_id and id = t.id offset 0
        ) c on true
        left join lateral (
          select dispute from card_orders where t.code in ('card_reversal', 'card_reversal_undone')
            and id = substring(t.note from '^order ([0-9a-f-]{36})$')::uuid offset 0
        ) o on true
        where t.phase in (1, 3) and t.created_at >= ${from} and t.created_at < ${to}
        union all
        ${archivedOn(transaction, from)}
      ) moved group by 1, 2, 3, 4, 5
      order by 1, 2, 3, 4, 5`;
  });
}

/**
 * The same on a database that is spread: its servers add up their transfers, each of which lies with its call. What is on the coordinator
 * is looked up afterwards: the orders of reversals, which are few, and what stands in archives.
 */
async function movedInBuckets(sql: Database, dayMs: number): Promise<readonly Moved[]> {
  const [from, to] = [new Date(dayMs).toISOString(), new Date(dayMs + DAY_MS).toISOString()];
  return sql.begin('isolation level repeatable read read only', async (transaction) => {
    await transaction`select set_config('statement_timeout', ${String(DAY_TIMEOUT_MS)}, true)`;
    // On the servers too: each call is looked up by its key.
    await transaction.unsafe(`
      set local citus.propagate_set_commands = 'local'; set local enable_seqscan = off;
      set local enable_hashjoin = off; set local enable_mergejoin = off`);
    const rows = await transaction<(Pick<Moved, 'debit' | 'credit'> & Record<string, unknown>)[]>`
      select t.code, case when t.debit_account < 1000 then t.debit_account else 1000 end as debit,
             case when t.credit_account < 1000 then t.credit_account else 1000 end as credit, c.service,
             case when t.code in ('card_reversal', 'card_reversal_undone')
               then substring(t.note from '^order ([0-9a-f-]{36})$') end as order_id,
             count(*)::text as transfers, sum(t.amount_micros)::text as micros
      from ledger_transfers t
      left join calls c on t.code = 'call' and c.bucket = t.bucket and c.account_id = t.account_id and c.id = t.id
      where t.phase = any ('{1,3}'::smallint[]) and t.created_at >= ${from} and ${to}::timestamptz > t.created_at
      group by 1, 2, 3, 4, 5`;
    const read = rows.map((row) => ({ ...row, debit: String(row.debit), credit: String(row.credit) }));
    return transaction<Moved[]>`
      select code, debit, credit, service, disputed, sum(transfers)::bigint as transfers, sum(micros)::bigint as micros from (
        select m.code, m.debit, m.credit, m.service, o.dispute is not null as disputed, m.transfers, m.micros
        from jsonb_to_recordset(${JSON.stringify(read)}::text::jsonb) as m (
          code text, debit bigint, credit bigint, service text, order_id uuid, transfers bigint, micros bigint)
        left join card_orders o on o.id = m.order_id
        union all
        ${archivedOn(transaction, from)}
      ) moved group by 1, 2, 3, 4, 5
      order by 1, 2, 3, 4, 5`;
  });
}

/** Calls that stand in archives: credits paid for all of them. */
function archivedOn(on: Transaction, from: string) {
  return on`
    select 'call', 1000, ${String(HOUSE_ACCOUNTS.revenue_credits)}::bigint, service, false, charged, spent_micros
    from calls_carried where day = (${from}::timestamptz at time zone 'UTC')::date and charged > 0`;
}

/**
 * Every line from one day to another, both included, and one that says that these were all.
 *
 * @param of.fromMs the first millisecond of the first day, in UTC
 * @param of.isSpread whether the database is spread over servers; not given: it is not
 */
export async function* accountingLines(
  sql: Database,
  {
    fromMs,
    toMs,
    costs,
    isSpread = false,
  }: { fromMs: number; toMs: number; costs: KnownCosts; isSpread?: boolean },
): AsyncGenerator<AccountingLine> {
  let count = 0;
  for (let dayMs = fromMs; dayMs <= toMs; dayMs += DAY_MS) {
    const day = new Date(dayMs).toISOString().slice(0, 10);
    const moved = await (isSpread ? movedInBuckets(sql, dayMs) : movedOn(sql, dayMs));
    const measured = await costs.measuredOn(day);
    const lines = [
      ...moved.map((each) => lineOf(day, each)),
      ...sourceCosts(day, moved, costs, measured),
      ...measured.map((each) => measuredCost(day, each)),
      ...cardFees(day, moved),
      ...(await gasOn(sql, day)),
    ];
    count += lines.length;
    yield* lines;
  }
  const day = new Date(toMs).toISOString().slice(0, 10);
  yield { ...EMPTY, day, kind: 'end', count: String(count), note: 'these are all lines' };
}

const EMPTY: AccountingLine = {
  day: '',
  kind: 'other',
  rail: null,
  service: null,
  code: null,
  debit: null,
  credit: null,
  count: '0',
  amountUsd: null,
  units: null,
  unit: null,
  note: null,
  source: null,
};

function lineOf(day: string, moved: Moved): AccountingLine {
  const { code, service, transfers, micros } = moved;
  const [debit, credit] = [nameOf(moved.debit), nameOf(moved.credit)];
  return {
    ...EMPTY,
    day,
    kind: kindOf(moved, debit, credit),
    rail: railOf(debit) ?? railOf(credit),
    service,
    code,
    debit,
    credit,
    count: String(transfers),
    amountUsd: microsToUsd(micros),
  };
}

function nameOf(account: bigint): string {
  return account >= 1_000n ? 'customers' : (houseAccountName(account) ?? String(account));
}

function railOf(account: string): string | null {
  return account.startsWith('revenue_') ? account.slice('revenue_'.length) : null;
}

function kindOf({ code, disputed }: Moved, debit: string, credit: string): AccountingKind {
  if (disputed) return 'dispute';
  if (code.startsWith('share')) return 'share';
  if (/^(card_reversal|key_reversal)/.test(code)) return 'refund';
  if (debit.startsWith('revenue_')) return 'refund';
  if (credit.startsWith('revenue_')) return 'revenue';
  if (/loss|lost/.test(code)) return 'loss';
  if (/_grant$|_bonus$|_expiry$/.test(code)) return 'credit_given';
  if (['card_payment', 'usdc_topup', 'sold_key', 'sold_key_trial', 'debt_paid'].includes(code))
    return 'credit_sold';
  return 'other';
}

/**
 * The cost of the sources of the day's charged calls, by service: what `SERVICE_COSTS_USD` declares; else the service's share, by charged
 * calls, of what each of its sources was measured to cost that day.
 */
function sourceCosts(
  day: string,
  moved: readonly Moved[],
  { declared, services }: KnownCosts,
  measured: readonly MeasuredCost[],
): AccountingLine[] {
  const calls = new Map<string, bigint>();
  for (const { code, service, transfers } of moved)
    if (code === 'call' && service !== null) calls.set(service, (calls.get(service) ?? 0n) + transfers);
  const byPath = new Map(services.map((service) => [service.path, service]));
  const asks = (path: string, source: string) => byPath.get(path)?.needs.flat().includes(source) === true;
  const shareOf = (path: string, count: bigint): bigint | null => {
    const asked = measured.filter(({ source }) => asks(path, source));
    if (asked.length === 0) return null;
    return asked.reduce((sum, { source, costMicros }) => {
      let all = 0n;
      for (const [other, its] of calls) if (asks(other, source)) all += its;
      return sum + (costMicros * count + all - 1n) / all;
    }, 0n);
  };
  return [...calls].map(([service, count]) => {
    const line = { ...EMPTY, day, kind: 'source_cost' as const, service, count: String(count) };
    const cost = declared.find((each) => each.service === service)?.costMicros;
    if (cost !== undefined)
      return {
        ...line,
        amountUsd: microsToUsd(cost * count),
        note: 'calls that were charged, at the cost of SERVICE_COSTS_USD now',
      };
    if (byPath.get(service)?.costsMoney === false)
      return { ...line, amountUsd: microsToUsd(0n), note: 'it asks no source that costs money' };
    const share = shareOf(service, count);
    return share === null
      ? { ...line, note: 'SERVICE_COSTS_USD names no cost of this service, and no source of it measured one' }
      : {
          ...line,
          amountUsd: microsToUsd(share),
          note: 'its share of what its sources were measured to cost',
        };
  });
}

/** What a source that is paid by use cost on a day: all requests, also those of calls that nobody was charged for. */
function measuredCost(day: string, { source, requests, costMicros }: MeasuredCost): AccountingLine {
  return {
    ...EMPTY,
    day,
    kind: 'measured_cost',
    count: String(requests),
    amountUsd: microsToUsd(costMicros),
    note: 'the same money as in source_cost of the services that ask this source',
    source,
  };
}

/** That there are fees of the card provider, which this server is not told. */
function cardFees(day: string, moved: readonly Moved[]): AccountingLine[] {
  const payments = moved
    .filter(({ code }) => code === 'card_payment')
    .reduce((sum, { transfers }) => sum + transfers, 0n);
  if (payments === 0n) return [];
  const note = 'not known here: the card provider’s own report has its fees';
  return [{ ...EMPTY, day, kind: 'provider_fee', rail: 'card', count: String(payments), note }];
}

/** The cost of transactions of the server's own keys, in the coin of their chain. */
async function gasOn(sql: Database, day: string): Promise<AccountingLine[]> {
  const rows = await sql<
    { network: string; address: string; transactions: number; priced: number; spent: string }[]
  >`
    select network, address, transactions, priced, spent::text from gas_spent where day = ${day}::date order by network, address`;
  return rows.map(({ network, address, transactions, priced, spent }) => ({
    ...EMPTY,
    day,
    kind: 'gas' as const,
    count: String(transactions),
    units: spent,
    unit: network,
    note:
      priced === transactions
        ? `by ${address}`
        : `by ${address}; the chain told the cost of ${priced} of ${transactions} transactions`,
  }));
}

/** The header of the CSV form (RFC 4180). */
export const CSV_HEAD = `${COLUMNS.join(',')}\r\n`;

export function asCsv(line: AccountingLine): string {
  return `${COLUMNS.map((name) => cell(line[name])).join(',')}\r\n`;
}

/**
 * A cell. Spreadsheets take what begins with one of `= + - @`, a tab or a line's end for a formula: an apostrophe keeps it text. No amount
 * here begins with a sign.
 */
function cell(value: string | null): string {
  const text = value ?? '';
  const safe = /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
