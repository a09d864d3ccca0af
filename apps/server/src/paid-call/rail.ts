import type { HouseAccount } from '../ledger/accounts.ts';
import type { Service } from '../services/define.ts';
import type { RailName } from '../words/rail-names.ts';

/** What is for sale, and for how much. */
export interface Quote {
  service: Service;
  priceMicros: bigint;
  /** The address that is bought, as the outside world writes it. */
  resourceUrl: string;
  /** The tool of MCP that it is bought as; absent where it is an address of HTTP. */
  tool?: string;
  /** What is told of an answer in pieces before it is paid; absent where the service has none. */
  streaming?: Readonly<Record<string, unknown>>;
}

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A payment that was presented and read, before anything was reserved or claimed. */
export interface Payment {
  rail: RailName;
  /** The ledger account that pays. */
  accountId: bigint;
  keyId: bigint | null;
  revenue: HouseAccount;
  /** What makes it this payment; null when it cannot be presented twice. */
  identity: string | null;
  /** The money that a chain has to move for it; null when the ledger's word is enough. */
  onChain: OnChainPayment | null;
  /**
   * A secret that the credential carries and that goes to no chain: what it buys is handed to whoever shows it again.
   * Null when it carries none.
   */
  claim: string | null;
  /** A name of the payer that may be printed. */
  payer: string;
  /** What the payment proves about who paid: whose the things are that it buys. */
  proof: PayerProof;
  /** What limits of rate and concurrency count by. */
  limitBy: string;
  /** Where it settles; null inside the ledger. */
  network: string | null;
  /** Headers of a 2xx answer that tell what was paid. `availableMicros`: what the account can still spend, if known. */
  receipt(captured: {
    callId: string;
    priceMicros: bigint;
    availableMicros: bigint | null;
    /** Where the money moved, for a payment on a chain. */
    transaction: string | null;
    /** The price is reserved, and is taken before the end of the answer. */
    reserved?: true;
  }): Record<string, string>;
}

/** An account of ours, whoever signed, or nobody but the transfer itself, to which anybody may have pointed. */
export type PayerProof =
  | { by: 'account'; accountId: bigint }
  | { by: 'signature'; network: string; address: string }
  | { by: 'transfer'; network: string; transaction: string };

/** A payment that a chain settles, with everything needed to do so by a process that never saw the request. */
export interface OnChainPayment {
  /** What the chain itself takes at most once, with the chain's name before it. */
  identity: string;
  /** CAIP-2, such as `eip155:8453`. */
  network: string;
  asset: string;
  payer: string;
  payTo: string;
  /** In the asset's base units. */
  amountUnits: bigint;
  /** After this the chain refuses it. */
  deadAfterMs: number;
  /** What was presented, as JSON. It can pay nobody but us. */
  evidence: Record<string, unknown>;
}

/** What is known of a payment's money. Only the first and the last of these are for ever. */
export type ChainVerdict =
  | { status: 'settled'; transaction: string; blockNumber: bigint | null }
  /** It has not moved, and still can. */
  | { status: 'open' }
  /** It was not moved, and nothing of ours that could move it is on its way. */
  | { status: 'refused'; refusal: PaymentRefused }
  /** Nobody could say. It may have moved. */
  | { status: 'unknown'; cause?: unknown }
  /** It has not moved, and never will. */
  | { status: 'dead'; refusal: PaymentRefused };

/** Whether a settled transaction will stay. */
export type Finality = 'final' | 'waiting' | 'gone' | 'unknown';

export interface Refund {
  callId: string;
  network: string;
  asset: string;
  payee: string;
  amountUnits: bigint;
}

/** How a rail speaks with its chains. Every method may be called again, by any process: the chain decides once. */
export interface Chains {
  /**
   * Asks whether the payment would settle now.
   *
   * @throws PaymentRefused when it would not; Problem (503) when nobody can say
   */
  verify(payment: OnChainPayment): Promise<void>;
  /** Makes the chain move the money, and waits within bounds until it says so. Never throws. */
  settle(payment: OnChainPayment): Promise<ChainVerdict>;
  /** Asks the chain and changes nothing. Never throws. */
  look(payment: OnChainPayment): Promise<ChainVerdict>;
  finality(payment: OnChainPayment, transaction: string): Promise<Finality>;
  /** How much more than the price came, in the asset's base units; absent where a payment is always of the price. */
  overpaidUnits?(payment: OnChainPayment): bigint;
  /** Whether money can be sent back there now: what may have to go back is sold only while it can. */
  canRefund(network: string): boolean;
  /** Whether it can be at all: now, or once the key that sends it has the gas. */
  canEverRefund(network: string): boolean;
  /** Sends money back, once for each call, however often it is asked. @returns the transaction; null: ask again later */
  refund(refund: Refund): Promise<string | null>;
}

/** A credential that does not pay: answered with a 402 that carries the reason and what to change. */
export class PaymentRefused extends Error {
  /** For machines, such as `INSUFFICIENT_CREDITS`. */
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
  /** Headers that may not be the same for ever; asked for at every 402, so they must cost nothing. */
  freshHeaders?: () => Record<string, string>;
}

/** Why the ledger did not reserve the price of a call. */
export interface ReservationRefused {
  status: 'insufficient' | 'above_call_cap' | 'above_day_cap' | 'key_expired' | 'key_revoked' | 'key_frozen';
  /** What the account can spend; known when that is too little. */
  availableMicros?: bigint;
}

/** What a request carries that a credential may be bound to. */
export interface BesideCredential {
  idempotencyKey: string | null;
  rawBody: Buffer | undefined;
}

/** One way to pay. Rails know the ledger or a chain, and nothing of what is sold. */
export interface Rail {
  readonly name: Payment['rail'];
  offer(quote: Quote): Offer;
  /** Whether the request carries this rail's credential at all. Cheap; touches nothing. */
  recognizes(headers: Headers): boolean;
  /**
   * Reads and checks the credential without reserving anything.
   *
   * @throws PaymentRefused when it cannot pay for the quote
   */
  read(headers: Headers, quote: Quote, beside: BesideCredential): Promise<Payment>;
  /** Grows whenever `offer` would say something else than before. */
  readonly revision?: number;
  /** Where its payments settle; absent when they move inside the ledger. */
  readonly chains?: Chains;
  /** How a payment is refused whose price could not be reserved; absent where that cannot happen. */
  notReserved?(refused: ReservationRefused, quote: Quote, payment: Payment): Promise<PaymentRefused>;
  /**
   * Reads who paid and with what, whatever the terms are by now: for a payment that `read` refuses, and that may have
   * bought its answer under other terms, or while a chain that is away now was there. It does not prove
   * who asks: a settled signature is public on the chain. Never throws.
   */
  recall?(headers: Headers): Promise<Recalled | null>;
  /** What a 402 that refuses this rail's credential says in its headers. */
  refusedHeaders?(refused: PaymentRefused, quote: Quote): Record<string, string>;
  /**
   * Reads a proof that the caller is a payer, so that it may fetch what it bought without paying again.
   *
   * @returns null when the request carries none
   * @throws PaymentRefused when it proves nothing
   */
  signIn?(headers: Headers, quote: Quote): Promise<SignedIn | null>;
}

/** A payment that may be known here, under one of these identities. */
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
