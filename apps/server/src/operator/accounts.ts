/** Whose keys there are, and all that is on record of an account: but for secrets, and what they could be guessed by. */

import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import type { KeyKind, KeyStatus } from '../keys/keys.ts';
import { houseAccountName } from '../ledger/accounts.ts';
import { microsToUsd } from '../ledger/money.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';

const KEYS_A_PAGE = 50;
const TRANSFERS_SHOWN = 100;
const CALLS_SHOWN = 50;
const ORDERS_SHOWN = 100;
const KEYS_SHOWN = 100;
/** What is shown of a key. Whoever pastes a whole one means its beginning. */
const PREFIX_CHARACTERS = 12;
const TIMEOUT_MS = 5_000;
const CALL_STATES = ['running', 'captured', 'released', 'settling'] as const;
const ORDER_STATES = ['open', 'paid', 'over'] as const;
const PHASES = ['', 'posted', 'pending', 'post', 'void'] as const;

interface FreezeRow {
  cause: string;
  note: string | null;
  created_at: string;
}

export interface AccountRecords {
  /**
   * Keys by the beginning of the key, a part of the label or of an order's e-mail address, or the account's number; the
   * newest first, 50 at a time.
   *
   * @param after the id of the last one seen
   */
  search(
    query: string,
    after: bigint | null,
  ): Promise<{ keys: Record<string, unknown>[]; after: string | null }>;
  /** @returns null when there is no such account, or when it is one of the house's own */
  account(id: bigint): Promise<Record<string, unknown> | null>;
}

export function createAccountRecords(sql: Database, nowMs: () => number): AccountRecords {
  /** Reads in one snapshot, within a bound on time. */
  const reading = <T>(read: (transaction: Transaction) => Promise<T>): Promise<T> =>
    sql
      .begin('isolation level repeatable read read only', async (transaction) => {
        await transaction`select set_config('statement_timeout', ${String(TIMEOUT_MS)}, true)`;
        return [await read(transaction)] as const;
      })
      .then(([value]) => value as T);

  const statusOf = (status: KeyStatus, expiresAt: Date | null) =>
    status !== 'revoked' && expiresAt !== null && expiresAt.getTime() <= nowMs() ? 'expired' : status;

  return {
    async search(query, after) {
      const text = query.trim();
      const prefix = text.startsWith('fbx_') ? text.slice(0, PREFIX_CHARACTERS) : text;
      const number = /^\d{1,18}$/.test(text) ? text : null;
      // `starts_with` and `position` take their text as it is: nothing in it is a pattern.
      const fits = (on: Transaction) =>
        text === ''
          ? on`true`
          : on`(starts_with(k.prefix, ${prefix}) or position(lower(${text}) in lower(k.label)) > 0
                or k.account_id = ${number}::bigint
                or k.account_id in (select o.account_id from card_orders o
                                    where position(lower(${text}) in lower(o.email)) > 0))`;
      const rows = await reading(
        (on) => on<
          {
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
            spent: bigint;
            freezes: FreezeRow[];
            last_day: string | null;
            orders: bigint;
          }[]
        >`
          select k.*, a.credits_posted - a.debits_posted as balance, a.debits_pending as reserved, s.spent, s.last_day,
                 (select coalesce(json_agg(f order by f.cause), '[]') from (
                    select cause, note, created_at from account_freezes where account_id = k.account_id) f) as freezes,
                 (select count(*) from card_orders o where o.account_id = k.account_id) as orders
          from (
            select k.id, k.account_id, k.prefix, k.kind, k.label, k.status, k.created_at, k.expires_at
            from api_keys k
            where ${after === null ? on`true` : on`k.id < ${String(after)}`} and ${fits(on)}
            order by k.id desc limit ${KEYS_A_PAGE + 1}
          ) k
          join ledger_accounts a on a.id = k.account_id
          cross join lateral (
            select coalesce(sum(spent_micros), 0)::bigint as spent, to_char(max(day), 'YYYY-MM-DD') as last_day
            from call_spending where account_id = k.account_id
          ) s order by k.id desc`,
      );
      const page = rows.slice(0, KEYS_A_PAGE);
      return {
        keys: page.map((row) => ({
          keyId: String(row.id),
          accountId: String(row.account_id),
          keyPrefix: row.prefix,
          kind: row.kind,
          label: row.label,
          status: statusOf(row.status, row.expires_at),
          freezes: row.freezes.map(asFreeze),
          balanceUsd: microsToUsd(row.balance),
          reservedUsd: microsToUsd(row.reserved),
          spentUsd: microsToUsd(row.spent),
          createdAt: row.created_at.toISOString(),
          expiresAt: row.expires_at?.toISOString() ?? null,
          lastUsedDay: row.last_day,
          cardOrders: Number(row.orders),
        })),
        after: rows.length > KEYS_A_PAGE ? String(page.at(-1)?.id) : null,
      };
    },

    account(id) {
      const account = String(id);
      return reading(async (on) => {
        const [balance] = await on<{ dp: bigint; d: bigint; c: bigint; spent: bigint; created_at: Date }[]>`
          select debits_pending as dp, debits_posted as d, credits_posted as c, created_at,
                 (select coalesce(sum(spent_micros), 0) from call_spending where account_id = ${account})::bigint as spent
          from ledger_accounts where id = ${account} and not house`;
        if (balance === undefined) return null;
        const keys = await on<
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
          from api_keys where account_id = ${account} order by id desc limit ${KEYS_SHOWN}`;
        const freezes = await on<{ cause: string; note: string | null; created_at: Date }[]>`
          select cause, note, created_at from account_freezes where account_id = ${account} order by cause`;
        const [debt] = await on<{ owed_micros: bigint; since: Date }[]>`
          select owed_micros, since from account_debts where account_id = ${account} and owed_micros > 0`;
        const calls = await on<
          {
            id: string;
            state: number;
            rail: string;
            service: string;
            price_micros: bigint;
            outcome: string | null;
            prefix: string | null;
            created_at: Date;
            finished_at: Date | null;
          }[]
        >`
          select c.id, c.state, c.rail, c.service, c.price_micros, c.outcome, k.prefix, c.created_at, c.finished_at
          from (select * from calls where account_id = ${account} order by id desc limit ${CALLS_SHOWN}) c
          left join api_keys k on k.id = c.key_id order by c.id desc`;
        const refunds = await on<{ id: string }[]>`
          select id from ledger_transfers where account_id = ${account}
            and id = any(${arrayLiteral(calls.map((call) => transferIdFor(`refund:${call.id}`)))}::text::uuid[])`;
        const refunded = new Set(refunds.map((row) => row.id));
        // A call's transfers have its id, which sorts by time; all others have an index by time.
        const transfers = await on<
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
             from ledger_transfers where account_id = ${account} and code <> 'call'
             order by created_at desc limit ${TRANSFERS_SHOWN})
            union all
            (select t.id, t.phase, t.debit_account, t.credit_account, t.amount_micros, t.code, t.note, t.created_at
             from (select id from calls where account_id = ${account} order by id desc limit ${TRANSFERS_SHOWN}) c
             join ledger_transfers t on t.account_id = ${account} and t.id = c.id)
          ) moved order by created_at desc, phase desc limit ${TRANSFERS_SHOWN}`;
        const orders = await on<CardOrderRow[]>`
          select id, kind, state, amount_micros, credit_micros, reversed_micros, email, key_name, payment_intent_id,
                 failure, decline_code, dispute, dispute_due_at, created_at, paid_at
          from card_orders where account_id = ${account} order by created_at desc limit ${ORDERS_SHOWN}`;
        return {
          accountId: account,
          createdAt: balance.created_at.toISOString(),
          balanceUsd: microsToUsd(balance.c - balance.d),
          availableUsd: microsToUsd(balance.c - balance.d - balance.dp),
          reservedUsd: microsToUsd(balance.dp),
          spentUsd: microsToUsd(balance.spent),
          owedUsd: microsToUsd(debt?.owed_micros ?? 0n),
          owedSince: debt?.since.toISOString() ?? null,
          freezes: freezes.map((row) => asFreeze({ ...row, created_at: row.created_at.toISOString() })),
          keys: keys.map((row) => ({
            keyId: String(row.id),
            keyPrefix: row.prefix,
            kind: row.kind,
            label: row.label,
            status: statusOf(row.status, row.expires_at),
            createdAt: row.created_at.toISOString(),
            expiresAt: row.expires_at?.toISOString() ?? null,
            caps: {
              perCallUsd: usdOrNull(row.cap_per_call_micros),
              perDayUsd: usdOrNull(row.cap_per_day_micros),
            },
          })),
          transfers: transfers.map((row) => ({
            transferId: row.id,
            phase: PHASES[row.phase] ?? String(row.phase),
            code: row.code,
            /** Seen from the account: what came is above zero. */
            amountUsd: microsToUsd(row.credit_account === id ? row.amount_micros : -row.amount_micros),
            with: nameOf(row.credit_account === id ? row.debit_account : row.credit_account),
            note: row.note,
            at: row.created_at.toISOString(),
          })),
          cardOrders: orders.map(asCardOrder),
          calls: calls.map((row) => ({
            callId: row.id,
            state: CALL_STATES[row.state] ?? String(row.state),
            rail: row.rail,
            service: row.service,
            priceUsd: microsToUsd(row.price_micros),
            outcome: row.outcome,
            keyPrefix: row.prefix,
            refunded: refunded.has(transferIdFor(`refund:${row.id}`)),
            createdAt: row.created_at.toISOString(),
            finishedAt: row.finished_at?.toISOString() ?? null,
          })),
        };
      });
    },
  };
}

function asFreeze({ cause, note, created_at: at }: FreezeRow): Record<string, unknown> {
  return { cause, note, since: new Date(at).toISOString() };
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
  failure: string | null;
  decline_code: string | null;
  dispute: string | null;
  dispute_due_at: Date | null;
  created_at: Date;
  paid_at: Date | null;
}

function asCardOrder(row: CardOrderRow): Record<string, unknown> {
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
    failure: row.failure,
    declineCode: row.decline_code,
    dispute: row.dispute,
    evidenceDueAt: row.dispute_due_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    paidAt: row.paid_at?.toISOString() ?? null,
  };
}
