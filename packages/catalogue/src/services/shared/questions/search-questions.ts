/** How well a question answers a search: pure, and the same for both venues. */
import { readQuestion } from './read-question.ts';

/** Below this a question only shares a word with the search. */
export const LEAST_RELEVANCE = 0.5;

/** A search query, parsed once and compared with many questions. */
export interface Search {
  words: readonly string[];
  strikes: readonly string[];
  /** As it was written, for tickers. */
  raw: string;
}

/** Reads a search. A search of nothing but stop words looks for the words as they stand. */
export function readSearch(query: string): Search {
  const { words, strikes, date } = readQuestion(query, null);
  const spoken = [...words];
  if (spoken.length === 0 && strikes.size === 0 && date === null) {
    spoken.push(...(query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []));
  }
  return { words: spoken.slice(0, 40), strikes: [...strikes].slice(0, 10), raw: query.trim().toUpperCase() };
}

/**
 * The share of the search that a question contains: its words (the beginning of a word counts, so that "elect" finds
 * "election") and its numbers. A ticker that is the search, or begins with it, is always found.
 *
 * @param said everything that the venue says about the question: event title, question, meaning of yes
 * @returns 0 to 1, rounded to three places
 */
export function relevanceOf(search: Search, said: string, ticker?: string): number {
  if (ticker !== undefined && search.raw.length >= 3 && ticker.toUpperCase().startsWith(search.raw)) return 1;
  const wanted = search.words.length + search.strikes.length;
  if (wanted === 0) return 0;
  const { words, strikes } = readQuestion(said, null);
  const spoken = [...words, ...(said.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])];
  const hits =
    search.words.filter((word) =>
      spoken.some((other) => other === word || (word.length > 3 && other.startsWith(word))),
    ).length + search.strikes.filter((strike) => strikes.has(strike)).length;
  return Math.round((hits / wanted) * 1_000) / 1_000;
}
