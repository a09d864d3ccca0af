/** All that is on record of one account: but for secrets, and what they could be guessed by. */
import { arrayLiteral } from '../db/array-literal.ts';
import type { Transaction } from '../db/connection.ts';
import type { KeyKind, KeyStatus } from '../keys/keys.ts';
import { houseAccountName } from '../ledger/accounts.ts';
import { bucketOfAccount } from '../ledger/buckets.ts';
import { microsToUsd } from '../ledger/money.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import { asFreeze, type FreezeRow, statusOf } from './key-fields.ts';

const TRANSFERS_SHOWN = 100;
const CALLS_SHOWN = 50;
const ORDERS_SHOWN = 100;
const KEYS_SHOWN = 100;
const DAYS_SHOWN = 100;
const CALL_STATES = ['running', 'captured', 'released', 'settling'] as const;
const ORDER_STATES = ['open', 'paid', 'over'] as const;
const PHASES = ['', 'posted', 'pending', 'post', 'void'] as const;

type Shown = Record<string, unknown>;

/** An account, and where it lies. */
interface Account {
  id: bigint;
  bucket: number;
}

/**
 * @param on one snapshot
 * @param options.isSpread whether the database is spread over servers; not given: it is not
 * @returns null when there is no such account, or when it is one of the house's own
 */
export async function accountRecord(
  on: Transaction,
  id: bigint,
  { nowMs, isSpread = false }: { nowMs: number; isSpread?: boolean },
): Promise<Shown | null> {
  const bucket = await bucketOfAccount(on, id);
  const account = bucket === null ? null : { id, bucket };
  const balance = account === null ? null : await balanceOf(on, account);
  if (account === null || balance === null) return null;
  return {
    accountId: String(id),
    ...balance,
    ...(await debtOf(on, id)),
    shares: await sharesOf(on, account, { nowMs, isSpread }),
    freezes: await freezesOf(on, id),
    keys: await keysOf(on, account, nowMs),
    transfers: await transfersOf(on, account),
    cardOrders: await cardOrdersOf(on, id),
    calls: await callsOf(on, account),
    days: await daysOf(on, id),
  };
}

async function balanceOf(on: Transaction, { id, bucket }: Account): Promise<Shown | null> {
  const account = String(id);
  const [balance] = await on<{ dp: bigint; d: bigint; c: bigint; spent: bigint; created_at: Date }[]>`
    select debits_pending as dp, debits_posted as d, credits_posted as c, created_at,
           (select coalesce(sum(spent_micros), 0) from call_spending
            where bucket = ${bucket} and account_id = ${account})::bigint as spent
    from ledger_accounts where bucket = ${bucket} and id = ${account} and not house`;
  if (balance === undefined) return null;
  return {
    createdAt: balance.created_at.toISOString(),
    balanceUsd: microsToUsd(balance.c - balance.d),
    availableUsd: microsToUsd(balance.c - balance.d - balance.dp),
    reservedUsd: microsToUsd(balance.dp),
    spentUsd: microsToUsd(balance.spent),
  };
}

async function debtOf(on: Transaction, id: bigint): Promise<Shown> {
  const [debt] = await on<{ owed_micros: bigint; since: Date }[]>`
    select owed_micros, since from account_debts where account_id = ${String(id)} and owed_micros > 0`;
  return { owedUsd: microsToUsd(debt?.owed_micros ?? 0n), owedSince: debt?.since.toISOString() ?? null };
}

/** Shows an account's shares of the price of calls, such as for readings of its devices, and why they are not paid out. */
async function sharesOf(
  on: Transaction,
  account: Account,
  { nowMs, isSpread }: { nowMs: number; isSpread: boolean },
): Promise<Shown> {
  const now = new Date(nowMs).toISOString();
  const row = await (isSpread ? dueInBuckets(on, account, now) : dueTo(on, account.id, now));
  const { due = 0n, new_card: newCard = 0n, payer_owes: payerOwes = 0n, has_key: hasKey = true } = row ?? {};
  const isKeyless = due > 0n && !hasKey;
  return {
    dueUsd: microsToUsd(due),
    heldUsd: microsToUsd(isKeyless ? due : newCard + payerOwes),
    heldFor: [
      ...(newCard > 0n ? ['new_card'] : []),
      ...(payerOwes > 0n ? ['payer_owes'] : []),
      ...(isKeyless ? ['no_usable_key'] : []),
    ],
  };
}

interface DueRow {
  due: bigint;
  new_card: bigint;
  payer_owes: bigint;
  has_key: boolean;
}

async function dueTo(on: Transaction, id: bigint, now: string): Promise<DueRow | undefined> {
  const [row] = await on<DueRow[]>`
    select coalesce(sum(s.due_micros), 0)::bigint as due,
           coalesce(sum(s.due_micros) filter (where s.held_until > ${now}), 0)::bigint as new_card,
           coalesce(sum(s.due_micros) filter (where s.due_micros > 0 and d.owed_micros > 0
             and (s.held_until is null or s.held_until <= ${now})), 0)::bigint as payer_owes,
           exists (select 1 from api_keys k where k.account_id = ${String(id)} and k.status = 'active'
             and (k.expires_at is null or k.expires_at > ${now})) as has_key
    from call_shares s left join account_debts d on d.account_id = s.account_id
    where s.beneficiary = ${String(id)} and s.due_micros <> 0`;
  return row;
}

/** The same on a database that is spread: shares lie with those who paid them, and what these owe on the coordinator. */
async function dueInBuckets(
  on: Transaction,
  { id, bucket }: Account,
  now: string,
): Promise<DueRow | undefined> {
  const owing = await on<
    { account_id: bigint }[]
  >`select account_id from account_debts where owed_micros > 0`;
  const debtors = arrayLiteral(owing.map(({ account_id: account }) => account));
  const [sums] = await on<Omit<DueRow, 'has_key'>[]>`
    select coalesce(sum(due_micros), 0)::bigint as due,
           coalesce(sum(due_micros) filter (where held_until > ${now}), 0)::bigint as new_card,
           coalesce(sum(due_micros) filter (where due_micros > 0 and account_id = any(${debtors}::text::bigint[])
             and (held_until is null or held_until <= ${now})), 0)::bigint as payer_owes
    from call_shares where beneficiary = ${String(id)} and due_micros <> 0`;
  const usable = await on`
    select 1 from api_keys where bucket = ${bucket} and account_id = ${String(id)} and status = 'active'
      and (expires_at is null or expires_at > ${now}) limit 1`;
  return sums === undefined ? undefined : { ...sums, has_key: usable.length > 0 };
}

async function freezesOf(on: Transaction, id: bigint): Promise<Shown[]> {
  const rows = await on<FreezeRow[]>`
    select cause, note, created_at from account_freezes where account_id = ${String(id)} order by cause`;
  return rows.map(asFreeze);
}

async function keysOf(on: Transaction, { id, bucket }: Account, nowMs: number): Promise<Shown[]> {
  const rows = await on<
    {
      id: bigint;
      prefix: string;
      kind: KeyKind;
      label: string | null;
      status: KeyStatus;
      created_at: Date;
      expires_at: Date | null;
      cap_per_call_micros: bigint | null;
      cap_per_day_micros: bigint | null;
    }[]
  >`
    select id, prefix, kind, label, status, created_at, expires_at, cap_per_call_micros, cap_per_day_micros
    from api_keys where bucket = ${bucket} and account_id = ${String(id)} order by id desc limit ${KEYS_SHOWN}`;
  return rows.map((row) => ({
    keyId: String(row.id),
    keyPrefix: row.prefix,
    kind: row.kind,
    label: row.label,
    status: statusOf(row, nowMs),
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at?.toISOString() ?? null,
    caps: {
      perCallUsd: usdOrNull(row.cap_per_call_micros),
      perDayUsd: usdOrNull(row.cap_per_day_micros),
    },
  }));
}

async function transfersOf(on: Transaction, { id, bucket }: Account): Promise<Shown[]> {
  const account = String(id);
  // A call's transfers have its id, which sorts by time; all others have an index by time.
  const rows = await on<
    {
      id: string;
      phase: number;
      debit_account: bigint;
      credit_account: bigint;
      amount_micros: bigint;
      code: string;
      note: string | null;
      created_at: Date;
    }[]
  >`
    select * from (
      (select id, phase, debit_account, credit_account, amount_micros, code, note, created_at
       from ledger_transfers where bucket = ${bucket} and account_id = ${account} and code <> 'call'
       order by created_at desc limit ${TRANSFERS_SHOWN})
      union all
      (select t.id, t.phase, t.debit_account, t.credit_account, t.amount_micros, t.code, t.note, t.created_at
       from (select id from calls where bucket = ${bucket} and account_id = ${account} order by id desc limit ${TRANSFERS_SHOWN}) c
       join ledger_transfers t on t.bucket = ${bucket} and t.account_id = ${account} and t.id = c.id)
    ) moved order by created_at desc, phase desc limit ${TRANSFERS_SHOWN}`;
  return rows.map((row) => ({
    transferId: row.id,
    phase: PHASES[row.phase] ?? String(row.phase),
    code: row.code,
    /** Seen from the account: what came is above zero. */
    amountUsd: microsToUsd(row.credit_account === id ? row.amount_micros : -row.amount_micros),
    with: nameOf(row.credit_account === id ? row.debit_account : row.credit_account),
    note: row.note,
    at: row.created_at.toISOString(),
  }));
}

async function callsOf(on: Transaction, { id, bucket }: Account): Promise<Shown[]> {
  const account = String(id);
  const rows = await on<
    {
      id: string;
      state: number;
      rail: string;
      service: string;
      price_micros: bigint;
      reserved_micros: bigint | null;
      outcome: string | null;
      prefix: string | null;
      created_at: Date;
      finished_at: Date | null;
    }[]
  >`
    select c.id, c.state, c.rail, c.service, c.price_micros, c.reserved_micros, c.outcome, k.prefix, c.created_at,
           c.finished_at
    from (select * from calls where bucket = ${bucket} and account_id = ${account} order by id desc limit ${CALLS_SHOWN}) c
    left join api_keys k on k.bucket = ${bucket} and k.id = c.key_id order by c.id desc`;
  const refundIds = rows.map((call) => transferIdFor(`refund:${call.id}`));
  const refunds = await on<{ id: string }[]>`
    select id from ledger_transfers where bucket = ${bucket} and account_id = ${account}
      and id = any(${arrayLiteral(refundIds)}::text::uuid[])`;
  const refunded = new Set(refunds.map((row) => row.id));
  return rows.map((row, index) => ({
    callId: row.id,
    state: CALL_STATES[row.state] ?? String(row.state),
    rail: row.rail,
    service: row.service,
    priceUsd: microsToUsd(row.price_micros),
    reservedUsd: row.reserved_micros === null ? null : microsToUsd(row.reserved_micros),
    outcome: row.outcome,
    keyPrefix: row.prefix,
    refunded: refunded.has(refundIds[index] ?? ''),
    createdAt: row.created_at.toISOString(),
    finishedAt: row.finished_at?.toISOString() ?? null,
  }));
}

/** Reads what the account bought by day, service and rail, up to where the job that counts it has come; the newest days first. */
async function daysOf(on: Transaction, id: bigint): Promise<Shown[]> {
  const rows = await on<
    {
      day: string;
      service: string;
      rail: string;
      answered: bigint;
      answered_micros: bigint;
      released: bigint;
      refunded: bigint;
      refunded_micros: bigint;
    }[]
  >`
    select to_char(day, 'YYYY-MM-DD') as day, service, rail, answered, answered_micros, released, refunded, refunded_micros
    from account_sales_days where account_id = ${String(id)} order by account_sales_days.day desc, service, rail
    limit ${DAYS_SHOWN}`;
  return rows.map((row) => ({
    day: row.day,
    service: row.service,
    rail: row.rail,
    calls: Number(row.answered),
    paidUsd: microsToUsd(row.answered_micros),
    released: Number(row.released),
    refunded: Number(row.refunded),
    refundedUsd: microsToUsd(row.refunded_micros),
  }));
}

async function cardOrdersOf(on: Transaction, id: bigint): Promise<Shown[]> {
  const rows = await on<CardOrderRow[]>`
    select id, kind, state, amount_micros, credit_micros, reversed_micros, email, key_name, payment_intent_id,
           card_brand, card_last4, failure, decline_code, dispute, dispute_due_at, created_at, paid_at
    from card_orders where account_id = ${String(id)} order by created_at desc limit ${ORDERS_SHOWN}`;
  return rows.map(asCardOrder);
}

function nameOf(account: bigint): string {
  return houseAccountName(account) ?? String(account);
}

function usdOrNull(micros: bigint | null): string | null {
  return micros === null ? null : microsToUsd(micros);
}

interface CardOrderRow {
  id: string;
  kind: string;
  state: number;
  amount_micros: bigint;
  credit_micros: bigint;
  reversed_micros: bigint;
  email: string | null;
  key_name: string | null;
  payment_intent_id: string | null;
  card_brand: string | null;
  card_last4: string | null;
  failure: string | null;
  decline_code: string | null;
  dispute: string | null;
  dispute_due_at: Date | null;
  created_at: Date;
  paid_at: Date | null;
}

function asCardOrder(row: CardOrderRow): Shown {
  return {
    orderId: row.id,
    kind: row.kind,
    state: ORDER_STATES[row.state] ?? String(row.state),
    amountUsd: microsToUsd(row.amount_micros),
    creditUsd: microsToUsd(row.credit_micros),
    reversedUsd: microsToUsd(row.reversed_micros),
    email: row.email,
    keyName: row.key_name,
    paymentIntentId: row.payment_intent_id,
    card: row.card_brand === null ? null : { brand: row.card_brand, last4: row.card_last4 },
    failure: row.failure,
    declineCode: row.decline_code,
    dispute: row.dispute,
    evidenceDueAt: row.dispute_due_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    paidAt: row.paid_at?.toISOString() ?? null,
  };
}
