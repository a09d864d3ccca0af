/** Finds the names of a long list that are like one that was asked for, without comparing it with all of them. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { nameScore, REVIEW_SCORE, type ReadName, readName, wordScore } from './name-match.ts';

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

/** Words and names that are compared before other work gets its turn: a few milliseconds' worth. */
const WORDS_AT_ONCE = 500;
const NAMES_AT_ONCE = 100;
/** A word that is like the one asked for, before it is known what else is. */
const WORD_SCORE = 0.82;
const MOST_HITS = 50;

/** Reads the names of a list, in pieces. */
export async function indexNames<Owner>(named: Iterable<IndexedName<Owner>>): Promise<NameIndex<Owner>> {
  const entries: { owner: Owner; name: string; read: ReadName }[] = [];
  /** Which names hold a word; words in buckets by how they and their consonants begin. */
  const holders = new Map<string, number[]>();
  const skeletons = new Map<string, string>();
  for (const { owner, name } of named) {
    const read = readName(name);
    const index = entries.length;
    entries.push({ owner, name, read });
    read.words.forEach((word, at) => {
      const known = holders.get(word);
      if (known === undefined) {
        holders.set(word, [index]);
        skeletons.set(word, read.skeletons[at] ?? '');
      } else if (known.at(-1) !== index) known.push(index);
    });
    if (index % WORDS_AT_ONCE === WORDS_AT_ONCE - 1) await nextTurn();
  }
  const words = [...skeletons];

  return {
    names: entries.length,
    async search(asked, { leastScore = REVIEW_SCORE, most = MOST_HITS } = {}) {
      const read = readName(asked);
      // How many letters of what was asked for a name holds, by its words alone.
      const covered = new Map<number, number>();
      for (let at = 0; at < read.words.length; at++) {
        const word = read.words[at] ?? '';
        const skeleton = read.skeletons[at] ?? '';
        const touched = new Set<number>();
        let compared = 0;
        for (const [other, otherSkeleton] of words) {
          compared += 1;
          if (compared % WORDS_AT_ONCE === 0) await nextTurn();
          // Nothing that begins otherwise, by letter or by sound, comes as close as it would have to.
          if (other[0] !== word[0] && otherSkeleton[0] !== skeleton[0]) continue;
          if (wordScore(word, other, skeleton, otherSkeleton) < WORD_SCORE) continue;
          for (const index of holders.get(other) ?? []) touched.add(index);
        }
        for (const index of touched) covered.set(index, (covered.get(index) ?? 0) + word.length);
      }
      const joined = read.words.join('');
      for (const index of holders.get(joined) ?? []) covered.set(index, joined.length);
      const least = joined.length / 2;
      const hits: NameHit<Owner>[] = [];
      let compared = 0;
      for (const [index, letters] of covered) {
        if (letters < least) continue;
        const entry = entries[index];
        if (entry === undefined) continue;
        compared += 1;
        if (compared % NAMES_AT_ONCE === 0) await nextTurn();
        const score = nameScore(read, entry.read);
        if (score >= leastScore) hits.push({ owner: entry.owner, name: entry.name, score });
      }
      return hits.sort((a, b) => b.score - a.score || a.name.localeCompare(b.name)).slice(0, most);
    },
  };
}
