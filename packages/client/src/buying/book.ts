/** Records what was spent and which purchases are open. A purchase is written down before its payment leaves. */
import type { Awaitable } from '../payer.ts';

export interface Purchase {
  id: string;
  /** Fingerprint of what is bought, by whom and with what: the same question again is the same purchase until it is answered. */
  request: string;
  /** The payment that is sent with the call, in JSON. */
  payment: string;
  micros: bigint;
  /** The service that is bought; left out where no limit is kept by service. */
  service?: string;
  /** Whether its payment is kept after its answer, so that the same name gets the same answer. */
  kept?: boolean;
}

/** One time that a payment left. */
export interface Send {
  id: bigint | string;
  purchase: string;
}

/** How a server said that it took nothing. */
export interface Denial {
  /**
   * `uncharged`: this time did nothing, which says nothing of others. `refused`: it has looked for the payment, and it has bought
   * nothing up to now, which says nothing of what is still on its way.
   */
  outcome: 'uncharged' | 'refused';
  /**
   * When a signed payment ends. Until then it counts nevertheless, and as spent from then on: whoever holds it can take it and
   * say no. Null: the server's word is the end of it.
   */
  endsAtMs: number | null;
}

/** The most that the day may come to with a purchase; null where there is no limit, or a person has agreed. */
export interface DayLimits {
  dayMicros: bigint | null;
  /** The same for the calls of its service. */
  serviceMicros: bigint | null;
}

export interface Book {
  /** The cost of today's answers (UTC), and what open purchases may still cost; of one service when it is named. */
  todayMicros(service?: string): Awaitable<bigint>;
  /** The open purchase of this request; null without one. */
  openFor(request: string): Awaitable<Purchase | null>;
  /**
   * Writes a purchase down. Nothing may be sent before.
   *
   * @returns the purchase to send: another one when somebody has opened one for the same request meanwhile. `above`
   *   when it would pass a limit, `full` when too many are open
   */
  open(purchase: Purchase, limits: DayLimits): Awaitable<Purchase | 'above' | 'full'>;
  /**
   * Its payment is about to leave: nobody knows its end from here on.
   *
   * @param forMs how long it may be on its way
   * @returns by which its end is told; null when another who sent it has given it up: it must not leave any more
   */
  sending(id: string, forMs: number): Awaitable<Send | null>;
  /** The server says that this time it has cost nothing, and the same payment is sent again. */
  denied(send: Send): Awaitable<void>;
  /** No answer came: what became of it is not known, and stays so whatever another time is answered. */
  lost(send: Send): Awaitable<void>;
  /**
   * It was answered, and is paid for.
   *
   * @param again whether the answer had been sold before: whoever got it then has counted it
   */
  settle(purchase: Purchase, again: boolean): Awaitable<void>;
  /**
   * The server says that this time it has cost nothing. The purchase is given up only when no other time can have been paid.
   *
   * @returns whether it is given up
   */
  giveUp(send: Send, said: Denial): Awaitable<boolean>;
}
