/** The price of a call and the way to pay it: the same for each way to pay. */

export interface Payment {
  id: string;
  /** `_meta` of the paid call. */
  meta: Record<string, unknown>;
  micros: bigint;
}

/** The price of some terms, and how it would be paid. */
export interface Quote {
  micros: bigint;
  /** Makes the payment; moves nothing. @throws Error when it cannot be signed */
  pay(): Promise<Payment>;
}
