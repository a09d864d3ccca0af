/** Which services a text is about. */
import type { CatalogLine } from './define.ts';

/** The best is clear when it fits by so much more than the next. */
const CLEARLY_MORE = 1.5;

/**
 * The services whose name, tag or summary contains most of the words, best first; none when no service has any.
 *
 * @param words in any language, as somebody would type them into a search box
 */
export function fittingBest(
  words: string,
  catalog: readonly CatalogLine[],
  most: number,
): readonly CatalogLine[] {
  return scored(words, catalog)
    .slice(0, most)
    .map(({ line }) => line);
}

/** The one service that words are about; null when none is, or the next one fits nearly as well. */
export function clearWinner(words: string, catalog: readonly CatalogLine[]): CatalogLine | null {
  const [best, next] = scored(words, catalog);
  if (best === undefined) return null;
  return next === undefined || best.score >= CLEARLY_MORE * next.score ? best.line : null;
}

/** What has any of the words, best first, by a score that grows with how well it fits. */
function scored(words: string, catalog: readonly CatalogLine[]): { line: CatalogLine; score: number }[] {
  const wanted = words.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return catalog
    .map((line) => ({ line, score: scoreOf(line, wanted) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score);
}

/** A word in the name counts more than one in the tag, which counts more than one in the summary. */
function scoreOf({ path, name, tag, summary }: CatalogLine, words: readonly string[]): number {
  const places: readonly (readonly [string, number])[] = [
    [`${path} ${name}`.toLowerCase(), 4],
    [tag.toLowerCase(), 2],
    [summary.toLowerCase(), 1],
  ];
  let score = 0;
  for (const word of words) for (const [text, worth] of places) if (text.includes(word)) score += worth;
  return score;
}
