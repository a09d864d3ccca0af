/**
 * Decides whether two venues ask the same question. Pure and deterministic: the similarity of word sets, and in
 * addition the facts that make two similar sentences different bets: strike, date, direction, negation, way of
 * settling.
 */
import type { Question } from './read-question.ts';

export type Confidence = 'low' | 'medium' | 'high';

export interface Match {
  /** Dice coefficient of the two word sets, 0 to 1, rounded to three places. */
  score: number;
  confidence: Confidence;
  /** Why it is not `high`; empty when it is. */
  doubts: string[];
}

const DAY_MS = 86_400_000;
const CLOSE_TOLERANCE_MS = 2 * DAY_MS;
/** Below this two questions have a few words in common and nothing else. */
const LEAST_SCORE = 0.5;
const MEDIUM_SCORE = 0.6;
/** Above the 10 of 11 words that "wins" and "wins the popular vote" may share. */
const HIGH_SCORE = 0.92;

/** Compares two questions; null when they are different bets, or have too little in common to say. */
export function compareQuestions(a: Question, b: Question): Match | null {
  const score = dice(a.words, b.words);
  if (score < LEAST_SCORE) return null;
  if (a.negated !== b.negated) return null;
  if (a.direction !== null && b.direction !== null && a.direction !== b.direction) return null;
  if (a.strikes.size > 0 && b.strikes.size > 0 && !sameSet(a.strikes, b.strikes)) return null;
  if (a.date !== null && b.date !== null && (a.date.last < b.date.first || b.date.last < a.date.first))
    return null;

  // Each doubt caps the confidence: `low` when the bets may well differ, `medium` when they differ only in edge cases.
  const low: string[] = [];
  const medium: string[] = [];
  if (a.strikes.size !== b.strikes.size) low.push('only one names a number');
  if (a.settles !== null && b.settles !== null && a.settles !== b.settles) {
    low.push('one settles when the level is touched, the other by where it stands at the end');
  }
  const onlyA = missingFrom(a.names, b.words);
  const onlyB = missingFrom(b.names, a.words);
  if (onlyA.length > 0 && onlyB.length > 0) {
    low.push(`different names: ${onlyA.join(', ')} / ${onlyB.join(', ')}`);
  } else if (missingFrom(a.words, b.words).length > 0 && missingFrom(b.words, a.words).length > 0) {
    medium.push('each has a word that the other lacks');
  }
  if (a.boundary !== null && b.boundary !== null && a.boundary !== b.boundary) {
    medium.push('the boundary value counts in one only');
  }
  if (a.date !== null && b.date !== null && a.date.last !== b.date.last) {
    medium.push('one date is wider than the other');
  }
  const level = a.settles === 'level' || b.settles === 'level';
  if (level && a.date !== null && b.date !== null && a.date.first !== b.date.first) {
    medium.push('one asks for a level on a day, the other within a period');
  }
  const apartMs =
    a.closesAtMs === null || b.closesAtMs === null ? null : Math.abs(a.closesAtMs - b.closesAtMs);
  const sameTextDate = a.date !== null && b.date !== null && a.date.last === b.date.last;
  if (apartMs === null) (sameTextDate ? medium : low).push('a closing time is unknown');
  else if (apartMs > CLOSE_TOLERANCE_MS) {
    (sameTextDate ? medium : low).push(`they close ${(apartMs / DAY_MS).toFixed(1)} days apart`);
  }
  if (score < MEDIUM_SCORE) low.push('few words in common');
  else if (score < HIGH_SCORE) medium.push('the wording differs');

  return {
    score: Math.round(score * 1_000) / 1_000,
    confidence: low.length > 0 ? 'low' : medium.length > 0 ? 'medium' : 'high',
    doubts: [...low, ...medium],
  };
}

export interface Pair<A, B> {
  a: A;
  b: B;
  match: Match;
}

const RANK: Record<Confidence, number> = { low: 0, medium: 1, high: 2 };
/** A word in more questions than this selects nothing in particular, and would cost a comparison with each of them. */
const COMMON_WORD = 300;
/** How many candidates are compared in full for each question: those with the most common words. */
const CANDIDATES = 12;
const NONE: ReadonlySet<string> = new Set();

/**
 * Finds the questions that two venues share. Every question is used at most once, the best matches first.
 *
 * @param readA, readB how to read an item of each list
 */
export function matchQuestions<A, B>(
  left: readonly A[],
  right: readonly B[],
  readA: (item: A) => Question,
  readB: (item: B) => Question,
): Pair<A, B>[] {
  const questions = right.map(readB);
  const postings = new Map<string, number[]>();
  questions.forEach(({ words }, index) => {
    for (const word of words) {
      const known = postings.get(word);
      if (known === undefined) postings.set(word, [index]);
      else known.push(index);
    }
  });

  const found: (Pair<A, B> & { from: number; to: number })[] = [];
  left.forEach((a, from) => {
    const question = readA(a);
    const shared = new Map<number, number>();
    let telling = 0;
    for (const word of question.words) {
      const holders = postings.get(word) ?? [];
      if (holders.length === 0 || holders.length > COMMON_WORD) continue;
      telling++;
      for (const holder of holders) shared.set(holder, (shared.get(holder) ?? 0) + 1);
    }
    const candidates = [...shared]
      .filter(([, words]) => words >= Math.min(2, telling))
      .map(([to, words]) => ({
        to,
        words,
        strikes: sameSet(question.strikes, questions[to]?.strikes ?? NONE),
      }))
      .sort((x, y) => y.words - x.words || Number(y.strikes) - Number(x.strikes) || x.to - y.to)
      .slice(0, CANDIDATES);
    for (const { to } of candidates) {
      const b = right[to];
      const other = questions[to];
      if (b === undefined || other === undefined) continue;
      const match = compareQuestions(question, other);
      if (match !== null) found.push({ a, b, match, from, to });
    }
  });

  found.sort(
    (x, y) =>
      RANK[y.match.confidence] - RANK[x.match.confidence] ||
      y.match.score - x.match.score ||
      x.from - y.from ||
      x.to - y.to,
  );
  const usedLeft = new Set<number>();
  const usedRight = new Set<number>();
  const pairs: Pair<A, B>[] = [];
  for (const { a, b, match, from, to } of found) {
    if (usedLeft.has(from) || usedRight.has(to)) continue;
    usedLeft.add(from);
    usedRight.add(to);
    pairs.push({ a, b, match });
  }
  return pairs;
}

/** Whether a confidence is at least another. */
export function atLeast(confidence: Confidence, least: Confidence): boolean {
  return RANK[confidence] >= RANK[least];
}

function dice(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  if (a.size === 0 || b.size === 0) return 0;
  let shared = 0;
  for (const word of a) if (b.has(word)) shared++;
  return (2 * shared) / (a.size + b.size);
}

function sameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((entry) => b.has(entry));
}

function missingFrom(names: ReadonlySet<string>, words: ReadonlySet<string>): string[] {
  return [...names].filter((name) => !words.has(name));
}
