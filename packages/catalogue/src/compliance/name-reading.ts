/**
 * Reads a name in any script as words of Latin letters that can be compared. Pure.
 *
 * Han characters are read as Mandarin (by `pinyin-pro`, which knows how surnames are read), as Cantonese (by
 * `to-jyutping`) and as Korean (by `hanja`); Arabic, Hebrew and the scripts of India leave vowels out, so their words
 * are compared by consonants alone. A word in Latin letters is read by the rules of several languages.
 */
import anyAscii from 'any-ascii';
import {
  cantoneseOf,
  cantoneseSounds,
  joinedSounds,
  looksCantonese,
  looksPinyin,
  looksWadeGiles,
  mandarinSounds,
} from './chinese-sounds.ts';
import { koreanReader, mandarinReader } from './han-dictionaries.ts';
import { koreanSounds, looksKorean } from './korean-sounds.ts';
import { readingsByLanguage, saidAlike } from './western-spellings.ts';

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
export type Spelling = 'letters' | 'consonants' | 'hebrew' | 'indic' | 'korean' | 'cantonese';

/** A word of a name, read once and compared many times. */
export interface NameWord {
  /** Latin letters in lower case, or digits. */
  text: string;
  /** The consonants that transliteration keeps. */
  readonly skeleton: string;
  /** What is left of it in a script that writes neither vowels nor, reliably, w and v. */
  readonly consonants: string;
  /** The consonants by which it is known beside a word of a script that leaves vowels out, as its scripts may write them. */
  readonly vowelless: readonly string[];
  /** The word by the rules of each language, with the consonants of each. */
  readonly readings: readonly Reading[];
  /** How it sounds in the languages of East Asia, each with its language; words that share one are one. */
  sounds: readonly string[];
  /** Particles that stand before it, written together. */
  before: string;
  spelling: Spelling;
}

/** A word by the rules of one language. */
export interface Reading {
  said: string;
  skeleton: string;
}

/** A name, read once and compared many times. */
export interface ReadName {
  /** Without titles and particles. */
  words: readonly NameWord[];
  /** Words that are numbers; they are not among `words`. */
  numbers: readonly string[];
}

/** Every reading of a name: one, or three for Han characters, which may be Mandarin, Cantonese or Korean. */
export function readingsOf(written: string): ReadName[] {
  const plain = written.slice(0, MOST_CHARACTERS).normalize('NFKC').replace(HIDDEN, '');
  const chinese = read(written, spellHan(plain));
  if (!/\p{Script=Han}/u.test(plain)) return [chinese];
  const cantonese: ReadName = {
    words: cantoneseOf(plain.replace(/\P{Script=Han}/gu, ''))
      .slice(0, MOST_WORDS)
      .map(([first = '', ...more]) =>
        nameWord({
          text: first,
          spelling: 'cantonese',
          sounds: [first, ...more].map((sound) => `c:${sound}`),
        }),
      ),
    numbers: [],
  };
  // 金 as a surname is Kim; elsewhere it is Geum.
  const korean = koreanReader().translate(plain.replace(/^金/u, '김'), 'SUBSTITUTION');
  const chineseOnly = [chinese, cantonese].filter(({ words }) => words.every(({ text }) => text !== ''));
  return korean === plain ? chineseOnly : [...chineseOnly, read(written, korean)];
}

/** The first reading of a name. */
export function readName(written: string): ReadName {
  return readingsOf(written)[0] ?? { words: [], numbers: [] };
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
      ` ${mandarinReader()(run, { toneType: 'none', type: 'array', surname: 'head', nonZh: 'removed' }).join(' ')} `,
  );
}

function read(written: string, spelled: string): ReadName {
  const words: NameWord[] = [];
  const numbers: string[] = [];
  const plain = spelled
    // The article takes the sound of the letter that follows: "az-Zawahiri".
    .replace(/(?<![\p{L}\p{M}])[aeu](d|r|s|z|n|t|sh|dh|th)[- ](?=\1)/giu, 'al-')
    .replace(/['`´ʼ’‘ʻ]/gu, '');
  for (const piece of plain.split(/[^\p{L}\p{M}\p{N}]+/u)) {
    const spelling = spellingOf(piece);
    for (const word of lettersOf(piece, spelling).match(/[a-z]+|[0-9]+/g) ?? []) {
      if (/[0-9]/.test(word)) numbers.push(word);
      else words.push(nameWord({ text: word, spelling }));
    }
  }
  const known = joinLetters(words);
  // "O" and "Al" are family names of Korea.
  const korean =
    looksKorean(known.map(({ text }) => text)) && known.every(({ spelling }) => spelling === 'letters');
  const own = korean ? known : withoutParticles(known);
  const marked = /\p{L}(-\p{Ll}|['’`ʻ‘])/u.test(written);
  return { words: withSounds((own.length > 0 ? own : known).slice(0, MOST_WORDS), marked), numbers };
}

/** The words that are a name's own, each with the particles before it. */
function withoutParticles(words: readonly NameWord[]): NameWord[] {
  const own: NameWord[] = [];
  let before = '';
  for (const word of words) {
    const inLetters = word.spelling === 'letters';
    if (inLetters && TITLES.has(word.text)) continue;
    if (inLetters && PARTICLES.has(word.text)) {
      before += word.text;
      continue;
    }
    own.push(before === '' ? word : nameWord({ text: word.text, spelling: word.spelling, before }));
    before = '';
  }
  return own;
}

/** Words with how they sound in the languages of East Asia, as far as the whole name may be of one. */
function withSounds(words: readonly NameWord[], marked: boolean): NameWord[] {
  const texts = words.map(({ text }) => text);
  const latin = words.every(({ spelling }) => spelling === 'letters');
  const korean = latin && looksKorean(texts);
  const wadeGiles = latin && looksWadeGiles(texts, marked);
  const pinyinName = latin && looksPinyin(texts);
  const cantonese = latin && looksCantonese(texts, marked);
  return words.map((word) => {
    const { text, spelling, before } = word;
    const sounds = [
      ...(wadeGiles || pinyinName ? mandarinSounds(text, wadeGiles).map((sound) => `m:${sound}`) : []),
      ...(cantonese ? cantoneseSounds(text).map((sound) => `c:${sound}`) : []),
      ...(korean || spelling === 'korean' ? koreanSounds(text).map((sound) => `k:${sound}`) : []),
    ];
    return sounds.length === 0 ? word : nameWord({ text, spelling, before, sounds });
  });
}

function spellingOf(piece: string): Spelling {
  if (/\p{Script=Hebrew}/u.test(piece)) return 'hebrew';
  if (/\p{Script=Arabic}/u.test(piece)) return 'consonants';
  if (INDIC.test(piece)) return 'indic';
  return /\p{Script=Hangul}/u.test(piece) ? 'korean' : 'letters';
}

/** Scripts that write a consonant with the vowel a unless they say otherwise. */
const INDIC =
  /[\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Oriya}]/u;

/** A piece of a name in Latin letters and digits, lower case. */
function lettersOf(piece: string, spelling: Spelling): string {
  if (spelling === 'consonants') return latinOfConsonants(piece);
  if (spelling === 'hebrew') return latinOfHebrew(piece);
  if (spelling === 'indic') return latinOfIndic(piece);
  if (spelling === 'korean') return anyAscii([...piece].join(' ')).toLowerCase();
  const lower = piece.toLowerCase();
  const mixed = /\p{Script=Latin}/u.test(lower) && /[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(lower);
  const own = mixed ? lower.replace(/./gu, (letter) => LOOKALIKES[letter] ?? letter) : lower;
  return anyAscii(own)
    .toLowerCase()
    .replace(/(?<=[a-z])[013457](?=[a-z])/g, (digit) => DIGIT_LETTERS[digit] ?? digit)
    .replace(/[^a-z0-9]+/g, '');
}

/** Arabic and Persian: without the article, and with the letters that stand for vowels as vowels. */
function latinOfConsonants(piece: string): string {
  const bare = piece
    .replace(/^[وف]?ال(?=.{2})/u, '')
    // "Badr al-Din" written as one word is said "Badreddin".
    .replace(/(?<=.{2})ال(?=[تثدذرزسشصضطظلن])/gu, '')
    .replace(/ظ/gu, 'z')
    .replace(/ژ/gu, 'j')
    .replace(/^[اأإآع]/u, 'a')
    .replace(/^[یي]/u, 'y')
    .replace(/^و/u, 'w')
    .replace(/(?<=.)[اأإآعىة]/gu, 'a')
    .replace(/(?<=.)[یيئ]/gu, 'i')
    .replace(/(?<=.)[وؤ]/gu, 'u');
  return anyAscii(bare)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '');
}

const HEBREW_LETTERS: Readonly<Record<string, string>> = Object.fromEntries(
  [...'אaבbגgדdהaוwזzחhטtיiכkךkלlמmםmנnןnסsעaפpףpצsץsקkרrשsתt'.matchAll(/(.)(.)/gu)].map(
    ([, from = '', to = '']) => [from, to],
  ),
);

/** Hebrew, with the letters that stand for vowels as vowels. */
function latinOfHebrew(piece: string): string {
  return [
    ...piece
      .replace(/^ה(?=.{3})/u, 'h')
      .replace(/^י/u, 'y')
      .replace(/^ו/u, 'v'),
  ]
    .map((letter) => HEBREW_LETTERS[letter] ?? letter)
    .join('')
    .replace(/[^a-z0-9]+/g, '');
}

/** The scripts of India, without the vowels that they do not write. */
function latinOfIndic(piece: string): string {
  const plain = piece
    .normalize('NFKD')
    // A dot below makes a letter of Persian; a dot above is a nasal, and in "Singh" has its g.
    .replace(/\u093c/gu, '')
    .replace(/\u0902(?=ह)/gu, 'ng')
    .replace(/\u0902/gu, 'n');
  return anyAscii(plain)
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

/** Words written together, with the particles between them where asked for. */
export function joinWords(
  words: readonly NameWord[],
  particles: 'none' | 'between' | 'all' = 'none',
): NameWord {
  const [first] = words;
  if (first !== undefined && words.length === 1 && (particles !== 'all' || first.before === '')) return first;
  const spelling = words.find((word) => word.spelling !== 'letters')?.spelling ?? 'letters';
  const text = words
    .map(({ text: own, before }, at) =>
      particles === 'all' || (particles === 'between' && at > 0) ? before + own : own,
    )
    .join('');
  const sounds = ['m:', 'c:', 'k:'].flatMap((language) => {
    const ofLanguage = words.map((word) =>
      word.sounds.filter((sound) => sound.startsWith(language)).map((sound) => sound.slice(2)),
    );
    return joinedSounds(ofLanguage, language === 'k:' ? '.' : '').map((sound) => language + sound);
  });
  return nameWord({ text, spelling, sounds, joined: true });
}

interface Written {
  text: string;
  spelling: Spelling;
  before?: string;
  sounds?: readonly string[];
  /** Whether several words are written together, which is a custom of few languages. */
  joined?: boolean;
}

const NO_SOUNDS: readonly string[] = [];

function nameWord({ text, spelling, before = '', sounds = NO_SOUNDS, joined = false }: Written): NameWord {
  return new SpelledWord(text, spelling, before, sounds, joined);
}

/** A word, with what is made of its letters when that is first asked for. */
class SpelledWord implements NameWord {
  readonly text: string;
  readonly spelling: Spelling;
  readonly before: string;
  readonly sounds: readonly string[];
  readonly #joined: boolean;
  #skeleton: string | undefined;

  constructor(text: string, spelling: Spelling, before: string, sounds: readonly string[], joined: boolean) {
    this.text = text;
    this.spelling = spelling;
    this.before = before;
    this.sounds = sounds;
    this.#joined = joined;
  }

  get skeleton(): string {
    this.#skeleton ??= skeletonOf(this.text);
    return this.#skeleton;
  }

  get consonants(): string {
    const known = remembered(this);
    known.consonants ??= skeletonOf(this.text.replace(/[vw]/g, 'u').replace(/j/g, 'g'));
    return known.consonants;
  }

  get vowelless(): readonly string[] {
    const known = remembered(this);
    known.vowelless ??= vowellessOf(this.text, this.spelling, this.skeleton, this.consonants);
    return known.vowelless;
  }

  get readings(): readonly Reading[] {
    if (this.spelling !== 'letters') return NO_READINGS;
    const known = remembered(this);
    known.readings ??= readingsOfWord(this.text, this.skeleton, this.#joined);
    return known.readings;
  }
}

const NO_READINGS: readonly Reading[] = [];

interface Derived {
  consonants?: string;
  vowelless?: readonly string[];
  readings?: readonly Reading[];
}

/** What was made of the words that were lately compared: too much to keep with each word of long lists. */
const memory = new Map<NameWord, Derived>();
const MOST_REMEMBERED = 4_000;

function remembered(word: NameWord): Derived {
  const known = memory.get(word);
  if (known !== undefined) return known;
  if (memory.size >= MOST_REMEMBERED) memory.clear();
  const fresh: Derived = {};
  memory.set(word, fresh);
  return fresh;
}

/**
 * The consonants of a word by the script that leaves out its vowels: of Arabic, India, and Hebrew, in which one letter
 * is b and v, p and f, or k and kh. A word in letters has those of all three, and doubled ones are one.
 */
function vowellessOf(text: string, spelling: Spelling, skeleton: string, consonants: string): string[] {
  const once = (letters: string) => letters.replace(/(.)\1+/g, '$1');
  if (spelling === 'indic') return [`i${once(skeleton)}`];
  if (spelling === 'consonants') return [`a${once(consonants)}`];
  if (spelling === 'hebrew') return hebrewOf(text).map((letters) => `h${once(skeletonOf(letters))}`);
  return [
    `a${once(consonants)}`,
    `i${once(skeleton)}`,
    // "Dawood" is दाऊद, without a w.
    `i${once(skeletonOf(text.replace(/[vw]/g, 'u')))}`,
    `h${once(skeletonOf(text.replace(/ch/g, 'kh').replace(/[fvwp]/g, 'b')))}`,
  ];
}

/** Each way to say a Hebrew word: w is v or a vowel, and h is not said or said as in "loch". */
function hebrewOf(text: string): string[] {
  const hard = text.replace(/[fp]/g, 'b');
  return [...new Set([hard, hard.replace(/h/g, 'kh')])].flatMap((said) => [
    said.replace(/w/g, 'b'),
    said.replace(/(?<=.)w/g, 'u'),
  ]);
}

/** Words that are written together are read as they are: languages differ in their words, not in how they join them. */
function readingsOfWord(text: string, skeleton: string, joined: boolean): Reading[] {
  if (joined) return [{ said: saidAlike(text), skeleton }];
  return readingsByLanguage(text).map((said) => ({ said, skeleton: skeletonOf(said) }));
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
