/** Looks a name up in lists of sanctions: how similar it is, and to which entry of which list and date. */
import { indexNames, type NameIndex } from '../../../compliance/name-index.ts';
import { REVIEW_SCORE, STRONG_SCORE } from '../../../compliance/name-match.ts';
import type { ListedParty } from '../../../upstreams/adapters/published-list.ts';
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
  /** What shows that the entry is somebody else; null where nothing does. A strong match is never cleared. */
  clearedBy: 'birthDate' | 'entityType' | null;
  /** Whether the entry states the same date of birth. */
  sameBirthDate: boolean;
}

/** What is known of the one who is looked for, beside the name. */
export interface KnownOfParty {
  /** ISO 8601, a whole day. */
  birthDate: string | null;
  kind: 'person' | 'entity' | null;
}

const MOST_MATCHES = 25;
/** Namesakes are many, and those that are cleared must not hide the others. */
const MOST_HITS = 2_000;
/** Lists give dates of birth that are a year off, by other calendars and by hearsay. */
const CLEARING_YEARS = 2;
const DAY_MS = 86_400_000;
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

/**
 * The entries of a list with a name or alias similar to this one, each once with its best name: those that count
 * first, best first. What clears an entry takes a strong match down to one for review, and never further.
 */
export async function nameMatches(list: ListInUse, asked: string, known: KnownOfParty): Promise<NameMatch[]> {
  const hits = await (await indexOf(list)).search(asked, { leastScore: REVIEW_SCORE, most: MOST_HITS });
  const best = new Map<string, NameMatch>();
  // OFAC does not require a search for weak aliases (FAQ 122): they are shown, but never as strong, and never in place
  // of a name of the same entry that is.
  const isStrong = ({ owner, score }: (typeof hits)[number]) => score >= STRONG_SCORE && !owner.weak;
  for (const hit of [...hits.filter(isStrong), ...hits]) {
    const { owner, name, score } = hit;
    const { party, weak } = owner;
    if (best.has(party.uid)) continue;
    const strong = isStrong(hit);
    const contradicts = contradictionOf(party, known);
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
      strength: strong && contradicts === null ? 'strong' : 'review',
      clearedBy: strong ? null : contradicts,
      sameBirthDate: known.birthDate !== null && (party.birthDates ?? []).includes(known.birthDate),
    });
  }
  const matches = [...best.values()].sort((a, b) => b.score - a.score);
  return [
    ...matches.filter(({ clearedBy }) => clearedBy === null),
    ...matches.filter(({ clearedBy }) => clearedBy !== null),
  ].slice(0, MOST_MATCHES);
}

/**
 * What the list itself states that cannot be true of the one who is looked for: every date of birth is a whole day and
 * more than two years away, or it is of another kind.
 */
function contradictionOf(party: ListedParty, { birthDate, kind }: KnownOfParty): NameMatch['clearedBy'] {
  const dates = party.birthDates ?? [];
  if (birthDate !== null && dates.length > 0) {
    const apart = (date: string) => Math.abs(Date.parse(date) - Date.parse(birthDate)) / DAY_MS / 365.25;
    if (dates.every((date) => date !== null && apart(date) > CLEARING_YEARS)) return 'birthDate';
  }
  if (kind === null || party.kindUnstated === true) return null;
  return (party.kind === 'individual') === (kind === 'person') ? null : 'entityType';
}
