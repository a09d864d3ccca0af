/** The steps that a paid call takes in the database, and what becomes of each. */
import type { HouseAccount } from '../ledger/accounts.ts';
import type { OnChainPayment } from './rail.ts';

/** A call as its money knows it: what is needed to end it. */
export interface PricedCall {
  /** Also the id of its transfer. */
  id: string;
  /** The account that pays, and whose limit is at stake. */
  accountId: bigint;
  service: string;
  priceMicros: bigint;
  revenue: HouseAccount;
}

export interface CallToBegin extends PricedCall {
  /** The key that was presented, whose status, expiry and caps are checked in the same statement; null: none. */
  keyId: bigint | null;
  rail: string;
  /** What makes this payment itself: null for a call that is bought without a way to ask for it again. */
  identity: string | null;
  /** What a chain takes at most once; null where no chain is asked. The same payment under two names has one. */
  onChainIdentity: string | null;
  /** SHA-256 of the request, 32 bytes; needed with an identity. */
  fingerprint: Buffer | null;
  /** From when the reconciler may release it. */
  ttlMs: number;
}

export type BeginOutcome =
  | { status: 'authorized'; availableMicros: bigint }
  | { status: 'insufficient'; availableMicros: bigint }
  | { status: 'above_day_cap' | 'above_call_cap' | 'key_revoked' | 'key_expired' | 'key_frozen' }
  /** This payment has its answer already: read it with `answerOf`. */
  | { status: 'answered'; callId: string }
  /** This payment is with the chain: whoever may lease its settlement can go on with it. */
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

/** A call whose money a chain must move: from here on only what the chain says can end it. */
export interface CallToKeep {
  id: string;
  accountId: bigint;
  rail: string;
  payment: OnChainPayment;
  /** The answer, withheld until the money has come; null when the service runs only after that. */
  answer: StoredAnswer | null;
  /** For how long nobody else may settle it. */
  leaseMs: number;
}

export type KeepOutcome =
  | { status: 'kept' }
  /** It took too long and was released. */
  | { status: 'not_open' };

export interface CallToFinish extends PricedCall {
  /** True: the price is taken. False: it is given back. */
  capture: boolean;
  /** Why it was released, or `answered`. */
  outcome: string;
  /** Kept for as long as the same payment may ask again; null when nobody can, or when it was kept before. */
  answer: StoredAnswer | null;
  /** Of a call that was kept: where its money moved, or null when it never will. Absent for a call that was not. */
  settled?: { transaction: string; blockNumber: bigint | null } | null;
}

export type FinishOutcome =
  | { status: 'done'; availableMicros: bigint }
  /** Somebody else ended it the other way: for a capture, it had been released because it took too long. */
  | { status: 'not_open' };
