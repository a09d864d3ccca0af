/** A price that is known once the answer is: so much for what came out, and no more than what is reserved for it. */

export interface MeteredPrice {
  /** The thing that is counted, as a sentence goes on: `bytes of the answer`, `items of results`, `usage.total_tokens of the answer`. */
  readonly measured: string;
  /** The price of so many of them, in USD. */
  readonly priceUsd: string;
  readonly per: number;
  /** The most that one call costs: it is reserved. */
  readonly atMostUsd: string;
  /** The price of a call whose answer does not tell it; null where each answer does. */
  readonly whenUnmeasuredUsd: string | null;
}

/** Says in words how a metered price comes about. */
export function meteredWords({ measured, priceUsd, per, whenUnmeasuredUsd }: MeteredPrice): string {
  const rate = `${priceUsd} USD for ${per === 1 ? 'each' : `each ${per}`} of the ${measured}`;
  return whenUnmeasuredUsd === null ? rate : `${rate}, or ${whenUnmeasuredUsd} USD where it does not tell`;
}

/**
 * Says what a call costs, in words that follow the name of what is sold.
 *
 * @param priceUsd what is reserved
 */
export function costsWords(metered: MeteredPrice | null, priceUsd: string): string {
  if (metered === null) return `costs ${priceUsd} USD a call.`;
  return `costs at most ${priceUsd} USD a call, which is reserved: ${meteredWords(metered)}. An API key alone pays for it.`;
}
