/** Finds what a customer's id belongs to, whichever id it is. */
import type { Transaction } from '../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { HOUSE_BUCKET } from '../ledger/buckets.ts';
import { microsToUsd } from '../ledger/money.ts';
import { callsOfHouse } from './calls-of-house.ts';
import { searchKeys } from './key-search.ts';

const SHOWN = 50;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A transaction's hash on an EVM chain, or a signature on Solana. */
const TRANSACTION = /^(?:0x[0-9a-f]{64}|[1-9A-HJ-NP-Za-km-z]{80,90})$/i;
/** An address on an EVM chain or on Solana. */
const WALLET = /^(?:0x[0-9a-f]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/i;
const REQUEST = /^req_[\w-]{1,60}$/;
/** Ids that the card provider gives, such as those of sessions and payments. */
const PROVIDER_ID = /^[a-z]{2,6}_[\w]{6,200}$/;
/** A shorter part of a label or an address would fit anything. */
const LEAST_TEXT = 3;
/** A call's id tells when it was made; clocks of replicas may differ by a little. */
const AROUND_MS = 10 * 60_000;
/** The end of the year 9999. The id of something else may name any time. */
const LATEST_MS = 253_402_300_799_999;

/** One thing that was found. */
export interface Found {
  kind: 'call' | 'order' | 'request' | 'task' | 'webhook' | 'delivery' | 'event' | 'device' | 'key';
  id: string;
  /** The customer's account; null for calls that a chain paid. */
  accountId: string | null;
  at: string;
  /** A title in one line: service, state and amount. */
  title: string;
}

/**
 * Finds whatever an id belongs to: a call, a card order, a transaction, a wallet, a request, a task of A2A, a webhook, one of
 * its messages or their event, a device, or an id of the card provider; else keys, by what the search of keys looks at. The
 * newest come first, 50 at most.
 *
 * @param on one snapshot
 */
export async function findAnything(on: Transaction, query: string, nowMs: number): Promise<Found[]> {
  const asked = query.trim();
  const lower = asked.toLowerCase();
  if (UUID.test(lower)) return byUuid(on, lower);
  if (TRANSACTION.test(asked)) return callsByTransaction(on, asked);
  if (WALLET.test(asked)) return callsByWallet(on, asked);
  if (REQUEST.test(asked)) return byRequest(on, asked);
  const orders = PROVIDER_ID.test(asked) ? await ordersBy(on, { providerId: asked }) : [];
  return orders.length > 0 ? orders : [...(await deviceById(on, asked)), ...(await keysBy(on, asked, nowMs))];
}

async function byUuid(on: Transaction, id: string): Promise<Found[]> {
  return [
    ...(await callsById(on, id)),
    ...(await ordersBy(on, { id })),
    ...(await taskById(on, id)),
    ...(await toldBy(on, id)),
    ...(await deviceById(on, id)),
  ];
}

/** A task of A2A, and the call that it bought. */
async function taskById(on: Transaction, id: string): Promise<Found[]> {
  const [task] = await on<
    {
      account_id: bigint | null;
      service: string | null;
      state: string;
      updated_at: Date;
      call_id: string | null;
    }[]
  >`select account_id, service, state, updated_at, call_id from a2a_tasks where id = ${id}`;
  if (task === undefined) return [];
  const { account_id: account, service, state, updated_at: at, call_id: callId } = task;
  const title = `${service ?? 'no service named'}, ${state}`;
  const found: Found = { kind: 'task', id, accountId: textOf(account), at: at.toISOString(), title };
  return [found, ...(callId === null ? [] : await callsById(on, callId))];
}

/** A webhook, a message that was sent there, or the event that it tells of. */
async function toldBy(on: Transaction, id: string): Promise<Found[]> {
  const rows = await on<
    { kind: 'webhook' | 'delivery' | 'event'; account_id: bigint; at: Date; title: string }[]
  >`
    select 'webhook' as kind, account_id, created_at as at,
           case when disabled_at is null then 'on' else 'off' end as title from webhooks where id = ${id}
    union all
    select 'delivery', w.account_id, d.created_at, d.type || case
             when d.delivered_at is not null then ', delivered' when d.given_up_at is not null then ', given up'
             else ', waiting' end
    from webhook_deliveries d join webhooks w on w.id = d.webhook_id where d.id = ${id}
    union all
    select 'event', account_id, created_at, type from account_events where id = ${id}`;
  return rows.map(({ kind, account_id: account, at, title }) => ({
    kind,
    id,
    accountId: textOf(account),
    at: at.toISOString(),
    title,
  }));
}

async function deviceById(on: Transaction, id: string): Promise<Found[]> {
  const rows = await on<{ owner: bigint; name: string | null; created_at: Date }[]>`
    select owner, name, created_at from devices where id = ${id}`;
  return rows.map(({ owner, name, created_at: at }) => ({
    kind: 'device',
    id,
    accountId: textOf(owner),
    at: at.toISOString(),
    title: name ?? 'without a name',
  }));
}

async function keysBy(on: Transaction, text: string, nowMs: number): Promise<Found[]> {
  if (text.length < LEAST_TEXT) return [];
  const { keys } = await searchKeys(on, { query: text, after: null, nowMs });
  return keys.map(({ keyPrefix, accountId, createdAt, kind, status, balanceUsd }) => ({
    kind: 'key',
    id: keyPrefix,
    accountId,
    at: createdAt,
    title: `${kind} key, ${status}, ${balanceUsd} USD left`,
  }));
}

function textOf(account: bigint | null): string | null {
  return account === null ? null : String(account);
}

interface CallRow {
  id: string;
  account_id: bigint;
  service: string;
  rail: string;
  state: number;
  price_micros: bigint;
  created_at: Date;
}

const CALL_STATES = ['running', 'captured', 'released', 'settling'] as const;

function asCall({ id, account_id: account, service, rail, state, price_micros, created_at }: CallRow): Found {
  const paidByChain = account === HOUSE_ACCOUNTS.chain_clearing;
  return {
    kind: 'call',
    id,
    accountId: paidByChain ? null : String(account),
    at: created_at.toISOString(),
    title: `${service}, ${CALL_STATES[state] ?? 'running'}, ${microsToUsd(price_micros)} USD by ${rail}`,
  };
}

/** Finds calls by the account of chains, and calls of keys by the time that stands in the id. */
async function callsById(on: Transaction, id: string): Promise<Found[]> {
  const madeAtMs = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
  const around = (ms: number) => new Date(Math.min(Math.max(ms, 0), LATEST_MS)).toISOString();
  const rows = await on<CallRow[]>`
    select id, account_id, service, rail, state, price_micros, created_at from calls
    where account_id = ${String(HOUSE_ACCOUNTS.chain_clearing)} and id = ${id}
    union
    select id, account_id, service, rail, state, price_micros, created_at from calls
    where created_at between ${around(madeAtMs - AROUND_MS)} and ${around(madeAtMs + AROUND_MS)} and id = ${id}`;
  return rows.map(asCall);
}

async function callsByTransaction(on: Transaction, transaction: string): Promise<Found[]> {
  const spellings = [...new Set([transaction, transaction.toLowerCase()])];
  const rows = await on<CallRow[]>`
    select c.id, c.account_id, c.service, c.rail, c.state, c.price_micros, c.created_at from (
      select account_id, call_id from settlements where bucket = ${HOUSE_BUCKET} and transaction in ${on(spellings)}
      union select account_id, call_id from refunds where transaction in ${on(spellings)}
    ) s ${callsOfHouse(on)}
    order by c.created_at desc limit ${SHOWN}`;
  return rows.map(asCall);
}

async function callsByWallet(on: Transaction, wallet: string): Promise<Found[]> {
  const spellings = [...new Set([wallet, wallet.toLowerCase()])];
  const rows = await on<CallRow[]>`
    select c.id, c.account_id, c.service, c.rail, c.state, c.price_micros, c.created_at
    from (
      select account_id, call_id, created_at from settlements
      where bucket = ${HOUSE_BUCKET} and account_id = ${String(HOUSE_ACCOUNTS.chain_clearing)} and payer in ${on(spellings)}
      order by created_at desc limit ${SHOWN}
    ) s ${callsOfHouse(on)}
    order by s.created_at desc`;
  return rows.map(asCall);
}

async function byRequest(on: Transaction, requestId: string): Promise<Found[]> {
  const [row] = await on<
    {
      at: Date;
      service: string;
      outcome: string;
      status: number;
      reason: string | null;
      call_id: string | null;
    }[]
  >`select at, service, outcome, status, reason, call_id from paid_requests where request_id = ${requestId}`;
  if (row === undefined) return [];
  const { at, service, outcome, status, reason, call_id: callId } = row;
  const request: Found = {
    kind: 'request',
    id: requestId,
    accountId: null,
    at: at.toISOString(),
    title: `${service}, ${outcome}, answered ${status}${reason === null ? '' : `: ${reason}`}`,
  };
  return [request, ...(callId === null ? [] : await callsById(on, callId))];
}

async function ordersBy(on: Transaction, which: { id: string } | { providerId: string }): Promise<Found[]> {
  const rows = await on<
    {
      id: string;
      kind: string;
      account_id: bigint | null;
      state: number;
      amount_micros: bigint;
      created_at: Date;
    }[]
  >`
    select id, kind, account_id, state, amount_micros, created_at from card_orders
    where ${
      'id' in which
        ? on`id = ${which.id}`
        : on`session_id = ${which.providerId} or payment_intent_id = ${which.providerId}`
    }
    limit ${SHOWN}`;
  return rows.map((row) => ({
    kind: 'order',
    id: row.id,
    accountId: row.account_id === null ? null : String(row.account_id),
    at: row.created_at.toISOString(),
    title: `card ${row.kind}, ${['open', 'paid', 'over'][row.state] ?? 'open'}, ${microsToUsd(row.amount_micros)} USD`,
  }));
}
