/** Finds what a customer's id belongs to, whichever id it is. */
import type { Transaction } from '../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { microsToUsd } from '../ledger/money.ts';

const SHOWN = 50;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A transaction's hash on an EVM chain, or a signature on Solana. */
const TRANSACTION = /^(?:0x[0-9a-f]{64}|[1-9A-HJ-NP-Za-km-z]{80,90})$/i;
/** An address on an EVM chain or on Solana. */
const WALLET = /^(?:0x[0-9a-f]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/i;
const REQUEST = /^req_[\w-]{1,60}$/;
/** Ids that the card provider gives, such as those of sessions and payments. */
const PROVIDER_ID = /^[a-z]{2,6}_[\w]{6,200}$/;
/** A call's id tells when it was made; clocks of replicas may differ by a little. */
const AROUND_MS = 10 * 60_000;
/** The end of the year 9999. The id of something else may name any time. */
const LATEST_MS = 253_402_300_799_999;

/** One thing that was found. */
export interface Found {
  kind: 'call' | 'order' | 'request';
  id: string;
  /** The customer's account; null for calls that a chain paid. */
  accountId: string | null;
  at: string;
  /** What it is, in a line: service, state and amount. */
  title: string;
}

/**
 * Finds calls and card orders by a call's or an order's id, a transaction, a wallet, a request's id, or an id of the card
 * provider. The newest come first, 50 at most.
 *
 * @param on one snapshot
 */
export async function findAnything(on: Transaction, query: string): Promise<Found[]> {
  const asked = query.trim();
  const lower = asked.toLowerCase();
  if (UUID.test(lower)) return [...(await callsById(on, lower)), ...(await ordersBy(on, { id: lower }))];
  if (TRANSACTION.test(asked)) return callsByTransaction(on, asked);
  if (WALLET.test(asked)) return callsByWallet(on, asked);
  if (REQUEST.test(asked)) return byRequest(on, asked);
  if (PROVIDER_ID.test(asked)) return ordersBy(on, { providerId: asked });
  return [];
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

/** By the account of chains, and for calls of keys by the time that stands in the id. */
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
      select account_id, call_id from settlements where transaction in ${on(spellings)}
      union select account_id, call_id from refunds where transaction in ${on(spellings)}
    ) s join calls c on c.account_id = s.account_id and c.id = s.call_id
    order by c.created_at desc limit ${SHOWN}`;
  return rows.map(asCall);
}

async function callsByWallet(on: Transaction, wallet: string): Promise<Found[]> {
  const spellings = [...new Set([wallet, wallet.toLowerCase()])];
  const rows = await on<CallRow[]>`
    select c.id, c.account_id, c.service, c.rail, c.state, c.price_micros, c.created_at
    from settlements s join calls c on c.account_id = s.account_id and c.id = s.call_id
    where s.account_id = ${String(HOUSE_ACCOUNTS.chain_clearing)} and s.payer in ${on(spellings)}
    order by s.created_at desc limit ${SHOWN}`;
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
