import { noAnswer } from '@farebox/core/words/failure';
import type { AssetItem, AssetSeries } from './asset-series.ts';

export const SHARES_ALIKE =
  'must give every item a weight, or every item an amount or valueUsd, or none of them anything';
/** Whether all items state their share in the same way. */
export function sharesAreAlike(items: readonly AssetItem[]): boolean {
  return (
    new Set(
      items.map(({ weight, amount, valueUsd }) =>
        weight !== undefined ? 'weight' : amount !== undefined || valueUsd !== undefined ? 'value' : 'none',
      ),
    ).size === 1
  );
}

export const HOLDS_SOMETHING = 'must hold something: all shares are 0';
export function holdsSomething(items: readonly AssetItem[]): boolean {
  return items.some(({ weight, amount, valueUsd }) => (weight ?? amount ?? valueUsd ?? 1) > 0);
}

export interface Weights {
  /** Shares of the value held, summing to 1. */
  weights: number[];
  /** Null where only shares are known. */
  totalUsd: number | null;
  given: boolean;
  note: string | null;
}

/** @throws noAnswer when an amount cannot be valued; it names the input that holds the items */
export function weightsOf(series: readonly AssetSeries[], field: string): Weights {
  const shares = series.map(({ item, lastPrice }, index) => {
    if (item.weight !== undefined) return item.weight;
    if (item.valueUsd !== undefined) return item.valueUsd;
    if (item.amount === undefined) return 1;
    if (lastPrice === null) {
      throw noAnswer(
        'NO_PRICE',
        `${item.asset}: an amount needs a price in USD; give valueUsd or weight.`,
        `${field}.${index}`,
      );
    }
    return item.amount * lastPrice;
  });
  const total = shares.reduce((sum, share) => sum + share, 0);
  const isValue = series.every(
    ({ item }) => item.weight === undefined && (item.valueUsd !== undefined || item.amount !== undefined),
  );
  const given = isValue || series.some(({ item }) => item.weight !== undefined);
  const note =
    series.length > 1 && !given
      ? 'No weights were given: every asset counts the same.'
      : given && Math.abs(total - 1) > 1e-9
        ? `The shares given sum to ${Number(total.toPrecision(8))}; they were normalised to 1.`
        : null;
  return { weights: shares.map((share) => share / total), totalUsd: isValue ? total : null, given, note };
}
