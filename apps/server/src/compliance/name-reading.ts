/**
 * Reads a name in any script as words of Latin letters that can be compared. Pure.
 *
 * Han characters are read as Chinese (by `pinyin-pro`, which knows how surnames are read) and as Korean (by `hanja`);
 * Arabic and Hebrew are written without most vowels, so their words are compared by consonants alone.
 */
import anyAscii from 'any-ascii';
import hanja from 'hanja';
import { pinyin } from 'pinyin-pro';

const MOST_WORDS = 12;
const MOST_CHARACTERS = 200;

/** Words that are no part of anybody's own name. */
const TITLES = new Set(
  'mr mrs ms miss dr prof sir the ltd llc inc co corp company limited plc gmbh sa ag'.split(' '),
);
/** Particles that are written, left out and joined at will. */
const PARTICLES = new Set(
  'al el ul de da di del della du der den van von la le bin ibn bint ben abu y e o'.split(' '),
);

/** How a word came about, which decides what can be asked of its spelling. */
export type Spelling = 'letters' | 'consonants' | 'korean';

/** A word of a name, read once and compared many times. */
export interface NameWord {
  /** Latin letters in lower case, or digits. */
  text: string;
  /** The consonants that transliteration keeps. */
  skeleton: string;
  /** What is left of it in a script that writes neither vowels nor, reliably, w and v. */
  consonants: string;
  /** How it sounds in Korean, whichever romanisation wrote it. */
  korean: string;
  spelling: Spelling;
}

/** A name, read once and compared many times. */
export interface ReadName {
  /** As it was written. */
  written: string;
  /** Without titles and particles. */
  words: readonly NameWord[];
  /** Words that are numbers; they are not among `words`. */
  numbers: readonly string[];
}

/** Every reading of a name: one, or two for Han characters, which may be Chinese or Korean. */
export function readingsOf(written: string): ReadName[] {
  const plain = written.slice(0, MOST_CHARACTERS).normalize('NFKC').replace(HIDDEN, '');
  const chinese = read(written, spellHan(plain));
  if (!/\p{Script=Han}/u.test(plain)) return [chinese];
  // 金 as a surname is Kim; elsewhere it is Geum.
  const korean = hanja.default.translate(plain.replace(/^金/u, '김'), 'SUBSTITUTION');
  return korean === plain ? [chinese] : [chinese, read(written, korean)];
}

/** The first reading of a name. */
export function readName(written: string): ReadName {
  return readingsOf(written)[0] ?? { written, words: [], numbers: [] };
}

/** Whether anything is left of a name that can be looked up. */
export function hasWords(written: string): boolean {
  return readingsOf(written).some(({ words }) => words.length > 0);
}

/** Characters that change no name and are not seen: formatting, and marks over Latin letters that have no letter of their own. */
const HIDDEN = /\p{Cf}|\p{Script=Inherited}|\u0640/gu;
/** Cyrillic and Greek letters that look like Latin ones, for words that mix scripts to hide. */
const LOOKALIKES: Readonly<Record<string, string>> = Object.fromEntries(
  [...'аaвbеeкkмmнhоoрpсcтtуyхxіiјjѕsһhԁdαaοoρpεeιiκkνvτtυu'.matchAll(/(.)(.)/gu)].map(
    ([, from = '', to = '']) => [from, to],
  ),
);
/** Digits that stand for letters inside a word. */
const DIGIT_LETTERS: Readonly<Record<string, string>> = { 0: 'o', 1: 'i', 3: 'e', 4: 'a', 5: 's', 7: 't' };

function spellHan(plain: string): string {
  return plain.replace(
    /\p{Script=Han}+/gu,
    (run) =>
      ` ${pinyin(run, { toneType: 'none', type: 'array', surname: 'head', nonZh: 'removed' }).join(' ')} `,
  );
}

function read(written: string, spelled: string): ReadName {
  const words: NameWord[] = [];
  const numbers: string[] = [];
  for (const piece of spelled.replace(/['`´ʼ’‘]/gu, '').split(/[^\p{L}\p{M}\p{N}]+/u)) {
    const spelling = spellingOf(piece);
    for (const word of lettersOf(piece, spelling).match(/[a-z]+|[0-9]+/g) ?? []) {
      if (/[0-9]/.test(word)) numbers.push(word);
      else words.push(nameWord(word, spelling));
    }
  }
  const known = joinLetters(words);
  const own = known.filter(
    ({ text, spelling }) => spelling === 'consonants' || !(TITLES.has(text) || PARTICLES.has(text)),
  );
  return { written, words: (own.length > 0 ? own : known).slice(0, MOST_WORDS), numbers };
}

function spellingOf(piece: string): Spelling {
  if (/[\p{Script=Arabic}\p{Script=Hebrew}]/u.test(piece)) return 'consonants';
  return /\p{Script=Hangul}/u.test(piece) ? 'korean' : 'letters';
}

/** A piece of a name in Latin letters and digits, lower case. */
function lettersOf(piece: string, spelling: Spelling): string {
  if (spelling === 'consonants') return latinOfConsonants(piece);
  if (spelling === 'korean') return anyAscii([...piece].join(' ')).toLowerCase();
  const lower = piece.toLowerCase();
  const mixed = /\p{Script=Latin}/u.test(lower) && /[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(lower);
  const own = mixed ? lower.replace(/./gu, (letter) => LOOKALIKES[letter] ?? letter) : lower;
  return anyAscii(own)
    .toLowerCase()
    .replace(/(?<=[a-z])[013457](?=[a-z])/g, (digit) => DIGIT_LETTERS[digit] ?? digit)
    .replace(/[^a-z0-9]+/g, '');
}

/** Arabic, Persian and Hebrew: without the article, and with the letters that stand for vowels as vowels. */
function latinOfConsonants(piece: string): string {
  const bare = piece
    .replace(/^[وف]?ال(?=.{2})/u, '')
    // "Badr al-Din" written as one word is said "Badreddin".
    .replace(/(?<=.{2})ال(?=[تثدذرزسشصضطظلن])/gu, '')
    .replace(/ظ/gu, 'z')
    .replace(/^[اأإآعא]/u, 'a')
    .replace(/^[يیי]/u, 'y')
    .replace(/^[وו]/u, 'w')
    .replace(/(?<=.)[اأإآعىةهא]/gu, 'a')
    .replace(/(?<=.)[يیיئ]/gu, 'i')
    .replace(/(?<=.)[ووו]/gu, 'u');
  return anyAscii(bare)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '');
}

/** Letters written apart to hide a word, such as "P u t i n", are one word. */
function joinLetters(words: readonly NameWord[]): NameWord[] {
  const joined: NameWord[] = [];
  for (let at = 0; at < words.length; ) {
    let end = at;
    while (end < words.length && words[end]?.text.length === 1) end += 1;
    const first = words[at];
    if (end - at >= 3) joined.push(joinWords(words.slice(at, end)));
    else if (first !== undefined) joined.push(first);
    at = end - at >= 3 ? end : at + 1;
  }
  return joined;
}

/** Words written together. */
export function joinWords(words: readonly NameWord[]): NameWord {
  const [first] = words;
  if (first !== undefined && words.length === 1) return first;
  const spelling = words.find((word) => word.spelling !== 'letters')?.spelling ?? 'letters';
  return nameWord(words.map(({ text }) => text).join(''), spelling);
}

function nameWord(text: string, spelling: Spelling): NameWord {
  const consonants = skeletonOf(text.replace(/[vw]/g, 'u').replace(/j/g, 'g'));
  return { text, skeleton: skeletonOf(text), consonants, korean: koreanSound(text), spelling };
}

/**
 * What is left of a word when vowels, doubled letters and the ways to write one sound are taken away: "mohammed",
 * "muhammad" and "mohamed" are one; so are "gaddafi", "qadhafi" and "kaddafi".
 */
function skeletonOf(word: string): string {
  const sounds = word
    // "Abdul Rahman", "Abdel Rahman", "Abd al-Rahman" and "Abdurrahman".
    .replace(/^abd[aeou]+(?:l|r(?=r)|n(?=n)|s(?=s)|z(?=z)|sh(?=sh))/, 'abd')
    .replace(/x/g, 'ks')
    .replace(/ph/g, 'f')
    .replace(/(kh|gh|ck|q|c(?![h]))/g, 'k')
    .replace(/(sch|tsch|tch|ch|sh|zh|ts|tz)/g, 's')
    .replace(/(dh|th)/g, 'd')
    .replace(/[gk]/g, 'k')
    .replace(/[td]/g, 'd')
    .replace(/[vwf]/g, 'f')
    .replace(/[zsj]/g, 's')
    .replace(/b|p/g, 'b')
    // Before vowels go: the two m's of "muhammad" are two sounds, those of "mohammed" after the a are one.
    .replace(/(.)\1+/g, '$1');
  const first = sounds[0] ?? '';
  const kept = sounds.slice(1).replace(/[aeiouyh]/g, '');
  const begin = /[aeiouyh]/.test(first) ? 'a' : first;
  return begin + kept;
}

/** One sound for the romanisations of Korean: "gim" and "kim", "jeong" and "chung", "eun" and "un". */
function koreanSound(word: string): string {
  return word
    .replace(/yeo|yo/g, 'yo')
    .replace(/eo|oo|eu|ou|wu|u/g, 'o')
    .replace(/ae|ai|ea/g, 'e')
    .replace(/ee|ie|yi/g, 'i')
    .replace(/^(ri|li|rhee|lee)$/, 'i')
    .replace(/^[rl]/, 'n')
    .replace(/ch|zh|j/g, 'j')
    .replace(/sh/g, 's')
    .replace(/[gk]+/g, 'k')
    .replace(/[dt]+/g, 't')
    .replace(/[bpvf]+/g, 'p')
    .replace(/[rl]+/g, 'l')
    .replace(/a?h$/, (end) => (end.startsWith('a') ? 'a' : ''));
}
