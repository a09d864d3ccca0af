/** How many other spellings of listed names are found, as `name-match.test.ts` measures it. */
export const NAME_RECALL = {
  /** Spellings that were at hand when the rules were written. */
  known: { pairs: 457, found: 449 },
  /** Spellings that were put aside before the rules were widened. */
  heldOut: { pairs: 359, found: 340 },
} as const;

/**
 * Shares of common two-word names, in percent, that have an entry to review or a strong one in a list of OFAC of 20,886
 * names. Copied from what `npm run bench -- --only names --list sdn.csv --list alt.csv` prints (`bench/names.ts`); run it
 * again when a rule changes.
 */
export const NAMESAKES: Readonly<Record<string, { review: number; strong: number }>> = {
  US: { review: 1, strong: 0.2 },
  Spanish: { review: 39.6, strong: 4.4 },
  Arabic: { review: 30.7, strong: 25.3 },
  Chinese: { review: 18.2, strong: 2.7 },
  Russian: { review: 12.9, strong: 0.9 },
  Indian: { review: 1.3, strong: 1.8 },
  Vietnamese: { review: 8.4, strong: 0.9 },
  Korean: { review: 16.9, strong: 1.3 },
  German: { review: 0.4, strong: 0 },
};

/** How often a common name has an entry, in a sentence. */
export function namesakesSentence(): string {
  const shares = Object.entries(NAMESAKES).map(
    ([of, { review, strong }]) => `${of} ${Math.round((review + strong) * 10) / 10} %`,
  );
  return `Common names that have an entry to review or a strong one in a list of OFAC of 20,886 names, most of which are other people's: ${shares.join(', ')}`;
}

/** What to expect of a search, in a sentence. */
export function recallSentence(): string {
  const { known, heldOut } = NAME_RECALL;
  return (
    `Of ${known.pairs} other spellings of listed names, by which the rules were checked while they were written, ` +
    `${shareOf(known)} are found, and of ${heldOut.pairs} that were put aside ${shareOf(heldOut)}`
  );
}

function shareOf({ pairs, found }: { pairs: number; found: number }): string {
  return `${Math.floor((100 * found) / pairs)} %`;
}
