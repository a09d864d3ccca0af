/** What shares of calls are, wherever they lie, and their payouts: a number for each of an account, and a transfer. */
import type { Transaction } from '../../db/connection.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { transferIdFor } from '../../ledger/transfer-id.ts';

/** The most shares in one payout; the rest waits for the next one. */
export const SHARES_AT_ONCE = 10_000;

export type ShareLedger = Pick<Ledger, 'transferWithin' | 'lock'>;

/** A share that is to be noted. */
export interface NotedShare {
  callId: string;
  /** The account that pays the call. */
  accountId: bigint;
  beneficiary: bigint;
  partPerMillion: bigint;
  cardHoldMs: number;
  /** A card payment is new since then. */
  newCardAfter: string;
}

/** What is paid out: shares that were set aside before a time, and are not held now. In ISO 8601. */
export interface Payable {
  before: string;
  now: string;
}

/** The sums of what an account has earned, as the database has them. */
export interface EarnedRow {
  calls: number;
  earned: bigint;
  due: bigint;
  paid: bigint;
  new_card: bigint;
  payer_owes: bigint;
  has_key: boolean;
}

/** Writes a payout down and pays it, in the commit that takes it from the shares. @param payout.now in ISO 8601 */
export async function writePayout(
  transaction: Transaction,
  ledger: ShareLedger,
  { beneficiary, amountMicros, now }: { beneficiary: bigint; amountMicros: bigint; now: string },
): Promise<void> {
  const [last] = await transaction<{ nth: number }[]>`
        select coalesce(max(nth), 0) + 1 as nth from share_payouts where beneficiary = ${String(beneficiary)}`;
  const nth = last?.nth ?? 1;
  const id = transferIdFor(`share-payout:${beneficiary}:${nth}`);
  await transaction`
        insert into share_payouts (beneficiary, nth, transfer_id, amount_micros, paid_at)
        values (${String(beneficiary)}, ${nth}, ${id}, ${String(amountMicros)}, ${now})`;
  const { status } = await ledger.transferWithin(transaction, {
    id,
    accountId: beneficiary,
    phase: 'posted',
    side: 'credit',
    house: 'shares_owed',
    amountMicros,
    code: 'share_payout',
  });
  if (status !== 'done') throw new Error(`the share of account ${beneficiary} could not be paid: ${status}`);
}
