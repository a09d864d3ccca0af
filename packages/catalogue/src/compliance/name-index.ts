/** Finds the names of a long list that are like one that was asked for, without comparing it with all of them. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  joinsOf,
  LEAST_JOINED_CONSONANTS,
  LEAST_WORD_SCORE,
  letterScore,
  nameScore,
  REVIEW_SCORE,
} from './name-match.ts';
import { grown, hashOf, type Postings, PostingsBuilder } from './name-postings.ts';
import { type NameWord, type ReadName, readingsOf } from './name-reading.ts';

/** A name of a list, and whose it is. */
export interface IndexedName<Owner> {
  owner: Owner;
  name: string;
}

export interface NameHit<Owner> {
  owner: Owner;
  name: string;
  /** 0 to 1. */
  score: number;
}

export interface NameIndex<Owner> {
  readonly names: number;
  /** Names with at least this score, best first. Other work of the process goes on in between. */
  search(asked: string, options?: { leastScore?: number; most?: number }): Promise<NameHit<Owner>[]>;
}

/** Names that are read, and words and names that are compared, before other work gets its turn: a few milliseconds' worth. */
const READ_AT_ONCE = 16;
const WORDS_AT_ONCE = 500;
const NAMES_AT_ONCE = 25;
const MOST_HITS = 50;
/** A word that only so many names hold identifies them by itself, when it has this many letters. */
const RARE_NAMES = 20;
const RARE_LETTERS = 5;

/** Reads the names of a list one by one, and keeps each word of them once. */
class IndexBuilder<Owner> {
  readonly #named: IndexedName<Owner>[] = [];
  readonly #postings = new PostingsBuilder();
  readonly #words: NameWord[] = [];
  readonly #begins = new Map<string, number[]>();
  readonly #numbers = new Map<number, readonly string[]>();
  #starts = new Uint32Array(1_024);
  #wordsOf = new Uint32Array(4_096);
  #wordsUsed = 0;
  /** Only while names are read: the number of each word, the hashes of its keys, and the texts that were met. */
  readonly #known = new Map<string, number>();
  readonly #hashes: (readonly number[])[] = [];
  readonly #texts = new Set<string>();

  add(named: IndexedName<Owner>): void {
    for (const read of readingsOf(named.name)) {
      const name = this.#named.length;
      this.#named.push(named);
      for (const word of read.words) {
        const number = this.#numberOf(word);
        if (this.#wordsUsed === this.#wordsOf.length) this.#wordsOf = grown(this.#wordsOf);
        this.#wordsOf[this.#wordsUsed] = number;
        this.#wordsUsed += 1;
        for (const hash of this.#hashes[number] ?? []) this.#postings.add(hash, name);
      }
      for (const joined of joinedOf(read))
        for (const sound of joinedSoundsOf(joined)) this.#postings.add(hashOf(sound), name);
      if (read.numbers.length > 0) this.#numbers.set(name, read.numbers);
      if (name + 1 === this.#starts.length) this.#starts = grown(this.#starts);
      this.#starts[name + 1] = this.#wordsUsed;
    }
  }

  build(): ListedNames<Owner> {
    return new ListedNames({
      named: this.#named,
      words: this.#words,
      begins: this.#begins,
      starts: this.#starts.slice(0, this.#named.length + 1),
      wordsOf: this.#wordsOf.slice(0, this.#wordsUsed),
      numbers: this.#numbers,
      postings: this.#postings.build(),
    });
  }

  #numberOf(word: NameWord): number {
    const key = `${word.spelling} ${word.before} ${word.text} ${word.sounds.join()}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const number = this.#words.length;
    this.#known.set(key, number);
    this.#words.push(word);
    this.#hashes.push([holderKey(word.text), ...soundsOf(word)].map(hashOf));
    if (!this.#texts.has(word.text)) {
      this.#texts.add(word.text);
      for (const first of new Set(firstsOf(word))) push(this.#begins, first, number);
    }
    return number;
  }
}

interface Listed<Owner> {
  named: readonly IndexedName<Owner>[];
  words: readonly NameWord[];
  /** Words by how they begin in letters and consonants, one of each text. */
  begins: ReadonlyMap<string, readonly number[]>;
  /** Where the words of each name begin in `wordsOf`, and at last where they end. */
  starts: Uint32Array;
  wordsOf: Uint32Array;
  /** The numbers of the few names that have any. */
  numbers: ReadonlyMap<number, readonly string[]>;
  /** Names by their words, consonants and sounds, and by two or three words written together. */
  postings: Postings;
}

/** The names of a list by numbers: a name is the numbers of its words. */
class ListedNames<Owner> implements NameIndex<Owner> {
  readonly #listed: Listed<Owner>;

  constructor(listed: Listed<Owner>) {
    this.#listed = listed;
  }

  get names(): number {
    return this.#listed.named.length;
  }

  async search(
    asked: string,
    { leastScore = REVIEW_SCORE, most = MOST_HITS }: { leastScore?: number; most?: number } = {},
  ): Promise<NameHit<Owner>[]> {
    const best = new Map<number, number>();
    for (const read of readingsOf(asked)) {
      let compared = 0;
      for (const name of await this.#candidates(read)) {
        compared += 1;
        if (compared % NAMES_AT_ONCE === 0) await nextTurn();
        const listed = this.#nameAt(name);
        const score = Math.max(nameScore(read, listed), this.#rareScore(read, listed));
        if (score >= leastScore && score > (best.get(name) ?? 0)) best.set(name, score);
      }
    }
    return [...best]
      .flatMap(([at, score]) => {
        const named = this.#listed.named[at];
        return named === undefined ? [] : [{ owner: named.owner, name: named.name, score }];
      })
      .sort((a, b) => b.score - a.score || a.name.localeCompare(b.name))
      .slice(0, most);
  }

  /** The names of which enough words are like those asked for: half of the letters of the shorter of the two. */
  async #candidates(read: ReadName): Promise<number[]> {
    const covered = new Map<number, number>();
    const note = (found: ReadonlySet<number>, letters: number) => {
      for (const name of found) covered.set(name, (covered.get(name) ?? 0) + letters);
    };
    for (const word of read.words) note(await this.#like(word), word.text.length);
    for (const joined of joinedOf(read)) note(this.#holding(joinedSoundsOf(joined)), joined.text.length);
    const asked = lettersOf(read.words);
    await nextTurn();
    return [...covered]
      .filter(([name, letters]) => letters >= Math.min(asked, this.#lettersAt(name)) / 2)
      .map(([name]) => name);
  }

  /** The names that hold a word like this one. */
  async #like(word: NameWord): Promise<Set<number>> {
    const { begins, words, postings } = this.#listed;
    const found = this.#holding(soundsOf(word));
    let compared = 0;
    for (const first of new Set(firstsOf(word))) {
      for (const number of begins.get(first) ?? []) {
        compared += 1;
        if (compared % WORDS_AT_ONCE === 0) await nextTurn();
        const other = words[number];
        if (other === undefined || letterScore(word, other) < LEAST_WORD_SCORE) continue;
        postings.into(found, holderKey(other.text));
      }
    }
    return found;
  }

  /** The names that have any of these keys. */
  #holding(keys: readonly string[]): Set<number> {
    const found = new Set<number>();
    for (const key of keys) this.#listed.postings.into(found, key);
    return found;
  }

  #nameAt(name: number): ReadName {
    const { starts, wordsOf, words, numbers } = this.#listed;
    const own: NameWord[] = [];
    for (const number of wordsOf.subarray(starts[name], starts[name + 1])) {
      const word = words[number];
      if (word !== undefined) own.push(word);
    }
    return { words: own, numbers: numbers.get(name) ?? [] };
  }

  #lettersAt(name: number): number {
    return lettersOf(this.#nameAt(name).words);
  }

  /** A family name alone, where so few of the list have it that it says whom it means. */
  #rareScore({ words }: ReadName, listed: ReadName): number {
    const [only, ...more] = words;
    if (only === undefined || more.length > 0 || only.text.length < RARE_LETTERS) return 0;
    if (!listed.words.some(({ text }) => text === only.text)) return 0;
    return this.#holding([holderKey(only.text)]).size <= RARE_NAMES ? REVIEW_SCORE : 0;
  }
}

/** The key of the names that hold a word as it is, not only its sound. */
function holderKey(text: string): string {
  return `#${text}`;
}

function push<Item>(map: Map<string, Item[]>, key: string, item: Item): void {
  const items = map.get(key);
  if (items === undefined) map.set(key, [item]);
  else items.push(item);
}

function firstsOf({ text, skeleton }: NameWord): string[] {
  return [text[0] ?? '', `~${skeleton[0] ?? ''}`];
}

function soundsOf({ text, skeleton, vowelless, readings, sounds }: NameWord): string[] {
  const said = readings.map((reading) =>
    // Two consonants are too few to know a word by.
    reading.skeleton.length >= 3 ? `~${reading.skeleton}` : `=${reading.said}`,
  );
  return [
    ...new Set([text, `~${skeleton}`, ...vowelless.map((letters) => `-${letters}`), ...said, ...sounds]),
  ];
}

/** The same of words that are written together, which are known by many consonants alone. */
function joinedSoundsOf({ text, skeleton, consonants, vowelless, spelling, sounds }: NameWord): string[] {
  if (skeleton.length < LEAST_JOINED_CONSONANTS) return [text, ...sounds];
  const letters = spelling === 'letters' ? [`a${consonants.replace(/(.)\1+/g, '$1')}`] : vowelless;
  return [text, `~${skeleton}`, ...letters.map((kept) => `-${kept}`), ...sounds];
}

/** A word with its particles, and two and three neighbouring words, written together. */
function joinedOf({ words }: ReadName): NameWord[] {
  return words.flatMap((word, begin) =>
    [1, 2, 3]
      .filter((count) => begin + count <= words.length)
      .flatMap((count) => joinsOf(words.slice(begin, begin + count)))
      .filter((joined) => joined !== word),
  );
}

function lettersOf(words: readonly NameWord[]): number {
  return words.reduce((sum, { text }) => sum + text.length, 0);
}

/** Reads the names of a list, a few at a time. */
export async function indexNames<Owner>(named: Iterable<IndexedName<Owner>>): Promise<NameIndex<Owner>> {
  // A name in Han characters has the dictionaries loaded: here, and not in the middle of a request.
  readingsOf('\u4e60\u8fd1\u5e73');
  const builder = new IndexBuilder<Owner>();
  let read = 0;
  for (const each of named) {
    builder.add(each);
    read += 1;
    if (read % READ_AT_ONCE === 0) await nextTurn();
  }
  return builder.build();
}
