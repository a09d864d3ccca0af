/** Finds keys by what an operator has heard of them. */
import { arrayLiteral } from '../db/array-literal.ts';
import type { Transaction } from '../db/connection.ts';
import type { KeyKind, KeyStatus } from '../keys/keys.ts';
import { microsToUsd } from '../ledger/money.ts';
import { asFreeze, type FreezeRow, statusOf } from './key-fields.ts';

const KEYS_A_PAGE = 50;
/** The characters of a key that are shown. A whole key that is pasted is cut to them. */
const PREFIX_CHARACTERS = 12;

export interface FoundKeys {
  keys: FoundKey[];
  /** The id of the last one, where there are more; null: there are not. */
  after: string | null;
}

/** A key as the operator's page gets it. */
export interface FoundKey {
  keyId: string;
  accountId: string;
  keyPrefix: string;
  kind: KeyKind;
  label: string | null;
  status: KeyStatus | 'expired';
  freezes: Record<string, unknown>[];
  balanceUsd: string;
  reservedUsd: string;
  spentUsd: string;
  createdAt: string;
  expiresAt: string | null;
  lastUsedDay: string | null;
  cardOrders: number;
}

interface KeyRow {
  id: bigint;
  account_id: bigint;
  prefix: string;
  kind: KeyKind;
  label: string | null;
  status: KeyStatus;
  created_at: Date;
  expires_at: Date | null;
  balance: bigint;
  reserved: bigint;
}

interface FoundRow extends KeyRow {
  spent: bigint;
  freezes: FreezeRow[];
  last_day: string | null;
  orders: bigint;
}

/** Searches keys for `AccountRecords.search`. @param on one snapshot */
export async function searchKeys(
  on: Transaction,
  { query, after, nowMs }: { query: string; after: bigint | null; nowMs: number },
): Promise<FoundKeys> {
  const found = await on<KeyRow[]>`
    with ordered as materialized (
      select account_id from card_orders where position(lower(${query.trim()}) in lower(email)) > 0
    )
    select k.*, a.credits_posted - a.debits_posted as balance, a.debits_pending as reserved
    from (
      select k.id, k.bucket, k.account_id, k.prefix, k.kind, k.label, k.status, k.created_at, k.expires_at
      from api_keys k
      where ${after === null ? on`true` : on`k.id < ${String(after)}`} and ${fits(on, query.trim())}
      order by k.id desc limit ${KEYS_A_PAGE + 1}
    ) k
    join ledger_accounts a on a.bucket = k.bucket and a.id = k.account_id order by k.id desc`;
  const rows = await withAccounts(on, found);
  const page = rows.slice(0, KEYS_A_PAGE);
  return {
    keys: page.map((row) => asFound(row, nowMs)),
    after: rows.length > KEYS_A_PAGE ? String(page.at(-1)?.id) : null,
  };
}

/** The condition on a key. `starts_with` and `position` take their text as it is: nothing in it is a pattern. */
function fits(on: Transaction, text: string) {
  if (text === '') return on`true`;
  const prefix = text.startsWith('fbx_') ? text.slice(0, PREFIX_CHARACTERS) : text;
  const number = /^\d{1,18}$/.test(text) ? text : null;
  return on`(starts_with(k.prefix, ${prefix}) or position(lower(${text}) in lower(k.label)) > 0
             or k.account_id = ${number}::bigint
             or k.account_id in (select account_id from ordered))`;
}

/** Adds what their accounts have spent, and what is said of these elsewhere. Accounts may lie on other servers than that, so each is asked by itself. */
async function withAccounts(on: Transaction, keys: readonly KeyRow[]): Promise<FoundRow[]> {
  if (keys.length === 0) return [];
  const accounts = arrayLiteral([...new Set(keys.map(({ account_id: account }) => account))]);
  const spending = await on<{ account_id: bigint; spent: bigint; last_day: string | null }[]>`
    select account_id, sum(spent_micros)::bigint as spent, to_char(max(day), 'YYYY-MM-DD') as last_day
    from call_spending where account_id = any(${accounts}::text::bigint[]) group by account_id`;
  const freezes = await on<(FreezeRow & { account_id: bigint })[]>`
    select account_id, cause, note, created_at from account_freezes where account_id = any(${accounts}::text::bigint[])
    order by cause`;
  const orders = await on<{ account_id: bigint; orders: bigint }[]>`
    select account_id, count(*) as orders from card_orders where account_id = any(${accounts}::text::bigint[]) group by account_id`;
  const spentBy = new Map(spending.map((row) => [row.account_id, row]));
  const ordersBy = new Map(orders.map((row) => [row.account_id, row.orders]));
  return keys.map((key) => ({
    ...key,
    spent: spentBy.get(key.account_id)?.spent ?? 0n,
    last_day: spentBy.get(key.account_id)?.last_day ?? null,
    freezes: freezes.filter(({ account_id: account }) => account === key.account_id),
    orders: ordersBy.get(key.account_id) ?? 0n,
  }));
}

function asFound(row: FoundRow, nowMs: number): FoundKey {
  return {
    keyId: String(row.id),
    accountId: String(row.account_id),
    keyPrefix: row.prefix,
    kind: row.kind,
    label: row.label,
    status: statusOf(row, nowMs),
    freezes: row.freezes.map(asFreeze),
    balanceUsd: microsToUsd(row.balance),
    reservedUsd: microsToUsd(row.reserved),
    spentUsd: microsToUsd(row.spent),
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at?.toISOString() ?? null,
    lastUsedDay: row.last_day,
    cardOrders: Number(row.orders),
  };
}
