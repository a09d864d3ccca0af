/** Relative changes between neighbours: `p[i] / p[i-1] - 1`. One shorter than the prices. */
export function simpleReturns(prices: readonly number[]): number[] {
  return changes(prices, (now, before) => now / before - 1);
}

/** Logarithms of the ratios between neighbours: `ln(p[i] / p[i-1])`. One shorter than the prices. */
export function logReturns(prices: readonly number[]): number[] {
  return changes(prices, (now, before) => Math.log(now / before));
}

function changes(prices: readonly number[], change: (now: number, before: number) => number): number[] {
  const result: number[] = [];
  let before: number | undefined;
  for (const now of prices) {
    if (before !== undefined) result.push(change(now, before));
    before = now;
  }
  return result;
}

/**
 * Returns of a portfolio whose weights are restored every period: the weighted sum of its parts' simple returns.
 *
 * @param columns one list of simple returns per part, all of the same length
 * @param weights one per part, summing to 1
 */
export function portfolioReturns(
  columns: readonly (readonly number[])[],
  weights: readonly number[],
): number[] {
  const periods = columns[0]?.length ?? 0;
  return Array.from({ length: periods }, (_, period) =>
    columns.reduce((sum, column, part) => sum + (column[period] ?? 0) * (weights[part] ?? 0), 0),
  );
}

/** Values by period number, such as the number of the UTC day since 1970. */
export type Dated = ReadonlyMap<number, number>;

/**
 * Inner join: keeps the periods that every series has, in order.
 *
 * @returns the periods, and per series its values at those periods
 */
export function alignByPeriod(series: readonly Dated[]): { periods: number[]; columns: number[][] } {
  const [first, ...rest] = series;
  const periods = [...(first?.keys() ?? [])]
    .filter((period) => rest.every((other) => other.has(period)))
    .sort((a, b) => a - b);
  const columns = series.map((one) =>
    periods.map((period) => one.get(period)).filter((value) => value !== undefined),
  );
  return { periods, columns };
}
