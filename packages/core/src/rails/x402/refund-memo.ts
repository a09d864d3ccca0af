/** The memo by which a refund on Solana says which call it is for. */

const REFUND = /^refund of call ([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;

/** Writes the memo. It makes each refund another transaction, too. */
export function refundMemo(callId: string): string {
  return `refund of call ${callId}`;
}

/** The call that one of a transaction's memos names; null: none does. Only our own key's transactions may be believed. */
export function refundedCallIn(memos: readonly string[]): string | null {
  for (const memo of memos) {
    const named = REFUND.exec(memo)?.[1];
    if (named !== undefined) return named;
  }
  return null;
}
