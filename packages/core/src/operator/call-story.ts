/** The whole story of a call: what was asked, verified, settled, captured, delivered, asked for again and sent back. */
import type { Transaction } from '../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { bucketOfAccount, HOUSE_BUCKET } from '../ledger/buckets.ts';
import { microsToUsd } from '../ledger/money.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import { refuseArchived } from './archived-call.ts';

const REQUESTS_SHOWN = 50;
const CALL_STATES = ['running', 'captured', 'released', 'settling'] as const;
const SETTLEMENT_STATES = ['with the chain', 'settled', 'dead', 'refused', 'lost'] as const;

/** One thing that happened to a call. */
export interface CallEvent {
  at: string;
  what:
    | 'asked'
    | 'verified'
    | 'settled'
    | 'final'
    | 'captured'
    | 'released'
    | 'answered'
    | 'refund owed'
    | 'refunded';
  details: string | null;
}

export interface CallStory {
  callId: string;
  /** Null: a chain paid. */
  accountId: string | null;
  service: string;
  rail: string;
  state: (typeof CALL_STATES)[number];
  /** The amount that is reserved while it runs, and that was taken once it is captured. */
  priceUsd: string;
  /** The amount that had been reserved, where the price was measured in the answer; null: the same. */
  reservedUsd: string | null;
  payment: Record<string, string | null> | null;
  /** The time until which the answer can be fetched again; null: it is not kept, or not any more. */
  answerKeptUntil: string | null;
  refunded: boolean;
  events: CallEvent[];
}

interface StoryRow {
  service: string;
  rail: string;
  state: number;
  price_micros: bigint;
  reserved_micros: bigint | null;
  outcome: string | null;
  created_at: Date;
  finished_at: Date | null;
  expires_at: Date | null;
  network: string | null;
  asset: string | null;
  payer: string | null;
  pay_to: string | null;
  settlement_state: number | null;
  reason: string | null;
  transaction: string | null;
  settlement_at: Date | null;
  settled_at: Date | null;
  final_at: Date | null;
  refund_state: number | null;
  refund_amount: bigint | null;
  refund_reason: string | null;
  refund_transaction: string | null;
  refund_at: Date | null;
  refund_paid_at: Date | null;
  given_back_at: Date | null;
}

/**
 * @param on one snapshot
 * @param accountId the customer's; null for a call that a chain paid
 * @returns null when there is no such call
 * @throws Problem 410 when its week is archived
 */
export async function callStory(
  on: Transaction,
  accountId: bigint | null,
  callId: string,
): Promise<CallStory | null> {
  const account = String(accountId ?? HOUSE_ACCOUNTS.chain_clearing);
  const bucket = accountId === null ? HOUSE_BUCKET : await bucketOfAccount(on, accountId);
  const [row] = await on<StoryRow[]>`
    select c.service, c.rail, c.state, c.price_micros, c.reserved_micros, c.outcome, c.created_at, c.finished_at, a.expires_at,
           s.network, s.asset, s.payer, s.pay_to, s.state as settlement_state, s.reason, s.transaction,
           s.created_at as settlement_at, s.settled_at, s.final_at, r.state as refund_state,
           r.amount_micros as refund_amount, r.reason as refund_reason, r.transaction as refund_transaction,
           r.created_at as refund_at, r.paid_at as refund_paid_at, t.created_at as given_back_at
    from calls c
    left join call_answers a on a.bucket = ${bucket} and a.account_id = c.account_id and a.id = c.id
    left join settlements s on s.bucket = ${bucket} and s.account_id = c.account_id and s.call_id = c.id
    left join refunds r on r.account_id = c.account_id and r.call_id = c.id
    left join ledger_transfers t on t.bucket = ${bucket} and t.account_id = c.account_id and t.id = ${transferIdFor(`refund:${callId}`)}
      and t.code <> 'onchain_refund'
    where c.bucket = ${bucket} and c.account_id = ${account} and c.id = ${callId}`;
  if (row === undefined) {
    await refuseArchived(on, callId);
    return null;
  }
  return {
    callId,
    accountId: accountId === null ? null : String(accountId),
    service: row.service,
    rail: row.rail,
    state: CALL_STATES[row.state] ?? 'running',
    priceUsd: microsToUsd(row.price_micros),
    reservedUsd: row.reserved_micros === null ? null : microsToUsd(row.reserved_micros),
    payment: paymentOf(row),
    answerKeptUntil: row.expires_at?.toISOString() ?? null,
    refunded: row.refund_state !== null || row.given_back_at !== null,
    events: [...eventsOf(row), ...(await requestsOf(on, callId))].sort((a, b) => (a.at < b.at ? -1 : 1)),
  };
}

function paymentOf(row: StoryRow): CallStory['payment'] {
  if (row.settlement_state === null) return null;
  return {
    network: row.network,
    asset: row.asset,
    payer: row.payer,
    payTo: row.pay_to,
    state: SETTLEMENT_STATES[row.settlement_state] ?? null,
    transaction: row.transaction,
  };
}

function eventsOf(row: StoryRow): CallEvent[] {
  const events: CallEvent[] = [];
  const add = (at: Date | null, what: CallEvent['what'], details: string | null = null) => {
    if (at !== null) events.push({ at: at.toISOString(), what, details });
  };
  add(row.created_at, 'asked', row.service);
  add(row.settlement_at, 'verified', row.payer);
  add(row.settled_at, 'settled', row.transaction);
  add(row.final_at, 'final');
  if (row.state === 1) add(row.finished_at, 'captured', `${microsToUsd(row.price_micros)} USD`);
  if (row.state === 2) add(row.finished_at, 'released', row.outcome);
  add(row.refund_at, 'refund owed', row.refund_reason);
  if (row.refund_amount !== null)
    add(row.refund_paid_at, 'refunded', `${microsToUsd(row.refund_amount)} USD by ${row.refund_transaction}`);
  add(row.given_back_at, 'refunded', 'to the account');
  return events;
}

/** The requests that the call answered, as far as they were noted. */
async function requestsOf(on: Transaction, callId: string): Promise<CallEvent[]> {
  const rows = await on<{ request_id: string; at: Date; outcome: string; status: number }[]>`
    select request_id, at, outcome, status from paid_requests where call_id = ${callId}
    order by at limit ${REQUESTS_SHOWN}`;
  return rows.map(({ request_id: requestId, at, outcome, status }) => ({
    at: at.toISOString(),
    what: 'answered',
    details: `${status} ${outcome}, request ${requestId}`,
  }));
}
