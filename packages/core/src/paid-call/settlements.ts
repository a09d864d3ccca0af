/**
 * What became of payments on a chain, and what may be asked of their records. `settlement-store.ts` keeps them; the money
 * itself moves in `calls.ts`.
 */
import type { Transaction } from '../db/connection.ts';
import type { HouseAccount } from '../ledger/accounts.ts';
import type { PricedCall } from './inside/call-steps.ts';
import type { OnChainPayment, Refund } from './rail.ts';

/** 0 with the chain, 1 settled, 2 dead, 3 refused by us, 4 lost. As in `db/migrations/280_baseline.sql`. */
export const SETTLEMENT_STATES = ['with_chain', 'settled', 'dead', 'refused', 'lost'] as const;

export interface Settlement extends Omit<PricedCall, 'id'> {
  callId: string;
  rail: string;
  payment: OnChainPayment;
  /** Whether the call was captured. All that is left then is to see that its transaction stays. */
  captured: boolean;
  /** Whether the answer is stored already. */
  answered: boolean;
  /** The state that the settlement had when it was leased. */
  state: (typeof SETTLEMENT_STATES)[number];
  transaction: string | null;
  blockNumber: bigint | null;
  /** How often it was leased before. If it is still with the chain after one lease, that attempt may be in flight. */
  attempts: number;
  /** How often in a row the chain did not know its transaction. */
  missed: number;
  createdAtMs: number;
}

/** The call that a settlement pays for. */
export function callOf({ callId, accountId, bucket, service, priceMicros, revenue }: Settlement): PricedCall {
  return { id: callId, accountId, bucket, service, priceMicros, revenue };
}

/** Whether an earlier attempt, whose end nobody wrote down, may still reach the chain. */
export function mayBeInFlight(settlement: Pick<Settlement, 'state' | 'attempts'>): boolean {
  return settlement.state === 'with_chain' && settlement.attempts > 0;
}

export interface Receipt {
  callId: string;
  rail: string;
  service: string;
  priceMicros: bigint;
  payment: Pick<OnChainPayment, 'network' | 'asset' | 'payer' | 'payTo' | 'amountUnits'>;
  callState: 'running' | 'captured' | 'released' | 'settling';
  settlementState: Settlement['state'];
  reason: string | null;
  transaction: string | null;
  blockNumber: bigint | null;
  final: boolean;
  createdAtMs: number;
  settledAtMs: number | null;
  /** The refund of the payment, or of what was paid above the price; null: none is owed. */
  refund: {
    state: 'owed' | 'paid';
    amountMicros: bigint;
    transaction: string | null;
    reason: string;
  } | null;
}

export interface DueRefund extends Refund {
  accountId: bigint;
  rail: string;
  revenue: HouseAccount;
  amountMicros: bigint;
  attempts: number;
}

/** Who works on a settlement. A lease keeps two processes from settling the same payment at once. */
export interface SettlementLeases {
  /** Leases one settlement; null while somebody else has it, or when there is none. */
  lease(accountId: bigint, callId: string, leaseMs: number): Promise<Settlement | null>;
  /** Ends the leases of a process that has ended. @param holder its row in `replicas` */
  freeLeasesOf(transaction: Transaction, holder: bigint): Promise<void>;
  /** Leases settlements that are due, the longest due first. @param of which of them; all unless given */
  leaseDue(limit: number, leaseMs: number, of?: SettlementLane): Promise<Settlement[]>;
  /** The networks that have settlements which are due. */
  dueNetworks(what: SettlementLane['what']): Promise<string[]>;
  /**
   * Ends a lease; the settlement is due again after a while.
   *
   * @param missed how often in a row its transaction was not found
   */
  later(
    settlement: Pick<Settlement, 'accountId' | 'callId'>,
    afterMs: number,
    missed?: number,
  ): Promise<void>;
}

/** What is written down of a settlement. */
export interface SettlementMarks {
  /** Notes where the money moved, before the service has run. */
  markSettled(
    settlement: Pick<Settlement, 'accountId' | 'callId'>,
    at: { transaction: string; blockNumber: bigint | null },
    leaseMs: number,
  ): Promise<void>;
  /** Notes that we settle it no more without its payer. It is looked at again once the chain must refuse it. */
  markRefused(
    settlement: Pick<Settlement, 'accountId' | 'callId' | 'payment'>,
    reason: string,
  ): Promise<void>;
  markFinal(settlement: Settlement): Promise<void>;
  /**
   * Deletes payments in flight that have moved, once no balance can count them that was read before, at most `limit` of
   * them. @returns how many were deleted
   */
  dropMoved(limit: number): Promise<number>;
  /** Notes that the chain forgot its transaction: it is with the chain again, or lost. */
  markGone(settlement: Settlement, state: 'with_chain' | 'lost'): Promise<void>;
}

/** Money that goes back to its payer on the chain. */
export interface RefundStore {
  /** Owes the payer what was paid, or a part of it. A call is refunded once: asked again, this changes nothing. */
  owe(
    settlement: Pick<Settlement, 'accountId' | 'callId' | 'priceMicros' | 'payment'>,
    reason: string,
    amountMicros?: bigint,
  ): Promise<void>;
  /** The refund of a call that is owed and not sent yet; null: there is none. */
  dueRefund(accountId: bigint, callId: string): Promise<DueRefund | null>;
  leaseDueRefunds(limit: number, leaseMs: number): Promise<DueRefund[]>;
  markRefunded(refund: DueRefund, transaction: string): Promise<void>;
  refundLater(refund: DueRefund, afterMs: number): Promise<void>;
}

/** What payers may ask about what they bought. */
export interface BoughtRecords {
  /** The newest call with a stored answer that this payer bought with this request, whatever claim it is bound to. */
  boughtBy(accountId: bigint, payer: string, service: string, fingerprint: Buffer): Promise<string | null>;
  receipt(callId: string): Promise<Receipt | null>;
  /** The receipt of the latest payment that a wallet made with a transaction; null: it made none with it. */
  receiptBy(of: { transaction: string; payer: string }): Promise<Receipt | null>;
}

export interface SettlementStore extends SettlementLeases, SettlementMarks, RefundStore, BoughtRecords {}

/** Settlements of one network: those that a chain has still to decide, or those that are watched until they are final. */
export interface SettlementLane {
  what: 'undecided' | 'watched';
  network: string;
}
