/** The types of an operator's act, and what it needs of the card provider. */
import type { Transaction } from '../db/connection.ts';
import { Problem } from '../http/problem.ts';

export type ActName =
  | 'freeze'
  | 'unfreeze'
  | 'grant'
  | 'refund_order'
  | 'refund_call'
  | 'mail_key'
  | 'refund_payment'
  | 'lift_bounds'
  | 'set_service';

/** Gives money back through the card provider, and brings the books to match. */
export interface CardRefunds {
  /**
   * @param order.actKey the same key again is the same refund
   * @param order.amountMicros null: all that is left of it
   */
  refund(order: {
    orderId: string;
    amountMicros: bigint | null;
    actKey: string;
  }): Promise<{ status: CardRefundStatus; refundId?: string }>;
  /**
   * Asks where the mail goes that gives whoever paid an order a link to a new key.
   *
   * @returns writes the mail down within the act's transaction
   * @throws Problem when no link can be sent
   */
  prepareKeyLink(orderId: string): Promise<(transaction: Transaction) => Promise<void>>;
}

export type CardRefundStatus =
  | 'refunded'
  | 'not_paid'
  | 'nothing_left'
  | 'too_much'
  | 'unknown_order'
  | 'unknown_outcome';

/** Why a payment on a chain cannot be sent back. */
export type NoPaymentRefund = 'unknown' | 'not_charged' | 'not_final' | 'already' | 'cannot';

/** Sends payments back on the chains that they came from. */
export interface PaymentRefunds {
  /** Tells what would go back for a call. It holds the payment until the transaction ends. */
  look(
    transaction: Transaction,
    callId: string,
  ): Promise<{ service: string; amountMicros: bigint; transferId: string } | NoPaymentRefund>;
  /** Owes the price of a call to its payer. A job sends it. @param reason shown in the payment's receipt */
  owe(transaction: Transaction, callId: string, reason: string, at: string): Promise<void>;
}

/** An order for an act: who acts, why, and by which key it is the same act when it is sent again. */
export interface Order {
  actor: string;
  accountId: bigint;
  /** 3 to 500 characters. */
  reason: string;
  idempotencyKey: string;
}

/** An order that more than one operator may have to agree to. */
export type GiftOrder = Order & {
  /** A second operator has agreed. */
  agreed: boolean;
};

export interface Act {
  id: string;
  /** Grows from act to act. */
  number: bigint;
  at: Date;
  actor: string;
  act: ActName;
  accountId: bigint;
  keyId: bigint | null;
  orderId: string | null;
  callId: string | null;
  amountMicros: bigint | null;
  reason: string;
  transferId: string | null;
  /** SHA-256 of the digest of the act before and of what is written down of this one, in hexadecimal digits. */
  digest: string;
  /** `asked`: nobody knows yet how it ended, and it may be asked for again. */
  state: 'done' | 'asked' | 'refused';
  /** How the card provider's part ended; null where it has no part, or did not tell. */
  outcome: { status: string; refundId: string | null; at: Date } | null;
}

export interface ActDone {
  act: Act;
  /** Whether it had been done before, by the same key. */
  repeated: boolean;
}

export function noCards(): Problem {
  return new Problem(503, 'CARDS_NOT_CONFIGURED', 'This server has no card provider.', {
    headers: { 'retry-after': '3600' },
  });
}
