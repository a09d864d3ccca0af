/** Refuses a verdict that too little is known for: programs read the word, and not how much it rests on. */
import { noAnswer } from '@farebox/core/words/failure';

/** A verdict wants this share of its weights evaluated, at least. */
const LEAST_COVERAGE = 0.3;
const REASONS_SHOWN = 5;

/**
 * Passes when enough is known.
 *
 * @param coverage share of the weights that could be evaluated, 0 to 1
 * @param missing what was not evaluated, the weightiest first, each with its reason
 * @throws noAnswer below `LEAST_COVERAGE`
 */
export function requireCoverage(coverage: number, missing: readonly string[], field: string): void {
  if (coverage >= LEAST_COVERAGE) return;
  const percent = (share: number) => `${Math.round(share * 1_000) / 10} %`;
  throw noAnswer(
    'INSUFFICIENT_DATA',
    `Only ${percent(coverage)} of what a verdict rests on could be evaluated, and ${percent(LEAST_COVERAGE)} are the least. Missing, the weightiest first: ${missing.slice(0, REASONS_SHOWN).join('; ')}.`,
    field,
  );
}
