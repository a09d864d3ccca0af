/** How a call reaches a server, over whichever protocol, and what the server's answer says of its payment. */
import type { Signed, Terms } from '../payer.ts';

/** No answer came, or none that can be read: whether the server did what was asked is not known. */
export class AnswerLost extends Error {}

/** The server said no before it did anything, or somebody on the way to it did. */
export class Refused extends Error {
  /** The HTTP status, or the error code of JSON-RPC. */
  readonly code: number;
  /** The wait that it asks for; null when it does not say. */
  readonly retryAfterMs: number | null;
  constructor(code: number, words: string, retryAfterMs: number | null = null) {
    super(words.slice(0, 400));
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The outcome of a payment, as the server says it. */
export type Outcome = 'paid' | 'refused' | 'uncharged' | 'unknown';

/** The word of an answer on its payment. */
export interface Reading {
  /** The price, as the answer to a call without a payment, or with one that bought nothing; null for any other answer. */
  terms: Terms | null;
  outcome: Outcome;
  /** Whether it says that it has done nothing now and will later: the same payment is sent again after the wait. */
  asksAgain: boolean;
  retryAfterMs: number;
  /** Whether it was bought before. */
  replayed: boolean;
  /** The amount that a key was charged; null when it is not said. */
  chargedMicros: bigint | null;
  message: string;
}

export interface Door<Call, Answer> {
  /**
   * Asks the price by a call without a credential, which costs nothing.
   *
   * @throws AnswerLost Refused
   */
  askPrice(call: Call): Promise<Answer>;
  /**
   * Sends a call with its payment.
   *
   * @throws AnswerLost Refused
   */
  send(call: Call, signed: Signed, timeoutMs: number): Promise<Answer>;
  read(answer: Answer): Reading;
}
