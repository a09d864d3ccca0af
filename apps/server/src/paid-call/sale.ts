/** One request on its way through the paid call: how it came, what was read of it, and what became of its money. */
import type { Service, ServiceStream } from '../services/define.ts';
import type { Fate } from './fate.ts';
import type { CallReport } from './outcome.ts';
import type { Headers, Payment, Quote, Rail } from './rail.ts';

/** What an address says: a call, a call that is tried out, or something that may be meant for one. */
export type DryRun = 'no' | 'yes' | 'unclear';

export interface PaidRequest {
  service: Service;
  headers: Headers;
  rawBody: Buffer | undefined;
  /** The caller's address, as `deriveAddress` tells it. */
  address: string;
  requestId: string;
  /** Whether it is only tried out; left out where the door has no such calls. */
  dryRun?: DryRun;
  /** True once nobody is there to read the answer. */
  gone(): boolean;
  /** Begins an answer in pieces; absent where the door can send none. */
  openStream?(headers: Readonly<Record<string, string>>): EventReader;
  /** Asked before anything is bought. @throws Problem when nothing can be by such a request, such as by a GET */
  assertMayBuy(): void;
  /** Who follows the call, where somebody does. */
  follow?: CallFollower;
}

/** Follows a call on its way, and may take it back until it is charged. */
export interface CallFollower {
  /** A chain would settle the payment. */
  verified(): void;
  /**
   * Asked before a price is taken, and before a service runs that leaves something behind. False: the call was taken back, and
   * is not charged. Once it said true nobody may take the call back.
   */
  stillWanted(): Promise<boolean>;
}

export interface PaidAnswer {
  status: number;
  headers: Record<string, string>;
  body: string | Buffer;
  /** The ledger account that bought it; present on an answer that was bought. */
  accountId?: bigint;
  /** It has left already, as a stream: the status is what became of it. */
  left?: true;
  /** Present on one that was not bought: what became of the money, as far as this request saw. */
  fate?: Fate;
}

/** Who reads the events of an answer in pieces. */
export interface EventReader {
  /** Settles when it may take more. `lost`: it has gone, or takes nothing any more. */
  write(event: Buffer): Promise<'sent' | 'lost'>;
  /** The last one. Settles when it has left or never will. */
  end(event: Buffer): Promise<void>;
  /** Settles when the reader has gone, and at the end. */
  readonly closed: Promise<void>;
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
  /** What is told of the caller's limits, with whatever is answered. */
  readonly rate: Record<string, string>;
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

/** The longest that its reader may keep a stream waiting, in all. */
export const READER_PATIENCE_MS = 30_000;

/** The stream that is bought; null where the answer comes whole. Money that a chain moved must be able to go back. */
export function streamOf({ request, quote, payment, input, rail }: Sale): ServiceStream | null {
  const { stream } = quote.service;
  if (stream === null || request.openStream === undefined) return null;
  if ((input as Record<string, unknown>)[stream.field] !== true) return null;
  return payment.onChain === null || rail.chains?.canRefund(payment.onChain.network) ? stream : null;
}

/** How long a call may take before its price is believed forgotten. */
export function longestMs(sale: Sale): number {
  const { timeoutMs } = sale.quote.service;
  const stream = streamOf(sale);
  return stream === null ? timeoutMs : Math.max(timeoutMs, stream.timeoutMs + READER_PATIENCE_MS);
}
