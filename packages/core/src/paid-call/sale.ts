/** One request on its way through the paid call: how it came, what was read of it, and what became of its money. */
import type { Service, ServiceStream } from '../service/define.ts';
import type { KeyTerms, ReadCall, SentRequest } from '../service/route.ts';
import type { Fate } from './fate.ts';
import type { NamedRequest } from './followed-calls.ts';
import type { PaymentInFlight } from './inside/call-steps.ts';
import type { CallReport } from './inside/outcome.ts';
import type { Headers, Payment, Quote, Rail } from './rail.ts';

/** Whether a request's query asks for a dry run; `unclear` when it may have been meant to. */
export type DryRun = 'no' | 'yes' | 'unclear';

export interface PaidRequest {
  service: Service;
  headers: Headers;
  rawBody: Buffer | undefined;
  /** The request as it was written, where it came to the own address of a service that has one. */
  sent?: SentRequest;
  /** The caller's address, as `deriveAddress` returns it. */
  address: string;
  requestId: string;
  /** Whether it is only tried out; left out where the door has no such calls. */
  dryRun?: DryRun;
  /** Set for a service that is sold no more: what was bought before is still delivered, and nothing else. */
  isGone?: boolean;
  /** Whether the caller has left. */
  gone(): boolean;
  /**
   * Calls back once when the caller leaves, at once if it has left; absent where nobody can. Returns how to stop
   * listening.
   */
  onGone?(left: () => void): () => void;
  /** Begins a streamed answer; absent where the door cannot stream. */
  openStream?(head: StreamHead, bounds: ReaderBounds): StreamReader;
  /**
   * Set where the door sees whether an answer arrives. Then one that was charged and lost on its way is kept for the next
   * same call, even if nothing names the purchase.
   */
  delivery?: {
    /** How the client names the request when it cancels it; null where it cannot. */
    request: NamedRequest | null;
    /** Called when the client has cancelled the call, on whichever replica. */
    cancelled(): void;
  };
  /** Asked before anything is bought. @throws Problem when nothing can be by such a request, such as by a GET */
  assertMayBuy(): void;
  /** Called before anything is bought. @throws Problem when such a request may not buy, for example a GET */
  follow?: CallFollower;
}

/** Follows a call on its way, and can withdraw it until it is charged. */
export interface CallFollower {
  /** Called once verification has shown that a chain would settle the payment. */
  verified(): void;
  /**
   * Asked before a price is taken, and before a service with a lasting effect runs. False: the call was withdrawn, and
   * is not charged. After it has returned true the call can no longer be withdrawn.
   */
  stillWanted(): Promise<boolean>;
  /**
   * Calls back once when the call has been withdrawn; absent where that ends no work. Returns how to stop listening.
   */
  onWithdrawn?(withdrawn: () => void): () => void;
}

export interface PaidAnswer {
  status: number;
  headers: Record<string, string>;
  body: string | Buffer;
  /** The ledger account that bought the answer; present only on a bought answer. */
  accountId?: bigint;
  /** Called by a door that sees whether the answer arrives, once it knows; absent where nobody asks. */
  arrived?(hasArrived: boolean): void;
  /** Set when the answer has left already, as a stream; the status then tells how it ended. */
  left?: true;
  /** Present on an answer that was not bought: what became of the money, as far as this request knows. */
  fate?: Fate;
}

/** The status and headers of a streamed answer. */
export interface StreamHead {
  status: number;
  headers: Record<string, string>;
}

export interface ReaderBounds {
  /** Whether something that means nothing may be sent between two pieces, to keep the connection alive. */
  readonly mayBeat: boolean;
  /** The longest that the reader may keep the stream waiting, in all. */
  readonly patienceMs: number;
}

/** The reader of a streamed answer. */
export interface StreamReader {
  /** Resolves when the reader can take more. `lost`: the reader has gone, or no longer takes anything. */
  write(piece: Buffer): Promise<'sent' | 'lost'>;
  /** Writes the last piece. Resolves when it has left, or never will. */
  end(piece: Buffer): Promise<void>;
  /** Breaks the stream off, so that its reader sees that it is not whole. */
  cut(): void;
  /** Resolves when the reader has gone, and at the end of the stream. */
  readonly closed: Promise<void>;
}

/** An answer that a service made, as it will be sent. */
export interface MadeAnswer {
  /** Headers of this answer alone: its type, and its provenance if the body cannot carry it. */
  headers: Record<string, string>;
  /** Text for JSON, bytes for anything else. */
  body: string | Buffer;
  /** 200 unless given. */
  status?: number;
  /** Its cost, where its service is metered: no more than was reserved. */
  costMicros?: bigint;
}

/** A request at a door. */
export interface Asked {
  readonly request: PaidRequest;
  readonly quote: Quote;
  /** The call as its service's route reads it; null for a service without one. */
  readonly called: ReadCall | null;
  /** The rail whose credential the request carries, or that recognized the caller; undefined when none. */
  readonly rail: Rail | undefined;
  readonly report: CallReport;
  readonly money: MoneyOfCall;
  /** Rate limit headers that go with whatever is answered. */
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
  /** What the seller gives to the key that pays; undefined: nothing, or no key pays. */
  readonly terms: KeyTerms | undefined;
  /** Whether the answer is stored with the charge, because the same call may ask for it again. */
  readonly isKept: boolean;
}

/** How long a reader may keep a stream of events waiting, in total. */
const READER_PATIENCE_MS = 30_000;

/** The longest that the reader of this stream may keep it waiting, in total. */
export function readerMsOf(stream: ServiceStream): number {
  return stream.form === 'events' ? READER_PATIENCE_MS : stream.readerMs;
}

/** The stream that was bought; null for an answer in one piece. A chain's money must be refundable for a stream. */
export function streamOf({ request, quote, payment, input, rail }: Sale): ServiceStream | null {
  const { stream } = quote.service;
  if (stream === null || request.openStream === undefined) return null;
  const isAsked =
    stream.form === 'events'
      ? (input as Record<string, unknown>)[stream.field] === true
      : request.sent !== undefined;
  if (!isAsked) return null;
  return payment.onChain === null || rail.chains?.canRefund(payment.onChain.network) ? stream : null;
}

/** The payment of a sale, as far as it counts against what its payer holds; null when no chain has to move it. */
export function inFlightOf({ quote, payment, rail }: Sale): PaymentInFlight | null {
  const { onChain } = payment;
  if (onChain === null || onChain.movedBefore === true) return null;
  const { network, asset, payer, amountUnits } = onChain;
  const isCostly = quote.service.costsMoney;
  return {
    network,
    // The same token, whichever rail writes its address.
    asset: asset.startsWith('0x') ? asset.toLowerCase() : asset,
    payer,
    amountUnits,
    costsMoney: isCostly,
    onlyOneOfUnknown: isCostly && rail.chains?.canRefund(network) !== true,
    balance: null,
  };
}

/** The longest that a call may take before its reservation counts as abandoned, without the grace of the reconciler. */
export function longestMs(sale: Sale): number {
  const { timeoutMs } = sale.quote.service;
  const stream = streamOf(sale);
  return stream === null ? timeoutMs : Math.max(timeoutMs, stream.timeoutMs + readerMsOf(stream));
}
