/**
 * How two things are compared on a machine that other programs use too: in alternating rounds, by the ratio of each
 * round.
 */

/** The middle value; of an even number of values the mean of the middle two. */
function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  const upper = sorted[Math.floor(half)];
  const lower = sorted[Math.ceil(half) - 1];
  if (upper === undefined || lower === undefined) throw new RangeError('the median of nothing');
  return (upper + lower) / 2;
}

/** The value that a share of all values do not exceed (nearest rank). @param share in (0, 1] */
export function percentile(values: readonly number[] | Float64Array, share: number): number {
  const sorted = Float64Array.from(values).sort();
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
  if (value === undefined) throw new RangeError('a percentile of nothing');
  return value;
}

export interface Comparison {
  /** Median over the rounds. */
  ours: number;
  opponent: number;
  /** Ours to the opponent's: median of the rounds' ratios, and the smallest and largest of them. */
  ratio: number;
  lowest: number;
  highest: number;
}

/** Compares what was measured in the same rounds. */
export function compare(ours: readonly number[], opponent: readonly number[]): Comparison {
  const ratios = ours.map((value, round) => value / (opponent[round] ?? Number.NaN));
  return {
    ours: median(ours),
    opponent: median(opponent),
    ratio: median(ratios),
    lowest: Math.min(...ratios),
    highest: Math.max(...ratios),
  };
}

/** Measures A B, B A, A B, …: a disturbance of the machine affects both sides, and neither always goes first. */
export async function alternate<Result>(
  rounds: number,
  ours: () => Promise<Result>,
  opponent: () => Promise<Result>,
): Promise<{ ours: Result[]; opponent: Result[] }> {
  const results: { ours: Result[]; opponent: Result[] } = { ours: [], opponent: [] };
  for (let round = 0; round < rounds; round++) {
    const oursFirst = round % 2 === 0;
    if (oursFirst) results.ours.push(await ours());
    results.opponent.push(await opponent());
    if (!oursFirst) results.ours.push(await ours());
  }
  return results;
}
