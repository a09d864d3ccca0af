/** The steps of a paid call in the database, and the possible outcomes of each. */
import type { HouseAccount } from '../../ledger/accounts.ts';
import type { CallBounds } from '../../service/route.ts';
import type { OnChainPayment } from '../rail.ts';

/** What the ledger needs to know of a call in order to end it. */
export interface PricedCall {
  /** The id of the call, and of its transfer. */
  id: string;
  /** The account that pays, and whose limits apply. */
  accountId: bigint;
  /** The bucket of the account, in which all rows of the call lie. */
  bucket: number;
  service: string;
  priceMicros: bigint;
  revenue: HouseAccount;
}

export interface CallToBegin extends PricedCall {
  /**
   * The key that was presented; the same statement checks its status, expiry and caps. Null: the payment has no key.
   */
  keyId: bigint | null;
  rail: string;
  /** What distinguishes this payment from all others; null for a call whose answer cannot be asked for again. */
  identity: string | null;
  /**
   * What a chain accepts at most once; null where no chain is involved. The same payment under two names has one such
   * identity.
   */
  onChainIdentity: string | null;
  /** The payment as far as a chain has still to move it; null or absent where none has. */
  inFlight?: PaymentInFlight | null;
  /** SHA-256 of the request, 32 bytes; required with an identity. */
  fingerprint: Buffer | null;
  /** After this time the reconciler may release the call. */
  ttlMs: number;
  /**
   * Whether a crash of the database may forget that it was begun: then it cannot be kept or captured, and is uncharged. Only for a
   * call on which nobody outside acts, and of which nothing leaves, before a later commit. Absent: it may not.
   */
  mayBeLost?: boolean;
  /** What the seller gives to its key; absent: nothing but the price. */
  terms?: CallBounds | undefined;
}

/** A payment that counts against its payer's balance until it has settled. Times are the database's own, as it writes them. */
export interface PaymentInFlight {
  network: string;
  asset: string;
  payer: string;
  amountUnits: bigint;
  /** Whether its service asks an upstream that charges the operator. */
  costsMoney: boolean;
  /** Whether a payer who has not paid before may have only one such call in flight. */
  onlyOneOfUnknown: boolean;
  /** What the payer holds, as it was read after `since`; null as long as nobody had to read it. */
  balance: { units: bigint; since: string } | null;
}

export type BeginOutcome =
  /** `isKnownPayer`: false when the payer of a call that costs money has paid for nothing in the last 90 days. */
  | { status: 'authorized'; availableMicros: bigint; isKnownPayer: boolean; isFree?: true }
  /** Its key has begun as many calls of the service as it may, in this minute or on this day (UTC). */
  | { status: 'minute_quota' | 'day_quota'; retryAfterMs: number }
  /** The payer has other payments in flight. Read its balance, and begin again with it and with `since`. */
  | { status: 'balance_needed'; since: string }
  /** The payer does not hold the price beside its payments that are in flight. */
  | { status: 'balance_exceeded'; since: string; inFlightUnits: bigint }
  /** This payer has not paid before, and has another call in flight that costs money. */
  | { status: 'one_at_a_time' }
  | { status: 'insufficient'; availableMicros: bigint }
  | { status: 'above_day_cap' | 'above_call_cap' | 'key_revoked' | 'key_expired' | 'key_frozen' }
  /** This payment already has its answer: read it with `answerOf`. */
  | { status: 'answered'; callId: string }
  /** This payment is being settled on its chain. Whoever leases the settlement can continue it. */
  | { status: 'settling'; callId: string }
  /** The same request with the same payment is running now, here or on another replica. */
  | { status: 'running' }
  /** The payment was made for another request. */
  | { status: 'other_request' };

export interface StoredAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** A call whose money a chain must move. From here on only the chain's verdict can end it. */
export interface CallToKeep {
  id: string;
  accountId: bigint;
  /** As in `PricedCall`. */
  bucket: number;
  rail: string;
  payment: OnChainPayment;
  /** The answer, withheld until the money has moved; null when the service runs only after that. */
  answer: StoredAnswer | null;
  /** How long nobody else may settle it. */
  leaseMs: number;
  /** Whether a crash of the database may forget that it was kept: only where its money moves by a later commit that asks for it. */
  mayBeLost?: boolean;
}

export type KeepOutcome =
  | { status: 'kept' }
  /** The call took too long and was released. */
  | { status: 'not_open' };

export interface CallToFinish extends PricedCall {
  /** True: take the price. False: give it back. */
  capture: boolean;
  /** Why the call was released, or `answered`. */
  outcome: string;
  /**
   * The amount that is taken where the price was measured: above nothing, and no more than was reserved. Absent: all of the price. Only for
   * calls that no chain pays.
   */
  takenMicros?: bigint;
  /** Kept for as long as the same payment may ask again; null when nobody can ask, or when it is already kept. */
  answer: StoredAnswer | null;
  /** For a call that was kept: where its money moved, or null when it never will. Absent for any other call. */
  settled?: { transaction: string; blockNumber: bigint | null } | null;
}

export type FinishOutcome =
  | { status: 'done'; availableMicros: bigint }
  /** Somebody else ended the call the other way. For a capture: it had been released because it took too long. */
  | { status: 'not_open' };
