/** What lists of persons, entities and addresses have in common, whoever publishes them. */

export interface ListedParty {
  /** The publisher's own number of the entry. */
  uid: string;
  kind: 'individual' | 'entity' | 'vessel' | 'aircraft' | 'service';
  name: string;
  aliases: { name: string; weak: boolean }[];
  /** Sanctions programmes or regimes, in the publisher's words. */
  programs: string[];
  /** `asset` is the ticker that the publisher puts beside it. */
  addresses: { asset: string; address: string }[];
}

export interface PublishedList {
  /** When the publisher made it, by its own word (ISO 8601). */
  publishedAt: string;
  parties: ListedParty[];
}

/** A file is not the list that it should be: cut off, empty, or of another shape. */
export class InvalidList extends Error {}

/** Words joined by single spaces; empty ones are left out. */
export function joinedName(...words: readonly (string | null)[]): string {
  return words
    .filter((word) => word !== null)
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim();
}

/** @throws InvalidList when a day or time cannot be read */
export function listTime(written: string | null): string {
  const american = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/.exec(written ?? '');
  const european = /^(\d{1,2})-(\d{1,2})-(\d{4})$/.exec(written ?? '');
  const ms =
    american !== null
      ? Date.UTC(Number(american[3]), Number(american[1]) - 1, Number(american[2]))
      : european !== null
        ? Date.UTC(Number(european[3]), Number(european[2]) - 1, Number(european[1]))
        : Date.parse(written ?? '');
  if (Number.isNaN(ms)) throw new InvalidList('it does not say when it was published');
  return new Date(ms).toISOString();
}
