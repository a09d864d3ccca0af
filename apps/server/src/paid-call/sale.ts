/** One request on its way through the paid call: how it came, what was read of it, and what became of its money. */
import type { Service } from '../services/define.ts';
import type { Fate } from './fate.ts';
import type { CallReport } from './outcome.ts';
import type { Headers, Payment, Quote, Rail } from './rail.ts';

export interface PaidRequest {
  service: Service;
  headers: Headers;
  rawBody: Buffer | undefined;
  /** The caller's address, as `deriveAddress` tells it. */
  address: string;
  requestId: string;
  /** True once nobody is there to read the answer. */
  gone(): boolean;
  /** Asked before anything is bought. @throws Problem when nothing can be by such a request, such as by a GET */
  assertMayBuy(): void;
}

export interface PaidAnswer {
  status: number;
  headers: Record<string, string>;
  body: string | Buffer;
}

/** An answer that a service made, as it will be sent. */
export interface MadeAnswer {
  /** What is said of it alone: its type, and where it comes from if it cannot say so itself. */
  headers: Record<string, string>;
  /** JSON as text, all else as bytes. */
  body: string | Buffer;
}

/** A request at a door. */
export interface Asked {
  readonly request: PaidRequest;
  readonly quote: Quote;
  /** Whose credential it carries, or who knew its caller; undefined when none does. */
  readonly rail: Rail | undefined;
  readonly report: CallReport;
  readonly money: MoneyOfCall;
}

/** What became of the caller's money so far; see `fate.ts`. */
export interface MoneyOfCall {
  fate: Fate;
}

/** A request whose payment was read and whose body was understood. */
export interface Sale extends Asked {
  readonly rail: Rail;
  readonly payment: Payment;
  readonly input: unknown;
  /** What the answer is bound to beside the payment; see `claim.ts`. */
  readonly claim: Buffer | null;
}
