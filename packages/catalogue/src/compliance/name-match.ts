/**
 * How alike two names are, however they are spelled, ordered or transliterated. Pure: text in, a score out.
 *
 * Each word of one name is set against the best word of the other by Jaro-Winkler (Winkler 1990), and by its consonants
 * where vowels are what transliteration changes. Two scores are taken, and the higher counts, in the manner of OFAC's
 * own search (FAQ 249): one of the whole names, in which words without a partner count against it, and one of their
 * parts, in which all words of the one name have a partner in the other and the other may have more, such as a
 * patronymic or a middle name. The latter is for a person to look at, and never strong.
 */
import { joinWords, type NameWord, type ReadName } from './name-reading.ts';

/** From here a name is very likely the same; from `REVIEW_SCORE` somebody should look. */
export const STRONG_SCORE = 0.92;
export const REVIEW_SCORE = 0.85;
/** Words further apart than this are different words. */
export const LEAST_WORD_SCORE = 0.82;
/** Words this close are spellings of one word, where all words of a name are found in a longer one. */
const SAME_WORD_SCORE = 0.93;
/** A pair of words that agree only by their consonants is not as sure as one that agrees by its letters. */
const CONSONANTS_WEIGHT = 0.95;
/** Two consonants are too few to know a word by. */
const LEAST_CONSONANTS = 3;
/** "Hassan" and "Hussein" have the same consonants, and are two names. */
const LEAST_LETTERS = 0.8;
/** An initial stands for a word that begins with it; initials alone are nobody's name. */
const INITIAL_SCORE = 0.83;
/** Consonants of words written together that are enough to know them by. */
export const LEAST_JOINED_CONSONANTS = 4;
/** How many words may be written together as one. */
const MOST_JOINED = 3;
/** The part score lies in [REVIEW_SCORE, this]. */
const MOST_OF_PARTS = 0.91;

/** Words of one name, one or several beside each other, and their partners in the other. */
interface Pair {
  from: Span;
  to: Span;
  score: number;
}
interface Span {
  begin: number;
  end: number;
  word: NameWord;
  /** Whether several words, or a word and its particles, are written together. */
  joined: boolean;
}

/**
 * How alike two names are, 0 to 1, rounded to three places; 1 for the same words in any order. Symmetric.
 */
export function nameScore(a: ReadName, b: ReadName): number {
  if (a.words.length === 0 || b.words.length === 0) return 0;
  // "Listed 1" and "Listed 2" are two names. A number that only one of them has says nothing.
  if (a.numbers.length > 0 && b.numbers.length > 0 && numbersOf(a) !== numbersOf(b)) return 0;
  const pairs = partnersOf(a, b);
  const whole = wholeScore(a, b, pairs);
  const score = Math.max(whole, partScore(a, b, pairs));
  const sure = numbersOf(a) === numbersOf(b) && !areFewSyllables(a, b, pairs);
  return Math.round((sure ? score : Math.min(score, MOST_OF_PARTS)) * 1_000) / 1_000;
}

/**
 * Whether both names are of syllables of Chinese or Korean, and spell them otherwise. These languages have few syllables,
 * and romanisations fewer: the same ones are strong, also where one of three is spelled otherwise, and others are for a
 * person to look at.
 */
function areFewSyllables(a: ReadName, b: ReadName, pairs: readonly Pair[]): boolean {
  if (![a, b].every(({ words }) => words.every(({ sounds }) => sounds.length > 0))) return false;
  const [other, ...more] = pairs.filter(({ from, to }) => from.word.text !== to.word.text);
  if (other === undefined || isSameText(a, b)) return false;
  return more.length > 0 || pairs.length < 3 || !sharesSound(other.from.word, other.to.word);
}

/** Whether two names are the same letters in the same order, wherever their words end. */
function isSameText(a: ReadName, b: ReadName): boolean {
  return joinWords(a.words).text === joinWords(b.words).text;
}

/** The best partners: each word in at most one pair, the most alike first, or the longest first where that leaves less. */
function partnersOf(a: ReadName, b: ReadName): Pair[] {
  const others = spansOf(b);
  const pairs: Pair[] = [];
  for (const from of spansOf(a)) {
    for (const to of others) {
      const score = spanScore(from, to);
      if (score >= LEAST_WORD_SCORE) pairs.push({ from, to, score });
    }
  }
  const byScore = chosenOf(pairs.sort((x, y) => y.score - x.score || firstOf(x, y)));
  if (!leavesBoth(a, b, byScore) || pairs.every(({ from, to }) => !from.joined && !to.joined)) return byScore;
  const byLength = chosenOf(
    pairs.sort((x, y) => lengthOf(y) - lengthOf(x) || y.score - x.score || firstOf(x, y)),
  );
  return leavesBoth(a, b, byLength) ? byScore : byLength;
}

function lengthOf({ from, to }: Pair): number {
  return from.end - from.begin + to.end - to.begin;
}

function firstOf(x: Pair, y: Pair): number {
  return x.from.begin - y.from.begin || x.to.begin - y.to.begin;
}

/** Pairs in their order, without those of which a word is taken. */
function chosenOf(pairs: readonly Pair[]): Pair[] {
  const chosen: Pair[] = [];
  const [usedFrom, usedTo] = [new Set<number>(), new Set<number>()];
  for (const pair of pairs) {
    if (isUsed(usedFrom, pair.from) || isUsed(usedTo, pair.to)) continue;
    use(usedFrom, pair.from);
    use(usedTo, pair.to);
    chosen.push(pair);
  }
  return chosen;
}

/** Whether words without a partner are left on both sides. */
function leavesBoth(a: ReadName, b: ReadName, pairs: readonly Pair[]): boolean {
  return unmatchedLetters(a, pairs, 'from') > 0 && unmatchedLetters(b, pairs, 'to') > 0;
}

/** Words written together must be the same, or sound the same over many consonants. */
function spanScore(from: Span, to: Span): number {
  const [a, b] = [from.word, to.word];
  if (!from.joined && !to.joined) return wordScore(a, b);
  if (a.text === b.text) return 1;
  if (from.joined && to.joined) return 0;
  const known = isWithoutVowels(a, b) && a.consonants.length >= LEAST_JOINED_CONSONANTS && sameSound(a, b);
  return known || sharesSound(a, b) || sharesReading(a, b, LEAST_JOINED_CONSONANTS) ? CONSONANTS_WEIGHT : 0;
}

function isWithoutVowels(a: NameWord, b: NameWord): boolean {
  return isVowelless(a) || isVowelless(b);
}

function isVowelless({ spelling }: NameWord): boolean {
  return spelling === 'consonants' || spelling === 'hebrew' || spelling === 'indic';
}

function spansOf({ words }: ReadName): Span[] {
  const spans: Span[] = [];
  for (let begin = 0; begin < words.length; begin++) {
    for (let end = begin + 1; end <= Math.min(words.length, begin + MOST_JOINED); end++) {
      for (const word of joinsOf(words.slice(begin, end))) {
        spans.push({ begin, end, word, joined: end - begin > 1 || word !== words[begin] });
      }
    }
  }
  return spans;
}

/** Neighbouring words written together: alone, and with the particles that stand between and before them. */
export function joinsOf(words: readonly NameWord[]): NameWord[] {
  const joins = [joinWords(words)];
  if (words.some(({ before }, at) => at > 0 && before !== '')) joins.push(joinWords(words, 'between'));
  if (words[0]?.before) joins.push(joinWords(words, 'all'));
  return joins;
}

function isUsed(used: ReadonlySet<number>, { begin, end }: Span): boolean {
  for (let at = begin; at < end; at++) if (used.has(at)) return true;
  return false;
}

function use(used: Set<number>, { begin, end }: Span): void {
  for (let at = begin; at < end; at++) used.add(at);
}

/** Of the whole names: words without a partner count against it. */
function wholeScore(a: ReadName, b: ReadName, pairs: readonly Pair[]): number {
  let matched = 0;
  let letters = 0;
  for (const { from, to, score } of pairs) {
    const weight = from.word.text.length + to.word.text.length;
    matched += score * weight;
    letters += weight;
  }
  const [leftA, leftB] = [unmatchedLetters(a, pairs, 'from'), unmatchedLetters(b, pairs, 'to')];
  const aIsShort = a.words.length <= b.words.length;
  // A word of the shorter name that has no partner is a contradiction; one of the longer name may just be left out.
  const [short, long] = aIsShort ? [leftA, leftB] : [leftB, leftA];
  const byWords = letters === 0 ? 0 : matched / (letters + 2 * short + 0.5 * long);
  // One word of several proves little: a given name alone is nobody.
  const lonely = pairs.length === 1 && Math.min(a.words.length, b.words.length) === 1;
  if (isSameText(a, b)) return 1;
  const [wholeA, wholeB] = [joinWords(a.words).text, joinWords(b.words).text];
  const alone = lonely && a.words.length !== b.words.length && short + long > 0 ? 0.85 : 1;
  const complete = short + long === 0 && a.words.length === b.words.length;
  return Math.max(byWords * alone, complete ? Math.min(jaroWinkler(wholeA, wholeB), byWords + 0.02) : 0);
}

function unmatchedLetters(name: ReadName, pairs: readonly Pair[], side: 'from' | 'to'): number {
  const used = new Set<number>();
  for (const pair of pairs) use(used, pair[side]);
  return name.words.reduce((sum, { text }, at) => sum + (used.has(at) ? 0 : text.length), 0);
}

/**
 * Of the parts: REVIEW_SCORE and more when every word of one name, two at least, is found in the other, else 0. An
 * initial is found in a word that begins with it, and proves nothing by itself.
 */
function partScore(a: ReadName, b: ReadName, pairs: readonly Pair[]): number {
  if (leavesBoth(a, b, pairs)) return 0;
  const full = pairs.filter(({ from, to }) => Math.min(from.word.text.length, to.word.text.length) > 1);
  if (full.length < 2 || !full.every(isSameWord)) return 0;
  const mean = full.reduce((sum, { score }) => sum + score, 0) / full.length;
  return REVIEW_SCORE + ((mean - SAME_WORD_SCORE) / (1 - SAME_WORD_SCORE)) * (MOST_OF_PARTS - REVIEW_SCORE);
}

/** Two spellings of one word: the same sounds, or a slip of the pen in a word that is long enough for one. */
function isSameWord({ from, to, score }: Pair): boolean {
  if (score < SAME_WORD_SCORE) return false;
  if (sameSound(from.word, to.word)) return true;
  const [a, b] = [plainLetters(from.word.text), plainLetters(to.word.text)];
  const shorter = Math.min(a.length, b.length);
  return editDistance(a, b) <= (shorter >= 8 ? 2 : shorter >= 5 ? 1 : 0);
}

/** Whether two words sound the same, as far as their scripts tell. */
function sameSound(a: NameWord, b: NameWord): boolean {
  if (isWithoutVowels(a, b)) return vowellessScore(a, b) > 0;
  return sharesSound(a, b) || sharesConsonants(a, b) || sharesReading(a, b, LEAST_CONSONANTS);
}

/** Whether two words have the same consonants, and enough to know a word by. */
function sharesConsonants({ skeleton: a }: NameWord, { skeleton: b }: NameWord): boolean {
  return a === b && consonantsIn(a) >= LEAST_CONSONANTS;
}

/** How many consonants a word is known by: "ng" is one of them, or "Jang" and "Jong" would be one word. */
function consonantsIn(skeleton: string): number {
  return skeleton.replace(/nk/g, 'n').length;
}

/** Whether two words may be one in a language of East Asia. */
function sharesSound({ sounds: a }: NameWord, { sounds: b }: NameWord): boolean {
  return a.length > 0 && b.length > 0 && a.some((sound) => b.includes(sound));
}

function areOfOneLanguage({ sounds: a }: NameWord, { sounds: b }: NameWord): boolean {
  return a.some((sound) => b.some((other) => other.slice(0, 2) === sound.slice(0, 2)));
}

/** Whether two words are one when each is read by the rules of some language. */
function sharesReading(a: NameWord, b: NameWord, leastConsonants: number): boolean {
  if (a.spelling !== 'letters' || b.spelling !== 'letters') return false;
  // Words that may be of one language of East Asia are known by its sounds, and not as a European would spell them.
  if (areOfOneLanguage(a, b)) return false;
  return a.readings.some((one) =>
    b.readings.some((other) => {
      if (one.skeleton !== other.skeleton) return false;
      const shorter = Math.min(one.said.length, other.said.length);
      if (one.said === other.said)
        return (
          shorter >= 3 &&
          (leastConsonants <= LEAST_CONSONANTS || consonantsIn(one.skeleton) >= leastConsonants)
        );
      if (consonantsIn(one.skeleton) < leastConsonants) return false;
      const most = shorter >= 12 ? 3 : shorter >= 8 ? 2 : shorter >= 4 ? 1 : 0;
      return (
        Math.abs(one.said.length - other.said.length) <= most && editDistance(one.said, other.said) <= most
      );
    }),
  );
}

function numbersOf({ numbers }: ReadName): string {
  return [...numbers].sort().join(' ');
}

/** How alike two words are, 0 to 1: by their letters, or a little less surely by their sounds. */
function wordScore(a: NameWord, b: NameWord): number {
  if (a.text === b.text) return 1;
  if (sharesSound(a, b)) return CONSONANTS_WEIGHT;
  // A single letter may stand for a word that begins with it.
  if (a.text.length === 1 || b.text.length === 1) return a.text[0] === b.text[0] ? INITIAL_SCORE : 0;
  if (isWithoutVowels(a, b)) return vowellessScore(a, b);
  return Math.max(letterScore(a, b), sharesReading(a, b, LEAST_CONSONANTS) ? CONSONANTS_WEIGHT : 0);
}

/** How alike two words of letters are, by the rules of one language alone. */
export function letterScore(a: NameWord, b: NameWord): number {
  const [plainA, plainB] = [plainLetters(a.text), plainLetters(b.text)];
  const letters = jaroWinkler(plainA, plainB);
  // The edit distance only takes away, and is the dearer of the two.
  const byLetters = letters < LEAST_WORD_SCORE ? 0 : letters * editShare(plainA, plainB);
  // The letters must not be far apart either.
  const alike = sharesConsonants(a, b) && letters >= LEAST_LETTERS;
  return Math.max(byLetters, alike ? CONSONANTS_WEIGHT : 0);
}

/** The letters by which languages of one script write the same sound differently, as one. */
function plainLetters(text: string): string {
  return text
    .replace(/(?<=.)y/g, 'i')
    .replace(/w/g, 'v')
    .replace(/(?<=[aeiou])[kc]h/g, 'h');
}

/** A word written without its vowels: the same consonants, three at least, are all that can be asked. */
function vowellessScore(a: NameWord, b: NameWord): number {
  const shared = a.vowelless.some((consonants) => b.vowelless.includes(consonants));
  if (!shared) return 0;
  return Math.min(a.consonants.length, b.consonants.length) >= 3 ? CONSONANTS_WEIGHT : SAME_WORD_SCORE;
}

/** Half of the letters must agree by edit distance; from three quarters on, nothing is taken off. */
function editShare(a: string, b: string): number {
  const share = 1 - editDistance(a, b) / Math.max(a.length, b.length);
  return share < 0.5 ? 0 : share >= 0.75 ? 1 : 0.85 + (share - 0.5) * 0.6;
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
