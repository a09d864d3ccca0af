/** Looks a name up in lists of sanctions: how similar it is, and to which entry of which list and date. */
import { indexNames, type NameIndex } from '../../../compliance/name-index.ts';
import { REVIEW_SCORE, STRONG_SCORE } from '../../../compliance/name-match.ts';
import type { ListedParty } from '../../../upstreams/published-list.ts';
import type { ListInUse, ListName } from '../../listed-parties.ts';

/** A name of an entry, and whether its publisher holds it for a weak one. */
interface Owner {
  party: ListedParty;
  weak: boolean;
}

export interface NameMatch {
  list: string;
  listTitle: string;
  listPublishedAt: string;
  uid: string;
  /** The entry's first name; `matchedName` is the similar one. */
  name: string;
  matchedName: string;
  weakAlias: boolean;
  kind: ListedParty['kind'];
  programs: string[];
  /** 0 to 1. */
  score: number;
  strength: 'strong' | 'review';
}

const MOST_MATCHES = 25;
const indexes = new Map<ListName, { sha256: string; index: Promise<NameIndex<Owner>> }>();

/** The index of a list, made once for each version of the list. */
function indexOf({ name, sha256, parties }: ListInUse): Promise<NameIndex<Owner>> {
  const known = indexes.get(name);
  if (known?.sha256 === sha256) return known.index;
  const index = indexNames(
    parties.flatMap((party) => [
      { owner: { party, weak: false }, name: party.name },
      ...party.aliases.map((alias) => ({ owner: { party, weak: alias.weak }, name: alias.name })),
    ]),
  );
  indexes.set(name, { sha256, index });
  return index;
}

/** The entries of a list with a name or alias similar to this one, each once with its best name, best first. */
export async function nameMatches(list: ListInUse, asked: string): Promise<NameMatch[]> {
  const hits = await (await indexOf(list)).search(asked, {
    leastScore: REVIEW_SCORE,
    most: 4 * MOST_MATCHES,
  });
  const best = new Map<string, NameMatch>();
  for (const { owner, name, score } of hits) {
    const { party, weak } = owner;
    if (best.has(party.uid)) continue;
    best.set(party.uid, {
      list: list.name,
      listTitle: list.title,
      listPublishedAt: list.publishedAt,
      uid: party.uid,
      name: party.name,
      matchedName: name,
      weakAlias: weak,
      kind: party.kind,
      programs: party.programs,
      score,
      // OFAC does not require a search for weak aliases (FAQ 122): they are shown, but never as strong.
      strength: score >= STRONG_SCORE && !weak ? 'strong' : 'review',
    });
  }
  return [...best.values()].slice(0, MOST_MATCHES);
}
