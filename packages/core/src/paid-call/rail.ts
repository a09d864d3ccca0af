import type { HouseAccount } from '../ledger/accounts.ts';
import type { Service } from '../service/define.ts';
import type { RailName } from '../words/rail-names.ts';

/** A service that is for sale, with its price and address. */
export interface Quote {
  service: Service;
  priceMicros: bigint;
  /** The address that is bought, as the outside world sees it. */
  resourceUrl: string;
  /** Whether it is bought at the own address of its service, by the method and in the form of its route. */
  atRoute?: true;
  /** The MCP tool that is bought; absent for an HTTP address. */
  tool?: string;
  /** Set where the money moves before the answer is sent, though the service has no lasting effect. */
  settlesFirst?: true;
  /** What the terms say about streaming; absent when the service does not stream. */
  streaming?: Readonly<Record<string, unknown>>;
}

/** Whether only a payment that can be sent back may buy this: its money moves before its answer is there. */
export function mustBeRefundable({ service, settlesFirst }: Quote): boolean {
  return service.effect === 'write' || settlesFirst === true;
}

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A payment that was presented and read, before anything was reserved or claimed. */
export interface Payment {
  rail: RailName;
  /** The ledger account that pays. */
  accountId: bigint;
  /** The account's bucket. */
  bucket: number;
  keyId: bigint | null;
  revenue: HouseAccount;
  /** What distinguishes this payment from all others; null when it cannot be presented twice. */
  identity: string | null;
  /** The money that a chain has to move for it; null for a payment inside the ledger. */
  onChain: OnChainPayment | null;
  /**
   * A secret that the credential carries and that no chain gets to see. The answer is handed to whoever shows it again.
   * Null when the credential carries none.
   */
  claim: string | null;
  /** A name of the payer that may be printed. */
  payer: string;
  /** The root buyer's name; absent where the payer is a wallet, which is its own. */
  buyer?: string;
  /** What the payment proves about who paid. Whatever the call creates belongs to that payer. */
  proof: PayerProof;
  /** The name under which rate and concurrency limits count this payer. */
  limitBy: string;
  /** The network that settles the payment; null inside the ledger. */
  network: string | null;
  /**
   * The headers of a 2xx answer that tell what was paid. `availableMicros`: what the account can still spend, if known.
   */
  receipt(captured: {
    callId: string;
    priceMicros: bigint;
    availableMicros: bigint | null;
    /** The transaction that moved the money; null for a payment inside the ledger. */
    transaction: string | null;
    /** Set when the headers leave before the price is taken: it is reserved, and is taken before the answer ends. */
    reserved?: true;
    /** The amount that had been reserved, where the price that was taken was measured. */
    reservedMicros?: bigint;
  }): Record<string, string>;
}

/**
 * The payer is an account of ours, or the address that signed. A plain transfer proves nobody, because anybody can
 * point to it.
 */
export type PayerProof =
  | { by: 'account'; accountId: bigint }
  | { by: 'signature'; network: string; address: string }
  | { by: 'transfer'; network: string; transaction: string };

/** A payment that a chain settles, with everything that a process which never saw the request needs to settle it. */
export interface OnChainPayment {
  /** What the chain itself accepts at most once, prefixed with the chain's name. */
  identity: string;
  /** CAIP-2, such as `eip155:8453`. */
  network: string;
  asset: string;
  payer: string;
  payTo: string;
  /** In the asset's base units. */
  amountUnits: bigint;
  /** The payer has made the transfer already, so nothing of it is in flight. */
  movedBefore?: true;
  /** After this time the chain refuses the payment. */
  deadAfterMs: number;
  /** The credential as it was presented, as JSON. It can pay nobody but us. */
  evidence: Record<string, unknown>;
}

/** What is known of a payment's money. Only `settled` and `dead` are permanent. */
export type ChainVerdict =
  | { status: 'settled'; transaction: string; blockNumber: bigint | null }
  /** The money has not moved, and still can. */
  | { status: 'open' }
  /** The money has not moved, and nothing that we sent could still move it. */
  | { status: 'refused'; refusal: PaymentRefused }
  /** The outcome is unknown. The money may have moved. */
  | { status: 'unknown'; cause?: unknown }
  /** The money has not moved, and never will. */
  | { status: 'dead'; refusal: PaymentRefused };

/** What a chain says of a transaction that settled a payment: it is final, may still be undone, is gone, or is unknown. */
export type Finality = 'final' | 'waiting' | 'gone' | 'unknown';

export interface Refund {
  callId: string;
  network: string;
  asset: string;
  payee: string;
  amountUnits: bigint;
}

/**
 * How a rail deals with its chains. Every method may be called again by any process, because the chain accepts a
 * payment only once.
 */
export interface Chains {
  /**
   * Asks whether the payment would settle now.
   *
   * @throws PaymentRefused when it would not; Problem (503) when that is unknown
   */
  verify(payment: OnChainPayment): Promise<void>;
  /**
   * What the payer holds now of what it pays with, in base units.
   *
   * @throws when the chain does not say
   */
  balanceOf(payment: OnChainPayment): Promise<bigint>;
  /** Has the chain move the money, and waits within bounds for the outcome. Never throws. */
  settle(payment: OnChainPayment): Promise<ChainVerdict>;
  /**
   * Whether settling it commits to our database, before anything leaves, and only if the call is kept there. Absent, or false: what
   * was kept must be durable before `settle`.
   */
  asksIfKept?(payment: OnChainPayment): boolean;
  /** Asks the chain for the outcome without changing anything. Never throws. */
  look(payment: OnChainPayment): Promise<ChainVerdict>;
  finality(payment: OnChainPayment, transaction: string): Promise<Finality>;
  /**
   * How much more than the price came, in the asset's base units; absent for rails whose payments always equal the
   * price.
   */
  overpaidUnits?(payment: OnChainPayment): bigint;
  /** Whether money can be sent back on this network now. A call that may need a refund is sold only while it can. */
  canRefund(network: string): boolean;
  /** Whether money can be sent back on this network at all: now, or once the refunding key has gas. */
  canEverRefund(network: string): boolean;
  /** Sends money back, once for each call however often it is asked. @returns the transaction; null: ask again later */
  refund(refund: Refund): Promise<string | null>;
}

/** Thrown for a credential that does not pay. It becomes a 402 with the reason and what to change. */
export class PaymentRefused extends Error {
  /** A code for machines, such as `INSUFFICIENT_CREDITS`. */
  readonly code: string;
  /** What the caller can do about it. */
  readonly hint: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, hint: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = 'PaymentRefused';
    this.code = code;
    this.hint = hint;
    this.details = details;
  }
}

/** What a 402 says about one way to pay. Computed once for each service. */
export interface Offer {
  headers: Record<string, string>;
  /** Entries of `accepts`, in order of preference. */
  accepts: Record<string, unknown>[];
  /** Further fields of the body. */
  body: Record<string, unknown>;
  /** Headers that change over time. They are made for every 402, so they must be cheap. */
  freshHeaders?: () => Record<string, string>;
}

/** Why the ledger did not reserve the price of a call. */
export interface ReservationRefused {
  status: 'insufficient' | 'above_call_cap' | 'above_day_cap' | 'key_expired' | 'key_revoked' | 'key_frozen';
  /** What the account can spend; set when that was too little. */
  availableMicros?: bigint;
}

/** Parts of the request that a credential may be bound to. */
export interface BesideCredential {
  idempotencyKey: string | null;
  rawBody: Buffer | undefined;
}

/** One way to pay. A rail knows the ledger or a chain, and nothing of what is sold. */
export interface Rail {
  readonly name: Payment['rail'];
  offer(quote: Quote): Offer;
  /** Whether the request carries a credential of this rail. Must be cheap, and asks nobody. */
  recognizes(headers: Headers): boolean;
  /**
   * Reads and checks the credential without reserving anything.
   *
   * @throws PaymentRefused when it cannot pay for the quote
   */
  read(headers: Headers, quote: Quote, beside: BesideCredential): Promise<Payment>;
  /** Grows whenever `offer` would return something new. */
  readonly revision?: number;
  /** The chains that settle its payments; absent when they move inside the ledger. */
  readonly chains?: Chains;
  /** Explains why the price could not be reserved; absent for rails where that cannot happen. */
  notReserved?(refused: ReservationRefused, quote: Quote, payment: Payment): Promise<PaymentRefused>;
  /**
   * Reads who paid and with what, whatever the terms are now. It serves a payment that `read` refuses but that may have
   * bought its answer under earlier terms, or while a chain could be asked that is now unreachable. It does not prove
   * who is asking, because a settled signature is public on the chain. Never throws.
   */
  recall?(headers: Headers): Promise<Recalled | null>;
  /** The headers of a 402 that refuses this rail's credential. */
  refusedHeaders?(refused: PaymentRefused, quote: Quote): Record<string, string>;
  /**
   * Reads a sign-in: a proof that the caller is a payer, who may then fetch what it bought without paying again.
   *
   * @returns null when the request carries none
   * @throws PaymentRefused when it proves nothing
   */
  signIn?(headers: Headers, quote: Quote): Promise<SignedIn | null>;
}

/** A payment that may have been stored here under one of these identities. */
export interface Recalled {
  accountId: bigint;
  identities: readonly string[];
  /** As in `Payment`. */
  claim: string | null;
  receipt: Payment['receipt'];
}

/** A caller who proved to be this payer. */
export interface SignedIn {
  accountId: bigint;
  payer: string;
  receipt: Payment['receipt'];
}
