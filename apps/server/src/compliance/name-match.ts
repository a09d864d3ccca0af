/**
 * How alike two names are, however they are spelled, ordered or transliterated. Pure: text in, a score out.
 *
 * Each word of one name is set against the best word of the other by Jaro-Winkler (Winkler 1990), and by its consonants
 * where vowels are what transliteration changes; words without a partner count against it. In the manner of OFAC's own
 * search (FAQ 249), which takes the higher of the whole name and its parts.
 */
import anyAscii from 'any-ascii';

/** From here a name is very likely the same; from `REVIEW_SCORE` somebody should look. */
export const STRONG_SCORE = 0.92;
export const REVIEW_SCORE = 0.85;
/** Words further apart than this are different words. */
const LEAST_WORD_SCORE = 0.82;
/** A pair of words that agree only by their consonants is not as sure as one that agrees by its letters. */
const CONSONANTS_WEIGHT = 0.95;
/** "Hassan" and "Hussein" have the same consonants, and are two names. */
const LEAST_LETTERS = 0.8;
const MOST_WORDS = 12;
const MOST_CHARACTERS = 200;

/** Words that are no part of anybody's own name. */
const TITLES = new Set(
  'mr mrs ms miss dr prof sir the ltd llc inc co corp company limited plc gmbh sa ag'.split(' '),
);
/** Particles that are written, left out and joined at will. */
const PARTICLES = new Set(
  'al el ul de da di del della du der den van von la le bin ibn bint ben abu abd y e o'.split(' '),
);

/** A name, read once and compared many times. */
export interface ReadName {
  /** As it was written. */
  written: string;
  /** Its words in Latin letters, lower case, without titles and particles. */
  words: readonly string[];
  /** Of each word, the letters that transliteration keeps. */
  skeletons: readonly string[];
}

/** Reads a name in any script. Chinese, Japanese and Korean names are spelled by the sound of each character. */
export function readName(written: string): ReadName {
  const spaced = written
    .slice(0, MOST_CHARACTERS)
    .normalize('NFKC')
    // A character of these scripts is a word of its own; spelled together they would be none.
    .replace(/(\p{Script=Han}|\p{Script=Hangul})/gu, ' $1 ');
  const latin = anyAscii(spaced)
    .toLowerCase()
    .replace(/['`´ʼ]/g, '')
    .replace(/[^a-z0-9]+/g, ' ')
    .trim();
  const all = latin.split(' ').filter((word) => word !== '');
  const own = all.filter((word) => !TITLES.has(word) && !PARTICLES.has(word));
  const words = (own.length > 0 ? own : all).slice(0, MOST_WORDS);
  return { written, words, skeletons: words.map(skeletonOf) };
}

/**
 * How alike two names are, 0 to 1, rounded to three places; 1 for the same words in any order. Symmetric.
 */
export function nameScore(a: ReadName, b: ReadName): number {
  if (a.words.length === 0 || b.words.length === 0) return 0;
  // "Listed 1" and "Listed 2" are as different as two names can be.
  if (numbersOf(a) !== numbersOf(b)) return 0;
  const [short, long] = a.words.length <= b.words.length ? [a, b] : [b, a];
  const pairs: { from: number; to: number; score: number }[] = [];
  short.words.forEach((word, from) => {
    long.words.forEach((other, to) => {
      const score = wordScore(word, other, short.skeletons[from] ?? '', long.skeletons[to] ?? '');
      if (score >= LEAST_WORD_SCORE) pairs.push({ from, to, score });
    });
  });
  pairs.sort((x, y) => y.score - x.score || x.from - y.from || x.to - y.to);
  const usedFrom = new Set<number>();
  const usedTo = new Set<number>();
  let matched = 0;
  let letters = 0;
  for (const { from, to, score } of pairs) {
    if (usedFrom.has(from) || usedTo.has(to)) continue;
    usedFrom.add(from);
    usedTo.add(to);
    const weight = lengthOf(short.words[from]) + lengthOf(long.words[to]);
    matched += score * weight;
    letters += weight;
  }
  // A word of the shorter name that has no partner is a contradiction; one of the longer name may just be left out.
  const unmatchedShort = lettersOf(short, usedFrom);
  const unmatchedLong = lettersOf(long, usedTo);
  const byWords = letters === 0 ? 0 : matched / (letters + 2 * unmatchedShort + 0.5 * unmatchedLong);
  // One word of several proves little: a given name alone is nobody.
  const lonely = short.words.length === 1 && long.words.length > 1 ? 0.85 : 1;
  const whole = jaroWinkler(short.words.join(''), long.words.join(''));
  const sameLength = short.words.length === long.words.length && usedFrom.size === short.words.length;
  const score = Math.max(byWords * lonely, sameLength ? Math.min(whole, byWords + 0.02) : 0);
  // Names written together or apart: "Abdul Rahman" and "Abdulrahman".
  const joined = [...short.words].join('') === [...long.words].join('') ? 1 : 0;
  return Math.round(Math.max(score, joined) * 1_000) / 1_000;
}

function numbersOf({ words }: ReadName): string {
  return words
    .filter((word) => /\d/.test(word))
    .sort()
    .join(' ');
}

function lengthOf(word: string | undefined): number {
  return word?.length ?? 0;
}

function lettersOf(name: ReadName, used: ReadonlySet<number>): number {
  return name.words.reduce((sum, word, index) => sum + (used.has(index) ? 0 : word.length), 0);
}

/** Two words: by their letters, or a little less surely by their consonants. */
export function wordScore(a: string, b: string, skeletonA: string, skeletonB: string): number {
  if (a === b) return 1;
  // A number is the same or another one; a single letter may stand for a word that begins with it.
  if (/\d/.test(a) || /\d/.test(b)) return 0;
  if (a.length === 1 || b.length === 1) return a[0] === b[0] ? 0.85 : 0;
  const letters = jaroWinkler(a, b);
  // The edit distance only takes away, and is the dearer of the two.
  const byLetters = letters < LEAST_WORD_SCORE ? 0 : letters * editShare(a, b);
  // Two consonants are too few to know a word by, and the letters must not be far apart either.
  const alike = skeletonA.length >= 3 && skeletonA === skeletonB && letters >= LEAST_LETTERS;
  return Math.max(byLetters, alike ? CONSONANTS_WEIGHT : 0);
}

/** Half of the letters must agree by edit distance; from three quarters on, nothing is taken off. */
function editShare(a: string, b: string): number {
  const share = 1 - editDistance(a, b) / Math.max(a.length, b.length);
  return share < 0.5 ? 0 : share >= 0.75 ? 1 : 0.85 + (share - 0.5) * 0.6;
}

/**
 * What is left of a word when vowels, doubled letters and the ways to write one sound are taken away: "mohammed",
 * "muhammad" and "mohamed" are one; so are "gaddafi", "qadhafi" and "kaddafi".
 */
function skeletonOf(word: string): string {
  const sounds = word
    .replace(/ph/g, 'f')
    .replace(/(kh|gh|ck|q|c(?![h]))/g, 'k')
    .replace(/(sch|tsch|tch|ch|sh|zh|ts|tz)/g, 's')
    .replace(/(dh|th)/g, 'd')
    .replace(/[gk]/g, 'k')
    .replace(/[td]/g, 'd')
    .replace(/[vwf]/g, 'f')
    .replace(/[zxsj]/g, 's')
    .replace(/b|p/g, 'b')
    // Before vowels go: the two m's of "muhammad" are two sounds, those of "mohammed" after the a are one.
    .replace(/(.)\1+/g, '$1');
  const first = sounds[0] ?? '';
  const kept = sounds.slice(1).replace(/[aeiouyh]/g, '');
  const begin = /[aeiouyh]/.test(first) ? 'a' : first;
  return begin + kept;
}

/**
 * Jaro-Winkler similarity with a prefix scale of 0.1 and a prefix of at most four letters (Winkler 1990). The published
 * values: MARTHA and MARHTA 0.961, DIXON and DICKSONX 0.813, DWAYNE and DUANE 0.840.
 */
export function jaroWinkler(a: string, b: string): number {
  if (a === b) return a === '' ? 0 : 1;
  const reach = Math.max(0, Math.floor(Math.max(a.length, b.length) / 2) - 1);
  const takenB = new Uint8Array(b.length);
  const matchedA: string[] = [];
  for (let i = 0; i < a.length; i++) {
    const last = Math.min(b.length - 1, i + reach);
    for (let j = Math.max(0, i - reach); j <= last; j++) {
      if (takenB[j] === 0 && a[i] === b[j]) {
        takenB[j] = 1;
        matchedA.push(a[i] ?? '');
        break;
      }
    }
  }
  const m = matchedA.length;
  if (m === 0) return 0;
  let transposed = 0;
  let at = 0;
  for (let j = 0; j < b.length; j++) {
    if (takenB[j] === 0) continue;
    if (b[j] !== matchedA[at]) transposed += 1;
    at += 1;
  }
  const jaro = (m / a.length + m / b.length + (m - transposed / 2) / m) / 3;
  let prefix = 0;
  while (prefix < 4 && prefix < Math.min(a.length, b.length) && a[prefix] === b[prefix]) prefix += 1;
  return jaro + prefix * 0.1 * (1 - jaro);
}

/** Levenshtein distance. */
export function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1;
      row.push(Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + change));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
