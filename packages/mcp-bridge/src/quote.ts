/** What a call costs, and how it would be paid: the same for each way to pay. */

export interface Payment {
  id: string;
  /** `_meta` of the paid call. */
  meta: Record<string, unknown>;
  micros: bigint;
}

/** What these terms cost, and how that would be paid. */
export interface Quote {
  micros: bigint;
  /** Makes the payment; moves nothing. @throws Error when it cannot be signed */
  pay(): Promise<Payment>;
}
