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

interface Entry<Owner> {
  owner: Owner;
  name: string;
  read: ReadName;
}

/** Words and names that are compared before other work gets its turn: a few milliseconds' worth. */
const WORDS_AT_ONCE = 500;
const NAMES_AT_ONCE = 100;
const MOST_HITS = 50;
/** A word that only so many names hold identifies them by itself, when it has this many letters. */
const RARE_NAMES = 20;
const RARE_LETTERS = 5;

/** Where words stand: by themselves, and written together with their neighbours. */
class WordIndex {
  /** Names by each word, and the words by how they begin in letters and consonants. */
  readonly #holders = new Map<string, number[]>();
  readonly #words = new Map<string, NameWord[]>();
  /** Names by their consonants and sounds, and by two or three words written together. */
  readonly #sounds = new Map<string, number[]>();

  add(read: ReadName, index: number): void {
    for (const word of read.words) {
      if (!this.#holders.has(word.text)) {
        for (const first of new Set(firstsOf(word))) push(this.#words, first, word);
      }
      push(this.#holders, word.text, index);
      for (const sound of soundsOf(word)) push(this.#sounds, sound, index);
    }
    for (const joined of joinedOf(read))
      for (const sound of joinedSoundsOf(joined)) push(this.#sounds, sound, index);
  }

  holdersOf(text: string): readonly number[] {
    return this.#holders.get(text) ?? [];
  }

  /** The names that hold a word like this one. */
  async like(word: NameWord): Promise<Set<number>> {
    const found = this.soundLike(word);
    let compared = 0;
    for (const first of new Set(firstsOf(word))) {
      for (const other of this.#words.get(first) ?? []) {
        compared += 1;
        if (compared % WORDS_AT_ONCE === 0) await nextTurn();
        if (letterScore(word, other) < LEAST_WORD_SCORE) continue;
        for (const index of this.holdersOf(other.text)) found.add(index);
      }
    }
    return found;
  }

  /** The names that hold a word, or neighbouring words, that sound the same. */
  soundLike(word: NameWord, sounds = soundsOf(word)): Set<number> {
    return new Set(sounds.flatMap((sound) => this.#sounds.get(sound) ?? []));
  }
}

function push<Item>(map: Map<string, Item[]>, key: string, item: Item): void {
  const items = map.get(key);
  if (items === undefined) map.set(key, [item]);
  else if (items.at(-1) !== item) items.push(item);
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

/** Reads the names of a list, in pieces. */
export async function indexNames<Owner>(named: Iterable<IndexedName<Owner>>): Promise<NameIndex<Owner>> {
  const entries: Entry<Owner>[] = [];
  const words = new WordIndex();
  for (const { owner, name } of named) {
    for (const read of readingsOf(name)) {
      words.add(read, entries.length);
      entries.push({ owner, name, read });
    }
    if (entries.length % WORDS_AT_ONCE === WORDS_AT_ONCE - 1) await nextTurn();
  }
  return {
    names: entries.length,
    async search(asked, { leastScore = REVIEW_SCORE, most = MOST_HITS } = {}) {
      const best = new Map<string, NameHit<Owner> & { at: number }>();
      for (const read of readingsOf(asked)) {
        let compared = 0;
        for (const index of await candidates(read, words, entries)) {
          compared += 1;
          if (compared % NAMES_AT_ONCE === 0) await nextTurn();
          const entry = entries[index];
          if (entry === undefined) continue;
          const score = Math.max(nameScore(read, entry.read), rareScore(read, entry, words));
          const key = `${index}`;
          if (score >= leastScore && score > (best.get(key)?.score ?? 0)) {
            best.set(key, { owner: entry.owner, name: entry.name, score, at: index });
          }
        }
      }
      return [...best.values()]
        .sort((a, b) => b.score - a.score || a.name.localeCompare(b.name))
        .slice(0, most)
        .map(({ owner, name, score }) => ({ owner, name, score }));
    },
  };
}

/** The names of which enough words are like those asked for: half of the letters of the shorter of the two. */
async function candidates<Owner>(
  read: ReadName,
  words: WordIndex,
  entries: readonly Entry<Owner>[],
): Promise<number[]> {
  const covered = new Map<number, number>();
  const note = (found: ReadonlySet<number>, letters: number) => {
    for (const index of found) covered.set(index, (covered.get(index) ?? 0) + letters);
  };
  for (const word of read.words) note(await words.like(word), word.text.length);
  for (const joined of joinedOf(read))
    note(words.soundLike(joined, joinedSoundsOf(joined)), joined.text.length);
  const asked = lettersOf(read);
  return [...covered]
    .filter(([index, letters]) => {
      const entry = entries[index];
      return entry !== undefined && letters >= Math.min(asked, lettersOf(entry.read)) / 2;
    })
    .map(([index]) => index);
}

function lettersOf({ words }: ReadName): number {
  return words.reduce((sum, { text }) => sum + text.length, 0);
}

/** A family name alone, where so few of the list have it that it says whom it means. */
function rareScore<Owner>(read: ReadName, { read: listed }: Entry<Owner>, words: WordIndex): number {
  const [only, ...more] = read.words;
  if (only === undefined || more.length > 0 || only.text.length < RARE_LETTERS) return 0;
  if (!listed.words.some(({ text }) => text === only.text)) return 0;
  return words.holdersOf(only.text).length <= RARE_NAMES ? REVIEW_SCORE : 0;
}
