/** What lists of persons, entities and addresses have in common, whoever publishes them. */
import { readXmlRecords, type XmlElement } from './xml-records.ts';

export interface ListedParty {
  /** The publisher's own number of the entry. */
  uid: string;
  kind: 'individual' | 'entity' | 'vessel' | 'aircraft' | 'service';
  /** True where the publisher states no kind, or one that is not known here: `kind` is then only the likeliest. */
  kindUnstated?: boolean;
  name: string;
  aliases: { name: string; weak: boolean }[];
  /**
   * Dates of birth that the list states: a whole day as `1952-10-07`, any other statement as `null`. Lists that were
   * read before dates were kept have none.
   */
  birthDates?: (string | null)[];
  /** Sanctions programmes or regimes, in the publisher's words. */
  programs: string[];
  /** `asset` is the ticker that the publisher states for the address. */
  addresses: { asset: string; address: string }[];
}

export interface PublishedList {
  /** When the publisher made it, as it states itself (ISO 8601). */
  publishedAt: string;
  parties: ListedParty[];
}

/** A file is not the expected list: it is cut off, empty, or of another shape. */
export class InvalidList extends Error {}

/**
 * Reads the records of a list that is published as XML: see `readXmlRecords`.
 *
 * @throws InvalidList when it is not well-formed, ends early, or `take` refuses a record
 */
export async function readListRecords(
  bytes: Buffer,
  wanted: ReadonlySet<string>,
  take: (element: XmlElement) => void,
): Promise<XmlElement> {
  try {
    return await readXmlRecords(bytes, wanted, take);
  } catch (cause) {
    throw new InvalidList(`not a whole list: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}

/** Words joined by single spaces; empty ones are left out. */
export function joinedName(...words: readonly (string | null)[]): string {
  return words
    .filter((word) => word !== null)
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim();
}

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');

/**
 * A date of birth as lists write it: `07 Oct 1952`, `07/10/1952` (the day first) or `1952-10-07`.
 *
 * @returns the day as `1952-10-07`; null for "circa 1952", a year alone or a day that does not exist
 */
export function birthDay(written: string): string | null {
  const named = /^(\d{1,2}) ([a-z]{3})[a-z]* (\d{4})$/i.exec(written.trim());
  const slashed = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/.exec(written.trim());
  const iso = /^(\d{4})-(\d{2})-(\d{2})(?:T.*)?$/.exec(written.trim());
  const [year, month, day] =
    named !== null
      ? [named[3], MONTHS.indexOf((named[2] ?? '').toLowerCase()) + 1, named[1]]
      : slashed !== null
        ? [slashed[3], slashed[2], slashed[1]]
        : iso !== null
          ? [iso[1], iso[2], iso[3]]
          : [];
  if (year === undefined) return null;
  const text = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`;
  const at = new Date(`${text}T00:00:00.000Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text) ? text : null;
}

/**
 * The day or time at which a list says it was made, as ISO 8601.
 *
 * @param slashes what comes first in `11/20/2026`: publishers differ
 * @throws InvalidList when it cannot be read, or no such day exists
 */
export function listTime(
  written: string | null,
  slashes: 'month-first' | 'day-first' = 'month-first',
): string {
  const parts = /^(\d{1,2})([/-])(\d{1,2})\2(\d{4})$/.exec(written ?? '');
  if (parts === null) {
    const ms = Date.parse(written ?? '');
    if (Number.isNaN(ms)) throw new InvalidList('it does not say when it was published');
    return new Date(ms).toISOString();
  }
  const [, first = '', mark, second = '', year = ''] = parts;
  const dayFirst = mark === '-' || slashes === 'day-first';
  const [day, month] = dayFirst ? [first, second] : [second, first];
  const iso = `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`;
  const made = new Date(`${iso}T00:00:00.000Z`);
  // A month beyond December, or 30 February, means that day and month were swapped.
  if (Number.isNaN(made.getTime()) || made.toISOString().slice(0, 10) !== iso) {
    throw new InvalidList(`it was published on ${written}, which is no day`);
  }
  return made.toISOString();
}
