/**
 * Cards that are kept for accounts: the rows of `auto_recharges`. What is kept decides the state that is written, with the
 * balance of its account, so a row is changed only while both are held.
 */
import type { Transaction } from '../../db/connection.ts';
import { holdBucket } from '../../ledger/buckets.ts';
import { type FormerAddress, stillTold } from './former-addresses.ts';
import type { WaitingFor } from './recharge-limits.ts';
import type { RechargeSettings } from './recharge-settings.ts';

const STATES = ['idle', 'due', 'charging', 'off'] as const;
export type State = (typeof STATES)[number];

export interface KeptCard extends RechargeSettings {
  state: State;
  customerId: string;
  /** Null: the card must not be charged again. */
  paymentMethodId: string | null;
  cardLabel: string;
  /** The provider's name for the card, the same wherever it is kept; null: it gave none. */
  cardFingerprint: string | null;
  /** The settings that the card's owner agreed to on the payment page: never less than what is set. */
  agreed: RechargeSettings;
  email: string | null;
  /** The other addresses that hear of charges. */
  formerAddresses: readonly FormerAddress[];
  /** The order that is under way, even when it is off. */
  orderId: string | null;
  /** Declines in a row that may pass. */
  softFailures: number;
  nextAtMs: number | null;
  waitingFor: WaitingFor | null;
  offReason: string | null;
  lastChargedAtMs: number | null;
}

export interface KeptCardRow {
  state: number;
  threshold_micros: bigint;
  top_up_micros: bigint;
  customer_id: string;
  payment_method_id: string | null;
  card_label: string;
  card_fingerprint: string | null;
  /** Null: written by a version that knew nothing of it. */
  agreed_threshold_micros: bigint | null;
  agreed_top_up_micros: bigint | null;
  email: string | null;
  former_addresses: FormerAddress[];
  order_id: string | null;
  soft_failures: number;
  next_at: Date | null;
  waiting_for: WaitingFor | null;
  off_reason: string | null;
  last_charged_at: Date | null;
}

/** An account and its card, locked until the commit. */
export interface Held {
  accountId: bigint;
  bucket: number;
  /** Reservations included. */
  balanceMicros: bigint;
  kept: KeptCard | null;
}

/** Locks an account and what is kept for it. */
export async function hold(transaction: Transaction, accountId: bigint): Promise<Held> {
  const bucket = await holdBucket(transaction, accountId);
  const [account] = await transaction<{ balance: bigint }[]>`
    select credits_posted - debits_posted as balance from ledger_accounts
    where bucket = ${bucket} and id = ${String(accountId)} for no key update`;
  if (bucket === null || account === undefined) throw new Error(`there is no account ${accountId}`);
  const [row] = await transaction<KeptCardRow[]>`
    select * from auto_recharges where account_id = ${String(accountId)} for update`;
  const kept = row === undefined ? null : readKeptCard(row);
  return { accountId, bucket, balanceMicros: account.balance, kept };
}

/** Writes what is kept for an account that is held, in the state that follows from it. @param nowMs for `changed_at` */
export async function write(
  transaction: Transaction,
  { accountId, bucket, balanceMicros }: Held,
  changed: Omit<KeptCard, 'state'>,
  nowMs: number,
): Promise<void> {
  const now = new Date(nowMs).toISOString();
  const kept = settled(changed, balanceMicros);
  const watched = kept.state === 'off' ? null : String(kept.thresholdMicros);
  // First: when the balance is low already, the database makes the row due, which is then written as it must be.
  await transaction`
    update ledger_accounts set low_below_micros = ${watched}
    where bucket = ${bucket} and id = ${String(accountId)} and low_below_micros is distinct from ${watched}::bigint`;
  const columns = {
    state: STATES.indexOf(kept.state),
    threshold_micros: String(kept.thresholdMicros),
    top_up_micros: String(kept.topUpMicros),
    customer_id: kept.customerId,
    payment_method_id: kept.paymentMethodId,
    card_label: kept.cardLabel,
    card_fingerprint: kept.cardFingerprint,
    agreed_threshold_micros: String(kept.agreed.thresholdMicros),
    agreed_top_up_micros: String(kept.agreed.topUpMicros),
    email: kept.email,
    former_addresses: transaction.json(
      stillTold(kept.formerAddresses, nowMs).map(({ email, untilMs }) => ({ email, untilMs })),
    ),
    order_id: kept.orderId,
    soft_failures: kept.softFailures,
    next_at: isoOrNull(kept.nextAtMs),
    waiting_for: kept.waitingFor,
    off_reason: kept.offReason,
    last_charged_at: isoOrNull(kept.lastChargedAtMs),
    changed_at: now,
  };
  await transaction`
    insert into auto_recharges ${transaction({ account_id: String(accountId), created_at: now, ...columns })}
    on conflict (account_id) do update set ${transaction(columns)}`;
}

/** The kept card once this order is not under way any more. */
export function withoutOrder(kept: KeptCard, orderId: string): KeptCard {
  return kept.orderId === orderId ? { ...kept, orderId: null } : kept;
}

/** The state that follows: off for a reason, charging while an order is under way, due while the balance is low. */
function settled(kept: Omit<KeptCard, 'state'>, balanceMicros: bigint): KeptCard {
  const waits = { nextAtMs: null, waitingFor: null };
  if (kept.offReason !== null) return { ...kept, ...waits, state: 'off' };
  if (kept.orderId !== null) return { ...kept, ...waits, state: 'charging' };
  if (balanceMicros >= kept.thresholdMicros) return { ...kept, ...waits, state: 'idle' };
  return { ...kept, state: 'due' };
}

export function readKeptCard(row: KeptCardRow): KeptCard {
  const state = STATES[row.state];
  if (state === undefined) throw new Error(`an auto-recharge is in state ${row.state}`);
  return {
    state,
    thresholdMicros: row.threshold_micros,
    topUpMicros: row.top_up_micros,
    customerId: row.customer_id,
    paymentMethodId: row.payment_method_id,
    cardLabel: row.card_label,
    cardFingerprint: row.card_fingerprint,
    agreed: {
      thresholdMicros: row.agreed_threshold_micros ?? row.threshold_micros,
      topUpMicros: row.agreed_top_up_micros ?? row.top_up_micros,
    },
    email: row.email,
    formerAddresses: row.former_addresses,
    orderId: row.order_id,
    softFailures: row.soft_failures,
    nextAtMs: row.next_at?.getTime() ?? null,
    waitingFor: row.waiting_for,
    offReason: row.off_reason,
    lastChargedAtMs: row.last_charged_at?.getTime() ?? null,
  };
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
