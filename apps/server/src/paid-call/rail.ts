import type { HouseAccount } from '../ledger/accounts.ts';
import type { Service } from '../services/define.ts';

/** What is for sale, and for how much. */
export interface Quote {
  service: Service;
  priceMicros: bigint;
  /** The address that is bought, as the outside world writes it. */
  resourceUrl: string;
}

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** A payment that was presented and read, before anything was reserved or claimed. */
export interface Payment {
  rail: 'credits' | 'x402' | 'mpp';
  /** The ledger account that pays. */
  accountId: bigint;
  keyId: bigint | null;
  revenue: HouseAccount;
  /** What makes it this payment; null when it cannot be presented twice. */
  identity: string | null;
  /** A name of the payer that may be printed. */
  payer: string;
  /** What limits of rate and concurrency count by. */
  limitBy: string;
  /** Where it settles; null inside the ledger. */
  network: string | null;
  /** Headers of a 2xx answer that tell what was paid. `availableMicros`: what the account can still spend, if known. */
  receipt(captured: {
    callId: string;
    priceMicros: bigint;
    availableMicros: bigint | null;
  }): Record<string, string>;
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
   * @param idempotencyKey the caller's, or null
   * @throws PaymentRefused when it cannot pay for the quote
   */
  read(headers: Headers, quote: Quote, idempotencyKey: string | null): Promise<Payment>;
}
