/** One probability out of several venues' prices. */

export interface Consensus {
  /** 0 to 1; null with the reason. */
  probability: number | null;
  /** In the order of the prices; they add up to 1. Null without a consensus. */
  weights: number[] | null;
  reason: string;
}

/**
 * The mean of the prices, weighted by what was traded at each. Where a volume is not known, or nothing was traded, all
 * weigh the same.
 *
 * @param prices two or more; a probability of null is a venue without a price
 * @param obstacle why there is none whatever the prices are; null when they may be put together
 */
export function consensusOf(
  prices: readonly { probability: number | null; volumeUsd: number | null }[],
  obstacle: string | null,
): Consensus {
  if (obstacle !== null) return { probability: null, weights: null, reason: obstacle };
  if (prices.length < 2 || prices.some(({ probability }) => probability === null)) {
    return { probability: null, weights: null, reason: 'A venue has no price for it now.' };
  }
  const volumes = prices.map(({ volumeUsd }) => volumeUsd);
  const total = volumes.reduce((sum: number, volume) => sum + (volume ?? 0), 0);
  const known = total > 0 && volumes.every((volume) => volume !== null);
  const weights = volumes.map((volume) => (known ? (volume ?? 0) / total : 1 / prices.length));
  const mean = prices.reduce(
    (sum, price, index) => sum + (price.probability ?? 0) * (weights[index] ?? 0),
    0,
  );
  return {
    probability: Math.round(mean * 1e4) / 1e4,
    weights: weights.map((weight) => Math.round(weight * 1e4) / 1e4),
    reason: known
      ? 'The mean of both venues’ prices, weighted by volume.'
      : 'The plain mean of both venues’ prices: a volume is not known, or nothing was traded.',
  };
}
